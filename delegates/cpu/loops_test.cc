// Every loop of every instruction set that this processor executes, against the same function in
// double.
#include "delegates/cpu/loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

namespace msrt::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<const Loops*> Tables() {
  size_t count = 0;
  const Loops* const* tables = AllLoops(&count);
  return {tables, tables + count};
}

// Numbers of every magnitude and both signs, the special ones included.
std::vector<float> Samples() {
  std::vector<float> x{0.0f,       -0.0f,    1.0f,   -1.0f,   kInfinity,
                       -kInfinity, kNan,     1e-45f, -1e-45f, 1.17549435e-38f,
                       3.4e38f,    -3.4e38f, 88.7f,  -103.9f};
  for (int i = -4000; i <= 4000; ++i) x.push_back(static_cast<float>(i) * 0.005f);
  for (double m = 1e-30; m < 1e30; m *= 1.37)
    x.insert(x.end(), {static_cast<float>(m), static_cast<float>(-m)});
  return x;
}

double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

struct Function {
  Unary op;
  std::function<double(double)> exact;
  double ulps;          // of the result
  double absolute = 0;  // where the result is a small difference of large numbers
};

std::vector<Function> Functions() {
  return {
      {Unary::kRelu, [](double x) { return x < 0 ? 0 : x; }, 0},
      {Unary::kLeakyRelu, [](double x) { return x < 0 ? 0.25 * x : x; }, 0, 1e-45},
      {Unary::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 4, 1.2e-38},
      {Unary::kTanh, [](double x) { return std::tanh(x); }, 4},
      {Unary::kGelu, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, 8,
       1e-6},
      {Unary::kGeluTanh,
       [](double x) {
         return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
       },
       8, 1e-6},
      {Unary::kElu, [](double x) { return x < 0 ? 0.25 * std::expm1(x) : x; }, 4},
      {Unary::kSwish, [](double x) { return x / (1 + std::exp(-0.25 * x)); }, 8, 1e-37},
      {Unary::kMish, [](double x) { return x * std::tanh(Softplus(x)); }, 8, 1e-37},
      {Unary::kSoftplus, Softplus, 4, 1e-44},
      {Unary::kExp, [](double x) { return std::exp(x); }, 4, 1.5e-45},
      {Unary::kLog, [](double x) { return std::log(x); }, 4, 1e-7},
      {Unary::kErf, [](double x) { return std::erf(x); }, 4},
      {Unary::kAbs, [](double x) { return std::abs(x); }, 0},
      {Unary::kNeg, [](double x) { return -x; }, 0},
      {Unary::kSqrt, [](double x) { return std::sqrt(x); }, 1},
      {Unary::kReciprocal, [](double x) { return 1 / x; }, 1},
      {Unary::kSquare, [](double x) { return x * x; }, 1},
      {Unary::kRound, [](double x) { return std::nearbyint(x); }, 0},
      {Unary::kFloor, [](double x) { return std::floor(x); }, 0},
      {Unary::kCeil, [](double x) { return std::ceil(x); }, 0},
      {Unary::kHardSwish,
       [](double x) { return std::isnan(x) ? x : x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }, 4, 1e-6},
  };
}

void ExpectNear(float got, double exact, const Function& f, float x, const char* isa) {
  const auto want = static_cast<float>(exact);
  if (std::isnan(want) || std::isinf(want)) {
    EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want)
        << isa << " function " << int(f.op) << " of " << x << ": " << got << ", exact " << want;
    return;
  }
  const double ulp = std::abs(std::nextafter(want, kInfinity) - want);
  EXPECT_LE(std::abs(got - exact), f.ulps * ulp + f.absolute + (f.ulps == 0 ? 0 : 0.5 * ulp))
      << isa << " function " << int(f.op) << " of " << x << ": " << got << ", exact " << exact;
}

TEST(CpuLoops, UnaryFunctionsAreExactToAFewUlps) {
  const std::vector<float> x = Samples();
  for (const Loops* loops : Tables()) {
    for (const Function& f : Functions()) {
      std::vector<float> y(x.size());
      loops->unary[static_cast<size_t>(f.op)](x.data(), y.data(), static_cast<int64_t>(x.size()),
                                              0.25f, 0.5f);
      for (size_t i = 0; i < x.size(); ++i) ExpectNear(y[i], f.exact(x[i]), f, x[i], loops->name);
    }
  }
}

// One element at a time and all at once: a piece of a tensor has the bits of the whole.
TEST(CpuLoops, TailsHaveTheBitsOfVectors) {
  const std::vector<float> x = Samples();
  for (const Loops* loops : Tables()) {
    for (size_t f = 0; f < kUnaryCount; ++f) {
      std::vector<float> whole(x.size()), single(x.size());
      loops->unary[f](x.data(), whole.data(), static_cast<int64_t>(x.size()), 0.25f, 0.5f);
      for (size_t i = 0; i < x.size(); ++i) loops->unary[f](&x[i], &single[i], 1, 0.25f, 0.5f);
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::isnan(whole[i]) && std::isnan(single[i])) continue;
        EXPECT_EQ(std::memcmp(&whole[i], &single[i], 4), 0)
            << loops->name << " function " << f << " of " << x[i];
      }
    }
  }
}

TEST(CpuLoops, ReductionsAgreeWithDouble) {
  for (const Loops* loops : Tables()) {
    for (const int64_t count : {1, 7, 64, 65, 1000, 50176}) {
      std::vector<float> x(static_cast<size_t>(count));
      double sum = 0, squares = 0, absolute = 0;
      float largest = -kInfinity, smallest = kInfinity;
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<float>(std::sin(static_cast<double>(i) * 0.7) + 0.3);
        sum += x[i], squares += static_cast<double>(x[i]) * x[i], absolute += std::abs(x[i]);
        largest = std::max(largest, x[i]), smallest = std::min(smallest, x[i]);
      }
      const double exact[] = {sum, squares, absolute, largest, smallest};
      for (size_t op = 0; op < kReduceCount; ++op) {
        const double start = op == 3 ? -kInfinity : op == 4 ? kInfinity : 0.0;
        double row = start, column = start;
        loops->reduce_row[op](x.data(), count, &row);
        loops->reduce_columns[op](x.data(), count, 1, 1, &column);
        const double tolerance = op < 3 ? 2e-6 * std::max(1.0, absolute) : 0;
        EXPECT_NEAR(row, exact[op], tolerance) << loops->name << " op " << op << " of " << count;
        EXPECT_NEAR(column, exact[op], tolerance) << loops->name << " op " << op << " of " << count;
      }
    }
  }
}

TEST(CpuLoops, ExtremesKeepNan) {
  for (const Loops* loops : Tables()) {
    for (size_t at = 0; at < 200; at += 13) {
      std::vector<float> x(200, 1.0f);
      x[at] = kNan;
      double largest = -kInfinity, smallest = kInfinity;
      loops->reduce_row[static_cast<size_t>(Reduce::kMax)](x.data(), 200, &largest);
      loops->reduce_columns[static_cast<size_t>(Reduce::kMin)](x.data(), 200, 1, 1, &smallest);
      EXPECT_TRUE(std::isnan(largest) && std::isnan(smallest)) << loops->name << " NaN at " << at;
    }
  }
}

template <typename T>
void ExpectTransposes(const Loops& loops, size_t log_width, int64_t rows, int64_t columns) {
  std::vector<T> from(static_cast<size_t>(rows * (columns + 3))),
      to(static_cast<size_t>(columns * (rows + 5)), T{0});
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(i * 2654435761u);
  loops.transpose[log_width](from.data(), columns + 3, to.data(), rows + 5, rows, columns);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      ASSERT_EQ(to[static_cast<size_t>(c * (rows + 5) + r)],
                from[static_cast<size_t>(r * (columns + 3) + c)])
          << loops.name << " width " << sizeof(T) << ": " << rows << " x " << columns << " at " << r
          << ", " << c;
    }
  }
}

TEST(CpuLoops, TransposesOfEverySize) {
  for (const Loops* loops : Tables()) {
    for (const int64_t rows : {1, 3, 8, 17, 64, 70}) {
      for (const int64_t columns : {1, 5, 8, 16, 33}) {
        ExpectTransposes<uint8_t>(*loops, 0, rows, columns);
        ExpectTransposes<uint16_t>(*loops, 1, rows, columns);
        ExpectTransposes<uint32_t>(*loops, 2, rows, columns);
        ExpectTransposes<uint64_t>(*loops, 3, rows, columns);
      }
    }
  }
}

// ---- bytes --------------------------------------------------------------------------------------

double Saturated(double value, bool is_signed) {
  return std::isnan(value)
             ? 0
             : std::min(std::max(value, is_signed ? -128.0 : 0.0), is_signed ? 127.0 : 255.0);
}
double ByteAt(const std::vector<uint8_t>& bytes, size_t i, bool is_signed) {
  return is_signed ? static_cast<double>(static_cast<int8_t>(bytes[i]))
                   : static_cast<double>(bytes[i]);
}

TEST(CpuLoops, BytesAreThoseOfTheDefinition) {
  const std::vector<float> x = Samples();
  for (const Loops* loops : Tables()) {
    for (const bool is_signed : {false, true}) {
      for (const int32_t zero : {is_signed ? -128 : 0, 3, is_signed ? 127 : 255}) {
        constexpr float kScale = 0.03f;
        std::vector<uint8_t> bytes(x.size());
        loops->quantize[is_signed](x.data(), bytes.data(), static_cast<int64_t>(x.size()), kScale,
                                   zero);
        std::vector<float> real(x.size());
        loops->dequantize[is_signed](bytes.data(), real.data(), static_cast<int64_t>(x.size()),
                                     kScale, zero);
        for (size_t i = 0; i < x.size(); ++i) {
          const double steps = Saturated(double{std::nearbyint(x[i] / kScale)} + zero, is_signed);
          EXPECT_EQ(ByteAt(bytes, i, is_signed), steps)
              << loops->name << " " << x[i] << " zero " << zero;
          EXPECT_EQ(real[i], static_cast<float>((steps - zero) * double{kScale})) << loops->name;
        }
      }
    }
  }
}

TEST(CpuLoops, ExtremesIgnoreNan) {
  for (const Loops* loops : Tables()) {
    for (const size_t count : {size_t{0}, size_t{5}, size_t{64}, size_t{200}}) {
      std::vector<float> x(count, kNan);
      float expected_low = 0, expected_high = 0;
      for (size_t i = 1; i < count; i += 3) {
        x[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50);
        expected_low = std::min(expected_low, x[i]), expected_high = std::max(expected_high, x[i]);
      }
      float low = 0, high = 0;
      loops->min_max(x.data(), static_cast<int64_t>(count), &low, &high);
      EXPECT_EQ(low, expected_low) << loops->name << " " << count;
      EXPECT_EQ(high, expected_high) << loops->name << " " << count;
    }
  }
}

TEST(CpuLoops, SumsOfProductsWrapAndDoNotSaturate) {
  constexpr int64_t kPairs = 37;
  std::vector<int16_t> a(kTileRows * kPairs * 2), b(kPanelColumns * kPairs * 2);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<int16_t>(i % 7 == 0 ? -255 : 255 - static_cast<int>(i % 5));
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = static_cast<int16_t>(i % 11 == 0 ? -255 : 255 - static_cast<int>(i % 3));
  for (const Loops* loops : Tables()) {
    for (int64_t rows = 1; rows <= kTileRows; ++rows) {
      std::vector<int32_t> sums(static_cast<size_t>(rows * kPanelColumns));
      loops->sum_tile(a.data(), kPairs * 2, b.data(), kPairs, rows, sums.data());
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < kPanelColumns; ++c) {
          int64_t sum = 0;
          for (int64_t k = 0; k < kPairs * 2; ++k) {
            sum += int64_t{a[static_cast<size_t>(r * kPairs * 2 + k)]} *
                   b[static_cast<size_t>((k / 2 * kPanelColumns + c) * 2 + k % 2)];
          }
          EXPECT_EQ(sums[static_cast<size_t>(r * kPanelColumns + c)], sum)
              << loops->name << " row " << r << " column " << c;
        }
      }
    }
  }
}

// Weights with a single one pick one input of each window: the transforms together do the same.
TEST(CpuLoops, WinogradsTransformsAreAConvolution) {
  const double a = std::sqrt(0.5), b = std::sqrt(2.0);
  const double points[6][3] = {{1, 0, 0},
                               {-1 / 1.5, -a / 1.5, -0.5 / 1.5},
                               {-1 / 1.5, a / 1.5, -0.5 / 1.5},
                               {1 / 6.0, b / 6, 2 / 6.0},
                               {1 / 6.0, -b / 6, 2 / 6.0},
                               {0, 0, 1}};
  for (const Loops* loops : Tables()) {
    for (const int64_t channels : {1, 7, 16, 37}) {
      std::vector<float> x(static_cast<size_t>(36 * channels)), t(x.size()), m(x.size()),
          y(static_cast<size_t>(16 * channels)), bias(static_cast<size_t>(channels), 0.25f);
      for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i) * 1.7f);
      WinogradInput in{.pixels = {}, .channels = channels, .to = t.data(), .step = channels};
      for (int64_t i = 0; i < 36; ++i) in.pixels[i] = x.data() + i * channels;
      loops->winograd_input(in);
      for (int tap = 0; tap < 9; ++tap) {
        SCOPED_TRACE(std::string(loops->name) + " tap " + std::to_string(tap));
        for (int64_t p = 0; p < 36; ++p) {
          for (int64_t c = 0; c < channels; ++c) {
            m[static_cast<size_t>(p * channels + c)] =
                t[static_cast<size_t>(p * channels + c)] *
                static_cast<float>(points[p / 6][tap / 3] * points[p % 6][tap % 3]);
          }
        }
        WinogradOutput out{.from = m.data(),
                           .step = channels,
                           .channels = channels,
                           .bias = bias.data(),
                           .pixels = {},
                           .residuals = {},
                           .low = -kInfinity,
                           .high = kInfinity};
        for (int64_t i = 0; i < 16; ++i) out.pixels[i] = y.data() + i * channels;
        out.residuals[5] = x.data();
        EXPECT_TRUE(loops->winograd_output(out));
        for (int64_t i = 0; i < 16; ++i) {
          for (int64_t c = 0; c < channels; ++c) {
            const int64_t from = (i / 4 + tap / 3) * 6 + i % 4 + tap % 3;
            const float added = 0.25f + (i == 5 ? x[static_cast<size_t>(c)] : 0);
            ASSERT_NEAR(y[static_cast<size_t>(i * channels + c)],
                        x[static_cast<size_t>(from * channels + c)] + added, 4e-6);
          }
        }
      }
      m[static_cast<size_t>(m.size() / 2)] = kInfinity;
      WinogradOutput out{.from = m.data(),
                         .step = channels,
                         .channels = channels,
                         .bias = nullptr,
                         .pixels = {y.data()},
                         .residuals = {},
                         .low = 0,
                         .high = 1};
      EXPECT_FALSE(loops->winograd_output(out));
    }
  }
}

TEST(CpuLoops, WinogradsDirectSumsReplaceWhatIsNotFinite) {
  constexpr int64_t kInputs = 37, kChannels = 5;
  std::vector<float> x(9 * kInputs), w(kChannels * 9 * kInputs), bias{1, -2, 3, -4, 5};
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i) * 1.3f);
  for (size_t i = 0; i < w.size(); ++i) w[i] = std::cos(static_cast<float>(i) * 0.7f);
  std::vector<float> first;
  for (const Loops* loops : Tables()) {
    std::vector<float> y{0.5f, kInfinity, std::nanf(""), -kInfinity, -0.5f}, residual(5, 0.25f);
    WinogradDirect direct{.taps = {},
                          .weights = w.data(),
                          .inputs = kInputs,
                          .bias = bias.data(),
                          .residual = residual.data(),
                          .y = y.data(),
                          .channels = kChannels};
    for (int tap = 0; tap < 9; ++tap)
      direct.taps[tap] = tap == 4 ? nullptr : x.data() + tap * kInputs;
    loops->winograd_direct(direct);
    EXPECT_EQ(y[0], 0.5f);
    EXPECT_EQ(y[4], -0.5f);
    for (int64_t c = 1; c < 4; ++c) {
      double sum = static_cast<double>(bias[static_cast<size_t>(c)]) + 0.25;
      for (int64_t tap = 0; tap < 9; ++tap) {
        for (int64_t i = 0; i < kInputs && tap != 4; ++i)
          sum += static_cast<double>(x[static_cast<size_t>(tap * kInputs + i)]) *
                 static_cast<double>(w[static_cast<size_t>((c * kInputs + i) * 9 + tap)]);
      }
      EXPECT_NEAR(y[static_cast<size_t>(c)], sum, 1e-5) << loops->name;
    }
    if (first.empty()) first = y;
    EXPECT_EQ(y, first) << loops->name;
  }
}

}  // namespace
}  // namespace msrt::cpu

// Convolutions and products by chains of fused multiply-adds: bit for bit what the rule of
// MSRT_ARITHMETIC_FMA says, computed here one element at a time with std::fma; and near the result
// in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "core/abi/msrt_plugin.h"
#include "delegates/cpu/chain_taps.h"
#include "delegates/cpu/cpu.h"
#include "delegates/cpu/loops.h"
#include "tests/conformance/delegate_checks.h"
#include "tests/conformance/small_graph.h"

namespace msrt::cpu {
namespace {

using testing::OneNode;
using testing::RandomFloats;

bool SameBits(float a, float b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
}

int64_t Pick(std::mt19937* random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>((*random)() % static_cast<uint64_t>(high - low + 1));
}

// ---- the inner loop -----------------------------------------------------------------------------

// Products that cancel, underflow or overflow, which an emulated instruction rounds wrongly first.
std::vector<float> HardFloats(std::mt19937* random, size_t count) {
  std::vector<float> values(count);
  for (float& v : values) {
    const auto bits = static_cast<uint32_t>((*random)());
    switch ((*random)() % 8) {
      case 0:
        std::memcpy(&v, &bits, sizeof v);  // any number
        break;
      case 1:
        v = bits % 2 == 0 ? 0.0f : -0.0f;
        break;
      case 2:
        v = std::ldexp(1.0f + static_cast<float>(bits % 4) * 0x1p-23f, -75);
        break;
      default:
        v = std::ldexp(static_cast<float>(bits % 0x1000000) + 0x1p23f, -24) *
            (bits % 2 == 0 ? 1.0f : -1.0f);
    }
  }
  return values;
}

TEST(Chains, LoopsOfEveryInstructionSetAreChains) {
  size_t tables = 0;
  const Loops* const* all = AllLoops(&tables);
  std::mt19937 random(1);
  for (size_t table = 0; table < tables; ++table) {
    const Loops& loops = *all[table];
    for (int round = 0; round < 300; ++round) {
      const int64_t rows = Pick(&random, 1, 31), depth = Pick(&random, 1, 23),
                    columns = Pick(&random, 1, loops.chain_panel), panel = loops.chain_panel;
      const auto x = HardFloats(&random, static_cast<size_t>(rows * depth)),
                 w = HardFloats(&random, static_cast<size_t>(depth * panel)),
                 start = HardFloats(&random, static_cast<size_t>(columns)),
                 residual = HardFloats(&random, static_cast<size_t>(rows * columns));
      std::vector<float> y(static_cast<size_t>(rows * columns + 1), 7);
      const int64_t cut = Pick(&random, 0, depth);
      const ChainRun runs[] = {{0, 0, cut}, {cut, cut, depth - cut}};
      ChainTile tile{.x = x.data(),
                     .x_step = depth,
                     .w = w.data(),
                     .runs = runs,
                     .run_count = 2,
                     .y = y.data(),
                     .y_step = columns,
                     .rows = rows,
                     .columns = columns,
                     .begins = true,
                     .start = round % 3 == 0 ? nullptr : start.data(),
                     .ends = true,
                     .addend = nullptr,
                     .residual = round % 2 == 0 ? residual.data() : nullptr,
                     .residual_step = columns,
                     .low = round % 5 == 0 ? 0 : -HUGE_VALF,
                     .high = HUGE_VALF};
      if (round % 4 == 0) {  // in two parts
        tile.run_count = 1, tile.ends = false;
        loops.chains(tile);
        tile.runs = runs + 1, tile.begins = false, tile.ends = true;
      }
      loops.chains(tile);
      EXPECT_EQ(y.back(), 7);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          float sum = round % 3 == 0 ? 0 : start[static_cast<size_t>(c)];
          for (int64_t k = 0; k < depth; ++k)
            sum = std::fma(x[static_cast<size_t>(r * depth + k)],
                           w[static_cast<size_t>(k * panel + c)], sum);
          if (round % 2 == 0) sum = sum + residual[static_cast<size_t>(r * columns + c)];
          if (round % 5 == 0 && sum < 0) sum = 0;
          const float got = y[static_cast<size_t>(r * columns + c)];
          ASSERT_TRUE(SameBits(got, sum)) << loops.name << " row " << r << " of " << rows
                                          << " column " << c << ": " << got << " and " << sum;
        }
      }
    }
  }
}

// ---- taps ---------------------------------------------------------------------------------------

TEST(Chains, ClassesHaveTheTapsOfTheirOutputs) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    const bool transposed = round % 2 != 0;
    WindowAxis axis{.in = Pick(&random, 0, 12),
                    .out = Pick(&random, 1, 20),
                    .kernel = Pick(&random, 1, 5),
                    .stride = Pick(&random, 1, 4),
                    .dilation = Pick(&random, 1, 4),
                    .pad_begin = Pick(&random, transposed ? -3 : 0, 6),
                    .pad_end = 0};
    const AxisTaps taps = TapsOf(axis, transposed);
    std::vector<int> seen(static_cast<size_t>(axis.out));
    for (const TapClass& c : taps.classes) {
      for (int64_t i = 0; i < c.count; ++i) {
        const int64_t output = c.first + i * c.step;
        ASSERT_LT(output, axis.out);
        ++seen[static_cast<size_t>(output)];
        std::vector<std::pair<int64_t, int64_t>> expected, got;  // tap, input
        for (int64_t t = 0; t < axis.kernel; ++t) {
          int64_t at = axis.stride * output + axis.dilation * t - axis.pad_begin;
          if (transposed) {
            const int64_t scaled = output + axis.pad_begin - axis.dilation * t;
            at = scaled >= 0 && scaled % axis.stride == 0 ? scaled / axis.stride : -1;
          }
          if (at >= 0 && at < axis.in) expected.emplace_back(t, at);
        }
        for (int64_t t = 0; t < c.taps; ++t)
          got.emplace_back(c.tap + t * c.tap_step, c.InputOf(output) + t * c.in_tap_step);
        ASSERT_EQ(got, expected) << "output " << output << " round " << round;
      }
    }
    for (int count : seen) ASSERT_EQ(count, 1);
  }
}

// ---- convolutions -------------------------------------------------------------------------------

struct ConvSpec {
  bool transposed = false;
  int64_t batch = 1, groups = 1, inputs = 1, outputs = 1;  // of a group
  std::vector<int64_t> in, kernel, strides, dilations, pads;
  bool bias = false, residual = false;
  std::string activation = {};
};

ConvSpec RandomConv(std::mt19937* random) {
  ConvSpec s;
  const auto rank = static_cast<size_t>(Pick(random, 1, 3));
  s.transposed = (*random)() % 4 == 0;
  s.batch = Pick(random, 1, 2);
  const int kind = static_cast<int>((*random)() % 4);
  s.groups = kind == 0 ? Pick(random, 2, 40) : kind == 1 ? Pick(random, 2, 4) : 1;
  s.inputs = kind == 0 ? 1 : Pick(random, 1, 20);
  s.outputs = kind == 0 ? 1 : Pick(random, 1, 70);
  for (size_t i = 0; i < rank; ++i) {
    s.kernel.push_back(Pick(random, 1, 4));
    s.strides.push_back(Pick(random, 1, 3));
    s.dilations.push_back(Pick(random, 1, 3));
    s.in.push_back(Pick(random, 1, rank == 3 ? 5 : 18));
    s.pads.push_back(Pick(random, 0, 3));
  }
  for (size_t i = 0; i < rank; ++i) s.pads.push_back(Pick(random, 0, 3));
  s.bias = (*random)() % 2 == 0;
  s.residual = !s.transposed && (*random)() % 2 == 0;
  constexpr const char* kActivations[] = {"", "Relu", "Clip", "LeakyRelu"};
  if (!s.transposed) s.activation = kActivations[(*random)() % 4];
  return s;
}

// Null if the windows do not fit.
std::unique_ptr<OneNode> NodeOf(const ConvSpec& s, uint32_t seed) {
  const auto with = [](std::vector<int64_t> head, const std::vector<int64_t>& tail) {
    head.insert(head.end(), tail.begin(), tail.end());
    return Dims(head);
  };
  const int64_t channels = s.groups * s.inputs, outputs = s.groups * s.outputs;
  std::vector<std::optional<ConstTensor>> inputs{
      RandomFloats(with({s.batch, channels}, s.in), seed),
      RandomFloats(s.transposed ? with({channels, s.outputs}, s.kernel)
                                : with({outputs, s.inputs}, s.kernel),
                   seed + 1)};
  inputs.push_back(s.bias ? std::optional(RandomFloats({outputs}, seed + 2)) : std::nullopt);
  AttrList attrs{
      {"strides", s.strides}, {"dilations", s.dilations}, {"pads", s.pads}, {"group", s.groups}};
  const bool fused = !s.transposed && (s.residual || !s.activation.empty());
  if (fused && !s.activation.empty()) {
    attrs.Set("activation", s.activation);
    attrs.Set("activation_alpha", s.activation == "Clip" ? -0.25 : 0.125);
    attrs.Set("activation_beta", 0.75);
  }
  const char* op = s.transposed ? "ConvTranspose" : fused ? "FusedConv" : "Conv";
  const auto make = [&] {
    std::vector<bool> constant{false, true, true, false};
    constant.resize(inputs.size());
    return std::make_unique<OneNode>(fused ? "msrt" : "", op, attrs, inputs, constant);
  };
  auto node = make();
  if (!node->ok()) return nullptr;
  if (s.residual) {
    inputs.push_back(RandomFloats(node->op().output(0).dims, seed + 3));
    node = make();
  }
  return node;
}

// One element, by the rule; `chain` adds one term to a sum.
template <typename T, typename Chain>
T Element(const ConvSpec& s, const OneNode& node, int64_t n, int64_t m,
          const std::vector<int64_t>& at, T sum, Chain chain) {
  const auto &x = *node.inputs()[0], &w = *node.inputs()[1];
  const int64_t group = m / s.outputs;
  int64_t taps = 1;
  for (int64_t k : s.kernel) taps *= k;
  for (int64_t tap = 0; tap < taps; ++tap) {
    int64_t rest = tap, pixel = 0, step = 1;
    bool inside = true;
    for (size_t i = s.kernel.size(); i-- > 0;) {
      const int64_t t = rest % s.kernel[i];
      rest /= s.kernel[i];
      int64_t p = at[i] * s.strides[i] + t * s.dilations[i] - s.pads[i];
      if (s.transposed) {
        const int64_t scaled = at[i] + s.pads[i] - t * s.dilations[i];
        p = scaled >= 0 && scaled % s.strides[i] == 0 ? scaled / s.strides[i] : -1;
      }
      inside = inside && p >= 0 && p < s.in[i];
      pixel += p * step;
      step *= s.in[i];
    }
    for (int64_t c = 0; inside && c < s.inputs; ++c) {
      const int64_t channel = group * s.inputs + c;
      const int64_t weight = s.transposed ? (channel * s.outputs + m % s.outputs) * taps + tap
                                          : (m * s.inputs + c) * taps + tap;
      const int64_t input = (n * s.groups * s.inputs + channel) * step + pixel;
      sum = chain(x.As<float>()[static_cast<size_t>(input)],
                  w.As<float>()[static_cast<size_t>(weight)], sum);
    }
  }
  return sum;
}

float Activated(const ConvSpec& s, float x) {
  if (s.activation == "Relu") return x < 0 ? 0 : x;
  if (s.activation == "Clip") return x < -0.25f ? -0.25f : x > 0.75f ? 0.75f : x;
  if (s.activation == "LeakyRelu") return x < 0 ? 0.125f * x : x;
  return x;
}

void CheckConv(const sdk::Delegate& delegate, const ConvSpec& s, const OneNode& node) {
  sdk::QueryResult query;
  delegate.Query(node, &query);
  const auto c = std::find_if(query.candidates.begin(), query.candidates.end(),
                              [](const auto& o) { return o.arithmetic == MSRT_ARITHMETIC_FMA; });
  ASSERT_NE(c, query.candidates.end());
  auto kernel = testing::CompileNode(delegate, node, *c);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  auto bound = (*kernel)->Bind(node.op());
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  auto got = testing::RunBound(**bound, node, *c);
  ASSERT_TRUE(got.ok()) << got.status().message();
  const Dims& y = node.op().output(0).dims;
  for (int64_t i = 0; i < y.elements(); ++i) {
    int64_t rest = i;
    std::vector<int64_t> at(s.kernel.size());
    for (size_t d = at.size(); d-- > 0;) {
      at[d] = rest % y[static_cast<int>(d) + 2];
      rest /= y[static_cast<int>(d) + 2];
    }
    const int64_t m = rest % y[1], n = rest / y[1];
    const float bias = s.bias ? node.inputs()[2]->As<float>()[static_cast<size_t>(m)] : 0;
    const float residual = s.residual ? node.inputs()[3]->As<float>()[static_cast<size_t>(i)] : 0;
    float sum = Element(s, node, n, m, at, bias,
                        [](float a, float b, float before) { return std::fma(a, b, before); });
    if (s.residual) sum += residual;
    const float expected = Activated(s, sum), value = (*got)[0].As<float>()[static_cast<size_t>(i)];
    ASSERT_TRUE(SameBits(value, expected))
        << "element " << i << ": " << value << " and " << expected;
    double magnitude = std::abs(bias) + std::abs(residual);
    const double exact = Element(s, node, n, m, at, static_cast<double>(bias) + residual,
                                 [&](double a, double b, double before) {
                                   magnitude += std::abs(a * b);
                                   return before + a * b;
                                 });
    ASSERT_NEAR(sum, exact, 1e-6 * magnitude) << "element " << i;
  }
}

TEST(Chains, ConvolutionsFollowTheRule) {
  const auto delegate = MakeCpuDelegate();
  std::mt19937 random(3);
  int checked = 0;
  for (uint32_t round = 0; round < 300; ++round) {
    const ConvSpec s = RandomConv(&random);
    const auto node = NodeOf(s, 10 * round);
    if (node == nullptr || node->op().output(0).elements() > 20000) continue;
    SCOPED_TRACE(StrCat("round ", round, ": ", node->op().op(), " ", node->op().input(0).dims, " ",
                        node->op().input(1).dims));
    CheckConv(*delegate, s, *node);
    if (HasFatalFailure()) return;
    ++checked;
  }
  EXPECT_GT(checked, 150);
}

// Chains in several parts, several panels and blocks.
TEST(Chains, LongChainsFollowTheRule) {
  const auto delegate = MakeCpuDelegate();
  ConvSpec s{.inputs = 150,
             .outputs = 70,
             .in = {9, 13},
             .kernel = {3, 3},
             .strides = {1, 1},
             .dilations = {1, 1},
             .pads = {1, 1, 1, 1},
             .bias = true,
             .residual = true,
             .activation = "Relu"};
  CheckConv(*delegate, s, *NodeOf(s, 1));
  s.dilations = {5, 6}, s.pads = {5, 6, 5, 6};
  CheckConv(*delegate, s, *NodeOf(s, 2));
  ConvSpec pointwise{.batch = 2,
                     .inputs = 40,
                     .outputs = 35,
                     .in = {40, 31},
                     .kernel = {1, 1},
                     .strides = {1, 1},
                     .dilations = {1, 1},
                     .pads = {0, 0, 0, 0}};
  CheckConv(*delegate, pointwise, *NodeOf(pointwise, 3));
}

// ---- products -----------------------------------------------------------------------------------

struct ProductSpec {
  std::string op = "MatMul";
  Dims a, b;
  bool trans_a = false, trans_b = false;
  double alpha = 1, beta = 1;
  Dims c = {};  // of the bias, where `has_c` is set
  bool has_c = false, has_z = false, constant = false;
  std::string activation = {};
};

void CheckProduct(const sdk::Delegate& delegate, const ProductSpec& s, uint32_t seed) {
  std::vector<std::optional<ConstTensor>> inputs{RandomFloats(s.a, seed),
                                                 RandomFloats(s.b, seed + 1)};
  AttrList attrs;
  if (s.op != "MatMul") {
    attrs.Set("transA", int64_t{s.trans_a});
    attrs.Set("transB", int64_t{s.trans_b});
    attrs.Set("alpha", s.alpha);
  }
  if (s.op == "Gemm") attrs.Set("beta", s.beta);
  if (s.op == "FusedMatMul") attrs.Set("activation", s.activation);
  if (s.op != "MatMul")
    inputs.push_back(s.has_c ? std::optional(RandomFloats(s.c, seed + 2)) : std::nullopt);
  const auto make = [&] {
    std::vector<bool> constant(inputs.size());
    constant[1] = s.constant;
    return std::make_unique<OneNode>(s.op == "FusedMatMul" ? "msrt" : "", s.op, attrs, inputs,
                                     constant);
  };
  auto node = make();
  ASSERT_TRUE(node->ok()) << node->status().message();
  if (s.has_z) inputs.push_back(RandomFloats(node->op().output(0).dims, seed + 3)), node = make();
  sdk::QueryResult query;
  delegate.Query(*node, &query);
  ASSERT_EQ(query.candidates.size(), 1u);
  ASSERT_EQ(query.candidates[0].arithmetic, MSRT_ARITHMETIC_FMA);
  auto kernel = testing::CompileNode(delegate, *node, query.candidates[0]);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  auto bound = (*kernel)->Bind(node->op());
  ASSERT_TRUE(bound.ok());
  auto got = testing::RunBound(**bound, *node, query.candidates[0]);
  ASSERT_TRUE(got.ok()) << got.status().message();

  const Dims out = node->op().output(0).dims;
  // With dims of 1 for vectors: batch..., rows, columns.
  Dims a = s.a, b = s.b, full = out;
  if (a.rank() == 1) a.insert(0, 1);
  if (b.rank() == 1) b.push_back(1);
  if (s.a.rank() == 1) full.insert(s.b.rank() == 1 ? full.rank() : full.rank() - 1, 1);
  if (s.b.rank() == 1) full.push_back(1);
  const int rank = full.rank();
  const int64_t rows = full[rank - 2], columns = full[rank - 1],
                depth = s.trans_a ? a[a.rank() - 2] : a[a.rank() - 1];
  const auto matrix_of = [&](int64_t batch, const Dims& dims) {
    int64_t matrix = 0, step = 1;
    for (int i = rank - 3, o = dims.rank() - 3; i >= 0; --i, --o) {
      if (o >= 0 && dims[o] != 1) matrix += batch % full[i] * step;
      if (o >= 0) step *= dims[o];
      batch /= full[i];
    }
    return matrix;
  };
  const auto at = [](const ConstTensor& t, int64_t i) {
    return t.As<float>()[static_cast<size_t>(i)];
  };
  for (int64_t i = 0; i < out.elements(); ++i) {
    const int64_t column = i % columns, row = i / columns % rows, batch = i / columns / rows;
    const int64_t first_a = matrix_of(batch, a) * rows * depth,
                  first_b = matrix_of(batch, b) * columns * depth;
    float sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
      sum = std::fma(
          at(*inputs[0], first_a + (s.trans_a ? k * rows + row : row * depth + k)),
          at(*inputs[1], first_b + (s.trans_b ? column * depth + k : k * columns + column)), sum);
    }
    sum *= static_cast<float>(s.alpha);
    if (s.has_c && s.beta != 0) {
      int64_t rest = i, offset = 0, step = 1;
      for (int d = out.rank() - 1, o = s.c.rank() - 1; d >= 0; --d, --o) {
        if (o >= 0 && s.c[o] != 1) offset += rest % out[d] * step;
        if (o >= 0) step *= s.c[o];
        rest /= out[d];
      }
      volatile float scaled = at(*inputs[2], offset) * static_cast<float>(s.beta);
      sum += scaled;
    }
    if (s.has_z) sum += at(*inputs.back(), i);
    if (s.activation == "Relu" && sum < 0) sum = 0;
    ASSERT_TRUE(SameBits(at((*got)[0], i), sum))
        << "element " << i << ": " << at((*got)[0], i) << " and " << sum;
  }
}

TEST(Chains, ProductsFollowTheRule) {
  const auto delegate = MakeCpuDelegate();
  const ProductSpec cases[] = {
      {.a = {5, 7}, .b = {7, 3}},
      {.a = {33, 130}, .b = {130, 75}, .constant = true},
      {.a = {3, 2500}, .b = {2500, 40}, .constant = true},
      {.a = {1, 64}, .b = {64, 1000}},
      {.a = {64}, .b = {64, 50}},
      {.a = {6, 64}, .b = {64}},
      {.a = {64}, .b = {64}},
      {.a = {2, 3, 9, 8}, .b = {3, 8, 5}},
      {.a = {3, 9, 8}, .b = {2, 1, 8, 40}, .constant = true},
      {.a = {4, 6, 10}, .b = {10, 33}},
      {.a = {1, 6, 10}, .b = {4, 10, 33}},
      {.op = "Gemm", .a = {70, 9}, .b = {9, 33}, .c = {33}, .has_c = true},
      {.op = "Gemm",
       .a = {9, 70},
       .b = {33, 9},
       .trans_a = true,
       .trans_b = true,
       .alpha = 0.3,
       .beta = 0.7,
       .c = {70, 1},
       .has_c = true},
      {.op = "Gemm",
       .a = {9, 70},
       .b = {70, 33},
       .beta = 0.7,
       .c = {9, 33},
       .has_c = true,
       .constant = true},
      {.op = "Gemm",
       .a = {9, 70},
       .b = {33, 70},
       .trans_b = true,
       .alpha = 2.5,
       .beta = 0,
       .c = {33},
       .has_c = true,
       .constant = true},
      {.op = "Gemm", .a = {9, 70}, .b = {70, 33}, .c = {1}, .has_c = true},
      {.op = "Gemm", .a = {1000, 70}, .b = {70, 1}, .beta = 0.4, .c = {1000, 1}, .has_c = true},
      {.op = "FusedMatMul",
       .a = {2, 9, 20},
       .b = {20, 40},
       .c = {40},
       .has_c = true,
       .has_z = true,
       .constant = true,
       .activation = "Relu"},
      {.op = "FusedMatMul",
       .a = {2, 20, 9},
       .b = {2, 40, 20},
       .trans_a = true,
       .trans_b = true,
       .alpha = 0.125,
       .c = {2, 1, 40},
       .has_c = true,
       .has_z = true,
       .activation = "Relu"},
      {.op = "FusedMatMul",
       .a = {700, 20},
       .b = {20, 40},
       .alpha = 0.1,
       .c = {700, 1},
       .has_c = true},
  };
  uint32_t seed = 1;
  for (const ProductSpec& s : cases) {
    SCOPED_TRACE(StrCat(s.op, " ", s.a, " ", s.b));
    CheckProduct(*delegate, s, seed += 10);
  }
}

}  // namespace
}  // namespace msrt::cpu

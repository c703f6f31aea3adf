// 3x3 convolutions with stride 1 in channels-last, by Winograd's F(4x4, 3x3): a quarter of the
// multiplications, for transforms that pass over memory once. A strip of tiles is transformed,
// multiplied at each of the 36 points, and transformed back while it is in the cache.
//
// An infinite or NaN input would spread over its tile, where a direct sum keeps it within its
// window: results that are not finite are computed again by direct sums.
//
// The arithmetic is MSRT_ARITHMETIC_WINOGRAD4. Products are chains along the input channels, so the
// bits of a result depend only on its tile; the granule of the candidate keeps the tiles of a piece
// on those of the whole.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/abi/msrt_plugin.h"
#include "delegates/cpu/chains.h"
#include "delegates/cpu/rule.h"
#include "delegates/sdk/packed_form.h"
#include "ops/window.h"

namespace msrt::cpu {
namespace {

using sdk::CompileContext;
using sdk::Kernel;

constexpr size_t kX = 0, kW = 1, kB = 2, kZ = 3;
// Below, the transforms cost more than the multiplications saved. The channels are part of the
// arithmetic's rule, which depends on nothing that a piece or a machine could change.
constexpr int64_t kMinChannels = 32;
// Below, the larger weights cost more than the multiplications saved.
constexpr double kMinFlops = 0.1e9;

bool AllAre(std::span<const int64_t> list, int64_t value) {
  return std::all_of(list.begin(), list.end(), [&](int64_t v) { return v == value; });
}

int64_t Padded(int64_t channels) {
  const int64_t panel = LoopsHere().chain_panel;
  return (channels + panel - 1) / panel * panel;
}
size_t PackedFloats(int64_t inputs, int64_t outputs) {
  return static_cast<size_t>(kWinogradPoints * inputs * Padded(outputs));
}

double Seconds(const NodeInfo& node) {
  const OpView& op = *node.typical;
  const Dims &x = op.input(kX).dims, &y = op.output(0).dims;
  const auto tiles = static_cast<double>(x[0] * ((y[2] + 3) / 4) * ((y[3] + 3) / 4));
  const auto inputs = static_cast<double>(x[1]), outputs = static_cast<double>(Padded(y[1]));
  // Efficiency of the products, measured. Fused multiply-adds are slow without an instruction.
  const double efficiency = std::string_view(LoopsHere().name) == "baseline" ? 0.01 : 0.72;
  constexpr double kCacheSpeed = 3;  // of the second-level cache, in times of the memory's
  const double products = 2 * kWinogradPoints * tiles * inputs * outputs;
  const double bytes =
      4 * kWinogradPoints * (2 * tiles * (inputs + outputs) / kCacheSpeed + inputs * outputs);
  const double passes = PassSeconds(node, static_cast<double>(op.output(0).elements()),
                                    ActivationNanoseconds(op), node.bytes + bytes);
  // Weights that are no constants are parameters, which may change with every run.
  constexpr double kPackNanoseconds = 60;
  const double pack = node.op->constant(kW) == nullptr
                          ? PassSeconds(node, inputs * outputs, kPackNanoseconds, 0)
                          : 0;
  const double seconds = passes + pack + products / (node.machine.flops_per_second * efficiency);
  // Outside exact mode such a node runs by direct sums.
  const auto direct = [&] { return ChainSeconds(node, ChainEfficiency(9 * x[1], y[1])); };
  return node.flops < kMinFlops ? std::max(seconds, 2 * direct()) : seconds;
}

std::string QueryWinograd(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.input(kX).dtype != DType::kF32) return StrCat("elements of type ", op.input(kX).dtype);
  const bool parameter = node.parameters[kW] != 0 && op.input(kW).concrete();
  if ((op.constant(kW) == nullptr && !parameter) || op.input(kX).rank() != 4)
    return "computed weights, or other than two spatial axes";
  const Dims& w = op.input(kW).dims;
  if (w[2] != 3 || w[3] != 3 || op.Int("group") != 1 || !AllAre(op.Ints("strides"), 1) ||
      !AllAre(op.Ints("dilations"), 1))
    return "a window other than 3x3 with stride 1, without groups";
  if (w[0] < kMinChannels || w[1] < kMinChannels)
    return "too few channels for Winograd's transforms";
  if (op.constant(kX) != nullptr || (op.has_input(kZ) && op.constant(kZ) != nullptr))
    return "a constant operand";
  Candidate c = PlainCandidate(node, Seconds(node), "Winograd 4x4");
  c.input_layouts[kX] = c.output_layouts[0] = Layout::kChannelsLast;
  if (op.has_input(kZ)) c.input_layouts[kZ] = Layout::kChannelsLast;
  c.granule = {1, 1, kWinogradOutput, kWinogradOutput};
  // The first name of this delegate in alphabetical order is used; chains come later.
  c.arithmetic =
      RoundsOnce(op) ? MSRT_ARITHMETIC_WINOGRAD4 : StrCat(ArithmeticOfLoops(), " Winograd 4x4");
  candidates->push_back(std::move(c));
  return {};
}

constexpr int64_t kMaxPanel = 64;

// The weights of one input channel and `panel` output channels at the 36 points. `w` has kMaxPanel
// numbers for each of 9 taps, `u` has `step` numbers for each point.
void PointsOfWeights(const double* w, int64_t panel, float* u, int64_t step) {
  const double a = std::sqrt(0.5), b = std::sqrt(2.0);
  const double g[6][3] = {{1, 0, 0},
                          {-1 / 1.5, -a / 1.5, -0.5 / 1.5},
                          {-1 / 1.5, a / 1.5, -0.5 / 1.5},
                          {1 / 6.0, b / 6, 2 / 6.0},
                          {1 / 6.0, -b / 6, 2 / 6.0},
                          {0, 0, 1}};
  double rows[3][kMaxPanel];
  for (int i = 0; i < 6; ++i) {
    for (int k = 0; k < 3; ++k) {
      const double *w0 = w + k * kMaxPanel, *w1 = w0 + 3 * kMaxPanel, *w2 = w1 + 3 * kMaxPanel;
      for (int64_t o = 0; o < panel; ++o)
        rows[k][o] = g[i][0] * w0[o] + g[i][1] * w1[o] + g[i][2] * w2[o];
    }
    for (int j = 0; j < 6; ++j) {
      float* const to = u + (6 * i + j) * step;
      for (int64_t o = 0; o < panel; ++o) {
        to[o] =
            static_cast<float>(rows[0][o] * g[j][0] + rows[1][o] * g[j][1] + rows[2][o] * g[j][2]);
      }
    }
  }
}

// For each point panels of output channels, each with a row for every input channel.
Status PackWeights(const float* from, const Dims& dims, ParallelFor& parallel, float* packed) {
  const int64_t outputs = dims[0], inputs = dims[1], panel = LoopsHere().chain_panel;
  const int64_t padded = Padded(outputs);
  return ParallelRanges(parallel, padded / panel, 1, [&](int64_t begin, int64_t end) {
    double w[9 * kMaxPanel] = {};
    for (int64_t p = begin; p < end; ++p) {
      const int64_t used = std::min(panel, outputs - p * panel);
      if (used < panel) std::fill(std::begin(w), std::end(w), 0.0);
      for (int64_t i = 0; i < inputs; ++i) {
        for (int64_t o = 0; o < used; ++o) {
          const float* taps = from + ((p * panel + o) * inputs + i) * 9;
          for (int64_t k = 0; k < 9; ++k) w[k * kMaxPanel + o] = static_cast<double>(taps[k]);
        }
        PointsOfWeights(w, panel, packed + (p * inputs + i) * panel, padded * inputs);
      }
    }
  });
}

sdk::Packing PackingHere() {
  const Loops& loops = LoopsHere();
  return {"winograd4", loops.name, static_cast<uint32_t>(loops.chain_panel), 2};
}

class BoundWinograd final : public BoundKernel {
 public:
  // `constant`: the packed weights; null: they are a parameter, or a piece has a part of them.
  BoundWinograd(const OpView& op, const Windows& windows, const float* constant)
      : finish_(op),
        partial_(op.Int("partial") != 0),
        constant_(constant),
        packing_(PackingHere()),
        w_(op.input(kW).dims),
        x_(op.input(kX).dims),
        y_(op.output(0).dims),
        top_(windows.axis[0].pad_begin),
        left_(windows.axis[1].pad_begin),
        tile_columns_((y_[3] + kWinogradOutput - 1) / kWinogradOutput),
        tiles_((y_[2] + kWinogradOutput - 1) / kWinogradOutput * tile_columns_),
        padded_(Padded(y_[1])) {}

  Status Run(const RunArgs& args) override {
    if (args.outputs[0].elements() == 0) return OkStatus();
    Tensors t{args.inputs[kX].As<float>(), args.inputs[kW].As<float>(),
              partial_ ? nullptr : Optional(args, kB), partial_ ? nullptr : Optional(args, kZ),
              args.outputs[0].As<float>()};
    MSRT_ASSIGN_OR_RETURN(t.points, PackedWeights(args));
    const int64_t threads = args.parallel.threads();
    // A strip for each thread where there are enough tiles, else one that all of them share.
    const int64_t per_tile = kWinogradPoints * (x_[1] + padded_);
    const int64_t fitting = std::max<int64_t>(kMinStrip, kCacheFloats / per_tile / 12 * 12);
    const bool apart = threads > 1 && tiles_ * x_[0] >= 2 * threads * fitting;
    const int64_t strip = std::min(fitting, tiles_);
    const int64_t strips = (tiles_ + strip - 1) / strip, workers = apart ? threads : 1;
    const size_t bytes = static_cast<size_t>(workers * strip * per_tile) * sizeof(float);
    MSRT_ASSIGN_OR_RETURN(void* memory, args.scratch.Get(bytes + PaddingBytes()));
    auto* zeros = static_cast<float*>(memory);  // the pixels outside the image
    std::fill_n(zeros, x_[1], 0.0f);
    float* scratch = zeros + PaddingBytes() / sizeof(float);
    std::atomic<int64_t> next{0};
    const auto run = [&](int64_t index, ParallelFor& parallel, float* own) -> Status {
      const int64_t image = index / strips, first = index % strips * strip;
      return RunStrip(t.At(*this, image), first, std::min(first + strip, tiles_), zeros, own,
                      parallel);
    };
    if (apart) {
      const std::unique_ptr<ParallelFor> alone = MakeSerial();
      std::atomic<bool> failed{false};
      MSRT_RETURN_IF_ERROR(args.parallel.Run(workers, [&](int64_t worker) {
        for (int64_t i; (i = next.fetch_add(1)) < x_[0] * strips;) {
          if (!run(i, *alone, scratch + worker * strip * per_tile).ok()) failed = true;
        }
      }));
      if (failed) return InternalError("cpu: a strip of a convolution failed");
    } else {
      for (int64_t i = 0; i < x_[0] * strips; ++i)
        MSRT_RETURN_IF_ERROR(run(i, args.parallel, scratch));
    }
    return OkStatus();
  }

 private:
  static constexpr int64_t kMinStrip = 48, kCacheFloats = 200'000;

  struct Tensors {
    const float *x, *weights, *bias, *residual;
    float* y;
    const float* points = nullptr;  // the weights, packed
    Tensors At(const BoundWinograd& k, int64_t image) const {
      const int64_t in = image * k.x_.product(1, 4), out = image * k.y_.product(1, 4);
      return {x + in,  weights, bias, residual == nullptr ? nullptr : residual + out,
              y + out, points};
    }
  };
  static const float* Optional(const RunArgs& args, size_t i) {
    return i < args.inputs.size() && args.inputs[i].present() ? args.inputs[i].As<float>()
                                                              : nullptr;
  }
  Result<const float*> PackedWeights(const RunArgs& args) const {
    if (constant_ != nullptr) return constant_;
    const size_t bytes = PackedFloats(w_[1], w_[0]) * sizeof(float);
    MSRT_ASSIGN_OR_RETURN(const void* packed,
                          args.forms.Get(kW, packing_, bytes, [&](std::byte* to) {
                            return PackWeights(args.inputs[kW].As<float>(), w_, args.parallel,
                                               reinterpret_cast<float*>(to));
                          }));
    return static_cast<const float*>(packed);
  }
  size_t PaddingBytes() const {
    return (static_cast<size_t>(x_[1]) * sizeof(float) + kTensorAlignment - 1) / kTensorAlignment *
           kTensorAlignment;
  }

  Status RunStrip(const Tensors& t, int64_t begin, int64_t end, const float* zeros, float* scratch,
                  ParallelFor& parallel) const {
    const int64_t tiles = end - begin, inputs = x_[1];
    float* in = scratch;                                      // [point][tile][input channel]
    float* out = scratch + kWinogradPoints * tiles * inputs;  // [point][tile][output channel]
    const Loops& loops = LoopsHere();
    MSRT_RETURN_IF_ERROR(ParallelRanges(parallel, tiles, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        TransformInput(t, begin + i, zeros, in + i * inputs, tiles * inputs);
    }));
    const int64_t panel = loops.chain_panel, panels = padded_ / panel;
    MSRT_RETURN_IF_ERROR(
        ParallelRanges(parallel, kWinogradPoints * panels, 1, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) {
            const int64_t point = i / panels, column = i % panels * panel;
            Multiply(in + point * tiles * inputs, t.points + i * inputs * panel, tiles,
                     out + point * tiles * padded_ + column);
          }
        }));
    return ParallelRanges(parallel, tiles, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        TransformOutput(t, begin + i, out + i * padded_, tiles * padded_);
    });
  }

  // The products of `tiles` tiles at one point with a panel of weights.
  void Multiply(const float* in, const float* panel, int64_t tiles, float* out) const {
    const ChainRun all{0, 0, x_[1]};
    LoopsHere().chains({.x = in,
                        .x_step = x_[1],
                        .w = panel,
                        .runs = &all,
                        .run_count = 1,
                        .y = out,
                        .y_step = padded_,
                        .rows = tiles,
                        .columns = LoopsHere().chain_panel,
                        .begins = true,
                        .start = nullptr,
                        .ends = false,
                        .addend = nullptr,
                        .residual = nullptr,
                        .residual_step = 0,
                        .low = 0,
                        .high = 0});
  }

  void TransformInput(const Tensors& t, int64_t tile, const float* zeros, float* to,
                      int64_t step) const {
    WinogradInput w{.pixels = {}, .channels = x_[1], .to = to, .step = step};
    const int64_t row = tile / tile_columns_ * kWinogradOutput - top_,
                  column = tile % tile_columns_ * kWinogradOutput - left_;
    for (int64_t i = 0; i < kWinogradInput; ++i) {
      for (int64_t j = 0; j < kWinogradInput; ++j) {
        const int64_t h = row + i, c = column + j;
        const bool inside = h >= 0 && h < x_[2] && c >= 0 && c < x_[3];
        w.pixels[i * kWinogradInput + j] = inside ? t.x + (h * x_[3] + c) * x_[1] : zeros;
      }
    }
    LoopsHere().winograd_input(w);
  }

  void TransformOutput(const Tensors& t, int64_t tile, const float* from, int64_t step) const {
    WinogradOutput w{.from = from,
                     .step = step,
                     .channels = y_[1],
                     .bias = t.bias,
                     .pixels = {},
                     .residuals = {},
                     .low = finish_.low,
                     .high = finish_.high};
    const int64_t row = tile / tile_columns_ * kWinogradOutput,
                  column = tile % tile_columns_ * kWinogradOutput;
    for (int64_t i = 0; i < kWinogradOutput; ++i) {
      for (int64_t j = 0; j < kWinogradOutput; ++j) {
        if (row + i >= y_[2] || column + j >= y_[3]) continue;
        const int64_t at = ((row + i) * y_[3] + column + j) * y_[1];
        w.pixels[i * kWinogradOutput + j] = t.y + at;
        w.residuals[i * kWinogradOutput + j] = t.residual == nullptr ? nullptr : t.residual + at;
      }
    }
    if (!LoopsHere().winograd_output(w)) {
      // Bounds may hide which results are not finite.
      w.low = -kInfinity, w.high = kInfinity;
      LoopsHere().winograd_output(w);
      for (int64_t i = 0; i < std::ssize(w.pixels); ++i) {
        if (w.pixels[i] != nullptr)
          RunDirectly(t, row + i / kWinogradOutput, column + i % kWinogradOutput);
      }
    }
    for (float* pixel : w.pixels) {
      if (pixel != nullptr) finish_.Apply(pixel, 1, 0, y_[1]);
    }
  }

  // Computes the results of a pixel that are not finite by direct sums.
  void RunDirectly(const Tensors& t, int64_t row, int64_t column) const {
    const int64_t at = (row * y_[3] + column) * y_[1];
    WinogradDirect w{.taps = {},
                     .weights = t.weights,
                     .inputs = x_[1],
                     .bias = t.bias,
                     .residual = t.residual == nullptr ? nullptr : t.residual + at,
                     .y = t.y + at,
                     .channels = y_[1]};
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t h = row - top_ + tap / 3, c = column - left_ + tap % 3;
      const bool inside = h >= 0 && h < x_[2] && c >= 0 && c < x_[3];
      w.taps[tap] = inside ? t.x + (h * x_[3] + c) * x_[1] : nullptr;
    }
    LoopsHere().winograd_direct(w);
    for (int64_t o = 0; o < y_[1]; ++o) w.y[o] = Bounded(w.y[o]);
  }
  // Keeps NaN.
  float Bounded(float v) const {
    v = v < finish_.low ? finish_.low : v;
    return v > finish_.high ? finish_.high : v;
  }

  static constexpr float kInfinity = std::numeric_limits<float>::infinity();

  const ChainFinish finish_;
  const bool partial_;  // a later part of a sum: without bias and residual
  const float* constant_;
  const sdk::Packing packing_;
  const Dims w_, x_, y_;
  const int64_t top_, left_, tile_columns_, tiles_, padded_;
};

class WinogradKernel final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> Make(const NodeInfo& node, const CompileContext& context) {
    auto kernel = std::make_unique<WinogradKernel>();
    kernel->dims_ = node.op->input(kW).dims;
    const ConstTensor* w = node.op->constant(kW);
    if (w == nullptr) return std::unique_ptr<Kernel>(std::move(kernel));
    MSRT_ASSIGN_OR_RETURN(
        kernel->packed_, sdk::PackedForm::Make(context, w->bytes.data(), PackingHere(),
                                               PackedFloats(w->dims[1], w->dims[0]) * sizeof(float),
                                               [&](std::byte* to) {
                                                 return PackWeights(w->As<float>().data(), w->dims,
                                                                    *context.parallel,
                                                                    reinterpret_cast<float*>(to));
                                               }));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Result<std::unique_ptr<BoundKernel>> Bind(const OpView& op) override {
    const Dims& w = op.input(kW).dims;
    MSRT_ASSIGN_OR_RETURN(const Windows windows,
                          WindowsOf(op, op.input(kX).dims, std::span<const int64_t>(w).subspan(2)));
    const bool whole = w == dims_;
    return std::unique_ptr<BoundKernel>(std::make_unique<BoundWinograd>(
        op, windows, whole ? reinterpret_cast<const float*>(packed_.data()) : nullptr));
  }
  size_t packed_bytes() const override { return packed_.own_bytes(); }

 private:
  sdk::PackedForm packed_;  // of a constant
  Dims dims_;               // of the weights
};

constexpr Rule kWinogradRules[] = {
    {"", "Conv", QueryWinograd, nullptr, WinogradKernel::Make},
    {"msrt", "FusedConv", QueryWinograd, nullptr, WinogradKernel::Make}};

}  // namespace

std::span<const Rule> WinogradRules() { return kWinogradRules; }

}  // namespace msrt::cpu

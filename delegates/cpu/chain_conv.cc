// Convolutions and transposed convolutions in channels-last, each result one chain of fused
// multiply-adds (MSRT_ARITHMETIC_FMA). A task is a block of pixels with a panel of output channels;
// chains that are too long for the cache pass their sums on in the output.
#include <algorithm>

#include "core/abi/msrt_plugin.h"
#include "delegates/cpu/chain_taps.h"
#include "delegates/cpu/chains.h"
#include "delegates/cpu/rule.h"
#include "delegates/sdk/packed_form.h"
#include "ops/conv.h"

namespace msrt::cpu {
namespace {

using sdk::CompileContext;
using sdk::Kernel;

constexpr size_t kX = 0, kW = 1, kB = 2, kZ = 3;

bool IsTransposed(const OpView& op) { return op.op() == "ConvTranspose"; }

int64_t TapsIn(const Dims& w) { return w.product(2, w.rank()); }

// Output channels of one group that are computed together.
struct Panel {
  int64_t group, first, columns;
};
std::vector<Panel> PanelsOf(const ConvChannels& c) {
  const int64_t width = LoopsHere().chain_panel;
  std::vector<Panel> panels;
  for (int64_t g = 0; g < c.groups; ++g) {
    const int64_t end = std::min(c.outputs, (g + 1) * c.group_outputs - c.first_output);
    for (int64_t m = std::max<int64_t>(0, g * c.group_outputs - c.first_output); m < end;
         m += width)
      panels.push_back({g, m, std::min(width, end - m)});
  }
  return panels;
}

// Each channel has weights of its own: vectors go along the channels of all groups.
bool IsDepthwise(const ConvChannels& c) {
  return c.group_inputs == 1 && c.group_outputs == 1 && c.first_output == 0;
}

size_t PackedFloats(const ConvChannels& c, int64_t taps) {
  if (IsDepthwise(c)) return static_cast<size_t>(c.outputs * taps);
  return PanelsOf(c).size() * static_cast<size_t>(c.group_inputs * taps * LoopsHere().chain_panel);
}

// Weights of kernel position and input channel of output m.
class Weights {
 public:
  Weights(const float* data, int64_t taps, const ConvChannels& c, bool transposed)
      : data_(data), taps_(taps), channels_(c), transposed_(transposed) {}
  float At(int64_t m, int64_t tap, int64_t input) const {
    const ConvChannels& c = channels_;
    if (!transposed_) return data_[(m * c.group_inputs + input) * taps_ + tap];
    const int64_t group = c.group_of(m), output = m + c.first_output - group * c.group_outputs;
    return data_[((group * c.group_inputs + input) * c.group_outputs + output) * taps_ + tap];
  }

 private:
  const float* data_;
  const int64_t taps_;
  const ConvChannels& channels_;
  const bool transposed_;
};

// Panels, each with a row for every kernel position and input channel.
Status PackWeights(const float* w, int64_t taps, const ConvChannels& c, bool transposed,
                   ParallelFor& parallel, float* packed) {
  const Weights weights(w, taps, c, transposed);
  const int64_t width = LoopsHere().chain_panel;
  if (IsDepthwise(c)) {
    for (int64_t i = 0; i < taps * c.outputs; ++i)
      packed[i] = weights.At(i % c.outputs, i / c.outputs, 0);
    return OkStatus();
  }
  const std::vector<Panel> panels = PanelsOf(c);
  const int64_t rows = taps * c.group_inputs;
  return ParallelRanges(
      parallel, static_cast<int64_t>(panels.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          const Panel& panel = panels[static_cast<size_t>(p)];
          for (int64_t row = 0; row < rows; ++row) {
            float* to = packed + (p * rows + row) * width;
            for (int64_t j = 0; j < width; ++j) {
              to[j] = j < panel.columns
                          ? weights.At(panel.first + j, row / c.group_inputs, row % c.group_inputs)
                          : 0;
            }
          }
        }
      });
}

double Seconds(const NodeInfo& node, const ConvChannels& c, int64_t taps) {
  constexpr double kDepthwise = 0.1;  // of the machine's speed: bound by memory
  const double efficiency =
      IsDepthwise(c) ? kDepthwise : ChainEfficiency(c.group_inputs * taps, c.group_outputs);
  return ChainSeconds(node, efficiency);
}

std::string QueryConv(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.input(kX).dtype != DType::kF32) return StrCat("elements of type ", op.input(kX).dtype);
  const bool parameter = node.parameters[kW] != 0 && op.input(kW).concrete();
  if (op.constant(kW) == nullptr && !parameter) return "computed weights";
  if (op.constant(kX) != nullptr || (op.has_input(kZ) && op.constant(kZ) != nullptr))
    return "a constant operand";
  const Dims &x = node.typical->input(kX).dims, &w = op.input(kW).dims;
  if (w.elements() == 0 || x[1] == 0) return "weights without elements";
  const ConvChannels channels = ConvChannelsOf(*node.typical, x, w, IsTransposed(op));
  Candidate c = PlainCandidate(node, Seconds(node, channels, TapsIn(w)), "chains");
  c.input_layouts[kX] = c.output_layouts[0] = Layout::kChannelsLast;
  if (op.has_input(kZ)) c.input_layouts[kZ] = Layout::kChannelsLast;
  // Sums that are passed on in the output would overwrite the residual.
  if (op.has_input(kZ) && TapsIn(w) * channels.group_inputs <= kMaxChainTerms)
    c.in_place = {{static_cast<uint32_t>(kZ), 0u}};
  c.arithmetic = ChainArithmetic(op);
  candidates->push_back(std::move(c));
  return {};
}

sdk::Packing PackingOf(const ConvChannels& channels, bool transposed) {
  const Loops& loops = LoopsHere();
  return {StrCat(transposed ? "chains transposed " : "chains ", channels.group_inputs, "x",
                 channels.group_outputs, "+", channels.first_output),
          loops.name, static_cast<uint32_t>(loops.chain_panel), 1};
}

class BoundConv final : public BoundKernel {
 public:
  // `constant`: the packed weights; null: they are a parameter, or a piece has a part of them.
  BoundConv(const OpView& op, const Windows& windows, const float* constant)
      : finish_(op),
        channels_(ConvChannelsOf(op, op.input(kX).dims, op.input(kW).dims, IsTransposed(op))),
        panels_(PanelsOf(channels_)),
        constant_(constant),
        transposed_(IsTransposed(op)),
        packing_(PackingOf(channels_, transposed_)),
        weight_taps_(TapsIn(op.input(kW).dims)),
        images_(op.input(kX).dims[0]),
        inputs_(op.input(kX).dims[1]),
        first_part_(op.Int("partial") == 0) {
    for (size_t i = 0; i < kMaxSpace; ++i) axis_[i] = TapsOf(windows.axis[i], IsTransposed(op));
    if (axis_[0].IsIdentity() && axis_[1].IsIdentity() && axis_[2].IsIdentity()) JoinAxes();
    const int64_t floats = std::max<int64_t>(1, inputs_);
    const int64_t pixels = std::clamp<int64_t>(kBlockFloats / floats, kMinPixels, kMaxPixels);
    block_columns_ = std::min(axis_[2].out, pixels);
    block_rows_ = std::max<int64_t>(1, pixels / std::max<int64_t>(1, axis_[2].out));
  }

  Status Run(const RunArgs& args) override {
    if (args.outputs[0].elements() == 0) return OkStatus();
    MSRT_ASSIGN_OR_RETURN(const float* const weights, PackedWeights(args));
    Tensors t{args.inputs[kX].As<float>(), weights, Optional(args, kB), Optional(args, kZ),
              args.outputs[0].As<float>()};
    if (!first_part_) t.bias = t.residual = nullptr;
    const bool depthwise = IsDepthwise(channels_);
    const int64_t row_blocks = CeilDiv(Rows(), block_rows_),
                  column_blocks = CeilDiv(axis_[2].out, block_columns_),
                  panels = depthwise ? 1 : static_cast<int64_t>(panels_.size());
    const int64_t tasks = images_ * row_blocks * column_blocks * panels;
    const double terms = static_cast<double>(args.outputs[0].elements()) *
                         static_cast<double>(channels_.group_inputs * Taps());
    const auto grain = static_cast<int64_t>(1 + kGrainTerms * static_cast<double>(tasks) / terms);
    return ParallelRanges(args.parallel, tasks, grain, [&](int64_t begin, int64_t end) {
      std::vector<ChainRun> runs;
      for (int64_t task = begin; task < end; ++task) {
        int64_t rest = task / panels;
        const int64_t column = rest % column_blocks * block_columns_;
        rest /= column_blocks;
        const int64_t row = rest % row_blocks * block_rows_;
        const Block block{rest / row_blocks,
                          {row, std::min(row + block_rows_, Rows())},
                          {column, std::min(column + block_columns_, axis_[2].out)}};
        if (depthwise) RunDepthwise(t, block, &runs);
        else RunPanel(t, block, task % panels, &runs);
      }
    });
  }
  size_t bytes() const override {
    return panels_.size() * sizeof(Panel) + axis_[0].class_of.size() * sizeof(uint32_t) +
           axis_[1].class_of.size() * sizeof(uint32_t) +
           axis_[2].class_of.size() * sizeof(uint32_t);
  }

 private:
  Result<const float*> PackedWeights(const RunArgs& args) const {
    if (constant_ != nullptr) return constant_;
    const size_t bytes = PackedFloats(channels_, weight_taps_) * sizeof(float);
    MSRT_ASSIGN_OR_RETURN(
        const void* packed, args.forms.Get(kW, packing_, bytes, [&](std::byte* to) {
          return PackWeights(args.inputs[kW].As<float>(), weight_taps_, channels_, transposed_,
                             args.parallel, reinterpret_cast<float*>(to));
        }));
    return static_cast<const float*>(packed);
  }

  // A block's inputs stay in the second-level cache while its panels go by, and its weights are
  // used for at least kMinPixels pixels.
  static constexpr int64_t kBlockFloats = 1 << 16, kMinPixels = 64, kMaxPixels = 512;
  static constexpr double kGrainTerms = 100'000;

  struct Tensors {
    const float *x, *w, *bias, *residual;  // w: packed
    float* y;
  };
  struct Block {
    int64_t image;
    Interval rows, columns;
  };
  // Outputs in a line, along a row or a column, that read the same taps.
  struct Segment {
    const float* x;       // of the first tap of the first output
    int64_t x_step;       // from output to output
    int64_t pixel, step;  // the first output, counted over all images; from output to output
    int64_t count;
  };

  static const float* Optional(const RunArgs& args, size_t i) {
    return i < args.inputs.size() && args.inputs[i].present() ? args.inputs[i].As<float>()
                                                              : nullptr;
  }
  int64_t Rows() const { return axis_[0].out * axis_[1].out; }
  int64_t Taps() const { return axis_[0].kernel * axis_[1].kernel * axis_[2].kernel; }

  // Pixels of a 1x1 convolution are one row.
  void JoinAxes() {
    WindowAxis all;
    all.in = all.out = axis_[0].out * axis_[1].out * axis_[2].out;
    axis_[2] = TapsOf(all, false);
    axis_[0] = axis_[1] = TapsOf(WindowAxis(), false);
  }

  // The outputs of a class that are inside an interval: numbers [begin, end) of the class.
  static Interval Inside(const TapClass& c, Interval outputs) {
    return {std::max<int64_t>(0, CeilDiv(outputs.begin - c.first, c.step)),
            std::min(c.count, CeilDiv(outputs.end - c.first, c.step))};
  }

  // Calls visit(runs, segments) for every rectangle of outputs of the block that read the same
  // taps; segments(f) calls f(segment) for lines that cover it.
  template <typename Visit>
  void ForEachRectangle(const Tensors& t, const Block& block, std::vector<ChainRun>* runs,
                        Visit visit) const {
    const int64_t height = axis_[1].out;
    for (int64_t row = block.rows.begin; row < block.rows.end;) {
      const int64_t z = row / height, end = std::min(block.rows.end, (z + 1) * height);
      const TapClass& depth = axis_[0].classes[axis_[0].class_of[static_cast<size_t>(z)]];
      for (const TapClass& h : axis_[1].classes) {
        const Interval rows = Inside(h, {row - z * height, end - z * height});
        if (rows.size() <= 0) continue;
        for (const TapClass& w : axis_[2].classes) {
          const Interval columns = Inside(w, block.columns);
          if (columns.size() <= 0) continue;
          FindRuns(depth, h, w, runs);
          const Rectangle r{block.image * axis_[0].in + depth.InputOf(z),
                            block.image * axis_[0].out + z,
                            &h,
                            &w,
                            rows,
                            columns};
          visit(*runs, [&](auto use) { ForEachSegment(t, r, use); });
        }
      }
      row = end;
    }
  }

  struct Rectangle {
    int64_t in_plane, out_plane;  // counted over all images
    const TapClass *height, *width;
    Interval rows, columns;  // numbers within the classes
  };
  // Lines go along the longer side: tiles of few rows are slow.
  template <typename Use>
  void ForEachSegment(const Tensors& t, const Rectangle& r, Use use) const {
    const bool along_row = r.columns.size() >= std::min(r.rows.size(), LoopsHere().chain_rows);
    const Interval lines = along_row ? r.rows : r.columns;
    const TapClass &h = *r.height, &w = *r.width;
    for (int64_t line = lines.begin; line < lines.end; ++line) {
      const int64_t i = along_row ? line : r.rows.begin, j = along_row ? r.columns.begin : line;
      const int64_t in = (r.in_plane * axis_[1].in + h.in + i * h.in_step) * axis_[2].in + w.in +
                         j * w.in_step,
                    out = (r.out_plane * axis_[1].out + h.first + i * h.step) * axis_[2].out +
                          w.first + j * w.step;
      use(Segment{t.x + in * inputs_, inputs_ * (along_row ? w.in_step : h.in_step * axis_[2].in),
                  out, along_row ? w.step : h.step * axis_[2].out,
                  along_row ? r.columns.size() : r.rows.size()});
    }
  }

  // The terms of a chain, by kernel position and then by input channel. Neighbouring positions
  // whose inputs and weights both follow each other are one run.
  void FindRuns(const TapClass& depth, const TapClass& height, const TapClass& column,
                std::vector<ChainRun>* runs) const {
    runs->clear();
    const int64_t terms = channels_.group_inputs;
    for (int64_t i = 0; i < depth.taps; ++i) {
      for (int64_t j = 0; j < height.taps; ++j) {
        for (int64_t k = 0; k < column.taps; ++k) {
          const int64_t tap = ((depth.tap + i * depth.tap_step) * axis_[1].kernel + height.tap +
                               j * height.tap_step) *
                                  axis_[2].kernel +
                              column.tap + k * column.tap_step;
          const int64_t x =
              ((i * depth.in_tap_step * axis_[1].in + j * height.in_tap_step) * axis_[2].in +
               k * column.in_tap_step) *
              inputs_;
          AddRun({x, tap * terms, terms}, runs);
        }
      }
    }
  }
  void AddRun(const ChainRun& run, std::vector<ChainRun>* runs) const {
    if (!runs->empty() && !IsDepthwise(channels_)) {
      ChainRun& last = runs->back();
      if (last.x_offset + last.count == run.x_offset && last.w_row + last.count == run.w_row) {
        last.count += run.count;
        return;
      }
    }
    runs->push_back(run);
  }

  void RunPanel(const Tensors& t, const Block& block, int64_t index,
                std::vector<ChainRun>* runs) const {
    const Panel& panel = panels_[static_cast<size_t>(index)];
    const int64_t terms = Taps() * channels_.group_inputs, outputs = channels_.outputs;
    const float* w = t.w + index * terms * LoopsHere().chain_panel;
    std::vector<ChainRun> part;
    for (int64_t first = 0; first < terms; first += kMaxChainTerms) {
      ForEachRectangle(t, block, runs, [&](const std::vector<ChainRun>& all, auto segments) {
        const ChainPart found = PartOf(all, {first, first + kMaxChainTerms}, first == 0, &part);
        if (part.empty() && !(found.begins && found.ends)) return;
        ChainTile tile{.x = nullptr,
                       .x_step = 0,
                       .w = w,
                       .runs = part.data(),
                       .run_count = static_cast<int64_t>(part.size()),
                       .y = nullptr,
                       .y_step = 0,
                       .rows = 0,
                       .columns = panel.columns,
                       .begins = found.begins,
                       .start = t.bias == nullptr ? nullptr : t.bias + panel.first,
                       .ends = found.ends,
                       .addend = nullptr,
                       .residual = nullptr,
                       .residual_step = 0,
                       .low = finish_.low,
                       .high = finish_.high};
        segments([&](const Segment& s) {
          const int64_t at = s.pixel * outputs + panel.first;
          tile.x = s.x + panel.group * channels_.group_inputs, tile.x_step = s.x_step;
          tile.y = t.y + at, tile.y_step = tile.residual_step = s.step * outputs;
          tile.rows = s.count;
          if (t.residual != nullptr) tile.residual = t.residual + at;
          LoopsHere().chains(tile);
          if (found.ends) finish_.Apply(tile.y, s.count, tile.y_step, panel.columns);
        });
      });
    }
  }

  void RunDepthwise(const Tensors& t, const Block& block, std::vector<ChainRun>* runs) const {
    const int64_t outputs = channels_.outputs;
    ForEachRectangle(t, block, runs, [&](const std::vector<ChainRun>& all, auto segments) {
      segments([&](const Segment& s) {
        const int64_t at = s.pixel * outputs, step = s.step * outputs;
        LoopsHere().depthwise({.x = s.x,
                               .x_step = s.x_step,
                               .w = t.w,
                               .runs = all.data(),
                               .run_count = static_cast<int64_t>(all.size()),
                               .y = t.y + at,
                               .y_step = step,
                               .rows = s.count,
                               .channels = outputs,
                               .start = t.bias,
                               .residual = t.residual == nullptr ? nullptr : t.residual + at,
                               .residual_step = step,
                               .low = finish_.low,
                               .high = finish_.high});
        finish_.Apply(t.y + at, s.count, step, outputs);
      });
    });
  }

  const ChainFinish finish_;
  const ConvChannels channels_;
  const std::vector<Panel> panels_;
  const float* constant_;
  const bool transposed_;
  const sdk::Packing packing_;
  const int64_t weight_taps_, images_, inputs_;
  const bool first_part_;
  AxisTaps axis_[kMaxSpace];
  int64_t block_rows_ = 1, block_columns_ = 1;
};

class ConvKernel final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> Make(const NodeInfo& node, const CompileContext& context) {
    auto kernel = std::make_unique<ConvKernel>();
    kernel->weight_dims_ = node.op->input(kW).dims;
    const ConstTensor* const w = node.op->constant(kW);
    if (w == nullptr) return std::unique_ptr<Kernel>(std::move(kernel));
    const bool transposed = IsTransposed(*node.op);
    const ConvChannels channels =
        ConvChannelsOf(*node.typical, node.typical->input(kX).dims, w->dims, transposed);
    const int64_t taps = TapsIn(w->dims);
    MSRT_ASSIGN_OR_RETURN(
        kernel->packed_, sdk::PackedForm::Make(
                             context, w->bytes.data(), PackingOf(channels, transposed),
                             PackedFloats(channels, taps) * sizeof(float), [&](std::byte* to) {
                               return PackWeights(w->As<float>().data(), taps, channels, transposed,
                                                  *context.parallel, reinterpret_cast<float*>(to));
                             }));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Result<std::unique_ptr<BoundKernel>> Bind(const OpView& op) override {
    const Dims &x = op.input(kX).dims, &w = op.input(kW).dims;
    // A piece may have a part of the weights, which is packed when it runs.
    const bool whole = w == weight_dims_;
    const auto kernel = std::span<const int64_t>(w).subspan(2);
    MSRT_ASSIGN_OR_RETURN(const Windows windows, IsTransposed(op)
                                                     ? TransposedWindowsOf(op, x, kernel)
                                                     : WindowsOf(op, x, kernel));
    return std::unique_ptr<BoundKernel>(std::make_unique<BoundConv>(
        op, windows, whole ? reinterpret_cast<const float*>(packed_.data()) : nullptr));
  }
  size_t packed_bytes() const override { return packed_.own_bytes(); }

 private:
  sdk::PackedForm packed_;  // of a constant
  Dims weight_dims_;
};

constexpr Rule Of(std::string_view domain, std::string_view op) {
  return {.domain = domain,
          .op = op,
          .query = QueryConv,
          .bind = nullptr,
          .compile = ConvKernel::Make,
          .takes_pieces = true};
}
constexpr Rule kChainConvRules[] = {Of("", "Conv"), Of("msrt", "FusedConv"),
                                    Of("", "ConvTranspose")};

}  // namespace

std::span<const Rule> ChainConvRules() { return kChainConvRules; }

}  // namespace msrt::cpu

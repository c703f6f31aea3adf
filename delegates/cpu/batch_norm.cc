// BatchNormalization with given statistics, and msrt.FusedBatchNormalization, which applies an
// activation: one pass over memory with a factor and a shift for each channel, in every layout.
#include <algorithm>
#include <cmath>

#include "delegates/cpu/activation.h"
#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

constexpr size_t kX = 0, kScale = 1, kShift = 2, kMean = 3, kVariance = 4;

std::string QueryBatchNorm(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  for (size_t i = 0; i <= kVariance; ++i) {
    if (op.input(i).dtype != DType::kF32) return StrCat("elements of type ", op.input(i).dtype);
  }
  if (op.input(kX).rank() < 2) return "an input without a dim for channels";
  const double seconds = PassSeconds(node, static_cast<double>(node.typical->output(0).elements()),
                                     0.06 + ActivationNanoseconds(op), node.bytes);
  for (const Layout layout : OfferedLayouts()) {
    if (!Admits(op.input(kX), layout) || (layout != Layout::kPlain && op.constant(kX) != nullptr))
      continue;
    Candidate c = PlainCandidate(node, seconds, "vectorised");
    c.input_layouts[kX] = c.output_layouts[0] = layout;
    c.in_place = {{0u, 0u}};
    c.arithmetic = ArithmeticOfLoops();
    candidates->push_back(std::move(c));
  }
  return {};
}

class BoundBatchNorm final : public BoundKernel {
 public:
  BoundBatchNorm(const OpView& op, Layout layout)
      : epsilon_(op.Float("epsilon")),
        activation_(ActivationOf(op)),
        channels_(op.input(kX).dims[1]),
        block_(BlockOf(layout)) {
    const Dims& x = op.input(kX).dims;
    const int64_t space = x.product(2, x.rank());
    // Lines with one channel each (plain), or with a run of neighbouring channels.
    by_column_ = layout != Layout::kPlain;
    columns_ = layout == Layout::kPlain          ? space
               : layout == Layout::kChannelsLast ? channels_
                                                 : block_;
    lines_ = columns_ == 0 ? 0 : x.elements() / columns_;
    lines_of_channel_ = layout == Layout::kPlain ? 1 : space;
  }

  Status Run(const RunArgs& args) override {
    if (lines_ == 0) return OkStatus();
    MSRT_ASSIGN_OR_RETURN(void* memory,
                          args.scratch.Get(static_cast<size_t>(channels_) * sizeof(float)));
    auto* factor = static_cast<float*>(memory);
    const auto input = [&](size_t i) { return args.inputs[i].As<float>(); };
    for (int64_t c = 0; c < channels_; ++c) {
      factor[c] = static_cast<float>(
          input(kScale)[c] / std::sqrt(static_cast<double>(input(kVariance)[c]) + epsilon_));
    }
    const Parameters parameters{input(kMean), factor, input(kShift)};
    const float* x = input(kX);
    float* y = args.outputs[0].As<float>();
    const int64_t grain = std::max<int64_t>(1, kGrain / columns_);
    return ParallelRanges(args.parallel, lines_, grain, [&](int64_t begin, int64_t end) {
      RunLines(x, y, parameters, begin, end);
    });
  }

 private:
  struct Parameters {
    const float *mean, *factor, *shift;  // one for each channel
  };
  // The channel that a line begins with.
  int64_t ChannelOf(int64_t line) const {
    if (!by_column_) return line % channels_;
    return block_ == 1 ? 0 : line / lines_of_channel_ % (channels_ / block_) * block_;
  }
  // Lines from `line` on whose channels one call of the loop covers.
  int64_t LinesFrom(int64_t line) const {
    if (!by_column_) return channels_ - line % channels_;
    return block_ == 1 ? lines_ - line : lines_of_channel_ - line % lines_of_channel_;
  }
  void RunLines(const float* x, float* y, const Parameters& p, int64_t begin, int64_t end) const {
    const AffineLoop loop = by_column_ ? LoopsHere().affine_by_column : LoopsHere().affine_by_line;
    // Few enough lines at a time that the activation finds them in the cache.
    const int64_t lines_at_once = std::max<int64_t>(1, 4096 / columns_);
    for (int64_t line = begin; line < end;) {
      const int64_t count = std::min({end - line, LinesFrom(line), lines_at_once});
      const int64_t channel = ChannelOf(line), at = line * columns_;
      loop({x + at, p.mean + channel, p.factor + channel, p.shift + channel, y + at, count,
            columns_});
      activation_.Apply(y + at, count * columns_);
      line += count;
    }
  }

  const double epsilon_;
  const Activation activation_;
  const int64_t channels_, block_;
  bool by_column_ = false;
  int64_t columns_ = 0, lines_ = 0, lines_of_channel_ = 1;
};

Result<std::unique_ptr<BoundKernel>> BindBatchNorm(const OpView& op, const Candidate& candidate) {
  return std::unique_ptr<BoundKernel>(
      std::make_unique<BoundBatchNorm>(op, candidate.input_layouts[kX]));
}

constexpr Rule kBatchNormRules[] = {
    {"", "BatchNormalization", QueryBatchNorm, BindBatchNorm},
    {"msrt", "FusedBatchNormalization", QueryBatchNorm, BindBatchNorm}};

}  // namespace

std::span<const Rule> BatchNormRules() { return kBatchNormRules; }

}  // namespace msrt::cpu

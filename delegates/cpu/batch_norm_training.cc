// msrt.BatchNormTraining and its gradient, in every layout: one pass for two sums of each channel,
// one that applies them. The batch is cut into parts that do not depend on the number of threads,
// and their sums are added in order.
#include <algorithm>
#include <cmath>
#include <vector>

#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

constexpr size_t kX = 0;                                                       // forward
constexpr size_t kGrad = 0, kInput = 1, kScale = 2, kMean = 3, kVariance = 4;  // gradient

std::string QueryChannels(const NodeInfo& node, size_t tensors,
                          std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (op.input(i).dtype != DType::kF32) return StrCat("elements of type ", op.input(i).dtype);
  }
  for (const Layout layout : OfferedLayouts()) {
    bool admitted = true;
    for (size_t i = 0; i < tensors; ++i) {
      admitted = admitted && Admits(op.input(i), layout) &&
                 (layout == Layout::kPlain || op.constant(i) == nullptr);
    }
    if (!admitted) continue;
    Candidate c =
        PlainCandidate(node,
                       PassSeconds(node, static_cast<double>(node.typical->output(0).elements()),
                                   0.15, 1.5 * node.bytes),
                       "vectorised");
    for (size_t i = 0; i < tensors; ++i) c.input_layouts[i] = layout;
    c.output_layouts[0] = layout;
    if (tensors == 2) c.in_place = {{0u, 0u}};
    candidates->push_back(std::move(c));
  }
  return {};
}
std::string QueryTraining(const NodeInfo& node, std::vector<Candidate>* candidates) {
  return QueryChannels(node, 1, candidates);
}
std::string QueryTrainingGrad(const NodeInfo& node, std::vector<Candidate>* candidates) {
  return QueryChannels(node, 2, candidates);
}

// The tensor as parts whose lines have the same channels: a line for each channel (plain), or
// lines with a run of neighbouring channels.
struct Parts {
  bool by_column;
  int64_t channels, columns, lines;  // lines of the tensor
  int64_t part_lines, parts;
  int64_t part_channels;  // of one part
  int64_t groups;         // parts with different channels follow each other in such groups
  double count;           // elements of a channel

  Parts(const Dims& x, Layout layout) : by_column(layout != Layout::kPlain), channels(x[1]) {
    const int64_t space = x.product(2, x.rank()), block = BlockOf(layout);
    columns = layout == Layout::kPlain ? space : layout == Layout::kChannelsLast ? channels : block;
    lines = columns == 0 ? 0 : x.elements() / columns;
    part_channels = layout == Layout::kPlain ? channels : columns;
    groups = channels == 0 ? 1 : channels / std::max<int64_t>(1, part_channels);
    constexpr int64_t kElementsOfPart = 1 << 16;
    if (!by_column) part_lines = channels;
    else if (block > 1) part_lines = space;
    else part_lines = std::max<int64_t>(64, kElementsOfPart / std::max<int64_t>(1, columns));
    parts = lines == 0 ? 0 : (lines + part_lines - 1) / part_lines;
    count = static_cast<double>(x[0] * space);
  }
  int64_t FirstChannel(int64_t part) const { return part % groups * part_channels; }
  int64_t LinesOf(int64_t part) const { return std::min(part_lines, lines - part * part_lines); }
  int64_t Offset(int64_t part) const { return part * part_lines * columns; }
};

// The two sums of each channel.
class ChannelSums {
 public:
  explicit ChannelSums(const Parts& parts) : parts_(parts) {}

  Status Run(ParallelFor& parallel, const float* factor, const float* x, const float* center) {
    const auto width = static_cast<size_t>(parts_.part_channels);
    std::vector<double> partial(static_cast<size_t>(parts_.parts) * width * 2);
    const CenteredSumsLoop loop =
        parts_.by_column ? LoopsHere().centered_sums_by_column : LoopsHere().centered_sums_by_line;
    MSRT_RETURN_IF_ERROR(ParallelRanges(parallel, parts_.parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        double* of_part = partial.data() + static_cast<size_t>(p) * width * 2;
        const int64_t at = parts_.Offset(p);
        loop({factor == nullptr ? nullptr : factor + at, x + at, center + parts_.FirstChannel(p),
              parts_.LinesOf(p), parts_.columns, of_part, of_part + width});
      }
    }));
    sums.assign(static_cast<size_t>(parts_.channels), 0);
    products = sums;
    for (int64_t p = 0; p < parts_.parts; ++p) {
      const double* part = partial.data() + static_cast<size_t>(p) * width * 2;
      for (size_t k = 0; k < width; ++k) {
        sums[static_cast<size_t>(parts_.FirstChannel(p)) + k] += part[k];
        products[static_cast<size_t>(parts_.FirstChannel(p)) + k] += part[width + k];
      }
    }
    return OkStatus();
  }

  std::vector<double> sums, products;

 private:
  const Parts& parts_;
};

// One element of each channel of the tensor.
std::vector<float> FirstElements(const Parts& parts, const float* x) {
  std::vector<float> first(static_cast<size_t>(parts.channels));
  for (int64_t g = 0; g < std::min(parts.groups, parts.parts); ++g) {
    for (int64_t k = 0; k < parts.part_channels; ++k) {
      first[static_cast<size_t>(parts.FirstChannel(g) + k)] =
          x[parts.Offset(g) + k * (parts.by_column ? 1 : parts.columns)];
    }
  }
  return first;
}

class BoundTraining final : public BoundKernel {
 public:
  BoundTraining(const OpView& op, Layout layout)
      : epsilon_(op.Float("epsilon")), parts_(op.input(kX).dims, layout) {}

  Status Run(const RunArgs& args) override {
    const float* x = args.inputs[kX].As<float>();
    const float *scale = args.inputs[1].As<float>(), *shift = args.inputs[2].As<float>();
    // Differences from an element of the channel are of the size of its deviation, so that their
    // squares lose nothing when the mean is far from zero.
    const std::vector<float> origin = FirstElements(parts_, x);
    ChannelSums sums(parts_);
    MSRT_RETURN_IF_ERROR(sums.Run(args.parallel, nullptr, x, origin.data()));
    const auto channels = static_cast<size_t>(parts_.channels);
    std::vector<float> mean(channels), factor(channels);
    for (size_t c = 0; c < channels; ++c) {
      const double moved = sums.sums[c] / parts_.count;
      const double variance = std::max(0.0, sums.products[c] / parts_.count - moved * moved);
      const double exact = static_cast<double>(origin[c]) + moved;
      // NaN and infinities stay in the statistics.
      const bool finite = std::isfinite(sums.products[c]);
      const double spread = finite ? variance : std::nan("");
      mean[c] = static_cast<float>(exact);
      factor[c] = static_cast<float>(static_cast<double>(scale[c]) / std::sqrt(spread + epsilon_));
      if (HasOutput(args, 1)) args.outputs[1].As<float>()[c] = mean[c];
      if (HasOutput(args, 2)) args.outputs[2].As<float>()[c] = static_cast<float>(spread);
    }
    float* y = args.outputs[0].As<float>();
    const AffineLoop loop =
        parts_.by_column ? LoopsHere().affine_by_column : LoopsHere().affine_by_line;
    return ParallelRanges(args.parallel, parts_.parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t at = parts_.Offset(p), c = parts_.FirstChannel(p);
        loop({x + at, mean.data() + c, factor.data() + c, shift + c, y + at, parts_.LinesOf(p),
              parts_.columns});
      }
    });
  }

 private:
  static bool HasOutput(const RunArgs& args, size_t o) {
    return o < args.outputs.size() && args.outputs[o].present();
  }
  const double epsilon_;
  const Parts parts_;
};

class BoundTrainingGrad final : public BoundKernel {
 public:
  BoundTrainingGrad(const OpView& op, Layout layout)
      : epsilon_(op.Float("epsilon")), parts_(op.input(kInput).dims, layout) {}

  Status Run(const RunArgs& args) override {
    const auto input = [&](size_t i) { return args.inputs[i].As<float>(); };
    ChannelSums sums(parts_);
    MSRT_RETURN_IF_ERROR(sums.Run(args.parallel, input(kGrad), input(kInput), input(kMean)));
    const auto channels = static_cast<size_t>(parts_.channels);
    std::vector<float> grad_factor(channels), factor(channels), shift(channels);
    for (size_t c = 0; c < channels; ++c) {
      const double inverse = 1 / std::sqrt(static_cast<double>(input(kVariance)[c]) + epsilon_);
      const double scaled = static_cast<double>(input(kScale)[c]) * inverse;
      const double products = sums.products[c] * inverse;
      grad_factor[c] = static_cast<float>(scaled);
      factor[c] = static_cast<float>(-scaled * inverse * products / parts_.count);
      shift[c] = static_cast<float>(-scaled * sums.sums[c] / parts_.count);
      if (HasOutput(args, 1)) args.outputs[1].As<float>()[c] = static_cast<float>(products);
      if (HasOutput(args, 2)) args.outputs[2].As<float>()[c] = static_cast<float>(sums.sums[c]);
    }
    if (!HasOutput(args, 0)) return OkStatus();
    float* y = args.outputs[0].As<float>();
    const CombineLoop loop =
        parts_.by_column ? LoopsHere().combine_by_column : LoopsHere().combine_by_line;
    return ParallelRanges(args.parallel, parts_.parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t at = parts_.Offset(p), c = parts_.FirstChannel(p);
        loop({input(kGrad) + at, input(kInput) + at, grad_factor.data() + c, factor.data() + c,
              input(kMean) + c, shift.data() + c, y + at, parts_.LinesOf(p), parts_.columns});
      }
    });
  }

 private:
  static bool HasOutput(const RunArgs& args, size_t o) {
    return o < args.outputs.size() && args.outputs[o].present();
  }
  const double epsilon_;
  const Parts parts_;
};

Result<std::unique_ptr<BoundKernel>> BindTraining(const OpView& op, const Candidate& candidate) {
  return std::unique_ptr<BoundKernel>(
      std::make_unique<BoundTraining>(op, candidate.input_layouts[kX]));
}
Result<std::unique_ptr<BoundKernel>> BindTrainingGrad(const OpView& op,
                                                      const Candidate& candidate) {
  return std::unique_ptr<BoundKernel>(
      std::make_unique<BoundTrainingGrad>(op, candidate.input_layouts[kInput]));
}

constexpr Rule kBatchNormTrainingRules[] = {
    {"msrt", "BatchNormTraining", QueryTraining, BindTraining},
    {"msrt", "BatchNormTrainingGrad", QueryTrainingGrad, BindTrainingGrad}};

}  // namespace

std::span<const Rule> BatchNormTrainingRules() { return kBatchNormTrainingRules; }

}  // namespace msrt::cpu

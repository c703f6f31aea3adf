// LayerNormalization and RMSNormalization over trailing dims, InstanceNormalization and
// GroupNormalization over slices of channels. Each slice is read from memory once: its moments and
// its result come from the cache.
#include <algorithm>
#include <cmath>

#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

constexpr size_t kX = 0, kScale = 1, kBias = 2;

std::string TypeRefusal(const OpView& op) {
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (op.has_input(i) && op.input(i).dtype != DType::kF32)
      return StrCat("elements of type ", op.input(i).dtype);
  }
  return {};
}

Candidate NormalizationCandidate(const NodeInfo& node) {
  Candidate c = PlainCandidate(
      node,
      PassSeconds(node, static_cast<double>(node.typical->output(0).elements()), 0.2, node.bytes),
      "vectorised");
  c.in_place = {{0u, 0u}};
  c.arithmetic = ArithmeticOfLoops();
  return c;
}

// ---- rows ---------------------------------------------------------------------------------------

// Elements of a row: the dims from `axis` on.
int64_t RowOf(const OpView& op) {
  const Dims& x = op.input(kX).dims;
  const auto axis = static_cast<int>(op.Int("axis"));
  return x.product(axis < 0 ? axis + x.rank() : axis, x.rank());
}

bool IsWholeRow(const OpView& op, size_t input) {
  return !op.has_input(input) || op.input(input).elements() == RowOf(op);
}

std::string QueryRows(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (std::string reason = TypeRefusal(op); !reason.empty()) return reason;
  if (op.has_output(1) || op.has_output(2)) return "the statistics of a normalization";
  if (!IsWholeRow(*node.typical, kScale) || !IsWholeRow(*node.typical, kBias))
    return "a scale or bias that is broadcast";
  const auto is_known = [&](size_t i) { return !op.has_input(i) || op.input(i).dims.known(); };
  if (!is_known(kScale) || !is_known(kBias)) return "a scale or bias whose dims are not known";
  candidates->push_back(NormalizationCandidate(node));
  return {};
}

class BoundRows final : public BoundKernel {
 public:
  explicit BoundRows(const OpView& op)
      : center_(op.op() == "LayerNormalization"),
        epsilon_(op.Float("epsilon")),
        row_(RowOf(op)),
        has_bias_(op.has_input(kBias)) {
    rows_ = row_ == 0 ? 0 : op.input(kX).elements() / row_;
  }
  Status Run(const RunArgs& args) override {
    const float *x = args.inputs[kX].As<float>(), *scale = args.inputs[kScale].As<float>();
    const float* bias = has_bias_ ? args.inputs[kBias].As<float>() : nullptr;
    float* y = args.outputs[0].As<float>();
    const Loops& loops = LoopsHere();
    return ParallelRanges(
        args.parallel, rows_, std::max<int64_t>(1, kGrain / 2 / std::max<int64_t>(1, row_)),
        [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            const float* row = x + r * row_;
            const auto [mean, spread] =
                center_ ? loops.moments(row, row_) : Moments{0, MeanSquare(loops, row)};
            const auto factor = static_cast<float>(1 / std::sqrt(spread + epsilon_));
            loops.normalize_row(row, y + r * row_, row_, static_cast<float>(mean), factor, scale,
                                bias);
          }
        });
  }

 private:
  double MeanSquare(const Loops& loops, const float* row) const {
    double sum = 0;
    loops.reduce_row[static_cast<size_t>(Reduce::kSumSquare)](row, row_, &sum);
    return sum / static_cast<double>(row_);
  }
  const bool center_;
  const double epsilon_;
  const int64_t row_;
  const bool has_bias_;
  int64_t rows_ = 0;
};

Result<std::unique_ptr<BoundKernel>> BindRows(const OpView& op, const Candidate&) {
  return std::unique_ptr<BoundKernel>(std::make_unique<BoundRows>(op));
}

// ---- groups of channels -------------------------------------------------------------------------

std::string QueryGroups(const NodeInfo& node, std::vector<Candidate>* candidates) {
  if (std::string reason = TypeRefusal(*node.op); !reason.empty()) return reason;
  candidates->push_back(NormalizationCandidate(node));
  return {};
}

class BoundGroups final : public BoundKernel {
 public:
  explicit BoundGroups(const OpView& op) : epsilon_(op.Float("epsilon")) {
    const Dims& x = op.input(kX).dims;
    groups_ = op.op() == "GroupNormalization" ? op.Int("num_groups") : x[1];
    channels_ = groups_ == 0 ? 0 : x[1] / groups_;
    plane_ = x.product(2, x.rank());
    slices_ = x.elements() == 0 ? 0 : x[0] * groups_;
  }
  Status Run(const RunArgs& args) override {
    const float *x = args.inputs[kX].As<float>(), *scale = args.inputs[kScale].As<float>(),
                *bias = args.inputs[kBias].As<float>();
    float* y = args.outputs[0].As<float>();
    const Loops& loops = LoopsHere();
    const int64_t slice = channels_ * plane_;
    return ParallelRanges(
        args.parallel, slices_, std::max<int64_t>(1, kGrain / 2 / std::max<int64_t>(1, slice)),
        [&](int64_t begin, int64_t end) {
          for (int64_t s = begin; s < end; ++s) {
            const Moments m = loops.moments(x + s * slice, slice);
            const double factor = 1 / std::sqrt(m.variance + epsilon_);
            for (int64_t k = 0; k < channels_; ++k) {
              const int64_t channel = s % groups_ * channels_ + k, at = s * slice + k * plane_;
              const auto mean = static_cast<float>(m.mean),
                         a = static_cast<float>(factor * static_cast<double>(scale[channel]));
              loops.affine_by_line({x + at, &mean, &a, bias + channel, y + at, 1, plane_});
            }
          }
        });
  }

 private:
  const double epsilon_;
  int64_t groups_, channels_, plane_, slices_;
};

Result<std::unique_ptr<BoundKernel>> BindGroups(const OpView& op, const Candidate&) {
  return std::unique_ptr<BoundKernel>(std::make_unique<BoundGroups>(op));
}

constexpr Rule kNormalizationRules[] = {{"", "LayerNormalization", QueryRows, BindRows},
                                        {"", "RMSNormalization", QueryRows, BindRows},
                                        {"", "InstanceNormalization", QueryGroups, BindGroups},
                                        {"", "GroupNormalization", QueryGroups, BindGroups}};

}  // namespace

std::span<const Rule> NormalizationRules() { return kNormalizationRules; }

}  // namespace msrt::cpu

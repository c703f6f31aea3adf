// Gather along the channels with indices that are known: the channels of a network in another
// order. Channels that are together in memory are picked pixel by pixel; elsewhere whole planes are
// copied.
#include <algorithm>
#include <cstring>

#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

std::string QueryGather(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  const Type& x = op.input(0);
  const int64_t axis = op.Int("axis");
  if (x.rank() < 3 || x.rank() > 5 || (axis != 1 && axis != 1 - x.rank()))
    return "an axis other than the channels";
  if (op.constant(1) == nullptr || op.constant(1)->dims.rank() != 1)
    return "indices that are not a constant list";
  if (BitsOf(x.dtype) < 8) return StrCat("elements of type ", x.dtype);
  const int64_t channels = x.dims[1];
  for (const int64_t index : IntValues(*op.constant(1))) {
    if (!IsKnown(channels) || index < -channels || index >= channels)
      return "indices that may be out of range";
  }
  const auto elements = static_cast<double>(node.typical->output(0).elements());
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    if (layout != Layout::kPlain && op.constant(0) != nullptr) continue;
    const double nanoseconds = layout == Layout::kPlain ? 0 : 0.35;
    Candidate c =
        PlainCandidate(node, PassSeconds(node, elements, nanoseconds, node.bytes), "copy");
    c.input_layouts[0] = c.output_layouts[0] = layout;
    c.arithmetic = ArithmeticOf(op);
    candidates->push_back(std::move(c));
  }
  return {};
}

// Input and output as `outer` times channels times `inner` elements.
template <typename T>
class BoundGather final : public BoundKernel {
 public:
  BoundGather(int64_t outer, int64_t channels, int64_t inner, std::vector<int64_t> order)
      : outer_(outer), channels_(channels), inner_(inner), order_(std::move(order)) {}

  Status Run(const RunArgs& args) override {
    const T* x = args.inputs[0].As<T>();
    T* y = args.outputs[0].As<T>();
    const auto count = static_cast<int64_t>(order_.size());
    if (args.outputs[0].elements() == 0) return OkStatus();
    if (inner_ == 1) {
      const int64_t grain = std::max<int64_t>(1, kGrain / count);
      return ParallelRanges(args.parallel, outer_, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* from = x + i * channels_;
          T* to = y + i * count;
          for (int64_t k = 0; k < count; ++k) to[k] = from[order_[static_cast<size_t>(k)]];
        }
      });
    }
    const int64_t grain = std::max<int64_t>(1, kGrain / inner_);
    return ParallelRanges(args.parallel, outer_ * count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t from = i / count * channels_ + order_[static_cast<size_t>(i % count)];
        std::memcpy(y + i * inner_, x + from * inner_, static_cast<size_t>(inner_) * sizeof(T));
      }
    });
  }

 private:
  const int64_t outer_, channels_, inner_;
  const std::vector<int64_t> order_;
};

Result<std::unique_ptr<BoundKernel>> BindGather(const OpView& op, const Candidate& candidate) {
  const Dims& x = op.input(0).dims;
  std::vector<int64_t> order = IntValues(*op.constant(1));
  for (int64_t& index : order) index += index < 0 ? x[1] : 0;
  const int64_t plane = x.product(2, x.rank());
  const bool plain = candidate.input_layouts[0] == Layout::kPlain;
  const int64_t outer = plain ? x[0] : x[0] * plane, inner = plain ? plane : 1;
  const auto make = [&]<typename T>() -> std::unique_ptr<BoundKernel> {
    return std::make_unique<BoundGather<T>>(outer, x[1], inner, std::move(order));
  };
  switch (BitsOf(op.input(0).dtype)) {
    case 8:
      return make.operator()<uint8_t>();
    case 16:
      return make.operator()<uint16_t>();
    case 32:
      return make.operator()<uint32_t>();
    default:
      return make.operator()<uint64_t>();
  }
}

constexpr Rule kGatherRules[] = {{"", "Gather", QueryGather, BindGather}};

}  // namespace

std::span<const Rule> GatherRules() { return kGatherRules; }

}  // namespace msrt::cpu

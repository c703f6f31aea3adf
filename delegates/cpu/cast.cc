// Cast between f32 and the half types, at the speed of memory: the borders of what is computed in
// f32 for models in f16 and bf16.
#include "core/base/half_array.h"
#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

constexpr DTypeSet kHalfTypes{DType::kF16, DType::kBF16};

std::string QueryCast(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const DType from = node.op->input(0).dtype, to = node.op->output(0).dtype;
  const bool widens = kHalfTypes.Has(from) && to == DType::kF32,
             narrows = from == DType::kF32 && kHalfTypes.Has(to);
  if (!widens && !narrows) return StrCat("a Cast from ", from, " to ", to);
  Candidate c = PlainCandidate(
      node,
      PassSeconds(node, static_cast<double>(node.typical->output(0).elements()), 0.1, node.bytes),
      "vectorised");
  c.arithmetic = ArithmeticOf(*node.op);
  candidates->push_back(std::move(c));
  return {};
}

template <typename From, typename To>
class BoundCast final : public BoundKernel {
 public:
  explicit BoundCast(int64_t elements) : elements_(elements) {}
  Status Run(const RunArgs& args) override {
    const From* x = args.inputs[0].As<From>();
    To* y = args.outputs[0].As<To>();
    return ParallelRanges(args.parallel, elements_, kGrain, [&](int64_t begin, int64_t end) {
      ConvertArray(x + begin, y + begin, static_cast<size_t>(end - begin));
    });
  }

 private:
  const int64_t elements_;
};

Result<std::unique_ptr<BoundKernel>> BindCast(const OpView& op, const Candidate&) {
  const int64_t elements = op.output(0).elements();
  const DType from = op.input(0).dtype, to = op.output(0).dtype;
  if (from == DType::kF16)
    return std::unique_ptr<BoundKernel>(std::make_unique<BoundCast<Half, float>>(elements));
  if (from == DType::kBF16)
    return std::unique_ptr<BoundKernel>(std::make_unique<BoundCast<BFloat16, float>>(elements));
  if (to == DType::kF16)
    return std::unique_ptr<BoundKernel>(std::make_unique<BoundCast<float, Half>>(elements));
  return std::unique_ptr<BoundKernel>(std::make_unique<BoundCast<float, BFloat16>>(elements));
}

constexpr Rule kCastRules[] = {{"", "Cast", QueryCast, BindCast}};

}  // namespace

std::span<const Rule> CastRules() { return kCastRules; }

}  // namespace msrt::cpu

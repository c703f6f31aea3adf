// Softmax and LogSoftmax, over [outer, axis, inner].
#include "delegates/onednn/cost.h"
#include "delegates/onednn/plan.h"
#include "delegates/onednn/recipe.h"

namespace msrt::onednn {
namespace {

using Primitive = dnnl::softmax_forward;

int AxisOf(const OpView& op) {
  const auto axis = static_cast<int>(op.Int("axis"));
  return axis < 0 ? axis + op.input(0).rank() : axis;
}

std::string QuerySoftmax(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.typical;
  if (op.input(0).rank() == 0) return "a scalar";
  const bool rows = op.input(0).dims.product(AxisOf(op) + 1, op.input(0).rank()) == 1;
  const double seconds = PerElement(static_cast<double>(op.output(0).elements()), rows ? 0.8 : 2, node.bytes);
  Candidate c = MakeCandidate(node, Layout::kPlain, Layout::kPlain, seconds, "jit");
  c.in_place = {{0u, 0u}};
  candidates->push_back(std::move(c));
  return {};
}

class SoftmaxRecipe final : public Recipe {
 public:
  using Recipe::Recipe;

  Status Build(const OpView& op, bool, Plan* plan) const override {
    const Dims& x = op.input(0).dims;
    const int axis = AxisOf(op);
    Dims dims{x.product(0, axis), x[axis]};
    if (const int64_t inner = x.product(axis + 1, x.rank()); inner != 1) dims.push_back(inner);
    const memory::desc desc = DescribePlain(dims);
    const auto algorithm = op.op() == "LogSoftmax" ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate;
    const Primitive::primitive_desc descriptor(Engine(), dnnl::prop_kind::forward_inference, algorithm, desc, desc, 1, UserScratchpad());
    plan->Add<Primitive::primitive_desc, Primitive>(descriptor, {{DNNL_ARG_SRC, Place::Input(0), desc}, {DNNL_ARG_DST, Place::Output(0), desc}});
    return OkStatus();
  }
};

constexpr Rule kSoftmaxRules[] = {
    {"", "Softmax", QuerySoftmax, CompileAs<SoftmaxRecipe>},
    {"", "LogSoftmax", QuerySoftmax, CompileAs<SoftmaxRecipe>},
};

}  // namespace

std::span<const Rule> SoftmaxRules() { return kSoftmaxRules; }

}  // namespace msrt::onednn

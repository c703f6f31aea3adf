// Softmax and LogSoftmax over rows: the last axis of plain tensors, or channels that lie last. For other axes the library has only
// naive loops, three hundred times slower.
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
  const int axis = AxisOf(op);
  const bool last = op.input(0).dims.product(axis + 1, op.input(0).rank()) == 1;
  const bool channels = axis == 1 && Admits(node.op->input(0), Layout::kChannelsLast) && HasLayout(node, 0);
  if (!last && !channels) return "oneDNN has only naive loops over other than the last axis";
  const double seconds = PerElement(node.machine, static_cast<double>(op.output(0).elements()), 0.8, node.bytes);
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    if (layout == Layout::kPlain ? !last : !channels) continue;
    Candidate c = MakeCandidate(node, layout, layout, seconds, "jit");
    c.in_place = {{0u, 0u}};
    candidates->push_back(std::move(c));
  }
  return {};
}

class SoftmaxRecipe final : public Recipe {
 public:
  using Recipe::Recipe;

  Status Build(const OpView& op, bool, Plan* plan) const override {
    const Dims& x = op.input(0).dims;
    const int axis = AxisOf(op);
    if (input_layout(0) == Layout::kPlain && x.product(axis + 1, x.rank()) != 1) return Unsupported("not the last axis");
    const memory::desc desc = DescribePlain({x.elements() / x[axis], x[axis]});
    const auto algorithm = op.op() == "LogSoftmax" ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate;
    const Primitive::primitive_desc descriptor(Engine(), dnnl::prop_kind::forward_inference, algorithm, desc, desc, 1, UserScratchpad());
    plan->Add<Primitive::primitive_desc, Primitive>(descriptor,
                                                    {{DNNL_ARG_SRC, Place::Input(0), desc}, {DNNL_ARG_DST, Place::Output(0), desc}});
    return OkStatus();
  }
  bool drops_nan() const override { return true; }
};

constexpr Rule kSoftmaxRules[] = {
    {"", "Softmax", QuerySoftmax, CompileAs<SoftmaxRecipe>},
    {"", "LogSoftmax", QuerySoftmax, CompileAs<SoftmaxRecipe>},
};

}  // namespace

std::span<const Rule> SoftmaxRules() { return kSoftmaxRules; }

}  // namespace msrt::onednn

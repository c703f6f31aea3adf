// Concat, so that networks that join channels (U-Net) stay in one layout.
#include <algorithm>

#include "delegates/onednn/cost.h"
#include "delegates/onednn/plan.h"
#include "delegates/onednn/recipe.h"

namespace msrt::onednn {
namespace {

using Primitive = dnnl::concat;

int AxisOf(const OpView& op) {
  const auto axis = static_cast<int>(op.Int("axis"));
  return axis < 0 ? axis + op.output(0).rank() : axis;
}

std::string QueryConcat(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  for (const Layout layout : kAllLayouts) {
    bool all = Admits(op.output(0), layout);
    for (size_t i = 0; i < op.input_count() && all; ++i) {
      all = op.has_input(i) && Admits(op.input(i), layout) && (layout == Layout::kPlain || HasLayout(node, i));
    }
    if (all) candidates->push_back(MakeCandidate(node, layout, layout, PerElement(node.machine, 0, 0, node.bytes), "copy"));
  }
  return {};
}

class ConcatRecipe final : public Recipe {
 public:
  using Recipe::Recipe;

  Status Build(const OpView& op, bool, Plan* plan) const override {
    std::vector<memory::desc> sources;
    std::vector<Argument> arguments;
    for (size_t i = 0; i < op.input_count(); ++i) {
      sources.push_back(Describe(op.input(i), input_layout(i)));
      arguments.push_back({DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), Place::Input(i), sources.back()});
    }
    const memory::desc dst = Describe(op.output(0), output_layout(0));
    arguments.push_back({DNNL_ARG_DST, Place::Output(0), dst});
    const Primitive::primitive_desc descriptor(Engine(), dst, AxisOf(op), sources, UserScratchpad());
    plan->Add<Primitive::primitive_desc, Primitive>(descriptor, std::move(arguments));
    return OkStatus();
  }
};

constexpr Rule kConcatRules[] = {{"", "Concat", QueryConcat, CompileAs<ConcatRecipe>}};

}  // namespace

std::span<const Rule> ConcatRules() { return kConcatRules; }

}  // namespace msrt::onednn

// Reductions over the last axes, as rows; the library has only a naive implementation for all others.
#include <algorithm>
#include <optional>
#include <vector>

#include "delegates/onednn/cost.h"
#include "delegates/onednn/plan.h"
#include "delegates/onednn/recipe.h"

namespace msrt::onednn {
namespace {

using Primitive = dnnl::reduction;

std::optional<dnnl::algorithm> AlgorithmOf(std::string_view op) {
  if (op == "ReduceSum") return dnnl::algorithm::reduction_sum;
  if (op == "ReduceMean") return dnnl::algorithm::reduction_mean;
  if (op == "ReduceMax") return dnnl::algorithm::reduction_max;
  if (op == "ReduceMin") return dnnl::algorithm::reduction_min;
  if (op == "ReduceProd") return dnnl::algorithm::reduction_mul;
  return std::nullopt;
}

// The axes, sorted and positive; nothing where they are not known or a reduction over no axes is a copy.
std::optional<std::vector<int>> AxesOf(const OpView& op) {
  const int rank = op.input(0).rank();
  std::vector<int64_t> given;
  if (op.Has("axes")) given.assign(op.Ints("axes").begin(), op.Ints("axes").end());
  else if (op.has_input(1) && op.constant(1) == nullptr) return std::nullopt;
  else if (op.has_input(1)) given = IntValues(*op.constant(1));
  std::vector<int> axes;
  for (int64_t a : given) axes.push_back(static_cast<int>(a < 0 ? a + rank : a));
  if (axes.empty()) {
    if (op.Int("noop_with_empty_axes") != 0) return std::nullopt;
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

std::string QueryReduction(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const auto axes = AxesOf(*node.op);
  if (!axes) return "axes that are not known or none";
  const int rank = node.op->input(0).rank();
  if (rank == 0) return "a scalar";
  for (size_t i = 0; i < axes->size(); ++i) {
    if ((*axes)[i] != rank - static_cast<int>(axes->size() - i)) return "oneDNN reduces other than the last axes with naive loops";
  }
  const double seconds = PerElement(node.machine, static_cast<double>(node.typical->input(0).elements()), 0.15, node.bytes);
  candidates->push_back(MakeCandidate(node, Layout::kPlain, Layout::kPlain, seconds, "jit"));
  return {};
}

class ReductionRecipe final : public Recipe {
 public:
  using Recipe::Recipe;

  Status Build(const OpView& op, bool, Plan* plan) const override {
    const int rank = op.input(0).rank(), kept = rank - static_cast<int>(AxesOf(op)->size());
    const int64_t rows = op.input(0).dims.product(0, kept);
    const int64_t row = op.input(0).dims.product(kept, rank);
    const memory::desc src = DescribePlain({rows, row}), dst = DescribePlain({rows, 1});
    if (row == 1) {  // the library refuses a reduction that reduces nothing
      plan->AddReorder(Place::Input(0), src, Place::Output(0), dst);
      return OkStatus();
    }
    const Primitive::primitive_desc descriptor(Engine(), *AlgorithmOf(op.op()), src, dst, 0.0f, 0.0f, UserScratchpad());
    plan->Add<Primitive::primitive_desc, Primitive>(descriptor,
                                                    {{DNNL_ARG_SRC, Place::Input(0), src}, {DNNL_ARG_DST, Place::Output(0), dst}});
    return OkStatus();
  }
  bool drops_nan() const override { return IsExtreme(); }
  bool begins_finite() const override { return IsExtreme(); }

 private:
  bool IsExtreme() const { return op().op() == "ReduceMax" || op().op() == "ReduceMin"; }
};

constexpr Rule Reduction(std::string_view op) { return {"", op, QueryReduction, CompileAs<ReductionRecipe>}; }
constexpr Rule kReductionRules[] = {Reduction("ReduceSum"), Reduction("ReduceMean"), Reduction("ReduceMax"), Reduction("ReduceMin"),
                                    Reduction("ReduceProd")};

}  // namespace

std::span<const Rule> ReductionRules() { return kReductionRules; }

}  // namespace msrt::onednn

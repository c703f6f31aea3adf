#include "delegates/onednn/onednn.h"

#include "core/base/str_cat.h"
#include "delegates/onednn/library.h"
#include "delegates/onednn/recipe.h"
#include "delegates/sdk/piece.h"

namespace msrt {
namespace {

using namespace sdk;

using onednn::Recipe;
using onednn::Rule;

const Rule* FindRule(const OpView& op) {
  static constexpr std::span<const Rule> (*kFamilies[])() = {
      onednn::ConvolutionRules,
      onednn::TransposedConvolutionRules,
      onednn::ConvolutionWeightGradRules,
      onednn::MatMulRules,
      onednn::ResamplingRules,
      onednn::RecurrentRules,
      onednn::IntegerMatMulRules,
      onednn::IntegerConvolutionRules,
  };
  for (const auto family : kFamilies) {
    for (const Rule& rule : family()) {
      if (rule.op == op.op() && rule.domain == op.domain()) return &rule;
    }
  }
  return nullptr;
}

// Checks the requirements of every family: ranks, concrete typical shapes, data of the rule's
// types.
std::string TypeRefusal(const NodeInfo& node, const Rule& rule) {
  const auto check = [&](const Type& declared, const Type& typical) -> std::string {
    const bool rank_known = declared.is_tensor() && (declared.rank_known || rule.one_rank);
    if (!rank_known || !typical.concrete())
      return "the rank or typical shape of a tensor is not known";
    if (rule.types.Has(declared.dtype)) return {};
    const bool admitted = kIndexTypes.Has(declared.dtype) ||
                          declared.dtype == DType::kBool;  // indices, shapes, masks
    if (!IsFloat(declared.dtype))
      return admitted ? std::string() : StrCat("elements of type ", declared.dtype);
    return StrCat("elements of type ", declared.dtype, ": computed in f32 only");
  };
  for (size_t i = 0; i < node.op->input_count(); ++i) {
    if (!node.op->has_input(i)) continue;
    if (std::string reason = check(node.op->input(i), node.typical->input(i)); !reason.empty())
      return reason;
  }
  for (size_t o = 0; o < node.op->output_count(); ++o) {
    if (!node.op->has_output(o)) continue;
    if (std::string reason = check(node.op->output(o), node.typical->output(o)); !reason.empty())
      return reason;
  }
  if (!node.op->has_input(0) || !rule.types.Has(node.op->input(0).dtype))
    return StrCat("the data is not ", rule.types.Names());
  return {};
}

class OneDnnDelegate final : public Delegate {
 public:
  explicit OneDnnDelegate(const Evaluator& fallback) : fallback_(fallback) {}
  const char* name() const override { return "onednn"; }
  uint32_t native_types() const override {
    return onednn::SumsBytesExactly() ? uint32_t{1} << static_cast<int>(DType::kI8) : 0;
  }

  void Query(const GraphView& graph, QueryResult* out) const override {
    std::vector<Candidate> candidates;
    for (size_t n = 0; n < graph.node_count(); ++n) {
      const NodeInfo node = graph.node(n);
      candidates.clear();
      std::string reason;
      const Rule* rule = FindRule(*node.op);
      if (rule == nullptr) reason = "oneDNN has no primitive for this op";
      if (reason.empty()) reason = TypeRefusal(node, *rule);
      if (reason.empty()) reason = sdk::PieceRefusal(*node.op, rule->local_attrs);
      if (reason.empty()) reason = rule->query(node, &candidates);
      if (!reason.empty()) out->refusals.push_back({static_cast<uint32_t>(n), std::move(reason)});
      for (Candidate& c : candidates) {
        c.node = static_cast<uint32_t>(n);
        out->candidates.push_back(std::move(c));
      }
    }
  }

  Result<std::unique_ptr<Kernel>> Compile(const GraphView& graph, const Candidate& candidate,
                                          const CompileContext& context) const override {
    const NodeInfo node = graph.node(candidate.node);
    const Rule* rule = FindRule(*node.op);
    if (rule == nullptr)
      return InternalError("onednn: asked to compile ", node.op->op(), ", which it refused");
    try {
      MSRT_ASSIGN_OR_RETURN(std::shared_ptr<const Recipe> recipe,
                            rule->compile(node, candidate, context));
      return onednn::MakeKernel(std::move(recipe), fallback_, rule->local_attrs);
    } catch (const dnnl::error& error) {
      return onednn::FromError(error, *node.typical);
    }
  }

 private:
  const Evaluator& fallback_;
};

}  // namespace

std::unique_ptr<sdk::Delegate> MakeOneDnnDelegate(const Evaluator& fallback) {
  return std::make_unique<OneDnnDelegate>(fallback);
}

}  // namespace msrt

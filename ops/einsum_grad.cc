// Gradient of Einsum: for each operand, the Einsum of the output's gradient with the other
// operands.
#include "ops/einsum.h"

#include <algorithm>

#include "ops/grad_positions.h"
#include "ops/gradients.h"

namespace msrt {
namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

// The term of an equation for a list of indices.
std::string TermOf(const std::vector<int>& indices) {
  std::string term;
  for (int i : indices) term += kLetters[static_cast<size_t>(i)];
  return term;
}

// The equation and inputs of the gradient of one operand.
class OperandGradient {
 public:
  OperandGradient(GradBuilder& g, const EinsumPlan& plan, size_t operand)
      : g_(g), plan_(plan), operand_(operand), next_index_(plan.index_count()) {}

  Result<ValueId> Build() {
    std::vector<int> output(static_cast<size_t>(plan_.output_rank));
    for (int i = 0; i < plan_.output_rank; ++i) output[static_cast<size_t>(i)] = i;
    AddInput(g_.grad(), output);
    for (size_t o = 0; o < plan_.operands.size(); ++o) {
      if (o != operand_) AddInput(g_.input(o), plan_.operands[o]);
    }
    MSRT_RETURN_IF_ERROR(NameRepeated());
    // An index that nothing else has was only summed: its gradient is the same everywhere. So it is
    // along an index that others have with an extent of 1.
    std::vector<int> present;
    std::vector<int64_t> missing;
    bool expand = false;
    for (size_t d = 0; d < own_.size(); ++d) {
      const bool named = terms_.find(TermOf({own_[d]})) != std::string::npos;
      if (named) present.push_back(own_[d]);
      else missing.push_back(static_cast<int64_t>(d));
      expand = expand || !named || !IsWhole(own_[d]);
    }
    ValueId v = g_.Add("Einsum", inputs_, {{"equation", StrCat(terms_, "->", TermOf(present))}});
    const ValueId x = g_.input(operand_);
    if (!missing.empty()) v = WithAxes(g_, v, std::move(missing));
    if (expand) v = g_.ExpandTo(v, x);
    return g_.SumTo(v, x);
  }

 private:
  void AddInput(ValueId v, const std::vector<int>& indices) {
    terms_ = StrCat(terms_, inputs_.empty() ? "" : ",", TermOf(indices));
    inputs_.push_back(v);
  }

  // Whether an input of the gradient is known to have all of an index.
  bool IsWhole(int index) const {
    if (index < plan_.output_rank || index >= plan_.index_count()) return true;
    const int64_t extent = plan_.extents[static_cast<size_t>(index)];
    for (size_t o = 0; o < plan_.operands.size(); ++o) {
      for (size_t d = 0; o != operand_ && d < plan_.operands[o].size(); ++d) {
        const int64_t dim = g_.op().input(o).dims[static_cast<int>(d)];
        if (plan_.operands[o][d] == index && IsKnown(dim) && dim == extent) return true;
      }
    }
    return false;
  }

  // An operand that repeats an index has its diagonal read. The repetitions become indices of their
  // own, tied to the first by an identity matrix.
  Status NameRepeated() {
    const ValueId x = g_.input(operand_);
    const Dims dims = g_.type(x).dims;
    for (size_t d = 0; d < plan_.operands[operand_].size(); ++d) {
      const int index = plan_.operands[operand_][d];
      if (std::find(own_.begin(), own_.end(), index) == own_.end()) {
        own_.push_back(index);
        continue;
      }
      if (static_cast<size_t>(next_index_) == kLetters.size())
        return Unsupported("the gradient has more than ", kLetters.size(), " indices");
      if (dims[static_cast<int>(d)] != plan_.extents[static_cast<size_t>(index)])
        return Unsupported("a dim that repeats an index broadcasts, which has no gradient");
      const int axis = static_cast<int>(d);
      const ValueId square = ZerosOfDims(g_, DimList(g_).Add(x, axis).Add(x, axis), x);
      AddInput(g_.Add("EyeLike", {square}), {index, next_index_});
      own_.push_back(next_index_++);
    }
    return OkStatus();
  }

  GradBuilder& g_;
  const EinsumPlan& plan_;
  const size_t operand_;
  int next_index_;
  std::vector<ValueId> inputs_;
  std::string terms_;
  std::vector<int> own_;  // the index of each dim of the operand
};

}  // namespace

Status GradEinsum(GradBuilder& g) {
  std::vector<const Type*> operands;
  for (size_t i = 0; i < g.op().input_count(); ++i) {
    if (!g.op().input(i).rank_known)
      return Unsupported("the rank of input ", i, " is not known; declare it");
    operands.push_back(&g.op().input(i));
  }
  MSRT_ASSIGN_OR_RETURN(const EinsumPlan plan, PlanEinsum(g.op().String("equation"), operands));
  if (static_cast<size_t>(plan.index_count()) > kLetters.size())
    return Unsupported("has more than ", kLetters.size(), " indices");
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!g.wants(i)) continue;
    MSRT_ASSIGN_OR_RETURN(const ValueId gradient, OperandGradient(g, plan, i).Build());
    g.Set(i, gradient);
  }
  return OkStatus();
}

}  // namespace msrt

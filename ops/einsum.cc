// Einsum: a product of tensors whose axes are named, summed over the names that the output lacks.
#include "ops/einsum.h"

#include <algorithm>
#include <map>
#include <string>

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

// In a term of the equation, an ellipsis is stored as one dot.
constexpr char kEllipsis = '.';

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

struct Equation {
  std::vector<std::string> terms;
  std::string output;
  bool has_output = false;
};

// A term consists of letters and at most one ellipsis.
Result<std::string> ParseTerm(std::string_view text) {
  std::string term;
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsLetter(text[i])) {
      term += text[i];
    } else if (text.substr(i).starts_with("...") && term.find(kEllipsis) == std::string::npos) {
      term += kEllipsis;
      i += 2;
    } else {
      return InvalidModel("equation: '", text, "' must be letters and at most one '...'");
    }
  }
  return term;
}

// Returns the output of the implicit form: the ellipsis, then the letters that occur once, in the
// order of their codes.
std::string ImplicitOutput(std::span<const std::string> terms) {
  std::map<char, int> counts;
  bool ellipsis = false;
  for (const std::string& term : terms) {
    for (char c : term) {
      if (c == kEllipsis) ellipsis = true;
      else ++counts[c];
    }
  }
  std::string output(ellipsis ? 1 : 0, kEllipsis);
  for (const auto& [letter, count] : counts) {
    if (count == 1) output += letter;
  }
  return output;
}

Result<Equation> ParseEquation(std::string_view text, size_t operand_count) {
  std::string packed;
  std::copy_if(text.begin(), text.end(), std::back_inserter(packed),
               [](char c) { return c != ' '; });
  Equation equation;
  const size_t arrow = packed.find("->");
  std::string_view left = std::string_view(packed).substr(0, arrow);
  for (bool more = true; more;) {
    const size_t comma = left.find(',');
    MSRT_ASSIGN_OR_RETURN(std::string term, ParseTerm(left.substr(0, comma)));
    equation.terms.push_back(std::move(term));
    more = comma != std::string_view::npos;
    if (more) left.remove_prefix(comma + 1);
  }
  if (equation.terms.size() != operand_count) {
    return InvalidModel("equation '", text, "' has ", equation.terms.size(), " terms for ",
                        operand_count, " inputs");
  }
  if (arrow == std::string::npos) {
    equation.output = ImplicitOutput(equation.terms);
    return equation;
  }
  MSRT_ASSIGN_OR_RETURN(equation.output, ParseTerm(std::string_view(packed).substr(arrow + 2)));
  for (size_t i = 0; i < equation.output.size(); ++i) {
    const char c = equation.output[i];
    const auto has = [c](const std::string& term) { return term.find(c) != std::string::npos; };
    if (equation.output.find(c, i + 1) != std::string::npos)
      return InvalidModel("equation: the output names '", std::string(1, c), "' twice");
    if (c != kEllipsis && std::none_of(equation.terms.begin(), equation.terms.end(), has)) {
      return InvalidModel("equation: no input has the index '", std::string(1, c),
                          "' of the output");
    }
  }
  return equation;
}

// Numbers the indices in the order of the output, then of the terms.
class Planner {
 public:
  Planner(const Equation& equation, std::span<const Type* const> operands)
      : equation_(equation), operands_(operands) {}

  Result<EinsumPlan> Run() {
    MSRT_RETURN_IF_ERROR(FindEllipsisRank());
    AddIndices(equation_.output);
    plan_.output_rank = plan_.index_count();
    for (const std::string& term : equation_.terms) AddIndices(term);
    for (size_t o = 0; o < operands_.size(); ++o) MSRT_RETURN_IF_ERROR(AddOperand(o));
    return std::move(plan_);
  }

 private:
  Status FindEllipsisRank() {
    for (size_t o = 0; o < operands_.size(); ++o) {
      const std::string& term = equation_.terms[o];
      const bool ellipsis = term.find(kEllipsis) != std::string::npos;
      const int letters = static_cast<int>(term.size()) - (ellipsis ? 1 : 0),
                rank = operands_[o]->rank();
      if (ellipsis ? rank < letters : rank != letters) {
        return InvalidModel("input ", o, " has shape ", operands_[o]->dims, ", the equation names ",
                            letters, " of its dims");
      }
      if (ellipsis) ellipsis_rank_ = std::max(ellipsis_rank_, rank - letters);
    }
    return OkStatus();
  }

  void AddIndices(const std::string& term) {
    for (char c : term) {
      if (first_.count(c) != 0) continue;
      first_[c] = plan_.index_count();
      plan_.extents.insert(plan_.extents.end(),
                           c == kEllipsis ? static_cast<size_t>(ellipsis_rank_) : 1, 1);
    }
  }

  // The dims of an ellipsis align at its end, as everywhere in broadcasting.
  Status AddOperand(size_t o) {
    const std::string& term = equation_.terms[o];
    const Type& type = *operands_[o];
    const int in_ellipsis = type.rank() - static_cast<int>(term.size()) + 1;
    std::vector<int>& indices = plan_.operands.emplace_back();
    for (char c : term) {
      const int count = c == kEllipsis ? in_ellipsis : 1,
                skipped = c == kEllipsis ? ellipsis_rank_ - in_ellipsis : 0;
      for (int i = 0; i < count; ++i) indices.push_back(first_[c] + skipped + i);
    }
    for (size_t d = 0; d < indices.size(); ++d) {
      int64_t& extent = plan_.extents[static_cast<size_t>(indices[d])];
      const int64_t dim = type.dims[static_cast<int>(d)];
      if (extent == 1 || extent == dim) extent = dim;
      else if (IsKnown(extent) && IsKnown(dim) && dim != 1) {
        return InvalidModel("dim ", d, " of input ", o, " is ", dim, ", but ", extent,
                            " where the equation names it elsewhere");
      } else if (!IsKnown(extent)) {
        extent = dim == 1 || !IsKnown(dim) ? kUnknownDim : dim;
      }
    }
    return OkStatus();
  }

  const Equation& equation_;
  std::span<const Type* const> operands_;
  int ellipsis_rank_ = 0;
  std::map<char, int> first_;  // index of a letter, or the first of the ellipsis
  EinsumPlan plan_;
};

}  // namespace

Result<EinsumPlan> PlanEinsum(std::string_view equation, std::span<const Type* const> operands) {
  MSRT_ASSIGN_OR_RETURN(const Equation parsed, ParseEquation(equation, operands.size()));
  return Planner(parsed, operands).Run();
}

Result<int> EinsumOutputRank(std::string_view equation, size_t operand_count) {
  MSRT_ASSIGN_OR_RETURN(const Equation parsed, ParseEquation(equation, operand_count));
  return parsed.output.find(kEllipsis) != std::string::npos
             ? -1
             : static_cast<int>(parsed.output.size());
}

namespace {

Result<EinsumPlan> PlanOf(const OpView& op) {
  std::vector<const Type*> operands;
  for (size_t i = 0; i < op.input_count(); ++i) operands.push_back(&op.input(i));
  return PlanEinsum(op.String("equation"), operands);
}

Status InferEinsum(InferContext& c) {
  const DType dtype = c.dtype(0);
  const size_t count = c.op().input_count();
  MSRT_ASSIGN_OR_RETURN(const int rank, EinsumOutputRank(c.op().String("equation"), count));
  if (rank > kMaxRank)
    return InvalidModel("equation: the output would have ", rank, " dims, at most ", kMaxRank,
                        " are allowed");
  for (size_t i = 0; i < count; ++i) {
    if (c.input(i).rank_known) continue;
    c.SetOutput(0, rank < 0 ? Type::UnrankedTensor(dtype)
                            : Type::Tensor(dtype, Dims::Filled(rank, kUnknownDim)));
    return OkStatus();
  }
  MSRT_ASSIGN_OR_RETURN(const EinsumPlan plan, PlanOf(c.op()));
  if (plan.output_rank > kMaxRank)
    return InvalidModel("the output would have ", plan.output_rank, " dims, at most ", kMaxRank);
  c.SetOutput(0, dtype, Dims(std::span(plan.extents).first(static_cast<size_t>(plan.output_rank))));
  return OkStatus();
}

// A product and a sum for each point of all indices.
Cost CostEinsum(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  const auto plan = PlanOf(op);
  if (!plan.ok()) return cost;
  cost.flops = 2.0 * static_cast<double>(op.input_count());
  for (int64_t extent : plan->extents) cost.flops *= static_cast<double>(extent);
  return cost;
}

// One axis for each index; those that the output lacks are summed.
Status ResolveEinsum(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const EinsumPlan plan, PlanOf(op));
  if (plan.index_count() > Box::kMaxAxes)
    return Unsupported("cannot be cut: it has more than ", Box::kMaxAxes, " indices");
  for (int i = 0; i < plan.index_count(); ++i) {
    const int64_t extent = plan.extents[static_cast<size_t>(i)];
    if (i < plan.output_rank) space->axes.Add(AxisKind::kParallel, extent);
    else space->axes.Add(AxisKind::kReduce, extent, Monoid::kSum);
  }
  for (size_t o = 0; o < op.input_count(); ++o) {
    const Dims& dims = op.input(o).dims;
    for (int d = 0; d < dims.rank(); ++d) {
      const int index = plan.operands[o][static_cast<size_t>(d)];
      const bool repeated = dims[d] == 1 && plan.extents[static_cast<size_t>(index)] != 1;
      if (!repeated) space->inputs[o].dims[static_cast<size_t>(d)] = DimMap::Same(index, dims[d]);
    }
  }
  space->outputs[0] = TensorMap::Same(op.output(0).dims);
  return OkStatus();
}

constexpr SpaceDef kEinsumSpace{.resolve = ResolveEinsum};
constexpr AttrDef kEinsumAttrs[] = {
    {.name = "equation", .kind = AttrKind::kString, .required = true}};
constexpr ParamDef kEinsumInputs[] = {{"inputs", kNumberTypes, ParamDef::kVariadic, 1}};

constexpr OpDef kEinsumOps[] = {
    {.name = "Einsum",
     .attrs = kEinsumAttrs,
     .inputs = kEinsumInputs,
     .infer = InferEinsum,
     .grad = GradEinsum,
     .space = &kEinsumSpace,
     .cost = CostEinsum},
};

}  // namespace

std::span<const OpDef> EinsumOps() { return kEinsumOps; }

}  // namespace msrt

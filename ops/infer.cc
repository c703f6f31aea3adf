#include "ops/infer.h"
#include "core/base/countable.h"

#include <algorithm>

namespace msrt {
namespace {

Status CheckInputCount(const OpDef& def, const OpView& op) {
  const bool variadic = !def.inputs.empty() && def.inputs.back().kind >= ParamDef::kVariadic;
  if (!variadic && op.input_count() > def.inputs.size()) {
    return InvalidModel("has ", op.input_count(), " inputs, at most ", def.inputs.size(),
                        " are allowed");
  }
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    const bool may_be_missing =
        def.inputs[i].kind == ParamDef::kOptional || def.inputs[i].kind == ParamDef::kRest;
    if (!may_be_missing && !op.has_input(i))
      return InvalidModel("input ", i, " '", def.inputs[i].name, "' is missing");
  }
  for (size_t i = def.inputs.size(); i < op.input_count(); ++i) {
    if (!op.has_input(i)) return InvalidModel("input ", i, " of a variadic list is left out");
  }
  return OkStatus();
}

Status CheckInputTypes(const OpDef& def, const OpView& op) {
  DType of_group[8] = {};
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (!op.has_input(i)) continue;
    const ParamDef& param = def.inputs[std::min(i, def.inputs.size() - 1)];
    const Type& type = op.input(i);
    if (param.kind == ParamDef::kRest) continue;
    if (param.list) {
      if (type.kind != TypeKind::kList)
        return InvalidModel("input ", i, " '", param.name, "' is ", type, ", must be a list");
      continue;
    }
    if (!type.is_tensor())
      return InvalidModel("input ", i, " '", param.name, "' is a ", type, ", must be a tensor");
    if (!param.types.Has(type.dtype)) {
      return InvalidModel("input ", i, " '", param.name, "' has element type ", type.dtype,
                          ", must be one of ", param.types.Names());
    }
    if (param.group == 0) continue;
    DType& group = of_group[param.group];
    if (group == DType::kNone) group = type.dtype;
    if (group != type.dtype) {
      return InvalidModel("input ", i, " '", param.name, "' has element type ", type.dtype,
                          ", must be ", group, " like the inputs before it");
    }
  }
  return OkStatus();
}

Status CheckOutputs(std::span<const Type> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Type& t = outputs[i];
    if (t.is_tensor() && t.rank_known && !IsCountable(t.dims)) {
      return InvalidModel("output ", i, " would have dims ", t.dims,
                          ", which is more than 2^56 elements");
    }
  }
  return OkStatus();
}

// Whether sizes can be computed from data now: it is known and small. Larger data waits for the
// run, since untrusted files are validated too.
bool HasSmallData(const OpDef& def, const OpView& op) {
  constexpr int64_t kMaxReadElements = 256;
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (!op.has_input(i) || (def.sizes->inputs >> i & 1) == 0) continue;
    if (op.constant(i) == nullptr || op.constant(i)->dims.elements() > kMaxReadElements)
      return false;
  }
  return true;
}

}  // namespace

Status GradPending(GradBuilder&) {
  return Unsupported("the gradient of this op is not written yet");
}

Cost CostOfTraffic(const OpView& op) {
  Cost cost;
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (op.has_input(i)) cost.bytes_read += static_cast<double>(op.input(i).bytes());
  }
  for (size_t i = 0; i < op.output_count(); ++i) {
    if (!op.has_output(i)) continue;
    cost.bytes_written += static_cast<double>(op.output(i).bytes());
    cost.flops += static_cast<double>(op.output(i).elements());
  }
  return cost;
}

Status InferTypes(const OpDef& def, const OpView& op, std::span<Type> outputs, bool check_attrs) {
  if (check_attrs) MSRT_RETURN_IF_ERROR(CheckAttrs(op.attrs(), def.attrs));
  MSRT_RETURN_IF_ERROR(CheckInputCount(def, op));
  MSRT_RETURN_IF_ERROR(CheckInputTypes(def, op));
  const int count = static_cast<int>(outputs.size());
  if (count < def.min_outputs || count > def.max_outputs) {
    return InvalidModel("has ", count, " outputs, must have ", def.min_outputs, " to ",
                        def.max_outputs);
  }
  InferContext context(op, outputs);
  MSRT_RETURN_IF_ERROR(def.infer(context));
  if (def.sizes != nullptr && HasSmallData(def, op))
    MSRT_RETURN_IF_ERROR(def.sizes->fill(op, outputs));
  return CheckOutputs(outputs);
}

Status SizeFromData(const OpDef& def, const OpView& op, std::span<Type> outputs) {
  InferContext context(op, outputs);
  MSRT_RETURN_IF_ERROR(def.infer(context));
  MSRT_RETURN_IF_ERROR(def.sizes->fill(op, outputs));
  return CheckOutputs(outputs);
}

Result<Dims> BroadcastDims(const Dims& a, const Dims& b) {
  const int rank = std::max(a.rank(), b.rank());
  Dims out = Dims::Filled(rank, 1);
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const int64_t x = ia < 0 ? 1 : a[ia], y = ib < 0 ? 1 : b[ib];
    if (x == y) out[i] = x;
    else if (x == 1) out[i] = y;
    else if (y == 1) out[i] = x;
    else if (IsKnown(x) && IsKnown(y))
      return InvalidModel("shapes ", a, " and ", b, " do not broadcast: ", x, " against ", y);
    else if (IsKnown(x)) out[i] = x;  // the other must turn out to be x or 1
    else if (IsKnown(y)) out[i] = y;
    else out[i] = kUnknownDim;
  }
  return out;
}

Status CheckBroadcastsTo(const Dims& from, const Dims& to, std::string_view what) {
  bool fits = from.rank() <= to.rank();
  for (int i = 0; fits && i < from.rank(); ++i) {
    const int64_t x = from[i], y = to[to.rank() - from.rank() + i];
    fits = x == 1 || !IsKnown(x) || !IsKnown(y) || x == y;
  }
  if (!fits) return InvalidModel(what, " has shape ", from, ", which does not broadcast to ", to);
  return OkStatus();
}

Status InferBroadcast(InferContext& c, DType dtype) {
  Dims dims;
  for (size_t i = 0; i < c.op().input_count(); ++i) {
    if (!c.has_input(i)) continue;
    if (!c.input(i).rank_known) {
      c.SetOutput(0, Type::UnrankedTensor(dtype));
      return OkStatus();
    }
    MSRT_ASSIGN_OR_RETURN(dims, BroadcastDims(dims, c.dims(i)));
  }
  c.SetOutput(0, dtype, dims);
  return OkStatus();
}

Status InferSameAsFirst(InferContext& c) {
  c.SetOutput(0, c.input(0));
  return OkStatus();
}

Result<int> NormalizeAxis(int64_t axis, int rank, std::string_view what) {
  if (axis < -rank || axis >= rank)
    return InvalidModel(what, " = ", axis, ", must be in [", -rank, ", ", rank - 1, "] for rank ",
                        rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<std::vector<int>> NormalizeAxes(std::span<const int64_t> axes, int rank,
                                       std::string_view what) {
  std::vector<int> out;
  for (int64_t axis : axes) {
    MSRT_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, rank, what));
    if (std::find(out.begin(), out.end(), a) != out.end())
      return InvalidModel(what, " names axis ", a, " twice");
    out.push_back(a);
  }
  return out;
}

std::optional<std::vector<int64_t>> IntsAttrOrInput(const OpView& op, std::string_view attr,
                                                    size_t input) {
  if (op.Has(attr)) {
    const auto values = op.Ints(attr);
    return std::vector<int64_t>(values.begin(), values.end());
  }
  if (!op.has_input(input)) return std::vector<int64_t>();
  if (const ConstTensor* value = op.constant(input)) return IntValues(*value);
  return std::nullopt;
}

Result<std::optional<int64_t>> IntAttrOrInput(const OpView& op, std::string_view attr,
                                              size_t input) {
  MSRT_RETURN_IF_ERROR(RefuseAttrAndInput(op, attr, input));
  if (op.Has(attr)) return std::optional(op.Int(attr));
  if (!op.has_input(input))
    return InvalidModel("'", attr, "' is missing: give it as an attribute or as input ", input);
  const Type& type = op.input(input);
  if (type.concrete() && type.elements() != 1) {
    return InvalidModel("input ", input, " '", attr, "' has shape ", type.dims,
                        ", must have one element");
  }
  if (const ConstTensor* value = op.constant(input)) return std::optional(IntValues(*value)[0]);
  return std::optional<int64_t>();
}

Status RefuseAttrAndInput(const OpView& op, std::string_view attr, size_t input) {
  if (!op.Has(attr) || !op.has_input(input)) return OkStatus();
  return InvalidModel("'", attr, "' is given both as an attribute and as input ", input,
                      ": leave one out");
}

Status CheckListAttrOrInput(const OpView& op, std::string_view attr, size_t input, bool required) {
  MSRT_RETURN_IF_ERROR(RefuseAttrAndInput(op, attr, input));
  if (!op.has_input(input)) {
    if (required && !op.Has(attr))
      return InvalidModel("'", attr, "' is missing: give it as an attribute or as input ", input);
    return OkStatus();
  }
  const Type& type = op.input(input);
  if (type.rank_known && type.rank() > 1)
    return InvalidModel("input ", input, " '", attr, "' has shape ", type.dims, ", must be a list");
  return OkStatus();
}

Status CheckRank(const InferContext& c, size_t input, int rank) {
  if (!c.input(input).rank_known || c.input(input).rank() == rank) return OkStatus();
  return InvalidModel("input ", input, " has shape ", c.dims(input), ", must have rank ", rank);
}

bool MayBeOneElement(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d == 1 || !IsKnown(d); });
}

Result<int64_t> SameDim(int64_t a, int64_t b, std::string_view what) {
  if (IsKnown(a) && IsKnown(b) && a != b) return InvalidModel(what, ": ", a, " against ", b);
  return IsKnown(a) ? a : b;
}

}  // namespace msrt

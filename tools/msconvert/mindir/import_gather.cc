// Gathers and scatters.
#include "tools/msconvert/mindir/import_rule.h"

namespace msrt::mindir_import {
namespace {

Result<ValueId> IndexTensor(PrimitiveCall& call, std::string_view argument) {
  MSRT_ASSIGN_OR_RETURN(const ValueId indices, call.Tensor(argument));
  return kIndexTypes.Has(call.type(indices).dtype) ? Result<ValueId>(indices)
                                                   : call.Cast(indices, DType::kI64);
}

Status Gather(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("params"));
  MSRT_ASSIGN_OR_RETURN(const ValueId indices, IndexTensor(call, "indices"));
  MSRT_ASSIGN_OR_RETURN(const int64_t axis, call.Int("axis", 0));
  MSRT_ASSIGN_OR_RETURN(const int64_t batch, call.Int("batch_dims", 0));
  if (batch != 0) return Unsupported("argument 'batch_dims' = ", batch, " is not supported");
  return call.SetResult(call.Add("Gather", {x, indices}, {{"axis", axis}}));
}

Status GatherElements(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("x"));
  MSRT_ASSIGN_OR_RETURN(const ValueId indices, IndexTensor(call, "index"));
  MSRT_ASSIGN_OR_RETURN(const int64_t axis, call.Int("dim"));
  return call.SetResult(call.Add("GatherElements", {x, indices}, {{"axis", axis}}));
}

Status GatherNd(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("x"));
  MSRT_ASSIGN_OR_RETURN(const ValueId indices, IndexTensor(call, "indices"));
  return call.SetResult(call.Add("GatherND", {x, indices}));
}

// Updates of the same element add up.
Status ScatterNd(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId indices, IndexTensor(call, "indices"));
  MSRT_ASSIGN_OR_RETURN(const ValueId updates, call.Tensor("updates"));
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, call.Ints("shape"));
  MSRT_ASSIGN_OR_RETURN(
      const ValueId zeros,
      call.Add("Expand", {call.Number(call.type(updates).dtype, 0)}, {{"shape", shape}}));
  return call.SetResult(
      call.Add("ScatterND", {zeros, indices, updates}, {{"reduction", std::string("add")}}));
}

Status TensorScatter(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const ValueId indices, IndexTensor(call, "indices"));
  MSRT_ASSIGN_OR_RETURN(const ValueId updates, call.Tensor("updates"));
  return call.SetResult(
      call.Add("ScatterND", {x, indices, updates}, {{"reduction", std::string(call.target())}}));
}

Status ScatterElements(PrimitiveCall& call) {
  constexpr std::string_view kWays[] = {"NONE", "ADD"};
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("data"));
  MSRT_ASSIGN_OR_RETURN(const ValueId indices, IndexTensor(call, "indices"));
  MSRT_ASSIGN_OR_RETURN(const ValueId updates, call.Tensor("updates"));
  MSRT_ASSIGN_OR_RETURN(const int64_t axis, call.Int("axis", 0));
  MSRT_ASSIGN_OR_RETURN(const std::string way, call.Choice("reduce", kWays, "NONE"));
  if (way != "NONE" && way != "ADD")
    return Unsupported("argument 'reduce' = ", way, " is not supported");
  return call.SetResult(
      call.Add("ScatterElements", {x, indices, updates},
               {{"axis", axis}, {"reduction", std::string(way == "ADD" ? "add" : "none")}}));
}

Status OneHot(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId indices, IndexTensor(call, "indices"));
  MSRT_ASSIGN_OR_RETURN(const int64_t depth, call.Int("depth"));
  MSRT_ASSIGN_OR_RETURN(ValueId on, call.Tensor("on_value"));
  MSRT_ASSIGN_OR_RETURN(ValueId off, call.Tensor("off_value"));
  MSRT_ASSIGN_OR_RETURN(const int64_t axis, call.Int("axis", -1));
  // A negative index selects nothing; in ONNX it would count from the end.
  MSRT_ASSIGN_OR_RETURN(const ValueId negative,
                        call.Add("Less", {indices, call.Number(call.type(indices).dtype, 0)}));
  MSRT_ASSIGN_OR_RETURN(
      const ValueId beyond,
      call.Add(
          "Where",
          {negative, call.Number(call.type(indices).dtype, static_cast<double>(depth)), indices}));
  MSRT_ASSIGN_OR_RETURN(on, call.Add("Reshape", {on}, {{"shape", std::vector<int64_t>{1}}}));
  MSRT_ASSIGN_OR_RETURN(off, call.Cast(off, call.type(on).dtype));
  MSRT_ASSIGN_OR_RETURN(off, call.Add("Reshape", {off}, {{"shape", std::vector<int64_t>{1}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId values,
                        call.Add("Concat", {off, on}, {{"axis", int64_t{0}}}));
  return call.SetResult(
      call.Add("OneHot", {beyond, kNoValue, values}, {{"axis", axis}, {"depth", depth}}));
}

// MindSpore has one row for each element that is not zero, ONNX one column.
Status NonZero(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("x"));
  MSRT_ASSIGN_OR_RETURN(const ValueId columns, call.Add("NonZero", {x}));
  return call.SetResult(call.Add("Transpose", {columns}, {{"perm", std::vector<int64_t>{1, 0}}}));
}

constexpr Rule kGatherRules[] = {
    {"Gather", "params indices axis batch_dims", Gather},
    {"GatherV2", "params indices axis batch_dims", Gather},
    {"EmbeddingLookup", "params indices axis", Gather},
    {"Embedding", "indices params padding_idx", Gather},
    {"IndexSelect", "params axis indices", Gather},
    {"GatherD", "x dim index", GatherElements},
    {"GatherNd", "x indices", GatherNd},
    {"ScatterNd", "indices updates shape", ScatterNd},
    {"TensorScatterUpdate", "input indices updates", TensorScatter, "none"},
    {"TensorScatterAdd", "input indices updates", TensorScatter, "add"},
    {"TensorScatterMul", "input indices updates", TensorScatter, "mul"},
    {"TensorScatterMax", "input indices updates", TensorScatter, "max"},
    {"TensorScatterMin", "input indices updates", TensorScatter, "min"},
    {"TensorScatterElements", "data indices updates axis reduce", ScatterElements},
    {"NonZero", "x", NonZero},
    {"OneHot", "indices depth on_value off_value axis", OneHot},
};

}  // namespace

std::span<const Rule> GatherRules() { return kGatherRules; }

}  // namespace msrt::mindir_import

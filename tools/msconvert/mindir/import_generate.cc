// Tensors from numbers: constants of a shape, ranges, unit matrices.
#include <algorithm>

#include "tools/msconvert/mindir/import_rule.h"

namespace msrt::mindir_import {
namespace {

Result<DType> TypeWanted(PrimitiveCall& call, DType otherwise) {
  if (call.declared().kind == ItemKind::kTensor) return call.declared().type.dtype;
  return call.Has("dtype") ? call.ElementType("dtype") : Result<DType>(otherwise);
}

Status Filled(PrimitiveCall& call, ValueId value) {
  MSRT_ASSIGN_OR_RETURN(const Item item, call.Get("shape"));
  if (auto known = call.KnownInts(item))
    return call.SetResult(call.Add("Expand", {value}, {{"shape", *std::move(known)}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId shape, call.IntsTensor("shape"));
  return call.SetResult(call.Add("Expand", {value, shape}));
}

Status Fill(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(ValueId value, call.Tensor("value"));
  MSRT_ASSIGN_OR_RETURN(const DType dtype, TypeWanted(call, call.type(value).dtype));
  MSRT_ASSIGN_OR_RETURN(value, call.Cast(value, dtype));
  return Filled(call, value);
}

double NumberOf(const PrimitiveCall& call) { return call.target() == "1" ? 1 : 0; }

Status FilledWithNumber(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const DType dtype, TypeWanted(call, DType::kF32));
  return Filled(call, call.Number(dtype, NumberOf(call)));
}

Status Like(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("x"));
  MSRT_ASSIGN_OR_RETURN(const DType dtype, TypeWanted(call, call.type(x).dtype));
  MSRT_ASSIGN_OR_RETURN(const ValueId shape, call.Add("Shape", {x}));
  return call.SetResult(call.Add("Expand", {call.Number(dtype, NumberOf(call)), shape}));
}

Status Range(PrimitiveCall& call) {
  std::vector<ValueId> inputs;
  for (std::string_view argument : {"start", "end", "step"}) {
    MSRT_ASSIGN_OR_RETURN(const ValueId value, call.Tensor(argument));
    inputs.push_back(value);
  }
  MSRT_ASSIGN_OR_RETURN(const DType dtype, TypeWanted(call, call.type(inputs[0]).dtype));
  for (ValueId& v : inputs) {
    MSRT_ASSIGN_OR_RETURN(v, call.Cast(v, dtype));
  }
  return call.SetResult(call.Add("Range", std::move(inputs)));
}

// `num` numbers from start to stop, both included.
Status LinSpace(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId start, call.Tensor("start"));
  MSRT_ASSIGN_OR_RETURN(const ValueId stop, call.Tensor("stop"));
  MSRT_ASSIGN_OR_RETURN(const int64_t count, call.Int("num"));
  if (count < 1 || count > (int64_t{1} << 24))
    return Unsupported("argument 'num' = ", count, " is not supported");
  const DType dtype = call.type(start).dtype;
  const ValueId parts = call.Number(dtype, static_cast<double>(std::max<int64_t>(1, count - 1)));
  MSRT_ASSIGN_OR_RETURN(const ValueId width, call.Add("Sub", {stop, start}));
  MSRT_ASSIGN_OR_RETURN(const ValueId step, call.Add("Div", {width, parts}));
  const auto number = [&](int64_t v) { return call.Number(DType::kI64, static_cast<double>(v)); };
  MSRT_ASSIGN_OR_RETURN(const ValueId places,
                        call.Add("Range", {number(0), number(count), number(1)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId indices, call.Cast(places, dtype));
  MSRT_ASSIGN_OR_RETURN(const ValueId scaled, call.Add("Mul", {indices, step}));
  return call.SetResult(call.Add("Add", {scaled, start}));
}

Status Eye(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const int64_t rows, call.Int("n"));
  MSRT_ASSIGN_OR_RETURN(const int64_t columns, call.Int("m", rows));
  MSRT_ASSIGN_OR_RETURN(const DType dtype, TypeWanted(call, DType::kF32));
  MSRT_ASSIGN_OR_RETURN(const ValueId zeros,
                        call.Add("Expand", {call.Number(dtype, 0)},
                                 {{"shape", std::vector<int64_t>{rows, columns}}}));
  return call.SetResult(call.Add("EyeLike", {zeros}, {{"dtype", dtype}}));
}

constexpr Rule kGenerateRules[] = {
    {"Fill", "dtype shape value", Fill},
    {"FillV2", "shape value", Fill},
    {"FillScalar", "shape value dtype", Fill},
    {"FillTensor", "shape value dtype", Fill},
    {"Ones", "shape dtype", FilledWithNumber, "1"},
    {"Zeros", "shape dtype", FilledWithNumber, "0"},
    {"OnesLike", "x", Like, "1"},
    {"ZerosLike", "x", Like, "0"},
    {"OnesLikeExt", "x dtype", Like, "1"},
    {"ZerosLikeExt", "x dtype", Like, "0"},
    {"Range", "start end step maxlen", Range},
    {"Arange", "start end step dtype", Range},
    {"LinSpace", "start stop num", LinSpace},
    {"Eye", "n m dtype", Eye},
};

}  // namespace

std::span<const Rule> GenerateRules() { return kGenerateRules; }

}  // namespace msrt::mindir_import

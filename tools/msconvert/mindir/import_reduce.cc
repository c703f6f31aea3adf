// Reductions, softmax, positions of extremes, sorting.
#include "ops/infer.h"
#include "tools/msconvert/mindir/import_rule.h"

namespace msrt::mindir_import {
namespace {

// An absent or empty list means all axes.
Result<AttrList> ReduceAttrs(PrimitiveCall& call, std::string_view axis, std::string_view keep) {
  AttrList attrs;
  if (call.Has(axis)) {
    MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> axes, call.Ints(axis));
    if (!axes.empty()) attrs.Set("axes", std::move(axes));
  }
  MSRT_ASSIGN_OR_RETURN(const bool kept, call.Bool(keep, false));
  attrs.Set("keepdims", int64_t{kept});
  return attrs;
}

Status Reduce(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("x"));
  MSRT_ASSIGN_OR_RETURN(AttrList attrs, ReduceAttrs(call, "axis", "keep_dims"));
  MSRT_ASSIGN_OR_RETURN(const bool skip, call.Bool("skip_mode", false));
  if (skip && attrs.Find("axes") == nullptr) {
    call.SetResult(x);
    return OkStatus();
  }
  return call.SetResult(call.Add(call.target(), {x}, std::move(attrs)));
}

// The form with torch's arguments: a type to compute in.
Status ReduceExt(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(AttrList attrs, ReduceAttrs(call, "dim", "keepdim"));
  if (call.declared().kind == ItemKind::kTensor) {
    MSRT_ASSIGN_OR_RETURN(x, call.Cast(x, call.declared().type.dtype));
  }
  return call.SetResult(call.Add(call.target(), {x}, std::move(attrs)));
}

// "all" and "any" of bools are their least and greatest.
Status ReduceTruth(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(ValueId x, call.Tensor("x"));
  MSRT_ASSIGN_OR_RETURN(AttrList attrs, ReduceAttrs(call, "axis", "keep_dims"));
  MSRT_ASSIGN_OR_RETURN(x, call.Cast(x, DType::kBool));
  return call.SetResult(call.Add(call.target(), {x}, std::move(attrs)));
}

Status Softmax(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int64_t axis, call.Int("axis", -1));
  return call.SetResult(call.Add(call.target(), {x}, {{"axis", axis}}));
}

Status CumSum(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int64_t axis, call.Int("axis"));
  MSRT_ASSIGN_OR_RETURN(const bool exclusive, call.Bool("exclusive", false));
  MSRT_ASSIGN_OR_RETURN(const bool reverse, call.Bool("reverse", false));
  if (call.declared().kind == ItemKind::kTensor) {
    MSRT_ASSIGN_OR_RETURN(x, call.Cast(x, call.declared().type.dtype));
  }
  return call.SetResult(
      call.Add("CumSum", {x},
               {{"axis", axis}, {"exclusive", int64_t{exclusive}}, {"reverse", int64_t{reverse}}}));
}

// Our positions are i64.
Result<ValueId> Positions(PrimitiveCall& call, std::string_view op, ValueId x, int64_t axis,
                          bool keep, DType dtype) {
  MSRT_ASSIGN_OR_RETURN(const ValueId found,
                        call.Add(op, {x}, {{"axis", axis}, {"keepdims", int64_t{keep}}}));
  return call.Cast(found, dtype);
}

Status Arg(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const bool keep, call.Bool("keepdim", false));
  DType dtype = DType::kI64;
  if (call.Has("output_type")) {
    MSRT_ASSIGN_OR_RETURN(dtype, call.ElementType("output_type"));
  }
  int64_t axis = 0;
  if (call.Has("axis")) {
    MSRT_ASSIGN_OR_RETURN(axis, call.Int("axis"));
  } else {  // over the whole tensor
    MSRT_ASSIGN_OR_RETURN(x, call.Add("Reshape", {x}, {{"shape", std::vector<int64_t>{-1}}}));
  }
  return call.SetResult(Positions(call, call.target(), x, axis, keep, dtype));
}

// Returns position and value of the extreme.
Status ArgWithValue(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int64_t axis, call.Int("axis", 0));
  MSRT_ASSIGN_OR_RETURN(const bool keep, call.Bool("keep_dims", false));
  const bool declared =
      call.declared().kind == ItemKind::kTuple && call.declared().parts.size() == 2;
  const bool value_first = call.target() == "MaxDim" || call.target() == "MinDim";
  const DType dtype =
      declared ? call.declared().parts[value_first ? 1 : 0].type.dtype : DType::kI32;
  const bool most = call.target().starts_with("Max");
  MSRT_ASSIGN_OR_RETURN(const ValueId position,
                        Positions(call, most ? "ArgMax" : "ArgMin", x, axis, keep, dtype));
  MSRT_ASSIGN_OR_RETURN(const ValueId value, call.Add(most ? "ReduceMax" : "ReduceMin", {x},
                                                      {{"axes", std::vector<int64_t>{axis}},
                                                       {"keepdims", int64_t{keep}}}));
  return value_first ? call.SetTupleResult({value, position})
                     : call.SetTupleResult({position, value});
}

Status SetSorted(PrimitiveCall& call, ValueId x, int64_t k, int64_t axis, bool largest,
                 bool sorted) {
  MSRT_ASSIGN_OR_RETURN(
      std::vector<ValueId> found,
      call.AddMany(
          "", "TopK", {x},
          {{"k", k}, {"axis", axis}, {"largest", int64_t{largest}}, {"sorted", int64_t{sorted}}},
          2));
  const bool declared =
      call.declared().kind == ItemKind::kTuple && call.declared().parts.size() == 2;
  MSRT_ASSIGN_OR_RETURN(
      found[1], call.Cast(found[1], declared ? call.declared().parts[1].type.dtype : DType::kI32));
  return call.SetTupleResult(found);
}

Status TopK(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input_x"));
  MSRT_ASSIGN_OR_RETURN(const int64_t k, call.Int("k"));
  MSRT_ASSIGN_OR_RETURN(const int64_t axis, call.Int("dim", -1));
  MSRT_ASSIGN_OR_RETURN(const bool largest, call.Bool("largest", true));
  MSRT_ASSIGN_OR_RETURN(const bool sorted, call.Bool("sorted", true));
  return SetSorted(call, x, k, axis, largest, sorted);
}

Status Sort(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("x"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  MSRT_ASSIGN_OR_RETURN(const int axis, call.Axis(call.Has("dim") ? "dim" : "axis", rank, -1));
  MSRT_ASSIGN_OR_RETURN(const bool descending, call.Bool("descending", false));
  MSRT_ASSIGN_OR_RETURN(const int64_t count, call.KnownDim(x, axis));
  return SetSorted(call, x, count, axis, descending, true);
}

// Returns standard deviation and mean.
Status ReduceStd(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("x"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  MSRT_ASSIGN_OR_RETURN(const AttrList attrs, ReduceAttrs(call, "axis", "keep_dims"));
  MSRT_ASSIGN_OR_RETURN(const bool unbiased, call.Bool("unbiased", true));
  std::vector<int64_t> axes;
  if (const AttrValue* given = attrs.Find("axes")) axes = std::get<std::vector<int64_t>>(*given);
  for (int i = 0; attrs.Find("axes") == nullptr && i < rank; ++i) axes.push_back(i);
  double count = unbiased ? -1 : 0, elements = 1;
  for (int64_t axis : axes) {
    MSRT_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, rank));
    MSRT_ASSIGN_OR_RETURN(const int64_t dim, call.KnownDim(x, a));
    elements *= static_cast<double>(dim);
  }
  count += elements;
  AttrList kept = attrs;
  kept.Set("keepdims", int64_t{1});
  MSRT_ASSIGN_OR_RETURN(const ValueId center, call.Add("ReduceMean", {x}, std::move(kept)));
  MSRT_ASSIGN_OR_RETURN(const ValueId difference, call.Add("Sub", {x, center}));
  MSRT_ASSIGN_OR_RETURN(const ValueId squares, call.Add("ReduceSumSquare", {difference}, attrs));
  MSRT_ASSIGN_OR_RETURN(const ValueId variance,
                        call.Add("Div", {squares, call.Number(call.type(x).dtype, count)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId deviation, call.Add("Sqrt", {variance}));
  MSRT_ASSIGN_OR_RETURN(const ValueId mean, call.Add("ReduceMean", {x}, attrs));
  return call.SetTupleResult({deviation, mean});
}

Status LogSumExp(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(AttrList attrs, ReduceAttrs(call, "dim", "keepdim"));
  return call.SetResult(call.Add("ReduceLogSumExp", {x}, std::move(attrs)));
}

constexpr std::string_view kReduce = "x axis keep_dims", kReduceExt = "input dim keepdim dtype";

constexpr Rule kReduceRules[] = {
    {"ReduceSum", "x axis keep_dims skip_mode", Reduce, "ReduceSum"},
    {"ReduceMean", kReduce, Reduce, "ReduceMean"},
    {"ReduceMax", kReduce, Reduce, "ReduceMax"},
    {"ReduceMin", kReduce, Reduce, "ReduceMin"},
    {"ReduceProd", kReduce, Reduce, "ReduceProd"},
    {"ReduceAll", kReduce, ReduceTruth, "ReduceMin"},
    {"ReduceAny", kReduce, ReduceTruth, "ReduceMax"},
    {"SumExt", kReduceExt, ReduceExt, "ReduceSum"},
    {"MeanExt", kReduceExt, ReduceExt, "ReduceMean"},
    {"ProdExt", kReduceExt, ReduceExt, "ReduceProd"},
    {"Max", "x", Reduce, "ReduceMax"},
    {"Min", "x", Reduce, "ReduceMin"},
    {"ReduceStd", "x axis unbiased keep_dims", ReduceStd},
    {"LogSumExp", "input dim keepdim", LogSumExp},
    {"Softmax", "input axis", Softmax, "Softmax"},
    {"LogSoftmax", "input axis", Softmax, "LogSoftmax"},
    {"LogSoftmaxExt", "input axis dtype", Softmax, "LogSoftmax"},
    {"CumSum", "input axis exclusive reverse", CumSum},
    {"CumsumExt", "input axis dtype", CumSum},
    {"Argmax", "input axis output_type", Arg, "ArgMax"},
    {"Argmin", "input axis output_type", Arg, "ArgMin"},
    {"ArgMaxExt", "input axis keepdim", Arg, "ArgMax"},
    {"ArgMinExt", "input axis keepdim", Arg, "ArgMin"},
    {"ArgMaxWithValue", "input axis keep_dims", ArgWithValue, "Max"},
    {"ArgMinWithValue", "input axis keep_dims", ArgWithValue, "Min"},
    {"MaxDim", "input axis keep_dims", ArgWithValue, "MaxDim"},
    {"MinDim", "input axis keep_dims", ArgWithValue, "MinDim"},
    {"TopK", "input_x k", TopK},
    {"TopkExt", "input_x k dim largest sorted", TopK},
    {"Sort", "x", Sort},
    {"SortExt", "x dim descending stable", Sort},
};

}  // namespace

std::span<const Rule> ReduceRules() { return kReduceRules; }

}  // namespace msrt::mindir_import

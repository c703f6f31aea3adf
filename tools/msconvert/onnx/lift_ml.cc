// Rules for the ops of the domain ai.onnx.ml on numbers, except trees (lift_trees.cc).
#include <cmath>
#include <optional>

#include "tools/msconvert/onnx/lift.h"

namespace msrt::onnx_import {
namespace {

Status LiftBinarizer(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(1));
  const DType dtype = n.type(0).dtype;
  const double threshold = n.Float("threshold", 0);
  // An integer is above the threshold if it is above the threshold rounded down.
  const ValueId bound = n.Scalar(dtype, kFloatTypes.Has(dtype) ? threshold : std::floor(threshold));
  MSRT_ASSIGN_OR_RETURN(const ValueId above, n.Add("Greater", {n.input(0), bound}));
  MSRT_ASSIGN_OR_RETURN(const ValueId out, n.Add("Cast", {above}, {{"to", dtype}}));
  n.SetOutput(0, out);
  return OkStatus();
}

// Takes elements of the last axis; a list counts as one row.
Status LiftArrayFeatureExtractor(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(2));
  if (!n.type(0).rank_known) return Unsupported("the rank of the input must be known");
  MSRT_ASSIGN_OR_RETURN(const ValueId indices,
                        n.Add("Reshape", {n.input(1)}, {{"shape", std::vector<int64_t>{-1}}}));
  MSRT_ASSIGN_OR_RETURN(ValueId out,
                        n.Add("Gather", {n.input(0), indices}, {{"axis", int64_t{-1}}}));
  if (n.type(0).rank() == 1) {
    MSRT_ASSIGN_OR_RETURN(out, n.Add("Unsqueeze", {out}, {{"axes", std::vector<int64_t>{0}}}));
  }
  n.SetOutput(0, out);
  return OkStatus();
}

// ---- LabelEncoder -------------------------------------------------------------------------------

// Returns one of keys_*, values_* or default_*, a tensor, integers or floats, as a list; nullopt if
// the node has only text.
std::optional<ConstTensor> NumbersUnder(NodeLift& n, const std::string& what, const char* ints,
                                        const char* floats) {
  if (const AttrValue* t = n.attrs().Find(what + "_tensor")) {
    if (const auto* tensor = std::get_if<ConstTensor>(t)) {
      return ConstTensor{tensor->dtype, {tensor->dims.elements()}, tensor->bytes, tensor->owner};
    }
  }
  if (const AttrValue* v = n.attrs().Find(what + ints)) {
    if (const auto* list = std::get_if<std::vector<int64_t>>(v)) return ConstTensor::Int64s(*list);
    if (const auto* one = std::get_if<int64_t>(v)) return ConstTensor::Int64s({one, 1});
  }
  if (!n.Has(what + floats)) return std::nullopt;
  std::vector<double> values = n.Floats(what + floats);
  if (values.empty()) values.push_back(n.Float(what + floats, 0));
  const std::vector<float> narrow(values.begin(), values.end());
  return ConstTensor::Floats({static_cast<int64_t>(narrow.size())}, narrow);
}

// Compares every element with every key; of two equal keys the last counts. NaN is equal to NaN
// here.
Result<ValueId> MatchesOf(NodeLift& n, ValueId keys) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x,
                        n.Add("Unsqueeze", {n.input(0)}, {{"axes", std::vector<int64_t>{-1}}}));
  MSRT_ASSIGN_OR_RETURN(ValueId equal, n.Add("Equal", {x, keys}));
  if (kFloatTypes.Has(n.type(0).dtype)) {
    MSRT_ASSIGN_OR_RETURN(const ValueId x_missing, n.Add("IsNaN", {x}));
    MSRT_ASSIGN_OR_RETURN(const ValueId key_missing, n.Add("IsNaN", {keys}));
    MSRT_ASSIGN_OR_RETURN(const ValueId both_missing, n.Add("And", {x_missing, key_missing}));
    MSRT_ASSIGN_OR_RETURN(equal, n.Add("Or", {equal, both_missing}));
  }
  return n.Add("Cast", {equal}, {{"to", DType::kI32}});
}

Status LiftLabelEncoder(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(1));
  std::optional<ConstTensor> keys = NumbersUnder(n, "keys", "_int64s", "_floats");
  std::optional<ConstTensor> values = NumbersUnder(n, "values", "_int64s", "_floats");
  if (!keys || !values) return Unsupported("labels that are text");
  if (keys->dims[0] == 0 || keys->dims[0] != values->dims[0])
    return InvalidModel("keys and values must be as many, and not none");
  const DType dtype = values->dtype;
  std::optional<ConstTensor> given = NumbersUnder(n, "default", "_int64", "_float");
  if (given && given->dtype != dtype) given.reset();  // not for values of this type
  if (given && given->dims[0] != 1) return InvalidModel("the default must be one number");
  if (given) given->dims = {};
  const ValueId otherwise =
      given ? n.Constant(*std::move(given)) : n.Scalar(dtype, kFloatTypes.Has(dtype) ? -0.0 : -1);
  MSRT_ASSIGN_OR_RETURN(const ValueId matches, MatchesOf(n, n.Constant(*std::move(keys))));
  const AttrList along_keys = {
      {"axis", int64_t{-1}}, {"keepdims", int64_t{0}}, {"select_last_index", int64_t{1}}};
  MSRT_ASSIGN_OR_RETURN(const ValueId place, n.Add("ArgMax", {matches}, along_keys));
  MSRT_ASSIGN_OR_RETURN(const ValueId value,
                        n.Add("Gather", {n.Constant(*std::move(values)), place}));
  MSRT_ASSIGN_OR_RETURN(const ValueId any,
                        n.Add("ReduceMax", {matches},
                              {{"axes", std::vector<int64_t>{-1}}, {"keepdims", int64_t{0}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId found, n.Add("Cast", {any}, {{"to", DType::kBool}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId out, n.Add("Where", {found, value, otherwise}));
  n.SetOutput(0, out);
  return OkStatus();
}

constexpr LiftRule kMlLifts[] = {
    {kMlDomain, "Binarizer", LiftBinarizer},
    {kMlDomain, "ArrayFeatureExtractor", LiftArrayFeatureExtractor},
    {kMlDomain, "LabelEncoder", LiftLabelEncoder},
};

}  // namespace

std::span<const LiftRule> MlLifts() { return kMlLifts; }

}  // namespace msrt::onnx_import

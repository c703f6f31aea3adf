// Rules for the fused ops of ONNX Runtime's domain com.microsoft, which its optimizer writes into
// files: each becomes the standard ops that it was fused from. Attention is in
// lift_contrib_attention.cc, quantised ops are in lift_contrib_quant.cc.
#include "tools/msconvert/onnx/lift.h"

namespace msrt::onnx_import {
namespace {

// Returns a + b, or a if b is omitted.
Result<ValueId> Plus(NodeLift& n, ValueId a, ValueId b) {
  if (b == kNoValue) return a;
  return n.Add("Add", {a, b});
}

// ---- activations --------------------------------------------------------------------------------

// Input 1, if present, is added first.
Status LiftGeluOf(NodeLift& n, const std::string& approximate) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(1));
  MSRT_ASSIGN_OR_RETURN(const ValueId x, Plus(n, n.input(0), n.input(1)));
  MSRT_ASSIGN_OR_RETURN(const ValueId y, n.Add("Gelu", {x}, {{"approximate", approximate}}));
  n.SetOutput(0, y);
  return OkStatus();
}
Status LiftGelu(NodeLift& n) { return LiftGeluOf(n, "none"); }
Status LiftFastGelu(NodeLift& n) { return LiftGeluOf(n, "tanh"); }

Status LiftQuickGelu(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(1));
  MSRT_ASSIGN_OR_RETURN(
      const ValueId scaled,
      n.Add("Mul", {n.input(0), n.Scalar(n.type(0).dtype, n.Float("alpha", 1.702f))}));
  MSRT_ASSIGN_OR_RETURN(const ValueId gate, n.Add("Sigmoid", {scaled}));
  MSRT_ASSIGN_OR_RETURN(const ValueId y, n.Add("Mul", {n.input(0), gate}));
  n.SetOutput(0, y);
  return OkStatus();
}

// The first half of the last axis times the Gelu of the second.
Status LiftBiasSplitGelu(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(2));
  MSRT_ASSIGN_OR_RETURN(const ValueId x, n.Add("Add", {n.input(0), n.input(1)}));
  MSRT_ASSIGN_OR_RETURN(
      const auto halves,
      n.AddMany("", "Split", {x}, {{"axis", int64_t{-1}}, {"num_outputs", int64_t{2}}}, 2));
  MSRT_ASSIGN_OR_RETURN(const ValueId gate, n.Add("Gelu", {halves[1]}));
  MSRT_ASSIGN_OR_RETURN(const ValueId y, n.Add("Mul", {halves[0], gate}));
  n.SetOutput(0, y);
  return OkStatus();
}

Status LiftBiasAdd(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(3));
  MSRT_ASSIGN_OR_RETURN(const ValueId biased, n.Add("Add", {n.input(0), n.input(1)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId y, n.Add("Add", {biased, n.input(2)}));
  n.SetOutput(0, y);
  return OkStatus();
}

// Applies the activation that a fused op names; `a` and `b` are its parameters.
Result<ValueId> Activated(NodeLift& n, ValueId x, const std::string& name, std::optional<double> a,
                          std::optional<double> b) {
  if (name.empty()) return x;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid" || name == "Softsign" ||
      name == "Softplus")
    return n.Add(name, {x});
  AttrList attrs;
  if (name == "LeakyRelu" || name == "Elu" || name == "ThresholdedRelu") {
    if (a) attrs.Set("alpha", *a);
    return n.Add(name, {x}, std::move(attrs));
  }
  if (name == "HardSigmoid") {
    if (a) attrs.Set("alpha", *a);
    if (b) attrs.Set("beta", *b);
    return n.Add(name, {x}, std::move(attrs));
  }
  if (name == "Clip" && a && b) {
    const DType dtype = n.type_of(x).dtype;
    return n.Add("Clip", {x, n.Scalar(dtype, *a), n.Scalar(dtype, *b)});
  }
  return Unsupported("activation '", name, "'");
}

// ---- products -----------------------------------------------------------------------------------

// Returns one operand as MatMul needs it: with `batch_last` the rows' axis comes before the batch,
// with `transposed` the last two axes are exchanged.
Result<ValueId> MatMulOperand(NodeLift& n, size_t input, bool transposed, bool batch_last) {
  if (!transposed && !batch_last) return n.input(input);
  const Type type = n.type(input);
  if (!type.rank_known) return Unsupported("transposing input ", input, " needs its rank");
  const int64_t rank = type.rank();
  if (rank < 2) return Unsupported("a transposed vector");
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < rank; ++i) perm.push_back(i);
  if (batch_last) {
    for (int64_t i = 0; i + 2 < rank; ++i) perm[static_cast<size_t>(i)] = i + 1;
    perm[static_cast<size_t>(rank - 2)] = 0;
  }
  if (transposed)
    std::swap(perm[static_cast<size_t>(rank - 2)], perm[static_cast<size_t>(rank - 1)]);
  return n.Add("Transpose", {n.input(input)}, {{"perm", perm}});
}

Status LiftFusedMatMul(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(2));
  MSRT_ASSIGN_OR_RETURN(const ValueId a,
                        MatMulOperand(n, 0, n.Int("transA", 0) != 0, n.Int("transBatchA", 0) != 0));
  MSRT_ASSIGN_OR_RETURN(const ValueId b,
                        MatMulOperand(n, 1, n.Int("transB", 0) != 0, n.Int("transBatchB", 0) != 0));
  MSRT_ASSIGN_OR_RETURN(ValueId y, n.Add("MatMul", {a, b}));
  if (const double alpha = n.Float("alpha", 1); alpha != 1) {
    MSRT_ASSIGN_OR_RETURN(y, n.Add("Mul", {y, n.Scalar(n.type_of(y).dtype, alpha)}));
  }
  n.SetOutput(0, y);
  return OkStatus();
}

Status LiftFusedGemm(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(2));
  AttrList attrs = n.attrs();
  for (const char* own : {"activation", "activation_alpha", "activation_beta", "activation_gamma"})
    attrs.Remove(own);
  const auto parameter = [&](const char* name) {
    return n.Has(name) ? std::optional(n.Float(name, 0)) : std::nullopt;
  };
  MSRT_ASSIGN_OR_RETURN(const ValueId sum, n.Add("Gemm", n.inputs(), std::move(attrs)));
  MSRT_ASSIGN_OR_RETURN(const ValueId y,
                        Activated(n, sum, n.String("activation", ""), parameter("activation_alpha"),
                                  parameter("activation_beta")));
  n.SetOutput(0, y);
  return OkStatus();
}

// Input 3 is added before the activation.
Status LiftFusedConv(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(2));
  AttrList attrs = n.attrs();
  const std::vector<double> given = n.Floats("activation_params");
  attrs.Remove("activation");
  attrs.Remove("activation_params");
  const auto parameter = [&](size_t i) {
    return i < given.size() ? std::optional(given[i]) : std::nullopt;
  };
  MSRT_ASSIGN_OR_RETURN(const ValueId conv,
                        n.Add("Conv", {n.input(0), n.input(1), n.input(2)}, std::move(attrs)));
  MSRT_ASSIGN_OR_RETURN(const ValueId sum, Plus(n, conv, n.input(3)));
  MSRT_ASSIGN_OR_RETURN(const ValueId y,
                        Activated(n, sum, n.String("activation", ""), parameter(0), parameter(1)));
  n.SetOutput(0, y);
  return OkStatus();
}

// X and Y have the channels last; the weights are as in Conv.
Status LiftNhwcConv(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(2));
  if (!n.type(0).rank_known || n.type(0).rank() < 3)
    return Unsupported("the rank of X must be known and at least 3");
  std::vector<int64_t> to_first = {0, n.type(0).rank() - 1}, to_last = {0};
  for (int64_t i = 1; i + 1 < n.type(0).rank(); ++i)
    to_first.push_back(i), to_last.push_back(i + 1);
  to_last.push_back(1);
  MSRT_ASSIGN_OR_RETURN(const ValueId x, n.Add("Transpose", {n.input(0)}, {{"perm", to_first}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId conv, n.Add("Conv", {x, n.input(1), n.input(2)}, n.attrs()));
  MSRT_ASSIGN_OR_RETURN(const ValueId y, n.Add("Transpose", {conv}, {{"perm", to_last}}));
  n.SetOutput(0, y);
  return OkStatus();
}

// ---- normalisations -----------------------------------------------------------------------------

constexpr double kSkipEpsilon = 1e-12f;

Result<ValueId> LayerNorm(NodeLift& n, ValueId x, ValueId scale, ValueId bias) {
  return n.Add("LayerNormalization", {x, scale, bias},
               {{"axis", int64_t{-1}}, {"epsilon", n.Float("epsilon", kSkipEpsilon)}});
}

Status LiftSkipLayerNormalization(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(3));
  MSRT_ASSIGN_OR_RETURN(const ValueId both, n.Add("Add", {n.input(0), n.input(1)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId sum, Plus(n, both, n.input(4)));
  MSRT_ASSIGN_OR_RETURN(const ValueId y, LayerNorm(n, sum, n.input(2), n.input(3)));
  n.SetOutput(0, y);
  n.SetOutput(3, sum);
  return OkStatus();
}

Status LiftSkipSimplifiedLayerNormalization(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(3));
  MSRT_ASSIGN_OR_RETURN(const ValueId both, n.Add("Add", {n.input(0), n.input(1)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId sum, Plus(n, both, n.input(3)));
  MSRT_ASSIGN_OR_RETURN(const ValueId y, n.Add("RMSNormalization", {sum, n.input(2)},
                                               {{"axis", int64_t{-1}},
                                                {"epsilon", n.Float("epsilon", kSkipEpsilon)}}));
  n.SetOutput(0, y);
  n.SetOutput(3, sum);
  return OkStatus();
}

Status LiftSimplifiedLayerNormalization(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(n.RequireInputs(2));
  const AttrList attrs = {{"axis", n.Int("axis", -1)}, {"epsilon", n.Float("epsilon", 1e-5f)}};
  MSRT_ASSIGN_OR_RETURN(const ValueId y,
                        n.Add("RMSNormalization", {n.input(0), n.input(1)}, attrs));
  n.SetOutput(0, y);
  return OkStatus();
}

// Returns rows of a table of positions: those in position_ids, otherwise one for each element of
// the sequence.
Result<ValueId> PositionRows(NodeLift& n, ValueId ids, ValueId table, ValueId positions) {
  if (positions != kNoValue) return n.Add("Gather", {table, positions});
  MSRT_ASSIGN_OR_RETURN(const ValueId length,
                        n.Add("Shape", {ids}, {{"start", int64_t{1}}, {"end", int64_t{2}}}));
  const ValueId zero = n.Constant(ConstTensor::Int64s(std::vector<int64_t>{0}));
  return n.Add("Slice", {table, zero, length}, {{"axes", std::vector<int64_t>{0}}});
}

// Returns how many elements of each row of the mask are kept; zeros if there is no mask.
Result<ValueId> MaskIndex(NodeLift& n, ValueId ids, ValueId mask) {
  if (mask == kNoValue) {
    MSRT_ASSIGN_OR_RETURN(const ValueId batch,
                          n.Add("Shape", {ids}, {{"start", int64_t{0}}, {"end", int64_t{1}}}));
    const int32_t zero = 0;
    return n.Add("ConstantOfShape", {batch},
                 {{"value", ConstTensor::Of<int32_t>(DType::kI32, {1}, {&zero, 1})}});
  }
  MSRT_ASSIGN_OR_RETURN(const ValueId kept,
                        n.Add("Equal", {mask, n.Scalar(n.type_of(mask).dtype, 1)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId ones, n.Add("Cast", {kept}, {{"to", DType::kI32}}));
  return n.Add("ReduceSum", {ones}, {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}});
}

Status LiftEmbedLayerNormalization(NodeLift& n) {
  enum : size_t {
    kIds,
    kSegments,
    kWordTable,
    kPositionTable,
    kSegmentTable,
    kGamma,
    kBeta,
    kMask,
    kPositions
  };
  for (size_t i : {kIds, kWordTable, kPositionTable, kGamma, kBeta}) {
    if (!n.has_input(i)) return InvalidModel("input ", i, " is missing");
  }
  MSRT_ASSIGN_OR_RETURN(const ValueId words, n.Add("Gather", {n.input(kWordTable), n.input(kIds)}));
  MSRT_ASSIGN_OR_RETURN(
      const ValueId places,
      PositionRows(n, n.input(kIds), n.input(kPositionTable), n.input(kPositions)));
  MSRT_ASSIGN_OR_RETURN(ValueId sum, n.Add("Add", {words, places}));
  if (n.has_input(kSegments) && n.has_input(kSegmentTable)) {
    MSRT_ASSIGN_OR_RETURN(const ValueId segments,
                          n.Add("Gather", {n.input(kSegmentTable), n.input(kSegments)}));
    MSRT_ASSIGN_OR_RETURN(sum, n.Add("Add", {sum, segments}));
  }
  MSRT_ASSIGN_OR_RETURN(const ValueId y, LayerNorm(n, sum, n.input(kGamma), n.input(kBeta)));
  n.SetOutput(0, y);
  n.SetOutput(2, sum);
  if (!n.wants_output(1)) return OkStatus();
  MSRT_ASSIGN_OR_RETURN(const ValueId mask_index, MaskIndex(n, n.input(kIds), n.input(kMask)));
  n.SetOutput(1, mask_index);
  return OkStatus();
}

constexpr LiftRule kContribLifts[] = {
    {kContribDomain, "Gelu", LiftGelu},
    {kContribDomain, "BiasGelu", LiftGelu},
    {kContribDomain, "FastGelu", LiftFastGelu},
    {kContribDomain, "QuickGelu", LiftQuickGelu},
    {kContribDomain, "BiasSplitGelu", LiftBiasSplitGelu},
    {kContribDomain, "BiasAdd", LiftBiasAdd},
    {kContribDomain, "FusedMatMul", LiftFusedMatMul},
    {kContribDomain, "FusedGemm", LiftFusedGemm},
    {kContribDomain, "FusedConv", LiftFusedConv},
    {kContribDomain, "NhwcConv", LiftNhwcConv},
    {kContribDomain, "SkipLayerNormalization", LiftSkipLayerNormalization},
    {kContribDomain, "SkipSimplifiedLayerNormalization", LiftSkipSimplifiedLayerNormalization},
    {kContribDomain, "SimplifiedLayerNormalization", LiftSimplifiedLayerNormalization},
    {"", "SimplifiedLayerNormalization", LiftSimplifiedLayerNormalization},
    {kContribDomain, "EmbedLayerNormalization", LiftEmbedLayerNormalization},
};

}  // namespace

std::span<const LiftRule> ContribLifts() { return kContribLifts; }

}  // namespace msrt::onnx_import

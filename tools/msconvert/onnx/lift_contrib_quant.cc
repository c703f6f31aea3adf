// Rules for the quantised ops of ONNX Runtime's domain com.microsoft: products become products of
// integers, scaled; weights of few bits are dequantised; everything else becomes the plain op
// between a dequantisation and a quantisation.
#include "core/base/checked_math.h"
#include "tools/msconvert/onnx/contrib_attention.h"

namespace msrt::onnx_import {
namespace {

// A quantised tensor is three inputs: data, scale and zero point, which may be omitted.
Result<ValueId> Dequantized(NodeLift& n, size_t first) {
  if (!n.has_input(first) || !n.has_input(first + 1))
    return InvalidModel("inputs ", first, " and ", first + 1, " must be given");
  return n.Add("DequantizeLinear", {n.input(first), n.input(first + 1), n.input(first + 2)});
}

// Sets output 0 to `real`, quantised with the scale and zero point of inputs `first` and the next.
// `dtype` is the type if the zero point is omitted.
Status SetQuantized(NodeLift& n, ValueId real, size_t first, DType dtype) {
  if (!n.has_input(first))
    return InvalidModel("input ", first, ", the scale of the output, is missing");
  AttrList attrs;
  if (!n.has_input(first + 1)) attrs.Set("output_dtype", dtype);
  MSRT_ASSIGN_OR_RETURN(
      const ValueId out,
      n.Add("QuantizeLinear", {real, n.input(first), n.input(first + 1)}, std::move(attrs)));
  n.SetOutput(0, out);
  return OkStatus();
}

Status LiftBinary(NodeLift& n, std::string_view op) {
  MSRT_ASSIGN_OR_RETURN(const ValueId a, Dequantized(n, 0));
  MSRT_ASSIGN_OR_RETURN(const ValueId b, Dequantized(n, 3));
  MSRT_ASSIGN_OR_RETURN(const ValueId c, n.Add(op, {a, b}));
  return SetQuantized(n, c, 6, n.type(0).dtype);
}

Status LiftAdd(NodeLift& n) { return LiftBinary(n, "Add"); }
Status LiftMul(NodeLift& n) { return LiftBinary(n, "Mul"); }

Status LiftUnary(NodeLift& n, std::string_view op, AttrList attrs) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, Dequantized(n, 0));
  MSRT_ASSIGN_OR_RETURN(const ValueId y, n.Add(op, {x}, std::move(attrs)));
  return SetQuantized(n, y, 3, n.type(0).dtype);
}

Status LiftSigmoid(NodeLift& n) { return LiftUnary(n, "Sigmoid", {}); }
Status LiftLeakyRelu(NodeLift& n) {
  return LiftUnary(n, "LeakyRelu", {{"alpha", n.Float("alpha", 0.01f)}});
}

Status RefuseChannelsLast(NodeLift& n) {
  if (n.Int("channels_last", 0) != 0)
    return Unsupported("channels_last = 1; export with channels first");
  n.attrs().Remove("channels_last");
  return OkStatus();
}

Status LiftAveragePool(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(RefuseChannelsLast(n));
  return LiftUnary(n, "AveragePool", n.attrs());
}
Status LiftGlobalAveragePool(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(RefuseChannelsLast(n));
  return LiftUnary(n, "GlobalAveragePool", {});
}

// The scale and zero point of the output come first.
Status LiftQuantizedConcat(NodeLift& n) {
  std::vector<ValueId> parts;
  for (size_t i = 2; i < n.input_count(); i += 3) {
    MSRT_ASSIGN_OR_RETURN(const ValueId part, Dequantized(n, i));
    parts.push_back(part);
  }
  if (parts.empty()) return InvalidModel("there is nothing to join");
  MSRT_ASSIGN_OR_RETURN(const ValueId all, n.Add("Concat", parts, n.attrs()));
  return SetQuantized(n, all, 0, n.type(2).dtype);
}

Status LiftSoftmax(NodeLift& n) {
  if (!n.has_input(0)) return InvalidModel("input 0 is missing");
  const Type x = n.type(0);
  const int64_t axis = n.Int("axis", -1);
  // Before opset 13 a softmax went over all axes from `axis` on.
  const bool last = axis == -1 || (x.rank_known && axis == x.rank() - 1);
  if (n.Int("opset", 13) < 13 && !last) return Unsupported("a softmax over several axes");
  return LiftUnary(n, "Softmax", {{"axis", axis}});
}

// ---- products -----------------------------------------------------------------------------------

// The scaled product of two quantised matrices, in f32. Zero points and `addend`, which is added to
// the sums before they are scaled, may be omitted.
struct QuantizedMatrix {
  ValueId data, scale, zero;
};
Result<ValueId> ScaledProduct(NodeLift& n, const QuantizedMatrix& a, const QuantizedMatrix& b,
                              ValueId addend = kNoValue, double alpha = 1) {
  MSRT_ASSIGN_OR_RETURN(ValueId sums, n.Add("MatMulInteger", {a.data, b.data, a.zero, b.zero}));
  if (addend != kNoValue) {
    MSRT_ASSIGN_OR_RETURN(sums, n.Add("Add", {sums, addend}));
  }
  MSRT_ASSIGN_OR_RETURN(ValueId scale, n.Add("Mul", {a.scale, b.scale}));
  const DType dtype = n.type_of(a.scale).dtype;
  if (alpha != 1) {
    MSRT_ASSIGN_OR_RETURN(scale, n.Add("Mul", {scale, n.Scalar(dtype, alpha)}));
  }
  MSRT_ASSIGN_OR_RETURN(const ValueId real, n.Add("Cast", {sums}, {{"to", dtype}}));
  return n.Add("Mul", {real, scale});
}

Status SetWithBias(NodeLift& n, ValueId product, ValueId bias) {
  if (bias != kNoValue) {
    MSRT_ASSIGN_OR_RETURN(product, n.Add("Add", {product, bias}));
  }
  n.SetOutput(0, product);
  return OkStatus();
}

Status LiftMatMulIntegerToFloat(NodeLift& n) {
  enum : size_t { kA, kB, kAScale, kBScale, kAZero, kBZero, kBias };
  MSRT_RETURN_IF_ERROR(n.RequireInputs(4));
  MSRT_ASSIGN_OR_RETURN(const ValueId product,
                        ScaledProduct(n, {n.input(kA), n.input(kAScale), n.input(kAZero)},
                                      {n.input(kB), n.input(kBScale), n.input(kBZero)}));
  return SetWithBias(n, product, n.input(kBias));
}

Status LiftDynamicQuantizeMatMul(NodeLift& n) {
  enum : size_t { kA, kB, kBScale, kBZero, kBias };
  MSRT_RETURN_IF_ERROR(n.RequireInputs(3));
  MSRT_ASSIGN_OR_RETURN(const auto a, n.AddMany("", "DynamicQuantizeLinear", {n.input(kA)}, {}, 3));
  MSRT_ASSIGN_OR_RETURN(
      const ValueId product,
      ScaledProduct(n, {a[0], a[1], a[2]}, {n.input(kB), n.input(kBScale), n.input(kBZero)}));
  return SetWithBias(n, product, n.input(kBias));
}

// C is quantised with the product of the other scales. If the output has no scale, it is real.
Status LiftQuantizedGemm(NodeLift& n) {
  enum : size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kC, kYScale, kYZero };
  MSRT_RETURN_IF_ERROR(n.RequireInputs(6));
  const auto operand = [&](size_t input, const char* transposed) -> Result<ValueId> {
    if (n.Int(transposed, 0) == 0) return n.input(input);
    return n.Add("Transpose", {n.input(input)}, {{"perm", std::vector<int64_t>{1, 0}}});
  };
  MSRT_ASSIGN_OR_RETURN(const ValueId a, operand(kA, "transA"));
  MSRT_ASSIGN_OR_RETURN(const ValueId b, operand(kB, "transB"));
  MSRT_ASSIGN_OR_RETURN(
      const ValueId product,
      ScaledProduct(n, {a, n.input(kAScale), n.input(kAZero)},
                    {b, n.input(kBScale), n.input(kBZero)}, n.input(kC), n.Float("alpha", 1)));
  if (n.has_input(kYScale)) return SetQuantized(n, product, kYScale, n.type(kA).dtype);
  n.SetOutput(0, product);
  return OkStatus();
}

Status LiftQuantizedAttention(NodeLift& n) {
  enum : size_t {
    kInput,
    kWeights,
    kBias,
    kInputScale,
    kWeightScale,
    kMask,
    kInputZero,
    kWeightZero,
    kPast
  };
  MSRT_RETURN_IF_ERROR(n.RequireInputs(5));
  if (n.Int("do_rotary", 0) != 0) return Unsupported("do_rotary = 1");
  MSRT_ASSIGN_OR_RETURN(
      const ValueId product,
      ScaledProduct(n, {n.input(kInput), n.input(kInputScale), n.input(kInputZero)},
                    {n.input(kWeights), n.input(kWeightScale), n.input(kWeightZero)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId projection, n.Add("Add", {product, n.input(kBias)}));
  AttentionParts parts;
  MSRT_RETURN_IF_ERROR(SplitProjection(n, projection, {}, &parts));
  MSRT_RETURN_IF_ERROR(SetJoinedPast(n, n.input(kPast), &parts));
  parts.key_mask = n.input(kMask);
  return LiftAttentionOfParts(n, parts, 1);
}

// ---- weights of few bits ------------------------------------------------------------------------

// Returns zero points [rows, blocks] from rows that are padded to whole bytes; by default the
// middle of the range.
Result<ConstTensor> BlockZeroPoints(const ConstTensor* given, DType dtype, int64_t rows,
                                    int64_t blocks) {
  const int64_t bits = BitsOf(dtype), a_byte = 8 / bits, row_bytes = CeilDiv(blocks, a_byte);
  if (given != nullptr &&
      (given->dtype != DType::kU8 || given->dims.elements() != rows * row_bytes)) {
    return Unsupported("zero points of type ", given->dtype, " and shape ", given->dims,
                       "; whole bytes for each row are supported");
  }
  const auto source = given == nullptr ? std::span<const uint8_t>() : given->As<uint8_t>();
  std::vector<uint8_t> packed(BytesOf(dtype, rows * blocks), 0);
  for (int64_t i = 0; i < rows * blocks; ++i) {
    const int64_t block = i % blocks;
    uint8_t code = static_cast<uint8_t>(1 << (bits - 1));
    if (given != nullptr)
      code = static_cast<uint8_t>(
          source[static_cast<size_t>(i / blocks * row_bytes + block / a_byte)] >>
          (block % a_byte * bits));
    code = static_cast<uint8_t>(code & ((1 << bits) - 1));
    packed[static_cast<size_t>(i / a_byte)] =
        static_cast<uint8_t>(packed[static_cast<size_t>(i / a_byte)] | code << (i % a_byte * bits));
  }
  return ConstTensor::Copy(dtype, {rows, blocks}, std::as_bytes(std::span<const uint8_t>(packed)));
}

// A times the transposed weights, which are [N, blocks of K] with a scale and a zero point for each
// block.
Status LiftMatMulNBits(NodeLift& n) {
  enum : size_t { kA, kB, kScales, kZeros, kGroups, kBias };
  MSRT_RETURN_IF_ERROR(n.RequireInputs(3));
  const int64_t rows = n.Int("N", 0), depth = n.Int("K", 0), block = n.Int("block_size", 0),
                bits = n.Int("bits", 4);
  if (bits != 4 && bits != 8) return Unsupported("bits = ", bits, "; 4 and 8 are supported");
  if (n.has_input(kGroups)) return Unsupported("g_idx, groups in another order than the columns");
  if (n.Int("weight_prepacked", 0) != 0)
    return Unsupported("weights that are packed for another runtime");
  const ConstTensor* b = n.constant(kB);
  if (b == nullptr || (n.has_input(kZeros) && n.constant(kZeros) == nullptr))
    return Unsupported("weights that are not constant");
  const DType dtype = bits == 4 ? DType::kU4 : DType::kU8;
  constexpr int64_t kMax = int64_t{1} << 31;
  if (rows < 1 || depth < 1 || block < 1 || rows > kMax || depth > kMax || block > kMax)
    return InvalidModel("N, K and block_size must be 1 to 2^31");
  const int64_t blocks = CeilDiv(depth, block);
  int64_t codes, all;
  if (!CheckedMul(blocks, block, &codes) || !CheckedMul(rows, codes, &all) ||
      b->dtype != DType::kU8 || all % (8 / bits) != 0 ||
      static_cast<int64_t>(b->bytes.size()) != all / (8 / bits)) {
    return InvalidModel("B has shape ", b->dims, ", which does not fit N = ", rows, ", K = ", depth,
                        ", block_size = ", block);
  }
  MSRT_ASSIGN_OR_RETURN(ConstTensor zeros,
                        BlockZeroPoints(n.constant(kZeros), dtype, rows, blocks));
  const ValueId weights = n.Constant(ConstTensor{dtype, {rows, codes}, b->bytes, b->owner});
  MSRT_ASSIGN_OR_RETURN(
      const ValueId scales,
      n.Add("Reshape", {n.input(kScales)}, {{"shape", std::vector<int64_t>{rows, blocks}}}));
  MSRT_ASSIGN_OR_RETURN(ValueId real,
                        n.Add("DequantizeLinear", {weights, scales, n.Constant(std::move(zeros))},
                              {{"axis", int64_t{1}}, {"block_size", block}}));
  if (codes != depth) {  // the last block extends beyond the depth
    const std::vector<int64_t> start = {0}, end = {depth}, axes = {1};
    MSRT_ASSIGN_OR_RETURN(
        real, n.Add("Slice", {real}, {{"starts", start}, {"ends", end}, {"axes", axes}}));
  }
  MSRT_ASSIGN_OR_RETURN(const ValueId turned,
                        n.Add("Transpose", {real}, {{"perm", std::vector<int64_t>{1, 0}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId product, n.Add("MatMul", {n.input(kA), turned}));
  return SetWithBias(n, product, n.input(kBias));
}

// They differ from the standard ops only in types that those now admit too.
Status LiftQuantize(NodeLift& n) { return n.PassAs("QuantizeLinear"); }
Status LiftDequantize(NodeLift& n) { return n.PassAs("DequantizeLinear"); }

constexpr LiftRule kContribQuantLifts[] = {
    {kContribDomain, "QLinearAdd", LiftAdd},
    {kContribDomain, "QLinearMul", LiftMul},
    {kContribDomain, "QLinearSigmoid", LiftSigmoid},
    {kContribDomain, "QLinearLeakyRelu", LiftLeakyRelu},
    {kContribDomain, "QLinearAveragePool", LiftAveragePool},
    {kContribDomain, "QLinearGlobalAveragePool", LiftGlobalAveragePool},
    {kContribDomain, "QLinearConcat", LiftQuantizedConcat},
    {kContribDomain, "QLinearSoftmax", LiftSoftmax},
    {kContribDomain, "QGemm", LiftQuantizedGemm},
    {kContribDomain, "MatMulIntegerToFloat", LiftMatMulIntegerToFloat},
    {kContribDomain, "DynamicQuantizeMatMul", LiftDynamicQuantizeMatMul},
    {kContribDomain, "QAttention", LiftQuantizedAttention},
    {kContribDomain, "MatMulNBits", LiftMatMulNBits},
    {kContribDomain, "QuantizeLinear", LiftQuantize},
    {kContribDomain, "DequantizeLinear", LiftDequantize},
};

}  // namespace

std::span<const LiftRule> ContribQuantLifts() { return kContribQuantLifts; }

}  // namespace msrt::onnx_import

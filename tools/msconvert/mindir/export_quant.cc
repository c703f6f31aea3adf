// Quantisation as plain arithmetic: MindSpore's own is for training.
#include "tools/msconvert/mindir/export_lower.h"

namespace msrt::mindir_export {
namespace {

// The range of the type.
struct Range {
  DType dtype;
  double low, high;
};
constexpr Range kRanges[] = {{DType::kI8, -128, 127},
                             {DType::kU8, 0, 255},
                             {DType::kI16, -32768, 32767},
                             {DType::kU16, 0, 65535}};

// Reshapes a scale or zero point, one or one for each index of an axis, to broadcast to x.
Result<Ref> AlongAxis(NodeLowering& n, size_t input) {
  MSRT_RETURN_IF_ERROR(n.NeedRank(0));
  MSRT_RETURN_IF_ERROR(n.NeedRank(input));
  const int rank = n.dims(0).rank(), own = n.dims(input).rank();
  if (own > 1) return Unsupported("scales of blocks are not exported");
  Ref x = n.In(input);
  if (n.type(input).dtype != DType::kF32) x = n.Op("Cast", {x, TypeIdOf(DType::kF32)});
  if (own == 0 || n.dims(input)[0] == 1) return n.Op("Reshape", {x, Ints{}});
  const int64_t axis = FromFront(n.op().Int("axis"), rank);
  if (axis < 0 || axis >= rank)
    return Unsupported("attribute 'axis' = ", n.op().Int("axis"), " names no axis of the input");
  if (n.op().Int("block_size") != 0) return Unsupported("scales of blocks are not exported");
  Ints shape(static_cast<size_t>(rank - axis), 1);
  shape[0] = -1;
  return n.Op("Reshape", {x, shape});
}

Status LowerDequantize(NodeLowering& n) {
  if (n.result().dtype != DType::kF32)
    return Unsupported("its result has element type ", n.result().dtype, ", only f32 is exported");
  MSRT_ASSIGN_OR_RETURN(const Ref scale, AlongAxis(n, 1));
  Ref x = n.Op("Cast", {n.In(0), TypeIdOf(DType::kF32)});
  if (n.Has(2)) {
    MSRT_ASSIGN_OR_RETURN(const Ref zero, AlongAxis(n, 2));
    x = n.Op("Sub", {x, zero});
  }
  n.SetOutput(n.Op("Mul", {x, scale}));
  return OkStatus();
}

Status LowerQuantize(NodeLowering& n) {
  if (n.dtype() != DType::kF32)
    return Unsupported("its input has element type ", n.dtype(), ", only f32 is exported");
  for (const Range& range : kRanges) {
    if (range.dtype != n.result().dtype) continue;
    MSRT_ASSIGN_OR_RETURN(const Ref scale, AlongAxis(n, 1));
    Ref x = n.Op("Round", {n.Op("RealDiv", {n.In(0), scale}), 0});
    if (n.Has(2)) {
      MSRT_ASSIGN_OR_RETURN(const Ref zero, AlongAxis(n, 2));
      x = n.Op("Add", {x, zero});
    }
    x = n.Op("Minimum", {n.Op("Maximum", {x, n.Number(range.low)}), n.Number(range.high)});
    n.SetOutput(n.Op("Cast", {x, TypeIdOf(range.dtype)}));
    return OkStatus();
  }
  return Unsupported("its result has element type ", n.result().dtype, ", which is not exported");
}

constexpr Lowerer kQuantLowerers[] = {{"QuantizeLinear", LowerQuantize},
                                      {"DequantizeLinear", LowerDequantize}};

}  // namespace

std::span<const Lowerer> QuantLowerers() { return kQuantLowerers; }

}  // namespace msrt::mindir_export

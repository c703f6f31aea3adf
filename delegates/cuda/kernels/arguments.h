// Arguments of kernels: plain structs that the delegate fills and a launch copies. Included by
// kernels and by the delegate alike, so that both agree on every byte.
#pragma once

#include <stdint.h>

namespace msrt::cuda {

constexpr int kMaxDims = 8;

// Division of numbers below 2^31 by a constant, as a multiplication and a shift (Granlund and
// Montgomery): kernels turn an element's number into coordinates with it.
struct Division {
  uint32_t divisor = 1, multiplier = 1, shift = 0;
};

// The elements of one tensor as another one's are numbered: element i of `dims`, row-major, is at
// the sum of its coordinates times `strides`.
struct Space {
  int32_t rank = 0;
  uint32_t elements = 1;
  Division dims[kMaxDims];
};

// ---- pointwise.cu

constexpr int kMaxOperands = 8, kMaxSteps = 12;

enum PointwiseOp : int32_t {
  // Of the accumulator alone.
  kOpAbs,
  kOpNeg,
  kOpSign,
  kOpRelu,
  kOpNot,
  kOpBitwiseNot,
  kOpCeil,
  kOpFloor,
  kOpRound,
  kOpSqrt,
  kOpReciprocal,
  kOpExp,
  kOpLog,
  kOpErf,
  kOpSin,
  kOpCos,
  kOpTan,
  kOpAsin,
  kOpAcos,
  kOpAtan,
  kOpSinh,
  kOpCosh,
  kOpTanh,
  kOpAsinh,
  kOpAcosh,
  kOpAtanh,
  kOpSigmoid,
  kOpLeakyRelu,
  kOpElu,
  kOpSelu,
  kOpCelu,
  kOpThresholdedRelu,
  kOpHardSigmoid,
  kOpHardSwish,
  kOpSoftplus,
  kOpSoftsign,
  kOpMish,
  kOpSwish,
  kOpGelu,
  kOpGeluTanh,
  kOpIsNan,
  kOpIsInf,
  kOpClip,
  kOpShrink,
  kOpDivideBy,
  // Of the accumulator and an operand.
  kOpAdd,
  kOpSub,
  kOpMul,
  kOpDiv,
  kOpFloorMod,
  kOpTruncMod,
  kOpPow,
  kOpMax,
  kOpMin,
  kOpPRelu,
  kOpShiftLeft,
  kOpShiftRight,
  kOpAnd,
  kOpOr,
  kOpXor,
  kOpEqual,
  kOpGreater,
  kOpGreaterOrEqual,
  kOpLess,
  kOpLessOrEqual,
  kOpClipLow,
  kOpClipHigh,
  // Takes the operand where the accumulator is not zero, and the next operand elsewhere.
  kOpWhere,
};

struct PointwiseStep {
  int32_t op = 0;
  int32_t operand = -1;
  double a = 0, b = 0;        // parameters of functions of floats
  int64_t low = 0, high = 0;  // the same for integers
};

struct PointwiseOperand {
  const void* data = nullptr;
  int32_t type = 0;  // DType
  int32_t strides[kMaxDims] = {};
};

// out[i] = the steps one after another, beginning with the value of operand 0. If `contiguous`, all
// operands are numbered as the output is.
struct PointwiseArgs {
  void* out = nullptr;
  uint64_t* fault = nullptr;
  int32_t out_type = 0, contiguous = 0, steps = 0, operands = 0;
  Space space;
  PointwiseOperand operand[kMaxOperands];
  PointwiseStep step[kMaxSteps];
};

// ---- copy.cu

// out[to(i)] = in[from(i)] for the elements of `space`.
struct CopyArgs {
  const void* in = nullptr;
  void* out = nullptr;
  int64_t in_strides[kMaxDims] = {}, out_strides[kMaxDims] = {};
  Space space;
};

// out = in with elements of other modes around it; see core/region/pad.h.
struct PadArgs {
  const void* in = nullptr;
  void* out = nullptr;
  const void* value = nullptr;  // on the GPU; null: `bits`
  uint64_t bits = 0;
  int32_t mode = 0;  // PadMode
  int32_t reserved = 0;
  int64_t in_strides[kMaxDims] = {};
  // Of each axis: the first kept source element, their number, the output index of the first, and
  // where this node's output and input begin in the whole.
  int64_t first[kMaxDims] = {}, kept[kMaxDims] = {}, before[kMaxDims] = {},
          out_begin[kMaxDims] = {}, in_begin[kMaxDims] = {};
  Space space;
};

// Element i of an axis of the output is element (begin + i) % extent of the input.
struct TileArgs {
  const void* in = nullptr;
  void* out = nullptr;
  int64_t begin[kMaxDims] = {}, extent[kMaxDims] = {}, in_strides[kMaxDims] = {};
  Space space;
};

// From one layout to another: `block` channels together, `channels` of `padded` are there.
struct LayoutArgs {
  const void* in = nullptr;
  void* out = nullptr;
  // Elements of the output in its memory's order: batch, channel blocks, positions, channels of a
  // block.
  Division blocks, positions, block;
  uint32_t elements = 0, channels = 0;
  // Of the input.
  int64_t batch_stride = 0, block_stride = 0, position_stride = 0, channel_stride = 0;
  uint32_t in_block = 1;
  uint32_t reserved = 0;
};

// ---- reduce.cu

enum ReduceOp : int32_t {
  kReduceSum,
  kReduceMean,
  kReduceProd,
  kReduceL1,
  kReduceL2,
  kReduceSumSquare,
  kReduceLogSum,
  kReduceLogSumExp,
  kReduceMax,
  kReduceMin,
};

struct ReduceArgs {
  const void* in = nullptr;
  void* out = nullptr;
  int32_t type = 0, op = 0;
  int64_t divisor = 1;              // of a mean
  int64_t least = 0, greatest = 0;  // integers of the type: maximum and minimum of nothing
  Space kept, reduced;
  int64_t kept_strides[kMaxDims] = {}, reduced_strides[kMaxDims] = {};
};

// ---- softmax.cu

struct SoftmaxArgs {
  const void* in = nullptr;
  void* out = nullptr;
  int32_t type = 0, log = 0;
  uint32_t lines = 0, extent = 0;
  Division inner;  // lines within one outer index; elements of a line are `inner` apart
};

// ---- normalization.cu

struct BatchNormArgs {
  const void *in = nullptr, *scale = nullptr, *bias = nullptr, *mean = nullptr, *variance = nullptr;
  void* out = nullptr;
  int32_t type = 0, scale_type = 0, statistic_type = 0, activation = -1;  // PointwiseOp, or -1
  double epsilon = 0, a = 0, b = 0;
  uint32_t elements = 0;
  uint32_t reserved = 0;
  Division plane, channels;
};

// Rows of `length` elements, each normalised by its own moments. Scale and bias are read at
// (row % row_modulus) * row_step + (column / column_divisor) * column_step.
struct RowNormArgs {
  const void *in = nullptr, *scale = nullptr, *bias = nullptr;
  void *out = nullptr, *mean_out = nullptr, *deviation_out = nullptr;
  int32_t type = 0, scale_type = 0, out_type = 0, statistic_type = 0;
  double epsilon = 0;
  uint32_t rows = 0, length = 0;
  Division row_modulus, column_divisor;
  uint32_t row_step = 0, column_step = 0;
  int32_t rms = 0;  // without the mean
  int32_t reserved = 0;
};

// ---- pool.cu

struct PoolAxis {
  int32_t in = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
};

enum PoolOp : int32_t { kPoolMax, kPoolAverage, kPoolAverageWithPads, kPoolLp };

struct PoolArgs {
  const void* in = nullptr;
  void* out = nullptr;
  int64_t* indices = nullptr;
  int32_t type = 0, op = 0, power = 2, column_major = 0;
  uint32_t elements = 0;
  uint32_t channels = 1;
  Division out_plane, out_rows, out_columns;  // elements of a plane of Y; its rows and columns
  PoolAxis axis[3];
  // Where the input begins in the whole of which it is a piece, and the dims of the whole.
  int64_t origin[5] = {}, whole[5] = {1, 1, 1, 1, 1};
};

// ---- resize.cu

constexpr int kMaxResizedAxes = 4;

// Each resampled axis has `taps` entries of index and weight for each of its outputs.
struct ResizeArgs {
  const void* in = nullptr;
  void* out = nullptr;
  const int32_t* index = nullptr;  // of all axes, one after another
  const double* weight = nullptr;
  const uint8_t* outside = nullptr;  // by output of each axis: it is extrapolated
  double extrapolation = 0;
  int32_t type = 0, axes = 0;
  int32_t axis_of_dim[kMaxDims] = {};  // number of the resampled axis, or -1: copied
  int32_t taps[kMaxResizedAxes] = {}, first_entry[kMaxResizedAxes] = {},
          first_outside[kMaxResizedAxes] = {};
  int64_t in_strides[kMaxDims] = {};
  Space space;
};

// ---- gather.cu

// out[outer, i, inner] = in[outer, indices[i], inner].
struct GatherArgs {
  const void *in = nullptr, *indices = nullptr;
  void* out = nullptr;
  uint64_t* fault = nullptr;
  int32_t index_type = 0;
  uint32_t elements = 0;
  Division inner, count;
  int64_t extent = 0;
};

// out[p] = in[p with coordinate `axis` replaced by indices[p]].
struct GatherElementsArgs {
  const void *in = nullptr, *indices = nullptr;
  void* out = nullptr;
  uint64_t* fault = nullptr;
  int32_t index_type = 0, axis = 0;
  int64_t extent = 0;
  int64_t in_strides[kMaxDims] = {};
  Space space;
};

// Tuples of indices select slices.
struct GatherNdArgs {
  const void *in = nullptr, *indices = nullptr;
  void* out = nullptr;
  uint64_t* fault = nullptr;
  int32_t index_type = 0, tuple = 0;
  uint32_t elements = 0;
  uint32_t reserved = 0;
  Division slice, tuples_in_batch;
  int64_t batch_elements = 0;
  int64_t extent[kMaxDims] = {}, strides[kMaxDims] = {};
};

// ---- what ends a product or a convolution

struct Epilogue {
  const void *bias = nullptr, *residual = nullptr;
  double alpha = 1, beta = 1;  // of the product; of the bias
  int32_t activation = -1;     // kOpRelu, kOpLeakyRelu or kOpClip; -1: none
  int32_t reserved = 0;
  double a = 0, b = 0;                                    // of the activation
  int64_t bias_row = 0, bias_column = 0, bias_batch = 0;  // strides, in elements
};

// ---- matmul.cu: C[batch] = A[batch] B[batch], f32 chains in the order of the depth.

struct MatMulArgs {
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  int32_t type = 0;
  int32_t scaled = 0;  // alpha is not 1
  uint32_t rows = 0, columns = 0, depth = 0, batches = 1;
  int64_t a_row = 0, a_depth = 0, b_depth = 0, b_column = 0;
  int32_t batch_rank = 0;
  int32_t reserved = 0;
  Division batch[kMaxDims];
  int64_t a_batch[kMaxDims] = {}, b_batch[kMaxDims] = {}, bias_batch[kMaxDims] = {};
  Epilogue end;
};

// ---- conv.cu: f32 chains: bias, then kernel positions, there channels.

struct ConvAxis {
  int32_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;
};

struct ConvArgs {
  const void *x = nullptr, *w = nullptr;
  void* y = nullptr;
  int32_t type = 0;
  uint32_t batch = 1, groups = 1, in_channels = 1, out_channels = 1;  // of a group
  uint32_t positions = 1, taps = 1;  // outputs of a plane, kernel positions
  Division out_rows, out_columns, kernel_rows, kernel_columns, channels;
  ConvAxis axis[3];
  Epilogue end;
};

}  // namespace msrt::cuda

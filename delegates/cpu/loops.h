// The inner loops of the cpu delegate: plain functions over contiguous memory. vector/ has them
// once in source; the build compiles that source for each instruction set, and LoopsHere() returns
// the table for this processor. Everything that is not an inner loop (shapes, layouts, splitting
// over threads) stands in the families of this folder and is compiled once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace msrt::cpu {

// Functions of one f32 element. alpha and beta mean what they mean for the op (ops/activation.h);
// NaN stays NaN in all of them.
enum class Unary : uint8_t {
  kRelu,
  kLeakyRelu,
  kSigmoid,
  kTanh,
  kHardSigmoid,
  kHardSwish,
  kClip,
  kGelu,
  kGeluTanh,
  kElu,
  kSwish,
  kMish,
  kSoftplus,
  kExp,
  kLog,
  kErf,
  kAbs,
  kNeg,
  kSqrt,
  kReciprocal,
  kSquare,
  kRound,
  kFloor,
  kCeil,
};
inline constexpr size_t kUnaryCount = static_cast<size_t>(Unary::kCeil) + 1;
// y[i] = f(x[i]). x and y may be the same memory.
using UnaryLoop = void (*)(const float* x, float* y, int64_t count, float alpha, float beta);

enum class Binary : uint8_t { kAdd, kSub, kMul, kDiv, kMax, kMin };
inline constexpr size_t kBinaryCount = static_cast<size_t>(Binary::kMin) + 1;
// Which operand of a line is one number for the whole line.
enum class Spread : uint8_t { kNone, kFirst, kSecond };
inline constexpr size_t kSpreadCount = 3;
// Lines of `columns` elements each; an operand's line begins `a_step` or `b_step` elements after
// the one before (0: the same line again). The result is contiguous and may be the memory of an
// operand that has its shape.
struct BinaryLines {
  const float *a, *b;
  float* y;
  int64_t lines, columns, a_step, b_step;
};
using BinaryLoop = void (*)(const BinaryLines&);

// y = (x - center) * scale + shift, with one of each for each line, or for each column.
struct AffineLines {
  const float *x, *center, *scale, *shift;
  float* y;
  int64_t lines, columns;
};
using AffineLoop = void (*)(const AffineLines&);

enum class Reduce : uint8_t { kSum, kSumSquare, kSumAbs, kMax, kMin };
inline constexpr size_t kReduceCount = static_cast<size_t>(Reduce::kMin) + 1;
// Folds `count` contiguous elements into *result, which has the value of the elements before.
using ReduceRow = void (*)(const float* x, int64_t count, double* result);
// Folds `lines` lines of `columns` elements, each `step` elements after the one before, column by
// column into result[columns].
using ReduceColumns = void (*)(const float* x, int64_t lines, int64_t step, int64_t columns,
                               double* result);
// Those "in order" fold one element after the other in double, as MSRT_ARITHMETIC_REFERENCE does;
// the others fold short runs in f32.

// The largest of `count` lines, and their sum times a factor, element by element: -infinity and 0
// for no line. NaN wins.
using MaxOfLines = void (*)(const float* const* lines, int64_t count, float* y, int64_t columns);
using SumOfLines = void (*)(const float* const* lines, int64_t count, float factor, float* y,
                            int64_t columns);
// Windows that follow one another along rows of pixels of `width` elements, all of them inside:
// output o folds the pixels at rows[r] + o * step + t * tap_step for all rows r and taps t.
struct WindowRow {
  const float* const* rows;
  int64_t row_count;
  int64_t taps, tap_step, step, width;
  float* y;
  int64_t outputs;
  float factor;  // of sums
};
using WindowLoop = void (*)(const WindowRow&);

// y = softmax(x) or its logarithm over `count` contiguous elements. In place too.
using SoftmaxRow = void (*)(const float* x, float* y, int64_t count, bool log);
// The same over `lines` elements that are `step` apart, for `columns` neighbours at once.
using SoftmaxColumns = void (*)(const float* x, float* y, int64_t lines, int64_t step,
                                int64_t columns, bool log);

struct Moments {
  double mean, variance;
};
using MomentsOfRow = Moments (*)(const float* x, int64_t count);
// y = (x - center) * factor * scale + bias; a null bias is zero. In place too.
using NormalizeRow = void (*)(const float* x, float* y, int64_t count, float center, float factor,
                              const float* scale, const float* bias);

// to[c * to_step + r] = from[r * from_step + c] for rows r and columns c. One for each element
// width: 1, 2, 4 and 8 bytes.
using TransposeLoop = void (*)(const void* from, int64_t from_step, void* to, int64_t to_step,
                               int64_t rows, int64_t columns);

// Bytes are u8 (index 0 of a table) or s8 (index 1) with one scale and zero point. y[i] =
// round(x[i] / scale) + zero, rounded to even and saturated; NaN becomes 0.
using QuantizeLoop = void (*)(const float* x, void* y, int64_t count, float scale, int32_t zero);
// y[i] = (x[i] - zero) * scale.
using DequantizeLoop = void (*)(const void* x, float* y, int64_t count, float scale, int32_t zero);
// Lowers *least and raises *greatest to the extremes of x; NaN counts for neither.
using MinMaxLoop = void (*)(const float* x, int64_t count, float* least, float* greatest);
// y = the quantised sum of two quantised vectors, at least 0 with `relu`. y may be the memory of a
// or b.
struct ByteSum {
  const void *a, *b;
  void* y;
  int64_t count;
  float a_scale, b_scale, y_scale;
  int32_t a_zero, b_zero, y_zero;
  bool relu;
};
using AddBytesLoop = void (*)(const ByteSum&);
// y[c] = the largest of the bytes taps[t][c]; the least byte where there are no taps.
using MaxBytesLoop = void (*)(const void* const* taps, int64_t count, void* y, int64_t columns);

// Sums of products of 16-bit integers. `b` is a panel of kPanelColumns columns: pairs along the
// depth one after the other, each with all columns. `a` has up to kTileRows rows of 2 * pairs
// elements, `a_step` apart. sums[row * kPanelColumns + column].
inline constexpr int kPanelColumns = 16, kTileRows = 6;
using SumTileLoop = void (*)(const int16_t* a, int64_t a_step, const int16_t* b, int64_t pairs,
                             int64_t rows, int32_t* sums);
// y[i] = sums[i] * scale[i] + bias[i].
using ScaleSumsLoop = void (*)(const int32_t* sums, const float* scale, const float* bias, float* y,
                               int64_t count);
// y[i] = x[i] - zero for bytes x.
using WidenLoop = void (*)(const void* x, int16_t* y, int64_t count, int32_t zero);

// Attention of some query rows of one head: y = softmax(scale * q k^T + mask) v.
struct AttentionRows {
  // Rows of keys or values that follow each other, those of a cache before the new ones.
  struct Part {
    const float* at = nullptr;
    int64_t step = 0, count = 0;
  };
  const float* q;
  int64_t q_step;
  Part keys[2], values[2];
  const float*
      packed_keys;  // from pack_keys; null: `keys` are read as they are, which suits few rows
  float* y;
  int64_t y_step;
  int64_t rows, key_count, width, value_width;
  int64_t
      first_seen;  // the first row sees so many keys, each row after it one more: key_count for all
  const float* mask;      // added to the scores, or
  const uint8_t* choice;  // keys that are seen; both null: no mask
  int64_t mask_row_step, mask_step;
  float scale;
  float hidden;        // what a row that sees no key is multiplied by: 0, or NaN
  bool finite;         // all keys and values are finite, so that masked ones need not be read
  float* scores;       // memory for `rows` rows
  int64_t score_step;  // at least key_count, and a multiple of key_panel
  float* factors;      // memory for `rows` numbers
};
using AttendLoop = void (*)(const AttentionRows&);
// `count` keys of two parts for `attend`: key_panel of them at a time, column by column, the last
// padded with zeros.
using PackKeysLoop = void (*)(const AttentionRows::Part* parts, int64_t count, int64_t width,
                              float* to);
using AllFiniteLoop = bool (*)(const float* x, int64_t count);

// Weighted sums in double, beginning with 0, in the order of the taps; a tap without weight counts
// for nothing. y[i] = the sum of weights[t] * lines[t][i].
using BlendLines = void (*)(const float* const* lines, const double* weights, int64_t count,
                            double* y, int64_t columns);
// Blends pixels of `width` elements: pixel o of y sums the pixels index[o * taps + t] of x.
struct BlendPixels {
  const double* x;
  const int64_t* index;
  const double* weights;
  int64_t taps, outputs, width;
  float* y;
};
using BlendPixelsLoop = void (*)(const BlendPixels&);

// A 3x3 convolution as F(4x4, 3x3) of Winograd: a tile of 4x4 outputs and 6x6 inputs becomes 36
// numbers for each channel, one for each of kWinogradPoints pairs of points.
inline constexpr int kWinogradInput = 6, kWinogradOutput = 4, kWinogradPoints = 36;
struct WinogradInput {
  const float* pixels[kWinogradPoints];  // row by row, each with all channels
  int64_t channels;
  float* to;  // to[point * step + channel]
  int64_t step;
};
using WinogradInputLoop = void (*)(const WinogradInput&);
struct WinogradOutput {
  const float* from;  // from[point * step + channel]
  int64_t step, channels;
  const float* bias;  // null: zeros
  // Pixels of the result and of what is added to it; null outside.
  float* pixels[kWinogradOutput * kWinogradOutput];
  const float* residuals[kWinogradOutput * kWinogradOutput];
  float low, high;  // results are kept between these; NaN stays
};
// Returns whether all results are finite, before they are kept between bounds.
using WinogradOutputLoop = bool (*)(const WinogradOutput&);
// One pixel of a result: elements of y that are not finite become chains of fused multiply-adds.
struct WinogradDirect {
  const float* taps[9];  // the pixels of the window; null outside the input
  const float* weights;  // [channel][input][tap]
  int64_t inputs;
  const float *bias, *residual;  // null: zeros
  float* y;
  int64_t channels;
};
using WinogradDirectLoop = void (*)(const WinogradDirect&);

// Consecutive terms of a chain of fused multiply-adds: inputs from x_offset on, and as many rows of
// weights from w_row on.
struct ChainRun {
  int64_t x_offset, w_row, count;
};
// A part of a convolution or product: `rows` pixels or rows, each with `columns` results. Every
// result is a chain of the terms of all runs, in order; the chain may be computed in several calls,
// which pass it on in y.
struct ChainTile {
  const float* x;  // of the first row; x_step elements from row to row
  int64_t x_step;
  const float* w;  // rows of chain_panel columns, of which `columns` are used
  const ChainRun* runs;
  int64_t run_count;
  float* y;
  int64_t y_step;
  int64_t rows, columns;
  bool begins;            // the chain begins here, with
  const float* start;     // one number for each column; null: zeros
  bool ends;              // the chain ends here; then follow, each if not null:
  const float* addend;    // added, one for each column
  const float* residual;  // added, one for each result
  int64_t residual_step;
  float low, high;  // results are kept between these; NaN stays
};
using ChainLoop = void (*)(const ChainTile&);
// The gradients of weights of chain_panel output channels: chains of `rows` neighbouring inputs
// times rows of gradients. The count of a run is in terms, x_step elements apart in x.
struct WeightChainTile {
  const float* x;  // of the first row
  int64_t x_step;
  const float* w;  // rows of chain_panel gradients
  const ChainRun* runs;
  int64_t run_count;
  float* y;
  int64_t y_step;
  int64_t rows;
  bool begins;  // with zeros; otherwise the chains go on from y
};
using WeightChainLoop = void (*)(const WeightChainTile&);
// The same where each of `channels` channels has weights of its own: rows of `channels` weights.
// The count of a run is 1.
struct DepthwiseRow {
  const float* x;
  int64_t x_step;
  const float* w;
  const ChainRun* runs;
  int64_t run_count;
  float* y;
  int64_t y_step;
  int64_t rows, channels;
  const float* start;
  const float* residual;
  int64_t residual_step;
  float low, high;
};
using DepthwiseLoop = void (*)(const DepthwiseRow&);

// A run of elements of a parameter with its gradient and state. `out` may be the memory of `in`.
struct UpdateRun {
  const float* gradient;
  const float* in[3];  // the parameter and its state
  float* out[3];
  int64_t count;
  float factor, clip;  // of gradients; the clip is infinite if there is none
  float rate, decay;
  // An average becomes keep times itself and take times the new number.
  float keep1, take1, keep2, take2;
  float correct1, correct2;  // factors of the first moment and of the root of the second
  float epsilon;
};
// kRmsProp is also Adagrad, with other factors.
enum class Updating : uint8_t {
  kSgd,
  kMomentum,
  kNesterov,
  kRmsProp,
  kAdam,
  kAdamW,
  kLambStep,
  kAverage,
};
inline constexpr size_t kUpdatingCount = static_cast<size_t>(Updating::kAverage) + 1;
using UpdateLoop = void (*)(const UpdateRun&);
using LambDirectionLoop = void (*)(const UpdateRun&, float* direction);
// For each line, or for each column, the sums of u and of u * (x - center), where u is the factor
// or, if that is null, x - center itself. Short runs are summed in f32 and added in double to what
// `sums` and `products` have.
struct CenteredSums {
  const float *factor, *x, *center;
  int64_t lines, columns;
  double *sums, *products;
};
using CenteredSumsLoop = void (*)(const CenteredSums&);
// y = grad_factor * grad + factor * (x - center) + shift, with one of each for each line, or for
// each column. y may be the memory of grad.
struct CenteredCombination {
  const float *grad, *x, *grad_factor, *factor, *center, *shift;
  float* y;
  int64_t lines, columns;
};
using CombineLoop = void (*)(const CenteredCombination&);
// The gradient of one row of LayerNormalization. Adds the row's part of the gradients of scale and
// bias to `scale_sums` and `sums`.
struct LayerGradientRow {
  const float *grad, *x, *scale;
  float mean, inverse;
  int64_t count;
  float *y, *scale_sums, *sums;
};
using LayerGradientLoop = void (*)(const LayerGradientRow&);
// Adds grad[c] to the result of the tap that is the greatest in column c.
using AddToGreatestLoop = void (*)(const float* const* taps, float* const* results, int64_t count,
                                   const float* grad, int64_t columns);

// y[i] = grad[i] * the slope of a function at other[i], which is its argument, or for Relu its
// result. y may be the memory of grad or other.
using PairLoop = void (*)(const float* grad, const float* other, float* y, int64_t count);

struct Loops {
  const char* name;  // of the instruction set
  UnaryLoop unary[kUnaryCount];
  BinaryLoop binary[kBinaryCount][kSpreadCount];
  AffineLoop affine_by_line, affine_by_column;
  ReduceRow reduce_row[kReduceCount];
  ReduceColumns reduce_columns[kReduceCount];
  ReduceRow reduce_row_in_order[kReduceCount];
  ReduceColumns reduce_columns_in_order[kReduceCount];
  MaxOfLines max_of;
  SumOfLines scaled_sum_of;
  WindowLoop max_of_windows, scaled_sum_of_windows;
  SoftmaxRow softmax_row;
  SoftmaxColumns softmax_columns;
  MomentsOfRow moments;
  NormalizeRow normalize_row;
  AttendLoop attend;
  PackKeysLoop pack_keys;
  int64_t key_panel;  // keys in a panel of pack_keys
  AllFiniteLoop all_finite;
  TransposeLoop transpose[4];  // by log2 of the width
  QuantizeLoop quantize[2];
  DequantizeLoop dequantize[2];
  MinMaxLoop min_max;
  AddBytesLoop add_bytes[2][2][2];  // by the types of a, b and y
  MaxBytesLoop max_of_bytes[2];
  SumTileLoop sum_tile;
  ScaleSumsLoop scale_sums;
  WidenLoop widen[2];
  BlendLines blend_lines;
  BlendPixelsLoop blend_pixels;
  WinogradInputLoop winograd_input;
  WinogradOutputLoop winograd_output;
  WinogradDirectLoop winograd_direct;
  ChainLoop chains;
  int64_t chain_panel, chain_rows;  // columns of a panel; rows of the largest tile
  WeightChainLoop weight_chains;
  DepthwiseLoop depthwise;
  UpdateLoop update[kUpdatingCount];
  LambDirectionLoop lamb_direction;
  CenteredSumsLoop centered_sums_by_line, centered_sums_by_column;
  CombineLoop combine_by_line, combine_by_column;
  LayerGradientLoop layer_gradient;
  AddToGreatestLoop add_to_greatest;
  PairLoop relu_gradient, gelu_gradient, gelu_tanh_gradient;
};

// The best table that this processor executes.
const Loops& LoopsHere();

// One for each instruction set that was compiled in, best first; for tests.
const Loops* const* AllLoops(size_t* count);

}  // namespace msrt::cpu

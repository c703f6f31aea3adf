// One function for each family: returns the entries at the end of ops/<family>.cc.
#pragma once

#include <span>

#include "ops/op_def.h"

namespace msrt {

std::span<const OpDef> UnaryOps();   // unary.cc: activations, Cast, Clip, Identity
std::span<const OpDef> UnaryGradOps();  // unary_grad.cc: msrt.ReluGrad, msrt.GeluGrad
std::span<const OpDef> BinaryOps();  // binary.cc: arithmetic, comparisons, Where, variadic Sum
std::span<const OpDef> MatMulOps();  // matmul.cc: MatMul, Gemm and their fused forms
std::span<const OpDef> ConvOps();    // conv.cc: Conv, ConvTranspose, FusedConv
std::span<const OpDef> ConvGradOps();  // conv_grad.cc: msrt.ConvWeightGrad
std::span<const OpDef> PoolOps();    // pool.cc
std::span<const OpDef> PoolGradOps();  // pool_grad.cc: msrt.MaxPoolGrad, msrt.AveragePoolGrad
std::span<const OpDef> ResizeOps();  // resize.cc: Resize, DepthToSpace, SpaceToDepth
std::span<const OpDef> ResizeGradOps();  // resize_grad.cc: msrt.ResizeGrad
std::span<const OpDef> NormalizationOps();  // normalization.cc
std::span<const OpDef> NormalizationGradOps();  // normalization_grad.cc
std::span<const OpDef> SoftmaxOps();        // softmax.cc
std::span<const OpDef> SoftmaxGradOps();    // softmax_grad.cc
std::span<const OpDef> ReduceOps();         // reduce.cc
std::span<const OpDef> ReduceGradOps();     // reduce_grad.cc: msrt.SumTo
std::span<const OpDef> SelectOps();         // select.cc: ArgMax, ArgMin, TopK
std::span<const OpDef> AttentionOps();      // attention.cc
std::span<const OpDef> ShapeOps();          // shape.cc: Reshape, Squeeze, Flatten, Shape, Expand
std::span<const OpDef> GenerateOps();       // generate.cc: ConstantOfShape, Range, EyeLike, Trilu
std::span<const OpDef> MovementOps();       // movement.cc: Transpose, Concat, Split, Slice, Tile
std::span<const OpDef> PadOps();            // pad.cc
std::span<const OpDef> GatherOps();         // gather.cc: Gather*, Scatter*, OneHot
std::span<const OpDef> QuantizationOps();   // quantization.cc: QuantizeLinear, DequantizeLinear
std::span<const OpDef> QuantizedProductOps();  // quantized_product.cc: MatMulInteger, QLinearConv
std::span<const OpDef> RecurrentOps();         // recurrent.cc: RNN, GRU, LSTM
std::span<const OpDef> NgramOps();             // ngram.cc: TfIdfVectorizer
std::span<const OpDef> TreeEnsembleOps();      // tree_ensemble.cc
std::span<const OpDef> StateOps();             // state.cc: msrt.StateRead, msrt.StateWrite
std::span<const OpDef> ExchangeOps();          // exchange.cc: msrt.Exchange
std::span<const OpDef> CollectiveOps();        // collective.cc: msrt.AllReduce
std::span<const OpDef> FilterOps();            // filter.cc: NonZero, Compress, Unique
std::span<const OpDef> SuppressionOps();       // suppression.cc: NonMaxSuppression
std::span<const OpDef> LossOps();              // loss.cc: losses over classes
std::span<const OpDef> LossGradOps();          // loss_grad.cc: msrt.SoftmaxCrossEntropyGrad
std::span<const OpDef> SamplingOps();          // sampling.cc: GridSample, AffineGrid, RoiAlign
std::span<const OpDef> UnpoolOps();            // unpool.cc: MaxUnpool, Col2Im
std::span<const OpDef> DeformConvOps();        // deform_conv.cc
std::span<const OpDef> LocalResponseOps();     // local_response.cc: LRN
std::span<const OpDef> SignalOps();            // signal.cc: DFT, STFT
std::span<const OpDef> SignalTableOps();       // signal_tables.cc: windows, MelWeightMatrix
std::span<const OpDef> EinsumOps();            // einsum.cc
std::span<const OpDef> DeterminantOps();       // determinant.cc: Det
std::span<const OpDef> DeterminantGradOps();   // determinant_grad.cc: msrt.Inverse
std::span<const OpDef> RotaryOps();            // rotary.cc: RotaryEmbedding
std::span<const OpDef> MomentsOps();           // moments.cc: Moments, Normalize
std::span<const OpDef> RandomOps();            // random.cc: Random*, Bernoulli, Dropout
std::span<const OpDef> OptimizerOps();         // optimizer.cc: Adagrad, Adam, Momentum
std::span<const OpDef> TrainingOptimizerOps();  // training_optimizer.cc: msrt.Sgd, msrt.Adam, ...
std::span<const OpDef> ControlOps();           // control.cc: If, Loop, Scan, msrt.While, msrt.Call
std::span<const OpDef> ListOps();  // lists.cc: Sequence*, SplitToSequence, ConcatFromSequence

}  // namespace msrt

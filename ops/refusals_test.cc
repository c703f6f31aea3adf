// Covers what the op cases cannot show of the families einsum, loss, filter, signal, rotary,
// sampling, unpool, deform_conv, optimizer: nodes that inference must refuse, and types with
// unknown dims.
#include "ops/infer_testing.h"

namespace msrt::testing {
namespace {

Type I64(Dims dims) { return Type::Tensor(DType::kI64, dims); }
using Ints = std::vector<int64_t>;

TypedNode EinsumOf(std::string equation, std::vector<Type> inputs) {
  return NodeOf("", "Einsum", {{"equation", equation}}, std::move(inputs));
}

TEST(Einsum, RefusesInvalidEquations) {
  ExpectRefused(EinsumOf("ij,jk->ik", {F32({2, 3})}), "2 terms for 1 inputs");
  ExpectRefused(EinsumOf("i1->i", {F32({2, 3})}), "must be letters and at most one '...'");
  ExpectRefused(EinsumOf("i..->i", {F32({2, 3})}), "must be letters and at most one '...'");
  ExpectRefused(EinsumOf("...i...->i", {F32({2, 3})}), "must be letters and at most one '...'");
  ExpectRefused(EinsumOf("ij->ii", {F32({2, 3})}), "names 'i' twice");
  ExpectRefused(EinsumOf("ij->k", {F32({2, 3})}), "no input has the index 'k'");
  ExpectRefused(EinsumOf("ij->i->j", {F32({2, 3})}), "must be letters");
  ExpectRefused(EinsumOf("ijk->i", {F32({2, 3})}), "the equation names 3 of its dims");
  ExpectRefused(EinsumOf("...ijk->i", {F32({2, 3})}), "the equation names 3 of its dims");
  ExpectRefused(EinsumOf("ij,jk->ik", {F32({2, 3}), F32({4, 5})}), "dim 0 of input 1 is 4, but 3");
  ExpectRefused(EinsumOf("ii->i", {F32({2, 3})}), "dim 1 of input 0 is 3, but 2");
}

TEST(Einsum, AcceptsUnknownDimsAndRanks) {
  EXPECT_EQ(Inferred(EinsumOf("ij,jk->ik", {F32({kUnknownDim, 3}), F32({3, 5})})), "f32[?, 5]");
  EXPECT_EQ(Inferred(EinsumOf("ij,jk->j", {F32({2, kUnknownDim}), F32({3, 5})})), "f32[3]");
  EXPECT_EQ(Inferred(EinsumOf("ij,jk->ik", {Type::UnrankedTensor(DType::kF32), F32({3, 5})})),
            "f32[?, ?]");
  EXPECT_EQ(Inferred(EinsumOf("...j,jk", {Type::UnrankedTensor(DType::kF32), F32({3, 5})})),
            "f32[*]");
}

TEST(Loss, RefusesInconsistentShapes) {
  ExpectRefused(NodeOf("", "NegativeLogLikelihoodLoss", {}, {F32({3}), I64({3})}),
                "must be [N, C, ...]");
  ExpectRefused(NodeOf("", "NegativeLogLikelihoodLoss", {}, {F32({3, 5, 2}), I64({3})}),
                "without the classes");
  ExpectRefused(NodeOf("", "SoftmaxCrossEntropyLoss", {}, {F32({3, 5, 2}), I64({3, 4})}),
                "a dim of scores and target");
  ExpectRefused(NodeOf("", "SoftmaxCrossEntropyLoss", {}, {F32({3, 5}), I64({3}), F32({4})}),
                "the weights and the classes");
  EXPECT_EQ(Inferred(NodeOf("", "SoftmaxCrossEntropyLoss", {{"reduction", std::string("none")}},
                            {F32({kUnknownDim, 5, 2}), Type::UnrankedTensor(DType::kI64)})),
            "f32[?, 2]");
}

TEST(Filter, RefusesBadAxesAndConditions) {
  const Type condition = Type::Tensor(DType::kBool, {4});
  ExpectRefused(NodeOf("", "Compress", {{"axis", int64_t{2}}}, {F32({3, 4}), condition}), "axis");
  ExpectRefused(NodeOf("", "Compress", {{"axis", int64_t{0}}}, {F32({3, 4}), condition}),
                "has 4 elements, at most 3");
  ExpectRefused(NodeOf("", "Unique", {{"axis", int64_t{-3}}}, {F32({3, 4})}), "axis");
  ExpectRefused(NodeOf("", "NonMaxSuppression", {}, {F32({1, 6, 5}), F32({1, 2, 6})}),
                "the numbers of a box");
  ExpectRefused(NodeOf("", "NonMaxSuppression", {}, {F32({1, 6, 4}), F32({1, 2, 7})}),
                "the boxes and their scores");
  ExpectRefused(NodeOf("", "NonMaxSuppression", {}, {F32({1, 6, 4}), F32({1, 2, 6}), I64({2})}),
                "must have one element");
  EXPECT_EQ(Inferred(NodeOf("", "NonZero", {}, {F32({3, 4})})), "i64[2, ?]");
  EXPECT_EQ(Inferred(NodeOf("", "Unique", {{"axis", int64_t{1}}}, {F32({3, 4})}, 4), 2), "i64[4]");
}

TEST(Signal, RefusesBadLengthsAndAxes) {
  ExpectRefused(NodeOf("", "DFT", {}, {F32({2, 8, 3})}), "must be 1 (real) or 2 (complex)");
  ExpectRefused(NodeOf("", "DFT", {{"axis", int64_t{2}}}, {F32({2, 8, 1})}),
                "real and imaginary parts");
  ExpectRefused(NodeOf("", "DFT", {{"onesided", int64_t{1}}}, {F32({2, 8, 2})}),
                "onesided must be 0");
  ExpectRefused(NodeOf("", "DFT", {}, {F32({2, 8, 1}), I64({1}), LeftOut(), I64({1})}), "inputs");
  ExpectRefused(NodeOf("", "STFT", {{"frame_step", int64_t{4}}, {"frame_length", int64_t{20}}},
                       {F32({2, 16, 1})}),
                "longer than the signal");
  ExpectRefused(NodeOf("", "STFT", {{"frame_step", int64_t{4}}, {"frame_length", int64_t{8}}},
                       {F32({2, 16, 1}), LeftOut(), F32({6})}),
                "the lengths of frame and window");
  EXPECT_EQ(Inferred(NodeOf("", "DFT", {}, {F32({2, 8, 1}), I64({})})), "f32[2, ?, 2]");
  EXPECT_EQ(Inferred(NodeOf("", "DFT", {}, {F32({2, 8, 4, 1}), LeftOut(), I64({})})),
            "f32[?, ?, ?, 2]");
}

TEST(Rotary, RefusesBadHeadsAndCaches) {
  const Type positions = I64({2, 3});
  ExpectRefused(
      NodeOf("", "RotaryEmbedding", {}, {F32({2, 3, 8}), F32({9, 4}), F32({9, 4}), positions}),
      "num_heads is missing");
  ExpectRefused(NodeOf("", "RotaryEmbedding", {{"num_heads", int64_t{3}}},
                       {F32({2, 3, 8}), F32({9, 4}), F32({9, 4}), positions}),
                "a multiple of num_heads = 3");
  ExpectRefused(NodeOf("", "RotaryEmbedding", {{"rotary_embedding_dim", int64_t{3}}},
                       {F32({2, 2, 3, 8}), F32({9, 4}), F32({9, 4}), positions}),
                "must be an even number");
  ExpectRefused(NodeOf("", "RotaryEmbedding", {{"rotary_embedding_dim", int64_t{10}}},
                       {F32({2, 2, 3, 8}), F32({9, 5}), F32({9, 5}), positions}),
                "must be at most 8");
  ExpectRefused(
      NodeOf("", "RotaryEmbedding", {}, {F32({2, 2, 3, 8}), F32({9, 3}), F32({9, 3}), positions}),
      "3 against 4");
  ExpectRefused(
      NodeOf("", "RotaryEmbedding", {}, {F32({2, 2, 3, 8}), F32({9, 4}), F32({8, 4}), positions}),
      "must be alike");
}

TEST(Vision, RefusesInconsistentShapes) {
  ExpectRefused(NodeOf("", "GridSample", {}, {F32({1, 2, 4, 5}), F32({1, 3, 4, 3})}),
                "the number of spatial axes");
  ExpectRefused(NodeOf("", "GridSample", {}, {F32({1, 2, 4, 5}), F32({2, 3, 4, 2})}),
                "the batches of input and grid");
  ExpectRefused(NodeOf("", "AffineGrid", {{"size", Ints{1, 2, 4, 5}}}, {F32({1, 3, 4})}),
                "the rows of theta");
  ExpectRefused(NodeOf("", "AffineGrid", {{"size", Ints{1, 2, 4}}}, {F32({1, 1, 2})}),
                "must have 4 or 5");
  ExpectRefused(NodeOf("", "AffineGrid", {{"size", Ints{}}}, {F32({1, 2, 3})}),
                "size has 0 entries");
  ExpectRefused(NodeOf("", "RoiAlign", {}, {F32({1, 2, 4, 5}), F32({3, 4}), I64({2})}),
                "batch_indices");
  ExpectRefused(NodeOf("", "MaxUnpool",
                       {{"kernel_shape", Ints{2, 2}},
                        {"strides", Ints{2, 2}},
                        {"unpooled_shape", Ints{1, 1, 3, 4}}},
                       {F32({1, 1, 2, 2}), I64({1, 1, 2, 2})}),
                "does not hold the unpooled");
  ExpectRefused(NodeOf("", "Col2Im", {{"image_shape", Ints{4, 4}}, {"block_shape", Ints{2, 2}}},
                       {F32({1, 6, 9})}),
                "a multiple of 4");
  ExpectRefused(NodeOf("", "Col2Im", {{"image_shape", Ints{4, 4}}, {"block_shape", Ints{2, 2}}},
                       {F32({1, 8, 8})}),
                "the blocks of the image");
  ExpectRefused(
      NodeOf("", "DeformConv", {}, {F32({1, 4, 5, 5}), F32({2, 4, 2, 2}), F32({1, 6, 4, 4})}),
      "those of all taps");
  ExpectRefused(NodeOf("", "DeformConv", {{"offset_group", int64_t{3}}},
                       {F32({1, 4, 5, 5}), F32({2, 4, 2, 2}), F32({1, 24, 4, 4})}),
                "do not divide");
}

TEST(Optimizer, RefusesBadLists) {
  constexpr std::string_view kDomain = "ai.onnx.preview.training";
  const AttrList momentum = {
      {"norm_coefficient", 0.0}, {"alpha", 0.9}, {"beta", 1.0}, {"mode", std::string("standard")}};
  const Type rate = F32({}), count = I64({});
  ExpectRefused(NodeOf(kDomain, "Momentum", momentum, {rate, count, F32({2}), F32({2})}, 2),
                "must have 3 for each");
  ExpectRefused(
      NodeOf(kDomain, "Momentum", momentum, {rate, count, F32({2}), F32({3}), F32({2})}, 2),
      "belongs to a tensor");
  ExpectRefused(
      NodeOf(kDomain, "Adam", {}, {rate, count, F32({2}), F32({2}), F32({2}), F32({2})}, 4),
      "has 4 outputs, must have 3");
  ExpectRefused(NodeOf(kDomain, "Adagrad", {}, {F32({2}), count, F32({2}), F32({2}), F32({2})}, 2),
                "must have one element");
}

}  // namespace
}  // namespace msrt::testing

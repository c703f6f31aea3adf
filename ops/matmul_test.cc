// Covers what the op cases cannot show: bad shapes, and pieces of a sum over the depth.
#include "ops/infer_testing.h"
#include "ops/resolve_space.h"

namespace msrt::testing {
namespace {

TEST(MatMulInfer, RefusesBadShapes) {
  ExpectRefused(NodeOf("", "MatMul", {}, {F32({2, 3}), F32({4, 5})}), "inner dims");
  ExpectRefused(NodeOf("", "MatMul", {}, {F32({}), F32({4})}), "scalar");
  ExpectRefused(NodeOf("", "MatMul", {}, {F32({2, 3, 4}), F32({3, 4, 5})}), "batch dims");
  ExpectRefused(NodeOf("", "MatMul", {}, {F32({2, 3}), Type::Tensor(DType::kF16, {3, 4})}),
                "element type");
  ExpectRefused(NodeOf("", "MatMul", {}, {F32({int64_t{1} << 40, 0}), F32({0, int64_t{1} << 40})}),
                "2^56");
  ExpectRefused(NodeOf("", "Gemm", {}, {F32({2, 3, 4}), F32({4, 5})}), "rank 2");
  ExpectRefused(NodeOf("", "Gemm", {}, {F32({2, 3}), F32({3, 5}), F32({2})}), "does not broadcast");
  ExpectRefused(NodeOf("", "Gemm", {}, {F32({2, 3}), F32({3, 5}), F32({1, 2, 5})}),
                "does not broadcast");
  ExpectRefused(NodeOf("", "Gemm", {{"transA", int64_t{1}}}, {F32({2, 3}), F32({3, 5})}),
                "inner dims");
  const Type integers = Type::Tensor(DType::kI32, {2, 2});
  ExpectRefused(NodeOf("", "Gemm", {{"alpha", 0.5}}, {integers, integers}), "whole number");
  ExpectRefused(NodeOf("msrt", "FusedMatMul", {{"transB", int64_t{1}}}, {F32({2, 3}), F32({3})}),
                "to be transposed");
  ExpectRefused(NodeOf("msrt", "FusedMatMul", {}, {F32({2, 3}), F32({3, 4}), F32({3, 2, 4})}),
                "bias");
  ExpectRefused(NodeOf("msrt", "FusedMatMul", {}, {F32({2, 3}), F32({3, 4}), LeftOut(), F32({4})}),
                "Z");
  ExpectRefused(
      NodeOf("msrt", "FusedMatMul", {}, {F32({2, 3}), F32({3, 4}), LeftOut(), F32({2, 1})}), "Z");
}

TEST(MatMulInfer, KeepsKnownDims) {
  const int64_t unknown = kUnknownDim, n = SymbolDim(0);
  EXPECT_EQ(Inferred(NodeOf("", "MatMul", {}, {F32({n, 1, 2, unknown}), F32({3, 4, 5})})),
            "f32[s0, 3, 2, 5]");
  EXPECT_EQ(
      Inferred(NodeOf("", "Gemm", {}, {Type::UnrankedTensor(DType::kF32), F32({unknown, 5})})),
      "f32[?, 5]");
  EXPECT_EQ(Inferred(NodeOf("msrt", "FusedMatMul", {},
                            {F32({unknown, 3}), F32({3, 4}), LeftOut(), F32({7, 4})})),
            "f32[7, 4]");
}

TEST(MatMulSpace, DepthIsSummedUnlessAnActivationFollows) {
  const auto depth_kind = [](TypedNode node) {
    EXPECT_TRUE(node.Infer().ok());
    const auto space = node.With([&](const OpView& op) { return ResolveSpace(*node.def, op); });
    EXPECT_TRUE(space.ok());
    return space->axes[space->axes.rank() - 1].kind;
  };
  EXPECT_EQ(depth_kind(NodeOf("", "MatMul", {}, {F32({2, 3}), F32({3, 4})})), AxisKind::kReduce);
  EXPECT_EQ(depth_kind(NodeOf("", "Gemm", {}, {F32({2, 3}), F32({3, 4})})), AxisKind::kReduce);
  EXPECT_EQ(depth_kind(NodeOf("", "Gemm", {}, {F32({2, 3}), F32({3, 4}), F32({4})})),
            AxisKind::kReduce);
  const AttrList relu{{"activation", std::string("Relu")}};
  EXPECT_EQ(depth_kind(NodeOf("msrt", "FusedMatMul", relu, {F32({2, 3}), F32({3, 4})})),
            AxisKind::kWhole);
}

TEST(MatMulSpace, PartOfTheDepthReadsPartOfBothOperands) {
  TypedNode node = NodeOf("", "Gemm", {{"transA", int64_t{1}}}, {F32({6, 2}), F32({6, 4})});
  ASSERT_TRUE(node.Infer().ok());
  const auto space = node.With([&](const OpView& op) { return ResolveSpace(*node.def, op); });
  ASSERT_TRUE(space.ok()) << space.status().message();
  Box box = space->axes.Whole();
  box[2] = {1, 3};
  const std::vector<Box> in = InputBoxes(*space, box), out = OutputBoxes(*space, box);
  EXPECT_EQ(StrCat(in[0]), "[1, 3) x [0, 2)");
  EXPECT_EQ(StrCat(in[1]), "[1, 3) x [0, 4)");
  EXPECT_EQ(StrCat(out[0]), "[0, 2) x [0, 4)");
}

// Row-parallel linear layers: only the first part of the depth is a node with a bias.
TEST(MatMulSpace, OnlyTheFirstPartOfTheDepthHasTheBias) {
  for (const TypedNode& gemm :
       {NodeOf("", "Gemm", {}, {F32({2, 6}), F32({6, 4}), F32({4})}),
        NodeOf("msrt", "FusedMatMul", {}, {F32({2, 6}), F32({6, 4}), F32({4}), F32({2, 4})})}) {
    TypedNode node = gemm;
    ASSERT_TRUE(node.Infer().ok());
    const auto space = node.With([&](const OpView& op) { return ResolveSpace(*node.def, op); });
    ASSERT_TRUE(space.ok()) << space.status().message();
    Box first = space->axes.Whole(), later = first;
    first[2] = {0, 3}, later[2] = {3, 6};
    for (size_t i = 2; i < node.inputs.size(); ++i) {
      EXPECT_TRUE(IsPresent(space->inputs[i], first));
      EXPECT_FALSE(IsPresent(space->inputs[i], later));
    }
    EXPECT_EQ(StrCat(InputBoxes(*space, later)[0]), "[0, 2) x [3, 6)");
  }
}

}  // namespace
}  // namespace msrt::testing

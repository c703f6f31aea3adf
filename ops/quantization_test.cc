// Covers what the op cases cannot show: bad shapes and types, and pieces of sums.
#include "ops/infer_testing.h"
#include "ops/resolve_space.h"

namespace msrt::testing {
namespace {

Type Of(DType dtype, Dims dims) { return Type::Tensor(dtype, dims); }
Type U8(Dims dims) { return Of(DType::kU8, dims); }
Type I8(Dims dims) { return Of(DType::kI8, dims); }

TEST(QuantizeInfer, RefusesScalesThatDoNotFit) {
  const auto node = [](Dims x, Dims scale, AttrList attrs = {}) {
    return NodeOf("", "QuantizeLinear", std::move(attrs), {F32(x), F32(scale), U8(scale)});
  };
  ExpectRefused(node({2, 3}, {2}), "length of its scale");
  ExpectRefused(node({2, 3}, {2, 3}), "with 'block_size'");
  ExpectRefused(node({}, {2}), "rank 0");
  ExpectRefused(node({2, 3}, {3}, {{"axis", int64_t{2}}}), "axis = 2");
  ExpectRefused(node({2, 6}, {2, 2}, {{"block_size", int64_t{2}}}),
                "blocks along axis 1, must have 3");
  ExpectRefused(node({2, 6}, {1, 3}, {{"block_size", int64_t{2}}}), "dim 0");
  ExpectRefused(node({2, 6}, {2, 6}, {{"block_size", int64_t{1} << 57}}), "block_size");
  ExpectRefused(node({2, 6}, {2, 4}, {{"block_size", int64_t{2}}, {"block_offset", int64_t{2}}}),
                "block_offset = 2");
  ExpectRefused(NodeOf("", "QuantizeLinear", {}, {F32({2, 3}), F32({3}), U8({2})}), "zero point");
}

TEST(QuantizeInfer, TakesTheTypeFromTheZeroPointOrTheAttribute) {
  const Type x = F32({2, SymbolDim(0)}), scale = F32({});
  EXPECT_EQ(Inferred(NodeOf("", "QuantizeLinear", {}, {x, scale})), "u8[2, s0]");
  EXPECT_EQ(Inferred(NodeOf("", "QuantizeLinear", {}, {x, scale, I8({})})), "i8[2, s0]");
  EXPECT_EQ(Inferred(NodeOf("", "QuantizeLinear", {{"output_dtype", DType::kI4}}, {x, scale})),
            "i4[2, s0]");
  ExpectRefused(NodeOf("", "QuantizeLinear", {{"output_dtype", DType::kU8}}, {x, scale, I8({})}),
                "output_dtype");
  ExpectRefused(NodeOf("", "QuantizeLinear", {{"output_dtype", DType::kF32}}, {x, scale}),
                "output_dtype");
  ExpectRefused(NodeOf("", "QuantizeLinear", {{"precision", DType::kI8}}, {x, scale}), "precision");
  ExpectRefused(NodeOf("", "DequantizeLinear", {}, {U8({2}), scale, I8({})}), "element type");
  ExpectRefused(NodeOf("", "DequantizeLinear", {{"output_dtype", DType::kI8}}, {U8({2}), scale}),
                "output_dtype");
}

TEST(QuantizedProductInfer, RefusesParametersThatDoNotFit) {
  ExpectRefused(NodeOf("", "MatMulInteger", {}, {U8({2, 3}), I8({4, 5})}), "inner dims");
  ExpectRefused(NodeOf("", "MatMulInteger", {}, {U8({2, 3}), I8({3, 5}), U8({3})}),
                "rows of input 0");
  ExpectRefused(NodeOf("", "MatMulInteger", {}, {U8({2, 3}), I8({3, 5}), U8({}), I8({3})}),
                "columns of input 1");
  ExpectRefused(NodeOf("", "MatMulInteger", {}, {U8({2, 3}), I8({3, 5}), U8({2, 3})}),
                "along the depth");
  ExpectRefused(NodeOf("", "MatMulInteger", {}, {U8({3}), I8({3, 5}), U8({3})}),
                "must be one number");
  ExpectRefused(NodeOf("", "MatMulInteger", {}, {U8({2, 3}), I8({3, 5}), I8({})}), "element type");
  ExpectRefused(
      NodeOf("", "QLinearMatMul", {},
             {U8({2, 3}), F32({}), U8({}), I8({3, 5}), F32({}), I8({}), F32({2}), U8({})}),
      "input 6");
  const Type x = U8({1, 2, 5}), w = I8({4, 2, 3});
  ExpectRefused(NodeOf("", "ConvInteger", {}, {x, w, U8({2})}), "input 2");
  ExpectRefused(NodeOf("", "ConvInteger", {}, {x, w, U8({}), I8({3})}), "output channels");
  ExpectRefused(NodeOf("", "ConvInteger", {}, {x, I8({4, 3, 3})}), "input channels");
  const Type bias = Of(DType::kI32, {3});
  ExpectRefused(NodeOf("", "QLinearConv", {},
                       {x, F32({}), U8({}), w, F32({4}), I8({4}), F32({}), U8({}), bias}),
                "length of B");
}

TEST(QuantizedProductSpace, DepthIsSummedOnlyIfNotQuantisedAgain) {
  const auto depth_kind = [](TypedNode node) {
    EXPECT_TRUE(node.Infer().ok());
    const auto space = node.With([&](const OpView& op) { return ResolveSpace(*node.def, op); });
    EXPECT_TRUE(space.ok());
    return space->axes[space->axes.rank() - 1].kind;
  };
  const Type a = U8({2, 3}), b = I8({3, 4}), x = U8({1, 2, 5}), w = I8({4, 2, 3}), one = F32({});
  EXPECT_EQ(depth_kind(NodeOf("", "MatMulInteger", {}, {a, b})), AxisKind::kReduce);
  EXPECT_EQ(
      depth_kind(NodeOf("", "QLinearMatMul", {}, {a, one, U8({}), b, one, I8({}), one, U8({})})),
      AxisKind::kWhole);
  EXPECT_EQ(depth_kind(NodeOf("", "ConvInteger", {}, {x, w})), AxisKind::kReduce);
  EXPECT_EQ(
      depth_kind(NodeOf("", "QLinearConv", {}, {x, one, U8({}), w, one, I8({}), one, U8({})})),
      AxisKind::kWhole);
}

TEST(QuantizedProductSpace, PieceReadsTheParametersOfItsRowsAndColumns) {
  TypedNode node =
      NodeOf("", "MatMulInteger", {}, {U8({2, 6, 3}), I8({3, 4}), U8({2, 6, 1}), I8({4})});
  ASSERT_TRUE(node.Infer().ok());
  const auto space = node.With([&](const OpView& op) { return ResolveSpace(*node.def, op); });
  ASSERT_TRUE(space.ok()) << space.status().message();
  Box box = space->axes.Whole();
  box[0] = {1, 2}, box[1] = {2, 5}, box[2] = {3, 4}, box[3] = {0, 2};
  const std::vector<Box> in = InputBoxes(*space, box);
  EXPECT_EQ(StrCat(in[0]), "[1, 2) x [2, 5) x [0, 2)");
  EXPECT_EQ(StrCat(in[1]), "[0, 2) x [3, 4)");
  EXPECT_EQ(StrCat(in[2]), "[1, 2) x [2, 5) x [0, 1)");
  EXPECT_EQ(StrCat(in[3]), "[3, 4)");
}

}  // namespace
}  // namespace msrt::testing

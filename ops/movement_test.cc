// Covers what the op cases cannot show of the shape, generate, movement and pad families: nodes
// that inference must refuse, and dims that it can infer although others are unknown.
#include <limits>

#include "ops/infer_testing.h"
#include "ops/resolve_space.h"

namespace msrt::testing {
namespace {

using Ints = std::vector<int64_t>;
constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
constexpr int64_t kN = SymbolDim(0), kM = SymbolDim(1), kUnknown = kUnknownDim;

Type I64(Dims dims) { return Type::Tensor(DType::kI64, dims); }
TypedNode Node(std::string_view op, AttrList attrs, std::vector<Type> inputs, size_t outputs = 1) {
  return NodeOf("", op, std::move(attrs), std::move(inputs), outputs);
}

TEST(ReshapeInfer, RefusesImpossibleShapes) {
  ExpectRefused(Node("Reshape", {}, {F32({2})}), "missing");
  ExpectRefused(Node("Reshape", {{"shape", Ints{2}}}, {F32({2}), I64({1})}), "both");
  ExpectRefused(Node("Reshape", {{"shape", Ints{-1, -1}}}, {F32({2})}), "at most one");
  ExpectRefused(Node("Reshape", {{"shape", Ints{3, -1}}}, {F32({2, 4})}), "not a multiple of 3");
  ExpectRefused(Node("Reshape", {{"shape", Ints{3, 3}}}, {F32({2, 4})}),
                "the numbers of elements differ");
  ExpectRefused(Node("Reshape", {{"shape", Ints{2, 0, 1}}}, {F32({8})}), "does not have");
  ExpectRefused(Node("Reshape", {{"shape", Ints{0, -1}}, {"allowzero", int64_t{1}}}, {F32({0, 3})}),
                "could be anything");
  ExpectRefused(Node("Reshape", {{"shape", Ints{kHuge, kHuge}}}, {F32({4})}), "overflows");
  ExpectRefused(Node("Reshape", {}, {F32({4}), I64({9})}), "more than 8 dims");
  ExpectRefused(Node("Reshape", {}, {F32({4}), I64({2, 2})}), "must be a list");
}

TEST(ReshapeInfer, InfersDimsDespiteUnknownOnes) {
  EXPECT_EQ(Inferred(Node("Reshape", {{"shape", Ints{0, -1}}}, {F32({kN, 3, 4})})), "f32[s0, 12]");
  EXPECT_EQ(Inferred(Node("Reshape", {{"shape", Ints{-1, 12}}}, {F32({kN, 3, 4})})), "f32[s0, 12]");
  EXPECT_EQ(Inferred(Node("Reshape", {{"shape", Ints{0, 0, -1}}}, {F32({kN, kM, 3, 4})})),
            "f32[s0, s1, 12]");
  EXPECT_EQ(Inferred(Node("Reshape", {{"shape", Ints{-1, 6}}}, {F32({kN, 3, 4})})), "f32[?, 6]");
  EXPECT_EQ(Inferred(Node("Reshape", {{"shape", Ints{0, -1}}}, {F32({0, 3, 4})})), "f32[0, 12]");
  EXPECT_EQ(Inferred(Node("Reshape", {}, {F32({kN, 3}), I64({2})})), "f32[?, ?]");
  EXPECT_EQ(Inferred(Node("Flatten", {}, {F32({kN, 3, 4})})), "f32[s0, 12]");
  EXPECT_EQ(Inferred(Node("Flatten", {}, {F32({kN, 3, kM})})), "f32[s0, ?]");
}

TEST(SqueezeInfer, RefusesBadAxes) {
  ExpectRefused(Node("Squeeze", {{"axes", Ints{1}}}, {F32({1, 2})}), "which is not 1");
  ExpectRefused(Node("Squeeze", {{"axes", Ints{0, -2}}}, {F32({1, 2})}), "twice");
  ExpectRefused(Node("Unsqueeze", {{"axes", Ints{4}}}, {F32({1, 2})}), "axes = 4");
  ExpectRefused(Node("Unsqueeze", {{"axes", Ints{0, 1, 2, 3, 4, 5, 6}}}, {F32({1, 2})}),
                "more than 8");
  ExpectRefused(Node("Unsqueeze", {}, {F32({1, 2})}), "missing");
  ExpectRefused(Node("Flatten", {{"axis", int64_t{3}}}, {F32({1, 2})}), "axis = 3");
  EXPECT_EQ(Inferred(Node("Squeeze", {{"axes", Ints{1}}}, {F32({kN, kUnknown})})), "f32[s0]");
  EXPECT_EQ(Inferred(Node("Squeeze", {}, {F32({kN, 1})})), "f32[*]");
}

TEST(ExpandInfer, RefusesShapesThatDoNotBroadcastOrFit) {
  ExpectRefused(Node("Expand", {{"shape", Ints{3}}}, {F32({2})}), "do not broadcast");
  ExpectRefused(Node("Expand", {{"shape", Ints{kHuge, kHuge}}}, {F32({1})}), "2^56");
  ExpectRefused(Node("ConstantOfShape", {{"shape", Ints{kHuge, 2}}}, {}), "2^56");
  ExpectRefused(Node("ConstantOfShape", {}, {}), "missing");
  const ConstTensor two = ConstTensor::Int64s(Ints{1, 2});
  ExpectRefused(Node("ConstantOfShape", {{"shape", Ints{2}}, {"value", two}}, {}), "one element");
}

// Range computes its size from values, which a TypedNode does not have.
Result<Type> InferredRange(const ConstTensor& start, const ConstTensor& limit,
                           const ConstTensor& delta) {
  const OpDef* def = FindOp("", "Range");
  const AttrList attrs;
  const Type type = start.type();
  const Type* inputs[] = {&type, &type, &type};
  const ConstTensor* constants[] = {&start, &limit, &delta};
  Type output;
  const Type* outputs[] = {&output};
  MSRT_RETURN_IF_ERROR(
      InferTypes(*def, OpView("", "Range", "test", &attrs, def->attrs, inputs, outputs, constants),
                 {&output, 1}));
  return output;
}
ConstTensor Int(int64_t v) { return ConstTensor::Of<int64_t>(DType::kI64, {}, {&v, 1}); }
ConstTensor Float(float v) { return ConstTensor::Floats({}, {&v, 1}); }

TEST(RangeInfer, RefusesEndlessRanges) {
  const auto message = [](const Result<Type>& r) {
    return r.ok() ? StrCat(*r) : r.status().message();
  };
  EXPECT_NE(message(InferredRange(Int(0), Int(5), Int(0))).find("delta is 0"), std::string::npos);
  EXPECT_NE(message(InferredRange(Int(-kHuge), Int(kHuge), Int(1))).find("2^56"),
            std::string::npos);
  EXPECT_NE(message(InferredRange(Float(0), Float(1), Float(1e-30f))).find("2^56"),
            std::string::npos);
  EXPECT_NE(
      message(InferredRange(Float(0), Float(std::numeric_limits<float>::quiet_NaN()), Float(1)))
          .find("finite"),
      std::string::npos);
  EXPECT_EQ(message(InferredRange(Int(kHuge), Int(-kHuge - 1), Int(-kHuge - 1))), "i64[2]");
  EXPECT_EQ(message(InferredRange(Float(0), Float(1), Float(0.25f))), "f32[4]");
}

TEST(MovementInfer, RefusesBadUse) {
  ExpectRefused(Node("Transpose", {{"perm", Ints{0, 0}}}, {F32({1, 2})}), "permutation");
  ExpectRefused(Node("Transpose", {{"perm", Ints{0}}}, {F32({1, 2})}), "must have 2");
  ExpectRefused(Node("Concat", {}, {F32({1, 2})}), "'axis' is missing");
  ExpectRefused(Node("Concat", {{"axis", int64_t{0}}}, {F32({})}), "axis = 0");
  ExpectRefused(Node("Concat", {{"axis", int64_t{0}}}, {F32({1, 2}), F32({1, 3})}),
                "dim 1 must be 2");
  ExpectRefused(Node("Concat", {{"axis", int64_t{0}}}, {F32({1, 2}), F32({1})}), "must have rank");
  ExpectRefused(Node("Concat", {{"axis", int64_t{0}}}, {F32({1}), I64({1})}), "element type i64");
  ExpectRefused(Node("Split", {}, {F32({4})}, 2), "either 'split' or 'num_outputs'");
  ExpectRefused(Node("Split", {{"num_outputs", int64_t{3}}}, {F32({4})}, 2), "but the node has 2");
  ExpectRefused(Node("Split", {{"num_outputs", int64_t{4}}}, {F32({5})}, 4), "cannot split 5");
  ExpectRefused(Node("Split", {{"split", Ints{1, 2}}}, {F32({4})}, 2), "adds up to 3");
  ExpectRefused(Node("Split", {{"split", Ints{kHuge, kHuge}}}, {F32({kN})}, 2), "overflows");
  ExpectRefused(Node("Slice", {{"starts", Ints{0}}}, {F32({4})}), "'ends' is missing");
  ExpectRefused(
      Node("Slice", {{"starts", Ints{0}}, {"ends", Ints{1}}, {"steps", Ints{0}}}, {F32({4})}),
      "steps[0] = 0");
  ExpectRefused(Node("Slice", {{"starts", Ints{0, 0}}, {"ends", Ints{1, 1}}}, {F32({4})}),
                "for 1 dims");
  ExpectRefused(Node("Tile", {{"repeats", Ints{2}}}, {F32({4, 4})}), "must have 2");
  ExpectRefused(Node("Tile", {{"repeats", Ints{kHuge}}}, {F32({4})}), "overflows");
  ExpectRefused(Node("ReverseSequence", {{"batch_axis", int64_t{0}}}, {F32({2, 3}), I64({2})}),
                "must differ");
  ExpectRefused(Node("ReverseSequence", {}, {F32({2, 3}), I64({2})}), "sequence_lens");
  ExpectRefused(Node("Trilu", {}, {F32({3})}), "rank 2 or more");
  ExpectRefused(Node("EyeLike", {}, {F32({3})}), "rank 2");
}

TEST(MovementInfer, InfersDimsDespiteUnknownOnes) {
  EXPECT_EQ(Inferred(Node("Transpose", {}, {F32({kN, 3})})), "f32[3, s0]");
  EXPECT_EQ(Inferred(Node("Concat", {{"axis", int64_t{1}}}, {F32({kUnknown, 2}), F32({kN, 3})})),
            "f32[s0, 5]");
  EXPECT_EQ(Inferred(Node("Concat", {{"axis", int64_t{1}}}, {F32({4, 2}), F32({kN, kM})})),
            "f32[4, ?]");
  EXPECT_EQ(Inferred(Node("Split", {{"split", Ints{1, 2}}}, {F32({kUnknown, kN})}, 2), 1),
            "f32[2, s0]");
  EXPECT_EQ(
      Inferred(Node("Slice", {{"starts", Ints{0, 1}}, {"ends", Ints{kHuge, 3}}}, {F32({kN, kM})})),
      "f32[s0, ?]");
  EXPECT_EQ(Inferred(Node("Slice", {{"axes", Ints{1}}}, {F32({4, 5}), I64({1}), I64({1})})),
            "f32[4, ?]");
  EXPECT_EQ(Inferred(Node("Tile", {{"repeats", Ints{1, 2, 0}}}, {F32({kN, kM, kM})})),
            "f32[s0, ?, 0]");
  EXPECT_EQ(Inferred(Node("Pad", {{"pads", Ints{0, 1, 0, 1}}}, {F32({kN, kM})})), "f32[s0, ?]");
}

TEST(PadInfer, RefusesBadUse) {
  ExpectRefused(Node("Pad", {{"pads", Ints{1, 2, 3}}}, {F32({4})}), "two for each of 1 axes");
  ExpectRefused(Node("Pad", {{"pads", Ints{-3, -3}}}, {F32({4})}), "no valid dim");
  ExpectRefused(Node("Pad", {{"pads", Ints{0, 2}}, {"mode", std::string("edge")}}, {F32({0})}),
                "no element to repeat");
  ExpectRefused(Node("Pad", {{"pads", Ints{-4, 9}}, {"mode", std::string("wrap")}}, {F32({4})}),
                "no element to repeat");
  ExpectRefused(Node("Pad", {{"pads", Ints{1, 1}}, {"axes", Ints{1}}}, {F32({4})}), "axes = 1");
  ExpectRefused(Node("Pad", {{"pads", Ints{int64_t{1} << 56, 1}}}, {F32({4})}), "2^56");
  ExpectRefused(Node("Pad", {{"pads", Ints{1, 1}}, {"value", 1.0}}, {F32({4}), LeftOut(), F32({})}),
                "both");
  ExpectRefused(Node("Pad", {{"pads", Ints{1, 1}}}, {F32({4}), LeftOut(), F32({2})}),
                "one element");
  ExpectRefused(
      Node("Pad", {{"pads", Ints{1, 1}}, {"value", 1.0}}, {Type::Tensor(DType::kF8E5M2, {4})}),
      "input 2");
}

// A kernel reads at the position that a piece claims, so a false claim must be refused.
TEST(PadInfer, RefusesPiecesThatLackTheirSource) {
  const AttrList attrs = {{"mode", std::string("reflect")}, {"pads", Ints{2, 2}},
                          {"whole_dims", Ints{10}},         {"piece_input_begin", Ints{4}},
                          {"piece_output_begin", Ints{6}},  {"piece_dims", Ints{3}}};
  EXPECT_EQ(Inferred(Node("Pad", attrs, {F32({3})})), "f32[3]");
  ExpectRefused(Node("Pad", attrs, {F32({2})}), "needs more than the elements");
  AttrList short_list = attrs;
  short_list.Set("piece_input_begin", Ints{});
  ExpectRefused(Node("Pad", short_list, {F32({3})}), "piece_input_begin has 0");
}

// Cutting a piece again must lead to the same elements as cutting the whole at once.
TEST(PadSpace, PiecesOfPiecesReadTheSameElements) {
  TypedNode whole =
      Node("Pad", {{"mode", std::string("reflect")}, {"pads", Ints{4, 6}}}, {F32({5})});
  ASSERT_TRUE(whole.Infer().ok());
  const SpaceDef& space = *whole.def->space;
  Box outer, inner, direct;
  outer.push_back({3, 13});
  inner.push_back({2, 6});
  direct.push_back({5, 9});
  std::vector<Box> outer_in, inner_in, direct_in, out{outer};
  const auto inputs_of = [&](const OpView& op, const Box& box) {
    return InputBoxes(*ResolveSpace(space, op), box);
  };
  TypedNode piece = whole;
  whole.With([&](const OpView& op) {
    outer_in = inputs_of(op, outer);
    direct_in = inputs_of(op, direct);
    EXPECT_TRUE(space.localize(op, outer, outer_in, out, &piece.attrs).ok());
  });
  piece.inputs[0] = F32(outer_in[0].dims());
  ASSERT_TRUE(piece.Infer().ok());
  piece.With([&](const OpView& op) { inner_in = inputs_of(op, inner); });
  EXPECT_EQ(inner_in[0][0].begin + outer_in[0][0].begin, direct_in[0][0].begin);
  EXPECT_EQ(inner_in[0][0].size(), direct_in[0][0].size());
}

}  // namespace
}  // namespace msrt::testing

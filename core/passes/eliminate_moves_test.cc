// Moves that cancel are removed, moves with an effect stay, and outputs keep their names.
#include "core/passes/eliminate_moves.h"

#include <gtest/gtest.h>

#include "core/passes/flow_testing.h"
#include "core/passes/passes_testing.h"

namespace msrt::testing {
namespace {

using Ints = std::vector<int64_t>;

using Shape = std::vector<int64_t>;

AttrList ByPerm(Shape perm) { return {{"perm", std::move(perm)}}; }
AttrList To(Shape shape) { return {{"shape", std::move(shape)}}; }
AttrList Axes(Shape axes) { return {{"axes", std::move(axes)}}; }

Names After(Net* net, const std::vector<ConstTensor>& inputs) {
  return OpsAfter(EliminateMoves, net, inputs);
}

TEST(EliminateMoves, RemovesNodesThatDoNothing) {
  Net net;
  ValueId v = net.Op("Neg", {net.Input("x", {2, 3})});
  v = net.Op("Identity", {v});
  v = net.Op("Cast", {v}, {{"to", DType::kF32}});
  v = net.Op("Concat", {v}, {{"axis", int64_t{0}}});
  v = net.Op("Slice", {v}, {{"starts", Shape{0, 0}}, {"ends", Shape{2, 100}}});
  v = net.Op("Expand", {v}, To({1, 3}));
  v = net.Op("Tile", {v}, {{"repeats", Shape{1, 1}}});
  v = net.Op("Pad", {v}, {{"pads", Shape{0, 0, 0, 0}}});
  v = net.Op("Reshape", {v}, To({2, 3}));
  v = net.Op("Div", {net.Op("Mul", {net.Scalar(1), v}), net.Scalar(1, {1, 1})});
  net.graph().outputs = {net.Op("Abs", {v})};
  EXPECT_EQ(After(&net, {net.Random({2, 3})}), (Names{"Neg", "Abs"}));
}

TEST(EliminateMoves, RemovesStopGradient) {
  Net net;
  const ValueId v = net.Op("Neg", {net.Input("x", {2, 3})});
  const auto stopped =
      GraphBuilder(&net.graph()).Add("msrt", "StopGradient", "stopped", {v}, {}, 1);
  ASSERT_TRUE(stopped.ok()) << stopped.status().message();
  net.graph().outputs = {net.Op("Abs", {(*stopped)[0]})};
  EXPECT_EQ(After(&net, {net.Random({2, 3})}), (Names{"Neg", "Abs"}));
}

TEST(EliminateMoves, KeepsNodesThatDoSomething) {
  Net net;
  const ValueId x = net.Input("x", {2, 3});
  const ValueId reversed = net.Op(
      "Slice", {x},
      {{"starts", Shape{-1}}, {"ends", Shape{-100}}, {"axes", Shape{0}}, {"steps", Shape{-1}}});
  const ValueId grown = net.Op("Expand", {x}, To({2, 2, 3}));
  const ValueId cast = net.Op("Cast", {x}, {{"to", DType::kF64}});
  const ValueId inverse = net.Op("Div", {net.Scalar(1), x}),
                wide = net.Op("Mul", {x, net.Scalar(1, {1, 1, 1})});
  net.graph().outputs = {reversed, grown, cast, inverse, wide};
  EXPECT_EQ(After(&net, {net.Random({2, 3})}), (Names{"Slice", "Expand", "Cast", "Div", "Mul"}));
}

// Groups of channels and the channels of a group change places.
TEST(EliminateMoves, ChannelShuffleIsAGather) {
  Net net;
  ValueId v = net.Op("Relu", {net.Input("x", {2, 6, 4, 5})});
  v = net.Op("Reshape", {v}, To({2, 3, 2, 4, 5}));
  v = net.Op("Transpose", {v}, ByPerm({0, 2, 1, 3, 4}));
  net.graph().outputs = {net.Op("Abs", {net.Op("Reshape", {v}, To({2, 6, 4, 5}))})};
  EXPECT_EQ(After(&net, {net.Random({2, 6, 4, 5})}), (Names{"Relu", "Gather", "Abs"}));
}

TEST(EliminateMoves, OtherShufflesStayTransposes) {
  Net net;
  const ValueId x = net.Op("Relu", {net.Input("x", {2, 6, 4, 4})});
  ValueId v =
      net.Op("Transpose", {net.Op("Reshape", {x}, To({2, 3, 2, 4, 4}))}, ByPerm({0, 1, 2, 4, 3}));
  const ValueId space = net.Op("Reshape", {v}, To({2, 6, 4, 4}));
  v = net.Op("Transpose", {net.Op("Reshape", {x}, To({2, 6, 2, 2, 4}))}, ByPerm({0, 2, 1, 3, 4}));
  net.graph().outputs = {space, net.Op("Reshape", {v}, To({2, 6, 4, 4}))};
  const Names after = After(&net, {net.Random({2, 6, 4, 4})});
  EXPECT_EQ(std::count(after.begin(), after.end(), "Gather"), 0);
}

TEST(EliminateMoves, OutputsAndInputsKeepTheirNames) {
  Net net;
  const ValueId x = net.Input("x", {2});
  const ValueId direct = net.Op("Identity", {x});  // between an input and an output: it stays
  const ValueId made = net.Op("Neg", {x});
  const ValueId renamed = net.Op("Identity", {made});
  const ValueId used = net.Op("Abs", {made});
  net.graph().outputs = {direct, renamed, used};
  EXPECT_EQ(After(&net, {net.Random({2})}), (Names{"Identity", "Neg", "Abs"}));

  Net twice;  // both have names to keep
  const ValueId first = twice.Op("Neg", {twice.Input("x", {2})});
  twice.graph().outputs = {first, twice.Op("Identity", {first})};
  EXPECT_EQ(After(&twice, {twice.Random({2})}), (Names{"Neg", "Identity"}));
}

TEST(EliminateMoves, TransposesCancelOrJoin) {
  Net net;
  const ValueId x = net.Input("x", {2, 3, 4});
  const ValueId there = net.Op("Transpose", {x}, ByPerm({2, 0, 1}));
  const ValueId back = net.Op("Transpose", {there}, ByPerm({1, 2, 0}));
  const ValueId further = net.Op("Transpose", {there}, ByPerm({0, 2, 1}));
  net.graph().outputs = {net.Op("Neg", {back}), net.Op("Neg", {further})};
  EXPECT_EQ(After(&net, {net.Random({2, 3, 4})}), (Names{"Transpose", "Neg", "Neg"}));
}

TEST(EliminateMoves, TransposeOfOnesBecomesReshape) {
  Net net;
  const ValueId x = net.Input("x", {1, net.module.SymbolFor("n"), 1, 5});
  net.graph().outputs = {net.Op("Transpose", {x}, ByPerm({1, 2, 3, 0}))};
  EXPECT_EQ(After(&net, {net.Random({1, 4, 1, 5})}), Names{"Reshape"});

  Net real;
  const ValueId y = real.Input("x", {1, kUnknownDim, 5});  // the open dim may be more than 1
  real.graph().outputs = {real.Op("Transpose", {y}, ByPerm({0, 2, 1}))};
  EXPECT_EQ(After(&real, {real.Random({1, 4, 5})}), Names{"Transpose"});
}

TEST(EliminateMoves, ChainsOfViewsBecomeOne) {
  Net net;
  const ValueId x = net.Input("x", {kUnknownDim, 6, 4});
  ValueId v = net.Op("Reshape", {x}, To({0, 24}));
  v = net.Op("Unsqueeze", {v}, Axes({1}));
  v = net.Op("Reshape", {v}, To({-1, 3, 8}));
  net.graph().outputs = {
      v, net.Op("Squeeze", {net.Op("Unsqueeze", {net.Op("Neg", {x})}, Axes({-1}))}, Axes({-1}))};
  EXPECT_EQ(After(&net, {net.Random({2, 6, 4})}), (Names{"Reshape", "Neg"}));

  Net open;  // the second copies a dim that x does not have at that position
  const ValueId y = open.Input("x", {kUnknownDim, kUnknownDim, 4});
  const ValueId flat = open.Op("Reshape", {y}, To({-1, 2}));
  open.graph().outputs = {open.Op("Reshape", {flat}, To({0, 2, 1}))};
  EXPECT_EQ(After(&open, {open.Random({3, 5, 4})}), Names{"Reshape"});

  Net two;  // two open dims: no Reshape can express them
  const ValueId z = two.Input("x", {kUnknownDim, kUnknownDim, 4});
  const ValueId shape = two.graph().AddInput("shape", Type::Tensor(DType::kI64, {2}));
  two.graph().outputs = {two.Op("Unsqueeze", {two.Op("Reshape", {z, shape})}, Axes({0}))};
  EXPECT_EQ(After(&two, {two.Random({3, 2, 4}), ConstTensor::Int64s(Shape{4, 6})}),
            (Names{"Reshape", "Unsqueeze"}));
}

TEST(EliminateMoves, TransposesJoinAcrossElementwiseNodes) {
  Net net;
  const ValueId x = net.Input("x", {1, 4, 5, 3});
  ValueId v = net.Op("Transpose", {x}, ByPerm({0, 3, 1, 2}));
  v = net.Op("Relu", {net.Op("Mul", {net.Op("Add", {v, net.Weight({3, 1, 1})}), net.Scalar(2)})});
  v = net.Op("Clip", {v, kNoValue, net.Scalar(0.7)});
  net.graph().outputs = {net.Op("Transpose", {v}, ByPerm({0, 2, 3, 1}))};
  EXPECT_EQ(After(&net, {net.Random({1, 4, 5, 3})}), (Names{"Add", "Mul", "Relu", "Clip"}));

  Net sum;  // two become one
  const ValueId a = sum.Op("Transpose", {sum.Input("a", {2, 3})}),
                b = sum.Op("Transpose", {sum.Input("b", {2, 3})});
  sum.graph().outputs = {sum.Op("Add", {a, b})};
  EXPECT_EQ(After(&sum, {sum.Random({2, 3}), sum.Random({2, 3})}), (Names{"Add", "Transpose"}));
}

TEST(EliminateMoves, TransposesStayIfNothingIsGained) {
  Net alone;
  alone.graph().outputs = {alone.Op("Relu", {alone.Op("Transpose", {alone.Input("x", {2, 3})})})};
  EXPECT_EQ(After(&alone, {alone.Random({2, 3})}), (Names{"Transpose", "Relu"}));

  Net shared;  // the value in between is an output
  const ValueId relu = shared.Op("Relu", {shared.Op("Transpose", {shared.Input("x", {2, 3})})});
  shared.graph().outputs = {relu, shared.Op("Transpose", {relu})};
  EXPECT_EQ(After(&shared, {shared.Random({2, 3})}), (Names{"Transpose", "Relu", "Transpose"}));

  Net other;  // different orders
  const ValueId a = other.Op("Transpose", {other.Input("a", {2, 2, 2})}, ByPerm({0, 2, 1}));
  const ValueId b = other.Op("Transpose", {other.Input("b", {2, 2, 2})}, ByPerm({1, 0, 2}));
  other.graph().outputs = {other.Op("Add", {a, b})};
  EXPECT_EQ(After(&other, {other.Random({2, 2, 2}), other.Random({2, 2, 2})}),
            (Names{"Transpose", "Transpose", "Add"}));

  Net matrix;  // the constant would have to be transposed too
  const ValueId t = matrix.Op("Transpose", {matrix.Input("x", {2, 3})});
  matrix.graph().outputs = {matrix.Op("Transpose", {matrix.Op("Add", {t, matrix.Weight({3, 2})})})};
  EXPECT_EQ(After(&matrix, {matrix.Random({2, 3})}), (Names{"Transpose", "Add", "Transpose"}));
}

// PyTorch writes this for the keys of an attention.
TEST(EliminateMoves, TransposesJoinAcrossReshape) {
  Net net;
  const ValueId heads = net.Op("Transpose", {net.Input("x", {1, 6, 3, 4})}, ByPerm({0, 2, 1, 3}));
  const ValueId turned =
      net.Op("Transpose", {net.Op("Reshape", {heads}, To({-1, 6, 4}))}, ByPerm({0, 2, 1}));
  net.graph().outputs = {net.Op("Neg", {net.Op("Reshape", {turned}, To({1, 3, 4, 6}))})};
  EXPECT_EQ(After(&net, {net.Random({1, 6, 3, 4})}), (Names{"Transpose", "Neg"}));

  Net mixed;  // the Reshape changes more than dims of 1
  const ValueId a = mixed.Op("Transpose", {mixed.Input("x", {2, 6, 3, 4})}, ByPerm({0, 2, 1, 3}));
  const ValueId b =
      mixed.Op("Transpose", {mixed.Op("Reshape", {a}, To({6, 6, 4}))}, ByPerm({0, 2, 1}));
  mixed.graph().outputs = {b};
  EXPECT_EQ(After(&mixed, {mixed.Random({2, 6, 3, 4})}),
            (Names{"Transpose", "Reshape", "Transpose"}));
}

// Covers the last two of four dims, transposed as matrices of a flat batch, and heads that are
// split after the Transpose.
TEST(EliminateMoves, AxesAreSplitBeforeTransposes) {
  Net keys;
  const int64_t batch = keys.module.SymbolFor("batch"), rows = keys.module.SymbolFor("rows");
  const ValueId x = keys.Input("x", {batch, 3, rows, 4});
  const auto dims = [&](int64_t begin, int64_t end) {
    return keys.Op("Shape", {x}, {{"start", begin}, {"end", end}});
  };
  const ValueId merged = keys.Op("Concat", {keys.List({-1}), dims(2, 4)}, {{"axis", int64_t{0}}});
  const ValueId turned =
      keys.Op("Transpose", {keys.Op("Reshape", {x, merged})}, {{"perm", Ints{0, 2, 1}}});
  const ValueId apart =
      keys.Op("Concat", {dims(0, 2), dims(3, 4), dims(2, 3)}, {{"axis", int64_t{0}}});
  keys.graph().outputs = {keys.Op("Relu", {keys.Op("Reshape", {turned, apart})})};
  ExpectSameResults(keys.module, {keys.Random({2, 3, 5, 4})});
  ASSERT_TRUE(RunPasses(kContext, {.disabled = {}, .validate = true}, &keys.module).ok());
  EXPECT_EQ(keys.Ops(), (Names{"Transpose", "Relu"}));

  Net heads;
  const ValueId y = heads.Op("Reshape", {heads.Input("y", {5, 2, 12})}, {{"shape", Ints{5, 6, 4}}});
  const ValueId swapped = heads.Op("Transpose", {y}, {{"perm", Ints{1, 0, 2}}});
  heads.graph().outputs = {heads.Op("Reshape", {swapped}, {{"shape", Ints{2, 3, 5, 4}}})};
  EXPECT_EQ(OpsAfter(EliminateMoves, &heads, {heads.Random({5, 2, 12})}),
            (Names{"Reshape", "Transpose"}));
}

TEST(EliminateMoves, MixedAxisIsNotSplit) {
  Net net;  // the Reshape mixes rows and columns
  const ValueId y = net.Op("Reshape", {net.Input("y", {4, 3, 2})}, {{"shape", Ints{12, 2}}});
  net.graph().outputs = {net.Op("Reshape", {net.Op("Transpose", {y})}, {{"shape", Ints{4, 3, 2}}})};
  EXPECT_EQ(OpsAfter(EliminateMoves, &net, {net.Random({4, 3, 2})}),
            (Names{"Reshape", "Transpose", "Reshape"}));
}

// Queries, keys and values of one product are separated after a Transpose of all three.
TEST(EliminateMoves, PartsAreSelectedBeforeTranspose) {
  Net net;
  const ValueId x = net.Input("x", {2, 5, 3, 4, 6});
  const ValueId moved = net.Op("Transpose", {x}, {{"perm", Ints{2, 0, 3, 1, 4}}});
  for (int64_t i = 0; i < 3; ++i) {
    const ValueId index = net.graph().AddConstant(
        StrCat("i", i), ConstTensor::Of<int64_t>(DType::kI64, {}, std::vector<int64_t>{i}));
    net.graph().outputs.push_back(net.Op("Gather", {moved, index}, {{"axis", int64_t{0}}}));
  }
  EXPECT_EQ(OpsAfter(EliminateMoves, &net, {net.Random({2, 5, 3, 4, 6})}),
            (Names{"Slice", "Squeeze", "Transpose", "Slice", "Squeeze", "Transpose", "Slice",
                   "Squeeze", "Transpose"}));
}

TEST(EliminateMoves, GatherOfOneIndexBecomesSlice) {
  const auto after = [](int64_t index) {
    Net net;
    const ValueId at =
        net.graph().AddConstant("at", ConstTensor::Of<int64_t>(DType::kI64, {}, Ints{index}));
    net.graph().outputs = {
        net.Op("Gather", {net.Input("x", {2, 5, 3}), at}, {{"axis", int64_t{1}}})};
    return OpsAfter(EliminateMoves, &net, {net.Random({2, 5, 3})});
  };
  EXPECT_EQ(after(0), (Names{"Slice", "Squeeze"}));
  EXPECT_EQ(after(-1), (Names{"Slice", "Squeeze"}));

  Net open;  // the index may be out of range
  const ValueId at =
      open.graph().AddConstant("at", ConstTensor::Of<int64_t>(DType::kI64, {}, Ints{3}));
  open.graph().outputs = {open.Op("Gather",
                                  {open.Input("x", {2, open.module.SymbolFor("rows"), 3}), at},
                                  {{"axis", int64_t{1}}})};
  EXPECT_EQ(OpsAfter(EliminateMoves, &open, {open.Random({2, 5, 3})}), (Names{"Gather"}));
}

// torch.nn.MultiheadAttention selects parts of one product after adding and dropping dims of 1.
TEST(EliminateMoves, OnesAreDroppedBeforeTransposes) {
  Net net;
  const int64_t batch = net.module.SymbolFor("batch");
  const ValueId x =
      net.Op("Reshape", {net.Input("x", {5, batch, 12})}, {{"shape", Ints{5, -1, 3, 4}}});
  const ValueId apart = net.Op("Unsqueeze", {x, net.List({0})});
  const ValueId moved = net.Op(
      "Squeeze", {net.Op("Transpose", {apart}, {{"perm", Ints{3, 1, 2, 0, 4}}}), net.List({3})});
  const ValueId one =
      net.graph().AddConstant("one", ConstTensor::Of<int64_t>(DType::kI64, {}, Ints{1}));
  net.graph().outputs = {net.Op("Gather", {moved, one}, {{"axis", int64_t{0}}})};
  const Names ops = OpsAfter(EliminateMoves, &net, {net.Random({5, 2, 12})});
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Transpose"), 0);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Slice"), 1);
}

// A batch of 1 is between rows and heads, before and after the work on the heads.
TEST(EliminateMoves, OnesKeepTheirPosition) {
  Net net;
  const ValueId x = net.Op("Reshape", {net.Input("x", {5, 1, 12})}, {{"shape", Ints{5, 1, 3, 4}}});
  const ValueId heads = net.Op("Softmax", {net.Op("Transpose", {x}, {{"perm", Ints{1, 2, 0, 3}}})});
  const ValueId rows = net.Op("Transpose", {heads}, {{"perm", Ints{2, 0, 1, 3}}});
  net.graph().outputs = {net.Op("Reshape", {rows}, {{"shape", Ints{5, 12}}})};
  EXPECT_EQ(OpsAfter(EliminateMoves, &net, {net.Random({5, 1, 12})}),
            (Names{"Reshape", "Transpose", "Softmax", "Transpose", "Reshape"}));
  for (const Node& node : net.graph().nodes) {
    if (node.op != "Transpose") continue;
    EXPECT_EQ(std::get<Ints>(*node.attrs.Find("perm")), (Ints{0, 2, 1, 3}));
  }
}

TEST(EliminateMoves, LoopWithoutOutputIsKept) {
  ModuleBuilder m(2);
  m.Control(0, "", "Loop", {m.Number(0, 3), kNoValue, m.Input(0)},
            {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {kNumber});
  m.module.graphs[0].nodes[0].outputs[0] = kNoValue;
  m.Input(1);
  m.Output(1, m.Input(1, kFlag));
  m.Output(1, m.Input(1));
  ASSERT_TRUE(Validate(&m.module).ok());
  ASSERT_TRUE(EliminateMoves(kContext, &m.module.main()).ok());
  EXPECT_EQ(m.module.main().nodes.size(), 1u);
}

}  // namespace
}  // namespace msrt::testing

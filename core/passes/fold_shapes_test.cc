// Shape arithmetic that is folded before the run, and arithmetic that must wait for it.
#include "core/passes/fold_shapes.h"

#include <gtest/gtest.h>

#include "core/passes/passes_testing.h"

namespace msrt::testing {
namespace {

using Ints = std::vector<int64_t>;

struct ShapeNet : Net {
  ValueId x;
  explicit ShapeNet(bool named = true) {
    const int64_t batch = named ? module.SymbolFor("batch") : kUnknownDim,
                  rows = named ? module.SymbolFor("rows") : kUnknownDim;
    x = Input("x", {batch, rows, 12});
  }
  ValueId Number(int64_t value) {
    return graph().AddConstant(StrCat("n", graph().value_count()),
                               ConstTensor::Of<int64_t>(DType::kI64, {}, Ints{value}));
  }
  ValueId Dim(ValueId v, int64_t axis) {
    return Op("Gather", {Op("Shape", {v}), Number(axis)}, {{"axis", int64_t{0}}});
  }
  ValueId Line(ValueId scalar) { return Op("Unsqueeze", {scalar}, {{"axes", Ints{0}}}); }
  ValueId Join(std::vector<ValueId> parts) {
    return Op("Concat", std::move(parts), {{"axis", int64_t{0}}});
  }
  // In a computed shape, the 0 of an empty tensor means "copy" to Reshape: not every graph can run
  // with an empty tensor.
  Names After(bool empty_too = true) {
    Names names;
    for (const Dims& dims :
         {Dims{2, 5, 12}, Dims{1, 1, 12}, empty_too ? Dims{3, 0, 12} : Dims{3, 7, 12}}) {
      Net copy;
      copy.module = module;
      copy.builder = GraphBuilder(&copy.module.graphs[0]);
      names = OpsAfter(FoldShapes, &copy, {Random(dims)});
      last = copy.module;
    }
    return names;
  }
  Module last;
};

TEST(FoldShapes, FoldsShapesOfAttentionHeads) {
  for (const bool named : {true, false}) {
    ShapeNet net(named);
    // [batch, rows, 12] to [batch, rows, 3, 4], transposed, and back again, all by the shape of x.
    const ValueId batch = net.Line(net.Dim(net.x, 0)), rows = net.Line(net.Dim(net.x, 1));
    const ValueId heads =
        net.Op("Reshape", {net.x, net.Join({batch, rows, net.List({3}), net.List({4})})});
    const ValueId turned = net.Op("Transpose", {heads}, {{"perm", Ints{0, 2, 1, 3}}});
    const ValueId back =
        net.Op("Transpose", {net.Op("Neg", {turned})}, {{"perm", Ints{0, 2, 1, 3}}});
    const ValueId width = net.Op("Mul", {net.Dim(back, 2), net.Dim(back, 3)});
    net.graph().outputs = {net.Op("Reshape", {back, net.Join({batch, rows, net.Line(width)})})};
    EXPECT_EQ(net.After(), (Names{"Reshape", "Transpose", "Neg", "Transpose", "Reshape"}));
  }
}

TEST(FoldShapes, FoldsProductsAndQuotients) {
  ShapeNet net;
  const ValueId rows = net.Op("Mul", {net.Dim(net.x, 0), net.Dim(net.x, 1)});
  const ValueId flat = net.Op("Reshape", {net.x, net.Join({net.Line(rows), net.List({12})})});
  const ValueId half = net.Op("Div", {net.Dim(flat, 1), net.Number(2)});
  const ValueId cast =
      net.Op("Cast", {net.Op("Cast", {half}, {{"to", DType::kI32}})}, {{"to", DType::kI64}});
  const ValueId pairs = net.Op("Reshape", {flat, net.Join({net.List({-1}), net.Line(cast)})});
  net.graph().outputs = {net.Op("Abs", {pairs})};
  EXPECT_EQ(net.After(/*empty_too=*/false), (Names{"Reshape", "Reshape", "Abs"}));
}

// torch.Tensor.expand: -1 keeps a dim.
TEST(FoldShapes, RemovesExpandToItsOwnShape) {
  ShapeNet net;
  const ValueId wanted =
      net.Join({net.Line(net.Dim(net.x, 0)), net.Op("Slice", {net.Op("Shape", {net.x})},
                                                    {{"starts", Ints{1}}, {"ends", Ints{3}}})});
  const ValueId keep = net.Op("Equal", {wanted, net.List({-1, -1, -1})});
  const ValueId chosen = net.Op("Where", {keep, net.List({1, 1, 1}), wanted});
  net.graph().outputs = {net.Op("Neg", {net.Op("Expand", {net.Op("Abs", {net.x}), chosen})})};
  EXPECT_EQ(net.After(), (Names{"Abs", "Neg"}));
}

TEST(FoldShapes, RemovesSliceToTheEnd) {
  ShapeNet net;
  const ValueId end = net.Line(net.Dim(net.x, 1));
  net.graph().outputs = {
      net.Op("Neg", {net.Op("Slice", {net.x, net.List({0}), end, net.List({1})})})};
  EXPECT_EQ(net.After(), (Names{"Slice", "Neg"}));
  const Graph& graph = net.last.main();
  EXPECT_EQ(graph.nodes[0].inputs.size(), 1u);
  EXPECT_EQ(graph.value(graph.nodes[0].outputs[0]).type.dims[1], net.module.SymbolFor("rows"));
}

TEST(FoldShapes, ListsBecomeAttributes) {
  ShapeNet net;
  const ValueId mean = net.Op("ReduceMean", {net.x, net.List({2})});
  net.graph().outputs = {net.Op("Squeeze", {mean, net.List({2})})};
  EXPECT_EQ(net.After(), (Names{"ReduceMean", "Squeeze"}));
  EXPECT_EQ(net.last.main().nodes[0].inputs.size() + net.last.main().nodes[1].inputs.size(), 2u);
}

TEST(FoldShapes, KeepsShapesThatCannotBeProven) {
  ShapeNet other;  // a dim of another tensor
  const ValueId y = other.graph().AddInput("y", Type::Tensor(DType::kF32, {kUnknownDim, 4}));
  const ValueId shape =
      other.Join({other.Line(other.Dim(y, 0)), other.List({-1}), other.List({12})});
  other.graph().outputs = {other.Op("Reshape", {other.x, shape}), y};
  ASSERT_TRUE(FoldShapes(kContext, &other.graph()).ok());
  EXPECT_EQ(other.Ops().back(), "Reshape");
  EXPECT_EQ(other.graph().nodes.back().inputs.size(), 2u);

  ShapeNet sum;  // a sum of two open dims
  const ValueId total = sum.Op("Add", {sum.Dim(sum.x, 0), sum.Dim(sum.x, 1)});
  sum.graph().outputs = {sum.Op("Expand", {sum.Scalar(1, {1}), sum.Line(total)})};
  ASSERT_TRUE(FoldShapes(kContext, &sum.graph()).ok());
  EXPECT_EQ(sum.Ops().back(), "Expand");
  EXPECT_EQ(sum.graph().nodes.back().inputs.size(), 2u);

  ShapeNet swapped;  // the dims of x in another order: no 0 may be written
  const ValueId turned =
      swapped.Join({swapped.Line(swapped.Dim(swapped.x, 1)),
                    swapped.Line(swapped.Dim(swapped.x, 0)), swapped.List({12})});
  swapped.graph().outputs = {swapped.Op("Reshape", {swapped.x, turned})};
  ASSERT_TRUE(FoldShapes(kContext, &swapped.graph()).ok());
  EXPECT_EQ(swapped.graph().nodes.back().inputs.size(), 2u);

  ShapeNet remainder;  // no exact quotient
  const ValueId odd = remainder.Op(
      "Div", {remainder.Op("Mul", {remainder.Dim(remainder.x, 1), remainder.Number(3)}),
              remainder.Number(2)});
  remainder.graph().outputs = {odd};
  EXPECT_EQ(remainder.After().back(), "Div");
}

// Dims that nodes compute from shapes get the names of the shapes' dims.
TEST(FoldShapes, OpenDimsGetTheirNames) {
  Net net;
  const int64_t batch = net.module.SymbolFor("batch"), rows = net.module.SymbolFor("rows");
  const ValueId x = net.Input("x", {batch, rows, 4}), y = net.Input("y", {batch, 1, 4});
  const auto dim = [&](int64_t at) {
    return net.Op("Shape", {x}, {{"start", at}, {"end", at + 1}});
  };
  const auto number = [&](int64_t n) {
    return net.graph().AddConstant(
        StrCat("n", n), ConstTensor::Of<int64_t>(DType::kI64, {}, std::vector<int64_t>{n}));
  };
  const ValueId range = net.Op("Range", {number(0), net.Op("Squeeze", {dim(1)}), number(1)});
  const ValueId table = net.Op("Slice", {net.Weight({9, 4}), net.List({0}), dim(1), net.List({0})});
  const ValueId sum =
      net.Op("Add", {x, table});  // the table has as many rows as x, or the run fails
  const ValueId wide = net.Op("Expand", {y, net.Op("Shape", {x})});
  const ValueId zeros =
      net.Op("ConstantOfShape", {net.Op("Concat", {dim(1), dim(0)}, {{"axis", int64_t{0}}})});
  const ValueId product =
      net.Op("MatMul", {wide, net.Op("Transpose", {x}, {{"perm", Ints{0, 2, 1}}})});
  for (ValueId v : {range, sum, wide, zeros, product})
    net.graph().outputs.push_back(net.Op("Identity", {v}));
  ASSERT_TRUE(FoldShapes(kContext, &net.graph()).ok());
  const auto dims = [&](ValueId v) { return net.graph().value(v).type.dims; };
  EXPECT_EQ(dims(range), (Dims{rows}));
  EXPECT_EQ(dims(sum), (Dims{batch, rows, 4}));
  EXPECT_EQ(dims(wide), (Dims{batch, rows, 4}));
  EXPECT_EQ(dims(zeros), (Dims{rows, batch}));
  EXPECT_EQ(dims(product), (Dims{batch, rows, rows}));
}

// A table of one row is broadcast to all rows, so the minimum of both is not the number of rows.
TEST(FoldShapes, SliceMayBeShorterThanItsEnd) {
  Net net;
  const int64_t rows = net.module.SymbolFor("rows");
  const ValueId x = net.Input("x", {rows, 4});
  const ValueId end = net.Op("Shape", {x}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
  const ValueId part = net.Op("Slice", {net.Weight({9, 4}), net.List({0}), end, net.List({0})});
  net.graph().outputs = {net.Op("Identity", {part})};
  ASSERT_TRUE(FoldShapes(kContext, &net.graph()).ok());
  EXPECT_EQ(net.graph().value(part).type.dims, (Dims{kUnknownDim, 4}));
}

}  // namespace
}  // namespace msrt::testing

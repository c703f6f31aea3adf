// Transposes and flattened rows around matrix products.
#include "core/passes/simplify_products.h"

#include <gtest/gtest.h>

#include "core/passes/passes_testing.h"

namespace msrt::testing {
namespace {

using Ints = std::vector<int64_t>;

int64_t Flag(const Node& node, const char* name) {
  return std::get<int64_t>(*node.attrs.Find(name));
}

// A tied embedding: a Gather uses the constant, and the last product uses it transposed.
TEST(SimplifyProducts, TransposedConstantStaysShared) {
  Net net;
  const ValueId x = net.Input("x", {2, 3, 4}), table = net.Weight({6, 4});
  const ValueId scores =
      net.Op("MatMul", {x, net.Op("Transpose", {table}, {{"perm", Ints{1, 0}}})});
  const ValueId rows = net.Op("Gather", {table, net.List({1, 5})});
  net.graph().outputs = {scores, rows};
  const size_t values = net.graph().value_count();
  EXPECT_EQ(OpsAfter(SimplifyProducts, &net, {net.Random({2, 3, 4})}),
            (Names{"msrt.FusedMatMul", "Gather"}));
  EXPECT_EQ(net.graph().nodes[0].inputs[1], table);
  EXPECT_EQ(Flag(net.graph().nodes[0], "transB"), 1);
  EXPECT_EQ(net.graph().value_count(), values);
}

TEST(SimplifyProducts, FoldsIntoGemmWithItsFlags) {
  Net net;
  const ValueId x = net.Input("x", {3, 4}), w = net.Weight({4, 6});
  const ValueId turned = net.Op("Transpose", {w});
  net.graph().outputs = {
      net.Op("Gemm", {x, turned, net.Weight({6})}, {{"transB", int64_t{1}}, {"alpha", 0.5}})};
  EXPECT_EQ(OpsAfter(SimplifyProducts, &net, {net.Random({3, 4})}), (Names{"msrt.FusedMatMul"}));
  EXPECT_EQ(Flag(net.graph().nodes[0], "transB"), 0);
}

TEST(SimplifyProducts, FoldsBothOperandsOfBatchedProduct) {
  Net net;
  const ValueId a = net.Input("a", {2, 4, 3}), b = net.Input("b", {2, 5, 4});
  const auto turn = [&](ValueId v) { return net.Op("Transpose", {v}, {{"perm", Ints{0, 2, 1}}}); };
  net.graph().outputs = {net.Op("MatMul", {turn(a), turn(b)})};
  EXPECT_EQ(OpsAfter(SimplifyProducts, &net, {net.Random({2, 4, 3}), net.Random({2, 5, 4})}),
            (Names{"msrt.FusedMatMul"}));
}

TEST(SimplifyProducts, KeepsOtherTransposes) {
  Net batches;  // the Transpose moves the batch
  const ValueId moved =
      batches.Op("Transpose", {batches.Input("b", {5, 2, 4})}, {{"perm", Ints{1, 2, 0}}});
  batches.graph().outputs = {batches.Op("MatMul", {batches.Input("a", {2, 3, 4}), moved})};
  EXPECT_EQ(
      OpsAfter(SimplifyProducts, &batches, {batches.Random({5, 2, 4}), batches.Random({2, 3, 4})}),
      (Names{"Transpose", "MatMul"}));

  Net shared;  // the Transpose has another use
  const ValueId turned = shared.Op("Transpose", {shared.Input("b", {5, 4})});
  shared.graph().outputs = {shared.Op("MatMul", {shared.Input("a", {3, 4}), turned}), turned};
  EXPECT_EQ(OpsAfter(SimplifyProducts, &shared, {shared.Random({5, 4}), shared.Random({3, 4})}),
            (Names{"Transpose", "MatMul"}));

  Net packed;  // the constant B is packed for plain rows of A
  const ValueId a = packed.Op("Transpose", {packed.Input("a", {4, 3})});
  packed.graph().outputs = {packed.Op("MatMul", {a, packed.Weight({4, 5})})};
  EXPECT_EQ(OpsAfter(SimplifyProducts, &packed, {packed.Random({4, 3})}),
            (Names{"Transpose", "MatMul"}));
}

// transformers' Conv1D: rows are flattened for a Gemm and come back with dims that only the run
// knows.
TEST(SimplifyProducts, UnflattensRows) {
  Net net;
  const int64_t batch = net.module.SymbolFor("batch"), rows = net.module.SymbolFor("rows");
  const ValueId x = net.Input("x", {batch, rows, 4});
  const ValueId flat = net.Op("Reshape", {x}, {{"shape", Ints{-1, 4}}});
  const ValueId product = net.Op("Gemm", {flat, net.Weight({4, 6}), net.Weight({6})});
  const ValueId shape =
      net.Op("Concat", {net.Op("Shape", {x}, {{"end", int64_t{2}}}), net.List({6})},
             {{"axis", int64_t{0}}});
  net.graph().outputs = {net.Op("Neg", {net.Op("Reshape", {product, shape})})};
  EXPECT_EQ(OpsAfter(SimplifyProducts, &net, {net.Random({2, 3, 4})}),
            (Names{"msrt.FusedMatMul", "Neg"}));
}

TEST(SimplifyProducts, KeepsRowsWithAnotherFinalShape) {
  Net net;
  const ValueId flat = net.Op("Reshape", {net.Input("x", {2, 3, 4})}, {{"shape", Ints{-1, 4}}});
  const ValueId product = net.Op("MatMul", {flat, net.Weight({4, 6})});
  net.graph().outputs = {net.Op("Reshape", {product}, {{"shape", Ints{3, 2, 6}}})};
  EXPECT_EQ(OpsAfter(SimplifyProducts, &net, {net.Random({2, 3, 4})}),
            (Names{"Reshape", "MatMul", "Reshape"}));
}

// Bias and activation are fused into a product that already absorbed a Transpose.
TEST(SimplifyProducts, EpilogueIsFusedIntoTheResult) {
  Net net;
  const ValueId x = net.Input("x", {2, 3, 4}), b = net.Input("b", {6, 4});
  const ValueId sum =
      net.Op("Add", {net.Op("MatMul", {x, net.Op("Transpose", {b})}), net.Weight({6})});
  net.graph().outputs = {net.Op("Relu", {sum})};
  const std::vector<ConstTensor> inputs{net.Random({2, 3, 4}), net.Random({6, 4})};
  ExpectSameResults(net.module, inputs);
  ASSERT_TRUE(RunPasses(kContext, {.disabled = {}, .validate = true}, &net.module).ok());
  EXPECT_EQ(net.Ops(), (Names{"msrt.FusedMatMul"}));
}

}  // namespace
}  // namespace msrt::testing

// Equations that are matrix products, and equations that are not.
#include "core/passes/lower_einsum.h"

#include <gtest/gtest.h>

#include "core/passes/passes_testing.h"

namespace msrt::testing {
namespace {

Names After(const char* equation, Dims a, Dims b) {
  Net net;
  const ValueId x = net.Input("x", a), y = net.Input("y", b);
  net.graph().outputs = {net.Op("Einsum", {x, y}, {{"equation", std::string(equation)}})};
  return OpsAfter(LowerEinsum, &net, {net.Random(a), net.Random(b)});
}

TEST(LowerEinsum, LowersMatrixProducts) {
  EXPECT_EQ(After("ij,jk->ik", {3, 4}, {4, 5}), Names{"MatMul"});
  EXPECT_EQ(After("bij,bjk->bik", {2, 3, 4}, {2, 4, 5}), Names{"MatMul"});
  EXPECT_EQ(After("abhid,abhjd->abhij", {2, 3, 4, 5, 6}, {2, 3, 4, 7, 6}),
            (Names{"Transpose", "MatMul"}));
  EXPECT_EQ(After("ij,jk->ki", {3, 4}, {4, 5}), (Names{"MatMul", "Transpose"}));
  EXPECT_EQ(After("bid,bjd->bji", {2, 3, 4}, {2, 5, 4}).back(), "Transpose");
}

TEST(LowerEinsum, MergesSeveralIndicesOfOnePart) {
  EXPECT_EQ(
      After("bhwc,hkc->bhwk", {2, 3, 4, 5}, {3, 6, 5}),
      (Names{"Transpose", "Reshape", "Transpose", "Reshape", "MatMul", "Reshape", "Transpose"}));
  EXPECT_EQ(After("ijkl,kl->ij", {2, 3, 4, 5}, {4, 5}),
            (Names{"Reshape", "Reshape", "MatMul", "Reshape"}));
  EXPECT_EQ(After("i,j->ij", {3}, {4}), (Names{"Reshape", "Reshape", "MatMul", "Reshape"}));
}

TEST(LowerEinsum, KeepsOtherEquations) {
  EXPECT_EQ(After("ii,ij->j", {3, 3}, {3, 4}), Names{"Einsum"});  // a diagonal
  EXPECT_EQ(After("ij,jk->k", {3, 4}, {4, 5}), Names{"Einsum"});  // a sum over one operand alone
  EXPECT_EQ(After("bij,bjk->bik", {1, 3, 4}, {2, 4, 5}),
            Names{"Einsum"});  // one operand is broadcast
}

TEST(LowerEinsum, LowersOpenDims) {
  Net net;
  const int64_t n = kUnknownDim;
  const ValueId x = net.Input("x", {n, 4, 5}), y = net.Input("y", {n, 6, 5});
  net.graph().outputs = {net.Op("Einsum", {x, y}, {{"equation", std::string("bid,bjd->bij")}})};
  EXPECT_EQ(OpsAfter(LowerEinsum, &net, {net.Random({2, 4, 5}), net.Random({2, 6, 5})}),
            Names{"Einsum"});
}

}  // namespace
}  // namespace msrt::testing

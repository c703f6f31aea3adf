// Passes on graphs whose nodes are pieces: what a local attribute says must survive.
#include <gtest/gtest.h>

#include "core/passes/passes_testing.h"

namespace msrt {
namespace {

using testing::ExpectSameResults;
using testing::Names;
using testing::Net;
using testing::RunModule;

// A later part of a sum over channels: the kernel adds neither bias nor residual.
ValueId PartialConv(Net* net, ValueId x) {
  return net->Op("Conv", {x, net->Weight({4, 3, 1, 1})}, {{"partial", int64_t{1}}});
}

TEST(Pieces, NeedAModuleMadeByTheRuntime) {
  Net net;
  net.graph().outputs = {PartialConv(&net, net.Input("x", {1, 3, 5, 5}))};
  const auto refused = RunModule(net.module, {net.Random({1, 3, 5, 5})}, {"reference"});
  EXPECT_EQ(refused.status().code(), Code::kInvalidModel);
  EXPECT_NE(refused.status().message().find("partial"), std::string::npos);
  net.module.has_pieces = true;
  EXPECT_TRUE(RunModule(net.module, {net.Random({1, 3, 5, 5})}, {"reference"}).ok());
}

TEST(Pieces, AnAddAfterAPartialSumIsNotFused) {
  Net net;
  net.module.has_pieces = true;
  const ValueId x = net.Input("x", {1, 3, 5, 5}), z = net.Input("z", {1, 4, 5, 5});
  net.graph().outputs = {net.Op("Add", {PartialConv(&net, x), z}),
                         net.Op("Add", {PartialConv(&net, x), net.Weight({4, 1, 1})})};
  ExpectSameResults(net.module, {net.Random({1, 3, 5, 5}), net.Random({1, 4, 5, 5})});
}

TEST(Pieces, AShiftAfterAPartialSumIsNotFolded) {
  Net net;
  net.module.has_pieces = true;
  const ValueId x = net.Input("x", {1, 3, 5, 5});
  const std::vector<ValueId> norm{PartialConv(&net, x), net.Weight({4}), net.Weight({4}),
                                  net.Weight({4}), net.Weight({4}, 0.5, 1)};
  net.graph().outputs = {
      net.Op("BatchNormalization", norm),
      net.Op("Sub", {net.Op("Mul", {PartialConv(&net, x), net.Weight({4, 1, 1})}),
                     net.Weight({4, 1, 1})})};
  ExpectSameResults(net.module, {net.Random({1, 3, 5, 5})});
}

}  // namespace
}  // namespace msrt

// Pads that can be folded into a window, and pads that cannot.
#include "core/passes/fold_pad.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/passes/passes_testing.h"

namespace msrt::testing {
namespace {

using Ints = std::vector<int64_t>;

AttrList Pads(Ints pads) { return {{"pads", std::move(pads)}}; }
const Ints kAround{0, 0, 1, 2, 0, 0, 2, 1};

// An image and a Pad, to be followed by a window.
struct PadNet : Net {
  ValueId image, padded;
  explicit PadNet(Dims dims = {1, 2, 6, 7}, AttrList pad = Pads(kAround),
                  const char* before = nullptr) {
    image = Input("x", dims);
    if (before != nullptr) image = Op(before, {image});
    padded = Op("Pad", {image}, std::move(pad));
  }
  Names After() { return OpsAfter(FoldPad, this, {Random({1, 2, 6, 7})}); }
};

TEST(FoldPad, FoldsIntoConv) {
  PadNet net({1, 2, kUnknownDim, kUnknownDim});
  net.graph().outputs = {net.Op("Conv", {net.padded, net.Weight({3, 2, 3, 3}), net.Weight({3})},
                                {{"pads", Ints{1, 0, 0, 1}}})};
  EXPECT_EQ(net.After(), Names{"Conv"});

  PadNet valid;
  valid.graph().outputs = {valid.Op("Conv", {valid.padded, valid.Weight({3, 2, 2, 2})},
                                    {{"auto_pad", std::string("VALID")}})};
  EXPECT_EQ(valid.After(), Names{"Conv"});
}

TEST(FoldPad, FoldsIntoPools) {
  PadNet average;
  average.graph().outputs = {average.Op("AveragePool", {average.padded},
                                        {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}})};
  EXPECT_EQ(average.After(), Names{"AveragePool"});

  AttrList lowest = Pads(kAround);
  lowest.Set("value", -std::numeric_limits<double>::infinity());
  PadNet largest({1, 2, 6, 7}, lowest);
  largest.graph().outputs = {
      largest.Op("MaxPool", {largest.padded}, {{"kernel_shape", Ints{3, 3}}})};
  EXPECT_EQ(largest.After(), Names{"MaxPool"});

  PadNet positive({1, 2, 6, 7}, Pads(kAround),
                  "Relu");  // zeros are never larger than the values
  positive.graph().outputs = {
      positive.Op("MaxPool", {positive.padded}, {{"kernel_shape", Ints{3, 3}}})};
  EXPECT_EQ(positive.After(), (Names{"Relu", "MaxPool"}));
}

TEST(FoldPad, KeepsPadsThatWouldChangeResults) {
  const auto stays = [](PadNet* net, const char* op, AttrList attrs, Names expected = {}) {
    std::vector<ValueId> inputs{net->padded};
    if (std::string_view(op) == "Conv")
      inputs.push_back(net->Weight({3, net->graph().value(net->padded).type.dims[1], 3, 3}));
    net->graph().outputs.push_back(net->Op(op, inputs, std::move(attrs)));
    EXPECT_EQ(net->After(), expected.empty() ? (Names{"Pad", op}) : expected);
  };
  const AttrList window{{"kernel_shape", Ints{3, 3}}};
  PadNet negative;  // zeros may be the maximum
  stays(&negative, "MaxPool", window);
  PadNet channels({1, 2, 6, 7}, Pads({0, 1, 0, 0, 0, 0, 0, 0}));
  stays(&channels, "Conv", {});
  PadNet cropped({1, 2, 6, 7}, Pads({0, 0, -1, 0, 0, 0, 1, 0}));
  stays(&cropped, "Conv", {});
  AttrList ones = Pads(kAround);
  ones.Set("value", 1.0);
  PadNet one({1, 2, 6, 7}, ones);
  stays(&one, "Conv", {});
  AttrList edge = Pads(kAround);
  edge.Set("mode", std::string("edge"));
  PadNet edges({1, 2, 6, 7}, edge);
  stays(&edges, "Conv", {});
  PadNet same;
  stays(&same, "Conv", {{"auto_pad", std::string("SAME_UPPER")}});
  PadNet ceil;
  stays(&ceil, "AveragePool",
        {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", int64_t{1}}});
  PadNet uncounted;  // its own pads are not counted, the others are
  stays(&uncounted, "AveragePool", {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}});
  PadNet wide({1, 2, 6, 7}, Pads({0, 0, 3, 0, 0, 0, 0, 0}),
              "Relu");  // the first windows see padding only
  stays(&wide, "MaxPool", window, {"Relu", "Pad", "MaxPool"});
  PadNet open({1, 2, kUnknownDim, 7}, Pads(kAround), "Relu");  // the image may have no rows at all
  stays(&open, "MaxPool", window, {"Relu", "Pad", "MaxPool"});
  PadNet shared;
  shared.graph().outputs = {shared.padded};
  stays(&shared, "Conv", {});
}

}  // namespace
}  // namespace msrt::testing

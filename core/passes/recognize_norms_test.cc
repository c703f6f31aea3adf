// Normalizations in the forms that exporters write, and similar chains that are not normalizations.
#include "core/passes/recognize_norms.h"

#include <gtest/gtest.h>

#include "core/passes/merge_common.h"
#include "core/passes/passes_testing.h"

namespace msrt::testing {
namespace {

using Ints = std::vector<int64_t>;

struct NormNet : Net {
  ValueId x = Input("x", {2, kUnknownDim, 6});
  Ints axes{-1};
  double epsilon = 1e-5;

  ValueId Mean(ValueId v) { return Op("ReduceMean", {v}, {{"axes", axes}}); }
  ValueId Centred() { return Op("Sub", {x, Mean(x)}); }
  ValueId Deviation(ValueId d, bool power = true) {
    const ValueId square = power ? Op("Pow", {d, Scalar(2)}) : Op("Mul", {d, d});
    return Op("Sqrt", {Op("Add", {Mean(square), Scalar(epsilon)})});
  }
  Names After(ValueId output) {
    graph().outputs.insert(graph().outputs.begin(), output);
    EXPECT_TRUE(MergeCommon(kContext, &graph()).ok());
    return OpsAfter(RecognizeNorms, this, {Random({2, 4, 6}, -2, 3)});
  }
};

TEST(RecognizeNorms, RecognizesLayerNormOfPyTorch) {
  NormNet net;
  const ValueId d = net.Centred();
  const ValueId norm = net.Op("Div", {d, net.Deviation(d)});
  const ValueId scaled = net.Op("Mul", {norm, net.Weight({6})});
  EXPECT_EQ(net.After(net.Op("Add", {scaled, net.Weight({1, 1, 6})})), Names{"LayerNormalization"});
  EXPECT_EQ(net.graph().nodes[0].inputs.size(), 3u);

  NormNet twice;  // the difference is written twice, the square as a product
  const ValueId deviation = twice.Deviation(twice.Centred(), false);
  const ValueId again =
      twice.Op("Mul", {twice.Weight({6}), twice.Op("Div", {twice.Centred(), deviation})});
  EXPECT_EQ(twice.After(twice.Op("Add", {twice.Weight({6}), again})), Names{"LayerNormalization"});
}

TEST(RecognizeNorms, ScaleAndBiasAreOptional) {
  NormNet bare;
  bare.axes = {1, 2};
  bare.graph().value(bare.x).type.dims[1] = 4;
  const ValueId d = bare.Centred();
  EXPECT_EQ(bare.After(bare.Op("Div", {d, bare.Deviation(d)})), Names{"LayerNormalization"});

  NormNet open;  // no scale, and its dims would be unknown
  open.axes = {1, 2};
  const ValueId e = open.Centred();
  EXPECT_EQ(open.After(open.Op("Div", {e, open.Deviation(e)})).size(), 7u);

  NormNet odd;  // a scale for each row is not a scale of the norm
  const ValueId f = odd.Centred();
  const ValueId norm = odd.Op("Div", {f, odd.Deviation(f)});
  EXPECT_EQ(odd.After(odd.Op("Mul", {norm, odd.Weight({2, 1, 1})})),
            (Names{"LayerNormalization", "Mul"}));
}

TEST(RecognizeNorms, RecognizesLayerNormOfTensorFlow) {
  NormNet net;
  const ValueId mean = net.Mean(net.x), d = net.Op("Sub", {net.x, mean});
  const ValueId g =
      net.Op("Mul", {net.Op("Reciprocal", {net.Deviation(d, false)}), net.Weight({6})});
  const ValueId shift = net.Op("Sub", {net.Weight({6}), net.Op("Mul", {mean, g})});
  EXPECT_EQ(net.After(net.Op("Add", {net.Op("Mul", {net.x, g}), shift})),
            Names{"LayerNormalization"});
}

TEST(RecognizeNorms, RecognizesRmsNorm) {
  NormNet net;
  const ValueId norm = net.Op("Mul", {net.x, net.Op("Reciprocal", {net.Deviation(net.x)})});
  EXPECT_EQ(net.After(net.Op("Mul", {net.Weight({6}), norm})), Names{"RMSNormalization"});

  NormNet power;
  const ValueId variance =
      power.Op("Add", {power.Mean(power.Op("Mul", {power.x, power.x})), power.Scalar(1e-6)});
  const ValueId inverse = power.Op("Pow", {variance, power.Scalar(-0.5)});
  EXPECT_EQ(power.After(power.Op("Mul", {power.x, inverse})), Names{"RMSNormalization"});

  NormNet quotient;
  EXPECT_EQ(quotient.After(quotient.Op("Div", {quotient.x, quotient.Deviation(quotient.x)})),
            Names{"RMSNormalization"});
}

TEST(RecognizeNorms, RecognizesGroupNormOfPyTorch) {
  for (const bool per_channel : {true, false}) {
    for (const float factor : {1.0f, 2.0f}) {
      Net net;
      const ValueId x = net.Input("x", {kUnknownDim, 6, kUnknownDim, 5});
      const ValueId groups = net.Op("Reshape", {x}, {{"shape", Ints{0, 3, -1}}});
      const ValueId norm = net.Op("InstanceNormalization",
                                  {groups, net.Weight({3}, factor, factor), net.Weight({3}, 0, 0)});
      const ValueId back = net.Op("Reshape", {norm, net.Op("Shape", {x})});
      const ValueId scale = net.Weight(per_channel ? Dims{6, 1, 1} : Dims{6, 1, 5});
      net.graph().outputs = {net.Op("Add", {net.Op("Mul", {back, scale}), net.Weight({6, 1, 1})})};
      const Names ops = OpsAfter(RecognizeNorms, &net, {net.Random({2, 6, 4, 5})});
      EXPECT_EQ(ops == Names{"GroupNormalization"}, per_channel && factor == 1.0f);
    }
  }
}

TEST(RecognizeNorms, KeepsOtherChains) {
  const auto chain = [](NormNet* net) {
    const ValueId d = net->Centred();
    return net->Op("Div", {d, net->Deviation(d)});
  };
  NormNet axis;  // not the last axis
  axis.axes = {0};
  EXPECT_EQ(axis.After(chain(&axis)).size(), 7u);

  NormNet negative;
  negative.epsilon = -0.01;
  EXPECT_EQ(negative.After(chain(&negative)).size(), 7u);

  NormNet shared;  // the variance has another use
  const ValueId d = shared.Centred();
  const ValueId deviation = shared.Deviation(d);
  shared.graph().outputs = {deviation};
  EXPECT_EQ(shared.After(shared.Op("Div", {d, deviation})).size(), 7u);

  NormNet cube;
  const ValueId e = cube.Centred();
  const ValueId variance = cube.Mean(cube.Op("Pow", {e, cube.Scalar(4)}));
  EXPECT_EQ(
      cube.After(
              cube.Op("Div", {e, cube.Op("Sqrt", {cube.Op("Add", {variance, cube.Scalar(1e-5)})})}))
          .size(),
      7u);

  NormNet other;  // the mean of one axis, the variance of two: what remains is the root of a mean
                  // square
  const ValueId f = other.Centred();
  other.axes = {1, 2};
  other.graph().value(other.x).type.dims[1] = 4;
  EXPECT_EQ(other.After(other.Op("Div", {f, other.Deviation(f)})).size(), 7u);
}

TEST(RecognizeNorms, EpsilonMustBeConstant) {
  NormNet net;
  const ValueId epsilon = net.Input("epsilon", {});
  const ValueId d = net.Centred();
  const ValueId variance = net.Mean(net.Op("Mul", {d, d}));
  net.graph().outputs = {net.Op("Div", {d, net.Op("Sqrt", {net.Op("Add", {variance, epsilon})})})};
  ASSERT_TRUE(RecognizeNorms(kContext, &net.graph()).ok());
  EXPECT_EQ(net.Ops().size(), 7u);
}

}  // namespace
}  // namespace msrt::testing

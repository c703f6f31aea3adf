// Activations in the forms that exporters write, and similar chains that are not activations.
#include "core/passes/recognize_activations.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/passes/merge_common.h"
#include "core/passes/passes_testing.h"

namespace msrt::testing {
namespace {

struct ActivationNet : Net {
  ValueId x = Input("x", {3, kUnknownDim});
  ValueId Mul(ValueId a, ValueId b) { return Op("Mul", {a, b}); }
  ValueId Plus(ValueId a, double c) { return Op("Add", {a, Scalar(c)}); }
  Names After(ValueId output) {
    graph().outputs.insert(graph().outputs.begin(), output);
    EXPECT_TRUE(MergeCommon(kContext, &graph()).ok());
    return OpsAfter(RecognizeActivations, this, {Random({3, 40}, -8, 8)});
  }
};

TEST(RecognizeActivations, RecognizesGeluByErf) {
  const double root = std::sqrt(2.0);
  ActivationNet a;
  ValueId erf = a.Plus(a.Op("Erf", {a.Op("Div", {a.x, a.Scalar(root)})}), 1);
  EXPECT_EQ(a.After(a.Mul(a.Mul(a.x, erf), a.Scalar(0.5))), Names{"Gelu"});
  ActivationNet b;
  erf = b.Plus(b.Op("Erf", {b.Mul(b.Scalar(1 / root, {1}), b.x)}), 1);
  EXPECT_EQ(b.After(b.Mul(b.Mul(b.Scalar(0.5), b.x), erf)), Names{"Gelu"});
  ActivationNet c;
  erf = c.Op("Add", {c.Scalar(1), c.Op("Erf", {c.Op("Div", {c.x, c.Scalar(root)})})});
  EXPECT_EQ(c.After(c.Mul(c.x, c.Mul(c.Scalar(0.5), erf))), Names{"Gelu"});
  ActivationNet d;
  erf = d.Plus(d.Op("Erf", {d.Op("Div", {d.x, d.Scalar(root)})}), 1);
  EXPECT_EQ(d.After(d.Mul(d.Op("Div", {d.x, d.Scalar(2)}), erf)), Names{"Gelu"});
}

TEST(RecognizeActivations, RecognizesGeluByTanh) {
  const double k = std::sqrt(2 / std::acos(-1.0));
  ActivationNet a;  // GPT-2's
  ValueId inner = a.Mul(
      a.Scalar(k), a.Op("Add", {a.x, a.Mul(a.Scalar(0.044715), a.Op("Pow", {a.x, a.Scalar(3)}))}));
  EXPECT_EQ(a.After(a.Mul(a.Mul(a.Scalar(0.5), a.x), a.Plus(a.Op("Tanh", {inner}), 1))),
            Names{"Gelu"});
  ActivationNet b;  // with factored powers
  inner = b.Mul(b.Mul(b.x, b.Scalar(k)), b.Plus(b.Mul(b.Mul(b.Scalar(0.044715), b.x), b.x), 1));
  EXPECT_EQ(b.After(b.Mul(b.x, b.Mul(b.Plus(b.Op("Tanh", {inner}), 1), b.Scalar(0.5)))),
            Names{"Gelu"});
  ActivationNet c;  // another cubic
  inner = c.Mul(c.Scalar(k),
                c.Op("Add", {c.x, c.Mul(c.Scalar(0.05), c.Op("Pow", {c.x, c.Scalar(3)}))}));
  EXPECT_EQ(c.After(c.Mul(c.Mul(c.Scalar(0.5), c.x), c.Plus(c.Op("Tanh", {inner}), 1))).size(), 8u);
}

TEST(RecognizeActivations, RecognizesSwishAndMish) {
  ActivationNet a;
  EXPECT_EQ(a.After(a.Mul(a.Op("Sigmoid", {a.x}), a.x)), Names{"Swish"});
  ActivationNet b;
  EXPECT_EQ(b.After(b.Mul(b.x, b.Op("Sigmoid", {b.Mul(b.x, b.Scalar(1.702))}))), Names{"Swish"});
  ActivationNet c;
  EXPECT_EQ(c.After(c.Mul(c.x, c.Op("Tanh", {c.Op("Softplus", {c.x})}))), Names{"Mish"});
}

TEST(RecognizeActivations, RecognizesHardSwishAndHardSigmoid) {
  ActivationNet a;
  EXPECT_EQ(a.After(a.Mul(a.x, a.Op("HardSigmoid", {a.x}, {{"alpha", 1.0f / 6}, {"beta", 0.5}}))),
            Names{"HardSwish"});
  ActivationNet b;
  EXPECT_EQ(
      b.After(b.Op("Div", {b.Mul(b.x, b.Op("Clip", {b.Plus(b.x, 3), b.Scalar(0), b.Scalar(6)})),
                           b.Scalar(6)})),
      Names{"HardSwish"});
  ActivationNet c;
  EXPECT_EQ(c.After(c.Mul(c.x, c.Mul(c.Op("Min", {c.Op("Relu", {c.Plus(c.x, 3)}), c.Scalar(6)}),
                                     c.Scalar(1.0 / 6)))),
            Names{"HardSwish"});
  ActivationNet d;
  EXPECT_EQ(d.After(d.Op("Div", {d.Op("Clip", {d.Plus(d.x, 3)}, {{"min", 0.0}, {"max", 6.0}}),
                                 d.Scalar(6)})),
            Names{"HardSigmoid"});
}

TEST(RecognizeActivations, RecognizesClips) {
  ActivationNet a;
  EXPECT_EQ(a.After(a.Op("Min", {a.Op("Max", {a.x, a.Scalar(-1)}), a.Scalar(2)})), Names{"Clip"});
  EXPECT_EQ(a.graph().nodes[0].inputs.size(), 1u);
  ActivationNet b;
  EXPECT_EQ(b.After(b.Op("Max", {b.Scalar(0), b.x})), Names{"Relu"});
  ActivationNet c;  // crossed bounds are left to the kernel
  EXPECT_EQ(c.After(c.Op("Min", {c.Op("Max", {c.x, c.Scalar(2)}), c.Scalar(1)})),
            (Names{"Clip", "Clip"}));
  ActivationNet d;  // the first is used elsewhere
  const ValueId relu = d.Op("Relu", {d.x});
  d.graph().outputs = {relu};
  EXPECT_EQ(d.After(d.Op("Min", {relu, d.Scalar(6)})), (Names{"Relu", "Clip"}));
}

TEST(RecognizeActivations, KeepsOtherChains) {
  ActivationNet other;  // the sigmoid of another value
  const ValueId y = other.Input("y", {3, 40});
  other.graph().outputs = {other.Mul(other.x, other.Op("Sigmoid", {y}))};
  ASSERT_TRUE(RecognizeActivations(kContext, &other.graph()).ok());
  EXPECT_EQ(other.Ops(), (Names{"Sigmoid", "Mul"}));

  ActivationNet shared;  // a value inside has another use
  const ValueId sigmoid = shared.Op("Sigmoid", {shared.x});
  shared.graph().outputs = {sigmoid};
  EXPECT_EQ(shared.After(shared.Mul(shared.x, sigmoid)), (Names{"Sigmoid", "Mul"}));

  ActivationNet scaled;  // 0.4 in place of 0.5
  const ValueId erf = scaled.Plus(
      scaled.Op("Erf", {scaled.Op("Div", {scaled.x, scaled.Scalar(std::sqrt(2.0))})}), 1);
  EXPECT_EQ(scaled.After(scaled.Mul(scaled.Mul(scaled.x, erf), scaled.Scalar(0.4))).size(), 5u);

  ActivationNet grown;  // a constant with more dims than x
  EXPECT_EQ(grown
                .After(grown.Mul(
                    grown.x, grown.Op("Sigmoid", {grown.Mul(grown.x, grown.Scalar(2, {1, 1, 1}))})))
                .size(),
            3u);

  ActivationNet line;  // Clip to 0..5
  EXPECT_EQ(line.After(line.Op("Div", {line.Mul(line.x, line.Op("Clip", {line.Plus(line.x, 3)},
                                                                {{"min", 0.0}, {"max", 5.0}})),
                                       line.Scalar(6)})),
            (Names{"Add", "Clip", "Mul", "Div"}));
}

}  // namespace
}  // namespace msrt::testing

// Quantised networks as ONNX Runtime's tools write them, and chains that must stay.
#include "core/passes/recognize_quantized.h"

#include <gtest/gtest.h>

#include "core/passes/fold_constants.h"
#include "core/passes/fuse_epilogue.h"
#include "core/passes/passes_testing.h"

namespace msrt::testing {
namespace {

// A context in which bytes are multiplied natively.
PassContext Native() {
  PassContext context = kContext;
  context.computes_natively = [](const Node&, DType dtype) { return dtype == DType::kI8; };
  return context;
}

struct QuantizedNet : Net {
  ConstTensor RandomBytes(DType dtype, Dims dims) {
    std::uniform_int_distribution<int> uniform(0, 255);
    std::vector<uint8_t> values(static_cast<size_t>(dims.elements()));
    for (uint8_t& v : values) v = static_cast<uint8_t>(uniform(random));
    return ConstTensor::Of<uint8_t>(dtype, dims, values);
  }
  ValueId Constant(ConstTensor data) {
    return graph().AddConstant(StrCat("q", graph().value_count()), std::move(data));
  }
  ValueId Zero(DType dtype, int value) {
    const auto byte = static_cast<uint8_t>(value);
    return Constant(ConstTensor::Of<uint8_t>(dtype, {}, {&byte, 1}));
  }
  ValueId Quantize(ValueId x, double scale, int zero, DType dtype = DType::kU8) {
    return Op("QuantizeLinear", {x, Scalar(scale), Zero(dtype, zero)});
  }
  ValueId Dequantize(ValueId x, double scale, int zero, DType dtype = DType::kU8) {
    return Op("DequantizeLinear", {x, Scalar(scale), Zero(dtype, zero)});
  }
  ValueId Both(ValueId x, double scale, int zero, DType dtype = DType::kU8) {
    return Dequantize(Quantize(x, scale, zero, dtype), scale, zero, dtype);
  }
  // Weights of s8 with a scale for each index of the axis.
  ValueId Weights(Dims dims, int64_t axis) {
    const ValueId zeros = Constant(ConstTensor::Of<uint8_t>(
        DType::kI8, {dims[static_cast<int>(axis)]},
        std::vector<uint8_t>(static_cast<size_t>(dims[static_cast<int>(axis)]))));
    const ValueId scales = Constant(Random({dims[static_cast<int>(axis)]}, 0.01f, 0.02f));
    return Op("DequantizeLinear", {Constant(RandomBytes(DType::kI8, dims)), scales, zeros},
              {{"axis", axis}});
  }

  // Returns the ops after the pass. Elements of the outputs may differ by `step`, one quantisation
  // step.
  Names After(ValueId output, double step, const std::vector<ConstTensor>& inputs,
              const PassContext& context = Native()) {
    graph().outputs = {output};
    const auto before = RunModule(module, inputs, {"reference"}, {"all"});
    EXPECT_TRUE(RecognizeQuantized(context, &graph()).ok());
    const auto after = RunModule(module, inputs, {"reference"}, {"all"});
    EXPECT_TRUE(before.ok() && after.ok()) << after.status().message() << Print(module);
    if (before.ok() && after.ok()) {
      EXPECT_EQ(Difference((*after)[0], (*before)[0], 1e-5, step), "");
    }
    return Ops();
  }
};

// The form that quantize_dynamic makes of x * W + b.
struct DynamicNet : QuantizedNet {
  ValueId x = Input("x", {kUnknownDim, 8});
  ValueId quantized = kNoValue, scale = kNoValue, zero = kNoValue;

  void QuantizeInput() {
    auto outputs = builder.Add("", "DynamicQuantizeLinear", "quantize", {x}, {}, 3);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    quantized = (*outputs)[0], scale = (*outputs)[1], zero = (*outputs)[2];
  }
  ValueId Product(ValueId weight_scale) {
    const ValueId w = Constant(RandomBytes(DType::kI8, {8, 6}));
    const ValueId sums = Op("MatMulInteger", {quantized, w, zero, Zero(DType::kI8, 0)});
    const ValueId real = Op("Cast", {sums}, {{"to", DType::kF32}});
    return Op("Mul", {real, Op("Mul", {scale, weight_scale})});
  }
};

TEST(RecognizeQuantized, DynamicProductTakesScaleBiasResidualAndActivation) {
  for (const bool list : {false, true}) {
    DynamicNet net;
    net.QuantizeInput();
    const ValueId y = net.Product(list ? net.Weight({6}, 0.01f, 0.02f) : net.Scalar(0.01));
    const ValueId biased = net.Op("Add", {net.Weight({6}), y});
    EXPECT_EQ(net.After(net.Op("Relu", {biased}), 0, {net.Random({5, 8})}, kContext),
              (Names{"DynamicQuantizeLinear", "msrt.QuantizedMatMul", "Add", "Relu"}));
    ASSERT_TRUE(FuseEpilogue(kContext, &net.graph()).ok());
    EXPECT_EQ(net.Ops(), (Names{"DynamicQuantizeLinear", "msrt.QuantizedMatMul"}));
    ExpectSameResults(net.module, {net.Random({5, 8})});
  }
}

TEST(RecognizeQuantized, SumsWithAnotherUseStay) {
  DynamicNet net;
  net.QuantizeInput();
  const ValueId y = net.Product(net.Scalar(0.01));
  net.graph().outputs = {y, net.graph().nodes[1].outputs[0]};
  ASSERT_TRUE(RecognizeQuantized(kContext, &net.graph()).ok());
  EXPECT_EQ(net.graph().nodes[1].op, "MatMulInteger");
}

TEST(RecognizeQuantized, RecognizesConvolutionBetweenDequantizeAndQuantize) {
  for (const DType dtype : {DType::kU8, DType::kI8}) {
    QuantizedNet net;
    const ValueId x = net.Both(net.Input("x", {1, 4, 6, 6}), 0.02, 3, dtype);
    const ValueId conv = net.Op("Conv", {x, net.Weights({5, 4, 3, 3}, 0), net.Weight({5})},
                                {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
    const ValueId y = net.Both(net.Op("Relu", {conv}), 0.05, 7, dtype);
    EXPECT_EQ(net.After(y, 0.0501, {net.Random({1, 4, 6, 6}, -2, 2)}),
              (Names{"QuantizeLinear", "msrt.QuantizedConv", "DequantizeLinear"}));
  }
}

TEST(RecognizeQuantized, KeepsChainsIfBytesAreNotNative) {
  QuantizedNet net;
  const ValueId x = net.Both(net.Input("x", {1, 4, 6, 6}), 0.02, 3);
  const ValueId y = net.Both(net.Op("Conv", {x, net.Weights({5, 4, 3, 3}, 0)}), 0.05, 7);
  EXPECT_EQ(net.After(y, 0, {net.Random({1, 4, 6, 6}, -2, 2)}, kContext).size(), 6u);
}

TEST(RecognizeQuantized, RecognizesGemmWithTransposedWeightsAndRealResult) {
  QuantizedNet net;
  const ValueId x = net.Both(net.Input("x", {3, 8}), 0.02, 3);
  const ValueId y =
      net.Op("Gemm", {x, net.Weights({5, 8}, 0), net.Weight({5})}, {{"transB", int64_t{1}}});
  EXPECT_EQ(net.After(y, 1e-5, {net.Random({3, 8}, -2, 2)}),
            (Names{"QuantizeLinear", "msrt.QuantizedMatMul"}));
}

TEST(RecognizeQuantized, ScalesAlongTheDepthStay) {
  QuantizedNet net;
  const ValueId x = net.Both(net.Input("x", {3, 8}), 0.02, 3);
  const ValueId y = net.Op("MatMul", {x, net.Weights({8, 5}, 0)});
  EXPECT_EQ(net.After(y, 0, {net.Random({3, 8}, -2, 2)}).back(), "MatMul");
}

TEST(RecognizeQuantized, ConvolutionsWithZeroPointsOfWeightsStay) {
  QuantizedNet net;
  const ValueId x = net.Both(net.Input("x", {1, 4, 6, 6}), 0.02, 3);
  const ValueId w =
      net.Dequantize(net.Constant(net.RandomBytes(DType::kU8, {5, 4, 3, 3})), 0.01, 127);
  EXPECT_EQ(net.After(net.Op("Conv", {x, w}), 0, {net.Random({1, 4, 6, 6}, -2, 2)}).back(), "Conv");
}

TEST(RecognizeQuantized, RecognizesResidualAddAndMovesOfBytes) {
  QuantizedNet net;
  const ValueId a = net.Both(net.Input("a", {1, 4, 6, 6}), 0.02, 3),
                b = net.Both(net.Input("b", {1, 4, 6, 6}), 0.03, 200);
  const ValueId sum = net.Both(net.Op("Relu", {net.Op("Add", {a, b})}), 0.05, 0);
  const ValueId pooled =
      net.Both(net.Op("MaxPool", {sum}, {{"kernel_shape", std::vector<int64_t>{2, 2}}}), 0.05, 0);
  EXPECT_EQ(
      net.After(pooled, 0.0501, {net.Random({1, 4, 6, 6}, -2, 2), net.Random({1, 4, 6, 6}, -2, 2)}),
      (Names{"QuantizeLinear", "QuantizeLinear", "msrt.QuantizedAdd", "MaxPool",
             "DequantizeLinear"}));
  QuantizedNet other;  // another scale after the pool
  const ValueId c = other.Both(other.Input("c", {1, 4, 6, 6}), 0.02, 3);
  const ValueId y =
      other.Both(other.Op("MaxPool", {c}, {{"kernel_shape", std::vector<int64_t>{2, 2}}}), 0.03, 3);
  EXPECT_EQ(other.After(y, 0, {other.Random({1, 4, 6, 6}, -2, 2)}).size(), 5u);
}

TEST(RecognizeQuantized, RecognizesQLinearConvWithBias) {
  for (const bool native : {true, false}) {
    QuantizedNet net;
    const ValueId x = net.Quantize(net.Input("x", {1, 4, 6, 6}), 0.02, 3);
    const std::vector<int32_t> steps{100, -200, 300, 0, 50};
    const ValueId bias = net.Constant(ConstTensor::Of<int32_t>(DType::kI32, {5}, steps));
    const ValueId w = net.Constant(net.RandomBytes(DType::kI8, {5, 4, 3, 3}));
    const ValueId y = net.Op(
        "QLinearConv", {x, net.Scalar(0.02), net.Zero(DType::kU8, 3), w, net.Scalar(0.01),
                        net.Zero(DType::kI8, 0), net.Scalar(0.05), net.Zero(DType::kU8, 9), bias});
    const Names real{"QuantizeLinear", "DequantizeLinear", "DequantizeLinear", "Conv",
                     "QuantizeLinear"};
    EXPECT_EQ(net.After(y, 1, {net.Random({1, 4, 6, 6}, -2, 2)}, native ? Native() : kContext),
              native ? Names({"QuantizeLinear", "msrt.QuantizedConv"}) : real);
  }
}

TEST(RecognizeQuantized, SmallWeightsOfBytesAreNotWidenedBefore) {
  QuantizedNet net;
  const ValueId x = net.Both(net.Input("x", {3, 8}), 0.02, 3);
  net.graph().outputs = {net.Op("MatMul", {x, net.Weights({8, 5}, 1)})};
  ASSERT_TRUE(FoldConstants(kContext, &net.graph()).ok());
  ASSERT_TRUE(RecognizeQuantized(Native(), &net.graph()).ok());
  EXPECT_EQ(net.Ops(), (Names{"QuantizeLinear", "msrt.QuantizedMatMul"}));
}

}  // namespace
}  // namespace msrt::testing

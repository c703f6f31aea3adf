#include "core/passes/widen_half.h"

#include <cmath>

#include "core/base/half_array.h"
#include "core/passes/passes_testing.h"
#include "ops/validate.h"

namespace msrt::testing {
namespace {

ConstTensor Halves(Dims dims, const std::vector<float>& values, DType dtype = DType::kF16) {
  std::vector<uint16_t> bits;
  for (float v : values) bits.push_back(dtype == DType::kF16 ? Half(v).bits : BFloat16(v).bits);
  return ConstTensor::Of<uint16_t>(dtype, dims, bits);
}

std::vector<float> ToFloats(const ConstTensor& t) {
  std::vector<float> values(static_cast<size_t>(t.dims.elements()));
  if (t.dtype == DType::kF16) ConvertArray(t.As<Half>().data(), values.data(), values.size());
  else if (t.dtype == DType::kBF16)
    ConvertArray(t.As<BFloat16>().data(), values.data(), values.size());
  else std::copy_n(t.As<float>().data(), values.size(), values.data());
  return values;
}

struct HalfNet : Net {
  DType dtype = DType::kF16;

  ValueId Half(const char* name, Dims dims) {
    return graph().AddInput(name, Type::Tensor(dtype, dims));
  }
  ConstTensor RandomHalf(Dims dims) { return Halves(dims, ToFloats(Random(dims)), dtype); }
  ValueId HalfWeight(Dims dims) {
    return graph().AddConstant(StrCat("w", graph().value_count()), RandomHalf(dims));
  }
  ValueId HalfScalar(float value) {
    return graph().AddConstant(StrCat("c", graph().value_count()), Halves({}, {value}, dtype));
  }
  void Widen(const PassContext& context = kContext) {
    ASSERT_TRUE(WidenHalf(context, &graph()).ok());
    const Status valid = Validate(&module);
    EXPECT_TRUE(valid.ok()) << valid.message() << "\n" << Print(module);
  }
  DType TypeOfInput(std::string_view op, size_t input = 0) {
    for (const Node& n : graph().nodes) {
      if (n.op == op) return graph().value(n.inputs[input]).type.dtype;
    }
    return DType::kNone;
  }
  size_t Count(std::string_view op) {
    const Names names = Ops();
    return static_cast<size_t>(std::count(names.begin(), names.end(), op));
  }
  std::vector<ConstTensor> Run(const std::vector<ConstTensor>& inputs) {
    auto outputs = RunModule(module, inputs, {"reference"});
    EXPECT_TRUE(outputs.ok()) << outputs.status().message();
    return outputs.ok() ? *outputs : std::vector<ConstTensor>();
  }
};

TEST(WidenHalf, CastsAreOnlyAtTheBordersOfTheGraph) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    HalfNet net;
    net.dtype = dtype;
    const ValueId x = net.Half("x", {1, 3, 8, 8});
    const ValueId conv = net.Op("Conv", {x, net.HalfWeight({4, 3, 3, 3}), net.HalfWeight({4})});
    const ValueId y = net.Op("Transpose", {net.Op("Relu", {net.Op("Add", {conv, conv})})});
    net.graph().value(y).name = "y";
    net.graph().outputs = {y};
    net.Widen();
    EXPECT_EQ(net.Ops(),
              (Names{"Cast", "Cast", "Cast", "Conv", "Add", "Relu", "Transpose", "Cast"}));
    EXPECT_EQ(net.TypeOfInput("Transpose"), DType::kF32);
    EXPECT_EQ(net.graph().value(net.graph().inputs[0]).type.dtype, dtype);
    EXPECT_EQ(net.graph().value(net.graph().outputs[0]).type.dtype, dtype);
    EXPECT_EQ(net.graph().value(net.graph().outputs[0]).name, "y");
  }
}

TEST(WidenHalf, ResultsEqualTheF32ModelRoundedOnce) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    HalfNet net;
    Net wide;
    net.dtype = dtype;
    const auto build = [](Net* n, ValueId x, const std::function<ValueId(Dims)>& weight) {
      const ValueId h = n->Op("Tanh", {n->Op("MatMul", {x, weight({32, 48})})});
      n->graph().outputs = {
          n->Op("Softmax", {n->Op("MatMul", {h, weight({48, 16})})}, {{"axis", int64_t{-1}}})};
    };
    std::vector<ConstTensor> weights;
    build(&net, net.Half("x", {4, 32}), [&](Dims dims) {
      weights.push_back(net.RandomHalf(dims));
      return net.graph().AddConstant(StrCat("w", weights.size()), weights.back());
    });
    size_t next = 0;
    build(&wide, wide.Input("x", {4, 32}), [&](Dims dims) {
      return wide.graph().AddConstant(StrCat("w", next),
                                      ConstTensor::Floats(dims, ToFloats(weights[next++])));
    });
    const ConstTensor x = net.RandomHalf({4, 32});
    const auto expected =
        RunModule(wide.module, {ConstTensor::Floats({4, 32}, ToFloats(x))}, {"reference"});
    ASSERT_TRUE(expected.ok());
    const ConstTensor rounded = Halves({4, 16}, ToFloats((*expected)[0]), dtype);
    EXPECT_EQ(Difference(net.Run({x})[0], rounded, 0, 0), "");
  }
}

TEST(WidenHalf, EmbeddingStaysNarrowAndItsRowsBecomeWide) {
  HalfNet net;
  const ValueId ids = net.graph().AddInput("ids", Type::Tensor(DType::kI64, {1, kUnknownDim}));
  const ValueId rows = net.Op("Gather", {net.HalfWeight({5000, 16}), ids});
  net.graph().outputs = {net.Op("MatMul", {rows, net.HalfWeight({16, 4})})};
  net.Widen();
  EXPECT_EQ(net.TypeOfInput("Gather"), DType::kF16);
  EXPECT_EQ(net.TypeOfInput("MatMul"), DType::kF32);
  EXPECT_EQ(net.Count("Cast"), 3u);  // rows, the other weight, the result
}

TEST(WidenHalf, TransposedWeightIsWidenedBeforeTranspose) {
  HalfNet net;
  const ValueId w =
      net.Op("Transpose", {net.HalfWeight({16, 4})}, {{"perm", std::vector<int64_t>{1, 0}}});
  net.graph().outputs = {net.Op("MatMul", {net.Half("x", {2, 4}), w})};
  net.Widen();
  EXPECT_EQ(net.TypeOfInput("Transpose"), DType::kF32);
}

// A growing cache is converted once, for its readers, and not between the input and the output.
TEST(WidenHalf, CacheStaysNarrow) {
  HalfNet net;
  const ValueId past = net.Half("past", {1, 8, 100, 64});
  const ValueId key = net.Op("Mul", {net.Half("x", {1, 8, 1, 64}), net.HalfScalar(2)});
  const ValueId present = net.Op("Concat", {past, key}, {{"axis", int64_t{2}}});
  net.graph().outputs = {present, net.Op("Exp", {present})};
  net.Widen();
  EXPECT_EQ(net.TypeOfInput("Concat"), DType::kF16);
  EXPECT_EQ(net.TypeOfInput("Exp"), DType::kF32);
}

TEST(WidenHalf, NodesThatOnlyMoveElementsStayNarrow) {
  HalfNet net;
  const ValueId x = net.Op("Transpose", {net.Half("x", {3, 4})});
  net.graph().outputs = {net.Op("Concat", {x, x}, {{"axis", int64_t{0}}}),
                         net.Op("Cast", {x}, {{"to", DType::kF32}})};
  net.Widen();
  EXPECT_EQ(net.Ops(), (Names{"Transpose", "Concat", "Cast"}));
}

TEST(WidenHalf, CastOfTheModelRounds) {
  HalfNet net;
  const ValueId x = net.Input("x", {1});
  const ValueId half = net.Op("Cast", {x}, {{"to", DType::kF16}});
  net.graph().outputs = {net.Op("Cast", {net.Op("Neg", {half})}, {{"to", DType::kF32}})};
  EXPECT_EQ(ToFloats(net.Run({ConstTensor::Floats({1}, std::vector<float>{2049})})[0])[0], -2048);
}

// 2048 + 1 is 2048 in f16: both elements are equal, so ArgMax returns the first.
TEST(WidenHalf, DecisionsAreMadeOnRoundedNumbers) {
  HalfNet net;
  const ValueId sum = net.Op("Add", {net.Half("x", {2}), net.Half("y", {2})});
  net.graph().outputs = {net.Op("ArgMax", {sum}), net.Op("Equal", {sum, net.HalfScalar(2048)}),
                         net.Op("Cast", {sum}, {{"to", DType::kI32}})};
  const auto results = net.Run({Halves({2}, {2048, 2048}), Halves({2}, {0, 1})});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].As<int64_t>()[0], 0);
  EXPECT_EQ(results[1].As<uint8_t>()[1], 1);
  EXPECT_EQ(results[2].As<int32_t>()[1], 2048);
}

// Inside a region numbers may exceed 65504, but values that leave it overflow.
TEST(WidenHalf, NumbersOverflowOnlyAtBorders) {
  HalfNet net;
  const ValueId twice = net.Op("Mul", {net.Half("x", {1}), net.HalfScalar(2)});
  net.graph().outputs = {net.Op("Div", {twice, net.HalfScalar(4)}), twice,
                         net.Op("IsInf", {twice})};
  const auto results = net.Run({Halves({1}, {60000})});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(ToFloats(results[0])[0], 30000);
  EXPECT_TRUE(std::isinf(ToFloats(results[1])[0]));
  EXPECT_EQ(results[2].As<uint8_t>()[0], 1);
}

TEST(WidenHalf, ShapeReadsTheExistingForm) {
  HalfNet net;
  const ValueId y = net.Op("Exp", {net.Half("x", {kUnknownDim, 3})});
  net.graph().outputs = {net.Op("Shape", {y}), net.Op("Cast", {y}, {{"to", DType::kF32}})};
  net.Widen();
  EXPECT_EQ(net.TypeOfInput("Shape"), DType::kF32);
  EXPECT_EQ(net.Ops(), (Names{"Cast", "Exp", "Shape", "Cast"}));
}

TEST(WidenHalf, NativeTypesStay) {
  HalfNet net;
  const ValueId x = net.Half("x", {2});
  net.graph().outputs = {net.Op("Exp", {net.Op("Neg", {x})})};
  PassContext context = kContext;
  context.computes_natively = [](const Node& node, DType dtype) {
    return node.op == "Exp" && dtype == DType::kF16;
  };
  net.Widen(context);
  EXPECT_EQ(net.TypeOfInput("Neg"), DType::kF32);
  EXPECT_EQ(net.TypeOfInput("Exp"), DType::kF16);
}

TEST(WidenHalf, RandomNumbersAndStateStay) {
  HalfNet net;
  net.module.states.push_back({"s", Type::Tensor(DType::kF16, {2}), net.RandomHalf({2})});
  const AttrList slot{
      {"slot", int64_t{0}}, {"dtype", DType::kF16}, {"dims", std::vector<int64_t>{2}}};
  auto state = net.builder.Add("msrt", "StateRead", "read", {}, slot, 1);
  ASSERT_TRUE(state.ok()) << state.status().message();
  const ValueId noise =
      net.Op("RandomNormal", {}, {{"shape", std::vector<int64_t>{2}}, {"dtype", DType::kF16}});
  const ValueId next = net.Op("Add", {(*state)[0], noise});
  ASSERT_TRUE(
      net.builder.Add("msrt", "StateWrite", "write", {next}, {{"slot", int64_t{0}}}, 0).ok());
  net.graph().outputs = {next};
  net.Widen();
  EXPECT_EQ(net.TypeOfInput("Add", 0), DType::kF32);
  EXPECT_EQ(net.TypeOfInput("StateWrite"), DType::kF16);
  EXPECT_EQ(net.Count("Cast"), 3u);
}

TEST(WidenHalf, QuantisationWithSmallScalesIsComputedInF32) {
  HalfNet net;
  const ValueId scale = net.HalfScalar(0.5f);
  const ValueId zero = net.graph().AddConstant(
      "zero", ConstTensor::Of<int8_t>(DType::kI8, {}, std::vector<int8_t>{3}));
  const ValueId q = net.Op("QuantizeLinear", {net.Op("Neg", {net.Half("x", {3})}), scale, zero});
  net.graph().outputs = {net.Op("DequantizeLinear", {q, scale, zero})};
  const auto results = net.Run({Halves({3}, {1.25f, -4, 100})});
  EXPECT_EQ(ToFloats(results[0]), (std::vector<float>{-1, 4, -65.5f}));
  net.Widen();
  EXPECT_EQ(net.TypeOfInput("QuantizeLinear"), DType::kF32);
  EXPECT_EQ(net.TypeOfInput("DequantizeLinear", 1), DType::kF32);
}

}  // namespace
}  // namespace msrt::testing

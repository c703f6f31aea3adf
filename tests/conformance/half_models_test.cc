// Models in f16 and bf16 through the whole runtime: control flow, state, and delegates that compute
// in these types.
#include <gtest/gtest.h>

#include "core/base/half.h"
#include "core/delegate/fake_delegate.h"
#include "core/run/session.h"
#include "tests/conformance/module_builder.h"
#include "tests/conformance/pipeline.h"
#include "tests/conformance/small_graph.h"

namespace msrt::testing {
namespace {

const Type kHalfRow = Type::Tensor(DType::kF16, {Dims{64}});

ConstTensor ToHalf(const ConstTensor& floats) {
  std::vector<uint16_t> bits;
  for (float v : floats.As<float>()) bits.push_back(Half(v).bits);
  return ConstTensor::Of<uint16_t>(DType::kF16, floats.dims, bits);
}
ValueId HalfNumber(ModuleBuilder* m, uint32_t g, float value) {
  return m->module.graphs[g].AddConstant("half", ToHalf(Floats({}, {value})));
}

// x = tanh(x) * 1.5 a given number of times, then its square or its negative.
Module LoopAndBranch() {
  ModuleBuilder m(4);
  const ValueId trips = m.Input(0), x = m.Input(0, kHalfRow), flag = m.Input(0, kFlag);
  const ValueId looped = m.Control(0, "", "Loop", {trips, kNoValue, x},
                                   {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {kHalfRow})[0];
  m.Output(0,
           m.Control(0, "", "If", {flag, looped},
                     {{"then_branch", GraphRef{2}}, {"else_branch", GraphRef{3}}}, {kHalfRow})[0]);
  m.Input(1);
  const ValueId go_on = m.Input(1, kFlag), carried = m.Input(1, kHalfRow);
  m.Output(1, m.Op(1, "Identity", {go_on}));
  m.Output(1, m.Op(1, "Mul", {m.Op(1, "Tanh", {carried}), HalfNumber(&m, 1, 1.5f)}));
  const ValueId yes = m.Input(2, kHalfRow), no = m.Input(3, kHalfRow);
  m.Output(2, m.Op(2, "Mul", {yes, yes}));
  m.Output(3, m.Op(3, "Neg", {no}));
  return m.module;
}

TEST(HalfModels, ControlFlowReturnsTheResultsOfF16) {
  const ConstTensor x = ToHalf(RandomFloats({64}, 3));
  for (const bool flag : {false, true}) {
    const auto number = static_cast<int64_t>(5);
    const uint8_t byte = flag ? 1 : 0;
    const std::vector<ConstTensor> inputs{
        ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&number, 1)), x,
        ConstTensor::Of<uint8_t>(DType::kBool, {}, std::span(&byte, 1))};
    const auto plain = RunModule(LoopAndBranch(), inputs, {"reference"}, {"all"});
    const auto widened = RunModule(LoopAndBranch(), inputs);
    ASSERT_TRUE(plain.ok() && widened.ok())
        << plain.status().message() << widened.status().message();
    EXPECT_EQ((*widened)[0].dtype, DType::kF16);
    EXPECT_EQ(Difference((*widened)[0], (*plain)[0], 4e-3, 1e-3), "");
  }
}

TEST(HalfModels, StateKeepsItsType) {
  SmallGraph g;
  g.module.states.push_back({"sum", kHalfRow, ToHalf(RandomFloats({64}, 1, 0))});
  const ValueId x = g.Input("x", DType::kF16, {64});
  GraphBuilder builder(&g.graph);
  const AttrList slot{
      {"slot", int64_t{0}}, {"dtype", DType::kF16}, {"dims", std::vector<int64_t>{64}}};
  const auto before = builder.Add("msrt", "StateRead", "read", {}, slot, 1);
  ASSERT_TRUE(before.ok()) << before.status().message();
  const ValueId sum = g.Add("Add", "sum", {g.Add("Sigmoid", "s", {x}), (*before)[0]});
  ASSERT_TRUE(builder.Add("msrt", "StateWrite", "write", {sum}, {{"slot", int64_t{0}}}, 0).ok());
  g.graph.outputs = {sum};
  auto model = CompileModule(TestEnvironment(), g.module, {});
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto session = Session::Create(*model, 0, {});
  ASSERT_TRUE(session.ok());
  const ConstTensor zeros = ToHalf(RandomFloats({64}, 1, 0));
  for (const float expected : {0.5f, 1.0f, 1.5f}) {
    const auto outputs = RunSession(**session, {zeros});
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_EQ((*outputs)[0].As<uint16_t>()[63], Half(expected).bits);
  }
}

// A delegate with f16 gets the model in f16; one that may not be used, or has another type, makes
// no difference.
TEST(HalfModels, DelegateWithF16GetsTheModelUnconverted) {
  SmallGraph g;
  g.graph.outputs = {g.Add("Exp", "e", {g.Add("Neg", "n", {g.Input("x", DType::kF16, {64})})})};
  const auto first_op = [&](uint32_t native_types, std::vector<std::string> allowed) {
    auto env = TestEnvironment();
    FakeDelegate fake{.name = "gpu", .offers = {}};
    fake.change = [&](msrt_delegate_api* api, msrt_device_api*) {
      api->native_types = native_types;
    };
    env->delegates.push_back(MakeFake(fake));
    CompileOptions options;
    options.place.delegates = std::move(allowed);
    const auto model = CompileModule(env, g.module, options);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? (*model)->module.main().nodes[0].op : "";
  };
  EXPECT_EQ(first_op(MSRT_BIT(MSRT_F16), {}), "Neg");
  EXPECT_EQ(first_op(MSRT_BIT(MSRT_F16), {"reference"}), "Cast");
  EXPECT_EQ(first_op(MSRT_BIT(MSRT_BF16), {}), "Cast");
  EXPECT_EQ(first_op(0, {}), "Cast");
}

// ---- products in bf16 ---------------------------------------------------------------------------

// Two matrix products in this type, with weights from the same seeds.
SmallGraph Perceptron(DType dtype) {
  SmallGraph g;
  const auto weight = [&](const char* name, Dims dims, uint32_t seed) {
    const ConstTensor floats = RandomFloats(dims, seed, 0.1f);
    if (dtype == DType::kF32) return g.graph.AddConstant(name, floats);
    std::vector<uint16_t> bits;
    for (float v : floats.As<float>())
      bits.push_back(dtype == DType::kF16 ? Half(v).bits : BFloat16(v).bits);
    return g.graph.AddConstant(name, ConstTensor::Of<uint16_t>(dtype, dims, bits));
  };
  const ValueId hidden =
      g.Add("MatMul", "a", {g.Input("x", dtype, {32, 256}), weight("w0", {256, 256}, 1)});
  g.graph.outputs = {
      g.Add("MatMul", "c", {g.Add("Relu", "b", {hidden}), weight("w1", {256, 64}, 2)})};
  return g;
}

// Returns the number of products in bf16 and the log.
std::pair<int, std::string> ProductsInBf16(DType dtype,
                                           const std::function<void(PlaceOptions*)>& change) {
  auto env = TestEnvironment();
  std::string logged;
  env->log = Log([&](LogLevel, const std::string& line) { logged += line; }, LogLevel::kWarning);
  CompileOptions options;
  change(&options.place);
  const auto model = CompileModule(env, Perceptron(dtype).module, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok()) return {-1, ""};
  int count = 0;
  for (const NodeExplanation& e : ProgramsOf(**model)[0]->program->explanations)
    count += e.reduced ? 1 : 0;
  return {count, logged};
}

TEST(HalfModels, ProductsUseBf16IfTheModelOrItsUserAllowsIt) {
  const auto by_default = [](PlaceOptions*) {};
  const auto fast = [](PlaceOptions* o) { o->reduced = true; };
  const auto exact = [](PlaceOptions* o) { o->exact = true; };
  const auto on_reference = [](PlaceOptions* o) {
    o->reduced = true, o->delegates = {"reference"};
  };
  for (const DType dtype : {DType::kF32, DType::kF16})
    EXPECT_EQ(ProductsInBf16(dtype, by_default).first, 0);
  EXPECT_EQ(ProductsInBf16(DType::kBF16, exact).first, 0);
  const auto nothing = ProductsInBf16(DType::kF32, on_reference);
  EXPECT_EQ(nothing.first, 0);
  EXPECT_NE(nothing.second.find("accuracy 'fast' has no effect"), std::string::npos)
      << nothing.second;
  const auto with_bf16 = ProductsInBf16(DType::kBF16, by_default);
  EXPECT_EQ(with_bf16.second, "");
  if (with_bf16.first == 0) GTEST_SKIP() << "this machine has no products in bf16";
  EXPECT_EQ(with_bf16.first, 2);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    EXPECT_EQ(ProductsInBf16(dtype, fast), std::make_pair(2, std::string()));
}

}  // namespace
}  // namespace msrt::testing

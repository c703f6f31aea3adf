// Forward mode against reverse mode and formulas, and mixed modes against PyTorch.
#include "core/autodiff/tangents.h"

#include <fstream>
#include <map>

#include "core/autodiff/autodiff_testing.h"

namespace msrt::testing {
namespace {

// The outputs become the tangents of the outputs for tangents that are new inputs.
void TakeTangents(Module* module) {
  ASSERT_TRUE(Validate(module).ok()) << Validate(module).message();
  Graph& graph = module->main();
  TangentRequest request{graph.outputs, {}, {}};
  for (ValueId v : std::vector<ValueId>(graph.inputs)) {
    const Type type = graph.value(v).type;
    if (!type.is_tensor() || type.dtype != DType::kF64) continue;
    request.with_respect_to.push_back(v);
    request.tangents.push_back(graph.AddInput(StrCat("d", graph.inputs.size()), type));
  }
  auto tangents = AddTangents(module, 0, request);
  ASSERT_TRUE(tangents.ok()) << tangents.status().message();
  module->main().outputs = *std::move(tangents);
  ASSERT_TRUE(Validate(module).ok()) << Validate(module).message();
}

TEST(Tangents, AreProductsWithTheJacobian) {
  ModuleBuilder m(1);
  const Type two = Type::Tensor(DType::kF64, {2});
  const ValueId x = m.Input(0, two), y = m.Input(0, two);
  m.Output(0, m.Op(0, "Mul", {x, y}));
  m.Output(0, m.Op(0, "Div", {x, y}));
  TakeTangents(&m.module);
  const auto got = RunBoth(m.module, {TensorOf({2}, {1, 2}), TensorOf({2}, {4, 8}),
                                      TensorOf({2}, {1, 0}), TensorOf({2}, {0, 16})});
  EXPECT_EQ(got, (std::vector<Doubles>{{4, 32}, {0.25, -0.5}}));
}

// n times: y = y * y * w. Its tangent, and the gradient of its tangent.
TEST(Tangents, PassThroughLoops) {
  ModuleBuilder m(2);
  const ValueId x = m.Input(0, kDouble), w = m.Input(0, kDouble);
  m.Output(0, m.Control(0, "", "Loop", {m.Number(0, 2), kNoValue, x, w},
                        {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {kDouble})[0]);
  m.Input(1);
  m.Output(1, m.Input(1, kFlag));
  const ValueId y = m.Input(1, kDouble), c = m.Input(1, kDouble);
  m.Output(1, m.Op(1, "Mul", {m.Op(1, "Mul", {y, y}), c}));
  TakeTangents(&m.module);  // of w^3 x^4
  const std::vector<ConstTensor> inputs = {TensorOf(2), TensorOf(3), TensorOf(1), TensorOf(5)};
  EXPECT_EQ(RunBoth(m.module, inputs), (std::vector<Doubles>{{864 + 5 * 27 * 16}}));
  ASSERT_TRUE(AppendGradients(&m.module).ok());
  // t = 4 w^3 x^3 dx + 3 w^2 x^4 dw
  EXPECT_EQ(RunBoth(m.module, inputs), (std::vector<Doubles>{{3024},
                                                             {12 * 27 * 4 + 5 * 12 * 9 * 8},
                                                             {12 * 9 * 8 + 5 * 6 * 3 * 16},
                                                             {864},
                                                             {27 * 16}}));
}

// A line of the file that tests/data/generate/physics_network.py writes.
std::map<std::string, ConstTensor> ReadTensors(const std::string& path) {
  std::ifstream file(path);
  std::map<std::string, ConstTensor> tensors;
  std::string name;
  for (size_t rank = 0; file >> name >> rank;) {
    Dims dims;
    for (size_t i = 0; i < rank; ++i) {
      int64_t d = 0;
      file >> d;
      dims.push_back(d);
    }
    Doubles values(static_cast<size_t>(dims.elements()));
    for (double& v : values) file >> v;
    tensors[name] = TensorOf(dims, values);
  }
  return tensors;
}

// The residual of u_t + 6 u u_x + u_xxx for a network u(t, x): u_t and u_x by reverse mode, the
// further derivatives by forward mode, and the gradients of the mean square by reverse mode.
TEST(Tangents, PhysicsInformedNetworkAgreesWithPyTorch) {
  const auto data = ReadTensors(MSRT_TEST_DATA "/autodiff/physics_network.txt");
  ASSERT_EQ(data.size(), 20u);
  ModuleBuilder m(1);
  std::map<std::string, ValueId> in;
  std::vector<ConstTensor> inputs;
  for (const char* name : {"t", "x", "wt", "wx", "b1", "w2", "b2", "w3"}) {
    in[name] = m.Input(0, data.at(name).type());
    inputs.push_back(data.at(name));
  }
  const auto activation = [&](ValueId z) {
    return m.Op(0, "Div", {z, m.Op(0, "Add", {Constant(&m, 0, 1), m.Op(0, "Mul", {z, z})})});
  };
  const ValueId first = activation(
      m.Op(0, "Add",
           {m.Op(0, "Add",
                 {m.Op(0, "MatMul", {in["t"], in["wt"]}), m.Op(0, "MatMul", {in["x"], in["wx"]})}),
            in["b1"]}));
  const ValueId second =
      activation(m.Op(0, "Add", {m.Op(0, "MatMul", {first, in["w2"]}), in["b2"]}));
  const ValueId u = m.Op(0, "MatMul", {second, in["w3"]});
  ASSERT_TRUE(Validate(&m.module).ok());

  const auto slopes = AddGradients(&m.module, 0, {{u}, {}, {in["t"], in["x"]}});
  ASSERT_TRUE(slopes.ok()) << slopes.status().message();
  const ValueId u_t = (*slopes)[0], u_x = (*slopes)[1];
  const auto along_x = [&](ValueId v) {
    const auto tangents = AddTangents(&m.module, 0, {{v}, {in["x"]}, {}});
    EXPECT_TRUE(tangents.ok()) << tangents.status().message();
    return tangents.ok() ? (*tangents)[0] : v;
  };
  const ValueId u_xx = along_x(u_x), u_xxx = along_x(u_xx);
  const ValueId advection = m.Op(0, "Mul", {m.Op(0, "Mul", {Constant(&m, 0, 6), u}), u_x});
  const ValueId residual = m.Op(0, "Add", {m.Op(0, "Add", {u_t, advection}), u_xxx});
  const ValueId loss = m.Op(
      0, "Div",
      {m.Op(0, "ReduceSum", {m.Op(0, "Mul", {residual, residual})}, {{"keepdims", int64_t{0}}}),
       Constant(&m, 0, 5)});
  GradientRequest request{{loss}, {}, {}};
  std::vector<std::pair<std::string, ValueId>> outputs = {
      {"u", u},         {"u_x", u_x},           {"u_xx", u_xx},
      {"u_xxx", u_xxx}, {"residual", residual}, {"loss", loss}};
  for (const char* name : {"wt", "wx", "b1", "w2", "b2", "w3"})
    request.with_respect_to.push_back(in[name]);
  const auto gradients = AddGradients(&m.module, 0, request);
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  size_t next = 0;
  for (const char* name : {"grad_wt", "grad_wx", "grad_b1", "grad_w2", "grad_b2", "grad_w3"})
    outputs.emplace_back(name, (*gradients)[next++]);
  for (const auto& [name, v] : outputs) m.Output(0, v);
  const auto got = RunBoth(m.module, inputs);
  ASSERT_EQ(got.size(), outputs.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const Doubles want = NumbersOf(data.at(outputs[i].first));
    ASSERT_EQ(got[i].size(), want.size()) << outputs[i].first;
    double scale = 0;
    for (double w : want) scale = std::max(scale, std::abs(w));
    for (size_t k = 0; k < want.size(); ++k)
      EXPECT_NEAR(got[i][k], want[k], 1e-12 * scale) << outputs[i].first << " " << k;
  }
}

}  // namespace
}  // namespace msrt::testing

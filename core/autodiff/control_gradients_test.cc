// Gradients through control flow against formulas.
#include <numeric>

#include "core/autodiff/autodiff_testing.h"
#include "core/autodiff/prepare.h"

namespace msrt::testing {
namespace {

// Returns outputs and gradients.
std::vector<Doubles> Differentiated(Module module, const std::vector<ConstTensor>& inputs) {
  const Status status = AppendGradients(&module);
  EXPECT_TRUE(status.ok()) << status.message() << "\n" << Print(module);
  return status.ok() ? RunBoth(module, inputs) : std::vector<Doubles>();
}
std::string RefusalOf(Module module) { return AppendGradients(&module).message(); }

ConstTensor Flag(bool value) {
  const uint8_t byte = value ? 1 : 0;
  return ConstTensor::Of<uint8_t>(DType::kBool, {}, std::span(&byte, 1));
}
ConstTensor Number(int64_t value) {
  return ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&value, 1));
}

// flag ? x * y : x / y
TEST(ControlGradients, IfTakesTheBranch) {
  ModuleBuilder m(3);
  const ValueId flag = m.Input(0, kFlag), x = m.Input(0, kDouble), y = m.Input(0, kDouble);
  m.Output(0,
           m.Control(0, "", "If", {flag, x, y},
                     {{"then_branch", GraphRef{1}}, {"else_branch", GraphRef{2}}}, {kDouble})[0]);
  for (uint32_t g : {1u, 2u}) {
    const ValueId a = m.Input(g, kDouble), b = m.Input(g, kDouble);
    m.Output(g, m.Op(g, g == 1 ? "Mul" : "Div", {a, b}));
  }
  const auto product = Differentiated(m.module, {Flag(true), TensorOf(3), TensorOf(5)});
  EXPECT_EQ(product, (std::vector<Doubles>{{15}, {5}, {3}}));
  const auto quotient = Differentiated(m.module, {Flag(false), TensorOf(3), TensorOf(4)});
  EXPECT_EQ(quotient, (std::vector<Doubles>{{0.75}, {0.25}, {-3.0 / 16}}));
}

// power(x, n) = n == 0 ? 1 : x * power(x, n - 1)
Module RecursivePower() {
  ModuleBuilder m(4);
  const ValueId x = m.Input(0, kDouble), n = m.Input(0);
  m.Output(0, m.Control(0, "msrt", "Call", {x, n}, {{"graph", GraphRef{1}}}, {kDouble})[0]);
  const ValueId a = m.Input(1, kDouble), i = m.Input(1);
  m.Output(1,
           m.Control(1, "", "If", {m.Op(1, "Equal", {i, m.Number(1, 0)}), a, i},
                     {{"then_branch", GraphRef{2}}, {"else_branch", GraphRef{3}}}, {kDouble})[0]);
  m.Input(2, kDouble), m.Input(2);
  m.Output(2, m.Op(2, "Identity", {Constant(&m, 2, 1)}));
  const ValueId b = m.Input(3, kDouble), j = m.Input(3);
  const ValueId rest = m.Control(3, "msrt", "Call", {b, m.Op(3, "Sub", {j, m.Number(3, 1)})},
                                 {{"graph", GraphRef{1}}}, {kDouble})[0];
  m.Output(3, m.Op(3, "Mul", {b, rest}));
  return m.module;
}

TEST(ControlGradients, RecursionEnds) {
  EXPECT_EQ(Differentiated(RecursivePower(), {TensorOf(3), Number(4)}),
            (std::vector<Doubles>{{81}, {108}}));
  EXPECT_EQ(Differentiated(RecursivePower(), {TensorOf(3), Number(0)}),
            (std::vector<Doubles>{{1}, {0}}));
}

TEST(ControlGradients, RecursionHasSecondDerivatives) {
  Module module = RecursivePower();
  ASSERT_TRUE(AppendGradients(&module).ok());
  module.main().outputs.erase(module.main().outputs.begin());
  const auto second = Differentiated(module, {TensorOf(2), Number(5)});
  EXPECT_EQ(second, (std::vector<Doubles>{{80}, {160}}));
}

// even(x, n) = n == 0 ? x : odd(x * x, n - 1), odd(x, n) = n == 0 ? x : even(x + x, n - 1)
TEST(ControlGradients, MutualRecursionEnds) {
  ModuleBuilder m(6);  // main, even, odd, their ends and their steps
  const ValueId x = m.Input(0, kDouble), n = m.Input(0);
  m.Output(0, m.Control(0, "msrt", "Call", {x, n}, {{"graph", GraphRef{1}}}, {kDouble})[0]);
  for (uint32_t g : {1u, 2u}) {
    const ValueId a = m.Input(g, kDouble), i = m.Input(g);
    m.Output(g, m.Control(g, "", "If", {m.Op(g, "Equal", {i, m.Number(g, 0)}), a, i},
                          {{"then_branch", GraphRef{3}}, {"else_branch", GraphRef{3 + g}}},
                          {kDouble})[0]);
    const uint32_t step = 3 + g;
    const ValueId b = m.Input(step, kDouble), j = m.Input(step);
    m.Output(step, m.Control(step, "msrt", "Call",
                             {m.Op(step, g == 1 ? "Mul" : "Add", {b, b}),
                              m.Op(step, "Sub", {j, m.Number(step, 1)})},
                             {{"graph", GraphRef{3 - g}}}, {kDouble})[0]);
  }
  m.Output(3, m.Input(3, kDouble));
  m.Input(3);
  // Four steps: square, double, square, double: 2 (2 x^2)^2.
  EXPECT_EQ(Differentiated(m.module, {TensorOf(3), Number(4)}),
            (std::vector<Doubles>{{8 * 81}, {32 * 27}}));
  EXPECT_EQ(Differentiated(m.module, {TensorOf(3), Number(1)}), (std::vector<Doubles>{{9}, {6}}));
}

// The body of a loop calls a graph that loops over the same body:
//   body(y, n) = f(y, n); f(y, n) = n == 0 ? y * y : twice body(y, n - 1)
TEST(ControlGradients, LoopBodiesMayCallThemselves) {
  ModuleBuilder m(5);  // main, body, f, its end, its loop
  const ValueId x = m.Input(0, kDouble), n = m.Input(0);
  const AttrList loop = {{"body", GraphRef{1}}, {"carried", int64_t{1}}};
  m.Output(0, m.Control(0, "", "Loop", {m.Number(0, 1), kNoValue, x, n}, loop, {kDouble})[0]);
  m.Input(1);
  m.Output(1, m.Input(1, kFlag));
  const ValueId y = m.Input(1, kDouble), i = m.Input(1);
  m.Output(1, m.Control(1, "msrt", "Call", {y, i}, {{"graph", GraphRef{2}}}, {kDouble})[0]);
  const ValueId z = m.Input(2, kDouble), j = m.Input(2);
  m.Output(2,
           m.Control(2, "", "If", {m.Op(2, "Equal", {j, m.Number(2, 0)}), z, j},
                     {{"then_branch", GraphRef{3}}, {"else_branch", GraphRef{4}}}, {kDouble})[0]);
  const ValueId a = m.Input(3, kDouble);
  m.Input(3);
  m.Output(3, m.Op(3, "Mul", {a, a}));
  const ValueId b = m.Input(4, kDouble), k = m.Input(4);
  m.Output(4, m.Control(4, "", "Loop",
                        {m.Number(4, 2), kNoValue, b, m.Op(4, "Sub", {k, m.Number(4, 1)})}, loop,
                        {kDouble})[0]);
  // n = 1: two squares, n = 2: four.
  EXPECT_EQ(Differentiated(m.module, {TensorOf(2), Number(1)}), (std::vector<Doubles>{{16}, {32}}));
  EXPECT_EQ(Differentiated(m.module, {TensorOf(2), Number(2)}),
            (std::vector<Doubles>{{65536}, {16 * 32768}}));
}

// y = x; n times: s = s + y * w, y = y * y; outputs s and all values of y * w.
Module NestedState(std::string_view kind) {
  ModuleBuilder m(kind == "While" ? 3 : 2);
  const ValueId x = m.Input(0, kDouble), w = m.Input(0, kDouble);
  const ValueId s = Constant(&m, 0, 0);
  const Type stacked = Type::Tensor(DType::kF64, {kUnknownDim});
  std::vector<ValueId> results;
  uint32_t body = 1;
  if (kind == "Loop") {
    results =
        m.Control(0, "", "Loop", {m.Input(0), kNoValue, x, s, w},
                  {{"body", GraphRef{1}}, {"carried", int64_t{2}}}, {kDouble, kDouble, stacked});
    m.Input(1), m.Input(1, kFlag);
  } else {
    body = 2;
    results =
        m.Control(0, "msrt", "While", {m.Number(0, 0), x, s, w, m.Input(0)},
                  {{"condition", GraphRef{1}}, {"body", GraphRef{2}}, {"carried", int64_t{3}}},
                  {kNumber, kDouble, kDouble});
    results.erase(results.begin());
    const ValueId i = m.Input(1);
    for (int k = 0; k < 3; ++k) m.Input(1, kDouble);
    m.Output(1, m.Op(1, "Less", {i, m.Input(1)}));
    m.Output(2, m.Op(2, "Add", {m.Input(2), m.Number(2, 1)}));
  }
  const ValueId y = m.Input(body, kDouble), t = m.Input(body, kDouble), c = m.Input(body, kDouble);
  if (kind == "Loop") m.Output(body, m.module.graphs[body].inputs[1]);
  else m.Input(body);
  const ValueId product = m.Op(body, "Mul", {y, c});
  m.Output(body, m.Op(body, "Mul", {y, y}));
  m.Output(body, m.Op(body, "Add", {t, product}));
  if (kind == "Loop") m.Output(body, product);
  for (ValueId v : results) m.Output(0, v);
  return m.module;
}

TEST(ControlGradients, LoopRunsBackward) {
  // x = 2, w = 3, two iterations: y = 16, s = 18, stacked 6 and 12; sums y + 2 s.
  EXPECT_EQ(Differentiated(NestedState("Loop"), {TensorOf(2), TensorOf(3), Number(2)}),
            (std::vector<Doubles>{{16}, {18}, {6, 12}, {32 + 2 * (3 + 12)}, {2 * (2 + 4)}}));
  // No iteration: y = x.
  EXPECT_EQ(Differentiated(NestedState("Loop"), {TensorOf(2), TensorOf(3), Number(0)}),
            (std::vector<Doubles>{{2}, {0}, {}, {1}, {0}}));
}

TEST(ControlGradients, WhileRunsBackward) {
  EXPECT_EQ(Differentiated(NestedState("While"), {TensorOf(2), TensorOf(3), Number(2)}),
            (std::vector<Doubles>{{16}, {18}, {32 + 3 + 12}, {6}}));
  EXPECT_EQ(Differentiated(NestedState("While"), {TensorOf(2), TensorOf(3), Number(0)}),
            (std::vector<Doubles>{{2}, {0}, {1}, {0}}));
}

TEST(ControlGradients, LoopHasSecondDerivatives) {
  for (const char* kind : {"Loop", "While"}) {
    Module module = NestedState(kind);
    ASSERT_TRUE(AppendGradients(&module).ok());
    const size_t outputs = module.main().outputs.size();
    module.main().outputs = {module.main().outputs[outputs - 2]};  // with respect to x
    const auto second = Differentiated(module, {TensorOf(2), TensorOf(3), Number(2)});
    // d/dx = 4 x^3 + k (w + 2 x w), k = 2 for Loop, 1 for While.
    const double k = std::string_view(kind) == "Loop" ? 2 : 1;
    EXPECT_EQ(second, (std::vector<Doubles>{{32 + k * 15}, {48 + k * 6}, {k * 5}})) << kind;
  }
}

// A loop in a loop with a branch in it, and the same unrolled.
//   outer, n times: z = y; inner, i + 1 times: z = flag ? z * w : z + w * z * z; y = y * z
Module NestedLoops() {
  ModuleBuilder m(5);
  const ValueId x = m.Input(0, kDouble), w = m.Input(0, kDouble), flag = m.Input(0, kFlag);
  m.Output(0, m.Control(0, "", "Loop", {m.Number(0, 3), kNoValue, x, w, flag},
                        {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {kDouble})[0]);
  for (uint32_t g : {1u, 2u}) {
    const ValueId i = m.Input(g), go_on = m.Input(g, kFlag), y = m.Input(g, kDouble),
                  c = m.Input(g, kDouble), f = m.Input(g, kFlag);
    m.Output(g, go_on);
    if (g == 1) {
      const ValueId z =
          m.Control(1, "", "Loop", {m.Op(1, "Add", {i, m.Number(1, 1)}), kNoValue, y, c, f},
                    {{"body", GraphRef{2}}, {"carried", int64_t{1}}}, {kDouble})[0];
      m.Output(1, m.Op(1, "Mul", {y, z}));
    } else {
      m.Output(
          2, m.Control(2, "", "If", {f, y, c},
                       {{"then_branch", GraphRef{3}}, {"else_branch", GraphRef{4}}}, {kDouble})[0]);
    }
  }
  for (uint32_t g : {3u, 4u}) {
    const ValueId z = m.Input(g, kDouble), c = m.Input(g, kDouble);
    const ValueId scaled = m.Op(g, "Mul", {z, c});
    m.Output(g, g == 3 ? scaled : m.Op(g, "Add", {z, m.Op(g, "Mul", {scaled, z})}));
  }
  return m.module;
}
Module UnrolledLoops(bool flag) {
  ModuleBuilder m(1);
  ValueId y = m.Input(0, kDouble);
  const ValueId w = m.Input(0, kDouble);
  m.Input(0, kFlag);
  for (int i = 0; i < 3; ++i) {
    ValueId z = y;
    for (int k = 0; k <= i; ++k) {
      const ValueId scaled = m.Op(0, "Mul", {z, w});
      z = flag ? scaled : m.Op(0, "Add", {z, m.Op(0, "Mul", {scaled, z})});
    }
    y = m.Op(0, "Mul", {y, z});
  }
  m.Output(0, y);
  return m.module;
}

TEST(ControlGradients, NestedLoopsAgreeWithUnrolledOnes) {
  for (bool flag : {true, false}) {
    Module nested = NestedLoops(), unrolled = UnrolledLoops(flag);
    // The gradient, and the gradient of the gradient.
    for (int order = 1; order <= 2; ++order) {
      ASSERT_TRUE(AppendGradients(&nested).ok()) << AppendGradients(&nested).message();
      ASSERT_TRUE(AppendGradients(&unrolled).ok());
      const std::vector<ConstTensor> inputs = {TensorOf(0.9), TensorOf(0.7), Flag(flag)};
      const auto got = RunBoth(nested, inputs), want = RunBoth(unrolled, inputs);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i].at(0), want[i].at(0), 1e-12 * std::abs(want[i][0])) << "output " << i;
    }
  }
}

// Scan over rows from the last to the first, with results along the second axis.
TEST(ControlGradients, ScanRunsBackward) {
  ModuleBuilder m(2);
  const Type rows = Type::Tensor(DType::kF64, {3, 2}), row = Type::Tensor(DType::kF64, {2});
  const ValueId s = m.Input(0, row), x = m.Input(0, rows), w = m.Input(0, row);
  const auto results = m.Control(0, "", "Scan", {s, x, w},
                                 {{"body", GraphRef{1}},
                                  {"carried", int64_t{1}},
                                  {"num_scan_inputs", int64_t{1}},
                                  {"scan_input_directions", std::vector<int64_t>{1}},
                                  {"scan_output_axes", std::vector<int64_t>{1}},
                                  {"scan_output_directions", std::vector<int64_t>{1}}},
                                 {row, Type::Tensor(DType::kF64, {2, 3})});
  for (ValueId v : results) m.Output(0, v);
  const ValueId sum = m.Input(1, row), slice = m.Input(1, row), c = m.Input(1, row);
  const ValueId next = m.Op(1, "Add", {sum, m.Op(1, "Mul", {slice, slice})});
  m.Output(1, next);
  m.Output(1, m.Op(1, "Mul", {next, c}));
  // next after row k is s + the squares of rows k.. of x. Row k is in its own result and those of
  // the rows before it: its factor is 1 + (k + 1) w.
  const auto got = Differentiated(
      m.module,
      {TensorOf({2}, {1, 2}), TensorOf({3, 2}, {1, 2, 3, 4, 5, 6}), TensorOf({2}, {0.5, 0.25})});
  ASSERT_EQ(got.size(), 5u);
  EXPECT_EQ(got[0], (Doubles{36, 58}));
  EXPECT_EQ(got[1], (Doubles{18, 17.5, 13, 14.5, 13.5, 9.5}));
  EXPECT_EQ(got[2], (Doubles{1 + 3 * 0.5, 1 + 3 * 0.25}));
  EXPECT_EQ(got[3], (Doubles{2 * 1 * 1.5, 4 * 1.25, 6 * 2, 8 * 1.5, 10 * 2.5, 12 * 1.75}));
  EXPECT_EQ(got[4], (Doubles{36 + 35 + 26, 58 + 54 + 38}));
}

// A carried value grows, n times: y = w * all products of two elements of y.
TEST(ControlGradients, CarriedValuesOfOpenSizeAreSavedInLists) {
  ModuleBuilder m(2);
  const Type open = Type::Tensor(DType::kF64, {kUnknownDim});
  const ValueId x = m.Input(0, Type::Tensor(DType::kF64, {2})), w = m.Input(0, kDouble);
  m.Output(0, m.Control(0, "", "Loop", {m.Input(0), kNoValue, x, w},
                        {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {open})[0]);
  m.Input(1);
  m.Output(1, m.Input(1, kFlag));
  const ValueId y = m.Input(1, open), c = m.Input(1, kDouble);
  const auto unsqueezed = [&](int64_t axis) {
    return m.Op(1, "Unsqueeze", {y}, {{"axes", std::vector<int64_t>{axis}}});
  };
  const ValueId products = m.Op(1, "Mul", {unsqueezed(0), unsqueezed(1)});
  const ValueId flat = m.Op(1, "Reshape", {products}, {{"shape", std::vector<int64_t>{-1}}});
  m.Output(1, m.Op(1, "Mul", {flat, c}));
  // The sum of the elements becomes w s^2, then w^3 s^4.
  const auto got = Differentiated(m.module, {TensorOf({2}, {1, 2}), TensorOf(2), Number(2)});
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0].size(), 16u);
  EXPECT_EQ(std::accumulate(got[0].begin(), got[0].end(), 0.0), 8 * 81);
  EXPECT_EQ(got[1], (Doubles{4 * 8 * 27, 4 * 8 * 27}));
  EXPECT_EQ(got[2], (Doubles{3 * 4 * 81}));
  EXPECT_EQ(Differentiated(m.module, {TensorOf({2}, {1, 2}), TensorOf(2), Number(0)}),
            (std::vector<Doubles>{{1, 2}, {1, 1}, {0}}));
}

TEST(ControlGradients, StateIsWrittenOnce) {
  ModuleBuilder m(2);
  m.module.states.push_back({"total", kDouble, TensorOf(0)});
  const ValueId x = m.Input(0, kDouble);
  m.Output(0, m.Control(0, "msrt", "Call", {x}, {{"graph", GraphRef{1}}}, {kDouble})[0]);
  const ValueId y = m.Input(1, kDouble);
  const ValueId square = m.Op(1, "Mul", {y, y});
  m.Control(1, "msrt", "StateWrite", {square}, {{"slot", int64_t{0}}}, {});
  m.Output(1, m.Op(1, "Mul", {square, y}));
  Module module = m.module;
  ASSERT_TRUE(AppendGradients(&module).ok());
  size_t writes = 0;
  for (const Graph& graph : module.graphs) {
    for (const Node& node : graph.nodes) writes += node.op == "StateWrite";
  }
  EXPECT_EQ(writes, 1u);
  EXPECT_EQ(RunBoth(module, {TensorOf(2)}), (std::vector<Doubles>{{8}, {12}}));
}

TEST(ControlGradients, ParametersMayBeReadAnywhere) {
  ModuleBuilder m(3);
  m.module.states.push_back({"weight", kDouble, TensorOf(3), StateRole::kParameter});
  const AttrList read = {
      {"slot", int64_t{0}}, {"dtype", DType::kF64}, {"dims", std::vector<int64_t>{}}};
  const ValueId x = m.Input(0, kDouble), flag = m.Input(0, kFlag);
  m.Output(0,
           m.Control(0, "", "If", {flag, x},
                     {{"then_branch", GraphRef{1}}, {"else_branch", GraphRef{2}}}, {kDouble})[0]);
  for (uint32_t g : {1u, 2u}) {
    const ValueId y = m.Input(g, kDouble);
    if (g == 1) {
      const ValueId w = m.Control(g, "msrt", "StateRead", {}, read, {kDouble})[0];
      m.Output(g, m.Op(g, "Mul", {y, m.Op(g, "Mul", {w, w})}));
    } else {
      m.Output(g, m.Op(g, "Mul", {y, y}));
    }
  }
  Module& module = m.module;
  ASSERT_TRUE(Validate(&module).ok());
  const auto weight = ReadStateOnce(&module, 0, {0});
  ASSERT_TRUE(weight.ok()) << weight.status().message();
  const auto gradients = AddGradients(&module, 0, {{module.main().outputs[0]}, {}, {(*weight)[0]}});
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  module.main().outputs.push_back((*gradients)[0]);
  EXPECT_EQ(RunBoth(module, {TensorOf(2), Flag(true)}), (std::vector<Doubles>{{18}, {12}}));
  EXPECT_EQ(RunBoth(module, {TensorOf(2), Flag(false)}), (std::vector<Doubles>{{4}, {0}}));
}

// What is computed again draws the same numbers: y = x * u has the gradient u, and y / x is u.
TEST(ControlGradients, NumbersAreDrawnAgain) {
  ModuleBuilder m(2);
  const ValueId x = m.Input(0, kDouble);
  m.Output(0, m.Control(0, "msrt", "Call", {x}, {{"graph", GraphRef{1}}}, {kDouble})[0]);
  const ValueId y = m.Input(1, kDouble);
  const ValueId u =
      m.Op(1, "RandomUniform", {}, {{"shape", std::vector<int64_t>{}}, {"dtype", DType::kF64}});
  m.Output(1, m.Op(1, "Mul", {y, u}));
  EXPECT_NE(RefusalOf(m.module).find("draw other numbers"), std::string::npos);
  Module module = m.module;
  ASSERT_TRUE(Validate(&module).ok());
  ASSERT_TRUE(PrepareForGradients(&module).ok());
  ASSERT_TRUE(AppendGradients(&module).ok());
  const auto got = RunBoth(module, {TensorOf(4)});
  ASSERT_EQ(got.size(), 2u);
  EXPECT_NE(got[0][0], 0);
  EXPECT_EQ(got[0][0], 4 * got[1][0]);
}

TEST(ControlGradients, StateThatIsWrittenMeanwhileIsRefused) {
  ModuleBuilder m(2);
  m.module.states.push_back({"total", kDouble, TensorOf(1)});
  const ValueId x = m.Input(0, kDouble);
  m.Output(0, m.Control(0, "msrt", "Call", {x}, {{"graph", GraphRef{1}}}, {kDouble})[0]);
  const ValueId y = m.Input(1, kDouble);
  const ValueId total =
      m.Control(1, "msrt", "StateRead", {},
                {{"slot", int64_t{0}}, {"dtype", DType::kF64}, {"dims", std::vector<int64_t>{}}},
                {kDouble})[0];
  m.Control(1, "msrt", "StateWrite", {y}, {{"slot", int64_t{0}}}, {});
  m.Output(1, m.Op(1, "Mul", {y, total}));
  EXPECT_NE(RefusalOf(m.module).find("state 'total' is written meanwhile"), std::string::npos)
      << RefusalOf(m.module);
}

// x * stop(x * x), through a call.
TEST(ControlGradients, GradientsStopAtConstants) {
  ModuleBuilder m(2);
  const ValueId x = m.Input(0, kDouble);
  const ValueId square = m.Control(0, "msrt", "Call", {x}, {{"graph", GraphRef{1}}}, {kDouble})[0];
  const ValueId y = m.Op(0, "Mul", {x, square});
  m.Output(0, y);
  const ValueId a = m.Input(1, kDouble);
  m.Output(1, m.Op(1, "Mul", {a, a}));
  ASSERT_TRUE(Validate(&m.module).ok());
  for (bool stop : {false, true}) {
    Module module = m.module;
    GradientRequest request{{y}, {}, {x}};
    if (stop) request.constants = {square};
    const auto gradients = AddGradients(&module, 0, request);
    ASSERT_TRUE(gradients.ok()) << gradients.status().message();
    module.main().outputs = *gradients;
    EXPECT_EQ(RunBoth(module, {TensorOf(3)}), (std::vector<Doubles>{{stop ? 9.0 : 27.0}}));
  }
}

// In a loop: y = y * stop(y), whose derivative is the product of the values stopped.
TEST(ControlGradients, GradientsStopAtTheOp) {
  ModuleBuilder m(2);
  const ValueId x = m.Input(0, kDouble);
  m.Output(0, m.Control(0, "", "Loop", {m.Number(0, 3), kNoValue, x},
                        {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {kDouble})[0]);
  m.Input(1);
  m.Output(1, m.Input(1, kFlag));
  const ValueId y = m.Input(1, kDouble);
  const ValueId stopped = m.Control(1, "msrt", "StopGradient", {y}, {}, {kDouble})[0];
  m.Output(1, m.Op(1, "Mul", {y, stopped}));
  EXPECT_EQ(Differentiated(m.module, {TensorOf(2)}), (std::vector<Doubles>{{256}, {2 * 4 * 16}}));
}

TEST(ControlGradients, RefusalsNameTheOpAndThePath) {
  ModuleBuilder m(2);
  const Type list = Type::Tensor(DType::kF64, {3});
  const ValueId x = m.Input(0, list);
  m.Output(0, m.Control(0, "msrt", "Call", {m.Op(0, "Mul", {x, x})}, {{"graph", GraphRef{1}}},
                        {kDouble})[0]);
  const ValueId y = m.Input(1, list);
  m.module.graphs[1].value(y).name = "rows";
  const ValueId doubled = m.Op(1, "Add", {y, y});
  m.module.graphs[1].value(doubled).name = "doubled";
  const ValueId parts =
      m.Control(1, "", "SequenceConstruct", {doubled}, {}, {Type::ListOf(list)})[0];
  const ValueId first = m.Control(1, "", "SequenceAt", {parts, m.Number(1, 0)}, {}, {list})[0];
  m.Output(1, m.Op(1, "ReduceSum", {first}, {{"keepdims", int64_t{0}}}));
  const std::string message = RefusalOf(m.module);
  for (const char* part : {"node 1", "(msrt.Call)", "graph 1 'g1'", "(SequenceAt)", "'rows'",
                           "-> 'doubled'", "has no gradient"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
}

TEST(ControlGradients, UnresolvedFunctionsAreRefused) {
  ModuleBuilder m(2);
  const ValueId x = m.Input(0, kDouble);
  const Type function = Type::Function({kDouble}, {kDouble});
  const ValueId f = m.Control(0, "msrt", "Partial", {x}, {{"graph", GraphRef{1}}}, {function})[0];
  m.Output(0, m.Control(0, "msrt", "Call", {f, x}, {}, {kDouble})[0]);
  const ValueId a = m.Input(1, kDouble), b = m.Input(1, kDouble);
  m.Output(1, m.Op(1, "Mul", {a, b}));
  EXPECT_NE(RefusalOf(m.module).find("calls a function"), std::string::npos);
  Module module = m.module;
  ASSERT_TRUE(Validate(&module).ok());
  ASSERT_TRUE(PrepareForGradients(&module).ok());
  EXPECT_EQ(Differentiated(module, {TensorOf(3)}), (std::vector<Doubles>{{9}, {6}}));
}

}  // namespace
}  // namespace msrt::testing

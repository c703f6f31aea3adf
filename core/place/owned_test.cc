// Which control nodes a delegate can own, and which graphs they include.
#include "core/place/owned.h"

#include <gtest/gtest.h>

#include "delegates/builtin.h"
#include "tests/conformance/module_builder.h"

namespace msrt::testing {
namespace {

// The graphs of a module as delegates see them.
struct Views {
  explicit Views(const Module& m) : module(m) {
    for (const Graph& graph : module.graphs) {
      auto offered = OfferedGraph::Make(graph, BuiltinEvaluator(), {}, &module);
      MSRT_CHECK(offered.ok());
      (*offered)->SetModule(&graphs);
      graphs.push_back(*std::move(offered));
    }
  }
  const Module module;
  OfferedModule graphs;
};

// Checks the first node of the entry.
void ExpectWhyNot(const Module& module, const std::string& why) {
  const Views views(module);
  EXPECT_EQ(WhyNotOwned(*views.graphs[0], views.module.graphs[0].nodes[0]), why);
}

// A call of graph 1, which returns its input.
ModuleBuilder OneCall() {
  ModuleBuilder m(2);
  m.Output(0, m.Call(0, 1, {m.Input(0)}));
  m.Output(1, m.Input(1));
  return m;
}

TEST(Owned, LoopCanBeOwned) {
  ExpectWhyNot(CountingLoop(), "");
  ExpectWhyNot(OneCall().module, "");
}

TEST(Owned, GraphsInsideAreListedOnce) {
  ModuleBuilder m(4);
  m.Output(0, m.Call(0, 1, {m.Input(0)}));
  const ValueId x = m.Input(1);
  m.Output(1, m.Op(1, "Add", {m.Call(1, 2, {x}), m.Call(1, 2, {m.Call(1, 3, {x})})}));
  m.Output(2, m.Call(2, 3, {m.Input(2)}));
  m.Output(3, m.Input(3));
  const Views views(m.module);
  std::vector<const OfferedGraph*> expected;
  for (size_t g = 1; g < 4; ++g) expected.push_back(views.graphs[g].get());
  EXPECT_EQ(GraphsInside(*views.graphs[0], views.module.graphs[0].nodes[0]), expected);
}

const Type kRows = Type::Tensor(DType::kF32, {Dims{kUnknownDim, 4}});

// If (flag) a else b, with an open number of rows; the test fills the branches.
ModuleBuilder Branches() {
  ModuleBuilder m(3);
  const ValueId flag = m.Input(0, kFlag), a = m.Input(0, kRows), b = m.Input(0, kRows);
  m.Output(0, m.Control(0, "", "If", {flag, a, b},
                        {{"then_branch", GraphRef{1}}, {"else_branch", GraphRef{2}}}, {kRows})[0]);
  for (uint32_t g : {1u, 2u}) {
    m.Input(g, kRows);
    m.Input(g, kRows);
  }
  return m;
}

TEST(Owned, OutputSizesMustFollowFromInputSizes) {
  const std::string why = "the sizes of its outputs do not follow from the sizes of its inputs";
  ModuleBuilder same = Branches();
  for (uint32_t g : {1u, 2u})
    same.Output(g, same.Op(g, g == 1 ? "Neg" : "Relu", {same.module.graphs[g].inputs[0]}));
  ExpectWhyNot(same.module, "");
  ModuleBuilder other = Branches();
  for (uint32_t g : {1u, 2u}) other.Output(g, other.module.graphs[g].inputs[g - 1]);
  ExpectWhyNot(other.module, why);
  // Sizes that are equal by declaration.
  for (ValueId v : {other.module.graphs[0].inputs[1], other.module.graphs[0].inputs[2]})
    other.module.graphs[0].value(v).type.dims[0] = SymbolDim(0);
  ExpectWhyNot(other.module, "");
  // The symbols of a callee are not those of its caller.
  for (Graph& graph : other.module.graphs) {
    for (ValueId v : graph.inputs) {
      if (graph.value(v).type.rank() == 2)
        graph.value(v).type.dims[0] =
            &graph == &other.module.graphs[0] ? kUnknownDim : SymbolDim(0);
    }
  }
  ExpectWhyNot(other.module, why);
}

TEST(Owned, LoopMustKeepCarriedSizes) {
  for (const bool grows : {false, true}) {
    ModuleBuilder m(2);
    const auto results = m.Control(0, "", "Loop", {m.Input(0), kNoValue, m.Input(0, kRows)},
                                   {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {kRows});
    m.Output(0, results[0]);
    m.Input(1);
    m.Output(1, m.Input(1, kFlag));
    const ValueId x = m.Input(1, kRows);
    m.Output(1, grows ? m.Op(1, "Concat", {x, x}, {{"axis", int64_t{0}}})
                      : m.Op(1, "Add", {x, m.Float(1, 1)}));
    ExpectWhyNot(
        m.module,
        grows ? "the sizes of its outputs do not follow from the sizes of its inputs" : "");
  }
}

TEST(Owned, ListsCannotBeOwned) {
  ModuleBuilder m = OneCall();
  m.module.graphs[0].value(m.module.graphs[0].outputs[0]).type = Type::ListOf(kNumber);
  ExpectWhyNot(m.module, "it takes or returns a list or a function");
}

TEST(Owned, EffectsInsideCannotBeOwned) {
  ModuleBuilder state = OneCall();
  state.Control(1, "msrt", "StateWrite", {state.module.graphs[1].inputs[0]}, {{"slot", int64_t{0}}},
                {});
  ExpectWhyNot(state.module, "msrt.StateWrite 'v1' inside has effects, which are the session's");
  ModuleBuilder random = OneCall();
  random.Op(1, "RandomNormal", {}, {{"shape", std::vector<int64_t>{2}}});
  ExpectWhyNot(random.module, "RandomNormal 'v1' inside has effects, which are the session's");
}

TEST(Owned, RecursionCannotBeOwned) {
  ModuleBuilder m = OneCall();
  m.Call(1, 1, {m.module.graphs[1].inputs[0]});
  ExpectWhyNot(m.module, "graph 'g1' inside calls itself");
}

TEST(Owned, DeepNestingCannotBeOwned) {
  constexpr uint32_t kGraphs = 200;
  ModuleBuilder m(kGraphs);
  for (uint32_t g = 0; g < kGraphs; ++g) {
    const ValueId x = m.Input(g);
    m.Output(g, g + 1 < kGraphs ? m.Call(g, g + 1, {x}) : x);
  }
  ExpectWhyNot(m.module, "its graphs call each other more than 64 levels deep");
}

// Walks the graphs as a delegate does.
TEST(Owned, GraphViewReturnsCallees) {
  const Views views(CountingLoop());
  const msrt_graph_view& main = *views.graphs[0]->api();
  ASSERT_EQ(main.input_count, 2u);
  ASSERT_EQ(main.output_count, 1u);
  EXPECT_EQ(main.outputs[0].id, main.node(main.graph, 0)->outputs[0].id);
  EXPECT_NE(main.outputs[0].is_graph_output, 0);
  for (int64_t g : {1, 2}) {
    const msrt_graph_view* callee = main.callee(main.graph, g);
    ASSERT_EQ(callee, views.graphs[static_cast<size_t>(g)]->api());
    EXPECT_EQ(callee->input_count, 2u);
    EXPECT_EQ(callee->inputs[0].declared.dtype, MSRT_I64);
    EXPECT_EQ(callee->callee(callee->graph, g), callee);
  }
  for (int64_t g : {-1, 3}) EXPECT_EQ(main.callee(main.graph, g), nullptr);
  const auto alone = OfferedGraph::Make(views.module.graphs[1], BuiltinEvaluator(), {});
  EXPECT_EQ((*alone)->api()->callee((*alone)->api()->graph, 0), nullptr);
}

}  // namespace
}  // namespace msrt::testing

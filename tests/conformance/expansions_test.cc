// Finer forms of ops (OpDef::expand): every op row that has one is computed with it and must agree
// with the result of the op. Every axis of a finer form can be cut.
#include <gtest/gtest.h>

#include <set>

#include "core/base/half.h"
#include "ops/node_view.h"
#include "ops/resolve_space.h"
#include "ops/validate.h"
#include "tests/conformance/case_node.h"
#include "tests/conformance/pipeline.h"

namespace msrt::testing {
namespace {

// Runs the graph on the reference delegate as it is, without passes.
Result<std::vector<ConstTensor>> RunGraph(const Graph& graph, const CaseNode& node) {
  Module module;
  module.graphs.push_back(graph);
  module.entries = {0};
  std::vector<ConstTensor> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.present[i]) inputs.push_back(node.inputs[i]);
  }
  return RunModule(module, inputs, {"reference"}, {"all"});
}

// Returns the axes that a node of the graph must keep whole and that are longer than 1.
std::string WholeAxes(const Graph& graph) {
  std::string whole;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const NodeView view(graph, graph.nodes[n]);
    const auto space = ResolveSpace(*graph.nodes[n].def, view.op());
    if (!space.ok()) {
      StrAppend(&whole, Describe(graph, n), ": ", space.status().message(), "; ");
      continue;
    }
    for (int a = 0; a < space->axes.rank(); ++a) {
      if (space->axes[a].kind == AxisKind::kWhole && space->axes[a].extent > 1)
        StrAppend(&whole, Describe(graph, n), ": axis ", a, "; ");
    }
  }
  return whole;
}

TEST(Expansions, ComputeTheSame) {
  std::set<std::string> ops;
  for (const OpCase& c : AllOpCases()) {
    CaseNode node = NodeOf(c);
    ASSERT_NE(node.def, nullptr) << c.name;
    if (node.def->expand == nullptr) continue;
    SCOPED_TRACE(c.name);
    ASSERT_TRUE(node.Infer().ok());
    const OpView view = node.View();
    const Result<Graph> graph = node.def->expand(view);
    if (graph.status().code() == Code::kUnsupported) continue;
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    const auto expected = CaseNode(node).Run();
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    const auto got = RunGraph(*graph, node);
    ASSERT_TRUE(got.ok()) << got.status().message();
    ASSERT_EQ(got->size(), expected->size());
    for (size_t o = 0; o < got->size(); ++o)
      EXPECT_EQ(Difference((*got)[o], (*expected)[o], c.rtol, c.atol), "") << "output " << o;
    ops.insert(c.op);
  }
  for (std::string_view op : {"InstanceNormalization", "GroupNormalization", "LayerNormalization",
                              "MeanVarianceNormalization", "Softmax", "LogSoftmax",
                              "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "Attention"})
    EXPECT_TRUE(ops.contains(std::string(op))) << op;
}

// The purpose of the finer forms: no axis is left that must be whole. Weights of classes, which a
// loss looks up, and the classes themselves stay whole.
TEST(Expansions, LeaveNoAxisWhole) {
  for (const OpCase& c : AllOpCases()) {
    CaseNode node = NodeOf(c);
    if (node.def == nullptr || node.def->expand == nullptr || c.op.ends_with("Loss")) continue;
    SCOPED_TRACE(c.name);
    ASSERT_TRUE(node.Infer().ok());
    const Result<Graph> graph = node.def->expand(node.View());
    if (!graph.ok()) continue;
    EXPECT_EQ(WholeAxes(*graph), "");
  }
}

}  // namespace
}  // namespace msrt::testing

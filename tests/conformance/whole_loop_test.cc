// Delegates that use only msrt_plugin.h inspect control flow and take it whole, in host memory.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "core/abi/msrt_plugin.h"
#include "tests/conformance/module_builder.h"
#include "tests/conformance/pipeline.h"
#include "tests/conformance/small_graph.h"

namespace msrt::testing {
namespace {

// Returns the graph that an attribute of the node names.
const msrt_graph_view* GraphOf(const msrt_graph_view& graph, const msrt_node_view& node,
                               const char* name) {
  for (size_t i = 0; i < node.attr_count; ++i) {
    if (std::strcmp(node.attrs[i].name, name) == 0)
      return graph.callee(graph.graph, node.attrs[i].ints[0]);
  }
  return nullptr;
}

bool IsOne(const msrt_graph_view* graph, const char* op) {
  return graph != nullptr && graph->node_count == 1 &&
         std::strcmp(graph->node(graph->graph, 0)->op, op) == 0;
}

void Offer(const msrt_node_view& node, uint32_t n, const msrt_query_sink& sink) {
  msrt_candidate c = MSRT_INIT(msrt_candidate);
  c.nodes = &n;
  c.node_count = 1;
  c.input_count = node.input_count;
  c.output_count = node.output_count;
  c.seconds = 1e-8;
  c.algorithm = "whole";
  sink.candidate(sink.sink, &c);
}

// while (i < n) i += step: the step is a constant of the body, n is captured.
struct Counting {
  const int64_t* step;  // owned by the host, valid as long as the kernel
};

bool Understands(const msrt_graph_view& graph, const msrt_node_view& node, Counting* out) {
  const msrt_graph_view *condition = GraphOf(graph, node, "condition"),
                        *body = GraphOf(graph, node, "body");
  if (!IsOne(condition, "Less") || !IsOne(body, "Add") || body->output_count != 1) return false;
  const msrt_node_view& less = *condition->node(condition->graph, 0);
  const msrt_node_view& add = *body->node(body->graph, 0);
  const bool compares =
      less.inputs[0].id == condition->inputs[0].id && less.inputs[1].id == condition->inputs[1].id;
  const bool adds =
      add.inputs[0].id == body->inputs[0].id && add.outputs[0].id == body->outputs[0].id;
  out->step = static_cast<const int64_t*>(add.inputs[1].constant);
  return compares && adds && out->step != nullptr;
}

msrt_status Query(void*, const msrt_host_api*, const msrt_graph_view* graph,
                  const msrt_query_sink* sink) {
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    const msrt_node_view& node = *graph->node(graph->graph, n);
    Counting counting;
    if (std::strcmp(node.op, "While") != 0) continue;
    if (!Understands(*graph, node, &counting)) {
      sink->refuse(sink->sink, n, "it only counts");
      continue;
    }
    Offer(node, n, *sink);
  }
  return MSRT_OK;
}

msrt_status Run(void*, void* bound, const msrt_run_args* args) {
  int64_t i = *static_cast<const int64_t*>(args->inputs[0]);
  const int64_t n = *static_cast<const int64_t*>(args->inputs[1]);
  while (i < n) i += *static_cast<const Counting*>(bound)->step;
  *static_cast<int64_t*>(args->outputs[0]) = i;
  return MSRT_OK;
}

std::shared_ptr<const Delegate> Counter() {
  msrt_delegate_api api = MSRT_INIT(msrt_delegate_api);
  api.plugin_abi = MSRT_PLUGIN_ABI;
  api.name = "counter";
  api.query = Query;
  api.compile = [](void*, const msrt_host_api*, const msrt_graph_view* graph,
                   const msrt_candidate* c, void** kernel) -> msrt_status {
    auto counting = std::make_unique<Counting>();
    if (!Understands(*graph, *graph->node(graph->graph, c->nodes[0]), counting.get()))
      return MSRT_DELEGATE;
    *kernel = counting.release();
    return MSRT_OK;
  };
  api.kernel_destroy = [](void*, void* kernel) { delete static_cast<Counting*>(kernel); };
  api.bind = [](void*, const msrt_host_api*, void* kernel, const msrt_bound_node*, size_t,
                void** bound) -> msrt_status {
    *bound = kernel;
    return MSRT_OK;
  };
  api.bound_destroy = [](void*, void*) {};
  api.run = Run;
  return *Delegate::Make(api, nullptr, nullptr);
}

// Runs every Call as an op that doubles its input; bind states the number of elements.
std::shared_ptr<const Delegate> Doubler() {
  msrt_delegate_api api = MSRT_INIT(msrt_delegate_api);
  api.plugin_abi = MSRT_PLUGIN_ABI;
  api.name = "doubler";
  api.query = [](void*, const msrt_host_api*, const msrt_graph_view* graph,
                 const msrt_query_sink* sink) -> msrt_status {
    for (uint32_t n = 0; n < graph->node_count; ++n) {
      const msrt_node_view& node = *graph->node(graph->graph, n);
      if (std::strcmp(node.op, "Call") == 0) Offer(node, n, *sink);
    }
    return MSRT_OK;
  };
  static int anything;
  api.compile = [](void*, const msrt_host_api*, const msrt_graph_view*, const msrt_candidate*,
                   void** kernel) -> msrt_status {
    *kernel = &anything;
    return MSRT_OK;
  };
  api.kernel_destroy = [](void*, void*) {};
  api.bind = [](void*, const msrt_host_api*, void*, const msrt_bound_node* nodes, size_t,
                void** bound) -> msrt_status {
    *bound = new int64_t(nodes[0].outputs[0].dims[0]);
    return MSRT_OK;
  };
  api.bound_destroy = [](void*, void* bound) { delete static_cast<int64_t*>(bound); };
  api.run = [](void*, void* bound, const msrt_run_args* args) -> msrt_status {
    for (int64_t i = 0; i < *static_cast<int64_t*>(bound); ++i) {
      static_cast<float*>(args->outputs[0])[i] = 2 * static_cast<const float*>(args->inputs[0])[i];
    }
    return MSRT_OK;
  };
  return *Delegate::Make(api, nullptr, nullptr);
}

ConstTensor Number(int64_t n) {
  return ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&n, 1));
}

std::shared_ptr<const CompiledModel> Compile(const Module& module,
                                             std::shared_ptr<const Delegate> delegate = Counter()) {
  auto environment = TestEnvironment();
  environment->delegates.push_back(std::move(delegate));
  CompileOptions options;
  options.passes.disabled = {"all"};
  auto model = CompileModule(environment, module, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *model;
}

TEST(WholeLoop, DelegateTakesALoop) {
  const auto model = Compile(CountingLoop());
  const Program& program = *model->entries[0]->current()->program;
  EXPECT_EQ(program.explanations[0].delegate, "counter") << Print(program);
  auto session = Session::Create(model, 0, {});
  for (int64_t n : {0, 5, 1000000}) {
    const auto result = RunSession(**session, {Number(3), Number(n)});
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ((*result)[0].As<int64_t>()[0], std::max<int64_t>(3, n));
  }
}

// The report contains the delegate's own reason.
TEST(WholeLoop, RefusedLoopRunsOnTheHostWithAReason) {
  Module module = CountingLoop();
  module.graphs[2].nodes[0].op = "Max";
  module.graphs[2].nodes[0].def = nullptr;
  const auto model = Compile(module);
  const Program& program = *model->entries[0]->current()->program;
  EXPECT_EQ(program.explanations[0].delegate, "");
  ASSERT_EQ(program.explanations[0].others.size(), 1u);
  EXPECT_EQ(program.explanations[0].others[0],
            std::make_pair(std::string("counter"), std::string("it only counts")));
}

// x: f32[?], and the result of graph 1 for it.
Module CallOfRows(const std::function<ValueId(ModuleBuilder*, ValueId)>& body) {
  const Type row = Type::Tensor(DType::kF32, {Dims{kUnknownDim}});
  ModuleBuilder m(2);
  m.Output(0, m.Control(0, "msrt", "Call", {m.Input(0, row)}, {{"graph", GraphRef{1}}}, {row})[0]);
  m.Output(1, body(&m, m.Input(1, row)));
  return m.module;
}

// The length is not declared, but the output is as long as the input.
TEST(WholeLoop, OutputSizesFollowFromTheInputs) {
  const auto model = Compile(CallOfRows([](ModuleBuilder* m, ValueId x) {
                               return m->Op(1, "Add", {x, x});
                             }),
                             Doubler());
  const Program& program = *model->entries[0]->current()->program;
  EXPECT_EQ(program.explanations[0].delegate, "doubler") << Print(program);
  auto session = Session::Create(model, 0, {});
  for (int64_t length : {3, 0, 100, 3}) {
    const ConstTensor x = RandomFloats({length}, 1);
    const auto result = RunSession(**session, {x});
    ASSERT_TRUE(result.ok()) << result.status().message();
    ASSERT_EQ((*result)[0].dims, Dims{length});
    for (int64_t i = 0; i < length; ++i)
      EXPECT_EQ((*result)[0].As<float>()[i], 2 * x.As<float>()[i]);
  }
}

TEST(WholeLoop, LoopWithSizesFromDataRunsOnTheHost) {
  const auto model =
      Compile(CallOfRows([](ModuleBuilder* m, ValueId x) {
                return m->Op(1, "Compress", {x, m->Op(1, "Less", {x, m->Float(1, 0)})},
                             {{"axis", int64_t{0}}});
              }),
              Doubler());
  const Program& program = *model->entries[0]->current()->program;
  EXPECT_EQ(program.explanations[0].delegate, "");
  ASSERT_EQ(program.explanations[0].others.size(), 1u);
  EXPECT_EQ(program.explanations[0].others[0].second,
            "whole, plain: the sizes of its outputs do not follow from the sizes of its inputs");
  auto session = Session::Create(model, 0, {});
  const auto result = RunSession(**session, {Floats({4}, {1, -2, 3, -4})});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ((*result)[0].dims, Dims{2});
}

}  // namespace
}  // namespace msrt::testing

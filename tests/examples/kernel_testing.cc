#include "tests/examples/kernel_testing.h"

#include <cstring>

#include "core/delegate/boundary.h"
#include "core/delegate/offered_graph.h"
#include "delegates/builtin.h"
#include "ops/infer.h"
#include "ops/node_view.h"

namespace msrt::testing {

RuntimeOwner::RuntimeOwner() { MSRT_EXPECT_OK(msrt_runtime_create(nullptr, &runtime_)); }

bool Says(const char* part) { return std::strstr(msrt_error_message(), part) != nullptr; }

std::string ExamplePath(const std::string& name) { return StrCat(MSRT_EXAMPLES, "/", name, ".so"); }

msrt_kernel_desc KernelFor(const char* op, const char* name, const char* domain) {
  msrt_kernel_desc kernel = MSRT_INIT(msrt_kernel_desc);
  kernel.plugin_abi = MSRT_PLUGIN_ABI;
  kernel.domain = domain;
  kernel.op = op;
  kernel.name = name;
  return kernel;
}

msrt_op_desc SameTypeMeaning() {
  msrt_op_desc meaning = MSRT_INIT(msrt_op_desc);
  meaning.min_inputs = meaning.max_inputs = 1;
  meaning.min_outputs = meaning.max_outputs = 1;
  meaning.infer = [](void*, const msrt_host_api*, const msrt_node_view* node,
                     msrt_shape* outputs) -> msrt_status {
    outputs[0] = node->inputs[0].declared;
    return MSRT_OK;
  };
  return meaning;
}

msrt_status AddOne(void*, const void*, const msrt_kernel_args* args) {
  int64_t count = 1;
  for (int32_t i = 0; i < args->input_shapes[0].rank; ++i) count *= args->input_shapes[0].dims[i];
  const auto* x = static_cast<const float*>(args->inputs[0]);
  auto* y = static_cast<float*>(args->outputs[0]);
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] + 1;
  return MSRT_OK;
}

msrt_status MakeGraph(msrt_runtime* runtime, const OneNode& node, msrt_graph** out) {
  MSRT_EXPECT_OK(msrt_graph_create(runtime, "one", out));
  const msrt_tensor_info info = InfoOf(MSRT_F32, node.dims, "x");
  std::vector<msrt_value> inputs(1);
  MSRT_EXPECT_OK(msrt_graph_add_input(*out, &info, &inputs[0]));
  for (msrt_tensor* constant : node.constants) {
    inputs.emplace_back();
    MSRT_EXPECT_OK(msrt_graph_add_constant(*out, nullptr, constant, &inputs.back()));
  }
  msrt_node_desc desc = MSRT_INIT(msrt_node_desc);
  desc.domain = node.domain;
  desc.op = node.op;
  desc.name = "the_node";
  desc.inputs = inputs.data();
  desc.input_count = inputs.size();
  desc.attrs = node.attrs.data();
  desc.attr_count = node.attrs.size();
  desc.output_types = node.output_types;
  msrt_value y = MSRT_NO_VALUE;
  if (const msrt_status status = msrt_graph_add_node(*out, &desc, &y)) return status;
  return msrt_graph_add_output(*out, y, "y");
}

msrt_model* MakeModel(msrt_runtime* runtime, const OneNode& node, const msrt_model_config* config) {
  msrt_graph* graph = nullptr;
  msrt_model* model = nullptr;
  if (MakeGraph(runtime, node, &graph) == MSRT_OK) (void)msrt_graph_compile(graph, config, &model);
  msrt_graph_destroy(graph);
  return model;
}

std::string PlanOf(msrt_session* session) {
  const char* text = "";
  MSRT_EXPECT_OK(msrt_session_report(session, MSRT_REPORT_PLAN, &text));
  return text;
}

std::vector<float> RunOnce(msrt_model* model, const std::vector<int64_t>& dims,
                           const std::vector<float>& x) {
  EXPECT_NE(model, nullptr) << msrt_error_message();
  if (model == nullptr) return {};
  msrt_session* session = SessionOf(model);
  msrt_model_destroy(model);
  const std::vector<float> y = RunFloats(session, dims, x);
  msrt_session_destroy(session);
  return y;
}

Result<ConstTensor> RunKernel(const RegisteredKernel& kernel, const OpDef& def,
                              const AttrList& attrs, const std::vector<ConstTensor>& inputs,
                              const std::vector<bool>& constant) {
  Graph graph;
  Node node;
  node.domain = kernel.domain;
  node.op = kernel.op;
  node.name = "piece";
  node.def = &def;
  node.attrs = attrs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueId v = constant[i] ? graph.AddConstant("", inputs[i])
                                  : graph.AddInput(StrCat("x", i), inputs[i].type());
    node.inputs.push_back(v);
  }
  Type type;
  MSRT_RETURN_IF_ERROR(InferTypes(def, NodeView(graph, node).op(), {&type, 1}));
  node.outputs = {graph.AddValue("y", type)};
  graph.outputs = node.outputs;
  graph.nodes.push_back(std::move(node));
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<OfferedGraph> placed,
                        OfferedGraph::Make(graph, BuiltinEvaluator(), {}));
  const Host host(DefaultAllocator(), MakeSerial(), Log());
  const msrt_kernel_desc& desc = kernel.desc;
  void* packed = nullptr;
  if (desc.pack != nullptr)
    MSRT_RETURN_IF_ERROR(
        CallCallback([&] { return desc.pack(desc.user, host.api(), &placed->node(0), &packed); }));
  // Outputs start as a pattern, which reveals elements that the kernel does not write.
  const ConstTensor result = ConstTensor::Copy(
      type.dtype, type.dims, std::vector<std::byte>(type.bytes(), std::byte{0xA5}));
  std::vector<msrt_shape> shapes;
  std::vector<const void*> data;
  const std::vector<msrt_layout> layouts(inputs.size() + 1, MSRT_LAYOUT_PLAIN);
  for (const ConstTensor& input : inputs) {
    shapes.push_back(ShapeOf(input.type()));
    data.push_back(input.bytes.data());
  }
  const msrt_shape out_shape = ShapeOf(type);
  void* out = const_cast<std::byte*>(result.bytes.data());
  std::vector<std::byte> memory;
  const msrt_scratch scratch{&memory, [](void* context, size_t bytes) -> void* {
                               auto* m = static_cast<std::vector<std::byte>*>(context);
                               m->resize(bytes + 1);
                               return m->data();
                             }};
  msrt_kernel_args args = MSRT_INIT(msrt_kernel_args);
  args.host = host.api();
  args.node = &placed->node(0);
  args.input_shapes = shapes.data();
  args.input_layouts = layouts.data();
  args.inputs = data.data();
  args.input_count = inputs.size();
  args.output_shapes = &out_shape;
  args.output_layouts = layouts.data();
  args.outputs = &out;
  args.output_count = 1;
  args.scratch = &scratch;
  const Status status = CallCallback([&] { return desc.run(desc.user, packed, &args); });
  if (packed != nullptr) desc.packed_destroy(desc.user, packed);
  if (!status.ok()) return status;
  return result;
}

std::vector<float> Ramp(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>((i * 37 + 11) % 101) / 50 - 1);
  return values;
}

std::vector<float> FloatsIn(const ConstTensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.dims.elements()));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

}  // namespace msrt::testing

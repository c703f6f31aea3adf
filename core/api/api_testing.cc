#include "core/api/api_testing.h"

#include <algorithm>
#include <cstring>

namespace msrt::testing {

void* CountingAllocator::Allocate(void* user, size_t size, size_t alignment) {
  auto& self = *static_cast<CountingAllocator*>(user);
  const int64_t call = ++self.calls, first = self.fail_at;
  if (first != 0 && (call == first || (call > first && self.fails_from_then_on))) return nullptr;
  void* pointer = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (pointer == nullptr) return nullptr;
  std::memset(pointer, 0xA5, size);
  ++self.blocks;
  self.bytes += static_cast<int64_t>(size);
  return pointer;
}

void CountingAllocator::Deallocate(void* user, void* pointer, size_t size, size_t) {
  auto& self = *static_cast<CountingAllocator*>(user);
  std::free(pointer);
  --self.blocks;
  self.bytes -= static_cast<int64_t>(size);
}

msrt_runtime_config CountingAllocator::Config() {
  msrt_runtime_config config = MSRT_INIT(msrt_runtime_config);
  config.threads = 2;
  config.allocate = &Allocate;
  config.deallocate = &Deallocate;
  config.allocator_user = this;
  return config;
}

msrt_tensor_info InfoOf(msrt_dtype dtype, const std::vector<int64_t>& dims, const char* name) {
  msrt_tensor_info info = MSRT_INIT(msrt_tensor_info);
  info.dtype = dtype;
  info.rank = static_cast<int32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), info.dims);
  info.name = name;
  return info;
}

msrt_tensor* FloatTensor(msrt_runtime* runtime, const std::vector<int64_t>& dims,
                         const std::vector<float>& values) {
  msrt_tensor* tensor = nullptr;
  void* data = nullptr;
  MSRT_EXPECT_OK(msrt_tensor_create(runtime, MSRT_F32, static_cast<int32_t>(dims.size()),
                                    dims.data(), &tensor));
  if (tensor == nullptr) return nullptr;
  MSRT_EXPECT_OK(msrt_tensor_data(tensor, &data));
  if (!values.empty()) std::memcpy(data, values.data(), values.size() * sizeof(float));
  return tensor;
}

std::vector<float> FloatsOf(msrt_tensor* tensor) {
  msrt_tensor_info info = MSRT_INIT(msrt_tensor_info);
  void* data = nullptr;
  if (msrt_tensor_get_info(tensor, &info) != MSRT_OK || msrt_tensor_data(tensor, &data) != MSRT_OK)
    return {};
  const auto* floats = static_cast<const float*>(data);
  return {floats, floats + info.bytes / sizeof(float)};
}

msrt_value AddNode(msrt_graph* graph, const char* op, const char* name,
                   std::vector<msrt_value> inputs, std::vector<msrt_attr> attrs,
                   const char* domain) {
  msrt_node_desc node = MSRT_INIT(msrt_node_desc);
  node.domain = domain;
  node.op = op;
  node.name = name;
  node.inputs = inputs.data();
  node.input_count = inputs.size();
  node.attrs = attrs.data();
  node.attr_count = attrs.size();
  msrt_value out = MSRT_NO_VALUE;
  MSRT_EXPECT_OK(msrt_graph_add_node(graph, &node, &out));
  return out;
}

msrt_graph* SmallGraph(msrt_runtime* runtime) {
  msrt_graph* graph = nullptr;
  MSRT_EXPECT_OK(msrt_graph_create(runtime, "small", &graph));
  msrt_tensor_info info = InfoOf(MSRT_F32, {MSRT_UNKNOWN_DIM, 3}, "x");
  info.symbols[0] = "n";
  msrt_value x = MSRT_NO_VALUE, one = MSRT_NO_VALUE;
  MSRT_EXPECT_OK(msrt_graph_add_input(graph, &info, &x));
  msrt_tensor* data = FloatTensor(runtime, {1}, {1});
  MSRT_EXPECT_OK(msrt_graph_add_constant(graph, "one", data, &one));
  msrt_tensor_destroy(data);
  const msrt_value sum = AddNode(graph, "Add", "sum", {x, one});
  const msrt_value product =
      AddNode(graph, "Mul", "product", {AddNode(graph, "Relu", nullptr, {sum}), x});
  MSRT_EXPECT_OK(msrt_graph_add_output(graph, product, "y"));
  return graph;
}

std::vector<float> SmallResult(const std::vector<float>& x) {
  std::vector<float> y;
  for (float v : x) y.push_back(std::max(v + 1, 0.0f) * v);
  return y;
}

std::vector<msrt_attr> StateReadAttrs(const int64_t* slot, const int64_t* dim) {
  std::vector<msrt_attr> attrs(3);
  attrs[0].name = "slot";
  attrs[0].kind = MSRT_ATTR_INT;
  attrs[0].ints = slot;
  attrs[1].name = "dtype";
  attrs[1].kind = MSRT_ATTR_DTYPE;
  attrs[1].dtype = MSRT_F32;
  attrs[2].name = "dims";
  attrs[2].kind = MSRT_ATTR_INTS;
  attrs[2].count = 1;
  attrs[2].ints = dim;
  return attrs;
}

msrt_graph* CounterGraph(msrt_runtime* runtime) {
  msrt_graph* graph = nullptr;
  MSRT_EXPECT_OK(msrt_graph_create(runtime, "counter", &graph));
  const msrt_tensor_info info = InfoOf(MSRT_F32, {2}, "x");
  msrt_value x = MSRT_NO_VALUE;
  MSRT_EXPECT_OK(msrt_graph_add_input(graph, &info, &x));
  msrt_tensor* initial = FloatTensor(runtime, {2}, {10, 20});
  int64_t slot = -1;
  MSRT_EXPECT_OK(msrt_graph_add_state(graph, "counter", nullptr, initial, &slot));
  msrt_tensor_destroy(initial);
  const int64_t dims[] = {2};
  const std::vector<msrt_attr> read = StateReadAttrs(&slot, dims), write = {read[0]};
  const msrt_value before = AddNode(graph, "StateRead", "before", {}, read, "msrt");
  const msrt_value sum = AddNode(graph, "Add", "sum", {before, x});
  AddNode(graph, "StateWrite", "write", {sum}, write, "msrt");
  const msrt_value after = AddNode(graph, "StateRead", "after", {}, read, "msrt");
  MSRT_EXPECT_OK(msrt_graph_add_output(graph, before, nullptr));
  MSRT_EXPECT_OK(msrt_graph_add_output(graph, after, nullptr));
  return graph;
}

msrt_graph* LongGraph(msrt_runtime* runtime, int64_t extent, int steps) {
  msrt_graph* graph = nullptr;
  MSRT_EXPECT_OK(msrt_graph_create(runtime, "long", &graph));
  const msrt_tensor_info info = InfoOf(MSRT_F32, {extent, extent}, "x");
  msrt_value x = MSRT_NO_VALUE, weight = MSRT_NO_VALUE;
  MSRT_EXPECT_OK(msrt_graph_add_input(graph, &info, &x));
  msrt_tensor* data = FloatTensor(runtime, {extent, extent},
                                  std::vector<float>(static_cast<size_t>(extent * extent), 0));
  MSRT_EXPECT_OK(msrt_graph_add_constant(graph, "weight", data, &weight));
  msrt_tensor_destroy(data);
  for (int i = 0; i < steps; ++i) x = AddNode(graph, "MatMul", nullptr, {x, weight});
  MSRT_EXPECT_OK(msrt_graph_add_output(graph, x, "y"));
  return graph;
}

msrt_model* Compiled(msrt_graph* graph) {
  msrt_model* model = nullptr;
  MSRT_EXPECT_OK(msrt_graph_compile(graph, nullptr, &model));
  msrt_graph_destroy(graph);
  return model;
}

msrt_session* SessionOf(msrt_model* model) {
  msrt_session* session = nullptr;
  MSRT_EXPECT_OK(msrt_session_create(model, nullptr, nullptr, &session));
  return session;
}

std::vector<float> RunFloats(msrt_session* session, const std::vector<int64_t>& dims,
                             const std::vector<float>& x, size_t index, msrt_status* status) {
  msrt_tensor *input = nullptr, *output = nullptr;
  const auto run = [&]() -> msrt_status {
    if (const msrt_status s =
            msrt_session_input(session, 0, static_cast<int32_t>(dims.size()), dims.data(), &input))
      return s;
    void* data = nullptr;
    if (const msrt_status s = msrt_tensor_data(input, &data)) return s;
    if (!x.empty()) std::memcpy(data, x.data(), x.size() * sizeof(float));
    if (const msrt_status s = msrt_session_run(session, nullptr)) return s;
    return msrt_session_output(session, index, &output);
  };
  const msrt_status result = run();
  if (status != nullptr) *status = result;
  if (status == nullptr) {
    EXPECT_EQ(result, MSRT_OK) << msrt_error_message();
  }
  const std::vector<float> values = result == MSRT_OK ? FloatsOf(output) : std::vector<float>();
  msrt_tensor_destroy(input);
  msrt_tensor_destroy(output);
  return values;
}

}  // namespace msrt::testing

// Every function with every wrong argument: it returns the right status and a message that names
// the argument, does not crash, and changes nothing.
#include <cstring>
#include <functional>
#include <map>
#include <thread>

#include "core/abi/msrt_plugin.h"
#include "core/api/api_testing.h"

namespace msrt::testing {
namespace {

template <typename Struct>
Struct Sized(uint32_t size) {
  Struct value = MSRT_INIT(Struct);
  value.struct_size = size;
  return value;
}

// One object of each kind, for right and wrong uses.
class Misuse : public ::testing::Test {
 protected:
  void SetUp() override {
    MSRT_ASSERT_OK(msrt_runtime_create(nullptr, &runtime));
    graph = SmallGraph(runtime);
    MSRT_ASSERT_OK(msrt_graph_compile(graph, nullptr, &model));
    session = SessionOf(model);
    tensor = FloatTensor(runtime, {1, 3}, {1, 2, 3});
    MSRT_ASSERT_OK(msrt_list_create(runtime, &list));
    msrt_model* counter = Compiled(CounterGraph(runtime));
    stateful = SessionOf(counter);
    msrt_model_destroy(counter);
  }
  void TearDown() override {
    EXPECT_EQ(RunFloats(session, {1, 3}, {1, 2, 3}), SmallResult({1, 2, 3}))
        << "misuse left damage";
    msrt_session_destroy(stateful);
    msrt_tensor_destroy(tensor);
    msrt_list_destroy(list);
    msrt_session_destroy(session);
    msrt_model_destroy(model);
    msrt_graph_destroy(graph);
    msrt_runtime_destroy(runtime);
  }

  struct Row {
    const char* function;
    const char* argument;  // must be in the message
    std::function<msrt_status()> call;
    msrt_status status = MSRT_INVALID_ARGUMENT;
  };
  void Check(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      EXPECT_EQ(row.call(), row.status)
          << row.function << " with a wrong " << row.argument << ": " << msrt_error_message();
      const std::string message = msrt_error_message();
      EXPECT_NE(message.find(row.argument), std::string::npos)
          << row.function << " does not name '" << row.argument << "': " << message;
    }
  }

  msrt_runtime* runtime = nullptr;
  msrt_graph* graph = nullptr;
  msrt_model* model = nullptr;
  msrt_session* session = nullptr;
  msrt_session* stateful = nullptr;
  msrt_tensor* tensor = nullptr;
  msrt_list* list = nullptr;

  // Outputs that must stay unchanged.
  msrt_runtime* no_runtime = nullptr;
  msrt_graph* no_graph = nullptr;
  msrt_model* no_model = nullptr;
  msrt_session* no_session = nullptr;
  msrt_tensor* no_tensor = nullptr;
  msrt_list* no_list = nullptr;
  const char* no_text = nullptr;
  void* no_data = nullptr;
  size_t no_size = 0;
  msrt_value no_value = 0;
  int64_t slot = 0;
  msrt_tensor_info info = MSRT_INIT(msrt_tensor_info);
};

template <typename Handle>
Handle* As(void* pointer) {
  return static_cast<Handle*>(pointer);
}

// Each handle argument of each function: null, destroyed, of another kind, never issued.
TEST_F(Misuse, WrongHandlesAreRefused) {
  const int64_t dims[] = {1, 3};
  msrt_tensor_info input = InfoOf(MSRT_F32, {1}, "handle_test");
  msrt_node_desc node = MSRT_INIT(msrt_node_desc);
  node.op = "Relu";
  const msrt_delegate_api delegate = MSRT_INIT(msrt_delegate_api);
  const msrt_kernel_desc kernel = MSRT_INIT(msrt_kernel_desc);
  struct HandleRow {
    const char* function;
    const char* kind;
    const char* argument;
    std::function<msrt_status(void*)> call;
  };
  const HandleRow rows[] = {
      {"runtime_calibrate", "runtime", "runtime",
       [&](void* h) { return msrt_runtime_calibrate(As<msrt_runtime>(h)); }},
      {"runtime_info_json", "runtime", "runtime",
       [&](void* h) { return msrt_runtime_info_json(As<msrt_runtime>(h), &no_text); }},
      {"runtime_register_delegate", "runtime", "runtime",
       [&](void* h) {
         return msrt_runtime_register_delegate(As<msrt_runtime>(h), &delegate, nullptr);
       }},
      {"runtime_register_kernel", "runtime", "runtime",
       [&](void* h) { return msrt_runtime_register_kernel(As<msrt_runtime>(h), &kernel); }},
      {"runtime_load_plugin", "runtime", "runtime",
       [&](void* h) { return msrt_runtime_load_plugin(As<msrt_runtime>(h), "x", nullptr); }},
      {"tensor_create", "runtime", "runtime",
       [&](void* h) {
         return msrt_tensor_create(As<msrt_runtime>(h), MSRT_F32, 2, dims, &no_tensor);
       }},
      {"tensor_wrap", "runtime", "runtime",
       [&](void* h) {
         return msrt_tensor_wrap(As<msrt_runtime>(h), MSRT_F32, 2, dims, &slot, 12, nullptr,
                                 nullptr, &no_tensor);
       }},
      {"tensor_from_dlpack", "runtime", "runtime",
       [&](void* h) { return msrt_tensor_from_dlpack(As<msrt_runtime>(h), &slot, &no_tensor); }},
      {"model_load_file", "runtime", "runtime",
       [&](void* h) { return msrt_model_load_file(As<msrt_runtime>(h), "x", nullptr, &no_model); }},
      {"model_load_memory", "runtime", "runtime",
       [&](void* h) {
         return msrt_model_load_memory(As<msrt_runtime>(h), &slot, 8, nullptr, nullptr, nullptr,
                                       &no_model);
       }},
      {"graph_create", "runtime", "runtime",
       [&](void* h) { return msrt_graph_create(As<msrt_runtime>(h), "g", &no_graph); }},
      {"graph_add_graph", "graph", "graph",
       [&](void* h) { return msrt_graph_add_graph(As<msrt_graph>(h), "g", &no_graph); }},
      {"list_create", "runtime", "runtime",
       [&](void* h) { return msrt_list_create(As<msrt_runtime>(h), &no_list); }},
      {"list_append", "list", "list",
       [&](void* h) { return msrt_list_append(As<msrt_list>(h), tensor); }},
      {"list_append", "tensor", "tensor",
       [&](void* h) { return msrt_list_append(list, As<msrt_tensor>(h)); }},
      {"list_append_list", "list", "list",
       [&](void* h) { return msrt_list_append_list(As<msrt_list>(h), list); }},
      {"list_append_list", "list", "element",
       [&](void* h) { return msrt_list_append_list(list, As<msrt_list>(h)); }},
      {"list_length", "list", "list",
       [&](void* h) { return msrt_list_length(As<msrt_list>(h), &no_size); }},
      {"list_element", "list", "list",
       [&](void* h) { return msrt_list_element(As<msrt_list>(h), 0, &no_tensor); }},
      {"list_element_list", "list", "list",
       [&](void* h) { return msrt_list_element_list(As<msrt_list>(h), 0, &no_list); }},
      {"session_bind_list", "session", "session",
       [&](void* h) { return msrt_session_bind_list(As<msrt_session>(h), 0, list); }},
      {"session_output_list", "session", "session",
       [&](void* h) { return msrt_session_output_list(As<msrt_session>(h), 0, &no_list); }},
      {"tensor_get_info", "tensor", "tensor",
       [&](void* h) { return msrt_tensor_get_info(As<msrt_tensor>(h), &info); }},
      {"tensor_data", "tensor", "tensor",
       [&](void* h) { return msrt_tensor_data(As<msrt_tensor>(h), &no_data); }},
      {"tensor_copy", "tensor", "destination",
       [&](void* h) { return msrt_tensor_copy(As<msrt_tensor>(h), tensor); }},
      {"tensor_copy", "tensor", "source",
       [&](void* h) { return msrt_tensor_copy(tensor, As<msrt_tensor>(h)); }},
      {"tensor_to_dlpack", "tensor", "tensor",
       [&](void* h) { return msrt_tensor_to_dlpack(As<msrt_tensor>(h), &no_data); }},
      {"model_info_json", "model", "model",
       [&](void* h) { return msrt_model_info_json(As<msrt_model>(h), &no_text); }},
      {"session_create", "model", "model",
       [&](void* h) {
         return msrt_session_create(As<msrt_model>(h), nullptr, nullptr, &no_session);
       }},
      {"graph_add_input", "graph", "graph",
       [&](void* h) { return msrt_graph_add_input(As<msrt_graph>(h), &input, &no_value); }},
      {"graph_add_constant", "graph", "graph",
       [&](void* h) { return msrt_graph_add_constant(As<msrt_graph>(h), "c", tensor, &no_value); }},
      {"graph_add_constant", "tensor", "data",
       [&](void* h) { return msrt_graph_add_constant(graph, "c", As<msrt_tensor>(h), &no_value); }},
      {"graph_add_state", "graph", "graph",
       [&](void* h) {
         return msrt_graph_add_state(As<msrt_graph>(h), "s", nullptr, tensor, &slot);
       }},
      {"graph_add_state", "tensor", "initial",
       [&](void* h) {
         return msrt_graph_add_state(graph, "s", nullptr, As<msrt_tensor>(h), &slot);
       }},
      {"graph_add_node", "graph", "graph",
       [&](void* h) { return msrt_graph_add_node(As<msrt_graph>(h), &node, &no_value); }},
      {"graph_add_output", "graph", "graph",
       [&](void* h) { return msrt_graph_add_output(As<msrt_graph>(h), 0, "o"); }},
      {"graph_value_info", "graph", "graph",
       [&](void* h) { return msrt_graph_value_info(As<msrt_graph>(h), 0, &info); }},
      {"graph_save", "graph", "graph",
       [&](void* h) { return msrt_graph_save(As<msrt_graph>(h), "x"); }},
      {"graph_compile", "graph", "graph",
       [&](void* h) { return msrt_graph_compile(As<msrt_graph>(h), nullptr, &no_model); }},
      {"session_clone", "session", "session",
       [&](void* h) { return msrt_session_clone(As<msrt_session>(h), &no_session); }},
      {"session_io_count", "session", "session",
       [&](void* h) { return msrt_session_io_count(As<msrt_session>(h), MSRT_INPUT, &no_size); }},
      {"session_io_info", "session", "session",
       [&](void* h) { return msrt_session_io_info(As<msrt_session>(h), MSRT_INPUT, 0, &info); }},
      {"session_io_find", "session", "session",
       [&](void* h) {
         return msrt_session_io_find(As<msrt_session>(h), MSRT_INPUT, "x", &no_size);
       }},
      {"session_bind", "session", "session",
       [&](void* h) { return msrt_session_bind(As<msrt_session>(h), MSRT_INPUT, 0, tensor); }},
      {"session_input", "session", "session",
       [&](void* h) { return msrt_session_input(As<msrt_session>(h), 0, 2, dims, &no_tensor); }},
      {"session_output", "session", "session",
       [&](void* h) { return msrt_session_output(As<msrt_session>(h), 0, &no_tensor); }},
      {"session_take_output", "session", "session",
       [&](void* h) { return msrt_session_take_output(As<msrt_session>(h), 0, &no_tensor); }},
      {"session_run", "session", "session",
       [&](void* h) { return msrt_session_run(As<msrt_session>(h), nullptr); }},
      {"session_cancel", "session", "session",
       [&](void* h) { return msrt_session_cancel(As<msrt_session>(h)); }},
      {"session_state_count", "session", "session",
       [&](void* h) { return msrt_session_state_count(As<msrt_session>(h), &no_size); }},
      {"session_state_find", "session", "session",
       [&](void* h) { return msrt_session_state_find(As<msrt_session>(h), "s", &no_size); }},
      {"session_state_info", "session", "session",
       [&](void* h) { return msrt_session_state_info(As<msrt_session>(h), 0, &info); }},
      {"session_state_read", "session", "session",
       [&](void* h) { return msrt_session_state_read(As<msrt_session>(h), 0, &no_tensor); }},
      {"session_state_write", "session", "session",
       [&](void* h) { return msrt_session_state_write(As<msrt_session>(h), 0, tensor); }},
      {"session_state_write", "tensor", "value",
       [&](void* h) { return msrt_session_state_write(stateful, 0, As<msrt_tensor>(h)); }},
      {"session_state_reset", "session", "session",
       [&](void* h) { return msrt_session_state_reset(As<msrt_session>(h), 0); }},
      {"session_state_copy", "session", "session",
       [&](void* h) { return msrt_session_state_copy(As<msrt_session>(h), stateful); }},
      {"session_state_copy", "session", "from",
       [&](void* h) { return msrt_session_state_copy(stateful, As<msrt_session>(h)); }},
      {"session_report", "session", "session",
       [&](void* h) {
         return msrt_session_report(As<msrt_session>(h), MSRT_REPORT_PLAN, &no_text);
       }},
      {"session_trim", "session", "session",
       [&](void* h) { return msrt_session_trim(As<msrt_session>(h)); }},
  };
  const std::map<std::string, void*> alive = {{"runtime", runtime}, {"graph", graph},
                                              {"model", model},     {"session", session},
                                              {"tensor", tensor},   {"list", list}};
  msrt_runtime* dead_runtime = nullptr;
  MSRT_ASSERT_OK(msrt_runtime_create(nullptr, &dead_runtime));
  msrt_graph* dead_graph = SmallGraph(dead_runtime);
  msrt_model* dead_model = nullptr;
  MSRT_ASSERT_OK(msrt_graph_compile(dead_graph, nullptr, &dead_model));
  msrt_session* dead_session = SessionOf(dead_model);
  msrt_tensor* dead_tensor = FloatTensor(dead_runtime, {1}, {1});
  msrt_list* dead_list = nullptr;
  MSRT_ASSERT_OK(msrt_list_create(dead_runtime, &dead_list));
  const std::map<std::string, void*> dead = {{"runtime", dead_runtime}, {"graph", dead_graph},
                                             {"model", dead_model},     {"session", dead_session},
                                             {"tensor", dead_tensor},   {"list", dead_list}};
  msrt_runtime_destroy(dead_runtime);
  msrt_graph_destroy(dead_graph);
  msrt_model_destroy(dead_model);
  msrt_session_destroy(dead_session);
  msrt_tensor_destroy(dead_tensor);
  msrt_list_destroy(dead_list);

  for (const HandleRow& row : rows) {
    const auto expect = [&](void* handle, const std::string& cause) {
      EXPECT_EQ(row.call(handle), MSRT_INVALID_ARGUMENT) << row.function << ": " << cause;
      const std::string message = msrt_error_message();
      EXPECT_NE(message.find(row.argument), std::string::npos) << row.function << ": " << message;
      EXPECT_NE(message.find(cause), std::string::npos) << row.function << ": " << message;
    };
    expect(nullptr, "is null");
    expect(dead.at(row.kind), "was destroyed");
    expect(&slot, "not a handle");
    expect(reinterpret_cast<void*>(uintptr_t{1}), "not a handle");
    expect(reinterpret_cast<void*>(UINTPTR_MAX), "not a handle");
    for (const auto& [kind, handle] : alive) {
      if (kind != row.kind) expect(handle, "a " + kind + " handle was passed");
    }
  }
  EXPECT_EQ(no_runtime, nullptr);
  EXPECT_EQ(no_graph, nullptr);
  EXPECT_EQ(no_model, nullptr);
  EXPECT_EQ(no_session, nullptr);
  EXPECT_EQ(no_tensor, nullptr);
  EXPECT_EQ(no_list, nullptr);
}

TEST_F(Misuse, DestroyingWrongHandlesDoesNothing) {
  msrt_runtime_destroy(nullptr);
  msrt_tensor_destroy(nullptr);
  msrt_model_destroy(nullptr);
  msrt_graph_destroy(nullptr);
  msrt_session_destroy(nullptr);
  msrt_list_destroy(nullptr);
  msrt_tensor* gone = FloatTensor(runtime, {1}, {1});
  msrt_tensor_destroy(gone);
  msrt_tensor* next = FloatTensor(runtime, {1}, {2});  // reuses the slot of the destroyed one
  EXPECT_NE(gone, next);
  msrt_tensor_destroy(gone);
  EXPECT_EQ(FloatsOf(next), std::vector<float>{2});
  msrt_runtime_destroy(As<msrt_runtime>(static_cast<void*>(next)));
  msrt_model_destroy(As<msrt_model>(static_cast<void*>(&slot)));
  msrt_session_destroy(As<msrt_session>(static_cast<void*>(model)));
  EXPECT_EQ(FloatsOf(next), std::vector<float>{2});
  msrt_tensor_destroy(next);
}

TEST_F(Misuse, WrongRuntimeArgumentsAreRefused) {
  const auto with = [&](auto change) {
    return [&, change] {
      msrt_runtime_config config = MSRT_INIT(msrt_runtime_config);
      change(config);
      return msrt_runtime_create(&config, &no_runtime);
    };
  };
  using Config = msrt_runtime_config;
  Check({
      {"runtime_create", "out", [&] { return msrt_runtime_create(nullptr, nullptr); }},
      {"runtime_create", "config.struct_size", with([](Config& c) { c.struct_size = 0; })},
      {"runtime_create", "config.struct_size", with([](Config& c) { c.struct_size = 8; })},
      {"runtime_create", "newer", with([](Config& c) { c.struct_size = 4096; })},
      {"runtime_create", "config.threads", with([](Config& c) { c.threads = -1; })},
      {"runtime_create", "config.threads", with([](Config& c) { c.threads = 1 << 30; })},
      {"runtime_create", "config.log_level", with([](Config& c) { c.log_level = 4; })},
      {"runtime_create", "config.log_level", with([](Config& c) { c.log_level = -1; })},
      {"runtime_create", "config.allocate", with([](Config& c) {
         c.allocate = [](void*, size_t, size_t) -> void* { return nullptr; };
       })},
      {"runtime_info_json", "out", [&] { return msrt_runtime_info_json(runtime, nullptr); }},
  });
  EXPECT_EQ(no_runtime, nullptr);
}

TEST_F(Misuse, WrongKernelArgumentsAreRefused) {
  const auto must_not_be_called = [](void*) {
    ADD_FAILURE() << "destroy was called although the call failed";
  };
  const auto with = [&](auto change) {
    return [&, change] {
      msrt_op_desc meaning = MSRT_INIT(msrt_op_desc);
      meaning.max_inputs = meaning.min_outputs = meaning.max_outputs = 1;
      meaning.infer = [](void*, const msrt_host_api*, const msrt_node_view*,
                         msrt_shape*) -> msrt_status { return MSRT_INTERNAL; };
      msrt_kernel_desc kernel = MSRT_INIT(msrt_kernel_desc);
      kernel.plugin_abi = MSRT_PLUGIN_ABI;
      kernel.domain = "com.example";
      kernel.op = "Op";
      kernel.name = "a kernel";
      kernel.destroy = must_not_be_called;
      kernel.meaning = &meaning;
      kernel.run = [](void*, const void*, const msrt_kernel_args*) -> msrt_status {
        return MSRT_INTERNAL;
      };
      change(kernel, meaning);
      return msrt_runtime_register_kernel(runtime, &kernel);
    };
  };
  using Kernel = msrt_kernel_desc;
  using Op = msrt_op_desc;
  const auto rule = [&](auto change) {
    return with([change](Kernel&, Op& op) {
      static msrt_attr_rule r;
      r = {};
      r.name = "size";
      change(r);
      op.attrs = &r;
      op.attr_count = 1;
    });
  };
  using Rule = msrt_attr_rule;
  static const std::string long_name(129, 'x');
  const char* f = "runtime_register_kernel";
  Check({
      {f, "kernel", [&] { return msrt_runtime_register_kernel(runtime, nullptr); }},
      {f, "kernel.struct_size", with([](Kernel& k, Op&) { k.struct_size = 0; })},
      {f, "kernel.struct_size", with([](Kernel& k, Op&) { k.struct_size = 16; })},
      {f, "kernel.plugin_abi", with([](Kernel& k, Op&) { k.plugin_abi = 77; }), MSRT_UNSUPPORTED},
      {f, "kernel.op", with([](Kernel& k, Op&) { k.op = nullptr; })},
      {f, "kernel.op", with([](Kernel& k, Op&) { k.op = ""; })},
      {f, "kernel.op", with([](Kernel& k, Op&) { k.op = "two words"; })},
      {f, "kernel.op", with([](Kernel& k, Op&) { k.op = long_name.c_str(); })},
      {f, "kernel.domain", with([](Kernel& k, Op&) { k.domain = "com example"; })},
      {f, "kernel.name", with([](Kernel& k, Op&) { k.name = nullptr; })},
      {f, "kernel.name", with([](Kernel& k, Op&) { k.name = "new\nline"; })},
      {f, "kernel.run", with([](Kernel& k, Op&) { k.run = nullptr; })},
      {f, "kernel.version", with([](Kernel& k, Op&) { k.version = -1; })},
      {f, "kernel.types", with([](Kernel& k, Op&) { k.types = 1; })},
      {f, "kernel.types", with([](Kernel& k, Op&) { k.types = UINT32_MAX; })},
      {f, "kernel.layouts", with([](Kernel& k, Op&) { k.layouts = 16; })},
      {f, "kernel.in_place", with([](Kernel& k, Op&) { k.in_place_count = 1; })},
      {f, "kernel.in_place_count", with([](Kernel& k, Op&) { k.in_place_count = SIZE_MAX; })},
      {f, "kernel.pack", with([](Kernel& k, Op&) { k.packed_destroy = [](void*, void*) {}; })},
      {f, "meaning.struct_size", with([](Kernel&, Op& m) { m.struct_size = 4; })},
      {f, "meaning.infer", with([](Kernel&, Op& m) { m.infer = nullptr; })},
      {f, "meaning.min_inputs", with([](Kernel&, Op& m) { m.min_inputs = 2; })},
      {f, "max_inputs", with([](Kernel&, Op& m) { m.max_inputs = UINT32_MAX; })},
      {f, "max_outputs", with([](Kernel&, Op& m) { m.max_outputs = UINT32_MAX; })},
      {f, "meaning.min_outputs", with([](Kernel&, Op& m) { m.min_outputs = 0; })},
      {f, "meaning.axes", with([](Kernel&, Op& m) {
         m.axes = [](void*, const msrt_host_api*, const msrt_node_view*, msrt_axis*,
                     int32_t*) -> msrt_status { return MSRT_INTERNAL; };
       })},
      {f, "meaning.attrs", with([](Kernel&, Op& m) { m.attr_count = 1; })},
      {f, "meaning.attr_count", with([](Kernel&, Op& m) { m.attr_count = SIZE_MAX; })},
      {f, "meaning.attrs[0]", rule([](Rule& r) { r.name = nullptr; })},
      {f, "kind is 8", rule([](Rule& r) { r.kind = MSRT_ATTR_GRAPH; })},
      {f, "flags", rule([](Rule& r) { r.flags = 1; })},
      {f, "local", rule([](Rule& r) { r.flags = MSRT_ATTR_IS_LOCAL | MSRT_ATTR_IS_REQUIRED; })},
      {f, "local", rule([](Rule& r) {
         r.flags = MSRT_ATTR_IS_LOCAL;
         r.kind = MSRT_ATTR_FLOAT;
       })},
      {f, "min", rule([](Rule& r) {
         r.min = 2;
         r.max = 1;
       })},
      {f, "default", rule([](Rule& r) {
         r.min = 1;
         r.max = 2;
       })},
      {f, "default", rule([](Rule& r) { r.default_number = 0.5; })},
      {f, "default", rule([](Rule& r) { r.default_number = 1e300; })},
  });
  const char* after = "";
  MSRT_ASSERT_OK(msrt_runtime_info_json(runtime, &after));
  EXPECT_NE(std::string(after).find("\"kernels\": []"), std::string::npos) << after;
}

TEST_F(Misuse, WrongTensorArgumentsAreRefused) {
  const int64_t dims[] = {1, 3}, negative[] = {1, -3},
                huge[] = {int64_t{1} << 40, int64_t{1} << 40, 0}, large[] = {int64_t{1} << 60};
  const auto create = [&](msrt_dtype dtype, int32_t rank, const int64_t* d) {
    return [=, this] { return msrt_tensor_create(runtime, dtype, rank, d, &no_tensor); };
  };
  float memory[4] = {};
  const auto wrap = [&](void* data, size_t bytes) {
    return [=, this] {
      const auto must_not_be_called = [](void*, void*) {
        ADD_FAILURE() << "free_fn was called although the call failed";
      };
      return msrt_tensor_wrap(runtime, MSRT_F32, 2, dims, data, bytes, must_not_be_called, nullptr,
                              &no_tensor);
    };
  };
  msrt_tensor_info zero = Sized<msrt_tensor_info>(0), newer = Sized<msrt_tensor_info>(10000);
  msrt_tensor* other = FloatTensor(runtime, {2}, {1, 2});
  const int64_t three[] = {3};
  msrt_tensor* ints = nullptr;
  MSRT_ASSERT_OK(msrt_tensor_create(runtime, MSRT_I32, 1, three, &ints));
  Check({
      {"tensor_create", "dtype", create(0, 2, dims)},
      {"tensor_create", "dtype", create(21, 2, dims)},
      {"tensor_create", "dtype", create(-1, 2, dims)},
      {"tensor_create", "rank", create(MSRT_F32, -1, dims)},
      {"tensor_create", "rank", create(MSRT_F32, 9, dims)},
      {"tensor_create", "dims", create(MSRT_F32, 2, nullptr)},
      {"tensor_create", "dims[1]", create(MSRT_F32, 2, negative)},
      {"tensor_create", "dims", create(MSRT_F32, 3, huge)},
      {"tensor_create", "dims", create(MSRT_F32, 1, large)},
      {"tensor_create", "out",
       [&] { return msrt_tensor_create(runtime, MSRT_F32, 2, dims, nullptr); }},
      {"tensor_wrap", "bytes", wrap(memory, 11)},
      {"tensor_wrap", "data", wrap(nullptr, 12)},
      {"tensor_wrap", "multiple of 4", wrap(reinterpret_cast<char*>(memory) + 1, 12)},
      {"tensor_wrap", "out",
       [&] {
         return msrt_tensor_wrap(runtime, MSRT_F32, 2, dims, memory, 12, nullptr, nullptr, nullptr);
       }},
      {"tensor_wrap", "rank",
       [&] {
         return msrt_tensor_wrap(runtime, MSRT_F32, 9, dims, memory, 12, nullptr, nullptr,
                                 &no_tensor);
       }},
      {"tensor_wrap", "dtype",
       [&] {
         return msrt_tensor_wrap(runtime, 77, 2, dims, memory, 12, nullptr, nullptr, &no_tensor);
       }},
      {"tensor_wrap", "dims",
       [&] {
         return msrt_tensor_wrap(runtime, MSRT_F32, 2, nullptr, memory, 12, nullptr, nullptr,
                                 &no_tensor);
       }},
      {"tensor_get_info", "info", [&] { return msrt_tensor_get_info(tensor, nullptr); }},
      {"tensor_get_info", "info.struct_size", [&] { return msrt_tensor_get_info(tensor, &zero); }},
      {"tensor_get_info", "info.struct_size", [&] { return msrt_tensor_get_info(tensor, &newer); }},
      {"tensor_data", "out", [&] { return msrt_tensor_data(tensor, nullptr); }},
      {"tensor_copy", "source", [&] { return msrt_tensor_copy(tensor, other); }},
      {"tensor_copy", "i32", [&] { return msrt_tensor_copy(tensor, ints); }},
      {"tensor_from_dlpack", "managed_tensor",
       [&] { return msrt_tensor_from_dlpack(runtime, nullptr, &no_tensor); }},
      {"tensor_from_dlpack", "out",
       [&] { return msrt_tensor_from_dlpack(runtime, &slot, nullptr); }},
      {"tensor_to_dlpack", "out", [&] { return msrt_tensor_to_dlpack(tensor, nullptr); }},
  });
  EXPECT_EQ(no_tensor, nullptr);
  msrt_tensor_destroy(other);
  msrt_tensor_destroy(ints);
}

TEST_F(Misuse, WrongModelArgumentsAreRefused) {
  const int64_t dims[] = {4, 3}, negative[] = {-4, 3};
  const msrt_named_dims nameless = {nullptr, 2, dims}, unknown = {"z", 2, dims},
                        no_dims = {"x", 2, nullptr}, bad_rank = {"x", 9, dims},
                        bad_dims = {"x", 2, negative}, contradicting = {"x", 1, dims};
  const auto with = [&](auto change) {
    return [&, change] {
      msrt_model_config config = MSRT_INIT(msrt_model_config);
      change(config);
      return msrt_graph_compile(graph, &config, &no_model);
    };
  };
  const auto typical = [&](const msrt_named_dims* t) {
    return with([t](msrt_model_config& c) {
      c.typical = t;
      c.typical_count = 1;
    });
  };
  const auto load_text = [&](const char* text) {
    return msrt_model_load_memory(runtime, text, std::strlen(text), nullptr, nullptr, nullptr,
                                  &no_model);
  };
  using Config = msrt_model_config;
  const Config zero = Sized<Config>(0);
  Check({
      {"model_load_file", "path",
       [&] { return msrt_model_load_file(runtime, nullptr, nullptr, &no_model); }},
      {"model_load_file", "out",
       [&] { return msrt_model_load_file(runtime, "x", nullptr, nullptr); }},
      {"model_load_file", "config.struct_size",
       [&] { return msrt_model_load_file(runtime, "x", &zero, &no_model); }},
      {"model_load_file", "no/such",
       [&] { return msrt_model_load_file(runtime, "no/such", nullptr, &no_model); },
       MSRT_NOT_FOUND},
      {"model_load_memory", "data",
       [&] {
         return msrt_model_load_memory(runtime, nullptr, 8, nullptr, nullptr, nullptr, &no_model);
       }},
      {"model_load_memory", "out",
       [&] { return msrt_model_load_memory(runtime, "x", 1, nullptr, nullptr, nullptr, nullptr); }},
      {"model_load_memory", "config.struct_size",
       [&] { return msrt_model_load_memory(runtime, "x", 1, nullptr, nullptr, &zero, &no_model); }},
      {"model_load_memory", "bytes", [&] { return load_text(""); }, MSRT_INVALID_MODEL},
      {"model_load_memory", "bytes", [&] { return load_text("MSRT"); }, MSRT_INVALID_MODEL},
      {"model_load_memory", "MSRT",
       [&] {
         return load_text(
             "not a model at all, but long enough that somebody could take it for one");
       },
       MSRT_INVALID_MODEL},
      {"model_info_json", "out", [&] { return msrt_model_info_json(model, nullptr); }},
      {"graph_compile", "out", [&] { return msrt_graph_compile(graph, nullptr, nullptr); }},
      {"graph_compile", "config.struct_size", with([](Config& c) { c.struct_size = 0; })},
      {"graph_compile", "config.struct_size", with([](Config& c) { c.struct_size = 1000; })},
      {"graph_compile", "nobody", with([](Config& c) { c.delegates = "reference,nobody"; }),
       MSRT_NOT_FOUND},
      {"graph_compile", "config.delegates", with([](Config& c) { c.delegates = " , "; })},
      {"graph_compile", "no_such_pass",
       with([](Config& c) { c.disabled_passes = "no_such_pass"; })},
      {"graph_compile", "config.typical", with([](Config& c) { c.typical_count = 1; })},
      {"graph_compile", "config.typical[0].name", typical(&nameless)},
      {"graph_compile", "config.typical[0]", typical(&unknown), MSRT_NOT_FOUND},
      {"graph_compile", "config.typical[0].dims", typical(&no_dims)},
      {"graph_compile", "config.typical[0].rank", typical(&bad_rank)},
      {"graph_compile", "config.typical[0].dims[0]", typical(&bad_dims)},
      {"graph_compile", "'x'", typical(&contradicting)},
  });
  EXPECT_EQ(no_model, nullptr);
}

TEST_F(Misuse, WrongGraphArgumentsAreRefused) {
  const auto input = [&](auto change) {
    return [&, change] {
      msrt_tensor_info i = InfoOf(MSRT_F32, {1, 2}, "new");
      change(i);
      return msrt_graph_add_input(graph, &i, &no_value);
    };
  };
  using Info = msrt_tensor_info;
  const Info wrong_state = InfoOf(MSRT_I32, {1, 3}, nullptr);
  Info zero = Sized<Info>(0);
  Check({
      {"graph_create", "out", [&] { return msrt_graph_create(runtime, "g", nullptr); }},
      {"graph_add_graph", "out", [&] { return msrt_graph_add_graph(graph, "g", nullptr); }},
      {"graph_add_input", "info.list_depth", input([](Info& i) { i.list_depth = 9; })},
      {"graph_add_input", "info.state_role is 1, must be 0",
       input([](Info& i) { i.state_role = MSRT_STATE_PARAMETER; })},
      {"graph_add_input", "info", [&] { return msrt_graph_add_input(graph, nullptr, &no_value); }},
      {"graph_add_input", "out",
       [&] {
         const Info i = InfoOf(MSRT_F32, {1}, "new");
         return msrt_graph_add_input(graph, &i, nullptr);
       }},
      {"graph_add_input", "info.struct_size", input([](Info& i) { i.struct_size = 0; })},
      {"graph_add_input", "info.name", input([](Info& i) { i.name = nullptr; })},
      {"graph_add_input", "name", input([](Info& i) { i.name = ""; })},
      {"graph_add_input", "'x'", input([](Info& i) { i.name = "x"; })},
      {"graph_add_input", "info.dtype", input([](Info& i) { i.dtype = 0; })},
      {"graph_add_input", "info.rank", input([](Info& i) { i.rank = -2; })},
      {"graph_add_input", "info.rank", input([](Info& i) { i.rank = 9; })},
      {"graph_add_input", "info.dims[1]", input([](Info& i) { i.dims[1] = -2; })},
      {"graph_add_input", "info.symbols[0]", input([](Info& i) { i.symbols[0] = "n"; })},
      {"graph_add_input", "dims", input([](Info& i) { i.dims[0] = i.dims[1] = int64_t{1} << 40; })},
      {"graph_add_constant", "out",
       [&] { return msrt_graph_add_constant(graph, "c", tensor, nullptr); }},
      {"graph_add_state", "name",
       [&] { return msrt_graph_add_state(graph, nullptr, nullptr, tensor, &slot); }},
      {"graph_add_state", "slot",
       [&] { return msrt_graph_add_state(graph, "s", nullptr, tensor, nullptr); }},
      {"graph_add_state", "info",
       [&] { return msrt_graph_add_state(graph, "s", &wrong_state, tensor, &slot); }},
      {"graph_add_state", "info.state_role is 4, which is not a role",
       [&] {
         Info i = InfoOf(MSRT_F32, {1, 3}, nullptr);
         i.state_role = 4;
         return msrt_graph_add_state(graph, "s", &i, tensor, &slot);
       }},
      {"graph_add_state", "info.state_role is -1, which is not a role",
       [&] {
         Info i = InfoOf(MSRT_F32, {1, 3}, nullptr);
         i.state_role = -1;
         return msrt_graph_add_state(graph, "s", &i, tensor, &slot);
       }},
      {"graph_add_state", "info.struct_size",
       [&] { return msrt_graph_add_state(graph, "s", &zero, tensor, &slot); }},
      {"graph_add_output", "value 1000", [&] { return msrt_graph_add_output(graph, 1000, "o"); }},
      {"graph_add_output", "value",
       [&] { return msrt_graph_add_output(graph, MSRT_NO_VALUE, "o"); }},
      {"graph_add_output", "'y'", [&] { return msrt_graph_add_output(graph, 0, "y"); }},
      {"graph_add_output", "name", [&] { return msrt_graph_add_output(graph, 0, ""); }},
      {"graph_value_info", "value 1000", [&] { return msrt_graph_value_info(graph, 1000, &info); }},
      {"graph_value_info", "info", [&] { return msrt_graph_value_info(graph, 0, nullptr); }},
      {"graph_value_info", "info.struct_size",
       [&] { return msrt_graph_value_info(graph, 0, &zero); }},
      {"graph_save", "path", [&] { return msrt_graph_save(graph, nullptr); }},
      {"graph_save", "no/such/folder",
       [&] { return msrt_graph_save(graph, "no/such/folder/x.msrt"); }, MSRT_NOT_FOUND},
  });
  EXPECT_EQ(no_graph, nullptr);
}

TEST_F(Misuse, WrongNodeArgumentsAreRefused) {
  const auto node = [&](auto change) {
    return [&, change] {
      const msrt_value x = 0;
      msrt_node_desc n = MSRT_INIT(msrt_node_desc);
      n.op = "Softmax";
      n.inputs = &x;
      n.input_count = 1;
      change(n);
      return msrt_graph_add_node(graph, &n, &no_value);
    };
  };
  const auto attr = [&](auto change) {
    return node([change](msrt_node_desc& n) {
      static msrt_attr a;
      a = msrt_attr();
      a.name = "axis";
      change(a);
      n.attrs = &a;
      n.attr_count = 1;
    });
  };
  using Node = msrt_node_desc;
  static const int64_t one = 1;
  static const char* const null_strings[] = {nullptr};
  static const msrt_value nowhere = 1000;
  static const msrt_tensor_info bad_type = InfoOf(99, {1}, nullptr),
                                zero_type = Sized<msrt_tensor_info>(0);
  Check({
      {"graph_add_node", "node", [&] { return msrt_graph_add_node(graph, nullptr, &no_value); }},
      {"graph_add_node", "outputs",
       [&] {
         Node n = MSRT_INIT(Node);
         n.op = "Relu";
         return msrt_graph_add_node(graph, &n, nullptr);
       }},
      {"graph_add_node", "node.struct_size", node([](Node& n) { n.struct_size = 0; })},
      {"graph_add_node", "node.op", node([](Node& n) { n.op = nullptr; })},
      {"graph_add_node", "NoSuchOp", node([](Node& n) { n.op = "NoSuchOp"; }), MSRT_UNSUPPORTED},
      {"graph_add_node", "node.output_types[0].dtype", node([](Node& n) {
         n.op = "NoSuchOp";
         n.output_types = &bad_type;
       })},
      {"graph_add_node", "node.output_types[0].struct_size", node([](Node& n) {
         n.op = "NoSuchOp";
         n.output_types = &zero_type;
       })},
      {"graph_add_node", "node.inputs", node([](Node& n) { n.inputs = nullptr; })},
      {"graph_add_node", "node.input_count", node([](Node& n) { n.input_count = SIZE_MAX; })},
      {"graph_add_node", "node.output_count", node([](Node& n) { n.output_count = SIZE_MAX; })},
      {"graph_add_node", "outputs", node([](Node& n) { n.output_count = 5; }), MSRT_INVALID_MODEL},
      {"graph_add_node", "node.inputs[0]: value 1000", node([](Node& n) { n.inputs = &nowhere; })},
      {"graph_add_node", "input", node([](Node& n) { n.input_count = 0; }), MSRT_INVALID_MODEL},
      {"graph_add_node", "node.attrs", node([](Node& n) { n.attr_count = 1; })},
      {"graph_add_node", "node.attr_count", node([](Node& n) { n.attr_count = SIZE_MAX; })},
      {"graph_add_node", "node.attrs[0].name", attr([](msrt_attr& a) { a.name = nullptr; })},
      {"graph_add_node", "node.attrs[0].kind", attr([](msrt_attr& a) { a.kind = 10; })},
      {"graph_add_node", "node.attrs[0].kind", attr([](msrt_attr& a) { a.kind = -1; })},
      {"graph_add_node", "node.attrs[0].ints", attr([](msrt_attr& a) { a.kind = MSRT_ATTR_INT; })},
      {"graph_add_node", "node.attrs[0].ints", attr([](msrt_attr& a) {
         a.kind = MSRT_ATTR_INTS;
         a.count = 1;
       })},
      {"graph_add_node", "node.attrs[0].count", attr([](msrt_attr& a) {
         a.kind = MSRT_ATTR_INTS;
         a.count = SIZE_MAX;
         a.ints = &one;
       })},
      {"graph_add_node", "node.attrs[0].floats",
       attr([](msrt_attr& a) { a.kind = MSRT_ATTR_FLOAT; })},
      {"graph_add_node", "node.attrs[0].strings",
       attr([](msrt_attr& a) { a.kind = MSRT_ATTR_STRING; })},
      {"graph_add_node", "node.attrs[0].strings[0]", attr([](msrt_attr& a) {
         a.kind = MSRT_ATTR_STRING;
         a.strings = null_strings;
       })},
      {"graph_add_node", "node.attrs[0].dtype", attr([](msrt_attr& a) {
         a.kind = MSRT_ATTR_DTYPE;
         a.dtype = 99;
       })},
      {"graph_add_node", "node.attrs[0].tensor",
       attr([](msrt_attr& a) { a.kind = MSRT_ATTR_TENSOR; })},
      {"graph_add_node", "axis", attr([](msrt_attr& a) {
         a.kind = MSRT_ATTR_INTS;
         a.count = 1;
         a.ints = &one;
       }),
       MSRT_INVALID_MODEL},
      {"graph_add_node", "axes", attr([](msrt_attr& a) {
         a.name = "axes";
         a.ints = &one;
       }),
       MSRT_INVALID_MODEL},
  });
}

TEST_F(Misuse, WrongSessionArgumentsAreRefused) {
  const int64_t dims[] = {1, 3}, wrong[] = {1, 4}, negative[] = {-1, 3};
  msrt_tensor* other = FloatTensor(runtime, {1, 4}, {1, 2, 3, 4});
  msrt_tensor_info zero = Sized<msrt_tensor_info>(0);
  const msrt_session_config no_size_config = Sized<msrt_session_config>(0);
  msrt_run_config bad_run = MSRT_INIT(msrt_run_config), early = bad_run, reserved = bad_run,
                  shallow = bad_run, few = bad_run;
  bad_run.struct_size = 0;
  early.timeout_us = -1;
  reserved.reserved = 1;
  shallow.max_depth = -1;
  few.max_calls = -1;
  const std::vector<Row> rows = {
      {"session_create", "out",
       [&] { return msrt_session_create(model, nullptr, nullptr, nullptr); }},
      {"session_create", "'main'",
       [&] { return msrt_session_create(model, "train", nullptr, &no_session); }, MSRT_NOT_FOUND},
      {"session_create", "config.struct_size",
       [&] { return msrt_session_create(model, nullptr, &no_size_config, &no_session); }},
      {"session_clone", "out", [&] { return msrt_session_clone(session, nullptr); }},
      {"session_io_count", "out",
       [&] { return msrt_session_io_count(session, MSRT_INPUT, nullptr); }},
      {"session_io_count", "kind", [&] { return msrt_session_io_count(session, 2, &no_size); }},
      {"session_io_info", "kind", [&] { return msrt_session_io_info(session, -1, 0, &info); }},
      {"session_io_info", "input 1",
       [&] { return msrt_session_io_info(session, MSRT_INPUT, 1, &info); }, MSRT_NOT_FOUND},
      {"session_io_info", "info",
       [&] { return msrt_session_io_info(session, MSRT_INPUT, 0, nullptr); }},
      {"session_io_info", "info.struct_size",
       [&] { return msrt_session_io_info(session, MSRT_INPUT, 0, &zero); }},
      {"session_io_find", "kind", [&] { return msrt_session_io_find(session, 7, "x", &no_size); }},
      {"session_io_find", "name",
       [&] { return msrt_session_io_find(session, MSRT_INPUT, nullptr, &no_size); }},
      {"session_io_find", "out",
       [&] { return msrt_session_io_find(session, MSRT_INPUT, "x", nullptr); }},
      {"session_bind", "kind", [&] { return msrt_session_bind(session, 7, 0, tensor); }},
      {"session_bind", "output 3",
       [&] { return msrt_session_bind(session, MSRT_OUTPUT, 3, tensor); }, MSRT_NOT_FOUND},
      {"session_bind", "tensor", [&] { return msrt_session_bind(session, MSRT_INPUT, 0, other); }},
      {"session_bind", "tensor", [&] { return msrt_session_bind(session, MSRT_OUTPUT, 0, other); }},
      {"session_input", "input 1",
       [&] { return msrt_session_input(session, 1, 2, dims, &no_tensor); }, MSRT_NOT_FOUND},
      {"session_input", "rank",
       [&] { return msrt_session_input(session, 0, 9, dims, &no_tensor); }},
      {"session_input", "rank",
       [&] { return msrt_session_input(session, 0, -1, dims, &no_tensor); }},
      {"session_input", "dims",
       [&] { return msrt_session_input(session, 0, 2, nullptr, &no_tensor); }},
      {"session_input", "dims[0]",
       [&] { return msrt_session_input(session, 0, 2, negative, &no_tensor); }},
      {"session_input", "dims",
       [&] { return msrt_session_input(session, 0, 2, wrong, &no_tensor); }},
      {"session_input", "'x'", [&] { return msrt_session_input(session, 0, 1, dims, &no_tensor); }},
      {"session_input", "out", [&] { return msrt_session_input(session, 0, 2, dims, nullptr); }},
      {"session_output", "output 1", [&] { return msrt_session_output(session, 1, &no_tensor); },
       MSRT_NOT_FOUND},
      {"session_output", "has not run",
       [&] { return msrt_session_output(session, 0, &no_tensor); }},
      {"session_output", "out", [&] { return msrt_session_output(session, 0, nullptr); }},
      {"session_take_output", "output 1",
       [&] { return msrt_session_take_output(session, 1, &no_tensor); }, MSRT_NOT_FOUND},
      {"session_take_output", "has not run",
       [&] { return msrt_session_take_output(session, 0, &no_tensor); }},
      {"session_take_output", "out", [&] { return msrt_session_take_output(session, 0, nullptr); }},
      {"session_run", "'x'", [&] { return msrt_session_run(session, nullptr); }},
      {"session_run", "config.struct_size", [&] { return msrt_session_run(session, &bad_run); }},
      {"session_run", "config.timeout_us", [&] { return msrt_session_run(session, &early); }},
      {"session_run", "config.reserved", [&] { return msrt_session_run(session, &reserved); }},
      {"session_run", "config.max_depth", [&] { return msrt_session_run(session, &shallow); }},
      {"session_run", "config.max_calls", [&] { return msrt_session_run(session, &few); }},
      {"session_output_list", "out", [&] { return msrt_session_output_list(session, 0, nullptr); }},
      {"list_create", "out", [&] { return msrt_list_create(runtime, nullptr); }},
      {"list_length", "out", [&] { return msrt_list_length(list, nullptr); }},
      {"list_element", "out", [&] { return msrt_list_element(list, 0, nullptr); }},
      {"list_element_list", "out", [&] { return msrt_list_element_list(list, 0, nullptr); }},
      {"session_state_count", "out", [&] { return msrt_session_state_count(session, nullptr); }},
      {"session_state_find", "name",
       [&] { return msrt_session_state_find(stateful, nullptr, &no_size); }},
      {"session_state_find", "out",
       [&] { return msrt_session_state_find(stateful, "counter", nullptr); }},
      {"session_state_find", "'counter'",
       [&] { return msrt_session_state_find(stateful, "x", &no_size); }, MSRT_NOT_FOUND},
      {"session_state_find", "none",
       [&] { return msrt_session_state_find(session, "x", &no_size); }, MSRT_NOT_FOUND},
      {"session_state_info", "state 1", [&] { return msrt_session_state_info(stateful, 1, &info); },
       MSRT_NOT_FOUND},
      {"session_state_info", "info", [&] { return msrt_session_state_info(stateful, 0, nullptr); }},
      {"session_state_info", "info.struct_size",
       [&] { return msrt_session_state_info(stateful, 0, &zero); }},
      {"session_state_read", "state 1",
       [&] { return msrt_session_state_read(stateful, 1, &no_tensor); }, MSRT_NOT_FOUND},
      {"session_state_read", "out", [&] { return msrt_session_state_read(stateful, 0, nullptr); }},
      {"session_state_write", "state 1",
       [&] { return msrt_session_state_write(stateful, 1, tensor); }, MSRT_NOT_FOUND},
      {"session_state_write", "'counter'",
       [&] { return msrt_session_state_write(stateful, 0, tensor); }},
      {"session_state_reset", "state 1", [&] { return msrt_session_state_reset(stateful, 1); },
       MSRT_NOT_FOUND},
      {"session_report", "kind", [&] { return msrt_session_report(session, 5, &no_text); }},
      {"session_report", "config.profile",
       [&] { return msrt_session_report(session, MSRT_REPORT_PROFILE, &no_text); }},
      {"session_report", "out",
       [&] { return msrt_session_report(session, MSRT_REPORT_PLAN, nullptr); }},
  };
  Check(rows);
  EXPECT_EQ(no_session, nullptr);
  EXPECT_EQ(no_tensor, nullptr);
  EXPECT_EQ(no_text, nullptr);
  msrt_tensor_destroy(other);
}

// Handles made, used and destroyed on several threads at once, some of them by two threads.
TEST_F(Misuse, HandlesAreThreadSafe) {
  std::atomic<void*> shared{nullptr};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const int64_t dims[] = {4};
        msrt_tensor* mine = nullptr;
        MSRT_ASSERT_OK(msrt_tensor_create(runtime, MSRT_F32, 1, dims, &mine));
        auto* theirs = static_cast<msrt_tensor*>(shared.exchange(mine));
        msrt_tensor_info found = MSRT_INIT(msrt_tensor_info);
        if (theirs != nullptr && msrt_tensor_get_info(theirs, &found) == MSRT_OK) {
          EXPECT_EQ(found.bytes, 16u);
        }
        msrt_tensor_destroy(theirs);
        if (i % 3 == 0) msrt_tensor_destroy(mine);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  msrt_tensor_destroy(static_cast<msrt_tensor*>(shared.load()));
}

}  // namespace
}  // namespace msrt::testing

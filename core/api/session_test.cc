// Sessions through the C API: after failures, with their own results as inputs, and while other
// sessions run.
#include <atomic>
#include <chrono>
#include <thread>

#include "core/abi/msrt_plugin.h"
#include "core/api/api_testing.h"

namespace msrt::testing {
namespace {

// Controls the kernels below.
struct Orders {
  std::atomic<bool> infer_fails{false}, wait{false};
  std::atomic<int> waiting{0};
  msrt_session* inner = nullptr;  // run by RunInnerInATask
  std::atomic<msrt_status> inner_status{MSRT_OK};
};

msrt_status InferSame(void* user, const msrt_host_api* host, const msrt_node_view* node,
                      msrt_shape* outputs) {
  if (static_cast<Orders*>(user)->infer_fails) {
    host->fail(host->host, "the sensor is not ready");
    return MSRT_IO;
  }
  outputs[0] = node->input_count != 0 ? node->inputs[0].declared : msrt_shape{MSRT_F32, 1, {2}};
  return MSRT_OK;
}

// Writes ones; waits while `wait` is set.
msrt_status RunOnes(void* user, const void*, const msrt_kernel_args* args) {
  auto& orders = *static_cast<Orders*>(user);
  ++orders.waiting;
  while (orders.wait) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  --orders.waiting;
  auto* out = static_cast<float*>(args->outputs[0]);
  for (int64_t i = 0; i < args->output_shapes[0].dims[0]; ++i) out[i] = 1;
  return MSRT_OK;
}

// Runs the inner session in a parallel task, and writes ones.
msrt_status RunInnerInATask(void* user, const void* packed, const msrt_kernel_args* args) {
  const auto task = [](void* context, int64_t index) {
    auto& orders = *static_cast<Orders*>(context);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that each thread has one
    if (index == 1) orders.inner_status = msrt_session_run(orders.inner, nullptr);
  };
  if (const msrt_status status = args->host->parallel_for(args->host->host, 2, task, user))
    return status;
  return RunOnes(user, packed, args);
}

void Register(msrt_runtime* runtime, Orders* orders, const char* op, uint32_t inputs,
              msrt_status (*run)(void*, const void*, const msrt_kernel_args*)) {
  msrt_op_desc meaning = MSRT_INIT(msrt_op_desc);
  meaning.effects = 1;
  meaning.min_inputs = meaning.max_inputs = inputs;
  meaning.min_outputs = meaning.max_outputs = 1;
  meaning.infer = InferSame;
  msrt_kernel_desc kernel = MSRT_INIT(msrt_kernel_desc);
  kernel.plugin_abi = MSRT_PLUGIN_ABI;
  kernel.domain = "test";
  kernel.op = op;
  kernel.name = op;
  kernel.user = orders;
  kernel.meaning = &meaning;
  kernel.run = run;
  MSRT_ASSERT_OK(msrt_runtime_register_kernel(runtime, &kernel));
}

// y = op(x), x: f32[2], with its input bound.
msrt_session* SessionOfOp(msrt_runtime* runtime, const char* op, const char* domain) {
  msrt_graph* graph = nullptr;
  MSRT_EXPECT_OK(msrt_graph_create(runtime, op, &graph));
  const msrt_tensor_info info = InfoOf(MSRT_F32, {2}, "x");
  msrt_value x = 0;
  MSRT_EXPECT_OK(msrt_graph_add_input(graph, &info, &x));
  MSRT_EXPECT_OK(msrt_graph_add_output(graph, AddNode(graph, op, "y", {x}, {}, domain), "y"));
  msrt_session* session = SessionOf(Compiled(graph));
  msrt_tensor* input = FloatTensor(runtime, {2}, {3, 4});
  MSRT_EXPECT_OK(msrt_session_bind(session, MSRT_INPUT, 0, input));
  msrt_tensor_destroy(input);
  return session;
}

std::vector<float> OutputOf(msrt_session* session, size_t index) {
  msrt_tensor* output = nullptr;
  MSRT_EXPECT_OK(msrt_session_output(session, index, &output));
  std::vector<float> values = FloatsOf(output);
  msrt_tensor_destroy(output);
  return values;
}

// No run is single-threaded for being short, so all of them take turns.
msrt_runtime* RuntimeWithThreads(int32_t threads) {
  msrt_runtime_config config = MSRT_INIT(msrt_runtime_config);
  config.threads = threads;
  config.wake_threads_seconds = -1;
  msrt_runtime* runtime = nullptr;
  MSRT_EXPECT_OK(msrt_runtime_create(&config, &runtime));
  return runtime;
}

class SessionApi : public ::testing::Test {
 protected:
  void SetUp() override { MSRT_ASSERT_OK(msrt_runtime_create(nullptr, &runtime_)); }
  void TearDown() override { msrt_runtime_destroy(runtime_); }
  msrt_runtime* runtime_ = nullptr;
};

TEST_F(SessionApi, RunsAfterShapeInferenceFailed) {
  Orders orders;
  Register(runtime_, &orders, "Ones", 0, RunOnes);
  msrt_graph* graph = nullptr;
  MSRT_ASSERT_OK(msrt_graph_create(runtime_, "g", &graph));
  msrt_tensor_info info = InfoOf(MSRT_F32, {-1}, "list");
  info.list_depth = 1;
  msrt_value list = 0;
  MSRT_ASSERT_OK(msrt_graph_add_input(graph, &info, &list));
  MSRT_ASSERT_OK(
      msrt_graph_add_output(graph, AddNode(graph, "Ones", "ones", {}, {}, "test"), "ones"));
  MSRT_ASSERT_OK(
      msrt_graph_add_output(graph, AddNode(graph, "SequenceLength", "length", {list}), "length"));
  msrt_session* session = SessionOf(Compiled(graph));
  msrt_list* empty = nullptr;
  MSRT_ASSERT_OK(msrt_list_create(runtime_, &empty));
  MSRT_ASSERT_OK(msrt_session_bind_list(session, 0, empty));
  orders.infer_fails = true;
  EXPECT_EQ(msrt_session_run(session, nullptr), MSRT_IO);
  orders.infer_fails = false;
  MSRT_ASSERT_OK(msrt_session_run(session, nullptr));
  EXPECT_EQ(OutputOf(session, 0), (std::vector<float>{1, 1}));
  msrt_list_destroy(empty);
  msrt_session_destroy(session);
}

TEST_F(SessionApi, RunsAtNewSizesAfterAnInputWasMissing) {
  msrt_graph* graph = nullptr;
  MSRT_ASSERT_OK(msrt_graph_create(runtime_, "g", &graph));
  for (const char* name : {"a", "b"}) {
    const msrt_tensor_info info = InfoOf(MSRT_F32, {-1}, name);
    msrt_value x = 0;
    MSRT_ASSERT_OK(msrt_graph_add_input(graph, &info, &x));
    MSRT_ASSERT_OK(msrt_graph_add_output(
        graph, AddNode(graph, "Neg", (std::string("minus_") + name).c_str(), {x}), nullptr));
  }
  msrt_session* session = SessionOf(Compiled(graph));
  msrt_tensor* two = FloatTensor(runtime_, {2}, {1, 2});
  std::vector<float> many(1000, -3);
  msrt_tensor* thousand = FloatTensor(runtime_, {1000}, many);
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_INPUT, 0, two));
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_INPUT, 1, two));
  MSRT_ASSERT_OK(msrt_session_run(session, nullptr));
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_INPUT, 0, thousand));
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_INPUT, 1, nullptr));
  EXPECT_EQ(msrt_session_run(session, nullptr), MSRT_INVALID_ARGUMENT);
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_INPUT, 1, two));
  MSRT_ASSERT_OK(msrt_session_run(session, nullptr));
  EXPECT_EQ(OutputOf(session, 0), std::vector<float>(1000, 3));
  EXPECT_EQ(OutputOf(session, 1), (std::vector<float>{-1, -2}));
  msrt_tensor_destroy(two);
  msrt_tensor_destroy(thousand);
  msrt_session_destroy(session);
}

TEST(SessionMemory, StateThatCannotGrowKeepsItsValue) {
  CountingAllocator allocator;
  const msrt_runtime_config config = allocator.Config();
  msrt_runtime* runtime = nullptr;
  MSRT_ASSERT_OK(msrt_runtime_create(&config, &runtime));
  msrt_graph* graph = nullptr;
  MSRT_ASSERT_OK(msrt_graph_create(runtime, "g", &graph));
  msrt_tensor* initial = FloatTensor(runtime, {2}, {5, 6});
  const msrt_tensor_info info = InfoOf(MSRT_F32, {-1}, "memory");
  int64_t slot = 0;
  MSRT_ASSERT_OK(msrt_graph_add_state(graph, "memory", &info, initial, &slot));
  const int64_t open = -1;
  MSRT_ASSERT_OK(msrt_graph_add_output(
      graph, AddNode(graph, "StateRead", "read", {}, StateReadAttrs(&slot, &open), "msrt"),
      nullptr));
  msrt_session* session = SessionOf(Compiled(graph));
  msrt_tensor* large = FloatTensor(runtime, {64}, std::vector<float>(64, 7));
  allocator.calls = 0;
  allocator.fail_at = 1;
  EXPECT_EQ(msrt_session_state_write(session, 0, large), MSRT_OUT_OF_MEMORY);
  allocator.fail_at = 0;
  MSRT_ASSERT_OK(msrt_session_run(session, nullptr));
  EXPECT_EQ(OutputOf(session, 0), (std::vector<float>{5, 6}));
  MSRT_ASSERT_OK(msrt_session_state_write(session, 0, large));
  MSRT_ASSERT_OK(msrt_session_run(session, nullptr));
  EXPECT_EQ(OutputOf(session, 0), std::vector<float>(64, 7));
  msrt_tensor_destroy(initial);
  msrt_tensor_destroy(large);
  msrt_session_destroy(session);
  msrt_runtime_destroy(runtime);
}

// total += x; y = total. The slot has the role.
msrt_graph* TotalGraph(msrt_runtime* runtime, msrt_state_role role) {
  msrt_graph* graph = nullptr;
  MSRT_EXPECT_OK(msrt_graph_create(runtime, "total", &graph));
  const msrt_tensor_info input = InfoOf(MSRT_F32, {2}, "x");
  msrt_value x = MSRT_NO_VALUE;
  MSRT_EXPECT_OK(msrt_graph_add_input(graph, &input, &x));
  msrt_tensor* initial = FloatTensor(runtime, {2}, {10, 20});
  msrt_tensor_info info = InfoOf(MSRT_F32, {2}, nullptr);
  info.state_role = role;
  int64_t slot = -1;
  MSRT_EXPECT_OK(msrt_graph_add_state(graph, "total", &info, initial, &slot));
  msrt_tensor_destroy(initial);
  const int64_t dims[] = {2};
  const std::vector<msrt_attr> read = StateReadAttrs(&slot, dims), write = {read[0]};
  const msrt_value before = AddNode(graph, "StateRead", "before", {}, read, "msrt");
  const msrt_value sum = AddNode(graph, "Add", "sum", {before, x});
  AddNode(graph, "StateWrite", "write", {sum}, write, "msrt");
  MSRT_EXPECT_OK(msrt_graph_add_output(graph, sum, "y"));
  return graph;
}

TEST_F(SessionApi, StatesHaveRolesAndSessionsShareAllButCaches) {
  for (const msrt_state_role role :
       {MSRT_STATE_CACHE, MSRT_STATE_PARAMETER, MSRT_STATE_OPTIMIZER, MSRT_STATE_STATISTIC}) {
    msrt_model* model = Compiled(TotalGraph(runtime_, role));
    msrt_session *first = nullptr, *second = nullptr;
    MSRT_ASSERT_OK(msrt_session_create(model, nullptr, nullptr, &first));
    msrt_session_config config = MSRT_INIT(msrt_session_config);
    config.share_state = first;
    MSRT_ASSERT_OK(msrt_session_create(model, nullptr, &config, &second));
    msrt_model_destroy(model);
    msrt_tensor_info info = MSRT_INIT(msrt_tensor_info);
    MSRT_ASSERT_OK(msrt_session_state_info(second, 0, &info));
    EXPECT_EQ(info.state_role, role);
    EXPECT_STREQ(info.name, "total");
    EXPECT_EQ(RunFloats(first, {2}, {1, 1}), (std::vector<float>{11, 21}));
    const bool shared = role != MSRT_STATE_CACHE;
    EXPECT_EQ(RunFloats(second, {2}, {1, 1}),
              shared ? (std::vector<float>{12, 22}) : (std::vector<float>{11, 21}));
    msrt_session_destroy(first);
    EXPECT_EQ(RunFloats(second, {2}, {1, 1}),
              shared ? (std::vector<float>{13, 23}) : (std::vector<float>{12, 22}));
    msrt_session_destroy(second);
  }
}

TEST_F(SessionApi, SharedStateMustBeOfTheSameModel) {
  msrt_model *model = Compiled(TotalGraph(runtime_, MSRT_STATE_PARAMETER)),
             *other = Compiled(TotalGraph(runtime_, MSRT_STATE_PARAMETER));
  msrt_session *session = nullptr, *sharing = nullptr;
  MSRT_ASSERT_OK(msrt_session_create(other, nullptr, nullptr, &session));
  msrt_session_config config = MSRT_INIT(msrt_session_config);
  config.share_state = session;
  EXPECT_EQ(msrt_session_create(model, nullptr, &config, &sharing), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("same model"), std::string::npos);
  msrt_session_destroy(session);
  EXPECT_EQ(msrt_session_create(model, nullptr, &config, &sharing), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("config.share_state"), std::string::npos);
  msrt_model_destroy(model);
  msrt_model_destroy(other);
}

// plus = x + 1, minus = -x: the first is written before x is read for the last time.
TEST_F(SessionApi, ResultsCanBeInputsOfTheSameSession) {
  msrt_graph* graph = nullptr;
  MSRT_ASSERT_OK(msrt_graph_create(runtime_, "g", &graph));
  const msrt_tensor_info info = InfoOf(MSRT_F32, {2}, "x");
  msrt_value x = 0, one = 0;
  msrt_tensor* ones = FloatTensor(runtime_, {2}, {1, 1});
  MSRT_ASSERT_OK(msrt_graph_add_input(graph, &info, &x));
  MSRT_ASSERT_OK(msrt_graph_add_constant(graph, "one", ones, &one));
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, AddNode(graph, "Add", "plus", {x, one}), nullptr));
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, AddNode(graph, "Neg", "minus", {x}), nullptr));
  msrt_session* session = SessionOf(Compiled(graph));
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_INPUT, 0, ones));
  msrt_tensor_destroy(ones);
  for (float step = 2; step < 6; ++step) {
    MSRT_ASSERT_OK(msrt_session_run(session, nullptr));
    EXPECT_EQ(OutputOf(session, 0), (std::vector<float>{step, step}));
    EXPECT_EQ(OutputOf(session, 1), (std::vector<float>{1 - step, 1 - step}));
    msrt_tensor* result = nullptr;
    MSRT_ASSERT_OK(msrt_session_output(session, 0, &result));
    MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_INPUT, 0, result));
    msrt_tensor_destroy(result);
  }
  msrt_session_destroy(session);
}

TEST(SessionTurns, CancellationAndDeadlineActWhileWaitingForATurn) {
  Orders orders;
  msrt_runtime* runtime = RuntimeWithThreads(1);
  Register(runtime, &orders, "Ones", 1, RunOnes);
  msrt_session *slow = SessionOfOp(runtime, "Ones", "test"),
               *quick = SessionOfOp(runtime, "Neg", "");
  orders.wait = true;
  std::thread at_work([&] { MSRT_EXPECT_OK(msrt_session_run(slow, nullptr)); });
  while (orders.waiting == 0) std::this_thread::yield();
  msrt_run_config soon = MSRT_INIT(msrt_run_config);
  soon.timeout_us = 2000;
  EXPECT_EQ(msrt_session_run(quick, &soon), MSRT_DEADLINE_EXCEEDED) << msrt_error_message();
  std::atomic<bool> stopped{false};
  std::thread waiting([&] {
    EXPECT_EQ(msrt_session_run(quick, nullptr), MSRT_CANCELLED) << msrt_error_message();
    stopped = true;
  });
  while (!stopped) {  // before the run has begun, there is nothing to cancel
    MSRT_ASSERT_OK(msrt_session_cancel(quick));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  waiting.join();
  EXPECT_EQ(orders.waiting, 1) << "the other is still at work";
  orders.wait = false;
  at_work.join();
  MSRT_ASSERT_OK(msrt_session_run(quick, nullptr));
  EXPECT_EQ(OutputOf(quick, 0), (std::vector<float>{-3, -4}));
  msrt_session_destroy(slow);
  msrt_session_destroy(quick);
  msrt_runtime_destroy(runtime);
}

TEST(SessionTurns, KernelTasksCanRunModels) {
  for (int32_t threads : {1, 2}) {
    Orders orders;
    msrt_runtime *runtime = RuntimeWithThreads(threads), *other = RuntimeWithThreads(threads);
    Register(runtime, &orders, "RunsInner", 1, RunInnerInATask);
    msrt_session* outer = SessionOfOp(runtime, "RunsInner", "test");
    for (msrt_runtime* of_inner : {runtime, other}) {
      orders.inner = SessionOfOp(of_inner, "Neg", "");
      MSRT_ASSERT_OK(msrt_session_run(outer, nullptr));
      EXPECT_EQ(orders.inner_status, MSRT_OK);
      EXPECT_EQ(OutputOf(orders.inner, 0), (std::vector<float>{-3, -4}));
      msrt_session_destroy(orders.inner);
    }
    // Nested twice: a kernel of the first runtime runs a model of the second, whose kernel runs a
    // model of the first.
    Orders there;
    Register(other, &there, "RunsInner", 1, RunInnerInATask);
    there.inner = SessionOfOp(runtime, "Neg", "");
    orders.inner = SessionOfOp(other, "RunsInner", "test");
    MSRT_ASSERT_OK(msrt_session_run(outer, nullptr));
    EXPECT_EQ(orders.inner_status, MSRT_OK);
    EXPECT_EQ(there.inner_status, MSRT_OK);
    EXPECT_EQ(OutputOf(there.inner, 0), (std::vector<float>{-3, -4}));
    msrt_session_destroy(there.inner);
    msrt_session_destroy(orders.inner);
    msrt_session_destroy(outer);
    msrt_runtime_destroy(runtime);
    msrt_runtime_destroy(other);
  }
}

}  // namespace
}  // namespace msrt::testing

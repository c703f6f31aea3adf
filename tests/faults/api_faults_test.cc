// Out of memory through the C API: every allocation of a load, a session and a run fails, from the
// application's allocator and from the heap, once and from then on. Each failure returns an error,
// leaks nothing, and the next try succeeds.
#include <cstring>

#include "core/api/api_testing.h"
#include "tests/faults/failing_heap.h"
#include "tests/faults/small_cnn.h"

namespace msrt::testing {
namespace {

struct Use {
  msrt_status status = MSRT_OK;  // the first error, or MSRT_OK
  bool heap_failed = false;
  std::vector<float> result;
};

// Runs load, session, input, run, output, state, reports. Failures of the heap end with the last
// call of the library.
Use UseEverything(msrt_runtime* runtime, const char* delegates) {
  msrt_model_config config = MSRT_INIT(msrt_model_config);
  config.copy_file = 1;  // into the runtime's memory
  config.delegates = delegates;
  msrt_model* model = nullptr;
  msrt_session *session = nullptr, *clone = nullptr;
  msrt_tensor *input = nullptr, *output = nullptr, *state = nullptr;
  void *data = nullptr, *managed = nullptr;
  const char* text = nullptr;
  static const std::vector<float> values = SmallCnnInput();
  const auto use = [&]() -> msrt_status {
    if (const msrt_status s =
            msrt_model_load_file(runtime, SmallCnnFile().c_str(), &config, &model))
      return s;
    if (const msrt_status s = msrt_model_info_json(model, &text)) return s;
    if (const msrt_status s = msrt_session_create(model, "main", nullptr, &session)) return s;
    if (const msrt_status s =
            msrt_session_input(session, 0, std::size(kSmallCnnDims), kSmallCnnDims, &input))
      return s;
    if (const msrt_status s = msrt_tensor_data(input, &data)) return s;
    std::memcpy(data, values.data(), values.size() * sizeof(float));
    if (const msrt_status s = msrt_session_run(session, nullptr)) return s;
    if (const msrt_status s = msrt_session_output(session, 0, &output)) return s;
    if (const msrt_status s = msrt_session_state_read(session, 0, &state)) return s;
    if (const msrt_status s = msrt_session_clone(session, &clone)) return s;
    if (const msrt_status s = msrt_session_report(session, MSRT_REPORT_PLAN, &text)) return s;
    return msrt_tensor_to_dlpack(state, &managed);
  };
  Use done;
  done.status = use();
  done.heap_failed = StopFailingHeap();
  if (done.status == MSRT_OK) done.result = FloatsOf(output);
  if (managed != nullptr) {
    msrt_tensor* back = nullptr;
    MSRT_EXPECT_OK(msrt_tensor_from_dlpack(runtime, managed, &back));
    msrt_tensor_destroy(back);
  }
  msrt_session_destroy(session);
  msrt_session_destroy(clone);
  msrt_model_destroy(model);
  msrt_tensor_destroy(input);
  msrt_tensor_destroy(output);
  msrt_tensor_destroy(state);
  return done;
}

class ApiFaults : public ::testing::TestWithParam<bool> {};  // whether a failure lasts
INSTANTIATE_TEST_SUITE_P(Faults, ApiFaults, ::testing::Bool(), [](const auto& lasts) {
  return std::string(lasts.param ? "FromThenOn" : "Once");
});

TEST_P(ApiFaults, EveryAllocationByTheApplicationsAllocatorMayFail) {
  CountingAllocator allocator;
  const msrt_runtime_config config = allocator.Config();
  msrt_runtime* runtime = nullptr;
  MSRT_ASSERT_OK(msrt_runtime_create(&config, &runtime));
  const Use right = UseEverything(runtime, nullptr);
  MSRT_ASSERT_OK(right.status);
  allocator.fails_from_then_on = GetParam();
  int64_t failures = 0;
  for (int64_t n = 1;; ++n) {
    ASSERT_LT(n, 1000);
    allocator.calls = 0;
    allocator.fail_at = n;
    const Use use = UseEverything(runtime, nullptr);
    const bool reached = allocator.calls >= n;
    allocator.fail_at = 0;
    EXPECT_EQ(allocator.blocks, 0) << "after a failure of allocation " << n;
    if (use.status == MSRT_OK) {
      EXPECT_TRUE(Close(use.result, right.result));
      if (!reached) break;
      continue;  // a delegate that fails to compile is left out
    }
    EXPECT_EQ(use.status, MSRT_OUT_OF_MEMORY) << msrt_error_message();
    EXPECT_STRNE(msrt_error_message(), "");
    ++failures;
    const Use again = UseEverything(runtime, nullptr);
    ASSERT_EQ(again.status, MSRT_OK) << msrt_error_message();
    EXPECT_TRUE(Close(again.result, right.result));
  }
  EXPECT_GT(failures, 3);
  msrt_runtime_destroy(runtime);
  EXPECT_EQ(allocator.blocks, 0);
}

TEST_P(ApiFaults, FailedRunLeavesTheSessionUnchanged) {
  CountingAllocator allocator;
  const msrt_runtime_config config = allocator.Config();
  msrt_runtime* runtime = nullptr;
  MSRT_ASSERT_OK(msrt_runtime_create(&config, &runtime));
  msrt_session* session = SessionOf(Compiled(CounterGraph(runtime)));
  const std::vector<float> expected = RunFloats(session, {2}, {1, 2}, 1);
  EXPECT_EQ(expected, (std::vector<float>{11, 22}));
  allocator.fails_from_then_on = GetParam();
  for (int64_t n = 1;; ++n) {
    ASSERT_LT(n, 1000);
    MSRT_ASSERT_OK(msrt_session_trim(session));
    MSRT_ASSERT_OK(msrt_session_state_reset(session, 0));
    allocator.calls = 0;
    allocator.fail_at = n;
    const msrt_status status = msrt_session_run(session, nullptr);
    allocator.fail_at = 0;
    if (status == MSRT_OK) break;
    EXPECT_EQ(status, MSRT_OUT_OF_MEMORY);
    EXPECT_EQ(RunFloats(session, {2}, {1, 2}, 1), expected)
        << "after a failure of allocation " << n;
  }
  msrt_session_destroy(session);
  msrt_runtime_destroy(runtime);
}

// Every run has a new shape, so that it binds again; and is repeated at once, with the memory that
// the failure left.
TEST_P(ApiFaults, RunCanBeRepeatedAfterAHeapFailure) {
  msrt_runtime* runtime = nullptr;
  MSRT_ASSERT_OK(msrt_runtime_create(nullptr, &runtime));
  msrt_model_config config = MSRT_INIT(msrt_model_config);
  config.delegates = "reference";
  msrt_graph* graph = SmallGraph(runtime);
  msrt_model* model = nullptr;
  MSRT_ASSERT_OK(msrt_graph_compile(graph, &config, &model));
  msrt_graph_destroy(graph);
  msrt_session* session = SessionOf(model);
  int64_t failures = 0;
  for (int64_t n = 1;; ++n) {
    ASSERT_LT(n, 10000);
    const std::vector<float> x(static_cast<size_t>(3 * n), 2);
    msrt_tensor* input = FloatTensor(runtime, {n, 3}, x);
    MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_INPUT, 0, input));
    msrt_tensor_destroy(input);
    FailHeap(n, GetParam());
    const msrt_status status = msrt_session_run(session, nullptr);
    const bool failed = StopFailingHeap();
    if (!failed) {
      MSRT_EXPECT_OK(status);
      break;
    }
    ASSERT_EQ(status, MSRT_OUT_OF_MEMORY)
        << "after a failure of new " << n << ": " << msrt_error_message();
    EXPECT_EQ(RunFloats(session, {n, 3}, x), SmallResult(x)) << "after a failure of new " << n;
    ++failures;
  }
  EXPECT_GT(failures, 10);
  msrt_session_destroy(session);
  msrt_runtime_destroy(runtime);
}

// On reference alone: other libraries handle failures of their allocations in their own way.
TEST_P(ApiFaults, EveryAllocationFromTheHeapMayFail) {
  SmallCnnFile();
  int64_t failures = 0;
  for (int64_t n = 1;; ++n) {
    ASSERT_LT(n, 100000);
    CountingAllocator allocator;
    const msrt_runtime_config config = allocator.Config();
    msrt_runtime* runtime = nullptr;
    FailHeap(n, GetParam());
    Use use;
    use.status = msrt_runtime_create(&config, &runtime);
    use.heap_failed = true;
    if (use.status == MSRT_OK) use = UseEverything(runtime, "reference");
    StopFailingHeap();
    msrt_runtime_destroy(runtime);
    ASSERT_EQ(allocator.blocks, 0) << "after a failure of new " << n;
    if (!use.heap_failed) {
      MSRT_EXPECT_OK(use.status);
      break;
    }
    ASSERT_EQ(use.status, MSRT_OUT_OF_MEMORY)
        << "after a failure of new " << n << ": " << msrt_error_message();
    ASSERT_STRNE(msrt_error_message(), "");
    ASSERT_NE(std::string(msrt_error_json()).find("\"function\": \"msrt_"), std::string::npos)
        << msrt_error_json();
    ++failures;
  }
  EXPECT_GT(failures, 100);
}

}  // namespace
}  // namespace msrt::testing

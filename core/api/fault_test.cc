// Memory that runs out: at every single allocation of a load, a session and a run, from the application's allocator and from the heap.
// Each failure is an error, leaks nothing, and the next try works.
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <new>

#include "core/api/api_testing.h"

namespace {

// Calls of operator new on any thread (a run happens on the team's leader) until one fails; not positive: none fails.
std::atomic<int64_t> news_left{-1};
bool heap_failed = false;  // in the last use of everything

void* TryNew(size_t bytes, size_t alignment) noexcept {
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return alignment <= alignof(std::max_align_t) ? std::malloc(bytes == 0 ? 1 : bytes) : std::aligned_alloc(alignment, rounded);
}

void* CountedNew(size_t bytes, size_t alignment) {
  void* pointer = news_left > 0 && news_left.fetch_sub(1) == 1 ? nullptr : TryNew(bytes, alignment);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

}  // namespace

// These pairs do match: all of them are malloc and free underneath, which the compiler cannot know where it inlines only one side.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(size_t bytes) { return CountedNew(bytes, 1); }
void* operator new[](size_t bytes) { return CountedNew(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment) { return CountedNew(bytes, static_cast<size_t>(alignment)); }
void* operator new[](size_t bytes, std::align_val_t alignment) { return CountedNew(bytes, static_cast<size_t>(alignment)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return TryNew(bytes, 1); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return TryNew(bytes, 1); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }

namespace msrt::testing {
namespace {

const char* SavedCounter() {
  static const std::string path = ::testing::TempDir() + "api_fault.msrt";
  msrt_runtime* runtime = nullptr;
  MSRT_EXPECT_OK(msrt_runtime_create(nullptr, &runtime));
  msrt_graph* graph = CounterGraph(runtime);
  MSRT_EXPECT_OK(msrt_graph_save(graph, path.c_str()));
  msrt_graph_destroy(graph);
  msrt_runtime_destroy(runtime);
  return path.c_str();
}

// Load, session, input, run, output, state, reports: the first error, or MSRT_OK. Heap failures end with the last call of the library.
msrt_status UseEverything(msrt_runtime* runtime, const char* path) {
  msrt_model_config config = MSRT_INIT(msrt_model_config);
  config.copy_file = 1;  // into the runtime's memory
  msrt_model* model = nullptr;
  msrt_session *session = nullptr, *clone = nullptr;
  msrt_tensor *input = nullptr, *output = nullptr, *state = nullptr;
  void *data = nullptr, *managed = nullptr;
  const char* text = nullptr;
  const int64_t dims[] = {2};
  const auto use = [&]() -> msrt_status {
    if (const msrt_status s = msrt_model_load_file(runtime, path, &config, &model)) return s;
    if (const msrt_status s = msrt_model_info_json(model, &text)) return s;
    if (const msrt_status s = msrt_session_create(model, "main", nullptr, &session)) return s;
    if (const msrt_status s = msrt_session_input(session, 0, 1, dims, &input)) return s;
    if (const msrt_status s = msrt_tensor_data(input, &data)) return s;
    static_cast<float*>(data)[0] = static_cast<float*>(data)[1] = 1;
    if (const msrt_status s = msrt_session_run(session, nullptr)) return s;
    if (const msrt_status s = msrt_session_output(session, 1, &output)) return s;
    if (const msrt_status s = msrt_session_state_read(session, 0, &state)) return s;
    if (const msrt_status s = msrt_session_clone(session, &clone)) return s;
    if (const msrt_status s = msrt_session_report_json(session, MSRT_REPORT_PLAN, &text)) return s;
    return msrt_tensor_to_dlpack(state, &managed);
  };
  const msrt_status status = use();
  heap_failed = news_left == 0;
  news_left = -1;
  if (status == MSRT_OK) {
    EXPECT_EQ(FloatsOf(output), (std::vector<float>{11, 21}));
  }
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
  return status;
}

TEST(ApiFaults, EveryAllocationOfTheApplicationsMayFail) {
  const char* path = SavedCounter();
  CountingAllocator allocator;
  const msrt_runtime_config config = allocator.Config();
  msrt_runtime* runtime = nullptr;
  MSRT_ASSERT_OK(msrt_runtime_create(&config, &runtime));
  int64_t failures = 0;
  for (int64_t n = 1;; ++n) {
    ASSERT_LT(n, 1000);
    allocator.calls = 0;
    allocator.fail_at = n;
    const msrt_status status = UseEverything(runtime, path);
    EXPECT_EQ(allocator.blocks, 0) << "after a failure of allocation " << n;
    if (status == MSRT_OK) break;
    EXPECT_EQ(status, MSRT_OUT_OF_MEMORY) << msrt_error_message();
    EXPECT_STRNE(msrt_error_message(), "");
    ++failures;
    allocator.fail_at = 0;
    ASSERT_EQ(UseEverything(runtime, path), MSRT_OK) << msrt_error_message();
  }
  EXPECT_GT(failures, 3);
  msrt_runtime_destroy(runtime);
  EXPECT_EQ(allocator.blocks, 0);
}

TEST(ApiFaults, AFailedRunLeavesTheSessionAsItWas) {
  CountingAllocator allocator;
  const msrt_runtime_config config = allocator.Config();
  msrt_runtime* runtime = nullptr;
  MSRT_ASSERT_OK(msrt_runtime_create(&config, &runtime));
  msrt_session* session = SessionOf(Compiled(CounterGraph(runtime)));
  const std::vector<float> expected = RunFloats(session, {2}, {1, 2}, 1);
  EXPECT_EQ(expected, (std::vector<float>{11, 22}));
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
    EXPECT_EQ(RunFloats(session, {2}, {1, 2}, 1), expected) << "after a failure of allocation " << n;
  }
  msrt_session_destroy(session);
  msrt_runtime_destroy(runtime);
}

TEST(ApiFaults, EveryAllocationFromTheHeapMayFail) {
  const char* path = SavedCounter();
  int64_t failures = 0;
  for (int64_t n = 1;; ++n) {
    ASSERT_LT(n, 100000);
    CountingAllocator allocator;
    const msrt_runtime_config config = allocator.Config();
    msrt_runtime* runtime = nullptr;
    news_left = n;
    msrt_status status = msrt_runtime_create(&config, &runtime);
    heap_failed = true;
    if (status == MSRT_OK) status = UseEverything(runtime, path);
    news_left = -1;
    msrt_runtime_destroy(runtime);
    ASSERT_EQ(allocator.blocks, 0) << "after a failure of new " << n;
    if (!heap_failed) {
      MSRT_EXPECT_OK(status);
      break;
    }
    ASSERT_EQ(status, MSRT_OUT_OF_MEMORY) << "after a failure of new " << n << ": " << msrt_error_message();
    ASSERT_STRNE(msrt_error_message(), "");
    ASSERT_STRNE(msrt_error_json(), "");
    ++failures;
  }
  EXPECT_GT(failures, 100);
}

}  // namespace
}  // namespace msrt::testing

// Shared parts of the C API tests: small graphs built through the API, and a counting allocator.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/abi/msrt.h"

#define MSRT_ASSERT_OK(expression) ASSERT_EQ((expression), MSRT_OK) << msrt_error_message()
#define MSRT_EXPECT_OK(expression) EXPECT_EQ((expression), MSRT_OK) << msrt_error_message()

namespace msrt::testing {

// Counts allocated blocks and bytes, and fails on demand.
struct CountingAllocator {
  std::atomic<int64_t> blocks{0}, bytes{0}, calls{0};
  std::atomic<int64_t> fail_at{0};  // the number of the call that fails, from 1; 0: none
  std::atomic<bool> fails_from_then_on{false};  // and all after it

  static void* Allocate(void* user, size_t size, size_t alignment);
  static void Deallocate(void* user, void* pointer, size_t size, size_t alignment);
  // Returns a config that uses this allocator.
  msrt_runtime_config Config();
};

msrt_tensor_info InfoOf(msrt_dtype dtype, const std::vector<int64_t>& dims, const char* name);

// A tensor with a copy of the values.
msrt_tensor* FloatTensor(msrt_runtime* runtime, const std::vector<int64_t>& dims,
                         const std::vector<float>& values);
std::vector<float> FloatsOf(msrt_tensor* tensor);

// Adds an ONNX node with one output. Fails the test if the node is refused.
msrt_value AddNode(msrt_graph* graph, const char* op, const char* name,
                   std::vector<msrt_value> inputs, std::vector<msrt_attr> attrs = {},
                   const char* domain = nullptr);

// y = relu(x + 1) * x, x: f32[n, 3].
msrt_graph* SmallGraph(msrt_runtime* runtime);
std::vector<float> SmallResult(const std::vector<float>& x);
// Attributes of a StateRead of f32[*dim]; the first one is that of a StateWrite. The numbers are
// read when the node is added.
std::vector<msrt_attr> StateReadAttrs(const int64_t* slot, const int64_t* dim);
// before, after = counter, counter += x; counter: f32[2] that starts as {10, 20}.
msrt_graph* CounterGraph(msrt_runtime* runtime);
// A graph of many short steps: `steps` products with a matrix of `extent` rows.
msrt_graph* LongGraph(msrt_runtime* runtime, int64_t extent, int steps);

msrt_model* Compiled(msrt_graph* graph);
msrt_session* SessionOf(msrt_model* model);
// Binds x, runs, and returns output `index`. On an error it returns an empty vector and sets
// `status`, or fails the test without one.
std::vector<float> RunFloats(msrt_session* session, const std::vector<int64_t>& dims,
                             const std::vector<float>& x, size_t index = 0,
                             msrt_status* status = nullptr);

}  // namespace msrt::testing

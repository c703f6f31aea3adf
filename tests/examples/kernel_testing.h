// Shared by the tests of kernels: kernels defined in the tests, graphs of one node, and runs of a
// kernel without a model.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/abi/msrt_plugin.h"
#include "core/api/api_testing.h"
#include "core/extend/plugin.h"
#include "ops/op_def.h"

namespace msrt::testing {

// Owns a runtime.
class RuntimeOwner {
 public:
  RuntimeOwner();
  ~RuntimeOwner() { msrt_runtime_destroy(runtime_); }
  RuntimeOwner(const RuntimeOwner&) = delete;
  RuntimeOwner& operator=(const RuntimeOwner&) = delete;
  operator msrt_runtime*() const { return runtime_; }  // NOLINT: it is one

 private:
  msrt_runtime* runtime_ = nullptr;
};

std::string ExamplePath(const std::string& name);  // "custom_op"

// Returns a description that lacks only run, for an op with one input, one output of the same type,
// and no attributes.
msrt_kernel_desc KernelFor(const char* op, const char* name, const char* domain = "com.example");
msrt_op_desc SameTypeMeaning();
// A kernel that copies input 0 and adds 1 to each f32.
msrt_status AddOne(void* user, const void* packed, const msrt_kernel_args* args);

// y = op(x), x: f32[dims] with -1 where open; further inputs are constants.
struct OneNode {
  const char* domain = "com.example";
  const char* op = "AddOne";
  std::vector<int64_t> dims = {4};
  std::vector<msrt_attr> attrs = {};
  std::vector<msrt_tensor*> constants = {};
  const msrt_tensor_info* output_types = nullptr;
};
msrt_status MakeGraph(msrt_runtime* runtime, const OneNode& node, msrt_graph** out);
// Null after an error, whose text is msrt_error_message().
msrt_model* MakeModel(msrt_runtime* runtime, const OneNode& node,
                      const msrt_model_config* config = nullptr);
// Returns the placement report of a session as text.
std::string PlanOf(msrt_session* session);
// Runs once, on x, and destroys the model.
std::vector<float> RunOnce(msrt_model* model, const std::vector<int64_t>& dims,
                           const std::vector<float>& x);

bool Says(const char* part);  // in msrt_error_message()

// A runtime, and an op to register with it.
class Kernels : public ::testing::Test {
 protected:
  // AddOne as a user-defined op.
  msrt_status RegisterAddOne(
      const std::function<void(msrt_kernel_desc&, msrt_op_desc&)>& change = {}) {
    msrt_op_desc meaning = SameTypeMeaning();
    msrt_kernel_desc kernel = KernelFor("AddOne", "add one");
    kernel.meaning = &meaning;
    kernel.run = AddOne;
    kernel.arithmetic = MSRT_ARITHMETIC_ROUNDED;
    if (change) change(kernel, meaning);
    return msrt_runtime_register_kernel(runtime, &kernel);
  }
  std::vector<float> Run(const msrt_model_config* config = nullptr) {
    return RunOnce(MakeModel(runtime, {}, config), {4}, {1, 2, 3, 4});
  }
  RuntimeOwner runtime;
  const std::vector<float> plus_one = {2, 3, 4, 5};
};

// Runs the kernel on one node, without placement.
Result<ConstTensor> RunKernel(const RegisteredKernel& kernel, const OpDef& def,
                              const AttrList& attrs, const std::vector<ConstTensor>& inputs,
                              const std::vector<bool>& constant);

std::vector<float> Ramp(int64_t count);  // numbers that differ, from -1 to 1
std::vector<float> FloatsIn(const ConstTensor& tensor);

}  // namespace msrt::testing

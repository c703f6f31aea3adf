// Kernels whose callbacks fail, throw or return wrong types.
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>

#include "tests/examples/kernel_testing.h"

namespace msrt::testing {
namespace {

struct Lie {
  msrt_dtype dtype;
  int32_t rank;
  int64_t dim;
  const char* message;
};

TEST_F(Kernels, ResultsOfInferAreChecked) {
  static Lie lie;
  MSRT_ASSERT_OK(RegisterAddOne([](msrt_kernel_desc&, msrt_op_desc& m) {
    m.infer = [](void*, const msrt_host_api*, const msrt_node_view*,
                 msrt_shape* outputs) -> msrt_status {
      outputs[0].dtype = lie.dtype;
      outputs[0].rank = lie.rank;
      for (int64_t& d : outputs[0].dims) d = lie.dim;
      return MSRT_OK;
    };
  }));
  const int64_t huge = int64_t{1} << 60;
  for (const Lie& l :
       {Lie{0, 1, 4, "element type 0"}, Lie{21, 1, 4, "element type 21"},
        Lie{-5, 1, 4, "element type -5"}, Lie{MSRT_F32, 9, 4, "rank 9"},
        Lie{MSRT_F32, -2, 4, "rank -2"}, Lie{MSRT_F32, INT32_MAX, 4, "rank 2147483647"},
        Lie{MSRT_F32, 1, -2, "dims[0] = -2"},
        Lie{MSRT_F32, 2, INT64_MIN, "dims[0] = -9223372036854775808"},
        Lie{MSRT_F32, 2, -1 - huge, "dims[0]"}, Lie{MSRT_F32, 1, huge, "2^56"},
        Lie{MSRT_F32, 8, huge, "2^56"}}) {
    lie = l;
    EXPECT_EQ(MakeModel(runtime, {}), nullptr) << l.message;
    EXPECT_TRUE(Says(l.message) && Says("the_node") && Says("com.example.AddOne"))
        << msrt_error_message();
  }
  // It must agree with the declarations of the model.
  lie = {MSRT_F32, 1, 4, ""};
  const msrt_tensor_info declared = InfoOf(MSRT_F32, {5}, nullptr);
  OneNode node;
  node.output_types = &declared;
  EXPECT_EQ(MakeModel(runtime, node), nullptr);
  EXPECT_TRUE(Says("dim 0")) << msrt_error_message();
  EXPECT_EQ(Run(), plus_one);
}

// Kernels are compiled for the types that the rule returned at load, so it must not return others
// later.
TEST_F(Kernels, InferMustNotChangeItsResult) {
  static std::atomic<int> mode;
  mode = 0;
  MSRT_ASSERT_OK(RegisterAddOne([](msrt_kernel_desc&, msrt_op_desc& m) {
    m.infer = [](void*, const msrt_host_api*, const msrt_node_view* node,
                 msrt_shape* outputs) -> msrt_status {
      outputs[0] = node->inputs[0].declared;
      if (mode == 1) outputs[0].dtype = MSRT_F64;
      if (mode == 2) outputs[0].rank = 2, outputs[0].dims[1] = 1 << 20;
      if (mode == 3) outputs[0].rank = -1;
      return MSRT_OK;
    };
  }));
  OneNode node;
  node.dims = {-1};
  msrt_model* model = MakeModel(runtime, node);
  ASSERT_NE(model, nullptr) << msrt_error_message();
  msrt_session* session = SessionOf(model);
  msrt_model_destroy(model);
  msrt_status status = MSRT_OK;
  for (int changed : {1, 2, 3}) {
    mode = changed;
    const auto count = static_cast<size_t>(changed);
    RunFloats(session, {changed}, std::vector<float>(count), 0, &status);
    EXPECT_NE(status, MSRT_OK) << changed;
    EXPECT_TRUE(Says("the_node")) << msrt_error_message();
  }
  mode = 0;
  EXPECT_EQ(RunFloats(session, {4}, {1, 2, 3, 4}), plus_one);
  msrt_session_destroy(session);
}

TEST_F(Kernels, FailingCallbackIsNamed) {
  static msrt_status code;
  static bool speaks;
  MSRT_ASSERT_OK(RegisterAddOne([](msrt_kernel_desc&, msrt_op_desc& m) {
    m.infer = [](void*, const msrt_host_api* host, const msrt_node_view* node,
                 msrt_shape* outputs) -> msrt_status {
      outputs[0] = node->inputs[0].declared;
      if (code != MSRT_OK && speaks) host->fail(host->host, "I do not want to");
      return code;
    };
  }));
  code = MSRT_UNSUPPORTED, speaks = true;
  EXPECT_EQ(MakeModel(runtime, {}), nullptr);
  EXPECT_TRUE(Says("the_node") && Says("com.example.AddOne") &&
              Says("kernel 'add one': infer: I do not want to"))
      << msrt_error_message();
  speaks = false;
  EXPECT_EQ(MakeModel(runtime, {}), nullptr);
  EXPECT_TRUE(Says("failed without saying why (status 3)")) << msrt_error_message();
  code = 12345;
  EXPECT_EQ(MakeModel(runtime, {}), nullptr);
  EXPECT_TRUE(Says("status 12345")) << msrt_error_message();
}

TEST_F(Kernels, FailingRunIsNamedOrReplaced) {
  static msrt_status code;
  static bool speaks;
  msrt_kernel_desc kernel = KernelFor("Relu", "moody relu", nullptr);
  kernel.seconds = [](void*, const msrt_host_api*, const msrt_node_view*) { return 0.0; };
  kernel.run = [](void*, const void*, const msrt_kernel_args* args) -> msrt_status {
    if (speaks) args->host->fail(args->host->host, "not today");
    return code;
  };
  MSRT_ASSERT_OK(msrt_runtime_register_kernel(runtime, &kernel));
  OneNode node;
  node.domain = nullptr;
  node.op = "Relu";
  msrt_model* model = MakeModel(runtime, node);
  ASSERT_NE(model, nullptr) << msrt_error_message();
  msrt_session* session = SessionOf(model);
  msrt_model_destroy(model);
  msrt_status status = MSRT_OK;
  code = MSRT_INVALID_ARGUMENT, speaks = true;
  RunFloats(session, {4}, {-1, 2, -3, 4}, 0, &status);
  EXPECT_EQ(status, MSRT_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("the_node") && Says("Relu") && Says("kernel 'moody relu': not today"))
      << msrt_error_message();
  speaks = false;
  RunFloats(session, {4}, {-1, 2, -3, 4}, 0, &status);
  EXPECT_TRUE(Says("kernel 'moody relu': failed without saying why (status 1)"))
      << msrt_error_message();
  code = MSRT_DELEGATE;  // another kernel may run it
  EXPECT_EQ(RunFloats(session, {4}, {-1, 2, -3, 4}), (std::vector<float>{0, 2, 0, 4}));
  msrt_session_destroy(session);
}

TEST_F(Kernels, FailedPackingLeavesTheNodeToOthers) {
  static int packed, destroyed;
  packed = destroyed = 0;
  msrt_kernel_desc kernel = KernelFor("Relu", "cannot pack", nullptr);
  kernel.seconds = [](void*, const msrt_host_api*, const msrt_node_view*) { return 0.0; };
  kernel.run = AddOne;
  kernel.pack = [](void*, const msrt_host_api* host, const msrt_node_view*,
                   void** out) -> msrt_status {
    ++packed;
    *out = &packed;
    host->fail(host->host, "no room");
    return MSRT_DELEGATE;
  };
  kernel.packed_destroy = [](void*, void*) { ++destroyed; };
  MSRT_ASSERT_OK(msrt_runtime_register_kernel(runtime, &kernel));
  OneNode node;
  node.domain = nullptr;
  node.op = "Relu";
  EXPECT_EQ(RunOnce(MakeModel(runtime, node), {4}, {-1, 2, -3, 4}),
            (std::vector<float>{0, 2, 0, 4}));
  EXPECT_EQ(packed, 1);
  msrt_model_config config = MSRT_INIT(msrt_model_config);
  config.strict = 1;
  EXPECT_EQ(MakeModel(runtime, node, &config), nullptr);
  EXPECT_TRUE(Says("kernel 'cannot pack': no room") && Says("the_node")) << msrt_error_message();
  EXPECT_EQ(destroyed, 0) << "a failed call leaves nothing to destroy";
}

TEST_F(Kernels, CostsThatAreNotNumbersAreRefused) {
  static double seconds;
  msrt_kernel_desc kernel = KernelFor("Relu", "odd cost", nullptr);
  kernel.run = AddOne;
  kernel.seconds = [](void*, const msrt_host_api*, const msrt_node_view*) { return seconds; };
  MSRT_ASSERT_OK(msrt_runtime_register_kernel(runtime, &kernel));
  OneNode node;
  node.domain = nullptr;
  node.op = "Relu";
  for (double odd : {-1.0, std::nan(""), HUGE_VAL}) {
    seconds = odd;
    EXPECT_EQ(RunOnce(MakeModel(runtime, node), {4}, {-1, 2, -3, 4}),
              (std::vector<float>{0, 2, 0, 4}))
        << odd;
    msrt_model_config config = MSRT_INIT(msrt_model_config);
    config.delegates = "kernels";
    EXPECT_EQ(MakeModel(runtime, node, &config), nullptr) << odd;
    EXPECT_TRUE(Says("odd cost: its seconds are ")) << msrt_error_message();
  }
}

// A status code that a kernel may not return counts as its failure: another kernel replaces it, and
// the application sees no error.
TEST_F(Kernels, ReservedStatusCodeIsAFailureOfTheKernel) {
  static msrt_status code;
  msrt_kernel_desc kernel = KernelFor("Relu", "confused relu", nullptr);
  kernel.seconds = [](void*, const msrt_host_api*, const msrt_node_view*) { return 0.0; };
  kernel.run = [](void*, const void*, const msrt_kernel_args*) -> msrt_status { return code; };
  MSRT_ASSERT_OK(msrt_runtime_register_kernel(runtime, &kernel));
  OneNode node;
  node.domain = nullptr;
  node.op = "Relu";
  msrt_model_config config = MSRT_INIT(msrt_model_config);
  for (msrt_status odd : std::initializer_list<msrt_status>{MSRT_CANCELLED, MSRT_DEADLINE_EXCEEDED,
                                                            MSRT_INTERNAL, MSRT_UNSUPPORTED, -77}) {
    code = odd;
    config.strict = 0;
    EXPECT_EQ(RunOnce(MakeModel(runtime, node, &config), {4}, {-1, 2, -3, 4}),
              (std::vector<float>{0, 2, 0, 4}))
        << odd;
    config.strict = 1;
    msrt_model* model = MakeModel(runtime, node, &config);
    msrt_session* session = SessionOf(model);
    msrt_model_destroy(model);
    msrt_status status = MSRT_OK;
    RunFloats(session, {4}, {-1, 2, -3, 4}, 0, &status);
    EXPECT_EQ(status, MSRT_DELEGATE) << odd;
    EXPECT_TRUE(Says("kernel 'confused relu'") && Says("the_node")) << msrt_error_message();
    msrt_session_destroy(session);
  }
}

template <typename... Arguments>
msrt_status Boom(Arguments...) {
  throw std::runtime_error("boom");
}

// Callbacks must not throw. An exception counts as a failure of the kernel, which is left out, or
// named in the error if there is no alternative.
TEST_F(Kernels, ExceptionNamesTheKernel) {
  OneNode node;
  node.domain = nullptr;
  node.op = "Relu";
  const std::pair<const char*, std::function<void(msrt_kernel_desc&)>> rows[] = {
      {"wild: accepts: threw an exception: boom", [](msrt_kernel_desc& k) { k.accepts = Boom; }},
      {"wild: seconds: threw an exception: boom",
       [](msrt_kernel_desc& k) {
         k.seconds = [](void*, const msrt_host_api*, const msrt_node_view*) -> double {
           throw std::runtime_error("boom");
         };
       }},
      {"kernel 'wild': threw an exception: boom",
       [](msrt_kernel_desc& k) { k.pack = Boom, k.packed_destroy = [](void*, void*) {}; }},
      {"kernel 'wild': threw an exception: boom", [](msrt_kernel_desc& k) { k.run = Boom; }},
      {"a task of parallel_for: threw an exception: boom",
       [](msrt_kernel_desc& k) {
         k.run = [](void*, const void*, const msrt_kernel_args* args) {
           const auto task = [](void*, int64_t) { throw std::runtime_error("boom"); };
           return args->host->parallel_for(args->host->host, 8, task, nullptr);
         };
       }},
  };
  for (const auto& [text, change] : rows) {
    const RuntimeOwner own;
    msrt_kernel_desc kernel = KernelFor("Relu", "wild", nullptr);
    kernel.run = AddOne;
    kernel.seconds = [](void*, const msrt_host_api*, const msrt_node_view*) { return 0.0; };
    change(kernel);
    MSRT_ASSERT_OK(msrt_runtime_register_kernel(own, &kernel));
    EXPECT_EQ(RunOnce(MakeModel(own, node), {4}, {-1, 2, -3, 4}), (std::vector<float>{0, 2, 0, 4}))
        << text;
    msrt_model_config config = MSRT_INIT(msrt_model_config);
    config.delegates = "kernels";
    msrt_model* model = MakeModel(own, node, &config);
    if (model != nullptr) {
      msrt_session* session = SessionOf(model);
      msrt_model_destroy(model);
      msrt_status status = MSRT_OK;
      RunFloats(session, {4}, {-1, 2, -3, 4}, 0, &status);
      EXPECT_EQ(status, MSRT_DELEGATE) << text;
      msrt_session_destroy(session);
    }
    EXPECT_TRUE(Says(text) && Says("the_node")) << msrt_error_message();
  }
}

TEST_F(Kernels, RulesUseTheApplicationsLogAndMemory) {
  struct Counts {
    int lines = 0, blocks = 0;
  } counts;
  msrt_runtime_config config = MSRT_INIT(msrt_runtime_config);
  config.log_user = config.allocator_user = &counts;
  config.log = [](void* user, int32_t, const char* line) {
    static_cast<Counts*>(user)->lines += std::strcmp(line, "from infer") == 0;
  };
  config.allocate = [](void* user, size_t bytes, size_t alignment) {
    ++static_cast<Counts*>(user)->blocks;
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  };
  config.deallocate = [](void*, void* pointer, size_t, size_t) { std::free(pointer); };
  msrt_runtime* own = nullptr;
  MSRT_ASSERT_OK(msrt_runtime_create(&config, &own));
  static int used;
  used = 0;
  msrt_op_desc meaning = SameTypeMeaning();
  meaning.infer = [](void* user, const msrt_host_api* host, const msrt_node_view* node,
                     msrt_shape* outputs) -> msrt_status {
    outputs[0] = node->inputs[0].declared;
    const int before = static_cast<Counts*>(user)->blocks;
    host->deallocate(host->host, host->allocate(host->host, 64, 64), 64, 64);
    EXPECT_EQ(static_cast<Counts*>(user)->blocks, before + 1);
    host->log(host->host, MSRT_LOG_ERROR, "from infer");
    host->log(host->host, MSRT_LOG_ERROR, nullptr);
    return ++used, MSRT_OK;
  };
  msrt_kernel_desc kernel = KernelFor("AddOne", "talks");
  kernel.user = &counts;
  kernel.meaning = &meaning;
  kernel.run = [](void*, const void*, const msrt_kernel_args* args) -> msrt_status {
    args->host->log(args->host->host, MSRT_LOG_ERROR, nullptr);
    return AddOne(nullptr, nullptr, args);
  };
  MSRT_ASSERT_OK(msrt_runtime_register_kernel(own, &kernel));
  msrt_model* model = MakeModel(own, {});
  msrt_runtime_destroy(own);  // the model keeps its services alive
  EXPECT_EQ(RunOnce(model, {4}, {1, 2, 3, 4}), plus_one);
  EXPECT_GT(used, 0);
  EXPECT_EQ(counts.lines, used);
}

}  // namespace
}  // namespace msrt::testing

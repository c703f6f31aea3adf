// Many threads at once on one runtime, like in an application under load: sessions of one model,
// clones, models that are loaded and destroyed, delegates registered meanwhile, cancelled runs, out
// of memory. Every result must be right, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "core/abi/msrt_plugin.h"
#include "core/api/api_testing.h"

namespace msrt::testing {
namespace {

constexpr int kThreads = 8;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRuns = 40;
#else
constexpr int kRuns = 300;
#endif

// A small network with convolutions, so that onednn, layouts and conversions take part where they
// are built in.
msrt_graph* ConvGraph(msrt_runtime* runtime) {
  msrt_graph* graph = nullptr;
  MSRT_EXPECT_OK(msrt_graph_create(runtime, "conv", &graph));
  msrt_tensor_info info = InfoOf(MSRT_F32, {1, 8, MSRT_UNKNOWN_DIM, 10}, "x");
  msrt_value value = MSRT_NO_VALUE;
  MSRT_EXPECT_OK(msrt_graph_add_input(graph, &info, &value));
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (int layer = 0; layer < 3; ++layer) {
    std::vector<float> weights(8 * 8 * 3 * 3);
    for (float& w : weights) w = 0.1f * normal(random);
    msrt_tensor* data = FloatTensor(runtime, {8, 8, 3, 3}, weights);
    msrt_value w = MSRT_NO_VALUE;
    MSRT_EXPECT_OK(msrt_graph_add_constant(graph, nullptr, data, &w));
    msrt_tensor_destroy(data);
    static constexpr int64_t kPads[] = {1, 1, 1, 1};
    msrt_attr pads = {};
    pads.name = "pads";
    pads.kind = MSRT_ATTR_INTS;
    pads.count = 4;
    pads.ints = kPads;
    const msrt_value conv = AddNode(graph, "Conv", nullptr, {value, w}, {pads});
    value = AddNode(graph, "Relu", nullptr, {AddNode(graph, "Add", nullptr, {conv, value})});
  }
  MSRT_EXPECT_OK(msrt_graph_add_output(graph, AddNode(graph, "Sigmoid", nullptr, {value}), "y"));
  return graph;
}

std::vector<float> InputOf(unsigned seed, int64_t height) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(8 * height * 10));
  for (float& v : x) v = normal(random);
  return x;
}

// A registered object; counts its destruction.
struct Registered {
  std::string name;
  std::atomic<int>* ended;
};
msrt_status RefuseAll(void*, const msrt_host_api*, const msrt_graph_view* graph,
                      const msrt_query_sink* sink) {
  for (size_t n = 0; n < graph->node_count; ++n)
    sink->refuse(sink->sink, static_cast<uint32_t>(n), "it takes nothing");
  return MSRT_OK;
}
msrt_status RegisterRefuser(msrt_runtime* runtime, int number, std::atomic<int>* ended) {
  auto refuser =
      std::make_unique<Registered>(Registered{"refuser_" + std::to_string(number), ended});
  msrt_delegate_api api = MSRT_INIT(msrt_delegate_api);
  api.plugin_abi = MSRT_PLUGIN_ABI;
  api.name = refuser->name.c_str();
  api.query = RefuseAll;
  api.compile = [](void*, const msrt_host_api*, const msrt_graph_view*, const msrt_candidate*,
                   void**) -> msrt_status { return MSRT_DELEGATE; };
  api.kernel_destroy = [](void*, void*) {};
  api.bind = [](void*, const msrt_host_api*, void*, const msrt_bound_node*, size_t,
                void**) -> msrt_status { return MSRT_DELEGATE; };
  api.bound_destroy = [](void*, void*) {};
  api.run = [](void*, void*, const msrt_run_args*) -> msrt_status { return MSRT_DELEGATE; };
  api.destroy = [](void* self) {
    ++*static_cast<Registered*>(self)->ended;
    delete static_cast<Registered*>(self);
  };
  const msrt_status status = msrt_runtime_register_delegate(runtime, &api, refuser.get());
  if (status == MSRT_OK) refuser.release();
  return status;
}

// A kernel for a known op that models loaded from now on prefer; it returns the same bits.
msrt_status RegisterRelu(msrt_runtime* runtime, int number, std::atomic<int>* ended) {
  auto relu = std::make_unique<Registered>(Registered{"relu_" + std::to_string(number), ended});
  msrt_kernel_desc kernel = MSRT_INIT(msrt_kernel_desc);
  kernel.plugin_abi = MSRT_PLUGIN_ABI;
  kernel.op = "Relu";
  kernel.name = relu->name.c_str();
  kernel.types = 1u << MSRT_F32;
  kernel.user = relu.get();
  kernel.destroy = [](void* user) {
    ++*static_cast<Registered*>(user)->ended;
    delete static_cast<Registered*>(user);
  };
  kernel.seconds = [](void*, const msrt_host_api*, const msrt_node_view*) { return 1e-9; };
  kernel.run = [](void*, const void*, const msrt_kernel_args* args) -> msrt_status {
    int64_t elements = 1;
    for (int32_t d = 0; d < args->input_shapes[0].rank; ++d)
      elements *= args->input_shapes[0].dims[d];
    const auto* x = static_cast<const float*>(args->inputs[0]);
    auto* y = static_cast<float*>(args->outputs[0]);
    for (int64_t i = 0; i < elements; ++i) y[i] = std::max(x[i], 0.0f);
    return MSRT_OK;
  };
  const msrt_status status = msrt_runtime_register_kernel(runtime, &kernel);
  if (status == MSRT_OK) relu.release();
  return status;
}

class Stress : public ::testing::Test {
 protected:
  void Start(const msrt_runtime_config& config) {
    MSRT_ASSERT_OK(msrt_runtime_create(&config, &runtime_));
    model_ = Compiled(ConvGraph(runtime_));
    for (int t = 0; t < kThreads; ++t) {
      msrt_session* session = SessionOf(model_);
      sessions_.push_back(session);
      heights_.push_back(4 + t % 3);
      inputs_.push_back(InputOf(static_cast<unsigned>(t), heights_.back()));
      expected_.push_back(RunFloats(session, {1, 8, heights_.back(), 10}, inputs_.back()));
      ASSERT_FALSE(expected_.back().empty());
    }
  }
  void TearDown() override {
    for (msrt_session* session : sessions_) msrt_session_destroy(session);
    msrt_model_destroy(model_);
    msrt_runtime_destroy(runtime_);
  }

  // Runs the session of one thread and checks the result. Errors other than those allowed are
  // failures.
  void RunOnce(msrt_session* session, int t, std::initializer_list<msrt_status> allowed) {
    msrt_status status = MSRT_OK;
    const std::vector<float> y =
        RunFloats(session, {1, 8, heights_[t], 10}, inputs_[t], 0, &status);
    if (status == MSRT_OK) {
      ++succeeded_;
      if (y != expected_[t]) ++wrong_;
    } else if (std::find(allowed.begin(), allowed.end(), status) == allowed.end()) {
      ADD_FAILURE() << status << ": " << msrt_error_message();
    }
  }

  // Calls body(i) again and again, in its own thread, until the runs are over.
  void Meanwhile(std::function<void(int)> body) {
    meanwhile_.emplace_back([this, body = std::move(body)] {
      for (int i = 0; !over_; ++i) {
        body(i);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  }
  void RunAll(std::initializer_list<msrt_status> allowed) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int run = 0; run < kRuns; ++run) {
          if (trim_before_runs_) {
            MSRT_EXPECT_OK(msrt_session_trim(sessions_[t]));
          }
          RunOnce(sessions_[t], t, allowed);
        }
      });
    }
    for (std::thread& t : threads) t.join();
    over_ = true;
    for (std::thread& t : meanwhile_) t.join();
    EXPECT_EQ(wrong_, 0);
  }

  msrt_runtime* runtime_ = nullptr;
  msrt_model* model_ = nullptr;
  std::vector<msrt_session*> sessions_;
  std::vector<int64_t> heights_;
  std::vector<std::vector<float>> inputs_, expected_;
  std::vector<std::thread> meanwhile_;
  bool trim_before_runs_ = false;  // then every run allocates
  std::atomic<bool> over_{false};
  std::atomic<int> succeeded_{0}, wrong_{0};
};

msrt_runtime_config TwoThreads() {
  msrt_runtime_config config = MSRT_INIT(msrt_runtime_config);
  config.threads = 2;
  return config;
}

TEST_F(Stress, SessionsOfOneModelAreRightUnderLoad) {
  ASSERT_NO_FATAL_FAILURE(Start(TwoThreads()));
  std::atomic<int> registered{0}, ended{0}, loaded{0}, cancelled{0};
  Meanwhile([&](int i) {  // models are loaded and destroyed
    msrt_model* model = Compiled(i % 2 == 0 ? ConvGraph(runtime_) : SmallGraph(runtime_));
    msrt_session* session = SessionOf(model);
    msrt_model_destroy(model);
    if (i % 2 == 0) RunOnce(session, 0, {});
    msrt_session_destroy(session);
    ++loaded;
  });
  Meanwhile([&](int i) {  // delegates and kernels are registered
    if (i >= 40) return;
    MSRT_EXPECT_OK(RegisterRefuser(runtime_, i, &ended));
    MSRT_EXPECT_OK(RegisterRelu(runtime_, i, &ended));
    registered += 2;
    const char* info = nullptr;
    MSRT_EXPECT_OK(msrt_runtime_info_json(runtime_, &info));
    EXPECT_NE(std::strstr(info, ("refuser_" + std::to_string(i)).c_str()), nullptr);
  });
  Meanwhile([&](int i) {  // sessions are cloned, queried, cancelled
    msrt_session* victim = sessions_[static_cast<size_t>(i % kThreads)];
    MSRT_EXPECT_OK(msrt_session_cancel(victim));
    ++cancelled;
    msrt_session* fresh = SessionOf(model_);
    msrt_session* clone = nullptr;
    MSRT_EXPECT_OK(msrt_session_clone(fresh, &clone));
    msrt_session_destroy(fresh);
    RunOnce(clone, i % kThreads, {});
    msrt_session_destroy(clone);
  });
  RunAll({MSRT_CANCELLED});
  EXPECT_GT(succeeded_, kThreads * kRuns / 2);
  EXPECT_GT(registered, 0);
  EXPECT_GT(loaded, 0);
  EXPECT_GT(cancelled, 0);
  EXPECT_EQ(ended, 0);
  TearDown();
  EXPECT_EQ(ended, registered);
  runtime_ = nullptr, model_ = nullptr;
  sessions_.clear();
}

// Allocations fail sometimes, in any thread: that run returns an error, and the next one is right.
TEST_F(Stress, RunsAreRightAfterFailedAllocations) {
  CountingAllocator allocator;
  ASSERT_NO_FATAL_FAILURE(Start(allocator.Config()));
  trim_before_runs_ = true;
  std::atomic<int> failures{0};
  Meanwhile([&](int i) {
    allocator.fail_at = allocator.calls + 1 + i % 3;
    ++failures;
  });
  Meanwhile([&](int i) {
    msrt_session* session = nullptr;
    if (msrt_session_create(model_, nullptr, nullptr, &session) != MSRT_OK) return;
    RunOnce(session, i % kThreads, {MSRT_OUT_OF_MEMORY});
    msrt_session_destroy(session);
  });
  RunAll({MSRT_OUT_OF_MEMORY});
  allocator.fail_at = 0;
  for (int t = 0; t < kThreads; ++t) RunOnce(sessions_[static_cast<size_t>(t)], t, {});
  EXPECT_EQ(wrong_, 0);
  EXPECT_GT(failures, 0);
  TearDown();
  EXPECT_EQ(allocator.blocks, 0);
  runtime_ = nullptr, model_ = nullptr;
  sessions_.clear();
}

// Handles are destroyed while they are used: an error, never a crash, and calls in progress end
// normally.
TEST_F(Stress, HandlesMayBeDestroyedWhileInUse) {
  ASSERT_NO_FATAL_FAILURE(Start(TwoThreads()));
  for (int round = 0; round < kRuns / 10; ++round) {
    msrt_session* session = SessionOf(model_);
    std::thread user([&] {
      for (int run = 0; run < 5; ++run) RunOnce(session, 1, {MSRT_INVALID_ARGUMENT});
    });
    std::this_thread::sleep_for(std::chrono::microseconds(round * 37 % 500));
    msrt_session_destroy(session);
    user.join();
  }
  EXPECT_EQ(wrong_, 0);
}

}  // namespace
}  // namespace msrt::testing

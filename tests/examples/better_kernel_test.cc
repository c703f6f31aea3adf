// The plugin better_kernel.c: another kernel for an op that msrt knows.
#include <chrono>
#include <cmath>
#include <cstdio>

#include "ops/registry.h"
#include "tests/examples/kernel_testing.h"

namespace msrt::testing {
namespace {

class BetterKernel : public ::testing::Test {
 protected:
  void SetUp() override {
    MSRT_ASSERT_OK(
        msrt_runtime_load_plugin(runtime, ExamplePath("better_kernel").c_str(), nullptr));
  }

  // x [-1, depth] times constant weights.
  msrt_session* Product(int64_t depth, int64_t columns, const char* delegates) {
    msrt_tensor* weights = FloatTensor(runtime, {depth, columns}, Ramp(depth * columns));
    OneNode node;
    node.domain = nullptr;
    node.op = "MatMul";
    node.dims = {-1, depth};
    node.constants = {weights};
    msrt_model_config config = MSRT_INIT(msrt_model_config);
    config.delegates = delegates;
    const int64_t typical[] = {256, depth};
    const msrt_named_dims x = {"x", 2, typical};
    config.typical = &x;
    config.typical_count = 1;
    msrt_model* model = MakeModel(runtime, node, &config);
    EXPECT_NE(model, nullptr) << msrt_error_message();
    msrt_tensor_destroy(weights);
    msrt_session* session = SessionOf(model);
    msrt_model_destroy(model);
    return session;
  }
  RuntimeOwner runtime;
};

TEST_F(BetterKernel, AgreesWithReferenceAtEverySize) {
  for (const auto& [depth, columns] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 16}, {64, 17}, {37, 31}, {200, 48}}) {
    msrt_session* ours = Product(depth, columns, "kernels,reference");
    msrt_session* theirs = Product(depth, columns, "reference");
    for (int64_t rows : {0, 1, 3, 4, 5, 64}) {
      const std::vector<float> x = Ramp(rows * depth);
      const std::vector<float> got = RunFloats(ours, {rows, depth}, x),
                               want = RunFloats(theirs, {rows, depth}, x);
      ASSERT_EQ(got.size(), want.size());
      // Numbers are at most 1, and a sum of `depth` products is rounded after each.
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 6e-8 * static_cast<double>(depth * depth)) << i;
    }
    msrt_session_destroy(ours);
    msrt_session_destroy(theirs);
  }
}

TEST_F(BetterKernel, BitsOfARowDoNotDependOnTheOthers) {
  msrt_session* session = Product(50, 40, "kernels,reference");
  const std::vector<float> x = Ramp(7 * 50), whole = RunFloats(session, {7, 50}, x);
  for (int64_t begin = 0; begin < 7; ++begin) {
    for (int64_t end = begin + 1; end <= 7; ++end) {
      const std::vector<float> part(x.begin() + begin * 50, x.begin() + end * 50);
      EXPECT_EQ(RunFloats(session, {end - begin, 50}, part),
                std::vector<float>(whole.begin() + begin * 40, whole.begin() + end * 40));
    }
  }
  msrt_session_destroy(session);
}

TEST_F(BetterKernel, IsChosenByCostAndExplained) {
  msrt_session* chosen = Product(256, 256, "kernels,reference");
  std::string plan = PlanOf(chosen);
  EXPECT_NE(plan.find("\"delegate\": \"kernels\", \"algorithm\": \"4x16 panels"), std::string::npos)
      << plan;
  EXPECT_NE(plan.find("reference"), std::string::npos) << plan;
  msrt_session_destroy(chosen);
  // Other delegates run the nodes that it refuses, and the report has the reason.
  msrt_tensor* vector = FloatTensor(runtime, {4}, {1, 2, 3, 4});
  OneNode node;
  node.domain = nullptr;
  node.op = "MatMul";
  node.dims = {2, 4};
  node.constants = {vector};
  msrt_model* model = MakeModel(runtime, node);
  ASSERT_NE(model, nullptr) << msrt_error_message();
  msrt_session* session = SessionOf(model);
  msrt_model_destroy(model);
  plan = PlanOf(session);
  EXPECT_EQ(plan.find("\"delegate\": \"kernels\", \"algorithm\""), std::string::npos) << plan;
  EXPECT_NE(plan.find("only matrices"), std::string::npos) << plan;
  msrt_session_destroy(session);
  msrt_tensor_destroy(vector);
}

double MillisOf(msrt_session* session, const std::vector<float>& x) {
  const auto begin = std::chrono::steady_clock::now();
  RunFloats(session, {256, 256}, x);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

// The minimum of several alternating turns, so that a busy machine slows both alike.
TEST_F(BetterKernel, IsFasterThanReference) {
  msrt_session* ours = Product(256, 256, "kernels,reference");
  msrt_session* theirs = Product(256, 256, "reference");
  const std::vector<float> x = Ramp(256 * 256);
  double our_millis = 1e30, their_millis = 1e30;
  for (int round = 0; round < 30; ++round) {
    our_millis = std::min(our_millis, MillisOf(ours, x));
    their_millis = std::min(their_millis, MillisOf(theirs, x));
  }
  std::printf(
      "MatMul 256 x 256 x 256: ours %.3f ms (%.1f GFLOP/s), reference %.3f ms: %.1f times as "
      "fast\n",
      our_millis, 2 * 256.0 * 256 * 256 / our_millis * 1e-6, their_millis,
      their_millis / our_millis);
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // sanitizers slow the two down differently
  EXPECT_LT(our_millis, their_millis);
#endif
  msrt_session_destroy(ours);
  msrt_session_destroy(theirs);
}

}  // namespace
}  // namespace msrt::testing

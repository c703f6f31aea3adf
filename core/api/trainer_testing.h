// A small classifier on points, which tests train through the C API.
#pragma once

#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "core/abi/msrt_train.h"
#include "core/api/api_testing.h"

namespace msrt::testing {

inline constexpr int64_t kBatch = 16, kFeatures = 2, kHidden = 8, kRays = 3, kEpochBatches = 6;

// scores = relu(x w1 + b1) w2 + b2; with `softmax`, the model ends with probabilities. With
// `hidden`, the first output is x w1 + b1, and the scores are the second.
inline msrt_graph* Perceptron(msrt_runtime* runtime, const char* name = "perceptron",
                              bool softmax = true, bool hidden = false) {
  msrt_graph* graph = nullptr;
  EXPECT_EQ(msrt_graph_create(runtime, name, &graph), MSRT_OK);
  const msrt_tensor_info x = InfoOf(MSRT_F32, {MSRT_UNKNOWN_DIM, kFeatures}, "x");
  msrt_value value = MSRT_NO_VALUE;
  EXPECT_EQ(msrt_graph_add_input(graph, &x, &value), MSRT_OK);
  const auto constant = [&](const char* which, const std::vector<int64_t>& dims, float scale) {
    int64_t count = 1;
    for (const int64_t d : dims) count *= d;
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = scale * std::sin(static_cast<float>(3 * i * i + dims.size() + i));
    msrt_tensor* data = FloatTensor(runtime, dims, values);
    msrt_value made = MSRT_NO_VALUE;
    EXPECT_EQ(msrt_graph_add_constant(graph, which, data, &made), MSRT_OK);
    msrt_tensor_destroy(data);
    return made;
  };
  const msrt_value w1 = constant("w1", {kFeatures, kHidden}, 1), b1 = constant("b1", {kHidden}, 0),
                   w2 = constant("w2", {kHidden, kRays}, 1), b2 = constant("b2", {kRays}, 0);
  value = AddNode(graph, "MatMul", "m1", {value, w1});
  value = AddNode(graph, "Add", "a1", {value, b1});
  if (hidden) {
    EXPECT_EQ(msrt_graph_add_output(graph, value, nullptr), MSRT_OK);
  }
  value = AddNode(graph, "Relu", "h", {value});
  value = AddNode(graph, "MatMul", "m2", {value, w2});
  value = AddNode(graph, "Add", "scores", {value, b2});
  if (softmax) value = AddNode(graph, "Softmax", "probabilities", {value});
  EXPECT_EQ(msrt_graph_add_output(graph, value, nullptr), MSRT_OK);
  return graph;
}

// Points on three rays from the origin; the class is the number of the ray.
struct Points {
  std::vector<float> x;
  std::vector<int64_t> labels;
};
inline Points PointsOf(int64_t batch) {
  Points points;
  for (int64_t i = 0; i < kBatch; ++i) {
    const int64_t label = (i * 7 + batch) % kRays;
    const double angle = 2.1 * static_cast<double>(label) + 0.4 * std::sin(13.0 * (i + 17 * batch));
    const double radius = 1 + 0.5 * std::cos(static_cast<double>(5 * i + batch));
    points.x.push_back(static_cast<float>(radius * std::cos(angle)));
    points.x.push_back(static_cast<float>(radius * std::sin(angle)));
    points.labels.push_back(label);
  }
  return points;
}

inline msrt_tensor* LabelTensor(msrt_runtime* runtime, const std::vector<int64_t>& labels) {
  const int64_t dims[] = {static_cast<int64_t>(labels.size())};
  msrt_tensor* tensor = nullptr;
  EXPECT_EQ(msrt_tensor_create(runtime, MSRT_I64, 1, dims, &tensor), MSRT_OK);
  void* data = nullptr;
  EXPECT_EQ(msrt_tensor_data(tensor, &data), MSRT_OK);
  std::copy(labels.begin(), labels.end(), static_cast<int64_t*>(data));
  return tensor;
}

class Training : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "msrt_api_training" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    MSRT_ASSERT_OK(msrt_runtime_create(nullptr, &runtime_));
    graph_ = Perceptron(runtime_);
    config_.graph = graph_;
    config_.learning_rate = 0.1;
    read_.read = Read;
    read_.read_user = this;
    read_.batch_count = kEpochBatches;
  }
  void TearDown() override {
    for (msrt_tensor* tensor : lent_) msrt_tensor_destroy(tensor);
    msrt_graph_destroy(graph_);
    msrt_runtime_destroy(runtime_);
    std::filesystem::remove_all(folder_);
  }

  msrt_trainer* Made() { return Made(config_); }
  msrt_trainer* Made(const msrt_trainer_config& config) {
    msrt_trainer* trainer = nullptr;
    EXPECT_EQ(msrt_trainer_create(runtime_, &config, &trainer), MSRT_OK) << msrt_error_message();
    return trainer;
  }
  msrt_dataset* Data() {
    msrt_dataset* data = nullptr;
    EXPECT_EQ(msrt_dataset_create(runtime_, &read_, &data), MSRT_OK) << msrt_error_message();
    return data;
  }
  msrt_step_result Step(msrt_trainer* trainer, int64_t batch) {
    const Points points = PointsOf(batch);
    msrt_tensor* x = FloatTensor(runtime_, {kBatch, kFeatures}, points.x);
    msrt_tensor* target = LabelTensor(runtime_, points.labels);
    msrt_step_result result = MSRT_INIT(msrt_step_result);
    EXPECT_EQ(msrt_trainer_step(trainer, &x, 1, target, &result), MSRT_OK) << msrt_error_message();
    msrt_tensor_destroy(x);
    msrt_tensor_destroy(target);
    return result;
  }
  std::vector<float> State(msrt_trainer* trainer, const char* name) {
    msrt_tensor* value = nullptr;
    EXPECT_EQ(msrt_trainer_state_read(trainer, name, &value), MSRT_OK) << msrt_error_message();
    if (value == nullptr) return {};
    std::vector<float> floats = FloatsOf(value);
    msrt_tensor_destroy(value);
    return floats;
  }

  // Returns the points of a batch; the handles are destroyed at once or kept, in turn.
  static msrt_status Read(void* user, int64_t epoch, int64_t batch, msrt_tensor** inputs,
                          msrt_tensor** target) {
    auto* const self = static_cast<Training*>(user);
    ++self->reads_;
    if (epoch == self->fails_at_epoch_) return MSRT_IO;
    const Points points = PointsOf(batch);
    for (msrt_tensor* tensor : self->lent_) msrt_tensor_destroy(tensor);
    self->lent_.clear();
    inputs[0] = FloatTensor(self->runtime_, {kBatch, kFeatures}, points.x);
    if (!self->forgets_target_) *target = LabelTensor(self->runtime_, points.labels);
    self->lent_ = {inputs[0], *target};
    return MSRT_OK;
  }
  // Cancels what runs with the third batch if cancel_at_ is 0.
  static msrt_status CancelThenRead(void* user, int64_t epoch, int64_t batch, msrt_tensor** inputs,
                                    msrt_tensor** target) {
    auto* const self = static_cast<Training*>(user);
    if (self->cancel_at_ == 0 && batch == 2) {
      MSRT_EXPECT_OK(msrt_trainer_cancel(self->running_));
    }
    return Read(user, epoch, batch, inputs, target);
  }
  static void CountSteps(void* user, const msrt_train_progress* progress) {
    auto* const self = static_cast<Training*>(user);
    self->progress_.push_back(*progress);
    if (progress->steps == self->cancel_at_) {
      MSRT_EXPECT_OK(msrt_trainer_cancel(self->running_));
    }
    msrt_step_result result = MSRT_INIT(msrt_step_result);
    EXPECT_EQ(msrt_trainer_step(self->running_, nullptr, 0, nullptr, &result),
              MSRT_INVALID_ARGUMENT)
        << "a callback used the trainer that runs";
  }
  static void CountEpochs(void* user, const msrt_train_epoch* epoch) {
    static_cast<Training*>(user)->epochs_.push_back(*epoch);
  }

  std::string folder_;
  msrt_runtime* runtime_ = nullptr;
  msrt_graph* graph_ = nullptr;
  msrt_trainer_config config_ = MSRT_INIT(msrt_trainer_config);
  msrt_dataset_config read_ = MSRT_INIT(msrt_dataset_config);
  std::vector<msrt_tensor*> lent_;
  std::vector<msrt_train_progress> progress_;
  std::vector<msrt_train_epoch> epochs_;
  msrt_trainer* running_ = nullptr;
  int64_t cancel_at_ = -1, fails_at_epoch_ = -1;
  int reads_ = 0;
  bool forgets_target_ = false;
};

}  // namespace msrt::testing

// Whole runs of training through the C API: epochs, evaluations, checkpoints and how they end.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>
#include <utility>

#include "core/api/trainer_testing.h"

namespace msrt::testing {
namespace {

TEST_F(Training, FitTrainsOnBatchesOfTheApplication) {
  msrt_trainer* trainer = running_ = Made();
  msrt_dataset* data = Data();
  msrt_fit_config fit = MSRT_INIT(msrt_fit_config);
  fit.data = fit.eval = data;
  fit.epochs = 12;
  fit.progress = CountSteps, fit.epoch_done = CountEpochs, fit.user = this;
  msrt_train_epoch last = MSRT_INIT(msrt_train_epoch);
  MSRT_ASSERT_OK(msrt_trainer_fit(trainer, &fit, &last));
  ASSERT_EQ(progress_.size(), static_cast<size_t>(12 * kEpochBatches));
  EXPECT_EQ(progress_.back().epoch, 11);
  EXPECT_EQ(progress_.back().batch, kEpochBatches);
  EXPECT_EQ(progress_.back().steps, 12 * kEpochBatches);
  ASSERT_EQ(epochs_.size(), 12u);
  EXPECT_EQ(last.epoch, 12);
  EXPECT_EQ(last.steps, 12 * kEpochBatches);
  EXPECT_LT(last.loss, epochs_.front().loss / 4);
  EXPECT_GE(last.eval_accuracy, 0.95);
  msrt_evaluation evaluation = MSRT_INIT(msrt_evaluation);
  MSRT_ASSERT_OK(msrt_trainer_evaluate(trainer, data, &evaluation));
  EXPECT_EQ(evaluation.count, kBatch * kEpochBatches);
  EXPECT_EQ(evaluation.accuracy, last.eval_accuracy);
  EXPECT_EQ(evaluation.loss, last.eval_loss);
  EXPECT_EQ(evaluation.top5, 1);
  msrt_dataset_destroy(data);
  msrt_trainer_destroy(trainer);
}

// A run of fit has the bits of the same single steps.
TEST_F(Training, FitHasTheBitsOfSingleSteps) {
  msrt_trainer *fitted = running_ = Made(), *stepped = Made();
  msrt_dataset* data = Data();
  msrt_fit_config fit = MSRT_INIT(msrt_fit_config);
  fit.data = data;
  fit.epochs = 2;
  MSRT_ASSERT_OK(msrt_trainer_fit(fitted, &fit, nullptr));
  for (int64_t i = 0; i < 2 * kEpochBatches; ++i) Step(stepped, i % kEpochBatches);
  for (const char* name : {"w1", "b1", "w2", "b2"})
    EXPECT_EQ(State(fitted, name), State(stepped, name)) << name;
  msrt_dataset_destroy(data);
  msrt_trainer_destroy(fitted);
  msrt_trainer_destroy(stepped);
}

TEST_F(Training, CancelledRunResumesWithTheSameBits) {
  const std::string whole = folder_ + "/whole", parts = folder_ + "/parts";
  msrt_dataset* data = Data();
  msrt_fit_config fit = MSRT_INIT(msrt_fit_config);
  fit.data = fit.eval = data;
  fit.epochs = 3;
  fit.progress = CountSteps, fit.user = this;
  config_.schedule = "cosine";
  msrt_trainer* expected = running_ = Made();
  fit.output = whole.c_str();
  MSRT_ASSERT_OK(msrt_trainer_fit(expected, &fit, nullptr));
  EXPECT_TRUE(std::filesystem::exists(whole + "/history.csv"));

  fit.output = parts.c_str();
  cancel_at_ = kEpochBatches + 2;
  msrt_trainer* trainer = running_ = Made();
  EXPECT_EQ(msrt_trainer_fit(trainer, &fit, nullptr), MSRT_CANCELLED);
  EXPECT_NE(std::string(msrt_error_message()).find("stopped after step 8"), std::string::npos)
      << msrt_error_message();
  Step(trainer, 0);  // it is ready for more
  msrt_trainer_destroy(trainer);
  cancel_at_ = -1;
  fit.resume = 1;
  trainer = running_ = Made();
  const size_t before = progress_.size();
  MSRT_ASSERT_OK(msrt_trainer_fit(trainer, &fit, nullptr));
  EXPECT_EQ(progress_.size() - before, static_cast<size_t>(2 * kEpochBatches - 2));
  for (const char* name : {"w1", "b1", "w2", "b2"})
    EXPECT_EQ(State(trainer, name), State(expected, name)) << name;

  read_.batch_count = kEpochBatches - 1;
  msrt_dataset* other = Data();
  fit.data = other;
  EXPECT_EQ(msrt_trainer_fit(trainer, &fit, nullptr), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("had batches 6, now it is 5"), std::string::npos)
      << msrt_error_message();
  msrt_dataset_destroy(other);
  msrt_dataset_destroy(data);
  msrt_trainer_destroy(trainer);
  msrt_trainer_destroy(expected);
}

// The schedule ends with the run, wherever the trainer was when it resumed its own run.
TEST_F(Training, CancelledTrainerResumesItself) {
  msrt_dataset* data = Data();
  msrt_fit_config fit = MSRT_INIT(msrt_fit_config);
  fit.data = data;
  fit.epochs = 3;
  fit.progress = CountSteps, fit.user = this;
  config_.schedule = "cosine";
  msrt_trainer* expected = running_ = Made();
  MSRT_ASSERT_OK(msrt_trainer_fit(expected, &fit, nullptr));
  const std::string parts = folder_ + "/self";
  fit.output = parts.c_str();
  cancel_at_ = 8;
  msrt_trainer* trainer = running_ = Made();
  EXPECT_EQ(msrt_trainer_fit(trainer, &fit, nullptr), MSRT_CANCELLED);
  cancel_at_ = -1;
  fit.resume = 1;
  MSRT_ASSERT_OK(msrt_trainer_fit(trainer, &fit, nullptr));
  for (const char* name : {"w1", "b1", "w2", "b2"})
    EXPECT_EQ(State(trainer, name), State(expected, name)) << name;
  msrt_dataset_destroy(data);
  msrt_trainer_destroy(trainer);
  msrt_trainer_destroy(expected);
}

// A cancellation while a run evaluates loses no step.
TEST_F(Training, CancelledEvaluationLeavesACheckpoint) {
  msrt_dataset* data = Data();
  msrt_dataset_config cancelling = read_;
  cancelling.read = CancelThenRead;
  msrt_dataset* eval = nullptr;
  MSRT_ASSERT_OK(msrt_dataset_create(runtime_, &cancelling, &eval));
  msrt_fit_config fit = MSRT_INIT(msrt_fit_config);
  fit.data = data;
  fit.eval = eval;
  fit.epochs = 2;
  fit.epoch_done = CountEpochs, fit.user = this;
  msrt_trainer* expected = running_ = Made();
  MSRT_ASSERT_OK(msrt_trainer_fit(expected, &fit, nullptr));
  const std::vector<msrt_train_epoch> rows = std::exchange(epochs_, {});
  const std::string parts = folder_ + "/evaluating";
  fit.output = parts.c_str();
  cancel_at_ = 0;
  msrt_trainer* trainer = running_ = Made();
  EXPECT_EQ(msrt_trainer_fit(trainer, &fit, nullptr), MSRT_CANCELLED);
  EXPECT_NE(std::string(msrt_error_message()).find("stopped after step 6"), std::string::npos)
      << msrt_error_message();
  EXPECT_TRUE(std::filesystem::exists(parts + "/checkpoints/step-000000000006.ckpt"));
  msrt_trainer_destroy(trainer);
  cancel_at_ = -1;
  fit.resume = 1;
  trainer = running_ = Made();
  MSRT_ASSERT_OK(msrt_trainer_fit(trainer, &fit, nullptr));
  ASSERT_EQ(epochs_.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(epochs_[i].loss, rows[i].loss);
    EXPECT_EQ(epochs_[i].accuracy, rows[i].accuracy);
    EXPECT_EQ(epochs_[i].eval_loss, rows[i].eval_loss);
  }
  EXPECT_EQ(State(trainer, "w1"), State(expected, "w1"));
  msrt_dataset_destroy(data);
  msrt_dataset_destroy(eval);
  msrt_trainer_destroy(trainer);
  msrt_trainer_destroy(expected);
}

TEST_F(Training, RunsDoNotMixTheirCheckpoints) {
  const std::string output = folder_ + "/mixed";
  msrt_dataset* data = Data();
  msrt_fit_config fit = MSRT_INIT(msrt_fit_config);
  fit.data = data;
  fit.epochs = 3;
  fit.keep = 1;
  fit.output = output.c_str();
  msrt_trainer* trainer = Made();
  MSRT_ASSERT_OK(msrt_trainer_fit(trainer, &fit, nullptr));
  EXPECT_EQ(msrt_trainer_fit(trainer, &fit, nullptr), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("checkpoints of another run"), std::string::npos)
      << msrt_error_message();
  msrt_trainer_destroy(trainer);

  // The only checkpoint is damaged: the run begins again, and its new checkpoints stay.
  const std::string newest = output + "/checkpoints/step-000000000018.ckpt";
  std::filesystem::resize_file(newest, 100);
  fit.resume = 1;
  fit.epochs = 1;
  trainer = Made();
  MSRT_ASSERT_OK(msrt_trainer_fit(trainer, &fit, nullptr));
  EXPECT_TRUE(std::filesystem::exists(output + "/checkpoints/step-000000000006.ckpt"));
  EXPECT_FALSE(std::filesystem::exists(newest));
  EXPECT_TRUE(std::filesystem::exists(newest + ".unreadable"));
  msrt_trainer_destroy(trainer);
  msrt_dataset_destroy(data);
}

// The loss of a step is computed before its update: the next one would see what the update did.
TEST_F(Training, ParametersThatAreNotFiniteAreNoCheckpoint) {
  const std::string output = folder_ + "/broken";
  msrt_dataset* data = Data();
  msrt_fit_config fit = MSRT_INIT(msrt_fit_config);
  fit.data = data;
  fit.epochs = 1;
  fit.checkpoint_every = 1;
  fit.output = output.c_str();
  config_.learning_rate = 1e38;
  config_.loss_scale = 1;
  config_.weight_decay = 100;
  msrt_trainer* trainer = Made();
  EXPECT_EQ(msrt_trainer_fit(trainer, &fit, nullptr), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("step 1: parameter 'w1'"), std::string::npos)
      << msrt_error_message();
  EXPECT_TRUE(std::filesystem::is_empty(output + "/checkpoints"));
  msrt_trainer_destroy(trainer);
  msrt_dataset_destroy(data);
}

TEST_F(Training, ErrorsOfTheDataEndTheRun) {
  msrt_trainer* trainer = running_ = Made();
  msrt_dataset* data = Data();
  msrt_fit_config fit = MSRT_INIT(msrt_fit_config);
  fit.data = data;
  fit.epochs = 3;
  fails_at_epoch_ = 1;
  EXPECT_EQ(msrt_trainer_fit(trainer, &fit, nullptr), MSRT_IO);
  EXPECT_NE(std::string(msrt_error_message()).find("batch 0 of epoch 1 returned 9"),
            std::string::npos)
      << msrt_error_message();
  fails_at_epoch_ = -1;
  forgets_target_ = true;
  EXPECT_EQ(msrt_trainer_fit(trainer, &fit, nullptr), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("did not set the target"), std::string::npos);
  forgets_target_ = false;
  MSRT_EXPECT_OK(msrt_trainer_fit(trainer, &fit, nullptr));
  msrt_dataset_destroy(data);
  msrt_trainer_destroy(trainer);
}

// The loss compares the second output; the first one has other scores.
TEST_F(Training, EvaluationUsesTheOutputOfTheLoss) {
  msrt_graph* graph = Perceptron(runtime_, "two", /*softmax=*/true, /*hidden=*/true);
  msrt_trainer_config config = config_;
  config.graph = graph;
  config.output = 1;
  msrt_trainer* trainer = Made(config);
  msrt_dataset* data = Data();
  msrt_fit_config fit = MSRT_INIT(msrt_fit_config);
  fit.data = fit.eval = data;
  fit.epochs = 12;
  msrt_train_epoch last = MSRT_INIT(msrt_train_epoch);
  MSRT_ASSERT_OK(msrt_trainer_fit(trainer, &fit, &last));
  EXPECT_GE(last.eval_accuracy, 0.95);
  EXPECT_LT(last.eval_loss, 0.3);
  msrt_evaluation evaluation = MSRT_INIT(msrt_evaluation);
  MSRT_ASSERT_OK(msrt_trainer_evaluate(trainer, data, &evaluation));
  EXPECT_EQ(evaluation.accuracy, last.eval_accuracy);
  msrt_dataset_destroy(data);
  msrt_trainer_destroy(trainer);
  msrt_graph_destroy(graph);
}

// Targets of the ignored class count neither as right nor as wrong.
TEST_F(Training, IgnoredTargetsDoNotCount) {
  config_.has_ignored_class = 1;
  config_.ignored_class = 1;
  msrt_dataset* data = Data();
  msrt_trainer* trainer = Made();
  msrt_fit_config fit = MSRT_INIT(msrt_fit_config);
  fit.data = fit.eval = data;
  fit.epochs = 30;
  msrt_train_epoch last = MSRT_INIT(msrt_train_epoch);
  MSRT_ASSERT_OK(msrt_trainer_fit(trainer, &fit, &last));
  EXPECT_GE(last.accuracy, 0.99);  // of the other two classes
  EXPECT_LE(last.accuracy, 1);
  EXPECT_GE(last.eval_accuracy, 0.99);
  EXPECT_LT(last.eval_loss, 0.2);
  int64_t counted = 0;
  for (int64_t b = 0; b < kEpochBatches; ++b) {
    for (const int64_t label : PointsOf(b).labels) counted += label != 1;
  }
  msrt_evaluation all = MSRT_INIT(msrt_evaluation);
  MSRT_ASSERT_OK(msrt_trainer_evaluate(trainer, data, &all));
  EXPECT_EQ(all.count, counted);
  const Points points = PointsOf(0);
  msrt_tensor* x = FloatTensor(runtime_, {kBatch, kFeatures}, points.x);
  msrt_tensor* target = LabelTensor(runtime_, points.labels);
  msrt_evaluation one = MSRT_INIT(msrt_evaluation);
  MSRT_ASSERT_OK(msrt_trainer_evaluate_batch(trainer, &x, 1, target, &one));
  EXPECT_EQ(one.count, std::count_if(points.labels.begin(), points.labels.end(),
                                     [](int64_t label) { return label != 1; }));
  EXPECT_GE(one.accuracy, 0.99);
  // Where the model takes class 1 for everything, no target that counts is right.
  const std::vector<float> b2{-100, 100, -100};
  msrt_tensor* bias = FloatTensor(runtime_, {kRays}, b2);
  MSRT_ASSERT_OK(msrt_trainer_state_write(trainer, "b2", bias));
  MSRT_ASSERT_OK(msrt_trainer_evaluate_batch(trainer, &x, 1, target, &one));
  EXPECT_EQ(one.accuracy, 0);
  for (msrt_tensor* tensor : {x, target, bias}) msrt_tensor_destroy(tensor);
  msrt_dataset_destroy(data);
  msrt_trainer_destroy(trainer);
}

TEST_F(Training, CancelStopsFromAnotherThread) {
  msrt_trainer* trainer = running_ = Made();
  msrt_dataset* data = Data();
  msrt_fit_config fit = MSRT_INIT(msrt_fit_config);
  fit.data = data;
  fit.epochs = 1000000;
  MSRT_EXPECT_OK(msrt_trainer_cancel(trainer));  // nothing runs
  std::atomic<bool> ended{false};
  std::thread other([&] {
    while (!ended.load()) {
      MSRT_EXPECT_OK(msrt_trainer_cancel(trainer));
      std::this_thread::yield();
    }
  });
  const msrt_status status = msrt_trainer_fit(trainer, &fit, nullptr);
  ended = true;
  other.join();
  EXPECT_EQ(status, MSRT_CANCELLED);
  Step(trainer, 0);
  msrt_dataset_destroy(data);
  msrt_trainer_destroy(trainer);
}

}  // namespace
}  // namespace msrt::testing

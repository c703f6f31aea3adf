// Training through the C API: a small classifier on points, against the core trainer's own numbers
// where there are any, and every misuse of its functions.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/abi/msrt_train.h"
#include "core/api/api_testing.h"
#include "core/model/load.h"
#include "core/model/write.h"
#include "core/train/training_module.h"

namespace msrt::testing {
namespace {

constexpr int64_t kBatch = 16, kFeatures = 2, kHidden = 8, kRays = 3, kEpochBatches = 6;

// scores = relu(x w1 + b1) w2 + b2; with `softmax`, the model ends with probabilities.
msrt_graph* Perceptron(msrt_runtime* runtime, const char* name = "perceptron",
                       bool softmax = true) {
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
  value = AddNode(graph, "Relu", "h", {AddNode(graph, "Add", "a1", {value, b1})});
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
Points PointsOf(int64_t batch) {
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

msrt_tensor* LabelTensor(msrt_runtime* runtime, const std::vector<int64_t>& labels) {
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

// The loss of a step from outputs of the model before it, by the definition.
double CrossEntropyOf(const std::vector<float>& probabilities, const std::vector<int64_t>& labels) {
  double sum = 0;
  for (size_t i = 0; i < labels.size(); ++i)
    sum -= std::log(static_cast<double>(probabilities[i * kRays + static_cast<size_t>(labels[i])]));
  return sum / static_cast<double>(labels.size());
}

TEST_F(Training, StepsReduceTheLossThatPredictionsHave) {
  msrt_trainer* trainer = Made();
  const Points points = PointsOf(0);
  msrt_tensor* x = FloatTensor(runtime_, {kBatch, kFeatures}, points.x);
  msrt_tensor* target = LabelTensor(runtime_, points.labels);
  double first = 0;
  for (int i = 0; i < 40; ++i) {
    msrt_tensor* probabilities = nullptr;
    MSRT_ASSERT_OK(msrt_trainer_predict(trainer, &x, 1, &probabilities, 1));
    const double expected = CrossEntropyOf(FloatsOf(probabilities), points.labels);
    msrt_tensor_destroy(probabilities);
    msrt_evaluation evaluation = MSRT_INIT(msrt_evaluation);
    MSRT_ASSERT_OK(msrt_trainer_evaluate_batch(trainer, &x, 1, target, &evaluation));
    EXPECT_NEAR(evaluation.loss, expected, 1e-5);
    EXPECT_EQ(evaluation.count, kBatch);
    msrt_step_result result = MSRT_INIT(msrt_step_result);
    MSRT_ASSERT_OK(msrt_trainer_step(trainer, &x, 1, target, &result));
    EXPECT_NEAR(result.loss, expected, 1e-5);
    EXPECT_EQ(result.steps, i + 1);
    EXPECT_EQ(result.updated, 1);
    EXPECT_DOUBLE_EQ(result.learning_rate, 0.1);
    EXPECT_EQ(static_cast<double>(result.correct) / kBatch, evaluation.accuracy);
    if (i == 0) first = result.loss;
  }
  msrt_evaluation evaluation = MSRT_INIT(msrt_evaluation);
  MSRT_ASSERT_OK(msrt_trainer_evaluate_batch(trainer, &x, 1, target, &evaluation));
  EXPECT_LT(evaluation.loss, first / 4);
  EXPECT_EQ(evaluation.accuracy, 1);
  EXPECT_TRUE(std::isnan(evaluation.mean_iou));
  msrt_tensor_destroy(x);
  msrt_tensor_destroy(target);
  msrt_trainer_destroy(trainer);
}

// w2 -= rate * gradient, with the gradient of softmax cross-entropy by its formula.
TEST_F(Training, SgdStepHasTheUpdateOfItsFormula) {
  config_.optimizer = "sgd";
  msrt_trainer* trainer = Made();
  const Points points = PointsOf(3);
  const std::vector<float> w1 = State(trainer, "w1"), w2 = State(trainer, "w2"),
                           b2 = State(trainer, "b2");
  std::vector<double> gradient(static_cast<size_t>(kRays));  // of b2
  for (size_t i = 0; i < kBatch; ++i) {
    double scores[kRays], sum = 0;
    for (size_t c = 0; c < kRays; ++c) scores[c] = static_cast<double>(b2[c]);
    for (size_t h = 0; h < kHidden; ++h) {
      const double a = std::max(0.0, static_cast<double>(points.x[2 * i] * w1[h] +
                                                         points.x[2 * i + 1] * w1[kHidden + h]));
      for (size_t c = 0; c < kRays; ++c) scores[c] += a * static_cast<double>(w2[h * kRays + c]);
    }
    for (const double s : scores) sum += std::exp(s);
    for (size_t c = 0; c < kRays; ++c) {
      const double hit = points.labels[i] == static_cast<int64_t>(c) ? 1 : 0;
      gradient[c] += (std::exp(scores[c]) / sum - hit) / kBatch;
    }
  }
  Step(trainer, 3);
  const std::vector<float> after = State(trainer, "b2");
  for (size_t c = 0; c < kRays; ++c) {
    EXPECT_NEAR(after[c], static_cast<double>(b2[c]) - 0.1 * gradient[c], 1e-6);
    EXPECT_NE(after[c], b2[c]);
  }
  msrt_trainer_destroy(trainer);
}

TEST_F(Training, OptionsReachTheTrainer) {
  config_.optimizer = "adamw";
  config_.clip_norm = 0.01;
  config_.accumulation = 2;
  config_.frozen = "w1, b1";
  config_.schedule = "step:1:0.5";
  msrt_trainer* trainer = Made();
  const std::vector<float> before = State(trainer, "w2");
  msrt_step_result result = Step(trainer, 0);
  EXPECT_EQ(result.updated, 0);
  EXPECT_EQ(State(trainer, "w2"), before);
  result = Step(trainer, 1);
  EXPECT_EQ(result.updated, 1);
  EXPECT_GT(result.gradient_norm, 0.01);
  EXPECT_NE(State(trainer, "w2"), before);
  Step(trainer, 2);
  result = Step(trainer, 3);
  EXPECT_DOUBLE_EQ(result.learning_rate, 0.05);
  MSRT_EXPECT_OK(msrt_trainer_set_rate(trainer, 0.25));
  Step(trainer, 4);
  EXPECT_DOUBLE_EQ(Step(trainer, 5).learning_rate, 0.25);
  const char* text = nullptr;
  MSRT_ASSERT_OK(msrt_trainer_info_json(trainer, &text));
  const auto info = nlohmann::json::parse(text);
  EXPECT_EQ(info["model"], "perceptron");
  EXPECT_EQ(info["steps"], 3);
  EXPECT_EQ(info["parameters"], kHidden * kRays + kRays);
  EXPECT_EQ(info["inputs"][0]["name"], "x");
  EXPECT_EQ(info["target"]["type"], "i64");
  EXPECT_EQ(info["outputs"][0]["name"], "probabilities");
  msrt_trainer_destroy(trainer);
}

TEST_F(Training, BoostListsItsChanges) {
  const int64_t dims[] = {kBatch, kFeatures};
  const msrt_named_dims typical = {"x", 2, dims};
  msrt_model_config model = MSRT_INIT(msrt_model_config);
  model.typical = &typical;
  model.typical_count = 1;
  config_.model_config = &model;
  config_.activation_memory = "100%";
  config_.boost = MSRT_BOOST_O3;
  config_.total_steps = 6;
  msrt_trainer* trainer = Made();
  const char* text = nullptr;
  MSRT_ASSERT_OK(msrt_trainer_info_json(trainer, &text));
  const auto info = nlohmann::json::parse(text);
  EXPECT_EQ(info["boost"], "O3");
  EXPECT_EQ(info["accumulation"], 2);
  EXPECT_NEAR(info["learning_rate"].get<double>(), 0.2, 1e-12);
  std::vector<std::string> names;
  for (const auto& change : info["changes"]) {
    names.push_back(change["name"]);
    EXPECT_FALSE(change["effect"].get<std::string>().empty());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"bf16 products", "bf16 activations", "recomputation",
                                             "centralized gradients", "accumulation", "freezing",
                                             "freezing"}));
  EXPECT_GT(info["activations"]["kept_bytes"], 0);
  EXPECT_LE(info["activations"]["planned_bytes"], info["activations"]["kept_bytes"]);
  for (int i = 0; i < 12; ++i) Step(trainer, i);
  msrt_trainer_destroy(trainer);
}

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

TEST_F(Training, CheckpointContinuesWithTheSameBits) {
  const std::string path = folder_ + "/state.ckpt";
  msrt_trainer* trainer = Made();
  Step(trainer, 0);
  Step(trainer, 1);
  MSRT_ASSERT_OK(msrt_trainer_save(trainer, path.c_str()));
  Step(trainer, 2);
  const std::vector<float> expected = State(trainer, "w1");
  msrt_trainer* other = Made();
  MSRT_ASSERT_OK(msrt_trainer_restore(other, path.c_str()));
  EXPECT_EQ(Step(other, 2).steps, 3);
  EXPECT_EQ(State(other, "w1"), expected);

  // Checkpoints of another model or optimizer change nothing.
  msrt_graph* renamed = Perceptron(runtime_, "another");
  msrt_trainer_config config = config_;
  config.graph = renamed;
  msrt_trainer* another = Made(config);
  const std::vector<float> before = State(another, "w1");
  EXPECT_EQ(msrt_trainer_restore(another, path.c_str()), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("model 'perceptron', not of 'another'"),
            std::string::npos)
      << msrt_error_message();
  EXPECT_EQ(State(another, "w1"), before);
  config_.optimizer = "adam";
  msrt_trainer* adam = Made();
  EXPECT_EQ(msrt_trainer_restore(adam, path.c_str()), MSRT_INVALID_ARGUMENT);
  EXPECT_EQ(msrt_trainer_restore(adam, (folder_ + "/none.ckpt").c_str()), MSRT_NOT_FOUND);
  std::ofstream(folder_ + "/bad.ckpt") << "MSRTCKPT and nothing else";
  EXPECT_NE(msrt_trainer_restore(adam, (folder_ + "/bad.ckpt").c_str()), MSRT_OK);
  EXPECT_NE(std::string(msrt_error_message()).find("bad.ckpt"), std::string::npos);
  for (msrt_trainer* t : {trainer, other, another, adam}) msrt_trainer_destroy(t);
  msrt_graph_destroy(renamed);
}

TEST_F(Training, ExportsHaveThePredictionsOfTheTrainer) {
  const std::string path = folder_ + "/trained.msrt";
  msrt_trainer* trainer = Made();
  for (int64_t i = 0; i < 20; ++i) Step(trainer, i % kEpochBatches);
  const Points points = PointsOf(2);
  msrt_tensor* x = FloatTensor(runtime_, {kBatch, kFeatures}, points.x);
  msrt_tensor* predicted = nullptr;
  MSRT_ASSERT_OK(msrt_trainer_predict(trainer, &x, 1, &predicted, 1));
  const std::vector<float> expected = FloatsOf(predicted);
  MSRT_ASSERT_OK(msrt_trainer_export(trainer, path.c_str()));
  msrt_model *exported = nullptr, *loaded = nullptr;
  MSRT_ASSERT_OK(msrt_trainer_export_model(trainer, nullptr, &exported));
  Step(trainer, 0);  // later steps do not change it
  MSRT_ASSERT_OK(msrt_model_load_file(runtime_, path.c_str(), nullptr, &loaded));
  for (msrt_model* model : {exported, loaded}) {
    msrt_session* session = SessionOf(model);
    size_t states = 1;
    MSRT_EXPECT_OK(msrt_session_state_count(session, &states));
    EXPECT_EQ(states, 0u);
    const std::vector<float> got = RunFloats(session, {kBatch, kFeatures}, points.x);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6);
    msrt_session_destroy(session);
    msrt_model_destroy(model);
  }
  // The file can be trained further.
  msrt_trainer_config config = MSRT_INIT(msrt_trainer_config);
  config.model = path.c_str();
  msrt_trainer* further = Made(config);
  EXPECT_LT(Step(further, 0).loss, 0.5);
  msrt_trainer_destroy(further);
  msrt_tensor_destroy(predicted);
  msrt_tensor_destroy(x);
  msrt_trainer_destroy(trainer);
}

// A file in the training form is trained as it says, whatever the config has.
TEST_F(Training, TrainingModulesKeepLossAndOptimizer) {
  const std::string plain = folder_ + "/plain.msrt", training = folder_ + "/training.msrt";
  MSRT_ASSERT_OK(msrt_graph_save(graph_, plain.c_str()));
  TrainingSpec spec;
  spec.optimizer.kind = OptimizerKind::kSgd;
  spec.clip_norm = 1e-3;
  {
    auto loaded = LoadFile(DefaultIo(), plain);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    auto made = MakeTrainingModule(*std::move(loaded), spec);
    ASSERT_TRUE(made.ok()) << made.status().message();
    ASSERT_TRUE(WriteModel(*made, training, DefaultIo()).ok());
  }
  config_.optimizer = "sgd";
  config_.clip_norm = 1e-3;
  msrt_trainer* expected = Made();
  msrt_trainer_config config = MSRT_INIT(msrt_trainer_config);
  config.model = training.c_str();
  config.learning_rate = 0.1;
  config.optimizer = "adam";
  msrt_trainer* trainer = Made(config);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(Step(trainer, i).loss, Step(expected, i).loss);
  EXPECT_GT(Step(trainer, 4).gradient_norm, 1e-3);
  EXPECT_EQ(Step(expected, 4).steps, 4);
  EXPECT_EQ(State(trainer, "w1"), State(expected, "w1"));
  msrt_trainer_destroy(trainer);
  msrt_trainer_destroy(expected);
}

TEST_F(Training, StatesAreReadAndWrittenByName) {
  msrt_trainer* trainer = Made();
  msrt_tensor* value = FloatTensor(runtime_, {kRays}, {1, 2, 3});
  MSRT_ASSERT_OK(msrt_trainer_state_write(trainer, "b2", value));
  EXPECT_EQ(State(trainer, "b2"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(msrt_trainer_state_write(trainer, "b1", value), MSRT_INVALID_ARGUMENT);
  EXPECT_EQ(msrt_trainer_state_write(trainer, "b3", value), MSRT_NOT_FOUND);
  EXPECT_NE(std::string(msrt_error_message()).find("'b3'"), std::string::npos);
  msrt_tensor* none = nullptr;
  EXPECT_EQ(msrt_trainer_state_read(trainer, "b3", &none), MSRT_NOT_FOUND);
  EXPECT_EQ(none, nullptr);
  msrt_tensor_destroy(value);
  msrt_trainer_destroy(trainer);
}

TEST_F(Training, RegressionHasLossesWithoutClasses) {
  msrt_graph* graph = Perceptron(runtime_, "regression", false);
  config_.graph = graph;
  config_.loss = MSRT_LOSS_MEAN_SQUARES;
  msrt_trainer* trainer = Made();
  const Points points = PointsOf(0);
  msrt_tensor* x = FloatTensor(runtime_, {kBatch, kFeatures}, points.x);
  msrt_tensor* target =
      FloatTensor(runtime_, {kBatch, kRays}, std::vector<float>(kBatch * kRays, 0.5f));
  msrt_step_result result = MSRT_INIT(msrt_step_result);
  MSRT_ASSERT_OK(msrt_trainer_step(trainer, &x, 1, target, &result));
  EXPECT_EQ(result.correct, -1);
  const double first = result.loss;
  for (int i = 0; i < 30; ++i) MSRT_ASSERT_OK(msrt_trainer_step(trainer, &x, 1, target, &result));
  EXPECT_LT(result.loss, first / 4);
  msrt_evaluation evaluation = MSRT_INIT(msrt_evaluation);
  MSRT_ASSERT_OK(msrt_trainer_evaluate_batch(trainer, &x, 1, target, &evaluation));
  EXPECT_TRUE(std::isnan(evaluation.accuracy));
  EXPECT_EQ(evaluation.count, kBatch);
  msrt_tensor_destroy(target);
  msrt_tensor_destroy(x);
  msrt_trainer_destroy(trainer);
  msrt_graph_destroy(graph);
}

TEST_F(Training, LossThatIsNotFiniteNamesItsCause) {
  config_.safe_steps = 1;
  msrt_trainer* trainer = Made();
  Step(trainer, 0);
  const std::vector<float> before = State(trainer, "w2");
  Points points = PointsOf(1);
  points.x[5] = std::numeric_limits<float>::quiet_NaN();
  msrt_tensor* x = FloatTensor(runtime_, {kBatch, kFeatures}, points.x);
  msrt_tensor* target = LabelTensor(runtime_, points.labels);
  EXPECT_EQ(msrt_trainer_step(trainer, &x, 1, target, nullptr), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("input 'x'"), std::string::npos)
      << msrt_error_message();
  EXPECT_EQ(State(trainer, "w2"), before);

  const std::vector<float> huge(kHidden * kRays, 3e38f);
  msrt_tensor* w2 = FloatTensor(runtime_, {kHidden, kRays}, huge);
  MSRT_ASSERT_OK(msrt_trainer_state_write(trainer, "w2", w2));
  msrt_tensor* good = FloatTensor(runtime_, {kBatch, kFeatures}, PointsOf(1).x);
  EXPECT_EQ(msrt_trainer_step(trainer, &good, 1, target, nullptr), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("'m2' (MatMul)"), std::string::npos)
      << msrt_error_message();
  EXPECT_EQ(State(trainer, "w2"), huge);
  for (msrt_tensor* t : {x, target, w2, good}) msrt_tensor_destroy(t);
  msrt_trainer_destroy(trainer);
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

TEST_F(Training, HandlesMayBeDestroyedInAnyOrder) {
  msrt_trainer* trainer = running_ = Made();
  msrt_dataset* data = Data();
  msrt_runtime* runtime = std::exchange(runtime_, nullptr);
  msrt_graph_destroy(std::exchange(graph_, nullptr));
  MSRT_ASSERT_OK(msrt_runtime_create(nullptr, &runtime_));
  msrt_runtime_destroy(runtime);
  msrt_fit_config fit = MSRT_INIT(msrt_fit_config);
  fit.data = data;
  MSRT_EXPECT_OK(msrt_trainer_fit(trainer, &fit, nullptr));
  msrt_dataset_destroy(data);
  EXPECT_EQ(msrt_trainer_fit(trainer, &fit, nullptr), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("config.data"), std::string::npos);
  msrt_trainer_destroy(trainer);
  msrt_trainer_destroy(trainer);
  EXPECT_EQ(msrt_trainer_fit(trainer, &fit, nullptr), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("trainer"), std::string::npos);
}

TEST_F(Training, FoldersOfArraysAreDatasets) {
  // Bytes of a .npy file.
  const auto npy = [](const std::string& path, const char* type, const std::string& shape,
                      const std::string& bytes) {
    std::string header =
        std::string("{'descr': '") + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
    header.resize((10 + header.size() + 64) / 64 * 64 - 11, ' ');
    header += '\n';
    std::ofstream out(path, std::ios::binary);
    out << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size() & 255)
        << static_cast<char>(header.size() >> 8) << header << bytes;
  };
  std::string pixels, labels;
  for (int i = 0; i < 10; ++i) {
    pixels.append(4 * 4, static_cast<char>(i * 20));
    labels += static_cast<char>(i % 2);
  }
  npy(folder_ + "/images.npy", "|u1", "(10, 4, 4)", pixels);
  npy(folder_ + "/labels.npy", "|u1", "(10,)", labels);
  msrt_dataset_config config = MSRT_INIT(msrt_dataset_config);
  config.path = folder_.c_str();
  config.batch = 4;
  config.normalize = "scale=1/255";
  msrt_dataset* data = nullptr;
  MSRT_ASSERT_OK(msrt_dataset_create(runtime_, &config, &data));
  const char* text = nullptr;
  MSRT_ASSERT_OK(msrt_dataset_info_json(data, &text));
  const auto info = nlohmann::json::parse(text);
  EXPECT_EQ(info["samples"], 10);
  EXPECT_EQ(info["batches"], 3);
  EXPECT_EQ(info["dims"], (std::vector<int>{1, 4, 4}));
  msrt_dataset_destroy(data);
  data = nullptr;
  config.augment = "melt";
  EXPECT_EQ(msrt_dataset_create(runtime_, &config, &data), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("melt"), std::string::npos);
  config.augment = nullptr;
  config.path = "no/such/folder";
  EXPECT_EQ(msrt_dataset_create(runtime_, &config, &data), MSRT_NOT_FOUND);
  EXPECT_EQ(data, nullptr);
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

// Training through the C API: a small classifier on points, against the core trainer's own numbers
// where there are any.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/api/trainer_testing.h"
#include "core/model/load.h"
#include "core/model/write.h"
#include "core/train/training_module.h"

namespace msrt::testing {
namespace {

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
  // Samples that are left out of data in order have the target -1, which this trainer would train.
  config.skip_unreadable = 1;
  MSRT_ASSERT_OK(msrt_dataset_create(runtime_, &config, &data));
  msrt_trainer* trainer = Made();
  msrt_fit_config fit = MSRT_INIT(msrt_fit_config);
  fit.data = data;
  EXPECT_EQ(msrt_trainer_fit(trainer, &fit, nullptr), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("skip_unreadable"), std::string::npos)
      << msrt_error_message();
  msrt_trainer_destroy(trainer);
  msrt_dataset_destroy(data);
  data = nullptr;
  config.skip_unreadable = 0;
  config.augment = "melt";
  EXPECT_EQ(msrt_dataset_create(runtime_, &config, &data), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("melt"), std::string::npos);
  config.augment = nullptr;
  config.path = "no/such/folder";
  EXPECT_EQ(msrt_dataset_create(runtime_, &config, &data), MSRT_NOT_FOUND);
  EXPECT_EQ(data, nullptr);
}

}  // namespace
}  // namespace msrt::testing

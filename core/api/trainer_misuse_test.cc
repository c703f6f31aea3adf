// Every function of msrt_train.h with wrong arguments: the right status, a message that names the
// argument, and nothing changed.
#include <functional>

#include "core/abi/msrt_train.h"
#include "core/api/api_testing.h"

namespace msrt::testing {
namespace {

msrt_status ReadNothing(void*, int64_t, int64_t, msrt_tensor**, msrt_tensor**) { return MSRT_IO; }

// y = x w, x: f32[n, 2], w: f32[2, 3].
msrt_graph* Product(msrt_runtime* runtime) {
  msrt_graph* graph = nullptr;
  EXPECT_EQ(msrt_graph_create(runtime, "product", &graph), MSRT_OK);
  const msrt_tensor_info info = InfoOf(MSRT_F32, {MSRT_UNKNOWN_DIM, 2}, "x");
  msrt_value x = MSRT_NO_VALUE, w = MSRT_NO_VALUE;
  EXPECT_EQ(msrt_graph_add_input(graph, &info, &x), MSRT_OK);
  msrt_tensor* data = FloatTensor(runtime, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(msrt_graph_add_constant(graph, "w", data, &w), MSRT_OK);
  msrt_tensor_destroy(data);
  EXPECT_EQ(msrt_graph_add_output(graph, AddNode(graph, "MatMul", "y", {x, w}), nullptr), MSRT_OK);
  return graph;
}

class TrainerMisuse : public ::testing::Test {
 protected:
  void SetUp() override {
    MSRT_ASSERT_OK(msrt_runtime_create(nullptr, &runtime));
    graph = Product(runtime);
    config.graph = graph;
    MSRT_ASSERT_OK(msrt_trainer_create(runtime, &config, &trainer));
    batches.read = ReadNothing, batches.batch_count = 2;
    MSRT_ASSERT_OK(msrt_dataset_create(runtime, &batches, &data));
    x = FloatTensor(runtime, {1, 2}, {1, 2});
    const int64_t dims[] = {1};
    MSRT_ASSERT_OK(msrt_tensor_create(runtime, MSRT_I64, 1, dims, &target));
    void* memory = nullptr;
    MSRT_ASSERT_OK(msrt_tensor_data(target, &memory));
    *static_cast<int64_t*>(memory) = 1;
    fit.data = data;
    EXPECT_EQ(msrt_trainer_state_read(trainer, "w", &weights), MSRT_OK);
  }
  void TearDown() override {
    msrt_tensor* now = nullptr;
    EXPECT_EQ(msrt_trainer_state_read(trainer, "w", &now), MSRT_OK);
    EXPECT_EQ(FloatsOf(now), FloatsOf(weights)) << "misuse changed a parameter";
    EXPECT_EQ(msrt_trainer_step(trainer, &x, 1, target, nullptr), MSRT_OK)
        << "misuse left damage: " << msrt_error_message();
    EXPECT_EQ(no_trainer, nullptr);
    EXPECT_EQ(no_data, nullptr);
    EXPECT_EQ(no_model, nullptr);
    EXPECT_EQ(no_tensor, nullptr);
    for (msrt_tensor* t : {x, target, weights, now}) msrt_tensor_destroy(t);
    msrt_dataset_destroy(data);
    msrt_trainer_destroy(trainer);
    msrt_graph_destroy(graph);
    msrt_runtime_destroy(runtime);
  }

  // Calls with a changed config are refused with a message that has `text`.
  template <typename Change>
  void Refuses(const char* text, const Change& change, msrt_status status = MSRT_INVALID_ARGUMENT) {
    msrt_trainer_config changed = config;
    change(&changed);
    EXPECT_EQ(msrt_trainer_create(runtime, &changed, &no_trainer), status) << text;
    EXPECT_NE(std::string(msrt_error_message()).find(text), std::string::npos)
        << text << ": " << msrt_error_message();
  }
  template <typename Change>
  void RefusesData(const char* text, const Change& change) {
    msrt_dataset_config changed = batches;
    change(&changed);
    EXPECT_EQ(msrt_dataset_create(runtime, &changed, &no_data), MSRT_INVALID_ARGUMENT) << text;
    EXPECT_NE(std::string(msrt_error_message()).find(text), std::string::npos)
        << text << ": " << msrt_error_message();
  }
  template <typename Change>
  void RefusesFit(const char* text, const Change& change) {
    msrt_fit_config changed = fit;
    change(&changed);
    EXPECT_EQ(msrt_trainer_fit(trainer, &changed, nullptr), MSRT_INVALID_ARGUMENT) << text;
    EXPECT_NE(std::string(msrt_error_message()).find(text), std::string::npos)
        << text << ": " << msrt_error_message();
  }
  void Expect(const char* text, msrt_status status, msrt_status expected = MSRT_INVALID_ARGUMENT) {
    EXPECT_EQ(status, expected) << text << ": " << msrt_error_message();
    EXPECT_NE(std::string(msrt_error_message()).find(text), std::string::npos)
        << text << ": " << msrt_error_message();
  }

  msrt_runtime* runtime = nullptr;
  msrt_graph* graph = nullptr;
  msrt_trainer* trainer = nullptr;
  msrt_dataset* data = nullptr;
  msrt_tensor *x = nullptr, *target = nullptr, *weights = nullptr;
  msrt_trainer_config config = MSRT_INIT(msrt_trainer_config);
  msrt_dataset_config batches = MSRT_INIT(msrt_dataset_config);
  msrt_fit_config fit = MSRT_INIT(msrt_fit_config);
  // Outputs that must stay unchanged.
  msrt_trainer* no_trainer = nullptr;
  msrt_dataset* no_data = nullptr;
  msrt_model* no_model = nullptr;
  msrt_tensor* no_tensor = nullptr;
};

TEST_F(TrainerMisuse, ConfigsOfTrainers) {
  Refuses("struct_size", [](auto* c) { c->struct_size = 4; });
  Refuses("config.loss", [](auto* c) { c->loss = 8; });
  Refuses("both NULL", [](auto* c) { c->graph = nullptr; });
  Refuses("both set", [](auto* c) { c->model = "x.msrt"; });
  Refuses(
      "x.msrt", [](auto* c) { c->graph = nullptr, c->model = "x.msrt"; }, MSRT_NOT_FOUND);
  Refuses("config.graph", [&](auto* c) { c->graph = reinterpret_cast<msrt_graph*>(x); });
  Refuses("config.output", [](auto* c) { c->output = -1; });
  Refuses("output", [](auto* c) { c->output = 1; });
  Refuses("config.label_smoothing", [](auto* c) { c->label_smoothing = 2; });
  Refuses("config.class_weights", [](auto* c) { c->class_weight_count = 3; });
  Refuses("config.huber_delta", [](auto* c) { c->huber_delta = -1; });
  Refuses("config.optimizer", [](auto* c) { c->optimizer = "sdg"; });
  Refuses("config.schedule", [](auto* c) { c->schedule = "linear"; });
  Refuses("config.total_steps", [](auto* c) { c->total_steps = -1; });
  Refuses("learning rate", [](auto* c) { c->learning_rate = -1; });
  Refuses("accumulation", [](auto* c) { c->accumulation = -2; });
  Refuses("limits of gradients", [](auto* c) { c->clip_norm = -1; });
  Refuses("loss scale", [](auto* c) { c->loss_scale = -1; });
  Refuses("average_decay", [](auto* c) { c->average_decay = 1; });
  Refuses("'v*'", [](auto* c) { c->frozen = "v*"; });
  Refuses("config.groups", [](auto* c) { c->group_count = 1; });
  const msrt_parameter_group group = {nullptr, 1, -1};
  Refuses("config.groups[0].pattern", [&](auto* c) { c->groups = &group, c->group_count = 1; });
  Refuses("config.reserved", [](auto* c) { c->reserved = 1; });
  Refuses("config.activation_memory", [](auto* c) { c->activation_memory = "much"; });
  Refuses("typical", [](auto* c) { c->activation_memory = "40%"; });
  Refuses("config.precision", [](auto* c) { c->precision = 2; });
  Refuses("config.boost", [](auto* c) { c->boost = 4; });
  msrt_model_config model = MSRT_INIT(msrt_model_config);
  model.accuracy = 7;
  Refuses("accuracy", [&](auto* c) { c->model_config = &model; });
  model.accuracy = MSRT_ACCURACY_EXACT;
  const auto mixed = [&](auto* c) {
    c->model_config = &model, c->precision = MSRT_PRECISION_MIXED;
  };
  Refuses("config.precision", mixed, MSRT_UNSUPPORTED);
  Expect("runtime", msrt_trainer_create(nullptr, &config, &no_trainer));
  Expect("config", msrt_trainer_create(runtime, nullptr, &no_trainer));
  Expect("out", msrt_trainer_create(runtime, &config, nullptr));
}

TEST_F(TrainerMisuse, ConfigsOfDatasets) {
  RefusesData("struct_size", [](auto* c) { c->struct_size = 4; });
  RefusesData("both NULL", [](auto* c) { c->read = nullptr; });
  RefusesData("both set", [](auto* c) { c->path = "."; });
  RefusesData("config.batch_count", [](auto* c) { c->batch_count = 0; });
  RefusesData("config.batch ", [](auto* c) { c->batch = -1; });
  RefusesData("config.columns", [](auto* c) { c->rows = 4; });
  RefusesData("config.classes_of",
              [&](auto* c) { c->read = nullptr, c->path = ".", c->classes_of = data; });
  Expect("runtime", msrt_dataset_create(nullptr, &batches, &no_data));
  Expect("out", msrt_dataset_create(runtime, &batches, nullptr));
  const char* text = nullptr;
  Expect("dataset", msrt_dataset_info_json(nullptr, &text));
  Expect("out", msrt_dataset_info_json(data, nullptr));
  EXPECT_EQ(text, nullptr);
}

TEST_F(TrainerMisuse, Batches) {
  msrt_step_result result = MSRT_INIT(msrt_step_result);
  msrt_evaluation evaluation = MSRT_INIT(msrt_evaluation);
  msrt_tensor* two[] = {x, x};
  msrt_tensor* wide = FloatTensor(runtime, {1, 3}, {1, 2, 3});
  msrt_tensor* floats = FloatTensor(runtime, {1}, {1});
  msrt_tensor* none = nullptr;
  auto* const wrong = reinterpret_cast<msrt_tensor*>(data);
  Expect("trainer", msrt_trainer_step(nullptr, &x, 1, target, &result));
  Expect("inputs", msrt_trainer_step(trainer, nullptr, 1, target, &result));
  Expect("inputs[0]", msrt_trainer_step(trainer, &none, 1, target, &result));
  Expect("inputs[0]", msrt_trainer_step(trainer, &wrong, 1, target, &result));
  Expect("target", msrt_trainer_step(trainer, &x, 1, nullptr, &result));
  Expect("3 tensors, must have 2", msrt_trainer_step(trainer, two, 2, target, &result));
  Expect("1 tensors, must have 2", msrt_trainer_step(trainer, nullptr, 0, target, &result));
  Expect("'x'", msrt_trainer_step(trainer, &wide, 1, target, &result));
  Expect("'target'", msrt_trainer_step(trainer, &x, 1, floats, &result));
  result.struct_size = 3;
  Expect("result", msrt_trainer_step(trainer, &x, 1, target, &result));
  Expect("'x'", msrt_trainer_evaluate_batch(trainer, &wide, 1, target, &evaluation));
  Expect("result", msrt_trainer_evaluate_batch(trainer, &x, 1, target, nullptr));
  Expect("output_count", msrt_trainer_predict(trainer, &x, 1, &no_tensor, 2));
  Expect("output_count", msrt_trainer_predict(trainer, &x, 1, &no_tensor, 0));
  Expect("outputs", msrt_trainer_predict(trainer, &x, 1, nullptr, 1));
  Expect("'x'", msrt_trainer_predict(trainer, &wide, 1, &no_tensor, 1));
  Expect("dataset", msrt_trainer_evaluate(trainer, nullptr, &evaluation));
  Expect("returned 9", msrt_trainer_evaluate(trainer, data, &evaluation), MSRT_IO);
  Expect("learning rate", msrt_trainer_set_rate(trainer, -1));
  msrt_tensor_destroy(wide);
  msrt_tensor_destroy(floats);
}

TEST_F(TrainerMisuse, LabelsOutsideOfTheClasses) {
  void* memory = nullptr;
  MSRT_ASSERT_OK(msrt_tensor_data(target, &memory));
  *static_cast<int64_t*>(memory) = 3;
  EXPECT_NE(msrt_trainer_step(trainer, &x, 1, target, nullptr), MSRT_OK);
  *static_cast<int64_t*>(memory) = 1;
}

TEST_F(TrainerMisuse, Runs) {
  RefusesFit("struct_size", [](auto* c) { c->struct_size = 4; });
  RefusesFit("config.data", [](auto* c) { c->data = nullptr; });
  RefusesFit("config.eval", [&](auto* c) { c->eval = reinterpret_cast<msrt_dataset*>(x); });
  RefusesFit("config.epochs", [](auto* c) { c->epochs = -1; });
  RefusesFit("config.keep", [](auto* c) { c->keep = -1; });
  RefusesFit("config.checkpoint_every", [](auto* c) { c->checkpoint_every = -1; });
  RefusesFit("config.eval", [](auto* c) { c->early_stop = 1; });
  RefusesFit("config.output", [](auto* c) { c->resume = 1; });
  Expect("trainer", msrt_trainer_fit(nullptr, &fit, nullptr));
  msrt_train_epoch last = {};
  Expect("last", msrt_trainer_fit(trainer, &fit, &last));
}

TEST_F(TrainerMisuse, SingleStepsNeedTheEndOfTheSchedule) {
  config.schedule = "cosine";
  msrt_trainer* open = nullptr;
  MSRT_ASSERT_OK(msrt_trainer_create(runtime, &config, &open));
  Expect("config.total_steps", msrt_trainer_step(open, &x, 1, target, nullptr));
  MSRT_EXPECT_OK(msrt_trainer_set_rate(open, 0.1));
  MSRT_EXPECT_OK(msrt_trainer_step(open, &x, 1, target, nullptr));
  msrt_trainer_destroy(open);
}

TEST_F(TrainerMisuse, FilesAndStates) {
  const char* text = nullptr;
  Expect("trainer", msrt_trainer_info_json(nullptr, &text));
  Expect("out", msrt_trainer_info_json(trainer, nullptr));
  Expect("name", msrt_trainer_state_read(trainer, nullptr, &no_tensor));
  Expect("out", msrt_trainer_state_read(trainer, "w", nullptr));
  Expect("value", msrt_trainer_state_write(trainer, "w", nullptr));
  Expect("name", msrt_trainer_state_write(trainer, nullptr, weights));
  Expect("path", msrt_trainer_save(trainer, nullptr));
  Expect("path", msrt_trainer_restore(trainer, nullptr));
  Expect("path", msrt_trainer_export(trainer, nullptr));
  Expect("out", msrt_trainer_export_model(trainer, nullptr, nullptr));
  Expect("trainer", msrt_trainer_export_model(nullptr, nullptr, &no_model));
  Expect("trainer", msrt_trainer_cancel(nullptr));
  EXPECT_NE(msrt_trainer_save(trainer, "no/such/folder/a.ckpt"), MSRT_OK);
  EXPECT_NE(std::string(msrt_error_message()).find("no/such/folder"), std::string::npos);
  EXPECT_NE(msrt_trainer_export(trainer, "no/such/folder/a.msrt"), MSRT_OK);
  EXPECT_EQ(text, nullptr);
}

}  // namespace
}  // namespace msrt::testing

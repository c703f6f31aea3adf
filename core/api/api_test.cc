// The C API as an application uses it. misuse_test.cc tests wrong calls, tests/faults failures of
// memory and files.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/api/api_testing.h"
#include "core/api/errors.h"
#include "core/api/runtime.h"

namespace msrt::testing {
namespace {

using Json = nlohmann::json;

class Api : public ::testing::Test {
 protected:
  void SetUp() override { MSRT_ASSERT_OK(msrt_runtime_create(nullptr, &runtime)); }
  void TearDown() override { msrt_runtime_destroy(runtime); }
  std::string SavedSmallGraph() {
    const std::string path = ::testing::TempDir() + "api_small.msrt";
    msrt_graph* graph = SmallGraph(runtime);
    MSRT_EXPECT_OK(msrt_graph_save(graph, path.c_str()));
    msrt_graph_destroy(graph);
    return path;
  }
  msrt_runtime* runtime = nullptr;
};

const std::vector<float> kX = {-2, 0, 1, 2, -0.5f, 3};

TEST_F(Api, GraphCanBeBuiltSavedLoadedAndRun) {
  const std::string path = SavedSmallGraph();
  for (const int32_t copy : {0, 1}) {
    msrt_model_config config = MSRT_INIT(msrt_model_config);
    config.copy_file = copy;
    msrt_model* model = nullptr;
    MSRT_ASSERT_OK(msrt_model_load_file(runtime, path.c_str(), &config, &model));
    msrt_session* session = SessionOf(model);
    EXPECT_EQ(RunFloats(session, {2, 3}, kX), SmallResult(kX));
    EXPECT_EQ(RunFloats(session, {1, 3}, {1, 2, 3}), SmallResult({1, 2, 3}));
    EXPECT_EQ(RunFloats(session, {0, 3}, {}), std::vector<float>());
    msrt_session_destroy(session);
    msrt_model_destroy(model);
  }
}

TEST_F(Api, LoadFromMemoryCopiesOrHoldsTheBytes) {
  std::ifstream file(SavedSmallGraph(), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t room = (bytes.size() + 63 + 64) / 64 * 64;
  char* aligned = static_cast<char*>(std::aligned_alloc(64, room));
  for (const size_t offset : {size_t{0}, size_t{1}}) {  // unaligned bytes are copied
    for (const bool free_later : {true, false}) {
      std::memcpy(aligned + offset, bytes.data(), bytes.size());
      int freed = 0;
      const auto free_fn = [](void* user, const void*) { ++*static_cast<int*>(user); };
      msrt_model* model = nullptr;
      MSRT_ASSERT_OK(msrt_model_load_memory(runtime, aligned + offset, bytes.size(),
                                            free_later ? +free_fn : nullptr, &freed, nullptr,
                                            &model));
      const bool in_place = free_later && offset == 0;
      if (!in_place) std::memset(aligned, 0xFF, room);
      msrt_session* session = SessionOf(model);
      msrt_model_destroy(model);
      EXPECT_EQ(freed, free_later && !in_place ? 1 : 0);
      EXPECT_EQ(RunFloats(session, {2, 3}, kX), SmallResult(kX));
      msrt_session_destroy(session);
      EXPECT_EQ(freed, free_later ? 1 : 0);
    }
  }
  // A failed load leaves the bytes to the caller.
  int freed = 0;
  msrt_model* model = nullptr;
  std::memcpy(aligned, bytes.data(), bytes.size());
  aligned[100] = static_cast<char>(aligned[100] ^ 1);
  const auto free_fn = [](void* user, const void*) { ++*static_cast<int*>(user); };
  EXPECT_EQ(
      msrt_model_load_memory(runtime, aligned, bytes.size(), free_fn, &freed, nullptr, &model),
      MSRT_INVALID_MODEL);
  EXPECT_EQ(freed, 0);
  EXPECT_EQ(model, nullptr);
  std::free(aligned);
}

TEST_F(Api, InputsAndOutputsDescribeThemselves) {
  msrt_session* session = SessionOf(Compiled(SmallGraph(runtime)));
  size_t count = 0, index = 9;
  MSRT_EXPECT_OK(msrt_session_io_count(session, MSRT_INPUT, &count));
  EXPECT_EQ(count, 1u);
  MSRT_EXPECT_OK(msrt_session_io_find(session, MSRT_OUTPUT, "y", &index));
  EXPECT_EQ(index, 0u);
  EXPECT_EQ(msrt_session_io_find(session, MSRT_INPUT, "z", &index), MSRT_NOT_FOUND);
  EXPECT_NE(std::string(msrt_error_message()).find("'x'"), std::string::npos)
      << msrt_error_message();
  msrt_tensor_info info = MSRT_INIT(msrt_tensor_info);
  MSRT_ASSERT_OK(msrt_session_io_info(session, MSRT_INPUT, 0, &info));
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(info.dtype, MSRT_F32);
  EXPECT_EQ(info.rank, 2);
  EXPECT_EQ(info.dims[0], MSRT_UNKNOWN_DIM);
  EXPECT_STREQ(info.symbols[0], "n");
  EXPECT_EQ(info.dims[1], 3);
  EXPECT_EQ(info.symbols[1], nullptr);
  EXPECT_EQ(info.bytes, 0u);
  RunFloats(session, {2, 3}, kX);
  MSRT_ASSERT_OK(msrt_session_io_info(session, MSRT_OUTPUT, 0, &info));
  EXPECT_EQ(info.dims[0], 2);
  EXPECT_EQ(info.bytes, 24u);
  msrt_session_destroy(session);
}

TEST_F(Api, BoundMemoryIsUsedInPlace) {
  msrt_session* session = SessionOf(Compiled(SmallGraph(runtime)));
  std::vector<float> x = kX, y(6);
  int freed = 0;
  const auto free_fn = [](void* user, void*) { ++*static_cast<int*>(user); };
  const int64_t dims[] = {2, 3};
  msrt_tensor *input = nullptr, *output = nullptr, *result = nullptr;
  MSRT_ASSERT_OK(
      msrt_tensor_wrap(runtime, MSRT_F32, 2, dims, x.data(), 24, free_fn, &freed, &input));
  MSRT_ASSERT_OK(
      msrt_tensor_wrap(runtime, MSRT_F32, 2, dims, y.data(), 24, free_fn, &freed, &output));
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_INPUT, 0, input));
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_OUTPUT, 0, output));
  msrt_tensor_destroy(output);
  MSRT_ASSERT_OK(msrt_session_run(session, nullptr));
  EXPECT_EQ(y, SmallResult(kX));
  void* data = nullptr;
  MSRT_ASSERT_OK(msrt_session_output(session, 0, &result));
  MSRT_ASSERT_OK(msrt_tensor_data(result, &data));
  EXPECT_EQ(data, y.data());
  // Input and output must not share memory.
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_OUTPUT, 0, input));
  EXPECT_EQ(msrt_session_run(session, nullptr), MSRT_INVALID_ARGUMENT);
  // Unbinding releases the memory as soon as no handle needs it.
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_OUTPUT, 0, nullptr));
  EXPECT_EQ(freed, 0);
  msrt_tensor_destroy(result);
  EXPECT_EQ(freed, 1);
  MSRT_ASSERT_OK(msrt_session_run(session, nullptr));
  msrt_session_destroy(session);
  EXPECT_EQ(freed, 1);
  msrt_tensor_destroy(input);
  EXPECT_EQ(freed, 2);
}

TEST_F(Api, TakenOutputsAreNotOverwritten) {
  msrt_session* session = SessionOf(Compiled(SmallGraph(runtime)));
  msrt_tensor *first = nullptr, *second = nullptr, *none = nullptr;
  RunFloats(session, {2, 3}, kX);
  MSRT_ASSERT_OK(msrt_session_take_output(session, 0, &first));
  EXPECT_EQ(msrt_session_output(session, 0, &none), MSRT_INVALID_ARGUMENT);
  EXPECT_STREQ(msrt_error_message(),
               "output 0 was taken or bound anew after the last run; run again");
  EXPECT_EQ(msrt_session_take_output(session, 0, &none), MSRT_INVALID_ARGUMENT);
  const std::vector<float> ones(6, 1);
  RunFloats(session, {2, 3}, ones);
  MSRT_ASSERT_OK(msrt_session_take_output(session, 0, &second));
  msrt_session_destroy(session);
  EXPECT_EQ(FloatsOf(first), SmallResult(kX));
  EXPECT_EQ(FloatsOf(second), SmallResult(ones));
  msrt_tensor_destroy(first);
  msrt_tensor_destroy(second);
}

TEST_F(Api, TakenOutputsDoNotCountAgainstTheCap) {
  msrt_model* model = Compiled(SmallGraph(runtime));
  msrt_session_config config = MSRT_INIT(msrt_session_config);
  config.memory_cap_bytes = 8192;
  msrt_session* session = nullptr;
  MSRT_ASSERT_OK(msrt_session_create(model, nullptr, &config, &session));
  std::vector<msrt_tensor*> taken(8, nullptr);
  for (msrt_tensor*& tensor : taken) {  // 1200 bytes each, with all the rest far from the cap
    RunFloats(session, {100, 3}, std::vector<float>(300, 1));
    MSRT_ASSERT_OK(msrt_session_take_output(session, 0, &tensor));
  }
  for (msrt_tensor* tensor : taken) msrt_tensor_destroy(tensor);
  msrt_session_destroy(session);
  msrt_model_destroy(model);
}

TEST_F(Api, OutputsOutliveSessionTrimAndLargerRuns) {
  msrt_session* session = SessionOf(Compiled(SmallGraph(runtime)));
  RunFloats(session, {2, 3}, kX);
  msrt_tensor* first = nullptr;
  MSRT_ASSERT_OK(msrt_session_output(session, 0, &first));
  RunFloats(session, {50, 3}, std::vector<float>(150, 1));
  EXPECT_EQ(FloatsOf(first), SmallResult(kX));
  msrt_tensor* second = nullptr;
  MSRT_ASSERT_OK(msrt_session_output(session, 0, &second));
  MSRT_ASSERT_OK(msrt_session_trim(session));
  msrt_tensor* none = nullptr;
  EXPECT_EQ(msrt_session_output(session, 0, &none), MSRT_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
  msrt_session_destroy(session);
  msrt_runtime_destroy(runtime);
  EXPECT_EQ(FloatsOf(second), std::vector<float>(150, 2));
  msrt_tensor_destroy(first);
  msrt_tensor_destroy(second);
}

TEST_F(Api, StateCanBeReadWrittenResetAndCloned) {
  msrt_model* model = Compiled(CounterGraph(runtime));
  msrt_session* session = SessionOf(model);
  using Floats = std::vector<float>;
  EXPECT_EQ(RunFloats(session, {2}, {1, 2}, 1), (Floats{11, 22}));
  size_t count = 0, slot = 9;
  MSRT_EXPECT_OK(msrt_session_state_count(session, &count));
  EXPECT_EQ(count, 1u);
  MSRT_EXPECT_OK(msrt_session_state_find(session, "counter", &slot));
  EXPECT_EQ(slot, 0u);
  msrt_tensor_info info = MSRT_INIT(msrt_tensor_info);
  MSRT_EXPECT_OK(msrt_session_state_info(session, 0, &info));
  EXPECT_STREQ(info.name, "counter");
  EXPECT_EQ(info.dims[0], 2);
  msrt_session* clone = nullptr;
  MSRT_ASSERT_OK(msrt_session_clone(session, &clone));
  EXPECT_EQ(RunFloats(session, {2}, {1, 2}, 1), (Floats{12, 24}));
  EXPECT_EQ(RunFloats(clone, {2}, {100, 100}, 1), (Floats{111, 122}));
  msrt_tensor* value = nullptr;
  MSRT_ASSERT_OK(msrt_session_state_read(session, 0, &value));
  EXPECT_EQ(FloatsOf(value), (Floats{12, 24}));
  MSRT_ASSERT_OK(msrt_session_state_write(clone, 0, value));
  EXPECT_EQ(RunFloats(clone, {2}, {0, 0}, 0), (Floats{12, 24}));
  MSRT_ASSERT_OK(msrt_session_state_reset(session, 0));
  EXPECT_EQ(RunFloats(session, {2}, {0, 0}, 0), (Floats{10, 20}));
  // A run that fails leaves the state alone.
  msrt_run_config late = MSRT_INIT(msrt_run_config);
  late.timeout_us = 1;
  while (msrt_session_run(session, &late) == MSRT_OK) {
    ASSERT_EQ(msrt_session_state_reset(session, 0), MSRT_OK);
  }
  msrt_tensor_destroy(value);
  MSRT_ASSERT_OK(msrt_session_state_read(session, 0, &value));
  EXPECT_EQ(FloatsOf(value), (Floats{10, 20}));
  msrt_tensor_destroy(value);
  msrt_session_destroy(clone);
  msrt_session_destroy(session);
  msrt_model_destroy(model);
}

TEST_F(Api, CancelAndDeadlineStopALongRun) {
  msrt_model* model = Compiled(LongGraph(runtime, 192, 4000));
  msrt_session* session = SessionOf(model);
  msrt_tensor* input = FloatTensor(runtime, {192, 192}, std::vector<float>(192 * 192));
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_INPUT, 0, input));
  msrt_run_config timed = MSRT_INIT(msrt_run_config);
  timed.timeout_us = 20000;
  EXPECT_EQ(msrt_session_run(session, &timed), MSRT_DEADLINE_EXCEEDED);
  msrt_tensor* none = nullptr;
  EXPECT_EQ(msrt_session_output(session, 0, &none), MSRT_INVALID_ARGUMENT);

  // The run is refused if it begins while the poll below is inside the session: try again.
  std::atomic<msrt_status> ran{MSRT_INVALID_ARGUMENT};
  std::thread runner([&] {
    while (ran == MSRT_INVALID_ARGUMENT) ran = msrt_session_run(session, nullptr);
  });
  const auto poll = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    size_t count = 0;
    return msrt_session_io_count(session, MSRT_INPUT, &count);
  };
  // A second user is refused while the first is inside.
  msrt_status refused = MSRT_OK;
  for (int i = 0; i < 20000 && refused == MSRT_OK; ++i) refused = poll();
  EXPECT_EQ(refused, MSRT_INVALID_ARGUMENT);
  // Waits until the run is in progress: a cancel before the run does nothing.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  MSRT_EXPECT_OK(msrt_session_cancel(session));
  // The handle may be destroyed during the run.
  msrt_session_destroy(session);
  runner.join();
  EXPECT_EQ(ran.load(), MSRT_CANCELLED);
  msrt_tensor_destroy(input);
  msrt_model_destroy(model);
}

TEST_F(Api, MemoryCapIsEnforced) {
  msrt_model* model = Compiled(SmallGraph(runtime));
  msrt_session_config config = MSRT_INIT(msrt_session_config);
  config.memory_cap_bytes = 100000;
  msrt_session* session = nullptr;
  MSRT_ASSERT_OK(msrt_session_create(model, "main", &config, &session));
  EXPECT_EQ(RunFloats(session, {2, 3}, kX), SmallResult(kX));
  msrt_status status = MSRT_OK;
  RunFloats(session, {100000, 3}, std::vector<float>(300000), 0, &status);
  EXPECT_EQ(status, MSRT_LIMIT_EXCEEDED);
  EXPECT_EQ(RunFloats(session, {2, 3}, kX), SmallResult(kX));
  msrt_session_destroy(session);
  msrt_model_destroy(model);
}

TEST_F(Api, ReportsAreJson) {
  msrt_model* model = Compiled(SmallGraph(runtime));
  const char* text = nullptr;
  MSRT_ASSERT_OK(msrt_runtime_info_json(runtime, &text));
  const Json runtime_info = Json::parse(text);
  EXPECT_EQ(runtime_info["version"], msrt_version());
  EXPECT_FALSE(runtime_info["delegates"].empty());
  EXPECT_GT(runtime_info["ops"].size(), 100u);
  MSRT_ASSERT_OK(msrt_model_info_json(model, &text));
  const Json model_info = Json::parse(text);
  EXPECT_EQ(model_info["name"], "small");
  EXPECT_EQ(model_info["entries"][0]["inputs"][0]["dims"], Json::parse(R"(["n", 3])"));
  EXPECT_FALSE(model_info["ops"].empty());

  msrt_session_config config = MSRT_INIT(msrt_session_config);
  config.profile = 1;
  msrt_session* session = nullptr;
  MSRT_ASSERT_OK(msrt_session_create(model, nullptr, &config, &session));
  RunFloats(session, {2, 3}, kX);
  MSRT_ASSERT_OK(msrt_session_report(session, MSRT_REPORT_PLAN, &text));
  const Json plan = Json::parse(text);
  ASSERT_FALSE(plan["nodes"].empty());
  EXPECT_TRUE(plan["nodes"][0].contains("delegate"));
  EXPECT_NEAR(plan["kernels_ms"].get<double>() + plan["transfers_ms"].get<double>() +
                  plan["launches_ms"].get<double>(),
              plan["expected_ms"].get<double>(), 1e-9);
  double steps_us = 0, partitions_ms = 0;
  for (const Json& step : plan["steps"]) steps_us += step["us"].get<double>();
  for (const Json& p : plan["partitions"])
    partitions_ms += p["kernels_ms"].get<double>() + p["transfers_ms"].get<double>();
  EXPECT_NEAR(steps_us * 1e-3, plan["expected_ms"].get<double>(), 1e-9);
  EXPECT_NEAR(partitions_ms, plan["expected_ms"].get<double>(), 1e-9);
  MSRT_ASSERT_OK(msrt_session_report(session, MSRT_REPORT_PLAN_TEXT, &text));
  EXPECT_NE(std::string(text).find("a run expected"), std::string::npos);
  MSRT_ASSERT_OK(msrt_session_report(session, MSRT_REPORT_PLAN_SVG, &text));
  EXPECT_EQ(std::string(text).find("<svg"), 0u);
  MSRT_ASSERT_OK(msrt_session_report(session, MSRT_REPORT_PROFILE, &text));
  EXPECT_FALSE(Json::parse(text)["steps"].empty());
  MSRT_ASSERT_OK(msrt_session_report(session, MSRT_REPORT_MEMORY, &text));
  EXPECT_GE(Json::parse(text)["output_bytes"], 24);
  msrt_session_destroy(session);
  msrt_model_destroy(model);
}

TEST_F(Api, EachThreadHasItsOwnLastError) {
  EXPECT_EQ(msrt_tensor_create(runtime, 99, 0, nullptr, nullptr), MSRT_INVALID_ARGUMENT);
  const std::string mine = msrt_error_message();
  std::thread([&] {
    EXPECT_STREQ(msrt_error_message(), "");
    EXPECT_EQ(Json::parse(msrt_error_json())["code"], 0);
    EXPECT_EQ(msrt_model_load_file(runtime, "no/such/\"file\"\n\xFF", nullptr, nullptr),
              MSRT_INVALID_ARGUMENT);
  }).join();
  EXPECT_EQ(msrt_error_message(), mine);
  msrt_model* model = nullptr;
  EXPECT_NE(msrt_model_load_file(runtime, "no/such/\"file\"\n\xFF", nullptr, &model), MSRT_OK);
  const Json error = Json::parse(msrt_error_json());
  EXPECT_EQ(error["function"], "msrt_model_load_file");
  EXPECT_EQ(error["status"], msrt_status_string(error["code"].get<int>()));
  EXPECT_NE(error["message"].get<std::string>().find("\"file\"\n\xEF\xBF\xBD"), std::string::npos);
  EXPECT_STREQ(msrt_status_string(1234), "unknown status");
  EXPECT_EQ(RecordOutOfMemory("msrt_session_run"), MSRT_OUT_OF_MEMORY);
  const Json no_memory = Json::parse(msrt_error_json());
  EXPECT_EQ(no_memory["function"], "msrt_session_run");
  EXPECT_EQ(no_memory["code"], MSRT_OUT_OF_MEMORY);
  EXPECT_EQ(no_memory["status"], msrt_status_string(MSRT_OUT_OF_MEMORY));
  EXPECT_EQ(no_memory["message"], msrt_error_message());
  EXPECT_EQ(no_memory["details"], Json::object());
}

TEST_F(Api, ModelConfigChoosesDelegatesAndPasses) {
  msrt_graph* graph = SmallGraph(runtime);
  const int64_t dims[] = {4, 3};
  const msrt_named_dims typical = {"x", 2, dims};
  msrt_model_config config = MSRT_INIT(msrt_model_config);
  config.delegates = "reference";
  config.disabled_passes = "all";
  config.typical = &typical;
  config.typical_count = 1;
  config.accuracy = MSRT_ACCURACY_EXACT;
  config.strict = 1;
  config.binding_cache_bytes = 1;
  msrt_model* model = nullptr;
  MSRT_ASSERT_OK(msrt_graph_compile(graph, &config, &model));
  msrt_session* session = SessionOf(model);
  EXPECT_EQ(RunFloats(session, {2, 3}, kX), SmallResult(kX));
  const char* text = nullptr;
  MSRT_ASSERT_OK(msrt_session_report(session, MSRT_REPORT_PLAN, &text));
  const Json plan = Json::parse(text);
  EXPECT_EQ(plan["nodes"].size(), 3u);
  for (const Json& node : plan["nodes"]) EXPECT_EQ(node["delegate"], "reference");
  msrt_session_destroy(session);
  msrt_model_destroy(model);
  msrt_graph_destroy(graph);
}

TEST_F(Api, CalibrationAffectsModelsLoadedLater) {
  const auto machine = [&] {
    const char* text = nullptr;
    MSRT_EXPECT_OK(msrt_runtime_info_json(runtime, &text));
    return Json::parse(text)["machine"];
  };
  EXPECT_EQ(machine()["measured"], false);
  MSRT_ASSERT_OK(msrt_runtime_calibrate(runtime));
  EXPECT_EQ(machine()["measured"], true);
  EXPECT_GT(machine()["flops_per_second"], 1e8);
  EXPECT_GT(machine()["bytes_per_second"], 1e8);
  msrt_graph* graph = SmallGraph(runtime);
  msrt_model* model = Compiled(graph);
  msrt_session* session = SessionOf(model);
  EXPECT_EQ(RunFloats(session, {2, 3}, kX), SmallResult(kX));
  msrt_session_destroy(session);
  msrt_model_destroy(model);
  msrt_graph_destroy(graph);
  EXPECT_EQ(msrt_runtime_calibrate(nullptr), MSRT_INVALID_ARGUMENT);
}

TEST_F(Api, CostsFileReplacesEstimates) {
  const std::string path = ::testing::TempDir() + "api_test.costs";
  const auto write = [&](const std::string& text) { std::ofstream(path) << text; };
  msrt_graph* graph = SmallGraph(runtime);
  msrt_model_config config = MSRT_INIT(msrt_model_config);
  config.costs_file = path.c_str();
  config.delegates = "reference";
  msrt_model* model = nullptr;
  write("no costs\n");
  EXPECT_EQ(msrt_graph_compile(graph, &config, &model), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("api_test.costs': line 1"), std::string::npos)
      << msrt_error_message();
  write(
      "msrt costs 1\nthreads 1\nflops_per_second 1e9\nbytes_per_second 1e9\n"
      "0.5 reference loops | Add/23 ( #0:f32[1,3] #1:f32[1]=const ) -> #2:f32[1,3]\n");
  config.disabled_passes = "all";
  MSRT_ASSERT_OK(msrt_graph_compile(graph, &config, &model));
  msrt_session* session = SessionOf(model);
  const char* text = nullptr;
  MSRT_ASSERT_OK(msrt_session_report(session, MSRT_REPORT_PLAN, &text));
  const Json nodes = Json::parse(text)["nodes"];
  EXPECT_EQ(nodes[0]["measured"], true) << nodes;
  EXPECT_NEAR(nodes[0]["us"].get<double>(), 5e5, 1e-3);
  EXPECT_EQ(nodes[1]["measured"], false);
  msrt_session_destroy(session);
  msrt_model_destroy(model);
  msrt_graph_destroy(graph);
  std::remove(path.c_str());
}

TEST_F(Api, PinsDecideWhereNodesRun) {
  msrt_graph* graph = SmallGraph(runtime);
  msrt_model_config config = MSRT_INIT(msrt_model_config);
  config.disabled_passes = "all";
  config.pins = "op:Relu=reference; node:*!=reference";
  msrt_model* model = nullptr;
  EXPECT_EQ(msrt_graph_compile(graph, &config, &model),
            MSRT_UNSUPPORTED);  // no delegate is left for the Relu
  EXPECT_NE(std::string(msrt_error_message()).find("pinned by the user: "), std::string::npos)
      << msrt_error_message();
  config.pins = "relu=reference";
  EXPECT_EQ(msrt_graph_compile(graph, &config, &model), MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("config.pins: pin 'relu=reference'"),
            std::string::npos)
      << msrt_error_message();
  config.pins = "*=tpu";
  EXPECT_EQ(msrt_graph_compile(graph, &config, &model), MSRT_NOT_FOUND);
  config.pins = "op:Relu=reference";
  MSRT_ASSERT_OK(msrt_graph_compile(graph, &config, &model));
  msrt_session* session = SessionOf(model);
  const char* text = nullptr;
  MSRT_ASSERT_OK(msrt_session_report(session, MSRT_REPORT_PLAN, &text));
  const Json plan = Json::parse(text);
  for (const Json& node : plan["nodes"]) {
    EXPECT_TRUE(node["op"] != "Relu" || node["delegate"] == "reference") << node;
  }
  EXPECT_EQ(RunFloats(session, {2, 3}, kX), SmallResult(kX));
  msrt_session_destroy(session);
  msrt_model_destroy(model);
  msrt_graph_destroy(graph);
}

TEST(ApiRuntime, UnmatchedPinIsLoggedOnce) {
  std::vector<std::string> lines;
  msrt_runtime_config runtime_config = MSRT_INIT(msrt_runtime_config);
  runtime_config.log_level = MSRT_LOG_WARNING;
  runtime_config.log = [](void* user, int32_t, const char* line) {
    static_cast<std::vector<std::string>*>(user)->push_back(line);
  };
  runtime_config.log_user = &lines;
  msrt_runtime* runtime = nullptr;
  MSRT_ASSERT_OK(msrt_runtime_create(&runtime_config, &runtime));
  msrt_graph* graph = SmallGraph(runtime);
  msrt_model_config config = MSRT_INIT(msrt_model_config);
  config.pins = "node:nosuch*=reference";
  msrt_model* model = nullptr;
  MSRT_ASSERT_OK(msrt_graph_compile(graph, &config, &model));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("node:nosuch*=reference"), std::string::npos);
  msrt_model_destroy(model);
  msrt_graph_destroy(graph);
  msrt_runtime_destroy(runtime);
}

TEST(ApiRuntime, AllocatorIsUsedAndLeaksNothing) {
  CountingAllocator allocator;
  static int destroyed;
  destroyed = 0;
  msrt_runtime_config config = allocator.Config();
  config.destroy_user_data = [](void* log, void* memory, void* parallel) {
    EXPECT_EQ(log, nullptr);
    EXPECT_EQ(static_cast<CountingAllocator*>(memory)->blocks, 0);
    EXPECT_EQ(parallel, nullptr);
    ++destroyed;
  };
  msrt_runtime* runtime = nullptr;
  MSRT_ASSERT_OK(msrt_runtime_create(&config, &runtime));
  msrt_model* model = Compiled(CounterGraph(runtime));
  msrt_session* session = SessionOf(model);
  RunFloats(session, {2}, {1, 2});
  EXPECT_GT(allocator.blocks, 0);
  msrt_tensor* state = nullptr;
  MSRT_ASSERT_OK(msrt_session_state_read(session, 0, &state));
  msrt_session_destroy(session);
  msrt_runtime_destroy(runtime);
  msrt_model_destroy(model);
  EXPECT_EQ(destroyed, 0);
  EXPECT_EQ(allocator.blocks, 1);
  msrt_tensor_destroy(state);
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(allocator.blocks, 0);
  EXPECT_EQ(allocator.bytes, 0);
  // If create fails, the caller keeps the user pointers.
  config.threads = -1;
  EXPECT_EQ(msrt_runtime_create(&config, &runtime), MSRT_INVALID_ARGUMENT);
  EXPECT_EQ(destroyed, 1);
}

// The application's threads: one for each index, in reverse order.
void BackwardThreads(void* user, int64_t count, void (*task)(void*, int64_t), void* context) {
  ++*static_cast<std::atomic<int>*>(user);
  std::vector<std::thread> threads;
  for (int64_t i = count - 1; i >= 0; --i) threads.emplace_back([=] { task(context, i); });
  for (std::thread& t : threads) t.join();
}

TEST(ApiRuntime, RunsUseTheApplicationsParallelFor) {
  std::atomic<int> calls{0};
  msrt_runtime_config config = MSRT_INIT(msrt_runtime_config);
  config.threads = 3;
  config.parallel_for = &BackwardThreads;
  config.parallel_user = &calls;
  msrt_runtime* runtime = nullptr;
  MSRT_ASSERT_OK(msrt_runtime_create(&config, &runtime));
  msrt_graph* graph = SmallGraph(runtime);
  msrt_model_config reference = MSRT_INIT(msrt_model_config);
  reference.delegates = "reference";
  msrt_model* model = nullptr;
  MSRT_ASSERT_OK(msrt_graph_compile(graph, &reference, &model));
  msrt_session* session = SessionOf(model);
  const std::vector<float> x(300000, 2);
  EXPECT_EQ(RunFloats(session, {100000, 3}, x), SmallResult(x));
  EXPECT_GT(calls, 0);
  msrt_session_destroy(session);
  msrt_model_destroy(model);
  msrt_graph_destroy(graph);
  msrt_runtime_destroy(runtime);
}

// The error is detected even if the number of calls is right.
TEST(ApiRuntime, ParallelForThatSkipsAnIndexFails) {
  msrt_runtime_config config = MSRT_INIT(msrt_runtime_config);
  config.parallel_for = [](void* user, int64_t count, void (*task)(void*, int64_t), void* context) {
    const bool repeats = *static_cast<bool*>(user);
    for (int64_t i = repeats ? 0 : 1; i < count; ++i)
      task(context, repeats && i + 1 == count ? 0 : i);
  };
  for (bool repeats : {false, true}) {
    config.parallel_user = &repeats;
    const std::unique_ptr<ParallelFor> parallel = MakeCallbackParallel(config, 3);
    for (const int64_t count : {2, 3, 8, 5000}) {
      const Status status = parallel->Run(count, [](int64_t) {});
      EXPECT_EQ(status.code(), Code::kInvalidArgument);
      const std::string calls = StrCat("it made ", repeats ? count : count - 1, " such calls",
                                       repeats ? ", some for the same index" : "");
      EXPECT_NE(status.message().find(calls), std::string::npos) << status.message();
    }
  }
}

// Users disable passes by these names.
TEST(ApiRuntime, InfoListsPassesOfPlugins) {
  auto environment = std::make_shared<Environment>();
  environment->parallel = MakeSerial();
  environment->passes.push_back({"brought_along", nullptr});
  RuntimeObject runtime(std::move(environment));
  const Json passes = Json::parse(runtime.info())["passes"];
  EXPECT_EQ(passes.back(), "brought_along");
  EXPECT_GT(passes.size(), 10u);
}

TEST(ApiRuntime, TwoRuntimesWorkAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([] {
      CountingAllocator allocator;
      const msrt_runtime_config config = allocator.Config();
      msrt_runtime* runtime = nullptr;
      MSRT_ASSERT_OK(msrt_runtime_create(&config, &runtime));
      for (int i = 0; i < 5; ++i) {
        msrt_model* model = Compiled(SmallGraph(runtime));
        msrt_session* session = SessionOf(model);
        EXPECT_EQ(RunFloats(session, {2, 3}, kX), SmallResult(kX));
        msrt_session_destroy(session);
        msrt_model_destroy(model);
      }
      msrt_runtime_destroy(runtime);
      EXPECT_EQ(allocator.blocks, 0);
    });
  }
  for (std::thread& t : threads) t.join();
}

// Destroys five objects in every order; those that are left keep working.
TEST(ApiRuntime, ObjectsCanBeDestroyedInAnyOrder) {
  std::vector<int> order = {0, 1, 2, 3, 4};
  do {
    CountingAllocator allocator;
    const msrt_runtime_config config = allocator.Config();
    msrt_runtime* runtime = nullptr;
    MSRT_ASSERT_OK(msrt_runtime_create(&config, &runtime));
    msrt_graph* graph = SmallGraph(runtime);
    msrt_model* model = nullptr;
    MSRT_ASSERT_OK(msrt_graph_compile(graph, nullptr, &model));
    msrt_session* session = SessionOf(model);
    RunFloats(session, {2, 3}, kX);
    msrt_tensor* output = nullptr;
    MSRT_ASSERT_OK(msrt_session_output(session, 0, &output));
    for (const int which : order) {
      if (which == 0) msrt_runtime_destroy(runtime);
      if (which == 1) msrt_graph_destroy(graph);
      if (which == 2) msrt_model_destroy(model);
      if (which == 3) {
        EXPECT_EQ(RunFloats(session, {2, 3}, kX), SmallResult(kX));
        msrt_session_destroy(session);
      }
      if (which == 4) {
        EXPECT_EQ(FloatsOf(output), SmallResult(kX));
        msrt_tensor_destroy(output);
      }
    }
    EXPECT_EQ(allocator.blocks, 0);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(ApiRuntime, LogLinesReachTheApplication) {
  std::vector<std::string> lines;
  msrt_runtime_config config = MSRT_INIT(msrt_runtime_config);
  config.log = [](void* user, int32_t level, const char* line) {
    static_cast<std::vector<std::string>*>(user)->push_back(std::to_string(level) + line);
  };
  config.log_user = &lines;
  config.log_level = MSRT_LOG_WARNING;
  const Log log = MakeCallbackLog(config);
  log(LogLevel::kWarning, "a", 1);
  log(LogLevel::kInfo, "too much");
  EXPECT_EQ(lines, std::vector<std::string>{"1a1"});
  MakeCallbackLog(MSRT_INIT(msrt_runtime_config))(LogLevel::kError, "nobody listens");
}

}  // namespace
}  // namespace msrt::testing

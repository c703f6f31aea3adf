// Callbacks that call the library, and a delegate that fails: what the application learns of it,
// and which sessions can run meanwhile. A lock held during a callback shows as a test that never
// ends.
#include "core/api/callbacks.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "core/abi/msrt_plugin.h"
#include "core/api/api_testing.h"

namespace msrt::testing {
namespace {

using Json = nlohmann::json;

// A delegate for Neg of f32 that fails once `dead` is set.
struct Mortal {
  bool dead = false, binds = true;
  std::function<void()> on_query, on_bound_destroy;

  void Register(msrt_runtime* runtime) {
    msrt_delegate_api api = MSRT_INIT(msrt_delegate_api);
    api.plugin_abi = MSRT_PLUGIN_ABI;
    api.name = "mortal";
    api.query = &Query;
    api.compile = [](void* self, const msrt_host_api*, const msrt_graph_view*,
                     const msrt_candidate*,
                     void** kernel) -> msrt_status { return *kernel = self, MSRT_OK; };
    api.kernel_destroy = [](void*, void*) {};
    api.bind = &Bind;
    api.bound_destroy = [](void* self, void* bound) {
      delete static_cast<int64_t*>(bound);
      Call(&static_cast<Mortal*>(self)->on_bound_destroy);
    };
    api.run = &Run;
    MSRT_ASSERT_OK(msrt_runtime_register_delegate(runtime, &api, this));
  }

 private:
  // Calls the hook only once, since the hook may lead back here.
  static void Call(std::function<void()>* hook) {
    if (const auto once = std::exchange(*hook, nullptr)) once();
  }
  static msrt_status Query(void* self, const msrt_host_api*, const msrt_graph_view* graph,
                           const msrt_query_sink* sink) {
    Call(&static_cast<Mortal*>(self)->on_query);
    for (uint32_t n = 0; n < graph->node_count; ++n) {
      if (graph->node(graph->graph, n)->op != std::string("Neg")) continue;
      msrt_candidate candidate = MSRT_INIT(msrt_candidate);
      candidate.nodes = &n;
      candidate.node_count = candidate.input_count = candidate.output_count = 1;
      candidate.seconds = 1e-9;
      candidate.algorithm = "mortally";
      sink->candidate(sink->sink, &candidate);
    }
    return MSRT_OK;
  }
  static msrt_status Bind(void* self, const msrt_host_api* host, void*,
                          const msrt_bound_node* nodes, size_t, void** bound) {
    if (!static_cast<Mortal*>(self)->binds)
      return host->fail(host->host, "it cannot bind"), MSRT_DELEGATE;
    return *bound = new int64_t(nodes[0].inputs[0].dims[0]), MSRT_OK;
  }
  static msrt_status Run(void* self, void* bound, const msrt_run_args* args) {
    if (static_cast<Mortal*>(self)->dead)
      return args->host->fail(args->host->host, "it is <dead>"), MSRT_DELEGATE;
    for (int64_t i = 0; i < *static_cast<int64_t*>(bound); ++i) {
      static_cast<float*>(args->outputs[0])[i] = -static_cast<const float*>(args->inputs[0])[i];
    }
    return MSRT_OK;
  }
};

class Callbacks : public ::testing::Test {
 protected:
  void SetUp() override {
    msrt_runtime_config config = MSRT_INIT(msrt_runtime_config);
    config.log_level = MSRT_LOG_INFO;
    config.log = [](void* self, int32_t, const char* line) {
      static_cast<Callbacks*>(self)->Logged(line);
    };
    config.log_user = this;
    MSRT_ASSERT_OK(msrt_runtime_create(&config, &runtime_));
    mortal_.Register(runtime_);
  }
  void TearDown() override {
    for (msrt_session* session : sessions_) msrt_session_destroy(session);
    msrt_model_destroy(model_);
    msrt_runtime_destroy(runtime_);
  }

  // y = -x, x: f32[extent].
  void Compile(int64_t extent = MSRT_UNKNOWN_DIM) {
    msrt_graph* graph = nullptr;
    MSRT_ASSERT_OK(msrt_graph_create(runtime_, "neg", &graph));
    const msrt_tensor_info info = InfoOf(MSRT_F32, {extent}, "x");
    msrt_value x = MSRT_NO_VALUE;
    MSRT_ASSERT_OK(msrt_graph_add_input(graph, &info, &x));
    MSRT_ASSERT_OK(msrt_graph_add_output(graph, AddNode(graph, "Neg", "neg", {x}), "y"));
    msrt_model_config config = MSRT_INIT(msrt_model_config);
    config.binding_cache_bytes = 1;
    MSRT_ASSERT_OK(msrt_graph_compile(graph, &config, &model_));
    msrt_graph_destroy(graph);
  }
  msrt_session* NewSession() {
    msrt_session_config config = MSRT_INIT(msrt_session_config);
    config.profile = 1;
    msrt_session* session = nullptr;
    MSRT_EXPECT_OK(msrt_session_create(model_, nullptr, &config, &session));
    return sessions_.emplace_back(session);
  }
  static void ExpectRuns(msrt_session* session) {
    EXPECT_EQ(RunFloats(session, {2}, {1, 2}), (std::vector<float>{-1, -2}));
  }
  static std::string Report(msrt_session* session, msrt_report kind) {
    const char* text = "";
    MSRT_EXPECT_OK(msrt_session_report(session, kind, &text));
    return text;
  }
  std::string InfoText() {
    const char* text = "";
    MSRT_EXPECT_OK(msrt_runtime_info_json(runtime_, &text));
    return text;
  }

  msrt_runtime* runtime_ = nullptr;
  Mortal mortal_;
  msrt_model* model_ = nullptr;
  std::vector<msrt_session*> sessions_;
  std::vector<std::string> lines_;
  std::function<void()> on_log_;

 private:
  void Logged(const char* line) {
    lines_.emplace_back(line);
    if (const auto once = std::exchange(on_log_, nullptr)) once();
  }
};

TEST_F(Callbacks, LogOfACalibrationMayUseTheRuntime) {
  std::string seen;
  on_log_ = [&] {
    seen = InfoText();
    msrt_tensor_destroy(FloatTensor(runtime_, {1}, {1}));
  };
  MSRT_ASSERT_OK(msrt_runtime_calibrate(runtime_));
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(Json::parse(seen)["machine"]["measured"], true) << "what is logged has happened";
}

TEST_F(Callbacks, LogOfAFailedDelegateMayRunAnotherSession) {
  Compile();
  msrt_session *one = NewSession(), *two = NewSession();
  mortal_.dead = true;
  on_log_ = [&] { ExpectRuns(two); };
  ExpectRuns(one);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("mortal failed at run time (node 0 'neg' (Neg): it is <dead>)"),
            std::string::npos)
      << lines_[0];
}

// While the model is placed again, another session fails in the same way and finishes first.
TEST_F(Callbacks, QueryMayRunAnotherSession) {
  Compile();
  msrt_session *one = NewSession(), *two = NewSession();
  mortal_.dead = true;
  bool nested = false;
  mortal_.on_query = [&] {
    nested = true;
    ExpectRuns(two);
  };
  ExpectRuns(one);
  EXPECT_TRUE(nested);
  EXPECT_EQ(lines_.size(), 1u);  // placed twice, but replaced once
  ExpectRuns(two);
  EXPECT_EQ(Json::parse(Report(one, MSRT_REPORT_PLAN))["lost"].size(), 1u);
}

TEST_F(Callbacks, DestroyedBindingMayAskForAReport) {
  Compile();
  msrt_session *one = SessionOf(model_), *two = NewSession();
  ExpectRuns(one);
  // From here on only the cache holds the binding, until the next one evicts it.
  msrt_session_destroy(one);
  std::string report;
  mortal_.on_bound_destroy = [&] { report = Report(NewSession(), MSRT_REPORT_MEMORY); };
  EXPECT_EQ(RunFloats(two, {3}, {1, 2, 3}), (std::vector<float>{-1, -2, -3}));
  EXPECT_EQ(Json::parse(report)["shared"]["bindings"], 1) << report;
}

TEST_F(Callbacks, PlacementReportNamesFailedDelegate) {
  Compile();
  msrt_session* session = NewSession();
  ExpectRuns(session);
  EXPECT_EQ(Json::parse(Report(session, MSRT_REPORT_PLAN))["lost"], Json::array());
  mortal_.dead = true;
  ExpectRuns(session);
  const Json plan = Json::parse(Report(session, MSRT_REPORT_PLAN));
  const std::string reason = "it failed at run time (node 0 'neg' (Neg): it is <dead>)";
  EXPECT_EQ(plan["lost"], Json::parse(R"([{"delegate": "mortal", "reason": ")" + reason + "\"}]"));
  const Json others = plan["nodes"][0]["others"];
  EXPECT_TRUE(std::any_of(others.begin(), others.end(), [&](const Json& other) {
    return other["delegate"] == "mortal" &&
           other["reason"] == "mortally, plain: left out: " + reason;
  })) << others;
  const std::string text = Report(session, MSRT_REPORT_PLAN_TEXT),
                    svg = Report(session, MSRT_REPORT_PLAN_SVG);
  EXPECT_NE(text.find("  left out: mortal: " + reason), std::string::npos) << text;
  EXPECT_NE(svg.find("left out: mortal: it failed at run time (node 0 &#39;neg&#39; (Neg): it is "
                     "&lt;dead&gt;)</text>"),
            std::string::npos)
      << svg;
  EXPECT_EQ((text + svg + plan.dump()).find("pinned"), std::string::npos);
}

TEST_F(Callbacks, PlacementReportNamesDelegateThatCannotBind) {
  mortal_.binds = false;
  Compile(2);
  msrt_session* session = NewSession();
  ExpectRuns(session);
  const Json plan = Json::parse(Report(session, MSRT_REPORT_PLAN));
  ASSERT_EQ(plan["lost"].size(), 1u) << plan;
  EXPECT_EQ(plan["lost"][0]["reason"].get<std::string>().find("it failed to bind ("), 0u)
      << plan["lost"];
  EXPECT_EQ(plan.dump().find("pinned"), std::string::npos);
}

// Times belong to the measured program, even after another session has replaced it.
TEST_F(Callbacks, ProfileOutlivesItsProgram) {
  Compile();
  msrt_session *one = NewSession(), *two = NewSession();
  ExpectRuns(one);
  const std::string before = Report(one, MSRT_REPORT_PROFILE);
  EXPECT_EQ(Json::parse(before)["steps"][0]["delegate"], "mortal") << before;
  mortal_.dead = true;
  ExpectRuns(two);
  EXPECT_EQ(Report(one, MSRT_REPORT_PROFILE), before);
  EXPECT_NE(Json::parse(Report(two, MSRT_REPORT_PROFILE))["steps"][0]["delegate"], "mortal");
}

}  // namespace
}  // namespace msrt::testing

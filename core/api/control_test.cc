// Models of several graphs, built, limited and run through the C API alone: branches, loops,
// recursion, functions as values, state inside.
#include <chrono>
#include <cstring>
#include <thread>

#include "core/api/api_testing.h"

namespace msrt::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kRounds = 100'000, kDepth = 2'000;
#else
constexpr int64_t kRounds = 5'000'000, kDepth = 100'000;
#endif

msrt_attr GraphAttr(const char* name, msrt_graph* const* graph) {
  msrt_attr attr = {};
  attr.name = name;
  attr.kind = MSRT_ATTR_GRAPH;
  attr.graphs = graph;
  return attr;
}

msrt_attr IntAttr(const char* name, const int64_t* value) {
  msrt_attr attr = {};
  attr.name = name;
  attr.kind = MSRT_ATTR_INT;
  attr.ints = value;
  return attr;
}

struct NodeParts {
  const char* domain = nullptr;
  const char* op = "";
  std::vector<msrt_value> inputs = {};
  std::vector<msrt_attr> attrs = {};
  std::vector<msrt_tensor_info> types = {};  // of its outputs, if they must be declared
  const char* name = nullptr;
  size_t output_count = 0;
};

msrt_status Add(msrt_graph* graph, const NodeParts& parts, msrt_value* outputs) {
  msrt_node_desc node = MSRT_INIT(msrt_node_desc);
  node.domain = parts.domain;
  node.op = parts.op;
  node.name = parts.name;
  node.inputs = parts.inputs.data();
  node.input_count = parts.inputs.size();
  node.attrs = parts.attrs.data();
  node.attr_count = parts.attrs.size();
  node.output_count = parts.types.empty() ? parts.output_count : parts.types.size();
  node.output_types = parts.types.empty() ? nullptr : parts.types.data();
  return msrt_graph_add_node(graph, &node, outputs);
}

class ControlApi : public ::testing::Test {
 protected:
  void SetUp() override {
    MSRT_ASSERT_OK(msrt_runtime_create(nullptr, &runtime));
    MSRT_ASSERT_OK(msrt_graph_create(runtime, "flow", &main));
  }
  void TearDown() override {
    msrt_session_destroy(session);
    for (msrt_graph* g : graphs) msrt_graph_destroy(g);
    msrt_graph_destroy(main);
    msrt_runtime_destroy(runtime);
  }

  msrt_graph* NewGraph(const char* name) {
    msrt_graph* graph = nullptr;
    MSRT_EXPECT_OK(msrt_graph_add_graph(main, name, &graph));
    graphs.push_back(graph);
    return graph;
  }
  // An i64 scalar by default.
  msrt_value Input(msrt_graph* graph, const char* name, msrt_dtype dtype = MSRT_I64) {
    const msrt_tensor_info info = InfoOf(dtype, {}, name);
    msrt_value value = MSRT_NO_VALUE;
    MSRT_EXPECT_OK(msrt_graph_add_input(graph, &info, &value));
    return value;
  }
  msrt_tensor* Number(int64_t value) {
    msrt_tensor* tensor = nullptr;
    void* data = nullptr;
    MSRT_EXPECT_OK(msrt_tensor_create(runtime, MSRT_I64, 0, nullptr, &tensor));
    MSRT_EXPECT_OK(msrt_tensor_data(tensor, &data));
    std::memcpy(data, &value, sizeof value);
    return tensor;
  }
  msrt_value Constant(msrt_graph* graph, int64_t number) {
    msrt_tensor* tensor = Number(number);
    msrt_value value = MSRT_NO_VALUE;
    MSRT_EXPECT_OK(msrt_graph_add_constant(graph, nullptr, tensor, &value));
    msrt_tensor_destroy(tensor);
    return value;
  }
  msrt_value Node(msrt_graph* graph, const NodeParts& parts) {
    msrt_value out = MSRT_NO_VALUE;
    MSRT_EXPECT_OK(Add(graph, parts, &out));
    return out;
  }
  msrt_value Op(msrt_graph* graph, const char* op, std::vector<msrt_value> inputs) {
    return Node(graph, {.op = op, .inputs = std::move(inputs)});
  }
  msrt_value If(msrt_graph* graph, msrt_value condition, std::vector<msrt_value> captured,
                msrt_graph* yes, msrt_graph* no) {
    captured.insert(captured.begin(), condition);
    return Node(graph, {.op = "If",
                        .inputs = captured,
                        .attrs = {GraphAttr("then_branch", &yes), GraphAttr("else_branch", &no)}});
  }
  // A call of a graph that may still be empty; its result is a scalar.
  msrt_value Call(msrt_graph* graph, msrt_graph* callee, std::vector<msrt_value> arguments) {
    return Node(graph, {.domain = "msrt",
                        .op = "Call",
                        .inputs = std::move(arguments),
                        .attrs = {GraphAttr("graph", &callee)},
                        .types = {InfoOf(MSRT_I64, {}, nullptr)}});
  }
  void Output(msrt_graph* graph, msrt_value value, const char* name = "result") {
    MSRT_EXPECT_OK(msrt_graph_add_output(graph, value, name));
  }

  // f(n) = n == 0 ? base : step(n), with the step in a graph of its own, whose input is returned.
  msrt_value Recursive(msrt_graph* f, const char* base_name, int64_t base, const char* step_name,
                       msrt_graph** step) {
    const msrt_value n = Input(f, "n");
    msrt_graph* done = NewGraph(base_name);
    *step = NewGraph(step_name);
    Input(done, "n");
    Output(done, Constant(done, base));
    const msrt_value m = Input(*step, "n");
    pending.push_back({f, done, *step, n});
    return m;
  }
  // Adds the Ifs that choose the steps, once the steps have outputs.
  void Choose() {
    for (const Pending& p : pending)
      Output(p.graph,
             If(p.graph, Op(p.graph, "Equal", {p.n, Constant(p.graph, 0)}), {p.n}, p.done, p.step));
    pending.clear();
  }
  // main(n) = n * main(n - 1).
  void BuildFactorial() {
    msrt_graph* step = nullptr;
    const msrt_value n = Recursive(main, "one", 1, "times", &step);
    Output(step, Op(step, "Mul", {n, Call(step, main, {Op(step, "Sub", {n, Constant(step, 1)})})}));
    Choose();
  }
  // main(n, sum) = n == 0 ? sum : main(n - 1, sum + n), which is a tail call.
  void BuildCountdown() {
    const msrt_value n = Input(main, "n"), sum = Input(main, "sum");
    msrt_graph *done = NewGraph("done"), *step = NewGraph("step");
    Input(done, "n");
    Output(done, Input(done, "sum"));
    const msrt_value m = Input(step, "n"), s = Input(step, "sum");
    Output(step,
           Call(step, main, {Op(step, "Sub", {m, Constant(step, 1)}), Op(step, "Add", {s, m})}));
    Output(main, If(main, Op(main, "Equal", {n, Constant(main, 0)}), {n, sum}, done, step));
  }
  // main(i, n): while (i < n) i += 1.
  void BuildLoop() {
    const msrt_value i = Input(main, "i"), n = Input(main, "n");
    msrt_graph *less = NewGraph("less"), *body = NewGraph("body");
    const msrt_value ci = Input(less, "i"), cn = Input(less, "n"), bi = Input(body, "i");
    Input(body, "n");
    Output(less, Op(less, "Less", {ci, cn}));
    Output(body, Op(body, "Add", {bi, Constant(body, 1)}));
    const int64_t carried = 1;
    Output(main, Node(main, {.domain = "msrt",
                             .op = "While",
                             .inputs = {i, n},
                             .attrs = {GraphAttr("condition", &less), GraphAttr("body", &body),
                                       IntAttr("carried", &carried)}}));
  }

  void Open(const msrt_session_config* config = nullptr) {
    msrt_model* model = nullptr;
    MSRT_ASSERT_OK(msrt_graph_compile(main, nullptr, &model));
    msrt_session_destroy(session);
    MSRT_ASSERT_OK(msrt_session_create(model, nullptr, config, &session));
    msrt_model_destroy(model);
  }
  msrt_status Run(const std::vector<int64_t>& numbers, int64_t* result,
                  const msrt_run_config* config = nullptr) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      msrt_tensor* tensor = Number(numbers[i]);
      MSRT_EXPECT_OK(msrt_session_bind(session, MSRT_INPUT, i, tensor));
      msrt_tensor_destroy(tensor);
    }
    if (const msrt_status status = msrt_session_run(session, config)) return status;
    msrt_tensor* out = nullptr;
    void* data = nullptr;
    MSRT_EXPECT_OK(msrt_session_output(session, 0, &out));
    MSRT_EXPECT_OK(msrt_tensor_data(out, &data));
    std::memcpy(result, data, sizeof *result);
    msrt_tensor_destroy(out);
    return MSRT_OK;
  }
  int64_t Compute(const std::vector<int64_t>& numbers) {
    int64_t result = INT64_MIN;
    if (session == nullptr) Open();
    MSRT_EXPECT_OK(Run(numbers, &result));
    return result;
  }
  static void ExpectMessage(std::initializer_list<const char*> parts) {
    for (const char* part : parts)
      EXPECT_NE(std::string(msrt_error_message()).find(part), std::string::npos)
          << msrt_error_message();
  }

  struct Pending {
    msrt_graph *graph, *done, *step;
    msrt_value n;
  };
  std::vector<Pending> pending;
  msrt_runtime* runtime = nullptr;
  msrt_graph* main = nullptr;
  std::vector<msrt_graph*> graphs;
  msrt_session* session = nullptr;
};

TEST_F(ControlApi, RecursiveFactorialRunsAlsoFromAFile) {
  BuildFactorial();
  EXPECT_EQ(Compute({10}), 3628800);
  const std::string path = ::testing::TempDir() + "api_factorial.msrt";
  MSRT_ASSERT_OK(msrt_graph_save(graphs[0], path.c_str()));  // any graph of the model will do
  msrt_model* model = nullptr;
  MSRT_ASSERT_OK(msrt_model_load_file(runtime, path.c_str(), nullptr, &model));
  msrt_session_destroy(session);
  session = SessionOf(model);
  msrt_model_destroy(model);
  EXPECT_EQ(Compute({12}), 479001600);
}

TEST_F(ControlApi, DoublyRecursiveFibonacciRuns) {
  const msrt_value n = Input(main, "n");
  msrt_graph *small = NewGraph("small"), *sum = NewGraph("sum");
  Output(small, Input(small, "n"), nullptr);
  const msrt_value m = Input(sum, "n");
  const msrt_value a = Call(sum, main, {Op(sum, "Sub", {m, Constant(sum, 1)})}),
                   b = Call(sum, main, {Op(sum, "Sub", {m, Constant(sum, 2)})});
  Output(sum, Op(sum, "Add", {a, b}));
  Output(main, If(main, Op(main, "Less", {n, Constant(main, 2)}), {n}, small, sum));
  EXPECT_EQ(Compute({15}), 610);
  EXPECT_EQ(Compute({20}), 6765);
}

TEST_F(ControlApi, AckermannFunctionRuns) {
  const msrt_value m = Input(main, "m"), n = Input(main, "n");
  msrt_graph *next = NewGraph("next"), *rest = NewGraph("rest"), *first = NewGraph("first"),
             *both = NewGraph("both");
  Input(next, "m");
  Output(next, Op(next, "Add", {Input(next, "n"), Constant(next, 1)}));
  const msrt_value fm = Input(first, "m");
  Input(first, "n");
  Output(first,
         Call(first, main, {Op(first, "Sub", {fm, Constant(first, 1)}), Constant(first, 1)}));
  const msrt_value bm = Input(both, "m"), bn = Input(both, "n");
  const msrt_value inner = Call(both, main, {bm, Op(both, "Sub", {bn, Constant(both, 1)})});
  Output(both, Call(both, main, {Op(both, "Sub", {bm, Constant(both, 1)}), inner}));
  const msrt_value rm = Input(rest, "m"), rn = Input(rest, "n");
  Output(rest, If(rest, Op(rest, "Equal", {rn, Constant(rest, 0)}), {rm, rn}, first, both));
  Output(main, If(main, Op(main, "Equal", {m, Constant(main, 0)}), {m, n}, next, rest));
  EXPECT_EQ(Compute({2, 3}), 9);
  EXPECT_EQ(Compute({3, 3}), 61);
}

TEST_F(ControlApi, MutualRecursionRuns) {
  msrt_graph *odd = NewGraph("odd"), *even_step = nullptr, *odd_step = nullptr;
  const msrt_value n = Recursive(main, "even at zero", 1, "even step", &even_step);
  const msrt_value m = Recursive(odd, "odd at zero", 0, "odd step", &odd_step);
  Output(even_step, Call(even_step, odd, {Op(even_step, "Sub", {n, Constant(even_step, 1)})}));
  Output(odd_step, Call(odd_step, main, {Op(odd_step, "Sub", {m, Constant(odd_step, 1)})}));
  Choose();
  EXPECT_EQ(Compute({10}), 1);
  EXPECT_EQ(Compute({7}), 0);
}

TEST_F(ControlApi, WhileCounts) {
  BuildLoop();
  EXPECT_EQ(Compute({0, 1000}), 1000);
  EXPECT_EQ(Compute({5, 3}), 5);
}

// Sums 0 + 1 + ... and collects the partial sums; a Loop has an output for each carried and scanned
// result of its body.
TEST_F(ControlApi, LoopAndScanCarryAndCollect) {
  const msrt_value n = Input(main, "n"), start = Input(main, "start");
  msrt_graph *body = NewGraph("body"), *scan = NewGraph("scan");
  const msrt_value i = Input(body, "i"), go_on = Input(body, "go on", MSRT_BOOL),
                   sum = Input(body, "sum");
  const msrt_value next = Op(body, "Add", {sum, i});
  Output(body, Op(body, "Identity", {go_on}), "again");
  Output(body, next, "next");
  Output(body, next, "collected");
  const int64_t one = 1;
  msrt_value looped[2] = {};
  MSRT_ASSERT_OK(Add(main,
                     {.op = "Loop",
                      .inputs = {n, MSRT_NO_VALUE, start},
                      .attrs = {GraphAttr("body", &body), IntAttr("carried", &one)}},
                     looped));
  // The maximum of the collected values.
  const msrt_value most = Input(scan, "most"), slice = Input(scan, "slice");
  Output(scan, Op(scan, "Max", {most, slice}));
  const msrt_value largest =
      Node(main, {.op = "Scan",
                  .inputs = {start, looped[1]},
                  .attrs = {GraphAttr("body", &scan), IntAttr("carried", &one),
                            IntAttr("num_scan_inputs", &one)}});
  Output(main, Op(main, "Mul", {largest, Constant(main, 1000)}), "largest");
  Output(main, looped[0], "sum");
  EXPECT_EQ(Compute({5, 3}), 13000);
  EXPECT_EQ(Compute({0, 3}), 3000);
}

TEST_F(ControlApi, FunctionsCanBeChosenByIndexAndPassedOn) {
  const msrt_value index = Input(main, "index"), x = Input(main, "x");
  msrt_graph *minus = NewGraph("minus"), *plain = NewGraph("plain"), *negated = NewGraph("negated"),
             *apply = NewGraph("apply");
  Output(minus, Op(minus, "Sub", {Input(minus, "a"), Input(minus, "b")}));
  for (msrt_graph* g : {plain, negated}) {
    const msrt_value captured = Input(g, "x");
    const msrt_value bound = g == plain ? captured : Op(g, "Neg", {captured});
    Output(g, Node(g, {.domain = "msrt",
                       .op = "Partial",
                       .inputs = {bound},
                       .attrs = {GraphAttr("graph", &minus)}}));
  }
  // apply(f, y) = f(y): an input that is a function.
  const msrt_tensor_info number = InfoOf(MSRT_I64, {}, nullptr);
  const msrt_signature signature = {&number, 1, &number, 1};
  msrt_tensor_info function = MSRT_INIT(msrt_tensor_info);
  function.name = "f";
  function.function = &signature;
  msrt_value f = MSRT_NO_VALUE;
  MSRT_ASSERT_OK(msrt_graph_add_input(apply, &function, &f));
  const msrt_value y = Input(apply, "y");
  Output(apply, Node(apply, {.domain = "msrt", .op = "Call", .inputs = {f, y}}));

  msrt_graph* const branches[] = {plain, negated};
  msrt_attr choice = GraphAttr("branches", branches);
  choice.kind = MSRT_ATTR_GRAPHS;
  choice.count = 2;
  const msrt_value chosen =
      Node(main, {.domain = "msrt", .op = "SwitchN", .inputs = {index, x}, .attrs = {choice}});
  Output(main, Node(main, {.domain = "msrt",
                           .op = "Call",
                           .inputs = {chosen, Constant(main, 10)},
                           .attrs = {GraphAttr("graph", &apply)}}));
  EXPECT_EQ(Compute({0, 3}), 3 - 10);
  EXPECT_EQ(Compute({1, 3}), -3 - 10);
  int64_t result = 0;
  EXPECT_EQ(Run({2, 3}, &result), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"index 2 names none of 2 branches"});
  msrt_tensor_info info = MSRT_INIT(msrt_tensor_info);
  EXPECT_EQ(msrt_graph_value_info(main, chosen, &info), MSRT_UNSUPPORTED);
}

// The text of every report of a session that has run with a profile.
std::vector<std::string> AllReports(msrt_session* session) {
  std::vector<std::string> reports;
  for (const msrt_report kind : {MSRT_REPORT_PLAN, MSRT_REPORT_PROFILE, MSRT_REPORT_MEMORY,
                                 MSRT_REPORT_PLAN_TEXT, MSRT_REPORT_PLAN_SVG}) {
    const char* text = nullptr;
    MSRT_EXPECT_OK(msrt_session_report(session, kind, &text));
    reports.emplace_back(text == nullptr ? "" : text);
  }
  return reports;
}

TEST_F(ControlApi, BranchWithoutNodesHasAProfile) {
  const msrt_value n = Input(main, "n");
  msrt_graph *fixed = NewGraph("fixed"), *computed = NewGraph("computed");
  Input(fixed, "n");
  Output(fixed, Constant(fixed, 7), "seven");
  Output(computed, Op(computed, "Neg", {Input(computed, "n")}));
  const msrt_value chosen =
      If(main, Op(main, "Less", {n, Constant(main, 2)}), {n}, fixed, computed);
  Output(main, Op(main, "Mul", {chosen, n}));
  msrt_session_config config = MSRT_INIT(msrt_session_config);
  config.profile = 1;
  Open(&config);
  EXPECT_EQ(Compute({1}), 7);
  EXPECT_NE(AllReports(session)[1].find("\"graph\": \"fixed\""), std::string::npos)
      << AllReports(session)[1];
  EXPECT_EQ(Compute({5}), -25);
  EXPECT_NE(AllReports(session)[1].find("\"graph\": \"computed\""), std::string::npos)
      << AllReports(session)[1];
}

TEST_F(ControlApi, ModelWithoutNodesHasReports) {
  Output(main, Input(main, "n"));
  msrt_session_config config = MSRT_INIT(msrt_session_config);
  config.profile = 1;
  Open(&config);
  EXPECT_EQ(Compute({3}), 3);
  for (const std::string& report : AllReports(session)) EXPECT_FALSE(report.empty());
}

// Each iteration adds 2 to a state; the only output of the body is its condition.
TEST_F(ControlApi, LoopBodyUpdatesState) {
  const msrt_value trips = Input(main, "trips");
  msrt_graph* body = NewGraph("body");
  msrt_tensor* five = Number(5);
  int64_t slot = -1;
  MSRT_ASSERT_OK(msrt_graph_add_state(body, "count", nullptr, five, &slot));
  msrt_tensor_destroy(five);
  msrt_attr dtype = {}, dims = {};
  dtype.name = "dtype";
  dtype.kind = MSRT_ATTR_DTYPE;
  dtype.dtype = MSRT_I64;
  dims.name = "dims";
  dims.kind = MSRT_ATTR_INTS;
  const NodeParts read = {
      .domain = "msrt", .op = "StateRead", .attrs = {IntAttr("slot", &slot), dtype, dims}};
  Input(body, "i");
  const msrt_value go_on = Input(body, "go on", MSRT_BOOL);
  const msrt_value more = Op(body, "Add", {Node(body, read), Constant(body, 2)});
  MSRT_ASSERT_OK(Add(
      body,
      {.domain = "msrt", .op = "StateWrite", .inputs = {more}, .attrs = {IntAttr("slot", &slot)}},
      nullptr));
  Output(body, go_on);
  const int64_t none = 0;
  MSRT_ASSERT_OK(Add(main,
                     {.op = "Loop",
                      .inputs = {trips, MSRT_NO_VALUE},
                      .attrs = {GraphAttr("body", &body), IntAttr("carried", &none)}},
                     nullptr));
  Output(main, Node(main, read));
  EXPECT_EQ(Compute({3}), 11);
  EXPECT_EQ(Compute({3}), 17);
  MSRT_ASSERT_OK(msrt_session_state_reset(session, 0));
  EXPECT_EQ(Compute({1}), 7);
  int64_t result = 0;
  msrt_run_config config = MSRT_INIT(msrt_run_config);
  config.max_calls = 5;
  EXPECT_EQ(Run({100}, &result, &config), MSRT_LIMIT_EXCEEDED);
  EXPECT_EQ(Compute({0}), 7);  // a run that failed wrote nothing
}

// ---- limits -------------------------------------------------------------------------------------

// The If is main's last step, so each level has only a frame of 'times' on the stack.
TEST_F(ControlApi, RecursionStopsAtTheDefaultDepth) {
  BuildFactorial();
  int64_t result = -1;
  Open();
  msrt_run_config config = MSRT_INIT(msrt_run_config);
  if (kDepth != 100'000) config.max_depth = kDepth;
  MSRT_ASSERT_OK(Run({kDepth}, &result, &config));
  EXPECT_EQ(result, 0);  // many factors of two
  EXPECT_EQ(Run({kDepth + 1}, &result, &config), MSRT_LIMIT_EXCEEDED);
  ExpectMessage({"'times'", std::to_string(kDepth).c_str(), "raise max_depth"});
  config.max_depth = kDepth + 1;
  MSRT_EXPECT_OK(Run({kDepth + 1}, &result, &config));
  config.max_depth = 5;
  MSRT_EXPECT_OK(Run({5}, &result, &config));
  EXPECT_EQ(result, 120);
  EXPECT_EQ(Run({6}, &result, &config), MSRT_LIMIT_EXCEEDED);
}

TEST_F(ControlApi, MemoryCapLimitsRecursion) {
  BuildFactorial();
  msrt_session_config config = MSRT_INIT(msrt_session_config);
  config.memory_cap_bytes = 1 << 20;
  Open(&config);
  int64_t result = 0;
  MSRT_EXPECT_OK(Run({10}, &result));
  EXPECT_EQ(result, 3628800);
  EXPECT_EQ(Run({5000}, &result), MSRT_LIMIT_EXCEEDED);
  ExpectMessage({"cap of 1048576 bytes"});
  MSRT_EXPECT_OK(Run({11}, &result));
  EXPECT_EQ(result, 39916800);
}

TEST_F(ControlApi, TailCallsTakeConstantMemory) {
  BuildCountdown();
  msrt_session_config session_config = MSRT_INIT(msrt_session_config);
  session_config.memory_cap_bytes = 64 << 10;
  Open(&session_config);
  msrt_run_config config = MSRT_INIT(msrt_run_config);
  config.max_depth = 1;  // a tail call replaces main's frame
  int64_t result = 0;
  // Two tail calls a round: the branch, and main again.
  MSRT_ASSERT_OK(Run({kRounds, 0}, &result, &config));
  EXPECT_EQ(result, kRounds * (kRounds + 1) / 2);
}

TEST_F(ControlApi, EndlessRecursionHitsALimit) {
  const msrt_value n = Input(main, "n");
  msrt_graph* again = NewGraph("again");
  const msrt_value m = Input(again, "n");
  Output(again, Op(again, "Add", {Call(again, main, {m}), Constant(again, 1)}));
  Output(main, Op(main, "Add", {Call(main, again, {n}), Constant(main, 1)}));
  Open();
  int64_t result = 0;
  msrt_run_config config = MSRT_INIT(msrt_run_config);
  if (kDepth != 100'000) config.max_depth = kDepth;
  EXPECT_EQ(Run({1}, &result, &config), MSRT_LIMIT_EXCEEDED);
  ExpectMessage({"call itself without end"});
}

TEST_F(ControlApi, EndlessLoopsEndAtEveryLimit) {
  BuildLoop();
  Open();
  int64_t result = 0;
  msrt_run_config config = MSRT_INIT(msrt_run_config);
  config.max_calls = 1000;
  EXPECT_EQ(Run({0, INT64_MAX}, &result, &config), MSRT_LIMIT_EXCEEDED);
  ExpectMessage({"1000 calls and iterations", "max_calls"});
  config.max_calls = 0;
  config.timeout_us = 20'000;
  EXPECT_EQ(Run({0, INT64_MAX}, &result, &config), MSRT_DEADLINE_EXCEEDED) << msrt_error_message();
  std::thread canceller([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    MSRT_EXPECT_OK(msrt_session_cancel(session));
  });
  EXPECT_EQ(Run({0, INT64_MAX}, &result), MSRT_CANCELLED) << msrt_error_message();
  canceller.join();
  EXPECT_EQ(Compute({0, 7}), 7);
}

// ---- misuse -------------------------------------------------------------------------------------

// A model for wrong uses of If: main(c, x) = c ? left(x) : right(x).
class ControlMisuse : public ControlApi {
 protected:
  void SetUp() override {
    ControlApi::SetUp();
    c = Input(main, "c", MSRT_BOOL);
    x = Input(main, "x");
    left = NewGraph("left");
    right = NewGraph("right");
    Output(left, Op(left, "Neg", {Input(left, "x")}));
  }
  msrt_status AddIf(std::vector<msrt_value> inputs, size_t output_count = 0) {
    msrt_value out = MSRT_NO_VALUE;
    return Add(main,
               {.op = "If",
                .inputs = std::move(inputs),
                .attrs = {GraphAttr("then_branch", &left), GraphAttr("else_branch", &right)},
                .name = "choose",
                .output_count = output_count},
               &out);
  }
  msrt_value c = MSRT_NO_VALUE, x = MSRT_NO_VALUE;
  msrt_graph *left = nullptr, *right = nullptr;
};

TEST_F(ControlMisuse, BranchesThatDisagreeAreRefused) {
  const int64_t to = 0;
  msrt_attr cast = IntAttr("to", &to);
  cast.kind = MSRT_ATTR_DTYPE;
  cast.dtype = MSRT_F32;
  Output(right, Node(right, {.op = "Cast", .inputs = {Input(right, "x")}, .attrs = {cast}}));
  EXPECT_EQ(AddIf({c, x}), MSRT_INVALID_MODEL);
  ExpectMessage({"'choose' (If)", "result 0 differs from branch to branch", "i64", "f32"});
  Output(left, Constant(left, 1), "more");
  EXPECT_EQ(AddIf({c, x}), MSRT_INVALID_MODEL);
  ExpectMessage({"'choose' (If)", "its branches give 2 and 1 results"});
}

TEST_F(ControlMisuse, WrongArityAndWrongCapturesAreRefused) {
  Output(right, Op(right, "Identity", {Input(right, "x")}));
  EXPECT_EQ(AddIf({c}), MSRT_INVALID_MODEL);
  ExpectMessage({"'choose' (If)", "'then_branch' (graph 1 'left') takes 1 inputs, gets 0"});
  EXPECT_EQ(AddIf({c, x, x}), MSRT_INVALID_MODEL);
  ExpectMessage({"takes 1 inputs, gets 2"});
  EXPECT_EQ(AddIf({c, c}), MSRT_INVALID_MODEL);
  ExpectMessage({"'left'", "input 0 'x'", "element type i64 is not bool"});
  EXPECT_EQ(AddIf({x, x}), MSRT_INVALID_MODEL);
  ExpectMessage({"'choose' (If)", "condition"});
  EXPECT_EQ(AddIf({c, MSRT_NO_VALUE}), MSRT_INVALID_MODEL);
  ExpectMessage({"the argument for input 0 'x' is missing"});
  EXPECT_EQ(AddIf({c, x}, 2), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"'choose' (If)", "node.output_count is 2, the called graph has 1"});
  msrt_value out = MSRT_NO_VALUE;
  // A branch cannot use a value of its caller.
  EXPECT_EQ(Add(right, {.op = "Neg", .inputs = {x}}, &out), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"node.inputs[0]", "'x' belongs to graph 'main', not to 'right'", "as an input"});
  EXPECT_EQ(msrt_graph_add_output(right, x, "o"), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"belongs to graph 'main'"});
  EXPECT_EQ(out, MSRT_NO_VALUE);
  MSRT_EXPECT_OK(AddIf({c, x}));  // the failed calls left nothing behind
}

TEST_F(ControlMisuse, CallsOfIncompleteGraphsNeedDeclaredTypes) {
  EXPECT_EQ(AddIf({c, x}), MSRT_INVALID_ARGUMENT);  // its output types are unknown
  ExpectMessage({"'choose' (If)", "has no outputs so far", "node.output_types"});
  // With declared types, the rest is checked when the model is compiled.
  Output(main, Call(main, right, {x}));
  msrt_model* model = nullptr;
  EXPECT_EQ(msrt_graph_compile(main, nullptr, &model), MSRT_INVALID_MODEL);
  ExpectMessage({"'graph' (graph 2 'right') takes 0 inputs, gets 1"});
  const msrt_value y = Input(right, "y");
  EXPECT_EQ(msrt_graph_compile(main, nullptr, &model), MSRT_INVALID_MODEL);
  ExpectMessage({"has 1 outputs, the called graph has 0"});
  Output(right, Op(right, "Less", {y, y}));
  EXPECT_EQ(msrt_graph_compile(main, nullptr, &model), MSRT_INVALID_MODEL);
  ExpectMessage({"is declared i64[]", "bool"});
  EXPECT_EQ(model, nullptr);
}

TEST_F(ControlMisuse, WrongGraphAttributesAreRefused) {
  msrt_value out = MSRT_NO_VALUE;
  const auto call = [&](msrt_attr attr) {
    return Add(main, {.domain = "msrt", .op = "Call", .inputs = {x}, .attrs = {attr}}, &out);
  };
  msrt_graph *other = nullptr, *gone = nullptr;
  EXPECT_EQ(call(GraphAttr("graph", nullptr)), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"node.attrs[0].graphs is null"});
  EXPECT_EQ(call(GraphAttr("graph", &gone)), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"node.attrs[0].graphs[0] is null"});
  MSRT_ASSERT_OK(msrt_graph_create(runtime, "other", &other));
  EXPECT_EQ(call(GraphAttr("graph", &other)), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"node.attrs[0].graphs[0]", "of another model"});
  gone = other;
  msrt_graph_destroy(other);
  EXPECT_EQ(call(GraphAttr("graph", &gone)), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"was destroyed"});
  EXPECT_EQ(call(GraphAttr("grpah", &left)), MSRT_INVALID_MODEL);
  ExpectMessage({"(msrt.Call)", "grpah"});
  EXPECT_EQ(
      Add(main, {.op = "If", .inputs = {c, x}, .attrs = {GraphAttr("then_branch", &left)}}, &out),
      MSRT_INVALID_MODEL);
  ExpectMessage({"(If)", "else_branch"});
  EXPECT_EQ(Add(main, {.domain = "msrt", .op = "Call", .inputs = {x}}, &out), MSRT_INVALID_MODEL);
  ExpectMessage({"neither a graph nor a function"});
  EXPECT_EQ(msrt_graph_add_graph(main, "left", &other), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"'left' already"});
  EXPECT_EQ(msrt_graph_add_graph(main, "main", &other), MSRT_INVALID_ARGUMENT);
  EXPECT_EQ(msrt_graph_add_graph(main, "", &other), MSRT_INVALID_ARGUMENT);
  EXPECT_EQ(msrt_graph_add_graph(main, nullptr, &other), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"name is null"});
  EXPECT_EQ(out, MSRT_NO_VALUE);
}

TEST_F(ControlMisuse, WrongFunctionTypesAreRefused) {
  msrt_tensor_info number = InfoOf(MSRT_I64, {}, nullptr), f = MSRT_INIT(msrt_tensor_info);
  msrt_signature signature = {&number, 1, nullptr, 1};
  f.name = "f";
  f.function = &signature;
  msrt_value out = MSRT_NO_VALUE;
  EXPECT_EQ(msrt_graph_add_input(main, &f, &out), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"info.function->results is null"});
  signature.results = &f;  // a function that returns itself
  EXPECT_EQ(msrt_graph_add_input(main, &f, &out), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"levels deep"});
  signature.result_count = SIZE_MAX;
  EXPECT_EQ(msrt_graph_add_input(main, &f, &out), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"info.function->result_count"});
  signature.result_count = 0;
  number.dtype = 77;
  EXPECT_EQ(msrt_graph_add_input(main, &f, &out), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"info.function->parameters[0].dtype"});
  f.list_depth = 1;
  EXPECT_EQ(msrt_graph_add_input(main, &f, &out), MSRT_INVALID_ARGUMENT);
  f.list_depth = -1;
  EXPECT_EQ(msrt_graph_add_input(main, &f, &out), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"info.list_depth"});
  EXPECT_EQ(out, MSRT_NO_VALUE);
}

}  // namespace
}  // namespace msrt::testing

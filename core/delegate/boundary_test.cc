// Delegates, callbacks and plugins that misbehave at the boundary of msrt_plugin.h: each causes an
// error that names it, and none ends the process.
#include "core/delegate/boundary.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "core/delegate/fake_delegate.h"
#include "core/delegate/offered_graph.h"
#include "core/extend/graph_editor.h"
#include "core/extend/plugin.h"
#include "core/program/explain.h"
#include "core/program/program.h"
#include "core/region/box.h"
#include "delegates/builtin.h"
#include "ops/builder.h"
#include "ops/infer.h"
#include "ops/node_view.h"

namespace msrt::testing {
namespace {

using Change = std::function<void(msrt_delegate_api*, msrt_device_api*)>;

std::shared_ptr<const Delegate> Liar(const Change& change, bool has_device = false) {
  FakeDelegate fake;
  fake.name = "liar";
  fake.has_device = has_device;
  fake.change = change;
  return MakeFake(std::move(fake));
}

bool Says(const Status& status, std::string_view part) {
  return status.message().find(part) != std::string::npos;
}

class BoundaryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const ValueId x = graph.AddInput("x", Type::Tensor(DType::kF32, {4}));
    const auto y = GraphBuilder(&graph).Add("Neg", "the_node", {x});
    ASSERT_TRUE(y.ok()) << y.status().message();
    graph.outputs = {*y};
    auto made = OfferedGraph::Make(graph, BuiltinEvaluator(), {});
    ASSERT_TRUE(made.ok()) << made.status().message();
    offered = *std::move(made);
  }

  // A valid candidate for the node.
  Candidate Sound() const {
    Candidate c;
    c.nodes = {0};
    c.input_layouts = c.output_layouts = {Layout::kPlain};
    return c;
  }
  std::vector<std::string> Refusals(const Change& change) const {
    QueryResult result;
    Liar(change)->Query(*host_, *offered, &result);
    EXPECT_TRUE(result.candidates.empty());
    std::vector<std::string> reasons;
    for (const Refusal& r : result.refusals) reasons.push_back(r.reason);
    return reasons;
  }

  // Compiles and binds a kernel with a delegate that is correct up to that point.
  Result<BoundKernel> Bound(const Delegate& delegate, Kernel* kernel) const {
    MSRT_ASSIGN_OR_RETURN(*kernel, delegate.Compile(*host_, *offered, Sound()));
    return kernel->Bind(*host_, {});
  }
  Status Prepare(const Change& change, bool has_device = false) const {
    Kernel kernel;
    MSRT_ASSIGN_OR_RETURN(const BoundKernel bound, Bound(*Liar(change, has_device), &kernel));
    return bound.Prepare(*host_);
  }
  Status Run(const Change& change) const {
    Kernel kernel;
    MSRT_ASSIGN_OR_RETURN(const BoundKernel bound, Bound(*Liar(change), &kernel));
    return RunBound(bound);
  }
  Status RunBound(const BoundKernel& bound) const {
    msrt_run_args args = MSRT_INIT(msrt_run_args);
    args.host = host_->api();
    return bound.Run(args);
  }

  Graph graph;
  std::shared_ptr<const OfferedGraph> offered;
  const std::shared_ptr<const Host> host_ = std::make_shared<const Host>(CallbackServices());
};

// ---- Missing and malformed answers.

// Offers a candidate for the node twice, after `spoil` has changed it or made it null.
void (*spoil)(msrt_candidate**) = nullptr;
msrt_status Offer(void*, const msrt_host_api*, const msrt_graph_view*,
                  const msrt_query_sink* sink) {
  const uint32_t node = 0;
  msrt_candidate candidate = MSRT_INIT(msrt_candidate);
  msrt_candidate* given = &candidate;
  candidate.nodes = &node;
  candidate.node_count = candidate.input_count = candidate.output_count = 1;
  spoil(&given);
  sink->candidate(sink->sink, given);
  sink->candidate(sink->sink, given);
  return MSRT_OK;
}

TEST_F(BoundaryTest, MalformedCandidatesAreRefusals) {
  const auto refused = [&](void (*how)(msrt_candidate**)) {
    spoil = how;
    return Refusals([](msrt_delegate_api* api, msrt_device_api*) { api->query = Offer; });
  };
  const std::vector<std::string> once(1, "its candidate is malformed: it has no nodes");
  EXPECT_EQ(refused([](msrt_candidate** c) { *c = nullptr; }), once);
  EXPECT_EQ(refused([](msrt_candidate** c) { (*c)->nodes = nullptr; }), once);
  EXPECT_EQ(refused([](msrt_candidate** c) { (*c)->struct_size = 0; }), once);
  const auto far = [](msrt_candidate** c) {
    static const uint32_t node = 7;
    (*c)->nodes = &node;
  };
  EXPECT_EQ(refused(far),
            std::vector<std::string>(1, "its candidate is malformed: node 7 does not exist"));
  EXPECT_EQ(refused([](msrt_candidate** c) { (*c)->in_place_count = 1; }),
            std::vector<std::string>(
                2, "its candidate is malformed: in_place is NULL, but in_place_count 1"));
  EXPECT_EQ(refused([](msrt_candidate** c) { (*c)->input_count = 0; }).size(), 2u);
  EXPECT_EQ(refused([](msrt_candidate** c) { (*c)->arithmetic = ""; }),
            std::vector<std::string>(2,
                                     "its candidate is malformed: arithmetic is empty; NULL "
                                     "promises nothing"));
  EXPECT_EQ(refused([](msrt_candidate** c) { (*c)->arithmetic = "two\nlines"; }).size(), 2u);
  static const std::string long_name(65, 'a');
  EXPECT_EQ(refused([](msrt_candidate** c) { (*c)->arithmetic = long_name.c_str(); }).size(), 2u);
  static msrt_layout layout;
  for (const msrt_layout wrong : {MSRT_LAYOUT_BLOCKED16 + 1, -1, INT32_MAX, INT32_MIN}) {
    layout = wrong;
    const std::vector<std::string> twice(
        2, StrCat("its candidate is malformed: layout ", wrong, " does not exist"));
    EXPECT_EQ(refused([](msrt_candidate** c) { (*c)->input_layouts = &layout; }), twice);
    EXPECT_EQ(refused([](msrt_candidate** c) { (*c)->output_layouts = &layout; }), twice);
  }
}

TEST_F(BoundaryTest, MalformedCandidateNamesDelegate) {
  spoil = [](msrt_candidate** c) { *c = nullptr; };
  const auto liar = Liar([](msrt_delegate_api* api, msrt_device_api*) { api->query = Offer; });
  FakeDelegate other;
  other.name = "other";
  other.offers = {Sound()};
  const std::vector<std::shared_ptr<const Delegate>> delegates = {liar, MakeFake(std::move(other))};
  double place_millis = 0;
  UploadedConstants uploads;
  const auto program = MakeProgram(offered, host_, delegates, {}, Log(), &uploads, &place_millis);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_NE(PlacementText(MakePlacementReport(**program)).find("liar: its candidate is malformed"),
            std::string::npos)
      << PlacementText(MakePlacementReport(**program));
}

TEST_F(BoundaryTest, HostAcceptsNull) {
  std::vector<std::string> lines;
  const Log log([&](LogLevel, const std::string& line) { lines.push_back(line); },
                LogLevel::kDebug);
  const Host loud(DefaultAllocator(), MakeSerial(), log, std::nullopt, PackedForms::ForKeeping());
  const msrt_host_api& api = *loud.api();
  api.log(api.host, MSRT_LOG_WARNING, nullptr);
  api.log(api.host, MSRT_LOG_WARNING, "heard");
  EXPECT_EQ(lines, std::vector<std::string>{"heard"});
  api.fail(api.host, nullptr);
  for (const size_t odd : {0, 3, 65}) EXPECT_EQ(api.allocate(api.host, 64, odd), nullptr) << odd;
  api.deallocate(api.host, nullptr, 64, 64);
  EXPECT_EQ(api.parallel_for(api.host, 1, nullptr, nullptr), MSRT_INVALID_ARGUMENT);
  EXPECT_EQ(api.find_packed(api.host, &lines, nullptr, 1), nullptr);
  EXPECT_EQ(api.keep_packed(api.host, &lines, nullptr, &lines, 1), MSRT_INVALID_ARGUMENT);
  const msrt_packing packing = MSRT_INIT(msrt_packing);
  EXPECT_EQ(api.keep_packed(api.host, &lines, &packing, nullptr, 1), MSRT_INVALID_ARGUMENT);
}

TEST_F(BoundaryTest, EditorRejectsNullStrings) {
  GraphEditor editor(&graph, nullptr);
  const msrt_graph_editor api = editor.api();
  const char* const strings[] = {"one", nullptr};
  const msrt_shape declared = ShapeOf(graph.value(graph.inputs[0]).type);
  const int64_t input = IndexOf(graph.inputs[0]);
  int64_t output = -1;
  msrt_attr_view attr{};
  attr.name = "text";
  const auto add = [&] {
    return CallCallback([&] {
      return api.add_node(api.editor, 0, "com.example", "Op", nullptr, &input, 1, &attr, 1,
                          &declared, &output, 1);
    });
  };
  for (const auto& [kind, from, count] :
       {std::tuple(MSRT_ATTR_STRING, 1, 1), std::tuple(MSRT_ATTR_STRINGS, 0, 2)}) {
    attr.kind = kind;
    attr.strings = strings + from;
    attr.count = static_cast<size_t>(count);
    const Status status = add();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_TRUE(Says(status, "attribute 'text' has a string that is NULL")) << status.message();
  }
  attr.count = 1;
  EXPECT_TRUE(add().ok());
}

TEST_F(BoundaryTest, DeviceMustReturnValidMemoryAndHandles) {
  const auto nothing = [](void*, const msrt_host_api*, void** out) -> msrt_status {
    return *out = nullptr, MSRT_OK;
  };
  const auto no_stream = [](void*, const msrt_host_api*, int32_t, void** out) -> msrt_status {
    return *out = nullptr, MSRT_OK;
  };
  const auto liar = Liar(
      [=](msrt_delegate_api*, msrt_device_api* device) {
        device->stream_create = no_stream;
        device->event_create = nothing;
        device->allocate = [](void*, const msrt_host_api*, size_t, void** out) -> msrt_status {
          return *out = nullptr, MSRT_OK;
        };
      },
      /*has_device=*/true);
  const auto block = liar->devices()[0]->Allocate(*host_, 100, "the arena");
  const auto stream = liar->devices()[0]->MakeStream(*host_);
  const auto event = liar->devices()[0]->MakeEvent(*host_);
  for (const Status& status : {block.status(), stream.status(), event.status()}) {
    EXPECT_EQ(status.code(), Code::kDelegate);
    EXPECT_TRUE(Says(status, "device liar: ")) << status.message();
  }
  static int freed;
  freed = 0;
  const auto crooked = Liar(
      [](msrt_delegate_api*, msrt_device_api* device) {
        device->allocate = [](void*, const msrt_host_api*, size_t, void** out) -> msrt_status {
          alignas(64) static std::byte memory[256];
          return *out = memory + 8, MSRT_OK;
        };
        device->deallocate = [](void*, void*, size_t) { ++freed; };
      },
      /*has_device=*/true);
  const auto odd = crooked->devices()[0]->Allocate(*host_, 100, "the arena");
  EXPECT_EQ(odd.status().code(), Code::kDelegate);
  EXPECT_TRUE(Says(odd.status(), "device liar") && Says(odd.status(), "aligned to 64"))
      << odd.status().message();
  EXPECT_EQ(freed, 1);
}

// ---- Exceptions.

// A function of any type that throws.
template <typename Thrown, typename Function>
struct Throwing;
template <typename Thrown, typename R, typename... Arguments>
struct Throwing<Thrown, R (*)(Arguments...)> {
  static R Call(Arguments...) { throw Thrown(); }
};
struct Boom : std::runtime_error {
  Boom() : std::runtime_error("boom") {}
};
template <typename Thrown, typename Function>
void Break(Function* function) {
  *function = Throwing<Thrown, Function>::Call;
}

TEST_F(BoundaryTest, ExceptionNamesDelegate) {
  EXPECT_EQ(Refusals([](msrt_delegate_api* api, msrt_device_api*) { Break<Boom>(&api->query); }),
            std::vector<std::string>{"its query failed: delegate liar: threw an exception: boom"});
  std::vector<Status> failed;
  const auto compiles =
      Liar([](msrt_delegate_api* api, msrt_device_api*) { Break<Boom>(&api->compile); });
  failed.push_back(compiles->Compile(*host_, *offered, Sound()).status());
  failed.push_back(Run([](msrt_delegate_api* api, msrt_device_api*) { Break<Boom>(&api->bind); }));
  failed.push_back(
      Prepare([](msrt_delegate_api* api, msrt_device_api*) { Break<Boom>(&api->prepare); }));
  EXPECT_EQ(failed.back().details(),
            (std::vector<std::pair<std::string, std::string>>{{kFailedDelegate, "liar"}}));
  failed.push_back(Run([](msrt_delegate_api* api, msrt_device_api*) { Break<Boom>(&api->run); }));
  const auto device = Liar(
      [](msrt_delegate_api*, msrt_device_api* d) {
        Break<Boom>(&d->memory);
        Break<Boom>(&d->allocate);
        Break<Boom>(&d->event_create);
        Break<Boom>(&d->stream_synchronize);
      },
      /*has_device=*/true);
  const size_t of_delegate = failed.size();
  failed.push_back(device->devices()[0]->FreeBytes().status());
  failed.push_back(device->devices()[0]->Allocate(*host_, 100, "the arena").status());
  failed.push_back(device->devices()[0]->MakeEvent(*host_).status());
  failed.push_back((*device->devices()[0]->MakeStream(*host_))->Synchronize(*host_));
  for (size_t i = 0; i < failed.size(); ++i) {
    const std::string_view kind = i < of_delegate ? "delegate" : "device";
    EXPECT_EQ(failed[i].code(), Code::kDelegate);
    EXPECT_TRUE(Says(failed[i], StrCat(kind, " liar: threw an exception: boom")))
        << failed[i].message();
  }
  const Status number =
      Run([](msrt_delegate_api* api, msrt_device_api*) { Break<int>(&api->run); });
  EXPECT_TRUE(number.code() == Code::kDelegate && Says(number, "delegate liar: threw"))
      << number.message();
  const Status memory =
      Run([](msrt_delegate_api* api, msrt_device_api*) { Break<std::bad_alloc>(&api->run); });
  EXPECT_TRUE(memory.code() == Code::kOutOfMemory && Says(memory, "delegate liar"))
      << memory.message();
}

TEST_F(BoundaryTest, ThrowingSizeFunctionCountsAsZero) {
  Kernel kernel;
  const auto liar = Liar([](msrt_delegate_api* api, msrt_device_api*) {
    Break<Boom>(&api->kernel_bytes);
    Break<Boom>(&api->bound_bytes);
  });
  const auto bound = Bound(*liar, &kernel);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_EQ(kernel.packed_bytes(), 0u);
  EXPECT_EQ(bound->bytes(), 0u);
}

TEST_F(BoundaryTest, ThrowingTaskFailsItsLoop) {
  for (const int threads : {1, 2}) {
    for (auto make : {MakeThreadPool, MakeDefaultParallel}) {
      const Host team(DefaultAllocator(), make(threads), Log());
      const auto run = [&](void (*task)(void*, int64_t)) {
        return CallCallback(
            [&] { return team.api()->parallel_for(team.api()->host, 100, task, nullptr); });
      };
      const Status boom = run([](void*, int64_t i) {
        if (i % 7 == 3) throw Boom();
      });
      EXPECT_TRUE(boom.code() == Code::kDelegate &&
                  Says(boom, "task of parallel_for: threw an exception: boom"))
          << boom.message();
      EXPECT_EQ(run([](void*, int64_t) { throw std::bad_alloc(); }).code(), Code::kOutOfMemory);
      EXPECT_TRUE(run([](void*, int64_t) {}).ok());
    }
  }
}

// ---- Status codes and messages.

TEST_F(BoundaryTest, UnexpectedDelegateCodesBecomeDelegateErrors) {
  static msrt_status code;
  const auto liar = Liar([](msrt_delegate_api* api, msrt_device_api*) {
    api->run = [](void*, void*, const msrt_run_args*) -> msrt_status { return code; };
  });
  Kernel kernel;
  const auto bound = Bound(*liar, &kernel);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  for (code = -77; code <= 77; ++code) {
    const bool meant = code == MSRT_OK || code == MSRT_INVALID_ARGUMENT ||
                       code == MSRT_INVALID_MODEL || code == MSRT_OUT_OF_MEMORY ||
                       code == MSRT_LIMIT_EXCEEDED;
    const Status status = RunBound(*bound);
    EXPECT_EQ(status.code(), meant ? static_cast<Code>(code) : Code::kDelegate) << code;
    EXPECT_EQ(MayRunElsewhere(status.code(), /*on_device=*/false), !meant) << code;
    const bool full = code == MSRT_OUT_OF_MEMORY || code == MSRT_LIMIT_EXCEEDED;
    EXPECT_EQ(MayRunElsewhere(status.code(), /*on_device=*/true), !meant || full) << code;
    EXPECT_EQ(status.ok(), !Says(status, "delegate liar: ")) << status.message();
  }
}

TEST_F(BoundaryTest, UnexpectedCallbackCodesBecomeDelegateErrors) {
  for (msrt_status code = -77; code <= 77; ++code) {
    const bool known = code >= MSRT_OK && code <= MSRT_INTERNAL;
    const bool meant =
        known && code != MSRT_CANCELLED && code != MSRT_DEADLINE_EXCEEDED && code != MSRT_INTERNAL;
    EXPECT_EQ(CallCallback([&] { return code; }).code(),
              meant ? static_cast<Code>(code) : Code::kDelegate)
        << code;
  }
}

TEST_F(BoundaryTest, TextOfEarlierCallIsDiscarded) {
  static bool works;
  const auto liar = Liar([](msrt_delegate_api* api, msrt_device_api*) {
    api->run = [](void*, void*, const msrt_run_args* args) -> msrt_status {
      if (works) args->host->fail(args->host->host, "not worth an error");
      return works ? MSRT_OK : MSRT_DELEGATE;
    };
  });
  Kernel kernel;
  const auto bound = Bound(*liar, &kernel);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  works = true;
  EXPECT_TRUE(RunBound(*bound).ok());
  works = false;
  const Status status = RunBound(*bound);
  EXPECT_EQ(status.message(), "delegate liar: failed without saying why (status 10)");
}

// ---- Callbacks.

struct CountingAllocator final : Allocator {
  int blocks = 0;
  void* Allocate(size_t bytes, size_t alignment) noexcept override {
    return ++blocks, DefaultAllocator()->Allocate(bytes, alignment);
  }
  void Free(void* pointer, size_t bytes, size_t alignment) noexcept override {
    DefaultAllocator()->Free(pointer, bytes, alignment);
  }
};

void UseHost(const msrt_host_api* host) {
  host->log(host->host, MSRT_LOG_WARNING, "hello");
  host->deallocate(host->host, host->allocate(host->host, 64, 64), 64, 64);
}

TEST_F(BoundaryTest, CallbacksUseApplicationLogAndMemory) {
  CountingAllocator allocator;
  std::vector<std::string> lines;
  const CallbackServices services{
      &allocator,
      Log([&](LogLevel, const std::string& line) { lines.push_back(line); }, LogLevel::kDebug)};
  const Graph before = graph;

  msrt_pass_desc pass = MSRT_INIT(msrt_pass_desc);
  pass.plugin_abi = MSRT_PLUGIN_ABI;
  pass.name = "idle";
  pass.run = [](void*, const msrt_host_api* host, const msrt_graph_view*,
                const msrt_graph_editor*) -> msrt_status { return UseHost(host), MSRT_OK; };
  const auto added = MakeAddedPass(pass, nullptr, services);
  ASSERT_TRUE(added.ok()) << added.status().message();
  EXPECT_TRUE(added->run({.evaluator = &BuiltinEvaluator()}, &graph).ok());

  msrt_importer_desc importer = MSRT_INIT(msrt_importer_desc);
  importer.plugin_abi = MSRT_PLUGIN_ABI;
  importer.op = "Neg";
  importer.import = [](void*, const msrt_host_api* host, const msrt_node_view* node,
                       const msrt_graph_editor*, int64_t* outputs) {
    UseHost(host);
    outputs[0] = node->inputs[0].id;
    return msrt_status{MSRT_OK};
  };
  const auto rule = RegisteredImporter::Make(importer, nullptr, services);
  ASSERT_TRUE(rule.ok()) << rule.status().message();
  EXPECT_TRUE(rule->Import(before.nodes[0], &graph, nullptr, BuiltinEvaluator()).ok());

  EXPECT_EQ(lines, (std::vector<std::string>{"hello", "hello"}));
  EXPECT_EQ(allocator.blocks, 2);
}

TEST_F(BoundaryTest, ThrowingPassesAndImportersAreErrors) {
  msrt_pass_desc pass = MSRT_INIT(msrt_pass_desc);
  pass.plugin_abi = MSRT_PLUGIN_ABI;
  pass.name = "bad";
  Break<Boom>(&pass.run);
  const auto added = MakeAddedPass(pass, nullptr, {});
  ASSERT_TRUE(added.ok()) << added.status().message();
  Module module;
  module.graphs = {graph};
  module.entries = {0};
  const std::vector<AddedPass> passes = {*added};
  const auto report = RunPasses({.evaluator = &BuiltinEvaluator(), .added = passes}, {}, &module);
  EXPECT_EQ(report.status().message(), "pass bad: threw an exception: boom");

  msrt_importer_desc importer = MSRT_INIT(msrt_importer_desc);
  importer.plugin_abi = MSRT_PLUGIN_ABI;
  importer.op = "Neg";
  Break<Boom>(&importer.import);
  const auto rule = RegisteredImporter::Make(importer, nullptr, {});
  ASSERT_TRUE(rule.ok()) << rule.status().message();
  const Node node = graph.nodes[0];
  EXPECT_EQ(rule->Import(node, &graph, nullptr, BuiltinEvaluator()).status().message(),
            "the plugin's importer: threw an exception: boom");
}

// An op with one input and one output, whose callbacks all throw unless `change` replaces them.
Result<RegisteredKernel> KernelWith(const std::function<void(msrt_op_desc*)>& change) {
  msrt_op_desc meaning = MSRT_INIT(msrt_op_desc);
  meaning.min_inputs = meaning.max_inputs = meaning.min_outputs = meaning.max_outputs = 1;
  Break<Boom>(&meaning.infer);
  Break<Boom>(&meaning.axes);
  Break<Boom>(&meaning.operands);
  Break<Boom>(&meaning.results);
  Break<Boom>(&meaning.localize);
  Break<Boom>(&meaning.flops);
  if (change) change(&meaning);
  msrt_kernel_desc kernel = MSRT_INIT(msrt_kernel_desc);
  kernel.plugin_abi = MSRT_PLUGIN_ABI;
  kernel.domain = "com.example";
  kernel.op = "Op";
  kernel.name = "wild";
  kernel.meaning = &meaning;
  kernel.run = [](void*, const void*, const msrt_kernel_args*) -> msrt_status { return MSRT_OK; };
  return RegisteredKernel::Make(kernel, nullptr);
}

TEST_F(BoundaryTest, ThrowingOpCallbacksAreErrors) {
  const auto kernel = KernelWith({});
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  const OpDef& def = *kernel->meaning;
  Node node = graph.nodes[0];
  node.domain = "com.example";
  node.op = "Op";
  node.def = &def;
  const NodeView node_view(graph, node);
  const OpView& view = node_view.op();
  Type type;
  IterationSpace space;
  Box box;
  box.push_back({0, 4});
  std::vector<Box> boxes(1);
  AttrList attrs;
  const std::pair<const char*, Status> rows[] = {
      {"infer", InferTypes(def, view, {&type, 1})},
      {"axes", def.space->axes(view, &space)},
      {"operands", def.space->operands(view, box, boxes)},
      {"results", def.space->results(view, box, boxes)},
      {"localize", def.space->localize(view, box, boxes, boxes, &attrs)},
  };
  for (const auto& [callback, status] : rows) {
    EXPECT_EQ(status.code(), Code::kDelegate) << callback;
    EXPECT_TRUE(Says(status, StrCat("kernel 'wild': ", callback, ": threw an exception: boom")))
        << status.message();
  }
  EXPECT_EQ(def.cost(view).flops, CostOfTraffic(view).flops);
}

TEST_F(BoundaryTest, LocalAttributesNeedValues) {
  const auto kernel = KernelWith([](msrt_op_desc* meaning) {
    meaning->localize = [](void*, const msrt_host_api*, const msrt_node_view*, const msrt_box*,
                           const msrt_box*, const msrt_box*,
                           const msrt_attr_sink* sink) -> msrt_status {
      return sink->set_ints(sink->sink, nullptr, nullptr, 3), MSRT_OK;
    };
  });
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  Node node = graph.nodes[0];
  node.def = kernel->meaning.get();
  const NodeView view(graph, node);
  Box box;
  std::vector<Box> boxes(1);
  AttrList attrs;
  const Status status = node.def->space->localize(view.op(), box, boxes, boxes, &attrs);
  EXPECT_TRUE(Says(status, "kernel 'wild': its localize") && Says(status, "NULL"))
      << status.message();
}

// ---- Plugins.

TEST_F(BoundaryTest, OwnReasonOfPluginComesFirst) {
  const auto own = LoadPlugin(MSRT_REFUSED_PLUGIN, "gives a reason");
  EXPECT_EQ(own.status().code(), Code::kNotFound);
  EXPECT_TRUE(Says(own.status(),
                   "': there is no such card (a registration was refused before: "
                   "register_delegate: api is NULL)"))
      << own.status().message();
  const auto silent = LoadPlugin(MSRT_REFUSED_PLUGIN, "");
  EXPECT_EQ(silent.status().code(), Code::kNotFound);
  EXPECT_TRUE(Says(silent.status(), "': register_delegate: api is NULL"))
      << silent.status().message();
  const auto passed = LoadPlugin(MSRT_REFUSED_PLUGIN, "passes it on");
  EXPECT_EQ(passed.status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(passed.status().message().ends_with("': register_delegate: api is NULL"))
      << passed.status().message();
}

}  // namespace
}  // namespace msrt::testing

// Registration and selection of kernels that are defined in the tests.
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "delegates/builtin.h"
#include "ops/validate.h"
#include "tests/examples/kernel_testing.h"

namespace msrt::testing {
namespace {

// Counts destroyed objects.
void CountDestroyed(void* user) { ++*static_cast<int*>(user); }

TEST_F(Kernels, RegistrationCopiesTheDescription) {
  {
    std::string domain = "com.example", op = "AddOne", name = "short-lived", attr_name = "note",
                text = "hello";
    msrt_attr_rule rule{};
    rule.name = attr_name.c_str();
    rule.kind = MSRT_ATTR_STRING;
    rule.default_string = text.c_str();
    std::vector<msrt_in_place> pairs = {{0, 0}, {7, 0}};
    auto meaning = std::make_unique<msrt_op_desc>(SameTypeMeaning());
    meaning->attrs = &rule;
    meaning->attr_count = 1;
    msrt_kernel_desc kernel = KernelFor(op.c_str(), name.c_str(), domain.c_str());
    kernel.meaning = meaning.get();
    kernel.in_place = pairs.data();
    kernel.in_place_count = pairs.size();
    kernel.run = [](void*, const void*, const msrt_kernel_args* args) -> msrt_status {
      const msrt_attr_view& attr = args->node->attrs[0];
      const bool good = args->node->attr_count == 1 && std::strcmp(attr.name, "note") == 0 &&
                        std::strcmp(attr.strings[0], "hello") == 0;
      return good ? AddOne(nullptr, nullptr, args) : MSRT_INTERNAL;
    };
    MSRT_ASSERT_OK(msrt_runtime_register_kernel(runtime, &kernel));
    for (std::string* s : {&domain, &op, &name, &attr_name, &text}) s->assign(s->size(), '#');
    pairs.assign(2, {9, 9});
    std::memset(static_cast<void*>(meaning.get()), 0x5A, sizeof *meaning);
  }
  EXPECT_EQ(Run(), plus_one);
}

TEST_F(Kernels, UserDataIsDestroyedOnceAndLast) {
  int destroyed = 0;
  msrt_model* model = nullptr;
  {
    const RuntimeOwner own;
    msrt_op_desc meaning = SameTypeMeaning();
    msrt_kernel_desc kernel = KernelFor("AddOne", "counted");
    kernel.meaning = &meaning;
    kernel.run = AddOne;
    kernel.user = &destroyed;
    kernel.destroy = CountDestroyed;
    MSRT_ASSERT_OK(msrt_runtime_register_kernel(own, &kernel));
    EXPECT_EQ(msrt_runtime_register_kernel(own, &kernel), MSRT_INVALID_ARGUMENT)
        << "the same one twice";
    EXPECT_EQ(destroyed, 0) << "a failed call leaves user to the caller";
    model = MakeModel(own, {});
    ASSERT_NE(model, nullptr) << msrt_error_message();
  }
  EXPECT_EQ(destroyed, 0) << "the model still uses it";
  msrt_session* session = SessionOf(model);
  msrt_model_destroy(model);
  EXPECT_EQ(RunFloats(session, {4}, {1, 2, 3, 4}), plus_one);
  EXPECT_EQ(destroyed, 0);
  msrt_session_destroy(session);
  EXPECT_EQ(destroyed, 1);
}

// Placement chooses the cheapest of several, the report lists the others, and each can be excluded.
TEST_F(Kernels, KernelsForOneOpCompeteByCost) {
  const auto add = [&](const char* name, double seconds, const char* op, const char* domain) {
    static double costs[8];
    static int next = 0;
    costs[next] = seconds;
    msrt_kernel_desc kernel = KernelFor(op, name, domain);
    kernel.user = &costs[next++];
    kernel.seconds = [](void* user, const msrt_host_api*, const msrt_node_view*) {
      return *static_cast<double*>(user);
    };
    kernel.run = [](void*, const void*, const msrt_kernel_args* args) -> msrt_status {
      std::memcpy(args->outputs[0], args->inputs[0],
                  static_cast<size_t>(args->input_shapes[0].dims[0]) * sizeof(float));
      return MSRT_OK;
    };
    return msrt_runtime_register_kernel(runtime, &kernel);
  };
  MSRT_ASSERT_OK(add("slow relu", 1, "Relu", nullptr));
  MSRT_ASSERT_OK(add("fast relu", 1e-12, "Relu", ""));
  MSRT_ASSERT_OK(add("middle relu", 1e-3, "Relu", ""));
  OneNode node;
  node.domain = nullptr;
  node.op = "Relu";
  msrt_model* model = MakeModel(runtime, node);
  ASSERT_NE(model, nullptr) << msrt_error_message();
  msrt_session* session = SessionOf(model);
  msrt_model_destroy(model);
  const std::string plan = PlanOf(session);
  EXPECT_NE(plan.find("\"delegate\": \"kernels\", \"algorithm\": \"fast relu\""), std::string::npos)
      << plan;
  EXPECT_NE(plan.find("slow relu, plain: 1 s"), std::string::npos) << plan;
  EXPECT_NE(plan.find("middle relu, plain: 1 ms"), std::string::npos) << plan;
  EXPECT_EQ(RunFloats(session, {4}, {-1, 2, -3, 4}), (std::vector<float>{-1, 2, -3, 4}))
      << "these do not compute what Relu says";
  msrt_session_destroy(session);
  msrt_model_config config = MSRT_INIT(msrt_model_config);
  config.delegates = "reference";
  EXPECT_EQ(RunOnce(MakeModel(runtime, node, &config), {4}, {-1, 2, -3, 4}),
            (std::vector<float>{0, 2, 0, 4}));
  config = MSRT_INIT(msrt_model_config);
  config.accuracy = MSRT_ACCURACY_EXACT;  // none of them claims to be exact
  EXPECT_EQ(RunOnce(MakeModel(runtime, node, &config), {4}, {-1, 2, -3, 4}),
            (std::vector<float>{0, 2, 0, 4}));
}

// A user's pin excludes kernels like any delegate.
TEST_F(Kernels, PinsExcludeKernels) {
  Environment environment;
  environment.parallel = MakeSerial();
  environment.delegates = BuiltinDelegates();
  environment.evaluator = &BuiltinEvaluator();
  msrt_kernel_desc desc = KernelFor("Relu", "wrong relu", nullptr);
  desc.seconds = [](void*, const msrt_host_api*, const msrt_node_view*) { return 0.0; };
  desc.run = AddOne;
  const auto kernel = RegisteredKernel::Make(desc, nullptr);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  ASSERT_TRUE(Join({.kernels = {*kernel}}, &environment).ok());
  const auto shared = std::make_shared<const Environment>(environment);
  for (const bool excluded : {false, true}) {
    Module module;
    module.graphs.resize(1);
    module.entries = {0};
    const ValueId x = module.main().AddInput("x", Type::Tensor(DType::kF32, {4}));
    const ValueId y = module.main().AddValue("y", UndeclaredType());
    Node node;
    node.name = "relu";
    node.op = "Relu";
    node.inputs = {x};
    node.outputs = {y};
    module.main().nodes.push_back(node);
    module.main().outputs = {y};
    CompileOptions options;
    if (excluded) options.place.pins = {{"relu", "", "kernels", /*exclude=*/true}};
    const auto model = CompileModule(shared, std::move(module), options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const NodeExplanation& why = (*model)->entries[0]->current()->program->explanations[0];
    EXPECT_EQ(why.delegate == "kernels", !excluded) << why.delegate;
  }
}

TEST_F(Kernels, InvalidDescriptionsAreRefused) {
  MSRT_ASSERT_OK(RegisterAddOne());
  EXPECT_EQ(RegisterAddOne([](msrt_kernel_desc& k, msrt_op_desc&) { k.name = "another"; }),
            MSRT_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("com.example.AddOne is defined already") && Says("'another'"))
      << msrt_error_message();
  MSRT_EXPECT_OK(RegisterAddOne(
      [](msrt_kernel_desc& k, msrt_op_desc&) { k.name = "another", k.meaning = nullptr; }));
  EXPECT_EQ(RegisterAddOne([](msrt_kernel_desc& k, msrt_op_desc&) { k.meaning = nullptr; }),
            MSRT_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("has a kernel of this name")) << msrt_error_message();
  EXPECT_EQ(
      RegisterAddOne([](msrt_kernel_desc& k, msrt_op_desc&) { k.domain = "", k.op = "Relu"; }),
      MSRT_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("Relu is the library's own and cannot be defined again"))
      << msrt_error_message();
  EXPECT_EQ(RegisterAddOne([](msrt_kernel_desc& k, msrt_op_desc&) { k.domain = "msrt"; }),
            MSRT_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("domain msrt")) << msrt_error_message();
  const auto known = [&](const char* op, int32_t version) {
    return RegisterAddOne([=](msrt_kernel_desc& k, msrt_op_desc&) {
      k.domain = nullptr, k.op = op, k.meaning = nullptr, k.version = version;
    });
  };
  EXPECT_EQ(known("Reshape", 0), MSRT_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("the runtime itself does it")) << msrt_error_message();
  EXPECT_EQ(known("Relu", 7), MSRT_UNSUPPORTED);
  EXPECT_TRUE(Says("version 7 of Relu")) << msrt_error_message();
  MSRT_EXPECT_OK(known("Relu", 23));
  EXPECT_EQ(Run(), plus_one);
}

TEST_F(Kernels, NoDelegateMayTakeTheName) {
  msrt_delegate_api api = MSRT_INIT(msrt_delegate_api);
  api.plugin_abi = MSRT_PLUGIN_ABI;
  api.name = "kernels";
  api.query = [](void*, const msrt_host_api*, const msrt_graph_view*,
                 const msrt_query_sink*) -> msrt_status { return MSRT_OK; };
  api.compile = [](void*, const msrt_host_api*, const msrt_graph_view*, const msrt_candidate*,
                   void**) -> msrt_status { return MSRT_INTERNAL; };
  api.kernel_destroy = api.bound_destroy = [](void*, void*) {};
  api.bind = [](void*, const msrt_host_api*, void*, const msrt_bound_node*, size_t,
                void**) -> msrt_status { return MSRT_INTERNAL; };
  api.run = [](void*, void*, const msrt_run_args*) -> msrt_status { return MSRT_INTERNAL; };
  EXPECT_EQ(msrt_runtime_register_delegate(runtime, &api, nullptr), MSRT_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("'kernels'")) << msrt_error_message();
}

// Attribute rules hold before a callback sees a node.
TEST_F(Kernels, AttributesAreChecked) {
  msrt_attr_rule rules[3] = {};
  rules[0].name = "size";
  rules[0].kind = MSRT_ATTR_INT;
  rules[0].flags = MSRT_ATTR_IS_REQUIRED;
  rules[0].min = 1;
  rules[0].max = 8;
  rules[1].name = "scale";
  rules[1].kind = MSRT_ATTR_FLOAT;
  rules[1].default_number = 0.5;
  rules[1].max = 1;
  rules[2].name = "offset";
  rules[2].kind = MSRT_ATTR_INT;
  rules[2].default_number = -3;
  MSRT_ASSERT_OK(RegisterAddOne([&](msrt_kernel_desc& k, msrt_op_desc& m) {
    m.attrs = rules;
    m.attr_count = 3;
    k.run = [](void*, const void*, const msrt_kernel_args* args) -> msrt_status {
      double sum = 0;
      for (size_t i = 0; i < args->node->attr_count; ++i) {
        const msrt_attr_view& a = args->node->attrs[i];
        sum += a.kind == MSRT_ATTR_INT ? static_cast<double>(a.ints[0]) : a.floats[0];
      }
      for (int i = 0; i < 4; ++i)
        static_cast<float*>(args->outputs[0])[i] = static_cast<float>(sum);
      return MSRT_OK;
    };
  }));
  const auto model = [&](std::vector<std::pair<const char*, int64_t>> ints) {
    std::vector<msrt_attr> attrs;
    for (const auto& [name, value] : ints) {
      msrt_attr attr{};
      attr.name = name;
      attr.kind = MSRT_ATTR_INT;
      attr.ints = &value;
      attrs.push_back(attr);
    }
    OneNode node;
    node.attrs = attrs;
    return MakeModel(runtime, node);
  };
  EXPECT_EQ(model({}), nullptr);
  EXPECT_TRUE(Says("'size' is missing")) << msrt_error_message();
  EXPECT_EQ(model({{"size", 0}}), nullptr);
  EXPECT_TRUE(Says("size")) << msrt_error_message();
  EXPECT_EQ(model({{"size", 9}}), nullptr);
  EXPECT_EQ(model({{"size", 2}, {"colour", 3}}), nullptr);
  EXPECT_TRUE(Says("colour")) << msrt_error_message();
  EXPECT_EQ(model({{"size", 2}, {"scale", 1}}), nullptr) << "an integer where a float is due";
  EXPECT_EQ(RunOnce(model({{"size", 8}}), {4}, {0, 0, 0, 0}), std::vector<float>(4, 5.5f));
}

// ---- kinds of ops -------------------------------------------------------------------------------

TEST_F(Kernels, UnknownOpsWithoutARuleNeedDeclaredTypes) {
  MSRT_ASSERT_OK(RegisterAddOne([](msrt_kernel_desc& k, msrt_op_desc&) { k.meaning = nullptr; }));
  EXPECT_EQ(MakeModel(runtime, {}), nullptr);
  EXPECT_TRUE(Says("declare the types") && Says("register a kernel")) << msrt_error_message();
  const msrt_tensor_info declared = InfoOf(MSRT_F32, {4}, nullptr);
  OneNode node;
  node.output_types = &declared;
  EXPECT_EQ(RunOnce(MakeModel(runtime, node), {4}, {1, 2, 3, 4}), plus_one);
}

TEST_F(Kernels, TypesAreAMask) {
  MSRT_ASSERT_OK(RegisterAddOne([](msrt_kernel_desc& k, msrt_op_desc&) {
    k.types = MSRT_BIT(MSRT_F64) | MSRT_BIT(MSRT_I8);
  }));
  EXPECT_EQ(MakeModel(runtime, {}), nullptr);
  EXPECT_TRUE(Says("add one: it does not take f32")) << msrt_error_message();
}

// Two equal nodes are merged, unless the op has effects.
TEST_F(Kernels, NodesWithEffectsAreNotMerged) {
  for (const int32_t effects : {0, 1}) {
    static std::atomic<int> runs;
    runs = 0;
    const RuntimeOwner own;
    msrt_op_desc meaning = SameTypeMeaning();
    meaning.effects = effects;
    msrt_kernel_desc kernel = KernelFor("AddOne", "counting");
    kernel.meaning = &meaning;
    kernel.run = [](void*, const void*, const msrt_kernel_args* args) -> msrt_status {
      ++runs;
      return AddOne(nullptr, nullptr, args);
    };
    MSRT_ASSERT_OK(msrt_runtime_register_kernel(own, &kernel));
    msrt_graph* graph = nullptr;
    MSRT_ASSERT_OK(msrt_graph_create(own, "twins", &graph));
    const msrt_tensor_info info = InfoOf(MSRT_F32, {4}, "x");
    msrt_value x = MSRT_NO_VALUE;
    MSRT_ASSERT_OK(msrt_graph_add_input(graph, &info, &x));
    const msrt_value a = AddNode(graph, "AddOne", "a", {x}, {}, "com.example"),
                     b = AddNode(graph, "AddOne", "b", {x}, {}, "com.example");
    AddNode(graph, "AddOne", "unused", {a}, {}, "com.example");
    MSRT_ASSERT_OK(msrt_graph_add_output(graph, AddNode(graph, "Add", "y", {a, b}), nullptr));
    EXPECT_EQ(RunOnce(Compiled(graph), {4}, {1, 2, 3, 4}), (std::vector<float>{4, 6, 8, 10}));
    EXPECT_EQ(runs, effects == 0 ? 1 : 3);
  }
}

// A kernel for channels-last gets its tensors in this layout, whatever its neighbours use.
TEST_F(Kernels, LayoutsAreConverted) {
  MSRT_ASSERT_OK(RegisterAddOne([](msrt_kernel_desc& k, msrt_op_desc&) {
    k.layouts = MSRT_BIT(MSRT_LAYOUT_CHANNELS_LAST);
    k.run = [](void*, const void*, const msrt_kernel_args* args) -> msrt_status {
      if (args->input_layouts[0] != MSRT_LAYOUT_CHANNELS_LAST ||
          args->output_layouts[0] != MSRT_LAYOUT_CHANNELS_LAST)
        return MSRT_INTERNAL;
      const int64_t* d = args->input_shapes[0].dims;
      // The number of its channel is added to each element.
      for (int64_t i = 0; i < d[0] * d[2] * d[3]; ++i) {
        for (int64_t c = 0; c < d[1]; ++c) {
          static_cast<float*>(args->outputs[0])[i * d[1] + c] =
              static_cast<const float*>(args->inputs[0])[i * d[1] + c] + static_cast<float>(c);
        }
      }
      return MSRT_OK;
    };
  }));
  OneNode node;
  node.dims = {1, 3, 2, 2};
  const std::vector<float> x(12, 5);
  EXPECT_EQ(RunOnce(MakeModel(runtime, node), {1, 3, 2, 2}, x),
            (std::vector<float>{5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7}));
  node.dims = {4};
  EXPECT_EQ(MakeModel(runtime, node), nullptr);
  EXPECT_TRUE(Says("no tensor of the node can have the layouts")) << msrt_error_message();
}

TEST_F(Kernels, RunsInPlace) {
  static bool in_place;
  in_place = false;
  const msrt_in_place pair = {0, 0};
  MSRT_ASSERT_OK(RegisterAddOne([&](msrt_kernel_desc& k, msrt_op_desc&) {
    k.in_place = &pair;
    k.in_place_count = 1;
    k.run = [](void*, const void*, const msrt_kernel_args* args) -> msrt_status {
      in_place |= args->inputs[0] == args->outputs[0];
      return AddOne(nullptr, nullptr, args);
    };
  }));
  msrt_graph* graph = nullptr;
  MSRT_ASSERT_OK(msrt_graph_create(runtime, "chain", &graph));
  const msrt_tensor_info info = InfoOf(MSRT_F32, {4}, "x");
  msrt_value x = MSRT_NO_VALUE;
  MSRT_ASSERT_OK(msrt_graph_add_input(graph, &info, &x));
  for (int i = 0; i < 4; ++i) x = AddNode(graph, "AddOne", nullptr, {x}, {}, "com.example");
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, x, "y"));
  EXPECT_EQ(RunOnce(Compiled(graph), {4}, {1, 2, 3, 4}), (std::vector<float>{5, 6, 7, 8}));
  EXPECT_TRUE(in_place);
}

// The size of an output may depend on data: the rule is called again when the data exists.
TEST_F(Kernels, SizesMayDependOnData) {
  msrt_op_desc meaning = SameTypeMeaning();
  meaning.min_inputs = meaning.max_inputs = 2;
  meaning.infer = [](void*, const msrt_host_api*, const msrt_node_view* node,
                     msrt_shape* outputs) -> msrt_status {
    outputs[0].dtype = MSRT_F32;
    outputs[0].rank = 1;
    outputs[0].dims[0] = MSRT_UNKNOWN_DIM;
    if (node->inputs[1].constant != nullptr) {
      outputs[0].dims[0] =
          static_cast<int64_t>(*static_cast<const float*>(node->inputs[1].constant));
    }
    return MSRT_OK;
  };
  msrt_kernel_desc kernel = KernelFor("Head", "first of them");
  kernel.meaning = &meaning;
  kernel.run = [](void*, const void*, const msrt_kernel_args* args) -> msrt_status {
    std::memcpy(args->outputs[0], args->inputs[0],
                static_cast<size_t>(args->output_shapes[0].dims[0]) * sizeof(float));
    return MSRT_OK;
  };
  MSRT_ASSERT_OK(msrt_runtime_register_kernel(runtime, &kernel));
  msrt_graph* graph = nullptr;
  MSRT_ASSERT_OK(msrt_graph_create(runtime, "head", &graph));
  const msrt_tensor_info info = InfoOf(MSRT_F32, {4}, "x");
  msrt_value x = MSRT_NO_VALUE;
  MSRT_ASSERT_OK(msrt_graph_add_input(graph, &info, &x));
  const msrt_value largest = AddNode(graph, "ReduceMax", "largest", {x});
  MSRT_ASSERT_OK(msrt_graph_add_output(
      graph, AddNode(graph, "Head", "y", {x, largest}, {}, "com.example"), nullptr));
  msrt_model* model = Compiled(graph);
  msrt_session* session = SessionOf(model);
  msrt_model_destroy(model);
  EXPECT_EQ(RunFloats(session, {4}, {1, 2, 3, 0}), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(RunFloats(session, {4}, {1, 0, 0, 0}), (std::vector<float>{1}));
  msrt_session_destroy(session);
}

// Environments are immutable, so registration does not affect other threads. Meant for the thread
// sanitizer.
TEST_F(Kernels, KernelsMayBeRegisteredWhileOthersLoadAndRun) {
  MSRT_ASSERT_OK(RegisterAddOne());
  std::atomic<bool> stop{false};
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      do {
        EXPECT_EQ(Run(), plus_one);
        ++done;
      } while (!stop);
    });
  }
  for (int i = 0; i < 40; ++i) {
    const std::string name = StrCat("kernel ", i), op = StrCat("AddOne", i);
    MSRT_EXPECT_OK(RegisterAddOne([&](msrt_kernel_desc& k, msrt_op_desc&) {
      k.name = name.c_str();
      if (i % 2 == 0) k.op = op.c_str();
      else k.meaning = nullptr;
    }));
    const char* info = "";
    MSRT_EXPECT_OK(msrt_runtime_info_json(runtime, &info));
  }
  while (done < 4) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace msrt::testing

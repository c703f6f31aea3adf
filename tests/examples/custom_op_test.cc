// The plugin custom_op.c: a user-defined op through all stages of a built-in one.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <random>

#include "core/run/piece_runner.h"
#include "delegates/builtin.h"
#include "ops/infer.h"
#include "ops/resolve_space.h"
#include "tests/examples/kernel_testing.h"

namespace msrt::testing {
namespace {

// Blur by its definition, in double: the oracle.
std::vector<double> Blurred(const std::vector<float>& image, int64_t planes, int64_t rows,
                            int64_t columns, const std::vector<float>& taps) {
  const auto radius = static_cast<int64_t>(taps.size() / 2);
  std::vector<double> out;
  for (int64_t p = 0; p < planes; ++p) {
    for (int64_t y = 0; y < rows; ++y) {
      for (int64_t x = 0; x < columns; ++x) {
        double sum = 0, weights = 0;
        for (int64_t dy = -radius; dy <= radius; ++dy) {
          for (int64_t dx = -radius; dx <= radius; ++dx) {
            if (y + dy < 0 || y + dy >= rows || x + dx < 0 || x + dx >= columns) continue;
            const double weight = double{taps[static_cast<size_t>(dy + radius)]} *
                                  taps[static_cast<size_t>(dx + radius)];
            sum += weight * image[static_cast<size_t>((p * rows + y + dy) * columns + x + dx)];
            weights += weight;
          }
        }
        out.push_back(sum / weights);
      }
    }
  }
  return out;
}

void ExpectNear(const std::vector<float>& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance) << "element " << i;
}

const std::vector<float> kTaps = {1, 3, 4, 2, 1};

class CustomOpExample : public ::testing::Test {
 protected:
  void SetUp() override {
    MSRT_ASSERT_OK(msrt_runtime_load_plugin(runtime, ExamplePath("custom_op").c_str(), nullptr));
    taps = FloatTensor(runtime, {5}, kTaps);
  }
  void TearDown() override { msrt_tensor_destroy(taps); }
  OneNode Blur(std::vector<int64_t> dims) {
    OneNode node;
    node.op = "Blur";
    node.dims = std::move(dims);
    node.constants = {taps};
    return node;
  }
  RuntimeOwner runtime;
  msrt_tensor* taps = nullptr;
};

TEST_F(CustomOpExample, OpenShapesFollowTheRule) {
  msrt_graph* graph = nullptr;
  MSRT_ASSERT_OK(MakeGraph(runtime, Blur({2, -1, -1}), &graph));
  msrt_tensor_info info = MSRT_INIT(msrt_tensor_info);
  MSRT_ASSERT_OK(
      msrt_graph_value_info(graph, 2, &info));  // the node's output, after the input and the taps
  EXPECT_EQ(info.dtype, MSRT_F32);
  ASSERT_EQ(info.rank, 3);
  EXPECT_EQ(info.dims[0], 2);
  EXPECT_EQ(info.dims[1], MSRT_UNKNOWN_DIM);
  msrt_model* model = Compiled(graph);
  msrt_session* session = SessionOf(model);
  msrt_model_destroy(model);
  for (const auto& [rows, columns] :
       std::vector<std::pair<int64_t, int64_t>>{{7, 9}, {1, 1}, {3, 20}, {0, 4}, {16, 2}}) {
    const std::vector<float> image = Ramp(2 * rows * columns);
    ExpectNear(RunFloats(session, {2, rows, columns}, image),
               Blurred(image, 2, rows, columns, kTaps), 1e-6);
  }
  msrt_session_destroy(session);
}

// Named dims of the inputs are the same dims in the results of the rule.
TEST_F(CustomOpExample, NamedDimsArePassedOn) {
  msrt_graph* graph = nullptr;
  MSRT_ASSERT_OK(msrt_graph_create(runtime, "named", &graph));
  msrt_tensor_info info = InfoOf(MSRT_F32, {MSRT_UNKNOWN_DIM, 8}, "x");
  info.symbols[0] = "rows";
  msrt_value inputs[2], y = MSRT_NO_VALUE;
  MSRT_ASSERT_OK(msrt_graph_add_input(graph, &info, &inputs[0]));
  MSRT_ASSERT_OK(msrt_graph_add_constant(graph, "taps", taps, &inputs[1]));
  msrt_node_desc node = MSRT_INIT(msrt_node_desc);
  node.domain = "com.example";
  node.op = "Blur";
  node.inputs = inputs;
  node.input_count = 2;
  MSRT_ASSERT_OK(msrt_graph_add_node(graph, &node, &y));
  msrt_tensor_info out = MSRT_INIT(msrt_tensor_info);
  MSRT_ASSERT_OK(msrt_graph_value_info(graph, y, &out));
  ASSERT_NE(out.symbols[0], nullptr);
  EXPECT_STREQ(out.symbols[0], "rows");
  msrt_graph_destroy(graph);
}

TEST_F(CustomOpExample, IsPackedAndExplained) {
  msrt_model* model = MakeModel(runtime, Blur({6, 6}));
  ASSERT_NE(model, nullptr) << msrt_error_message();
  msrt_session* session = SessionOf(model);
  const std::string plan = PlanOf(session);
  EXPECT_NE(plan.find("\"delegate\": \"kernels\""), std::string::npos) << plan;
  EXPECT_NE(plan.find("two passes"), std::string::npos) << plan;
  EXPECT_NE(plan.find("com.example.Blur"), std::string::npos) << plan;
  EXPECT_NE(plan.find("\"packed_bytes\": 56"), std::string::npos) << plan;  // 5 taps and 9 sums
  const char* info = "";
  MSRT_ASSERT_OK(msrt_runtime_info_json(runtime, &info));
  EXPECT_NE(std::string(info).find("com.example.Blur"), std::string::npos) << info;
  msrt_session_destroy(session);
  msrt_model_destroy(model);
}

// Taps that are an input cannot be packed.
TEST_F(CustomOpExample, RunsWithoutPacking) {
  msrt_graph* graph = nullptr;
  MSRT_ASSERT_OK(msrt_graph_create(runtime, "taps", &graph));
  const msrt_tensor_info x = InfoOf(MSRT_F32, {MSRT_UNKNOWN_DIM}, "taps");
  msrt_value inputs[2];
  MSRT_ASSERT_OK(msrt_graph_add_input(graph, &x, &inputs[1]));
  const std::vector<float> image = Ramp(30);
  msrt_tensor* data = FloatTensor(runtime, {5, 6}, image);
  MSRT_ASSERT_OK(msrt_graph_add_constant(graph, "image", data, &inputs[0]));
  msrt_tensor_destroy(data);
  msrt_node_desc node = MSRT_INIT(msrt_node_desc);
  node.domain = "com.example";
  node.op = "Blur";
  node.inputs = inputs;
  node.input_count = 2;
  msrt_value y = MSRT_NO_VALUE;
  MSRT_ASSERT_OK(msrt_graph_add_node(graph, &node, &y));
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, y, "y"));
  msrt_model* model = Compiled(graph);
  ExpectNear(RunOnce(model, {3}, {1, 2, 1}), Blurred(image, 1, 5, 6, {1, 2, 1}), 1e-6);
}

TEST_F(CustomOpExample, WrongUsesNameNodeOpAndKernel) {
  msrt_tensor* even = FloatTensor(runtime, {4}, {1, 1, 1, 1});
  OneNode node = Blur({6, 6});
  node.constants = {even};
  EXPECT_EQ(MakeModel(runtime, node), nullptr);
  const std::string message = msrt_error_message();
  for (const char* part :
       {"the_node", "com.example.Blur", "two passes", "odd number of taps, not 4"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  node = Blur({6});  // rank 1
  EXPECT_EQ(MakeModel(runtime, node), nullptr);
  EXPECT_NE(std::string(msrt_error_message()).find("rank 2 or more, not 1"), std::string::npos)
      << msrt_error_message();
  node = Blur({6, 6});
  node.constants = {};
  EXPECT_EQ(MakeModel(runtime, node), nullptr);
  EXPECT_NE(std::string(msrt_error_message()).find("input 1"), std::string::npos)
      << msrt_error_message();
  // No model may set the position of a piece.
  const int64_t margins[] = {1, 1, 1, 1};
  msrt_attr attr{};
  attr.name = "margins";
  attr.kind = MSRT_ATTR_INTS;
  attr.ints = margins;
  attr.count = 4;
  node = Blur({6, 6});
  node.attrs = {attr};
  EXPECT_EQ(MakeModel(runtime, node), nullptr);
  EXPECT_NE(std::string(msrt_error_message()).find("margins"), std::string::npos)
      << msrt_error_message();
  msrt_tensor_destroy(even);
}

TEST_F(CustomOpExample, FileNeedsTheKernel) {
  msrt_graph* graph = nullptr;
  MSRT_ASSERT_OK(MakeGraph(runtime, Blur({4, 4}), &graph));
  const std::string path =
      (std::filesystem::temp_directory_path() / StrCat("msrt_blur_", getpid(), ".msrt")).string();
  MSRT_ASSERT_OK(msrt_graph_save(graph, path.c_str()));
  msrt_graph_destroy(graph);
  msrt_model* model = nullptr;
  MSRT_ASSERT_OK(msrt_model_load_file(runtime, path.c_str(), nullptr, &model));
  const std::vector<float> image = Ramp(16);
  ExpectNear(RunOnce(model, {4, 4}, image), Blurred(image, 1, 4, 4, kTaps), 1e-6);

  const RuntimeOwner bare;
  model = nullptr;
  EXPECT_EQ(msrt_model_load_file(bare, path.c_str(), nullptr, &model), MSRT_UNSUPPORTED);
  std::string message = msrt_error_message();
  EXPECT_NE(message.find("com.example.Blur"), std::string::npos) << message;
  EXPECT_NE(message.find("register a kernel"), std::string::npos) << message;

  msrt_model_config config = MSRT_INIT(msrt_model_config);
  config.delegates = "reference";
  EXPECT_EQ(msrt_model_load_file(runtime, path.c_str(), &config, &model), MSRT_UNSUPPORTED);
  message = msrt_error_message();
  EXPECT_NE(message.find("com.example.Blur"), std::string::npos) << message;
  std::remove(path.c_str());
}

TEST_F(CustomOpExample, OutlivesTheRuntime) {
  msrt_runtime* own = nullptr;
  MSRT_ASSERT_OK(msrt_runtime_create(nullptr, &own));
  MSRT_ASSERT_OK(msrt_runtime_load_plugin(own, ExamplePath("custom_op").c_str(), nullptr));
  msrt_graph* graph = nullptr;
  MSRT_ASSERT_OK(MakeGraph(own, Blur({-1, 4}), &graph));
  msrt_runtime_destroy(own);
  msrt_model* model = Compiled(graph);
  const std::vector<float> image = Ramp(20);
  ExpectNear(RunOnce(model, {5, 4}, image), Blurred(image, 1, 5, 4, kTaps), 1e-6);
}

TEST_F(CustomOpExample, IsLoadedOnce) {
  EXPECT_EQ(msrt_runtime_load_plugin(runtime, ExamplePath("custom_op").c_str(), nullptr),
            MSRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(msrt_error_message()).find("defined already"), std::string::npos)
      << msrt_error_message();
}

// ---- the iteration space ------------------------------------------------------------------------

ConstTensor CutOut(const ConstTensor& t, const Box& box) {
  const Dims dims = box.dims();
  const std::vector<float> from = FloatsIn(t);
  std::vector<float> to;
  const Dims strides = RowMajorStrides(t.dims), own = RowMajorStrides(dims);
  for (int64_t i = 0; i < dims.elements(); ++i) {
    int64_t source = 0, rest = i;
    for (int d = 0; d < dims.rank(); ++d) {
      source += (box[d].begin + rest / own[d]) * strides[d];
      rest %= own[d];
    }
    to.push_back(from[static_cast<size_t>(source)]);
  }
  return ConstTensor::Floats(dims, to);
}

TEST(CustomOpSpace, PiecesEqualTheWhole) {
  const auto plugin = LoadPlugin(ExamplePath("custom_op"), "");
  ASSERT_TRUE(plugin.ok()) << plugin.status().message();
  const RegisteredKernel& kernel = plugin->kernels[0];
  const OpDef& def = *kernel.meaning;
  ASSERT_NE(def.space, nullptr);
  const ConstTensor image = ConstTensor::Floats({2, 9, 13}, Ramp(2 * 9 * 13)),
                    taps = ConstTensor::Floats({5}, kTaps);
  const auto whole = RunKernel(kernel, def, {}, {image, taps}, {false, true});
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  ExpectNear(FloatsIn(*whole), Blurred(FloatsIn(image), 2, 9, 13, kTaps), 1e-6);

  const Type types[] = {image.type(), taps.type()}, out_type = whole->type();
  const Type* const inputs[] = {&types[0], &types[1]};
  const Type* const outputs[] = {&out_type};
  const AttrList none;
  const OpView view = OpView(def.domain, def.name, "whole", &none, def.attrs, inputs, outputs)
                          .WithCustom(def.custom);
  IterationSpace space;
  ASSERT_TRUE(def.space->axes(view, &space).ok());
  ASSERT_EQ(space.rank(), 3);
  EXPECT_EQ(space[0].kind, AxisKind::kParallel);
  EXPECT_EQ(space[2].kind, AxisKind::kWindow);
  const auto resolved = ResolveSpace(def, view);
  ASSERT_TRUE(resolved.ok()) << resolved.status().message();
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    Box box = space.Whole();
    for (int a = 0; a < space.rank() && round != 0; ++a) {
      const auto x = static_cast<int64_t>(random() % static_cast<uint64_t>(space[a].extent));
      const auto y = static_cast<int64_t>(random() % static_cast<uint64_t>(space[a].extent));
      box[a] = {std::min(x, y), std::max(x, y) + 1};
    }
    SCOPED_TRACE(StrCat("box ", box));
    std::vector<Box> in(2), out(1);
    AttrList attrs;
    ASSERT_TRUE(def.space->operands(view, box, in).ok());
    ASSERT_TRUE(def.space->results(view, box, out).ok());
    // The same as data, and back from the output to the piece.
    EXPECT_EQ(InputBoxes(*resolved, box), in);
    EXPECT_EQ(OutputBoxes(*resolved, box), out);
    EXPECT_EQ(PieceFor(*resolved, 0, out[0]), box);
    const Status localized = def.space->localize(view, box, in, out, &attrs);
    ASSERT_TRUE(localized.ok()) << localized.message();
    const auto piece =
        RunKernel(kernel, def, attrs, {CutOut(image, in[0]), CutOut(taps, in[1])}, {false, true});
    ASSERT_TRUE(piece.ok()) << piece.status().message();
    ASSERT_EQ(FloatsIn(*piece), FloatsIn(CutOut(*whole, out[0])));
  }
}

// The kernel is packed once, for the whole node, and gets the attributes of each piece.
TEST(CustomOpSpace, PiecesRunOnTheCompiledKernel) {
  const auto plugin = LoadPlugin(ExamplePath("custom_op"), "");
  ASSERT_TRUE(plugin.ok()) << plugin.status().message();
  auto environment = std::make_shared<Environment>();
  environment->parallel = MakeSerial();
  environment->delegates = BuiltinDelegates();
  environment->evaluator = &BuiltinEvaluator();
  ASSERT_TRUE(Join(*plugin, environment.get()).ok());

  const ConstTensor image = ConstTensor::Floats({2, 9, 13}, Ramp(2 * 9 * 13));
  Module module;
  Graph& graph = module.graphs.emplace_back();
  module.entries = {0};
  Node node;
  node.domain = "com.example", node.op = "Blur", node.name = "blur";
  node.inputs = {graph.AddInput("x", image.type()),
                 graph.AddConstant("taps", ConstTensor::Floats({5}, kTaps))};
  node.outputs = graph.outputs = {graph.AddValue("y", image.type())};
  graph.nodes.push_back(node);
  const auto model = CompileModule(environment, module, {});
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto runner = PieceRunner::Create(*model, 0, std::vector<Dims>{image.dims}, {});
  ASSERT_TRUE(runner.ok()) << runner.status().message();

  const auto view = [](const ConstTensor& t) {
    return TensorView{t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())};
  };
  const std::vector<double> whole = Blurred(FloatsIn(image), 2, 9, 13, kTaps);
  const PieceMemory source{(*runner)->graph().inputs[0], Box::Whole(image.dims), view(image)};
  for (int64_t row = 0; row < 9; row += 2) {
    Box box = Box::Whole(image.dims);
    box[1] = {row, std::min<int64_t>(row + 2, 9)}, box[2] = {row, row + 4};
    const ConstTensor out =
        ConstTensor::Floats(box.dims(), std::vector<float>(static_cast<size_t>(box.volume())));
    const PieceMemory target{(*runner)->graph().outputs[0], box, view(out)};
    const Status status = (*runner)->Run({&source, 1}, {&target, 1}, {});
    ASSERT_TRUE(status.ok()) << status.message();
    std::vector<double> expected;
    for (int64_t p = 0; p < 2; ++p) {
      for (int64_t y = box[1].begin; y < box[1].end; ++y) {
        for (int64_t x = box[2].begin; x < box[2].end; ++x)
          expected.push_back(whole[static_cast<size_t>((p * 9 + y) * 13 + x)]);
      }
    }
    ExpectNear(FloatsIn(out), expected, 1e-6);
  }
}

}  // namespace
}  // namespace msrt::testing

// Graphs built through the C API: all kinds of attributes, open types, outputs with several names.
#include <cstring>

#include "core/api/api_testing.h"

namespace msrt::testing {
namespace {

class GraphApi : public ::testing::Test {
 protected:
  void SetUp() override {
    MSRT_ASSERT_OK(msrt_runtime_create(nullptr, &runtime));
    MSRT_ASSERT_OK(msrt_graph_create(runtime, nullptr, &graph));
  }
  void TearDown() override {
    msrt_graph_destroy(graph);
    msrt_runtime_destroy(runtime);
  }
  msrt_value Input(const msrt_tensor_info& info) {
    msrt_value value = MSRT_NO_VALUE;
    MSRT_EXPECT_OK(msrt_graph_add_input(graph, &info, &value));
    return value;
  }
  msrt_tensor_info InfoOfValue(msrt_value value) {
    msrt_tensor_info info = MSRT_INIT(msrt_tensor_info);
    MSRT_EXPECT_OK(msrt_graph_value_info(graph, value, &info));
    return info;
  }
  static msrt_attr Attr(const char* name, msrt_attr_kind kind) {
    msrt_attr attr = {};
    attr.name = name;
    attr.kind = kind;
    return attr;
  }
  msrt_runtime* runtime = nullptr;
  msrt_graph* graph = nullptr;
};

TEST_F(GraphApi, EveryKindOfAttributeIsAccepted) {
  const msrt_value x = Input(InfoOf(MSRT_F32, {2, 3}, "x"));
  const double slope = 0.5;
  msrt_attr alpha = Attr("alpha", MSRT_ATTR_FLOAT);
  alpha.floats = &slope;
  msrt_value v = AddNode(graph, "LeakyRelu", "leaky", {x}, {alpha});
  const char* const tanh_name = "tanh";
  msrt_attr approximate = Attr("approximate", MSRT_ATTR_STRING);
  approximate.strings = &tanh_name;
  v = AddNode(graph, "Gelu", "gelu", {v}, {approximate});
  const int64_t order[] = {1, 0};
  msrt_attr perm = Attr("perm", MSRT_ATTR_INTS);
  perm.ints = order;
  perm.count = 2;
  v = AddNode(graph, "Transpose", "transposed", {v}, {perm});
  EXPECT_EQ(InfoOfValue(v).dims[0], 3);
  EXPECT_STREQ(InfoOfValue(v).name, "transposed");
  msrt_attr to = Attr("to", MSRT_ATTR_DTYPE);
  to.dtype = MSRT_F64;
  v = AddNode(graph, "Cast", nullptr, {v}, {to});
  EXPECT_EQ(InfoOfValue(v).dtype, MSRT_F64);
  EXPECT_EQ(InfoOfValue(v).bytes, 48u);
  msrt_tensor* seven = FloatTensor(runtime, {1}, {7});
  const int64_t target[] = {2};
  msrt_attr value = Attr("value", MSRT_ATTR_TENSOR), shape = Attr("shape", MSRT_ATTR_INTS);
  value.tensor = seven;
  shape.ints = target;
  shape.count = 1;
  const msrt_value filled = AddNode(graph, "ConstantOfShape", "filled", {}, {value, shape});
  msrt_tensor_destroy(seven);
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, v, "wide"));
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, filled, "filled"));
  msrt_model* model = nullptr;
  MSRT_ASSERT_OK(msrt_graph_compile(graph, nullptr, &model));
  msrt_session* session = SessionOf(model);
  EXPECT_EQ(RunFloats(session, {2, 3}, std::vector<float>(6, 1), 1), (std::vector<float>{7, 7}));
  msrt_session_destroy(session);
  msrt_model_destroy(model);
}

TEST_F(GraphApi, OneValueCanBeSeveralOutputs) {
  const msrt_value x = Input(InfoOf(MSRT_F32, {2}, "x"));
  msrt_tensor* data = FloatTensor(runtime, {2}, {7, 8});
  msrt_value c = MSRT_NO_VALUE;
  MSRT_ASSERT_OK(msrt_graph_add_constant(graph, nullptr, data, &c));
  msrt_tensor_destroy(data);
  const msrt_value y = AddNode(graph, "Neg", "y", {x}), twin = AddNode(graph, "Neg", "twin", {x});
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, y, nullptr));
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, twin, nullptr));
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, y, "again"));
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, x, nullptr));
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, x, "same"));
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, c, "constant"));
  EXPECT_EQ(msrt_graph_add_output(graph, y, nullptr), MSRT_INVALID_ARGUMENT);
  const std::string path = ::testing::TempDir() + "api_outputs.msrt";
  MSRT_ASSERT_OK(msrt_graph_save(graph, path.c_str()));
  msrt_model* model = nullptr;
  MSRT_ASSERT_OK(msrt_model_load_file(runtime, path.c_str(), nullptr, &model));
  msrt_session* session = SessionOf(model);
  using Floats = std::vector<float>;
  const struct {
    const char* name;
    Floats values;
  } expected[] = {{"y", {-1, -2}}, {"twin", {-1, -2}}, {"again", {-1, -2}},
                  {"x", {1, 2}},   {"same", {1, 2}},   {"constant", {7, 8}}};
  for (const auto& e : expected) {
    size_t index = 99;
    MSRT_ASSERT_OK(msrt_session_io_find(session, MSRT_OUTPUT, e.name, &index));
    EXPECT_EQ(RunFloats(session, {2}, {1, 2}, index), e.values) << e.name;
  }
  msrt_session_destroy(session);
  msrt_model_destroy(model);
}

TEST_F(GraphApi, OpenRanksOmittedInputsAndSharedSymbolsRun) {
  msrt_tensor_info any = InfoOf(MSRT_F32, {}, "any");
  any.rank = -1;
  msrt_tensor_info a = InfoOf(MSRT_F32, {MSRT_UNKNOWN_DIM}, "a"),
                   b = InfoOf(MSRT_F32, {MSRT_UNKNOWN_DIM}, "b");
  a.symbols[0] = b.symbols[0] = "n";
  const msrt_value unranked = Input(any), va = Input(a), vb = Input(b);
  EXPECT_EQ(InfoOfValue(unranked).rank, -1);
  EXPECT_STREQ(InfoOfValue(vb).symbols[0], "n");
  msrt_tensor* top = FloatTensor(runtime, {}, {1});
  msrt_value most = MSRT_NO_VALUE;
  MSRT_ASSERT_OK(msrt_graph_add_constant(graph, "most", top, &most));
  msrt_tensor_destroy(top);
  const msrt_value clipped = AddNode(graph, "Clip", "clipped", {unranked, MSRT_NO_VALUE, most});
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, clipped, nullptr));
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, AddNode(graph, "Add", "sum", {va, vb}), nullptr));
  msrt_model* model = nullptr;
  MSRT_ASSERT_OK(msrt_graph_compile(graph, nullptr, &model));
  msrt_session* session = SessionOf(model);
  msrt_tensor *two = FloatTensor(runtime, {2}, {1, 2}),
              *three = FloatTensor(runtime, {3}, {1, 2, 3});
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_INPUT, 1, two));
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_INPUT, 2, three));
  msrt_status status = MSRT_OK;
  RunFloats(session, {2, 1, 1}, {0, 5}, 0, &status);  // n is 2 and 3
  EXPECT_EQ(status, MSRT_INVALID_ARGUMENT) << msrt_error_message();
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_INPUT, 2, two));
  EXPECT_EQ(RunFloats(session, {2, 1, 1}, {0, 5}, 0), (std::vector<float>{0, 1}));
  EXPECT_EQ(RunFloats(session, {}, {0.5f}, 0), (std::vector<float>{0.5f}));
  EXPECT_EQ(RunFloats(session, {1}, {3}, 1), (std::vector<float>{2, 4}));
  msrt_tensor_destroy(two);
  msrt_tensor_destroy(three);
  msrt_session_destroy(session);
  msrt_model_destroy(model);
}

TEST_F(GraphApi, UnknownOpIsSavedButDoesNotCompile) {
  const msrt_value x = Input(InfoOf(MSRT_F32, {2}, "x"));
  const msrt_tensor_info types[] = {InfoOf(MSRT_F32, {2}, nullptr),
                                    InfoOf(MSRT_I64, {1, 2}, nullptr)};
  msrt_node_desc node = MSRT_INIT(msrt_node_desc);
  node.domain = "com.example";
  node.op = "Sparkle";
  node.name = "sparkle";
  node.inputs = &x;
  node.input_count = 1;
  node.output_count = 2;
  node.output_types = types;
  msrt_value outputs[2] = {};
  MSRT_ASSERT_OK(msrt_graph_add_node(graph, &node, outputs));
  EXPECT_EQ(InfoOfValue(outputs[1]).dtype, MSRT_I64);
  EXPECT_EQ(InfoOfValue(outputs[1]).rank, 2);
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, outputs[1], nullptr));
  MSRT_ASSERT_OK(msrt_graph_save(graph, (::testing::TempDir() + "api_unknown.msrt").c_str()));
  msrt_model* model = nullptr;
  EXPECT_EQ(msrt_graph_compile(graph, nullptr, &model), MSRT_UNSUPPORTED);
  EXPECT_NE(std::string(msrt_error_message()).find("Sparkle"), std::string::npos)
      << msrt_error_message();
}

TEST_F(GraphApi, NameThatIsNotUtf8IsNotSaved) {
  const msrt_value x = Input(InfoOf(MSRT_F32, {2}, "x"));
  MSRT_ASSERT_OK(
      msrt_graph_add_output(graph, AddNode(graph, "Neg", "not utf-8: \xFF", {x}), nullptr));
  EXPECT_NE(msrt_graph_save(graph, (::testing::TempDir() + "api_bad_name.msrt").c_str()), MSRT_OK);
  EXPECT_STRNE(msrt_error_message(), "");
}

}  // namespace
}  // namespace msrt::testing

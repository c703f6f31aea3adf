// Lists through the C API: created, read, passed to sessions and returned by them; optionals, which
// are lists of at most one element.
#include <cstring>

#include "core/api/api_testing.h"

namespace msrt::testing {
namespace {

using Floats = std::vector<float>;

class ListApi : public ::testing::Test {
 protected:
  void SetUp() override {
    MSRT_ASSERT_OK(msrt_runtime_create(nullptr, &runtime));
    MSRT_ASSERT_OK(msrt_graph_create(runtime, "lists", &graph));
    MSRT_ASSERT_OK(msrt_list_create(runtime, &list));
  }
  void TearDown() override {
    msrt_list_destroy(list);
    msrt_session_destroy(session);
    msrt_graph_destroy(graph);
    msrt_runtime_destroy(runtime);
  }
  void Append(msrt_list* to, const Floats& values) {
    msrt_tensor* tensor = FloatTensor(runtime, {static_cast<int64_t>(values.size())}, values);
    MSRT_EXPECT_OK(msrt_list_append(to, tensor));
    void* data = nullptr;
    MSRT_EXPECT_OK(msrt_tensor_data(tensor, &data));
    if (!values.empty())
      std::memset(data, 0, values.size() * sizeof(float));  // the list has a copy
    msrt_tensor_destroy(tensor);
  }
  static Floats At(const msrt_list* from, size_t index) {
    msrt_tensor* tensor = nullptr;
    MSRT_EXPECT_OK(msrt_list_element(from, index, &tensor));
    const Floats values = FloatsOf(tensor);
    msrt_tensor_destroy(tensor);
    return values;
  }
  static size_t LengthOf(const msrt_list* of) {
    size_t length = 0;
    MSRT_EXPECT_OK(msrt_list_length(of, &length));
    return length;
  }
  // An input of lists of vectors.
  msrt_value ListInput(int32_t depth) {
    msrt_tensor_info info = InfoOf(MSRT_F32, {MSRT_UNKNOWN_DIM}, "list");
    info.list_depth = depth;
    msrt_value value = MSRT_NO_VALUE;
    MSRT_EXPECT_OK(msrt_graph_add_input(graph, &info, &value));
    return value;
  }
  void Open() {
    msrt_model* model = nullptr;
    MSRT_ASSERT_OK(msrt_graph_compile(graph, nullptr, &model));
    session = SessionOf(model);
    msrt_model_destroy(model);
  }
  static void ExpectMessage(std::initializer_list<const char*> parts) {
    for (const char* part : parts)
      EXPECT_NE(std::string(msrt_error_message()).find(part), std::string::npos)
          << msrt_error_message();
  }
  msrt_runtime* runtime = nullptr;
  msrt_graph* graph = nullptr;
  msrt_session* session = nullptr;
  msrt_list* list = nullptr;
};

TEST_F(ListApi, ListReturnsItsElements) {
  EXPECT_EQ(LengthOf(list), 0u);
  Append(list, {1, 2});
  Append(list, {});
  Append(list, {3});
  ASSERT_EQ(LengthOf(list), 3u);
  EXPECT_EQ(At(list, 0), (Floats{1, 2}));
  EXPECT_EQ(At(list, 1), Floats{});
  msrt_tensor* last = nullptr;
  MSRT_ASSERT_OK(msrt_list_element(list, 2, &last));
  msrt_list_destroy(list);
  EXPECT_EQ(FloatsOf(last), Floats{3});  // outlives its list
  msrt_tensor_destroy(last);
}

// joined = all elements in a row; longer = the list with x at its end.
TEST_F(ListApi, SessionsTakeAndReturnLists) {
  const msrt_value in = ListInput(1);
  const msrt_tensor_info x_info = InfoOf(MSRT_F32, {MSRT_UNKNOWN_DIM}, "x");
  msrt_value x = MSRT_NO_VALUE;
  MSRT_ASSERT_OK(msrt_graph_add_input(graph, &x_info, &x));
  const int64_t zero = 0;
  msrt_attr axis = {};
  axis.name = "axis";
  axis.kind = MSRT_ATTR_INT;
  axis.ints = &zero;
  MSRT_ASSERT_OK(msrt_graph_add_output(
      graph, AddNode(graph, "ConcatFromSequence", nullptr, {in}, {axis}), "joined"));
  const msrt_value longer = AddNode(graph, "SequenceInsert", nullptr, {in, x});
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, longer, "longer"));
  msrt_tensor_info info = MSRT_INIT(msrt_tensor_info);
  MSRT_ASSERT_OK(msrt_graph_value_info(graph, longer, &info));
  EXPECT_EQ(info.list_depth, 1);
  EXPECT_EQ(info.dtype, MSRT_F32);
  EXPECT_EQ(info.rank, 1);
  Open();
  MSRT_ASSERT_OK(msrt_session_io_info(session, MSRT_INPUT, 0, &info));
  EXPECT_EQ(info.list_depth, 1);
  EXPECT_EQ(info.dims[0], MSRT_UNKNOWN_DIM);
  EXPECT_EQ(info.bytes, 0u);

  Append(list, {1, 2});
  Append(list, {3});
  MSRT_ASSERT_OK(msrt_session_bind_list(session, 0, list));
  Append(list, {4});  // after the bind: not seen
  msrt_tensor *five = FloatTensor(runtime, {1}, {5}), *joined = nullptr;
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_INPUT, 1, five));
  msrt_tensor_destroy(five);
  MSRT_ASSERT_OK(msrt_session_run(session, nullptr));
  MSRT_ASSERT_OK(msrt_session_output(session, 0, &joined));
  EXPECT_EQ(FloatsOf(joined), (Floats{1, 2, 3}));
  msrt_tensor_destroy(joined);
  msrt_list* out = nullptr;
  MSRT_ASSERT_OK(msrt_session_output_list(session, 1, &out));
  ASSERT_EQ(LengthOf(out), 3u);

  // Binds the output as the next input, as a stream would.
  MSRT_ASSERT_OK(msrt_session_bind_list(session, 0, out));
  MSRT_ASSERT_OK(msrt_session_run(session, nullptr));
  msrt_list* next = nullptr;
  MSRT_ASSERT_OK(msrt_session_output_list(session, 1, &next));
  ASSERT_EQ(LengthOf(next), 4u);
  EXPECT_EQ(LengthOf(out), 3u);  // what it holds never changes
  msrt_list_destroy(out);
  msrt_session_destroy(session);
  session = nullptr;
  EXPECT_EQ(At(next, 0), (Floats{1, 2}));
  EXPECT_EQ(At(next, 3), Floats{5});
  msrt_list_destroy(next);
}

// An output that is an element of a list shares the list's memory, which never changes.
TEST_F(ListApi, WritingToATakenOutputLeavesTheListUnchanged) {
  const msrt_value in = ListInput(1);
  const int64_t zero = 0;
  msrt_tensor* index = nullptr;
  void* data = nullptr;
  MSRT_ASSERT_OK(msrt_tensor_create(runtime, MSRT_I64, 0, nullptr, &index));
  MSRT_ASSERT_OK(msrt_tensor_data(index, &data));
  std::memcpy(data, &zero, sizeof zero);
  msrt_value first = MSRT_NO_VALUE;
  MSRT_ASSERT_OK(msrt_graph_add_constant(graph, "first", index, &first));
  msrt_tensor_destroy(index);
  MSRT_ASSERT_OK(
      msrt_graph_add_output(graph, AddNode(graph, "SequenceAt", nullptr, {in, first}), "element"));
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, in, nullptr));
  Open();
  Append(list, {7, 8});
  MSRT_ASSERT_OK(msrt_session_bind_list(session, 0, list));
  MSRT_ASSERT_OK(msrt_session_run(session, nullptr));
  msrt_tensor* element = nullptr;
  MSRT_ASSERT_OK(msrt_session_take_output(session, 0, &element));
  EXPECT_EQ(FloatsOf(element), (Floats{7, 8}));
  MSRT_ASSERT_OK(msrt_tensor_data(element, &data));
  std::memset(data, 0, 2 * sizeof(float));
  msrt_list* same = nullptr;
  MSRT_ASSERT_OK(msrt_session_output_list(session, 1, &same));
  EXPECT_EQ(At(same, 0), (Floats{7, 8}));
  msrt_list_destroy(same);
  msrt_tensor_destroy(element);
}

// Binds an optional with and without a value.
TEST_F(ListApi, OptionalsAreListsOfAtMostOne) {
  const msrt_value in = ListInput(1);
  MSRT_ASSERT_OK(
      msrt_graph_add_output(graph, AddNode(graph, "SequenceLength", nullptr, {in}), "given"));
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, in, nullptr));
  Open();
  for (const size_t count : {size_t{0}, size_t{1}}) {
    MSRT_ASSERT_OK(msrt_session_bind_list(session, 0, list));
    MSRT_ASSERT_OK(msrt_session_run(session, nullptr));
    msrt_list* same = nullptr;
    MSRT_ASSERT_OK(msrt_session_output_list(session, 1, &same));
    ASSERT_EQ(LengthOf(same), count);
    if (count == 1) {
      EXPECT_EQ(At(same, 0), Floats{8});
    }
    msrt_list_destroy(same);
    Append(list, {8});
  }
}

TEST_F(ListApi, ListsCanContainLists) {
  const msrt_value in = ListInput(2);
  const msrt_tensor_info info = InfoOf(MSRT_I64, {}, "at");
  msrt_value at = MSRT_NO_VALUE;
  MSRT_ASSERT_OK(msrt_graph_add_input(graph, &info, &at));
  MSRT_ASSERT_OK(
      msrt_graph_add_output(graph, AddNode(graph, "SequenceAt", nullptr, {in, at}), "inner"));
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, in, nullptr));
  Open();
  msrt_list *outer = nullptr, *inner = nullptr;
  MSRT_ASSERT_OK(msrt_list_create(runtime, &outer));
  Append(list, {1});
  MSRT_ASSERT_OK(msrt_list_append_list(outer, list));
  Append(list, {2, 3});
  MSRT_ASSERT_OK(msrt_list_append_list(outer, list));
  MSRT_ASSERT_OK(msrt_session_bind_list(session, 0, outer));
  msrt_list_destroy(outer);
  msrt_tensor* one = nullptr;
  MSRT_ASSERT_OK(msrt_session_input(session, 1, 0, nullptr, &one));
  void* data = nullptr;
  MSRT_ASSERT_OK(msrt_tensor_data(one, &data));
  *static_cast<int64_t*>(data) = 1;
  msrt_tensor_destroy(one);
  MSRT_ASSERT_OK(msrt_session_run(session, nullptr));
  MSRT_ASSERT_OK(msrt_session_output_list(session, 0, &inner));
  ASSERT_EQ(LengthOf(inner), 2u);
  EXPECT_EQ(At(inner, 1), (Floats{2, 3}));
  msrt_list_destroy(inner);
  MSRT_ASSERT_OK(msrt_session_output_list(session, 1, &outer));
  MSRT_ASSERT_OK(msrt_list_element_list(outer, 0, &inner));
  EXPECT_EQ(LengthOf(inner), 1u);
  msrt_tensor* none = nullptr;
  EXPECT_EQ(msrt_list_element(outer, 0, &none), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"element 0 is a list", "msrt_list_element_list"});
  msrt_list_destroy(inner);
  msrt_list_destroy(outer);
}

TEST_F(ListApi, WrongCallsAreRefused) {
  const msrt_value in = ListInput(1);
  const msrt_tensor_info info = InfoOf(MSRT_F32, {1}, "x");
  msrt_value x = MSRT_NO_VALUE;
  MSRT_ASSERT_OK(msrt_graph_add_input(graph, &info, &x));
  EXPECT_EQ(msrt_graph_add_output(graph, in, "same"), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"name is 'same'", "'list' is list<f32[?]>", "pass NULL"});
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, in, nullptr));
  MSRT_ASSERT_OK(msrt_graph_add_output(graph, AddNode(graph, "Neg", nullptr, {x}), "y"));
  Open();
  msrt_tensor *tensor = FloatTensor(runtime, {1}, {1}), *matrix = FloatTensor(runtime, {1, 1}, {1}),
              *no_tensor = nullptr;
  msrt_list* no_list = nullptr;
  EXPECT_EQ(msrt_session_bind(session, MSRT_INPUT, 0, tensor), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"input 0 'list' is list<f32[?]>", "use msrt_session_bind_list"});
  const int64_t dims[] = {1};
  EXPECT_EQ(msrt_session_input(session, 0, 1, dims, &no_tensor), MSRT_INVALID_ARGUMENT);
  EXPECT_EQ(msrt_session_bind_list(session, 1, list), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"input 1 'x' is f32[1]: use msrt_session_bind"});
  EXPECT_EQ(msrt_session_bind_list(session, 2, list), MSRT_NOT_FOUND);
  MSRT_ASSERT_OK(msrt_session_bind(session, MSRT_INPUT, 1, tensor));
  EXPECT_EQ(msrt_session_run(session, nullptr), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"input 0 'list' is not set"});
  EXPECT_EQ(msrt_session_output_list(session, 0, &no_list), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"has not run"});
  EXPECT_EQ(msrt_session_output(session, 0, &no_tensor), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"output 0 'list'", "use msrt_session_output_list"});
  EXPECT_EQ(msrt_session_output_list(session, 1, &no_list), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"output 1 'y' is f32[1]: use msrt_session_output"});

  MSRT_ASSERT_OK(msrt_list_append(list, tensor));
  MSRT_ASSERT_OK(msrt_list_append(list, matrix));
  EXPECT_EQ(msrt_session_bind_list(session, 0, list), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"input 0 'list'", "element 1 of list is f32[1, 1]", "rank"});
  EXPECT_EQ(msrt_list_element(list, 2, &no_tensor), MSRT_NOT_FOUND);
  ExpectMessage({"element 2 does not exist; there are 2"});
  EXPECT_EQ(msrt_list_element_list(list, 0, &no_list), MSRT_INVALID_ARGUMENT);
  ExpectMessage({"element 0 is a tensor: use msrt_list_element"});
  MSRT_EXPECT_OK(msrt_list_append_list(list, list));  // a copy of itself, so far
  EXPECT_EQ(LengthOf(list), 3u);
  EXPECT_EQ(msrt_session_bind_list(session, 0, list), MSRT_INVALID_ARGUMENT);
  msrt_status deep = MSRT_OK;
  for (int i = 0; i < 100 && deep == MSRT_OK; ++i) deep = msrt_list_append_list(list, list);
  EXPECT_EQ(deep, MSRT_INVALID_ARGUMENT);
  ExpectMessage({"more than 8 levels deep"});
  EXPECT_EQ(no_tensor, nullptr);
  EXPECT_EQ(no_list, nullptr);
  msrt_tensor_destroy(tensor);
  msrt_tensor_destroy(matrix);
}

}  // namespace
}  // namespace msrt::testing

#include <algorithm>

#include "core/base/str_cat.h"
#include "tests/hostile/bad_onnx.h"

namespace msrt::testing {
namespace {

onnx::ModelProto Empty() {
  return OnnxModel(
      "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }");
}

onnx::NodeProto* AddNode(onnx::GraphProto* graph, const char* op, const std::string& input,
                         const std::string& output) {
  onnx::NodeProto* node = graph->add_node();
  node->set_op_type(op);
  node->add_input(input);
  node->add_output(output);
  return node;
}

std::vector<std::byte> Chain(int nodes) {
  onnx::ModelProto model = Empty();
  for (int i = 0; i < nodes; ++i)
    AddNode(model.mutable_graph(), "Relu", i == 0 ? "x" : StrCat("v", i - 1), StrCat("v", i));
  model.mutable_graph()->add_output()->set_name(StrCat("v", nodes - 1));
  return OnnxBytes(model);
}

onnx::AttributeProto* AddGraph(onnx::NodeProto* node, const char* name) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::GRAPH);
  return attribute;
}

// If in If in If.
std::vector<std::byte> Branches(int depth) {
  onnx::ModelProto model = OnnxModel(
      "input { name: 'c' type { tensor_type { elem_type: 9 shape {} } } } input { name: 'x' type { "
      "tensor_type { elem_type: 1 } } }");
  onnx::GraphProto* graph = model.mutable_graph();
  for (int i = 0; i < depth; ++i) {
    onnx::NodeProto* node = AddNode(graph, "If", "c", StrCat("y", i));
    node->set_name("if");
    graph->add_output()->set_name(StrCat("y", i));
    onnx::GraphProto* other = AddGraph(node, "else_branch")->mutable_g();
    AddNode(other, "Neg", "x", "e");
    other->add_output()->set_name("e");
    graph = AddGraph(node, "then_branch")->mutable_g();
  }
  AddNode(graph, "Neg", "x", "t");
  graph->add_output()->set_name("t");
  return OnnxBytes(model);
}

// Each level calls the next one twice.
std::vector<std::byte> DoublingFunctions(int levels) {
  std::string rest = "opset_import { domain: 'own' version: 1 } ";
  for (int i = 0; i < levels; ++i) {
    const std::string callee = i + 1 < levels ? StrCat("domain: 'own' op_type: 'F", i + 1, "'")
                                              : std::string("op_type: 'Neg'");
    StrAppend(&rest, "functions { name: 'F", i,
              "' domain: 'own' input: 'a' output: 'c' opset_import { version: 21 } node { ", callee,
              " input: 'a' output: 'b' } node { ", callee, " input: 'b' output: 'c' } } ");
  }
  return OnnxBytes(
      OnnxModel("input { name: 'x' type { tensor_type { elem_type: 1 } } } "
                "node { domain: 'own' op_type: 'F0' input: 'x' output: 'y' } output { name: 'y' }",
                rest));
}

// A function with a large weight, called often.
std::vector<std::byte> CalledWeights(int calls, int bytes) {
  onnx::ModelProto model =
      OnnxModel("input { name: 'x' type { tensor_type { elem_type: 2 } } }",
                "opset_import { domain: 'own' version: 1 } functions { name: 'F' domain: 'own' "
                "input: 'a' output: 'c' opset_import { version: 21 } "
                "node { op_type: 'Constant' output: 'w' attribute { name: 'value' type: TENSOR t { "
                "data_type: 2 } } } "
                "node { op_type: 'Add' input: 'a' input: 'w' output: 'c' } }");
  onnx::TensorProto* weight =
      model.mutable_functions(0)->mutable_node(0)->mutable_attribute(0)->mutable_t();
  weight->add_dims(bytes);
  weight->set_raw_data(std::string(static_cast<size_t>(bytes), '1'));
  for (int i = 0; i < calls; ++i)
    AddNode(model.mutable_graph(), "F", i == 0 ? "x" : StrCat("v", i - 1), StrCat("v", i))
        ->set_domain("own");
  model.mutable_graph()->add_output()->set_name(StrCat("v", calls - 1));
  return OnnxBytes(model);
}

// Nested loops, each of which is read again because its body changes the types that it carries.
std::vector<std::byte> RestlessLoops(int depth) {
  constexpr std::string_view kAxis = "attribute { name: 'axis' type: INT i: 0 }";
  std::string text = StrCat("node { op_type: 'Concat' input: 'x' input: 'x' output: 'last' ", kAxis,
                            " } output { name: 'last' }");
  for (int i = depth; i > 0; --i) {
    const std::string body =
        StrCat("name: 'body' input { name: 'i", i, "' } input { name: 'go", i,
               "' } input { name: 'v", i, "' } node { op_type: 'Identity' input: 'go", i,
               "' output: 'again", i, "' } output { name: 'again", i, "' } ");
    text = StrCat("node { op_type: 'Loop' input: '' input: '' input: 'x' output: 'y", i,
                  "' attribute { name: 'body' type: GRAPH g { ", body, text,
                  " } } } node { op_type: 'Concat' input: 'y", i, "' input: 'y", i, "' output: 'z",
                  i, "' ", kAxis, " } output { name: 'z", i, "' }");
  }
  return OnnxBytes(OnnxModel(StrCat(
      "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } ",
      text)));
}

// An attribute list, an op for each node, a symbol for each input and so on: lists that must not be
// searched linearly.
std::vector<std::byte> ManyAttributes(int count) {
  onnx::ModelProto model = Empty();
  onnx::NodeProto* node = AddNode(model.mutable_graph(), "Relu", "x", "y");
  node->set_name("relu");
  for (int i = 0; i < count; ++i) node->add_attribute()->set_name(StrCat("a", i));
  model.mutable_graph()->add_output()->set_name("y");
  return OnnxBytes(model);
}

std::vector<std::byte> ManyUnknownOps(int count) {
  onnx::ModelProto model = Empty();
  for (int i = 0; i < count; ++i)
    AddNode(model.mutable_graph(), StrCat("Op", i).c_str(), "x", StrCat("v", i));
  model.mutable_graph()->add_output()->set_name("v0");
  return OnnxBytes(model);
}

std::vector<std::byte> ManySymbols(int count) {
  onnx::ModelProto model = Empty();
  for (int i = 0; i < count; ++i) {
    onnx::ValueInfoProto* input = model.mutable_graph()->add_input();
    input->set_name(StrCat("i", i));
    input->mutable_type()->mutable_tensor_type()->set_elem_type(1);
    input->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param(
        StrCat("n", i));
  }
  AddNode(model.mutable_graph(), "Relu", "x", "y");
  model.mutable_graph()->add_output()->set_name("y");
  return OnnxBytes(model);
}

std::vector<std::byte> ManyOutputs(int count) {
  onnx::ModelProto model = Empty();
  for (int i = 0; i < count; ++i) {
    AddNode(model.mutable_graph(), "Relu", "x", StrCat("y", i));
    model.mutable_graph()->add_output()->set_name(StrCat("y", i));
  }
  model.mutable_graph()->add_output()->set_name("nowhere");
  return OnnxBytes(model);
}

std::vector<std::byte> LongAttribute(int numbers, int letters) {
  onnx::ModelProto model = Empty();
  onnx::NodeProto* node =
      AddNode(model.mutable_graph(), letters > 0 ? "Gelu" : "ReduceSum", "x", "y");
  node->set_name("long");
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(letters > 0 ? "approximate" : "axes");
  attribute->set_type(letters > 0 ? onnx::AttributeProto::STRING : onnx::AttributeProto::INTS);
  for (int i = 0; i < numbers; ++i) attribute->add_ints(i);
  attribute->set_s(std::string(static_cast<size_t>(letters), 'a'));
  model.mutable_opset_import(0)->set_version(letters > 0 ? 21 : 11);
  model.mutable_graph()->add_output()->set_name("y");
  return OnnxBytes(model);
}

std::vector<std::byte> LongName(int letters, bool of_node) {
  onnx::ModelProto model = Empty();
  const std::string name(static_cast<size_t>(letters), 'n');
  onnx::NodeProto* node = AddNode(model.mutable_graph(), "Relu", "x", of_node ? "y" : name);
  if (of_node) node->set_name(name);
  model.mutable_graph()->add_output()->set_name(node->output(0));
  return OnnxBytes(model);
}

// Prepends the tag and length of a field to the message that `reversed` has backwards.
void Wrap(std::string* reversed, int field) {
  for (size_t length = reversed->size(), begin = reversed->size();; length >>= 7) {
    const bool last = length < 128;
    reversed->insert(reversed->begin() + static_cast<ptrdiff_t>(begin),
                     static_cast<char>((length & 127) | (last ? 0 : 128)));
    if (last) break;
  }
  reversed->push_back(static_cast<char>(field << 3 | 2));
}

// Sequences of sequences, too deep to be built as messages.
std::vector<std::byte> DeepType(int depth) {
  std::string reversed;
  for (int i = 0; i < depth; ++i) {
    Wrap(&reversed, 1);  // elem_type
    Wrap(&reversed, 4);  // sequence_type
  }
  Wrap(&reversed, 2);               // type
  Wrap(&reversed, 11);              // input
  reversed += "y\x01\x0a\x03\x62";  // an output called 'y'
  Wrap(&reversed, 7);               // graph
  reversed += "\x15\x10\x02\x42";   // an opset
  std::reverse(reversed.begin(), reversed.end());
  const auto bytes = std::as_bytes(std::span(reversed));
  return {bytes.begin(), bytes.end()};
}

constexpr BadOnnx kBadBombs[] = {
    {"AMillionNodes", "", nullptr, "", [] { return Chain(1'000'000); }},
    {"MoreThanAMillionNodes", "more than 1000000 nodes", nullptr, "",
     [] { return Chain(1'000'001); }},
    {"GraphsNested64Deep", "", nullptr, "", [] { return Branches(60); }},
    {"GraphsNested200Deep", "nested more than 64 deep", nullptr, "", [] { return Branches(200); }},
    {"GraphsNested1000Deep", "nested more than 1000 deep", nullptr, "",
     [] { return Branches(1000); }},
    {"FunctionsThatDouble", "more than 1000000 nodes", nullptr, "",
     [] { return DoublingFunctions(40); }},
    {"FunctionsNestedTooDeep", "functions call each other more than 64 deep", nullptr, "",
     [] { return DoublingFunctions(80); }},
    {"FunctionsWithLargeWeights", "written out", nullptr, "",
     [] { return CalledWeights(10'000, 1 << 20); }},
    {"LoopsThatAreReadAgain", "", nullptr, "", [] { return RestlessLoops(5); }},
    {"LoopsThatAreReadAgainAndAgain", "had to be read again", nullptr, "",
     [] { return RestlessLoops(30); }},
    {"ManyAttributes", "it has 200000 attributes", nullptr, "",
     [] { return ManyAttributes(200'000); }},
    {"ManyUnknownOps", "and 199900 more", nullptr, "", [] { return ManyUnknownOps(200'000); }},
    {"ManySymbols", "", nullptr, "", [] { return ManySymbols(200'000); }},
    {"ManyOutputs", "output 'nowhere'", nullptr, "", [] { return ManyOutputs(200'000); }},
    {"AMillionNumbers", "'long'", nullptr, "", [] { return LongAttribute(1'000'000, 0); }},
    {"AMillionLetters", "'long'", nullptr, "", [] { return LongAttribute(0, 1'000'000); }},
    {"NameOfAValueTooLong", "has 1000000 bytes", nullptr, "",
     [] { return LongName(1'000'000, false); }},
    {"NameOfANodeTooLong", "has 1000000 bytes", nullptr, "",
     [] { return LongName(1'000'000, true); }},
    {"TypeNested100Deep", "nested more than 8 deep", nullptr, "", [] { return DeepType(100); }},
    {"TypeNested100000Deep", "nested more than 1000 deep", nullptr, "",
     [] { return DeepType(100'000); }},
};

}  // namespace

std::span<const BadOnnx> BadBombs() { return kBadBombs; }

}  // namespace msrt::testing

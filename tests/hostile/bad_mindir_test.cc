// MindIR files that msconvert must refuse quickly, each with a message that names the object; and
// valid files that are truncated anywhere or have flipped bits.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>

#include "mindir.pb.h"
#include "ops/validate.h"
#include "tools/msconvert/mindir/import.h"

namespace msrt::testing {
namespace {

namespace fs = std::filesystem;

// Processor time, so that a busy machine does not matter.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kMaxSeconds = 100;
#else
constexpr double kMaxSeconds = 10;
#endif
constexpr size_t kMaxMessageBytes = 32 * 1024;

std::string Bytes(const std::string& text) {
  mindir::ModelProto model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model)) << text;
  return model.SerializeAsString();
}

// Returns OK, or everything that blocks the import.
Status Convert(std::string_view bytes, const std::string& path = "") {
  MSRT_ASSIGN_OR_RETURN(
      mindir_import::ImportResult imported,
      mindir_import::ImportBytes(std::as_bytes(std::span(bytes)), path, {}, DefaultIo()));
  if (!imported.problems.empty()) return Unsupported(imported.problems.Text());
  return Validate(&imported.module);
}

constexpr const char* kX = " input { name: 'm:x' tensor { dims: 2 data_type: 1 } } ";
constexpr const char* kC = " input { name: 'm:c' tensor { data_type: 9 } } ";
constexpr const char* kF32x2 =
    " attribute { name: 'shape' type: TENSORS tensors { dims: 2 data_type: 1 } } ";

std::string Node(const std::string& output, const std::string& op,
                 const std::vector<std::string>& inputs, const std::string& rest = kF32x2) {
  std::string text =
      StrCat(" node { output: '", output, "' name: '", output, "' op_type: '", op, "' ");
  for (const std::string& i : inputs) StrAppend(&text, "input: '", i, "' ");
  return text + rest + " } ";
}
std::string Constant(const std::string& name, const std::string& value) {
  return StrCat(" node { output: '", name, "' op_type: 'Constant' attribute { name: 'value' ",
                value, " } } ");
}
std::string Primitive(const std::string& op, const std::string& rest = "") {
  return StrCat(" primitives { name: '", op, "' op_type: '", op, "' ", rest, " } ");
}
std::string Output(const std::string& name) {
  return StrCat(" output { name: '", name, "' tensor { dims: 2 data_type: 1 } } ");
}
std::string Model(const std::string& graph, const std::string& rest = "") {
  std::string text =
      StrCat("producer_name: 'MindSpore' model_version: '1' mind_ir_version: 2 graph { name: 'm' ",
             graph, " } ", rest);
  for (const char* op : {"Neg", "Abs", "Add", "Switch", "SwitchLayer", "Partial", "MakeTuple",
                         "TupleGetItem", "Reshape", "Load", "Assign"}) {
    text += Primitive(op);
  }
  return text;
}
std::string Function(const std::string& name, const std::string& body) {
  return StrCat(" functions { name: '", name, "' ", body, " } ");
}
// A function of one tensor, with the names of the graph and the parameter.
std::string Unary(const std::string& name, const std::string& op = "Neg") {
  return Function(name,
                  StrCat(" input { name: '", name, ":a' tensor { dims: 2 data_type: 1 } } ",
                         Node(name + ":r", "REF::" + op, {name + ":a"}), Output(name + ":r")));
}

struct Row {
  std::string name;
  std::string fragment;  // of the message; empty: legal
  std::string text;
};

std::vector<Row> Structure() {
  return {
      {"Good", "", Model(StrCat(kX, Node("m:y", "REF::Neg", {"m:x"}), Output("m:y")))},
      {"NoGraph", "holds no MindIR graph", "producer_name: 'MindSpore'"},
      {"NewerVersion", "version 99", "mind_ir_version: 99 graph { name: 'm' }"},
      {"NegativeVersion", "version -1", "mind_ir_version: -1 graph { name: 'm' }"},
      {"BigEndian", "big-endian", "little_endian: false graph { name: 'm' }"},
      {"NoOutputs", "has no outputs", Model(kX)},
      {"NoName", "no name", "graph { output { name: 'y' } }"},
      {"InputFromNowhere", "uses 'nowhere', which is nowhere",
       Model(StrCat(kX, Node("m:y", "REF::Neg", {"nowhere"}), Output("m:y")))},
      {"OutputFromNowhere", "uses 'nowhere'", Model(StrCat(kX, Output("nowhere")))},
      {"PrimitiveFromNowhere", "uses 'Nothing'",
       Model(StrCat(kX, Node("m:y", "REF::Nothing", {"m:x"}), Output("m:y")))},
      {"UnknownPrimitive", "Frobnicate",
       Model(StrCat(kX, Node("m:y", "Frobnicate", {"m:x"}), Output("m:y")))},
      {"PythonsOwn", "Python",
       Model(StrCat(kX, Node("m:y", "REF::MetaFuncGraph::add", {"m:x"}), Output("m:y")))},
      {"NameTwice", "'m:y' stands for two things",
       Model(StrCat(kX, Node("m:y", "REF::Neg", {"m:x"}), Node("m:y", "REF::Abs", {"m:x"}),
                    Output("m:y")))},
      {"PrimitiveTwice", "'Neg' is there twice",
       Model(StrCat(kX, Node("m:y", "REF::Neg", {"m:x"}), Output("m:y")), Primitive("Neg"))},
      {"Circle", "depends on itself",
       Model(StrCat(kX, Node("m:y", "REF::Neg", {"m:z"}), Node("m:z", "REF::Neg", {"m:y"}),
                    Output("m:y")))},
      {"TwoOutputsOfANode", "has 2 outputs",
       Model(StrCat(kX, " node { output: 'm:y' output: 'm:z' op_type: 'REF::Neg' input: 'm:x' } ",
                    Output("m:y")))},
      {"ConstantWithoutValue", "has no value",
       Model(StrCat(kX, " node { output: 'k' op_type: 'Constant' } ", Output("k")))},
      {"DimsOverflow", "more than 2^56 elements",
       Model(StrCat(kX,
                    " parameter { name: 'm:w' data_type: 1 dims: 4611686018427387904 dims: "
                    "4611686018427387904 } ",
                    Output("m:w")))},
      {"NegativeDim", "has the dim -4",
       Model(StrCat(kX, " parameter { name: 'm:w' data_type: 1 dims: -4 } ", Output("m:w")))},
      {"TooFewBytes", "needs 8 bytes, has 3",
       Model(StrCat(kX, " parameter { name: 'm:w' data_type: 1 dims: 2 raw_data: 'abc' } ",
                    Output("m:w")))},
      {"NoData", "has 0 elements and no raw data",
       Model(StrCat(kX, " parameter { name: 'm:w' data_type: 1 dims: 2 } ", Output("m:w")))},
      {"NoSuchType", "element type 77",
       Model(StrCat(kX, " parameter { name: 'm:w' data_type: 77 dims: 2 } ", Output("m:w")))},
      {"Compressed", "compressed",
       Model(StrCat(kX,
                    " parameter { name: 'm:w' data_type: 1 dims: 2 raw_data: 'abcdefgh' "
                    "compression_type: FSE } ",
                    Node("m:y", "REF::Add", {"m:x", "m:w"}), Output("m:y")))},
      {"HugeRank", "rank 9",
       Model(StrCat(" input { name: 'm:x' tensor { data_type: 1 dims: 1 dims: 1 dims: 1 dims: 1 "
                    "dims: 1 dims: 1 dims: 1 dims: 1 dims: 1 } } ",
                    Node("m:y", "REF::Neg", {"m:x"}), Output("m:y")))},
      {"HugeInput", "2^56",
       Model(StrCat(" input { name: 'm:x' tensor { data_type: 1 dims: 4611686018427387904 dims: "
                    "4611686018427387904 } } ",
                    Node("m:y", "REF::Neg", {"m:x"}), Output("m:y")))},
      {"TextAsTensor", "a text where a tensor is needed",
       Model(StrCat(kX, Constant("k", "type: STRING s: 'hello'"),
                    Node("m:y", "REF::Add", {"m:x", "k"}), Output("m:y")))},
      {"MissingArgument", "'other' is missing",
       Model(StrCat(kX, Node("m:y", "REF::Add", {"m:x"}), Output("m:y")))},
      {"PartOfATensor", "takes a part of a tensor",
       Model(StrCat(kX, Constant("k", "type: INT64 i: 0"),
                    Node("m:y", "REF::TupleGetItem", {"m:x", "k"}), Output("m:y")))},
      {"PartBeyondTheEnd", "takes part 5 of a tuple of 1",
       Model(StrCat(kX, Constant("k", "type: INT64 i: 5"),
                    Node("m:t", "REF::MakeTuple", {"m:x"}, ""),
                    Node("m:y", "REF::TupleGetItem", {"m:t", "k"}), Output("m:y")))},
      {"ReshapeToOtherCount", "Reshape",
       Model(StrCat(kX, Constant("k", "type: TUPLE values { type: INT64 ints: 7 }"),
                    Node("m:y", "REF::Reshape", {"m:x", "k"}), Output("m:y")))},
      {"AssignToATensor", "assigns to a tensor",
       Model(StrCat(kX, Node("m:y", "REF::Assign", {"m:x", "m:x"}), Output("m:y")))},
      {"AssignOfOtherDims", "state 0",
       Model(StrCat(kX, " parameter { name: 'm:w' data_type: 1 dims: 1 raw_data: 'abcd' } ",
                    Node("m:y", "REF::Assign", {"m:w", "m:x"}), Output("m:y")))},
      {"OpenLength", "of open length",
       Model(
           StrCat(" input { name: 'm:x' attr_info { type: TUPLE seq_info { is_dyn_len: true } } } ",
                  Output("m:x")))},
      {"NothingGiven", "gives no tensor",
       Model(StrCat(kX, Constant("k", "type: UMONAD"), Output("k")))},
  };
}

// Notes of msconvert about its own primitives. Notes that cannot be interpreted are ignored; the
// others must fit.
std::vector<Row> Notes() {
  const auto noted = [](const std::string& note, const std::string& input = "m:x") {
    return Model(StrCat(kX, Node("m:z", "REF::Abs", {"m:x"}),
                        Node("m:y", "REF::Neg", {input}, StrCat(kF32x2, " origin { ", note, " } ")),
                        Node("m:last", "REF::Neg", {"m:y"}), Output("m:last")));
  };
  return {
      {"NoteFollowed", "", noted("op_type: 'Relu' name: 'n' input: 'm:x' output: 'm:y'")},
      {"NoteOfUnknownOp", "", noted("op_type: 'Frobnicate' input: 'm:x' output: 'm:y'")},
      {"NoteOfUnknownAttribute", "",
       noted("op_type: 'Relu' input: 'm:x' output: 'm:y' attribute { name: 'what' i: 1 }")},
      {"NoteOfAttributeOutOfRange", "",
       noted("op_type: 'Softmax' input: 'm:x' output: 'm:y' attribute { name: 'axis' s: 'last' }")},
      {"NoteOfAnotherNode", "", noted("op_type: 'Relu' input: 'm:x' output: 'm:z'")},
      {"NoteOfItself", "", noted("op_type: 'Relu' input: 'm:y' output: 'm:y'")},
      {"NoteOfWhatComesLater", "", noted("op_type: 'Relu' input: 'm:last' output: 'm:y'")},
      {"NoteOfNowhere", "", noted("op_type: 'Relu' input: 'nowhere' output: 'm:y'")},
      {"NoteOfAGraph", "", noted("op_type: 'Relu' input: 'm' output: 'm:y'")},
      {"NoteWithoutOutputs", "", noted("op_type: 'Relu' input: 'm:x'")},
      {"NoteOfControl", "", noted("op_type: 'If' input: 'm:x' output: 'm:y'")},
      {"NoteOfState", "", noted("op_type: 'StateRead' domain: 'msrt' output: 'm:y'")},
      {"NoteInANote", "",
       noted("op_type: 'Relu' input: 'm:x' output: 'm:y' origin { op_type: 'If' }")},
      {"NoteThatDoesNotFit", "Concat",
       noted("op_type: 'Concat' input: 'm:x' input: 'm:x' output: 'm:y' attribute { name: 'axis' "
             "i: 0 }")},
      {"NoteWithTooManyInputs", "Relu",
       noted("op_type: 'Relu' input: 'm:x' input: 'm:x' output: 'm:y'")},
      {"NoteWithTooManyOutputs", "Relu",
       noted("op_type: 'Relu' input: 'm:x' output: 'm:y' output: 'm:z'")},
      {"NoteWithoutFirstInput", "Relu", noted("op_type: 'Relu' input: '' output: 'm:y'")},
      {"NotesThatDisagree", "result 1 of an op that has 1",
       Model(StrCat(kX,
                    Node("m:z", "REF::Abs", {"m:x"},
                         StrCat(kF32x2, " origin { op_type: 'Relu' input: 'm:x' output: 'm:z' } ")),
                    Node("m:y", "REF::Neg", {"m:z"},
                         StrCat(kF32x2,
                                " origin { op_type: 'TopK' input: 'm:z' output: 'm:z' output: "
                                "'m:y' attribute { name: 'k' i: 1 } } ")),
                    Output("m:y")))},
  };
}

std::vector<Row> Calls() {
  const std::string choice = StrCat(kC, kX, Node("m:s", "REF::Switch", {"m:c", "f", "g"}, ""));
  const std::string called = StrCat(choice, Node("m:y", "REF::m:s", {"m:x"}), Output("m:y"));
  const std::string direct = StrCat(kX, Node("m:y", "REF::f", {"m:x"}), Output("m:y"));
  return {
      {"GoodSwitch", "", Model(called, Unary("f") + Unary("g", "Abs"))},
      {"GoodCall", "", Model(direct, Unary("f"))},
      {"WithoutEnd", "",
       Model(direct, Function("f", StrCat(" input { name: 'f:a' tensor { dims: 2 data_type: 1 } } ",
                                          Node("f:r", "REF::f", {"f:a"}), Output("f:r"))))},
      {"TooManyArguments", "takes 1 arguments, gets 2",
       Model(StrCat(kX, Node("m:y", "REF::f", {"m:x", "m:x"}), Output("m:y")), Unary("f"))},
      {"TooFewArguments", "takes 1 arguments, gets 0",
       Model(StrCat(kX, Node("m:y", "REF::f", {}), Output("m:y")), Unary("f"))},
      {"BranchTakesMore", "takes 2 arguments, gets 1",
       Model(called,
             Unary("f") +
                 Function("g", StrCat(" input { name: 'g:a' tensor { dims: 2 data_type: 1 } } "
                                      "input { name: 'g:b' tensor { "
                                      "dims: 2 data_type: 1 } } ",
                                      Node("g:r", "REF::Add", {"g:a", "g:b"}), Output("g:r"))))},
      {"BoundTooMuch", "takes 1 arguments, gets 2",
       Model(StrCat(kX, Node("m:p", "REF::Partial", {"f", "m:x"}, ""),
                    Node("m:y", "REF::m:p", {"m:x"}), Output("m:y")),
             Unary("f"))},
      {"CallOfATensor", "calls a tensor",
       Model(StrCat(kX, Node("m:y", "REF::m:x", {"m:x"}), Output("m:y")))},
      {"BranchIsATensor", "must be a function",
       Model(StrCat(kC, kX, Node("m:s", "REF::Switch", {"m:c", "f", "m:x"}, ""),
                    Node("m:y", "REF::m:s", {"m:x"}), Output("m:y")),
             Unary("f"))},
      {"BranchesDisagree", "f32",
       Model(called,
             Unary("f") +
                 Function("g", StrCat(" input { name: 'g:a' tensor { dims: 2 data_type: 1 } } ",
                                      Constant("k", "type: INT64 i: 3"), Output("k"))))},
      {"BranchGivesATuple", "its caller counts on something else",
       Model(called,
             Unary("f") +
                 Function("g", StrCat(" input { name: 'g:a' tensor { dims: 2 data_type: 1 } } ",
                                      Node("g:r", "REF::MakeTuple", {"g:a", "g:a"}, ""),
                                      Output("g:r"))))},
      {"CallDeclaredOtherwise", "f",
       Model(
           StrCat(
               kX,
               Node("m:y", "REF::f", {"m:x"},
                    " attribute { name: 'shape' type: TENSORS tensors { dims: 5 data_type: 1 } } "),
               Output("m:y")),
           Unary("f"))},
      {"NothingDeclared", "does not say",
       Model(StrCat(kX, Node("m:y", "REF::f", {"m:x"}, ""), Output("m:y")),
             Function("f", StrCat(" input { name: 'f:a' tensor { dims: 2 data_type: 1 } } ",
                                  Node("f:r", "REF::Neg", {"f:a"}), " output { name: 'f:r' } ")))},
      {"ChoiceFromATensor", "must be a tuple of functions",
       Model(StrCat(kX, Node("m:s", "REF::SwitchLayer", {"m:x", "m:x"}, ""),
                    Node("m:y", "REF::m:s", {"m:x"}), Output("m:y")))},
      {"ChoiceFromNothing", "empty tuple",
       Model(StrCat(kX, Node("m:t", "REF::MakeTuple", {}, ""),
                    Node("m:s", "REF::SwitchLayer", {"m:x", "m:t"}, ""),
                    Node("m:y", "REF::m:s", {"m:x"}), Output("m:y")))},
      {"ChoiceByAFraction", "must be an i32 or i64",
       Model(StrCat(kX, Node("m:t", "REF::MakeTuple", {"f", "f"}, ""),
                    Node("m:s", "REF::SwitchLayer", {"m:x", "m:t"}, ""),
                    Node("m:y", "REF::m:s", {"m:x"}), Output("m:y")),
             Unary("f"))},
      {"ValueOfAnotherGraph", "is not around",
       Model(StrCat(kX, Node("m:y", "REF::Neg", {"f:r"}), Output("m:y")), Unary("f"))},
      {"GoodFreeVariable", "",
       Model(StrCat(kX, Node("m:n", "REF::Abs", {"m:x"}), Node("m:y", "REF::f", {}), Output("m:y")),
             Function("f", StrCat(Node("f:r", "REF::Neg", {"m:n"}), Output("f:r"))))},
      {"FreeVariableOfItself", "depends on itself",
       Model(StrCat(kX, Node("m:y", "REF::f", {}), Output("m:y")),
             Function("f", StrCat(Node("f:r", "REF::Neg", {"m:y"}), Output("f:r"))))},
      {"ClosureThatGrows", "nested more than",
       Model(
           StrCat(kX, Node("m:y", "REF::f", {"g", "m:x"}), Output("m:y")),
           Function(
               "f",
               StrCat(
                   " input { name: 'f:h' } input { name: 'f:a' tensor { dims: 2 data_type: 1 } } ",
                   Node("f:p", "REF::Partial", {"i", "f:h"}, ""),
                   Node("f:r", "REF::f", {"f:p", "f:a"}), Output("f:r"))) +
               Unary("g") +
               Function("i", StrCat(" input { name: 'i:h' } input { name: 'i:a' tensor { dims: 2 "
                                    "data_type: 1 } } ",
                                    Node("i:r", "REF::i:h", {"i:a"}), Output("i:r"))))},
  };
}

std::string Numbered(const std::string& prefix, size_t i) { return StrCat(prefix, i); }

std::vector<Row> Bombs() {
  std::vector<Row> rows;
  std::string tuples = StrCat(kX, Node("m:t0", "REF::MakeTuple", {"m:x", "m:x"}, ""));
  for (size_t i = 1; i < 40; ++i)
    tuples += Node(Numbered("m:t", i), "REF::MakeTuple",
                   {Numbered("m:t", i - 1), Numbered("m:t", i - 1)}, "");
  rows.push_back({"TuplesOfTuples", "a tuple has more than", Model(tuples + Output("m:t39"))});
  std::string deep = StrCat(kX, Node("m:t0", "REF::MakeTuple", {"m:x"}, ""));
  for (size_t i = 1; i < 20000; ++i)
    deep += Node(Numbered("m:t", i), "REF::MakeTuple", {Numbered("m:t", i - 1)}, "");
  rows.push_back({"DeepTuple", "nested more than", Model(deep + Output("m:t19999"))});
  std::string nested = "type: TUPLE ";
  for (int i = 0; i < 90; ++i) nested += "values { type: TUPLE ";
  for (int i = 0; i < 90; ++i) nested += "} ";
  rows.push_back({"DeepConstant", "nested more than",
                  Model(StrCat(kX, Constant("k", nested), Node("m:y", "REF::Add", {"m:x", "k"}),
                               Output("m:y")))});
  // Each function calls the next with one of two closures, so that the number of ways to use it
  // doubles.
  std::string functions = Unary("f0") + Unary("g0", "Abs");
  constexpr size_t kDeep = 40;
  for (size_t i = 0; i < kDeep; ++i) {
    const std::string name = Numbered("h", i), next = Numbered("h", i + 1);
    std::string body = StrCat(" input { name: '", name, ":a' tensor { dims: 2 data_type: 1 } } ");
    for (size_t k = 0; k < i; ++k) StrAppend(&body, " input { name: '", name, ":k", k, "' } ");
    std::vector<std::string> arguments{name + ":a"};
    for (size_t k = 0; k < i; ++k) arguments.push_back(StrCat(name, ":k", k));
    std::vector<std::string> left = arguments, right = arguments;
    left.emplace_back("f0");
    right.emplace_back("g0");
    body += i + 1 == kDeep ? Node(name + ":r", "REF::Neg", {name + ":a"})
                           : StrCat(Node(name + ":l", "REF::" + next, left),
                                    Node(name + ":q", "REF::" + next, right),
                                    Node(name + ":r", "REF::Add", {name + ":l", name + ":q"}));
    functions += Function(name, body + Output(name + ":r"));
  }
  rows.push_back({"WaysToUseAFunction", "are more than",
                  Model(StrCat(kX, Node("m:y", "REF::h0", {"m:x"}), Output("m:y")), functions)});
  std::string chain;
  for (size_t i = 0; i < 3000; ++i) {
    const std::string name = Numbered("f", i);
    chain += Function(
        name, StrCat(" input { name: '", name, ":a' tensor { dims: 2 data_type: 1 } } ",
                     Node(name + ":r", i + 1 == 3000 ? "REF::Neg" : "REF::" + Numbered("f", i + 1),
                          {name + ":a"}),
                     Output(name + ":r")));
  }
  rows.push_back({"LongChainOfCalls", "",
                  Model(StrCat(kX, Node("m:y", "REF::f0", {"m:x"}), Output("m:y")), chain)});
  return rows;
}

class BadMindIr : public ::testing::TestWithParam<Row> {};

TEST_P(BadMindIr, IsRefusedWithTheObject) {
  const Row& row = GetParam();
  const std::string bytes = Bytes(row.text);
  const std::clock_t start = std::clock();
  const Status status = Convert(bytes);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kMaxSeconds);
  EXPECT_EQ(status.ok(), row.fragment.empty()) << status.message();
  EXPECT_NE(status.message().find(row.fragment), std::string::npos)
      << "'" << status.message() << "' lacks '" << row.fragment << "'";
  EXPECT_NE(status.code(), Code::kInternal);
  EXPECT_LT(status.message().size(), kMaxMessageBytes);
}

TEST(BadMindIrBytes, EncryptedFilesAreRecognized) {
  for (const char* begin : {"\xd8\x5e\x3a\x7f\x95\xb9\x8f\x25", "\xd9\x5e\x3a\x7f\xc8\x0a"}) {
    EXPECT_NE(Convert(begin).message().find("is encrypted"), std::string::npos);
  }
}

std::string NameOf(const ::testing::TestParamInfo<Row>& row) { return row.param.name; }
INSTANTIATE_TEST_SUITE_P(Structure, BadMindIr, ::testing::ValuesIn(Structure()), NameOf);
INSTANTIATE_TEST_SUITE_P(Notes, BadMindIr, ::testing::ValuesIn(Notes()), NameOf);
INSTANTIATE_TEST_SUITE_P(Calls, BadMindIr, ::testing::ValuesIn(Calls()), NameOf);
INSTANTIATE_TEST_SUITE_P(Bombs, BadMindIr, ::testing::ValuesIn(Bombs()), NameOf);

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class GoodMindIr : public ::testing::TestWithParam<const char*> {
 protected:
  const std::string good_ = ReadFile(fs::path(MSRT_MINDIR_DATA) / GetParam() / "model.mindir");
};

TEST_P(GoodMindIr, IsRefusedWhenTruncated) {
  ASSERT_TRUE(Convert(good_).ok());
  // Primitives follow the graphs, and without them names are undefined; the version is last and may
  // be missing.
  mindir::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(good_));
  model.clear_mind_ir_version();
  const size_t whole = model.ByteSizeLong();
  for (size_t length = 0; length < whole; ++length) {
    const Status status = Convert(std::string_view(good_).substr(0, length));
    EXPECT_FALSE(status.ok()) << "the first " << length << " of " << good_.size() << " bytes";
    EXPECT_FALSE(status.message().empty());
  }
}

TEST_P(GoodMindIr, FlippedBitsGiveAnErrorOrAModel) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 1000; ++run) {
    std::string bytes = good_;
    for (uint64_t flips = 1 + random() % 3; flips > 0; --flips)
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << (random() % 8));
    const Status status = Convert(bytes);
    EXPECT_NE(status.code(), Code::kInternal) << status.message();
    EXPECT_TRUE(status.ok() || !status.message().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Files, GoodMindIr,
                         ::testing::Values("if_true", "counter", "chosen_by_index",
                                           "written_by_msconvert"),
                         [](const auto& file) { return std::string(file.param); });

// Weights in a file beside the model.
struct ExternalCase {
  const char* name;
  const char* fragment;  // empty: valid
  const char* location;
  const char* place = "offset: 8 length: 8";
};

class MindIrFiles : public ::testing::TestWithParam<ExternalCase> {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "bad_mindir_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    outer_ = pattern;
    fs::create_directories(outer_ / "model" / "m_variables");
    std::ofstream(outer_ / "model" / "m_variables" / "data_0") << std::string(16, 'w');
    std::ofstream(outer_ / "secret") << std::string(16, 's');
    fs::create_symlink(outer_ / "secret", outer_ / "model" / "link");
  }
  void TearDown() override { fs::remove_all(outer_); }
  fs::path outer_;
};

TEST_P(MindIrFiles, ExternalDataIsReadOrRefused) {
  const std::string text =
      Model(StrCat(kX, " parameter { name: 'm:w' data_type: 1 dims: 2 external_data { location: '",
                   GetParam().location, "' ", GetParam().place, " } } ",
                   Node("m:y", "REF::Add", {"m:x", "m:w"}), Output("m:y")));
  const Status status = Convert(Bytes(text), (outer_ / "model" / "m_graph.mindir").string());
  EXPECT_EQ(status.ok(), GetParam().fragment[0] == '\0') << status.message();
  EXPECT_NE(status.message().find(GetParam().fragment), std::string::npos) << status.message();
}

constexpr ExternalCase kExternal[] = {
    {"Good", "", "m_variables/data_0"},
    {"Above", "leads out of the model's folder", "../secret"},
    {"Absolute", "is an absolute path", "/etc/passwd"},
    {"LinkOut", "is a link that leads out", "link"},
    {"Folder", "is no regular file", "m_variables"},
    {"Missing", "external data", "m_variables/data_1"},
    {"Nameless", "is no name of a file", ""},
    {"BeyondTheEnd", "8 at offset 12 are wanted", "m_variables/data_0", "offset: 12 length: 8"},
    {"Negative", "a negative place", "m_variables/data_0", "offset: -8 length: 8"},
    {"OtherLength", "its external data has 4", "m_variables/data_0", "offset: 0 length: 4"},
    {"Overflow", "are wanted", "m_variables/data_0", "offset: 9223372036854775807 length: 8"},
};
INSTANTIATE_TEST_SUITE_P(Places, MindIrFiles, ::testing::ValuesIn(kExternal),
                         [](const auto& c) { return std::string(c.param.name); });

}  // namespace
}  // namespace msrt::testing

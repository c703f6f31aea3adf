// Validate: valid and invalid modules built in memory.
#include "ops/validate.h"

#include <gtest/gtest.h>

#include "ops/op_def.h"

namespace msrt {
namespace {

const Type kMatrix = Type::Tensor(DType::kF32, {2, 3});

struct Draft {
  Module module;
  Graph* graph;

  Draft() {
    module.name = "draft";
    module.graphs.emplace_back();
    module.entries = {0};
    graph = &module.graphs[0];
    graph->name = "main";
  }
  ValueId Add(std::string domain, std::string op, std::vector<ValueId> inputs, AttrList attrs = {},
              Type declared = UndeclaredType()) {
    const ValueId out = graph->AddValue(StrCat("v", graph->value_count()), std::move(declared));
    AddNode(std::move(domain), std::move(op), std::move(inputs), {out}, std::move(attrs));
    return out;
  }
  void AddNode(std::string domain, std::string op, std::vector<ValueId> inputs,
               std::vector<ValueId> outputs, AttrList attrs = {}) {
    Node node;
    node.name = StrCat("n", graph->nodes.size());
    node.domain = std::move(domain);
    node.op = std::move(op);
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.attrs = std::move(attrs);
    graph->nodes.push_back(std::move(node));
  }
  std::string TypeOf(ValueId v) const { return StrCat(graph->value(v).type); }
};

void ExpectValid(Draft& draft) {
  const Status status = Validate(&draft.module);
  EXPECT_TRUE(status.ok()) << status.message();
}

void ExpectInvalid(Draft& draft, std::string_view fragment, Code code = Code::kInvalidModel) {
  const Status status = Validate(&draft.module);
  EXPECT_EQ(CodeName(status.code()), CodeName(code)) << status.message();
  EXPECT_NE(status.message().find(fragment), std::string::npos)
      << "'" << status.message() << "' does not contain '" << fragment << "'";
}

TEST(Validate, InfersUndeclaredTypes) {
  Draft d;
  const int64_t batch = d.module.SymbolFor("batch");
  const ValueId x = d.graph->AddInput("x", Type::Tensor(DType::kF32, {batch, 3}));
  const ValueId w = d.graph->AddConstant("w", ConstTensor::Floats({3, 4}, std::vector<float>(12)));
  const ValueId h = d.Add("", "MatMul", {x, w});
  const ValueId y = d.Add("", "Softmax", {h}, {{"axis", int64_t{1}}});
  d.graph->outputs = {y};
  ExpectValid(d);
  EXPECT_EQ(d.TypeOf(h), "f32[s0, 4]");
  EXPECT_EQ(d.TypeOf(y), "f32[s0, 4]");
  EXPECT_EQ(d.graph->nodes[0].def->name, "MatMul");
  ExpectValid(d);  // a valid module stays valid
}

TEST(Validate, MergesInferredAndDeclaredTypes) {
  Draft d;
  const int64_t name = d.module.SymbolFor("rows");
  const ValueId x = d.graph->AddInput("x", Type::Tensor(DType::kF32, {kUnknownDim, 3}));
  const ValueId y = d.Add("", "Softmax", {x}, {}, Type::Tensor(DType::kF32, {name, kUnknownDim}));
  ExpectValid(d);
  EXPECT_EQ(d.TypeOf(y), "f32[s0, 3]");
}

TEST(Validate, RefusesContradictionWithReason) {
  Draft d;
  const ValueId x = d.graph->AddInput("x", kMatrix);
  d.Add("", "Softmax", {x}, {}, Type::Tensor(DType::kF32, {2, 5}));
  ExpectInvalid(d,
                "graph 0 'main': node 0 'n0' (Softmax): output 0 'v1' is declared f32[2, 5], but "
                "inputs (f32[2, 3]) give f32[2, 3]: dim 1 is 5");
}

TEST(Validate, RefusesBadAttributesAndShapes) {
  Draft d;
  const ValueId x = d.graph->AddInput("x", kMatrix);
  d.Add("", "Softmax", {x}, {{"axle", int64_t{1}}});
  ExpectInvalid(d, "node 0 'n0' (Softmax): attribute 'axle' is unknown");
  Draft e;
  const ValueId a = e.graph->AddInput("a", kMatrix);
  e.Add("", "MatMul", {a, a});
  ExpectInvalid(e, "node 0 'n0' (MatMul): ");
}

TEST(Validate, AcceptsUnknownOpsWithDeclaredTypes) {
  Draft d;
  const ValueId x = d.graph->AddInput("x", kMatrix);
  const ValueId y = d.Add("acme", "Warp", {x}, {{"anything", 0.5}}, kMatrix);
  d.Add("", "Softmax", {y});
  ExpectValid(d);
  EXPECT_EQ(d.graph->nodes[0].def, nullptr);
  Draft e;
  e.Add("acme", "Warp", {e.graph->AddInput("x", kMatrix)});
  ExpectInvalid(e,
                "node 0 'n0' (acme.Warp): output 0 'v1' has no declared type, and this build does "
                "not know the op");
}

TEST(Validate, RefusesNewerVersionOfAnOp) {
  Draft d;
  d.Add("", "Softmax", {d.graph->AddInput("x", kMatrix)}, {}, kMatrix);
  d.graph->nodes[0].version = 1000;
  ExpectInvalid(
      d, "node 0 'n0' (Softmax): has the meaning of version 1000, this build knows version 23",
      Code::kUnsupported);
  d.graph->nodes[0].version = 13;
  ExpectValid(d);
  EXPECT_NE(d.graph->nodes[0].def, nullptr);
  d.graph->nodes[0].version = -1;
  ExpectInvalid(d, "version -1 is negative");
}

TEST(Validate, RefusesAttributesReservedForTheRuntime) {
  Draft d;
  d.Add("", "GlobalAveragePool", {d.graph->AddInput("x", Type::Tensor(DType::kF32, {1, 2, 3}))},
        {{"divisor", int64_t{0}}});
  ExpectInvalid(d,
                "node 0 'n0' (GlobalAveragePool): attribute 'divisor' is reserved for the runtime");
}

TEST(Validate, ChecksOrderAndSources) {
  Draft d;
  const ValueId x = d.graph->AddInput("x", kMatrix);
  const ValueId late = d.graph->AddValue("late", kMatrix);
  d.Add("", "Softmax", {late});
  d.AddNode("", "Softmax", {x}, {late});
  ExpectInvalid(d, "node 0 'n0' (Softmax): input 0 is value 1 'late', which no earlier node");
  Draft e;
  const ValueId a = e.graph->AddInput("a", kMatrix);
  e.AddNode("", "Softmax", {a}, {a});
  ExpectInvalid(e, "output 0 is value 0 'a', which an input of the graph already defines");
  Draft f;
  f.graph->AddInput("a", kMatrix);
  f.graph->outputs = {ValueId(7)};
  ExpectInvalid(f, "output 0 is value 7, the graph has 1 values");
}

TEST(Validate, ChecksEntriesAndInputs) {
  Draft d;
  d.module.entries = {1};
  ExpectInvalid(d, "entry graph 1 does not exist");
  d.module.entries = {};
  ExpectInvalid(d, "no entry");
  Draft e;
  e.graph->AddInput("x", kMatrix);
  e.graph->AddInput("x", kMatrix);
  ExpectInvalid(e, "two inputs are named 'x'");
  Draft f;
  f.graph->AddInput("x", UndeclaredType());
  ExpectInvalid(f, "input 0 'x' has no type");
}

TEST(Validate, ChecksTypes) {
  Draft d;
  d.graph->AddInput("x", Type::Tensor(DType::kF32, {SymbolDim(3)}));
  ExpectInvalid(d, "value 0 'x': type f32[s3] uses symbol 3, the module has 0");
  Draft e;
  e.graph->AddInput("x", Type::Tensor(DType::kF32, {int64_t{1} << 60, int64_t{1} << 60}));
  ExpectInvalid(e, "more than 2^56 elements");
  Draft f;
  Type list;
  list.kind = TypeKind::kList;
  f.graph->AddInput("x", list);
  ExpectInvalid(f, "a list type without");
  Draft g;
  Type function;
  function.kind = TypeKind::kFunction;
  g.graph->AddInput("x", function);
  ExpectInvalid(g, "a function type without a signature");
  Draft h;
  Type bomb = kMatrix;
  for (int i = 0; i < 40; ++i) {
    Type next;
    next.kind = TypeKind::kFunction;
    next.signature = std::make_shared<const FunctionSignature>(FunctionSignature{{bomb, bomb}, {}});
    bomb = next;
  }
  h.graph->AddInput("x", bomb);
  ExpectInvalid(h, "more than 1024 parts", Code::kLimitExceeded);
}

TEST(Validate, ChecksConstants) {
  Draft d;
  ConstTensor w = ConstTensor::Floats({3}, std::vector<float>(3));
  const ValueId v = d.graph->AddConstant("w", w);
  ExpectValid(d);
  d.graph->value(v).type = kMatrix;
  ExpectInvalid(d, "value 0 'w': is declared f32[2, 3], its constant is f32[3]");
  w.bytes = w.bytes.first(8);
  d.graph->value(v).constant = std::make_shared<const ConstTensor>(w);
  ExpectInvalid(d, "constant f32[3] needs 12 bytes, has 8");
  w.dims = {kUnknownDim};
  d.graph->value(v).constant = std::make_shared<const ConstTensor>(w);
  ExpectInvalid(d, "a constant cannot be f32[?]");
  Draft e;
  e.Add("acme", "Warp", {}, {{"table", w}}, kMatrix);
  ExpectInvalid(e, "attribute 'table': a constant cannot be");
}

TEST(Validate, ChecksGraphReferences) {
  Draft d;
  d.Add("acme", "Warp", {}, {{"body", GraphRef{0}}, {"bodies", std::vector<GraphRef>{{0}, {0}}}},
        kMatrix);
  ExpectValid(d);  // a graph may refer to itself
  d.graph->nodes[0].attrs.Set("bodies", std::vector<GraphRef>{{0}, {4}});
  ExpectInvalid(d, "attribute 'bodies' refers to graph 4, the module has 1");
  d.graph->nodes[0].attrs.Set("body", GraphRef{1});
  ExpectInvalid(d, "attribute 'body' refers to graph 1, the module has 1");
}

AttrList Read(int64_t slot, DType dtype, std::vector<int64_t> dims) {
  return {{"slot", slot}, {"dtype", dtype}, {"dims", std::move(dims)}};
}

TEST(Validate, ChecksStates) {
  Draft d;
  d.module.states.push_back(
      {"cache", Type::Tensor(DType::kF32, {kUnknownDim, 3}), ConstTensor::Floats({0, 3}, {})});
  const ValueId read = d.Add("msrt", "StateRead", {}, Read(0, DType::kF32, {-1, 3}));
  d.AddNode("msrt", "StateWrite", {read}, {}, {{"slot", int64_t{0}}});
  ExpectValid(d);
  EXPECT_EQ(d.TypeOf(read), "f32[?, 3]");

  d.graph->nodes[1].attrs.Set("slot", int64_t{1});
  ExpectInvalid(d, "node 1 'n1' (msrt.StateWrite): slot = 1, the module has 1 states");
  d.graph->nodes[1].attrs.Set("slot", int64_t{-1});
  ExpectInvalid(d, "node 1 'n1' (msrt.StateWrite): slot = -1");

  Draft wrong_read = d;
  wrong_read.graph = &wrong_read.module.graphs[0];
  wrong_read.graph->nodes[0].attrs = Read(0, DType::kF32, {-1, 4});
  wrong_read.graph->value(read).type = UndeclaredType();
  ExpectInvalid(wrong_read,
                "node 0 'n0' (msrt.StateRead): reads f32[?, 4] from state 0 'cache' of type f32[?, "
                "3]: dim 1");

  Draft wrong_write;
  wrong_write.module.states = d.module.states;
  const ValueId x = wrong_write.graph->AddInput("x", Type::Tensor(DType::kI64, {2, 3}));
  wrong_write.AddNode("msrt", "StateWrite", {x}, {}, {{"slot", int64_t{0}}});
  ExpectInvalid(
      wrong_write,
      "writes i64[2, 3] to state 0 'cache' of type f32[?, 3]: element type f32 is not i64");
}

TEST(Validate, ChecksStateSlots) {
  const auto invalid = [](StateSlot slot, std::string_view fragment) {
    Draft d;
    d.module.states = {{"first", kMatrix, ConstTensor::Floats({2, 3}, std::vector<float>(6))},
                       std::move(slot)};
    ExpectInvalid(d, fragment);
  };
  const ConstTensor six = ConstTensor::Floats({2, 3}, std::vector<float>(6));
  invalid({"", kMatrix, six}, "state 1 '': has no name");
  invalid({"first", kMatrix, six}, "another state has the same name");
  invalid({"s", UndeclaredType(), six}, "is not a tensor with an element type");
  invalid({"s", kMatrix, {}}, "a constant cannot be");
  invalid({"s", Type::Tensor(DType::kF32, {3, 3}), six},
          "state 1 's': is f32[3, 3], its initial data f32[2, 3]: dim 0");
  invalid({"s", Type::Tensor(DType::kF32, {SymbolDim(0), 3}), six},
          "uses symbol 0, the module has 0");
}

}  // namespace
}  // namespace msrt

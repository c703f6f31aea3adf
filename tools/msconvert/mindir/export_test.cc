// Exported files decode and have the right structure; nodes that cannot be exported are refused
// by name. tests/conformance/mindir checks that MindSpore computes the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "ops/validate.h"
#include "tests/conformance/module_builder.h"
#include "tools/msconvert/mindir/export_module.h"

namespace msrt::mindir_export {
namespace {

using testing::kFlag;
using testing::kNumber;
using testing::ModuleBuilder;

// Decoded from bytes, as a reader would see it.
struct ExportedFile {
  mindir::ModelProto model;
  std::vector<Refusal> refusals;

  const mindir::PrimitiveProto* PrimitiveOf(const mindir::NodeProto& node) const {
    for (const auto& p : model.primitives()) {
      if ("REF::" + p.name() == node.op_type()) return &p;
    }
    return nullptr;
  }
  std::string OpOf(const mindir::NodeProto& node) const {
    const mindir::PrimitiveProto* primitive = PrimitiveOf(node);
    return primitive != nullptr ? primitive->op_type() : node.op_type();
  }
  std::vector<std::string> Ops(const mindir::GraphProto& graph) const {
    std::vector<std::string> ops;
    for (const auto& node : graph.node()) {
      if (node.op_type() != "Constant") ops.push_back(OpOf(node));
    }
    return ops;
  }
  const mindir::GraphProto* Function(const std::string& name) const {
    for (const auto& f : model.functions()) {
      if (f.name() == name) return &f;
    }
    return nullptr;
  }
};

ExportedFile Export(Module module) {
  const Status valid = Validate(&module);
  EXPECT_TRUE(valid.ok()) << valid.message();
  FileWriter file;
  ExportedFile e;
  e.refusals = ModuleExport(module, {}, &file).Run();
  std::string bytes;
  EXPECT_TRUE(file.model().SerializeToString(&bytes));
  EXPECT_TRUE(e.model.ParseFromString(bytes));
  return e;
}

Module OneNode(std::string_view op, Type type, AttrList attrs = {}) {
  ModuleBuilder m(1);
  m.Output(0, m.Op(0, op, {m.Input(0, std::move(type))}, std::move(attrs)));
  return m.module;
}

// Expects that the file defines every name that a node, an output or a reference uses, and none
// twice.
void ExpectClosed(const mindir::ModelProto& model) {
  std::vector<std::string> names;
  const auto collect = [&](const mindir::GraphProto& g) {
    names.push_back(g.name());
    for (const auto& i : g.input()) names.push_back(i.name());
    for (const auto& p : g.parameter()) names.push_back(p.name());
    for (const auto& n : g.node()) names.push_back(n.output(0));
  };
  collect(model.graph());
  for (const auto& f : model.functions()) collect(f);
  for (const auto& p : model.primitives()) names.push_back(p.name());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end())
      << *std::adjacent_find(names.begin(), names.end());
  const auto known = [&](const std::string& name) {
    return std::binary_search(names.begin(), names.end(), name);
  };
  const auto check = [&](const mindir::GraphProto& g) {
    for (const auto& n : g.node()) {
      for (const auto& i : n.input()) EXPECT_TRUE(known(i)) << i << " of " << n.name();
      if (n.op_type() != "Constant") {
        EXPECT_TRUE(known(n.op_type().substr(5))) << n.op_type();
      }
    }
    ASSERT_EQ(g.output_size(), 1);
    EXPECT_TRUE(known(g.output(0).name()));
  };
  check(model.graph());
  for (const auto& f : model.functions()) check(f);
}

TEST(MindIrExport, PlainGraphDecodesToPrimitives) {
  const ExportedFile e = Export(OneNode("Relu", Type::Tensor(DType::kF32, {2, kUnknownDim})));
  ASSERT_TRUE(e.refusals.empty());
  ExpectClosed(e.model);
  EXPECT_EQ(e.model.mind_ir_version(), 3);
  EXPECT_TRUE(e.model.little_endian());
  EXPECT_FALSE(e.model.producer_name().empty());  // MindSpore refuses files without it
  const auto& main = e.model.graph();
  EXPECT_EQ(e.Ops(main), std::vector<std::string>{"ReLU"});
  ASSERT_EQ(main.input_size(), 1);
  EXPECT_EQ(main.input(0).name(), "g0:in0");
  EXPECT_EQ(main.input(0).tensor(0).dims(0), 2);
  EXPECT_EQ(main.input(0).tensor(0).dims(1), -1);
  EXPECT_EQ(main.input(0).tensor(0).data_type(), mindir::TensorProto::FLOAT);
}

TEST(MindIrExport, WeightsAreParametersAndLiteralsConstants) {
  ModuleBuilder m(1);
  const ValueId x = m.Input(0, Type::Tensor(DType::kF32, {2, 3}));
  const std::vector<float> numbers{1, 2, 3};
  const ValueId w =
      m.module.graphs[0].AddConstant("layer:weight", ConstTensor::Floats({3}, numbers));
  const ValueId one =
      m.module.graphs[0].AddConstant("one", ConstTensor::Floats({}, std::span(numbers).first(1)));
  m.Output(0, m.Op(0, "Add", {m.Op(0, "Mul", {x, w}), one}));
  const ExportedFile e = Export(m.module);
  ExpectClosed(e.model);
  ASSERT_EQ(e.model.graph().parameter_size(), 1);
  EXPECT_EQ(e.model.graph().parameter(0).name(), "g0:layer:weight");
  EXPECT_EQ(e.model.graph().parameter(0).ref_key(), "layer:weight");
  EXPECT_EQ(e.Ops(e.model.graph()), (std::vector<std::string>{"Load", "Mul", "Add"}));
}

TEST(MindIrExport, BranchesAreFunctionsThatSwitchChooses) {
  ModuleBuilder m(3);
  const ValueId c = m.Input(0, kFlag), x = m.Input(0);
  m.Output(0, m.If(0, c, {x}, 1, 2));
  m.Output(1, m.Op(1, "Neg", {m.Input(1)}));
  m.Output(2, m.Input(2));
  const ExportedFile e = Export(m.module);
  ASSERT_TRUE(e.refusals.empty());
  ExpectClosed(e.model);
  const auto& main = e.model.graph();
  const std::vector<std::string> ops = e.Ops(main);
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_EQ(ops[0], "Partial");
  EXPECT_EQ(ops[1], "Partial");
  EXPECT_EQ(ops[2], "Switch");
  EXPECT_EQ(main.node(3).op_type(), "REF::" + main.node(2).name());  // calls the chosen function
  EXPECT_EQ(main.node(0).input(0), "g1");
  ASSERT_NE(e.Function("g1"), nullptr);
  EXPECT_EQ(e.Ops(*e.Function("g1")), std::vector<std::string>{"Neg"});
  EXPECT_EQ(e.Function("g2")->output(0).name(), "g2:in0");
}

TEST(MindIrExport, ALoopIsAHeaderThatItsBodyCallsAgain) {
  const ExportedFile e = Export(testing::CountingLoop());
  ASSERT_TRUE(e.refusals.empty());
  ExpectClosed(e.model);
  const mindir::GraphProto *header = nullptr, *body = nullptr;
  for (const auto& f : e.model.functions()) {
    if (f.name().ends_with("_header")) header = &f;
    if (f.name().ends_with("_body")) body = &f;
  }
  ASSERT_NE(header, nullptr);
  ASSERT_NE(body, nullptr);
  EXPECT_EQ(e.model.graph().node(0).op_type(), "REF::" + header->name());
  const auto calls_header = [&](const auto& n) {
    return n.op_type() == "REF::" + header->name() && n.name() == body->output(0).name();
  };
  EXPECT_TRUE(std::any_of(body->node().begin(), body->node().end(), calls_header));
}

TEST(MindIrExport, StateIsAParameterThatTokensOrder) {
  ModuleBuilder m(1);
  const int64_t zero = 0;
  m.module.states.push_back(
      {"count", kNumber, ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&zero, 1))});
  const ValueId x = m.Input(0);
  const ValueId old =
      m.Control(0, "msrt", "StateRead", {},
                {{"slot", int64_t{0}}, {"dtype", DType::kI64}, {"dims", std::vector<int64_t>{}}},
                {kNumber})[0];
  const ValueId sum = m.Op(0, "Add", {old, x});
  m.Control(0, "msrt", "StateWrite", {sum}, {{"slot", int64_t{0}}}, {});
  m.Output(0, sum);
  const ExportedFile e = Export(m.module);
  ASSERT_TRUE(e.refusals.empty());
  ExpectClosed(e.model);
  EXPECT_EQ(e.model.graph().parameter(0).ref_key(), "count");
  EXPECT_EQ(e.Ops(e.model.graph()),
            (std::vector<std::string>{"Load", "TensorMove", "UpdateState", "Add", "Assign",
                                      "UpdateState", "Depend"}));
}

TEST(MindIrExport, PrimitivesHaveANoteOfTheirOp) {
  const ExportedFile e = Export(OneNode("Gelu", Type::Tensor(DType::kF32, {3})));
  ASSERT_TRUE(e.refusals.empty());
  ASSERT_GT(e.Ops(e.model.graph()).size(), 1u);
  const mindir::NodeProto* noted = nullptr;
  for (const auto& node : e.model.graph().node()) {
    if (!node.has_origin()) continue;
    EXPECT_EQ(noted, nullptr);
    noted = &node;
  }
  ASSERT_NE(noted, nullptr);
  EXPECT_EQ(noted->name(), e.model.graph().output(0).name());
  EXPECT_EQ(noted->origin().op_type(), "Gelu");
  ASSERT_EQ(noted->origin().input_size(), 1);
  EXPECT_EQ(noted->origin().input(0), e.model.graph().input(0).name());
  ASSERT_EQ(noted->origin().output_size(), 1);
  EXPECT_EQ(noted->origin().output(0), noted->name());
}

// At length 6 the second branch multiplies by a matrix of 4 rows.
TEST(MindIrExport, ABranchThatCannotRunFailsWhenItIsTaken) {
  ModuleBuilder m(3);
  const Type x_type = Type::Tensor(DType::kF32, {2, 6}), result = Type::Tensor(DType::kF32, {2, 3});
  const auto matrix = [&](uint32_t g, int64_t rows) {
    const std::vector<float> numbers(static_cast<size_t>(3 * rows), 1.0f);
    return m.module.graphs[g].AddConstant("w", ConstTensor::Floats({rows, 3}, numbers));
  };
  m.Output(1, m.Op(1, "MatMul", {m.Input(1, x_type), matrix(1, 6)}));
  m.Output(2, m.Op(2, "MatMul", {m.Input(2, Type::UnrankedTensor(DType::kF32)), matrix(2, 4)}));
  const ValueId x = m.Input(0, x_type), condition = m.Input(0, kFlag);
  m.Output(0, m.Control(0, "", "If", {condition, x},
                        {{"then_branch", GraphRef{1}}, {"else_branch", GraphRef{2}}}, {result})[0]);
  const ExportedFile e = Export(m.module);
  ASSERT_TRUE(e.refusals.empty()) << e.refusals[0].reason;
  ExpectClosed(e.model);
  EXPECT_EQ(e.Function("g2"), nullptr);
  const mindir::GraphProto* stub = e.Function("g2_fails");
  ASSERT_NE(stub, nullptr);
  EXPECT_EQ(stub->output(0).tensor(0).dims_size(), 2);
  const std::vector<std::string> ops = e.Ops(*stub);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "MatMul"), 0);
}

TEST(MindIrExport, EveryRefusedNodeIsNamed) {
  ModuleBuilder m(1);
  const ValueId x = m.Input(0, Type::Tensor(DType::kF32, {2, 2}));
  const ValueId a = m.Op(0, "Det", {x}), b = m.Op(0, "Bernoulli", {x});
  m.Output(0, m.Op(0, "Add", {a, b}));
  const ExportedFile e = Export(m.module);
  ASSERT_EQ(e.refusals.size(), 2u);
  EXPECT_EQ(e.refusals[0].op, "Det");
  EXPECT_EQ(e.refusals[0].node, m.module.graphs[0].nodes[0].name);
  EXPECT_EQ(e.refusals[1].op, "Bernoulli");
  EXPECT_FALSE(e.refusals[1].reason.empty());
}

TEST(MindIrExport, LargeWeightsGoBesideTheFile) {
  ModuleBuilder m(1);
  const std::vector<float> numbers(100, 1.5f);
  const ValueId x = m.Input(0, Type::Tensor(DType::kF32, {100}));
  const ValueId w = m.module.graphs[0].AddConstant("w", ConstTensor::Floats({100}, numbers));
  const ValueId v = m.module.graphs[0].AddConstant("v", ConstTensor::Floats({100}, numbers));
  m.Output(0, m.Op(0, "Add", {m.Op(0, "Mul", {x, w}), v}));
  ASSERT_TRUE(Validate(&m.module).ok());
  const auto folder = std::filesystem::path(::testing::TempDir()) / "mindir_export_test";
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "model.mindir").string();
  const auto refused = WriteFile(m.module, path, DefaultIo(), {.max_bytes_inside = 100});
  ASSERT_TRUE(refused.ok()) << refused.status().message();
  const auto bytes = DefaultIo()->MapFile(path);
  ASSERT_TRUE(bytes.ok());
  mindir::ModelProto model;
  ASSERT_TRUE(model.ParseFromArray(bytes->data.data(), static_cast<int>(bytes->data.size())));
  const auto& second = model.graph().parameter(1).external_data();
  EXPECT_EQ(second.location(), "model_variables/data_0");
  EXPECT_EQ(second.offset(), 64 + 448);  // a header, then 400 bytes rounded up
  EXPECT_EQ(second.length(), 400);
  EXPECT_FALSE(model.graph().parameter(1).has_raw_data());
  EXPECT_EQ(std::filesystem::file_size(folder / "model_variables" / "data_0"), 64u + 2 * 448);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace msrt::mindir_export

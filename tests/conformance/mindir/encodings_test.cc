// Encodings that today's MindSpore does not write: attributes at the nodes, as in files before
// version 1, and quantised weights. The files are made here, the first from an exported one.
#include <gtest/gtest.h>

#include <fstream>

#include "mindir.pb.h"
#include "ops/validate.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/mindir/import.h"
#include "tools/tensors/compare.h"
#include "tools/tensors/npy.h"

namespace msrt::testing {
namespace {

mindir::ModelProto ReadModel(const std::string& name) {
  std::ifstream file(StrCat(MSRT_MINDIR_DATA, "/", name, "/model.mindir"), std::ios::binary);
  mindir::ModelProto model;
  EXPECT_TRUE(model.ParseFromIstream(&file));
  return model;
}

Result<std::vector<ConstTensor>> Compute(const mindir::ModelProto& model,
                                         const std::vector<ConstTensor>& inputs) {
  const std::string bytes = model.SerializeAsString();
  MSRT_ASSIGN_OR_RETURN(
      mindir_import::ImportResult imported,
      mindir_import::ImportBytes(std::as_bytes(std::span(bytes)), "", {}, DefaultIo()));
  if (!imported.problems.empty()) return Unsupported(imported.problems.Text());
  MSRT_RETURN_IF_ERROR(Validate(&imported.module));
  return RunModule(imported.module, inputs);
}

// A tuple as one list of numbers, with a text that describes how they are nested.
void MakeFlat(mindir::AttributeProto* a) {
  const bool tuple =
      a->type() == mindir::AttributeProto::TUPLE || a->type() == mindir::AttributeProto::LIST;
  if (!tuple) {
    if (a->tensors_size() != 0) a->set_ref_attr_name("tensor:value0,");
    else if (a->type() != mindir::AttributeProto::UMONAD) a->set_ref_attr_name("scalar:value0,");
    return;
  }
  std::string form = "scalar:Tuple[";
  for (int i = 0; i < a->values_size(); ++i) {
    const auto& v = a->values(i);
    a->set_type(v.type());
    a->mutable_ints()->MergeFrom(v.ints());
    a->mutable_strings()->MergeFrom(v.strings());
    StrAppend(&form, "value", i + 1, ",");
  }
  a->clear_values();
  a->set_ref_attr_name(form + "],");
}

TEST(MindIrEncodings, AttributesAtNodesAreRead) {
  mindir::ModelProto model = ReadModel("convolutions");
  std::map<std::string, mindir::PrimitiveProto> primitives;
  for (const auto& p : model.primitives()) primitives["REF::" + p.name()] = p;
  for (auto& node : *model.mutable_graph()->mutable_node()) {
    const auto found = primitives.find(node.op_type());
    if (found != primitives.end()) {
      node.set_op_type(found->second.op_type());
      for (auto a : found->second.attribute()) {
        MakeFlat(&a);
        *node.add_attribute() = a;
      }
    } else if (node.op_type() == "Constant") {
      MakeFlat(node.mutable_attribute(0));
    }
  }
  model.clear_primitives();
  model.clear_mind_ir_version();
  const std::string folder = StrCat(MSRT_MINDIR_DATA, "/convolutions/");
  const auto x = ReadNpy(folder + "input_0.npy");
  const auto got = Compute(model, {*x});
  ASSERT_TRUE(got.ok()) << got.status().message();
  for (size_t i = 0; i < got->size(); ++i) {
    const auto want = ReadNpy(StrCat(folder, "output_", i, ".npy"));
    ASSERT_TRUE(want.ok());
    EXPECT_LE(Compare(ViewOf((*got)[i]), ViewOf(*want))->relative, 1e-5) << "output " << i;
  }
}

// Two channels, each with its own scale: (stored - zero point) * scale.
TEST(MindIrEncodings, QuantisedWeightsAreRead) {
  mindir::ModelProto model;
  auto* graph = model.mutable_graph();
  graph->set_name("m");
  const auto tensor = [](mindir::TensorProto* t, int type) {
    t->set_data_type(type);
    t->add_dims(2);
    t->add_dims(3);
  };
  auto* input = graph->add_input();
  input->set_name("m:x");
  tensor(input->add_tensor(), mindir::TensorProto::FLOAT);
  auto* weight = graph->add_parameter();
  weight->set_name("m:w");
  tensor(weight, mindir::TensorProto::INT8);
  const int8_t stored[] = {1, 2, 3, -4, -5, -6};
  weight->set_raw_data(std::string(reinterpret_cast<const char*>(stored), sizeof stored));
  auto* quant = weight->add_quant_params();
  quant->set_quant_algo_name("linear_quant");
  for (const char* name : {"scale_list", "zero_point_list"}) {
    auto* list = quant->add_attribute();
    list->set_name(name);
    list->set_type(mindir::AttributeProto::LIST);
    for (int i = 0; i < 2; ++i) {
      auto* v = list->add_values();
      const bool scales = std::string_view(name) == "scale_list";
      v->set_type(scales ? mindir::AttributeProto::FLOAT : mindir::AttributeProto::INT32);
      if (scales) v->add_floats(i == 0 ? 0.5f : 2.f);
      else v->add_ints(i == 0 ? 1 : -2);
    }
  }
  auto* node = graph->add_node();
  node->set_op_type("Add");
  node->add_input("m:x");
  node->add_input("m:w");
  node->add_output("m:y");
  graph->add_output()->set_name("m:y");
  const float x[] = {10, 20, 30, 40, 50, 60}, want[] = {10, 20.5f, 31, 36, 44, 52};
  const auto got = Compute(model, {ConstTensor::Floats({2, 3}, x)});
  ASSERT_TRUE(got.ok()) << got.status().message();
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ((*got)[0].As<float>()[i], want[i]) << i;
}

}  // namespace
}  // namespace msrt::testing

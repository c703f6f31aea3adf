// Layers that behave differently in training, read from MindIR with ImportOptions::for_training.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/base/str_cat.h"
#include "mindir.pb.h"
#include "ops/validate.h"
#include "tools/msconvert/mindir/import.h"

namespace msrt::testing {
namespace {

// A model with a batch normalisation, exported in training: is_training is the sixth argument.
mindir::ModelProto ModelInTraining() {
  std::ifstream file(StrCat(MSRT_MINDIR_DATA, "/norms/model.mindir"), std::ios::binary);
  mindir::ModelProto model;
  EXPECT_TRUE(model.ParseFromIstream(&file));
  auto* const nodes = model.mutable_graph()->mutable_node();
  for (int i = 0; i < nodes->size(); ++i) {
    auto* const norm = nodes->Mutable(i);
    if (!norm->op_type().starts_with("REF::BatchNorm:")) continue;
    EXPECT_GT(norm->input_size(), 5);
    for (auto& node : *nodes) {
      if (node.output_size() == 1 && node.output(0) == norm->input(5))
        node.mutable_attribute(0)->set_i(1);
    }
    return model;
  }
  ADD_FAILURE() << "there is no batch normalisation";
  return model;
}

Result<mindir_import::ImportResult> Import(const mindir::ModelProto& model, bool for_training) {
  const std::string bytes = model.SerializeAsString();
  mindir_import::ImportOptions options;
  options.for_training = for_training;
  return mindir_import::ImportBytes(std::as_bytes(std::span(bytes)), "", options, DefaultIo());
}

TEST(MindIrTraining, BatchNormalisationsKeepTheirFormForInference) {
  const mindir::ModelProto model = ModelInTraining();
  auto refused = Import(model, false);
  ASSERT_TRUE(refused.ok()) << refused.status().message();
  EXPECT_NE(refused->problems.Text().find("as for training"), std::string::npos);
  auto imported = Import(model, true);
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  ASSERT_TRUE(imported->problems.empty()) << imported->problems.Text();
  ASSERT_TRUE(Validate(&imported->module).ok());
  const std::vector<Node>& nodes = imported->module.main().nodes;
  const auto norm = std::find_if(nodes.begin(), nodes.end(),
                                 [](const Node& node) { return node.op == "BatchNormalization"; });
  ASSERT_NE(norm, nodes.end());
  const AttrValue* momentum = norm->attrs.Find("momentum");
  ASSERT_NE(momentum, nullptr);
  EXPECT_NEAR(std::get<double>(*momentum), 0.9, 1e-6);  // MindSpore's is 0.1
}

}  // namespace
}  // namespace msrt::testing

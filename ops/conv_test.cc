// Covers what the op cases cannot show: bad shapes, and pieces of a sum over channels.
#include "ops/conv.h"

#include <gtest/gtest.h>

#include "ops/infer.h"
#include "ops/registry.h"
#include "ops/resolve_space.h"

namespace msrt {
namespace {

struct Node {
  const OpDef* def;
  AttrList attrs;
  std::vector<Type> inputs;
  std::vector<Type> outputs = std::vector<Type>(1);

  template <typename Use>
  auto With(Use use) {
    std::vector<const Type*> in, out{&outputs[0]};
    for (const Type& t : inputs) in.push_back(&t);
    return use(OpView(def->domain, def->name, "test", &attrs, def->attrs, in, out));
  }
  Status Infer() {
    return With([&](const OpView& op) { return InferTypes(*def, op, outputs); });
  }
};

Node MakeNode(std::string_view domain, std::string_view name, AttrList attrs,
              std::initializer_list<Dims> inputs) {
  Node n{.def = FindOp(domain, name), .attrs = std::move(attrs), .inputs = {}};
  for (const Dims& d : inputs) n.inputs.push_back(Type::Tensor(DType::kF32, d));
  return n;
}

void ExpectRefused(Node node, std::string_view part) {
  const Status status = node.Infer();
  EXPECT_EQ(status.code(), Code::kInvalidModel);
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(ConvInfer, RefusesBadShapes) {
  ExpectRefused(MakeNode("", "Conv", {}, {{1, 3}, {4, 3}}), "spatial axes");
  ExpectRefused(MakeNode("", "Conv", {}, {{1, 3, 5}, {4, 3, 3, 3}}), "rank");
  ExpectRefused(MakeNode("", "Conv", {}, {{1, 3, 5}, {4, 2, 3}}), "input channels");
  ExpectRefused(MakeNode("", "Conv", {{"group", int64_t{2}}}, {{1, 3, 5}, {4, 3, 3}}), "group");
  ExpectRefused(MakeNode("", "Conv", {{"group", int64_t{2}}}, {{1, 4, 5}, {3, 2, 3}}),
                "output channels");
  ExpectRefused(MakeNode("", "Conv", {}, {{1, 3, 5}, {4, 3, 3}, {5}}), "length of B");
  ExpectRefused(
      MakeNode("", "Conv", {{"kernel_shape", std::vector<int64_t>{2}}}, {{1, 3, 5}, {4, 3, 3}}),
      "kernel_shape");
  ExpectRefused(MakeNode("", "ConvTranspose", {}, {{1, 3, 5}, {4, 3, 3}}), "input channels");
  ExpectRefused(MakeNode("", "ConvTranspose", {{"output_padding", std::vector<int64_t>{1}}},
                         {{1, 3, 5}, {3, 3, 3}}),
                "output_padding");
  ExpectRefused(MakeNode("msrt", "FusedConv", {}, {{1, 3, 5}, {4, 3, 3}, {4}, {1, 4, 4}}),
                "residual");
  ExpectRefused(MakeNode("", "Conv", {{"output_channels", std::vector<int64_t>{0, 4, 0}}},
                         {{1, 3, 5}, {4, 3, 3}}),
                "output_channels");
}

TEST(ConvSpace, PartsOfASumOverChannelsAddTheBiasOnce) {
  Node node = MakeNode("", "Conv", {}, {{2, 6, 9}, {4, 6, 3}, {4}});
  ASSERT_TRUE(node.Infer().ok());
  node.With([&](const OpView& op) {
    const auto resolved = ResolveSpace(*node.def, op);
    EXPECT_TRUE(resolved.ok());
    const IterationSpace& space = resolved->axes;
    EXPECT_EQ(space[3].kind, AxisKind::kReduce);
    EXPECT_EQ(space[3].monoid, Monoid::kSum);
    Box box = space.Whole();
    box[3] = {2, 5};
    const std::vector<Box> in = InputBoxes(*resolved, box);
    EXPECT_EQ(in[0][1], (Interval{2, 5}));
    EXPECT_EQ(in[1][1], (Interval{2, 5}));
    EXPECT_TRUE(in[2].empty());
    AttrList attrs;
    EXPECT_TRUE(node.def->space->localize(op, box, in, {}, &attrs).ok());
    Node piece = MakeNode("", "Conv", attrs, {in[0].dims(), in[1].dims(), in[2].dims()});
    EXPECT_TRUE(piece.Infer().ok());
    EXPECT_EQ(piece.outputs[0].dims, (Dims{2, 4, 7}));
    return 0;
  });
}

TEST(ConvSpace, GroupsAndActivationsForbidPartialSums) {
  Node grouped = MakeNode("", "Conv", {{"group", int64_t{2}}}, {{1, 6, 9}, {4, 3, 3}});
  Node activated =
      MakeNode("msrt", "FusedConv", {{"activation", std::string("Relu")}}, {{1, 6, 9}, {4, 6, 3}});
  for (Node* node : {&grouped, &activated}) {
    ASSERT_TRUE(node->Infer().ok());
    node->With([&](const OpView& op) {
      const auto space = ResolveSpace(*node->def, op);
      EXPECT_TRUE(space.ok());
      EXPECT_EQ(space->axes[3].kind, AxisKind::kWhole);
      return 0;
    });
  }
}

}  // namespace
}  // namespace msrt

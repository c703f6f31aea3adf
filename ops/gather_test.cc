// Covers what the op cases cannot show of the reduce, select and gather families: nodes that
// inference must refuse, and boxes of cut reduce axes.
#include <gtest/gtest.h>

#include "ops/infer.h"
#include "ops/registry.h"
#include "ops/resolve_space.h"

namespace msrt {
namespace {

struct TestNode {
  std::string_view op;
  AttrList attrs;
  std::vector<Type> inputs;
  size_t output_count = 1;
  std::string_view domain = "";
};

template <typename Use>
Status WithView(const TestNode& node, Use use) {
  const OpDef* def = FindOp(node.domain, node.op);
  std::vector<Type> outputs(node.output_count);
  std::vector<const Type*> in, out;
  for (const Type& t : node.inputs) in.push_back(t.dtype == DType::kNone ? nullptr : &t);
  for (const Type& t : outputs) out.push_back(&t);
  const OpView view(node.domain, node.op, "test", &node.attrs, def->attrs, in, out);
  MSRT_RETURN_IF_ERROR(InferTypes(*def, view, outputs));
  return use(*def, view);
}

void ExpectRefused(const TestNode& node, std::string_view part) {
  const Status status = WithView(node, [](const OpDef&, const OpView&) { return OkStatus(); });
  EXPECT_FALSE(status.ok()) << node.op << ": " << part;
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

void ExpectType(const TestNode& node, const Type& expected) {
  const Status status = WithView(node, [&](const OpDef&, const OpView& view) {
    EXPECT_EQ(StrCat(view.output(0)), StrCat(expected));
    return OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

Type F32(Dims dims) { return Type::Tensor(DType::kF32, dims); }
Type I64(Dims dims) { return Type::Tensor(DType::kI64, dims); }
using Ints = std::vector<int64_t>;

TEST(ReduceInfer, RefusesBadAxes) {
  ExpectRefused({"ReduceSum", {{"axes", Ints{2}}}, {F32({2, 3})}}, "axes = 2");
  ExpectRefused({"ReduceSum", {{"axes", Ints{1, -1}}}, {F32({2, 3})}}, "twice");
  ExpectRefused({"ReduceSum", {{"axes", Ints{1}}}, {F32({2, 3}), I64({1})}}, "both");
  ExpectRefused({"ReduceSum", {}, {F32({2, 3}), I64({1, 1})}}, "rank 1");
  ExpectRefused({"ReduceSum", {}, {Type::Tensor(DType::kI8, {2})}}, "i8");
  ExpectRefused({"CumSum", {}, {F32({2, 3})}}, "'axis' is missing");
  ExpectRefused({"CumSum", {{"axis", int64_t{0}}}, {F32({2, 3}), I64({})}}, "both");
  ExpectRefused({"CumSum", {{"axis", int64_t{-3}}}, {F32({2, 3})}}, "axis = -3");
  ExpectRefused({"CumSum", {}, {F32({2, 3}), I64({2})}}, "one element");
}

TEST(ReduceInfer, UnknownAxesKeepTheKnownRank) {
  ExpectType({"ReduceSum", {}, {F32({2, 1, 3}), I64({1})}}, F32({kUnknownDim, 1, kUnknownDim}));
  ExpectType({"ReduceSum", {{"keepdims", int64_t{0}}}, {F32({2, 1, 3}), I64({2})}},
             F32({kUnknownDim}));
  ExpectType({"ReduceSum", {{"keepdims", int64_t{0}}}, {F32({2, 1, 3}), I64({kUnknownDim})}},
             Type::UnrankedTensor(DType::kF32));
}

TEST(ReduceSpace, PartOfReduceAxisWritesTheWholeResult) {
  const TestNode node{"ReduceSum", {{"axes", Ints{1}}}, {F32({4, 6})}};
  const Status status = WithView(node, [](const OpDef& def, const OpView& view) -> Status {
    MSRT_ASSIGN_OR_RETURN(const ResolvedSpace space, ResolveSpace(def, view));
    EXPECT_EQ(space.axes[0].kind, AxisKind::kParallel);
    EXPECT_EQ(space.axes[1].kind, AxisKind::kReduce);
    EXPECT_EQ(space.axes[1].monoid, Monoid::kSum);
    Box box = space.axes.Whole();
    box[1] = {2, 5};
    EXPECT_EQ(StrCat(InputBoxes(space, box)[0]), "[0, 4) x [2, 5)");
    EXPECT_EQ(StrCat(OutputBoxes(space, box)[0]), "[0, 4) x [0, 1)");
    return OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(SelectInfer, RefusesBadUses) {
  ExpectRefused({"ArgMax", {{"axis", int64_t{1}}}, {F32({2, 0})}}, "empty");
  ExpectRefused({"ArgMin", {{"axis", int64_t{2}}}, {F32({2, 3})}}, "axis = 2");
  ExpectRefused({"ArgMax", {}, {F32({})}}, "rank 0");
  ExpectRefused({"TopK", {{"k", int64_t{4}}}, {F32({2, 3})}, 2}, "at most 3");
  ExpectRefused({"TopK", {}, {F32({2, 3})}, 2}, "'k' is missing");
  ExpectRefused({"TopK", {{"k", int64_t{1}}}, {F32({2, 3}), I64({1})}, 2}, "both");
  ExpectRefused({"TopK", {{"k", int64_t{1}}}, {F32({2, 3})}, 1}, "outputs");
}

TEST(GatherInfer, RefusesBadShapes) {
  ExpectRefused({"Gather", {}, {F32({}), I64({2})}}, "axis");
  ExpectRefused({"Gather", {{"axis", int64_t{2}}}, {F32({2, 3}), I64({2})}}, "axis = 2");
  ExpectRefused({"Gather", {}, {F32({2, 1, 1, 1, 1}), I64({1, 1, 1, 1, 1})}}, "rank 9");
  ExpectRefused({"Gather", {}, {F32({2}), F32({2})}}, "f32");
  ExpectRefused({"GatherElements", {}, {F32({2, 3}), I64({2})}}, "rank");
  ExpectRefused({"GatherElements", {{"axis", int64_t{1}}}, {F32({2, 3}), I64({3, 3})}},
                "reach beyond");
  ExpectRefused({"GatherND", {}, {F32({2, 3}), I64({4, 3})}}, "must be in [1, 2]");
  ExpectRefused({"GatherND", {}, {F32({2, 3}), I64({4, 0})}}, "must be in [1, 2]");
  ExpectRefused({"GatherND", {}, {F32({2, 3}), I64({})}}, "rank of input 1");
  ExpectRefused({"GatherND", {{"batch_dims", int64_t{2}}}, {F32({2, 3}), I64({2, 3, 1})}},
                "batch_dims = 2");
  ExpectRefused({"GatherND", {{"batch_dims", int64_t{1}}}, {F32({2, 3}), I64({3, 1})}},
                "batch dim 0");
}

TEST(GatherInfer, RefusesBadScatters) {
  ExpectRefused({"ScatterElements", {}, {F32({2, 3}), I64({2, 3}), F32({2, 2})}}, "dim 1");
  ExpectRefused({"ScatterElements", {}, {F32({2, 3}), I64({2, 3}), F32({2})}}, "rank 2");
  ExpectRefused({"ScatterElements", {}, {F32({2, 3}), I64({2, 4}), F32({2, 4})}}, "reach beyond");
  ExpectRefused({"ScatterElements", {}, {F32({2, 3}), I64({2, 3}), I64({2, 3})}}, "i64");
  const Type flags = Type::Tensor(DType::kBool, {2});
  ExpectRefused({"ScatterElements", {{"reduction", std::string("add")}}, {flags, I64({2}), flags}},
                "needs numbers");
  ExpectRefused({"ScatterND", {}, {F32({2, 3}), I64({4, 3}), F32({4})}}, "must be in [1, 2]");
  ExpectRefused({"ScatterND", {}, {F32({2, 3}), I64({4, 1}), F32({4})}}, "rank 2");
  ExpectRefused({"ScatterND", {}, {F32({2, 3}), I64({4, 1}), F32({4, 2})}}, "dim 1 of updates");
  ExpectRefused({"ScatterND", {}, {F32({}), I64({1}), F32({})}}, "scalar");
}

TEST(GatherInfer, RefusesBadOneHots) {
  const Type none{};
  ExpectRefused({"OneHot", {}, {I64({2}), none, F32({2})}}, "'depth' is missing");
  ExpectRefused({"OneHot", {{"depth", int64_t{3}}}, {I64({2}), none, F32({3})}}, "{off, on}");
  ExpectRefused(
      {"OneHot", {{"depth", int64_t{3}}, {"axis", int64_t{2}}}, {I64({2}), none, F32({2})}},
      "axis = 2");
  ExpectRefused({"OneHot", {{"depth", INT64_MAX}}, {I64({2}), none, F32({2})}}, "2^56");
  ExpectRefused(
      {"OneHot", {{"depth", int64_t{3}}, {"class_begin", int64_t{1}}}, {I64({2}), none, F32({2})}},
      "classes [1, 0)");
}

TEST(StateInfer, DeclaresItsType) {
  const AttrList attrs{{"slot", int64_t{0}}, {"dtype", DType::kF16}, {"dims", Ints{1, -1, 64}}};
  ExpectType({"StateRead", attrs, {}, 1, "msrt"}, Type::Tensor(DType::kF16, {1, kUnknownDim, 64}));
  ExpectRefused({"StateRead", {{"slot", int64_t{0}}}, {}, 1, "msrt"}, "dtype");
  ExpectRefused({"StateRead",
                 {{"slot", int64_t{0}}, {"dtype", DType::kF16}, {"dims", Ints{-2}}},
                 {},
                 1,
                 "msrt"},
                "dims");
  ExpectRefused({"StateWrite", {{"slot", int64_t{-1}}}, {F32({2})}, 0, "msrt"}, "slot");
  ExpectRefused({"StateWrite", {{"slot", int64_t{0}}}, {F32({2})}, 1, "msrt"}, "outputs");
}

}  // namespace
}  // namespace msrt

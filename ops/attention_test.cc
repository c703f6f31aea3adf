// Covers what the op cases cannot show: bad uses that inference refuses, and dims inferred from
// other inputs.
#include "ops/infer_testing.h"
#include "ops/resolve_space.h"

namespace msrt::testing {
namespace {

const Type kQuery = F32({2, 4, 3, 8}), kKey = F32({2, 2, 5, 8}), kValue = F32({2, 2, 5, 6});

TEST(AttentionInfer, RefusesBadShapes) {
  const auto refused = [](std::vector<Type> inputs, std::string_view part, AttrList attrs = {}) {
    ExpectRefused(NodeOf("", "Attention", std::move(attrs), std::move(inputs), 4), part);
  };
  refused({F32({2, 3}), kKey, kValue}, "rank 3 or 4");
  refused({kQuery, F32({2, 5, 16}), kValue}, "one rank");
  refused({F32({3, 4, 3, 8}), kKey, kValue}, "batch of Q and K");
  refused({kQuery, F32({2, 2, 5, 7}), kValue}, "head size of Q and K");
  refused({kQuery, kKey, F32({2, 2, 4, 6})}, "rows of K and V");
  refused({kQuery, kKey, F32({2, 1, 5, 6})}, "heads of K and V");
  refused({F32({2, 3, 3, 8}), kKey, kValue}, "multiple");
  refused({kQuery, F32({2, 0, 5, 8}), F32({2, 0, 5, 6})}, "multiple");
  refused({F32({2, 3, 8}), F32({2, 5, 8}), F32({2, 5, 8})}, "must be given");
  const AttrList heads{{"q_num_heads", int64_t{3}}, {"kv_num_heads", int64_t{1}}};
  refused({F32({2, 3, 8}), F32({2, 5, 8}), F32({2, 5, 8})}, "multiple of its 3 heads", heads);
  refused({kQuery, kKey, kValue}, "heads of Q", heads);
  refused({kQuery, kKey, kValue, F32({3, 4})}, "attn_mask");
  refused({kQuery, kKey, kValue, Type::Tensor(DType::kF16, {3, 5})}, "attn_mask");
  refused({kQuery, kKey, kValue, LeftOut(), kKey}, "together");
  refused({kQuery, kKey, kValue, LeftOut(), kKey, F32({2, 2, 4, 6})}, "past_key and past_value");
  refused({kQuery, kKey, kValue, LeftOut(), F32({2, 2, 8}), kValue}, "rank 4");
  refused({kQuery, kKey, kValue, LeftOut(), F32({2, 2, 4, 6}), F32({2, 2, 4, 6})},
          "head size of the cache");
  refused({kQuery, kKey, kValue}, "softmax_precision", {{"softmax_precision", DType::kI32}});
  const int64_t huge = int64_t{1} << 62;
  const Type endless = F32({0, 1, huge, 1});
  refused({F32({0, 1, 1, 1}), endless, endless, LeftOut(), endless, endless}, "cannot take");
}

TEST(AttentionInfer, UnknownDimsAreInferredFromOtherInputs) {
  const int64_t unknown = kUnknownDim;
  const Type any = Type::UnrankedTensor(DType::kF32);
  const TypedNode node =
      NodeOf("", "Attention", {},
             {F32({unknown, 4, 3, unknown}), any, kValue, LeftOut(), F32({2, 2, 7, 8}), any}, 4);
  EXPECT_EQ(Inferred(node, 0), "f32[2, 4, 3, 6]");
  EXPECT_EQ(Inferred(node, 1), "f32[2, 2, 12, 8]");
  EXPECT_EQ(Inferred(node, 2), "f32[2, 2, 12, 6]");
  EXPECT_EQ(Inferred(node, 3), "f32[2, 4, 3, 12]");
}

TEST(AttentionSpace, PieceOfPieceKnowsItsRowInTheWhole) {
  TypedNode node = NodeOf("", "Attention", {{"is_causal", int64_t{1}}, {"row_offset", int64_t{10}}},
                          {kQuery, kKey, kValue});
  ASSERT_TRUE(node.Infer().ok());
  AttrList attrs = node.attrs;
  const Status status = node.With([&](const OpView& op) {
    MSRT_ASSIGN_OR_RETURN(const ResolvedSpace space, ResolveSpace(*node.def, op));
    Box box = space.axes.Whole();
    box[2] = {2, 3};
    return node.def->space->localize(op, box, {}, {}, &attrs);
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(std::get<int64_t>(*attrs.Find("row_offset")), 12);
}

}  // namespace
}  // namespace msrt::testing

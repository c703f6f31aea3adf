// Covers what the op cases cannot show: shapes that contradict each other, and shapes that follow
// from any of the inputs.
#include "ops/infer_testing.h"

namespace msrt::testing {
namespace {

using Strings = std::vector<std::string>;

TEST(RecurrentInfer, RefusesBadShapes) {
  const Type x = F32({5, 2, 3}), w = F32({1, 16, 3}), r = F32({1, 16, 4});
  ExpectRefused(NodeOf("", "LSTM", {}, {F32({5, 2}), w, r}), "rank 3");
  ExpectRefused(NodeOf("", "LSTM", {}, {x, F32({1, 16, 2}), r}), "input 0");
  ExpectRefused(NodeOf("", "LSTM", {}, {x, F32({1, 15, 3}), r}), "input 1");
  ExpectRefused(NodeOf("", "LSTM", {}, {x, w, F32({1, 16, 5})}), "input 2");
  ExpectRefused(NodeOf("", "LSTM", {{"hidden_size", int64_t{3}}}, {x, w, r}), "input 2");
  ExpectRefused(NodeOf("", "LSTM", {{"direction", std::string("bidirectional")}}, {x, w, r}),
                "dim 0 is 1, must be 1 x 2");
  ExpectRefused(NodeOf("", "LSTM", {}, {x, w, r, F32({1, 16})}), "input 3");
  ExpectRefused(NodeOf("", "LSTM", {}, {x, w, r, LeftOut(), Type::Tensor(DType::kI32, {3})}),
                "input 0");
  ExpectRefused(NodeOf("", "LSTM", {}, {x, w, r, LeftOut(), LeftOut(), F32({1, 3, 4})}), "input 5");
  ExpectRefused(
      NodeOf("", "LSTM", {}, {x, w, r, LeftOut(), LeftOut(), LeftOut(), LeftOut(), F32({1, 16})}),
      "input 7");
  ExpectRefused(NodeOf("", "GRU", {},
                       {x, F32({1, 12, 3}), F32({1, 12, 4}), LeftOut(), LeftOut(), LeftOut(),
                        F32({1, 2, 4})}),
                "inputs");
  ExpectRefused(NodeOf("", "LSTM", {{"activations", Strings{"Tanh"}}}, {x, w, r}),
                "activations has 1 names, must have 3");
  ExpectRefused(NodeOf("", "LSTM", {{"activations", Strings{"Tanh", "Sin", "Tanh"}}}, {x, w, r}),
                "activations[1] = 'Sin'");
}

TEST(RecurrentInfer, FindsSizesInAnyInput) {
  const int64_t u = kUnknownDim, n = SymbolDim(0);
  const Type unranked = Type::UnrankedTensor(DType::kF32);
  EXPECT_EQ(Inferred(NodeOf("", "GRU", {}, {F32({u, n, 3}), F32({1, 12, 3}), unranked})),
            "f32[?, 1, s0, 4]");
  EXPECT_EQ(Inferred(NodeOf("", "GRU", {}, {unranked, unranked, unranked, F32({1, 24})})),
            "f32[?, 1, ?, 4]");
  EXPECT_EQ(Inferred(NodeOf("", "GRU", {{"layout", int64_t{1}}},
                            {F32({n, 7, 3}), unranked, F32({1, u, 4})}, 2),
                     1),
            "f32[s0, 1, 4]");
  EXPECT_EQ(
      Inferred(NodeOf("", "LSTM", {{"hidden_size", int64_t{4}}}, {unranked, unranked, unranked}, 3),
               2),
      "f32[1, ?, 4]");
}

}  // namespace
}  // namespace msrt::testing

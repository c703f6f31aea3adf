// Covers what the op cases cannot show: trees and pools of n-grams whose lists contradict each
// other, as in a hostile file.
#include "ops/infer_testing.h"

namespace msrt::testing {
namespace {

using Ints = std::vector<int64_t>;

ConstTensor Bytes(std::vector<uint8_t> values) {
  return ConstTensor::Of<uint8_t>(DType::kU8, {static_cast<int64_t>(values.size())}, values);
}
ConstTensor Floats(std::vector<float> values) {
  return ConstTensor::Floats({static_cast<int64_t>(values.size())}, values);
}

// Two nodes and three leaves, with one attribute replaced.
void ExpectTreeRefused(std::string_view attr, AttrValue value, std::string_view reason) {
  AttrList attrs = {{"tree_roots", Ints{0}},           {"nodes_featureids", Ints{0, 1}},
                    {"nodes_splits", Floats({1, 2})},  {"nodes_modes", Bytes({0, 1})},
                    {"nodes_truenodeids", Ints{1, 1}}, {"nodes_falsenodeids", Ints{0, 2}},
                    {"nodes_trueleafs", Ints{0, 1}},   {"nodes_falseleafs", Ints{1, 1}},
                    {"leaf_targetids", Ints{0, 0, 0}}, {"leaf_weights", Floats({1, 2, 3})}};
  EXPECT_EQ(Inferred(NodeOf("ai.onnx.ml", "TreeEnsemble", attrs, {F32({4, 2})})), "f32[4, 1]");
  attrs.Set(attr, std::move(value));
  ExpectRefused(NodeOf("ai.onnx.ml", "TreeEnsemble", std::move(attrs), {F32({4, 2})}), reason);
}

TEST(TreeEnsembleInfer, RefusesListsThatContradictEachOther) {
  ExpectTreeRefused("tree_roots", Ints{2}, "tree_roots holds 2");
  ExpectTreeRefused("nodes_featureids", Ints{0, 2}, "X has 2 features");
  ExpectTreeRefused("nodes_featureids", Ints{0}, "nodes_truenodeids has 2 elements");
  ExpectTreeRefused("nodes_splits", Floats({1}), "nodes_splits has 1");
  ExpectTreeRefused("nodes_splits", Bytes({1, 1}), "nodes_splits must be a tensor");
  ExpectTreeRefused("nodes_modes", Bytes({0, 7}), "nodes_modes holds 7");
  ExpectTreeRefused("nodes_modes", Bytes({0, 6}), "membership_values is missing");
  ExpectTreeRefused("membership_values", Bytes({0}), "membership_values must be a tensor");
  ExpectTreeRefused("nodes_truenodeids", Ints{2, 1}, "nodes_truenodeids[0] = 2, there are 2 nodes");
  ExpectTreeRefused("nodes_falsenodeids", Ints{0, 3},
                    "nodes_falsenodeids[1] = 3, there are 3 leaves");
  ExpectTreeRefused("leaf_targetids", Ints{0, 1, 0}, "n_targets is 1");
  ExpectTreeRefused("leaf_weights", Floats({1}), "leaf_weights has 1");
  ExpectTreeRefused("leaf_begins", Ints{0, 4, 1}, "leaf_begins[1] = 4");
  ExpectTreeRefused("leaf_begins", Ints{0, 1}, "there are 2 leaves");
}

TEST(TfIdfInfer, RefusesPoolsThatContradictTheirCounts) {
  const auto node = [](Ints counts, Ints indexes, Ints pool, int64_t longest) {
    return NodeOf("", "TfIdfVectorizer",
                  {{"max_gram_length", longest},
                   {"max_skip_count", int64_t{0}},
                   {"min_gram_length", int64_t{1}},
                   {"mode", std::string("TF")},
                   {"ngram_counts", std::move(counts)},
                   {"ngram_indexes", std::move(indexes)},
                   {"pool_int64s", std::move(pool)}},
                  {Type::Tensor(DType::kI64, {SymbolDim(0), 5})});
  };
  EXPECT_EQ(Inferred(node({0, 2}, {0, 1, 4}, {1, 2, 3, 4}, 2)), "f32[s0, 5]");
  ExpectRefused(node({0, 1}, {0, 1, 4}, {1, 2, 3, 4}, 2), "whole number of 2-grams");
  ExpectRefused(node({3, 2}, {0, 1, 4}, {1, 2, 3, 4}, 2), "ngram_counts[0] = 3");
  ExpectRefused(node({0, 9}, {0, 1, 4}, {1, 2, 3, 4}, 2), "ngram_counts[1] = 9");
  ExpectRefused(node({0, 2}, {0, 1}, {1, 2, 3, 4}, 2), "one for each of the 3 n-grams");
  ExpectRefused(node({0, 0}, {}, {}, 2), "ngram_indexes");
  ExpectRefused(node({0, 2}, {0, 1, 4}, {1, 2, 3, 4}, 3), "only 2 lengths");
}

}  // namespace
}  // namespace msrt::testing

// Data that an op cannot use (classes, positions, sizes out of range): the run refuses it, names
// the input, and accesses no memory out of bounds.
#include "tests/conformance/pipeline.h"
#include "tests/conformance/small_graph.h"

namespace msrt::testing {
namespace {

ConstTensor Indices(Dims dims, std::vector<int64_t> values) {
  return ConstTensor::Of<int64_t>(DType::kI64, dims, values);
}
ConstTensor Ones(Dims dims) {
  return Floats(dims, std::vector<float>(static_cast<size_t>(dims.elements()), 1.0f));
}

// A graph of one node without constants.
void ExpectRefused(std::string_view op, AttrList attrs, const std::vector<ConstTensor>& inputs,
                   std::string_view part) {
  SmallGraph g;
  std::vector<ValueId> values;
  for (size_t i = 0; i < inputs.size(); ++i)
    values.push_back(g.graph.AddInput(StrCat("input", i), inputs[i].type()));
  g.graph.outputs = {g.Add(op, "test", values, std::move(attrs))};
  const auto got = RunModule(g.module, inputs);
  ASSERT_FALSE(got.ok()) << op;
  EXPECT_EQ(got.status().code(), Code::kInvalidArgument) << got.status().message();
  EXPECT_NE(got.status().message().find(part), std::string::npos) << got.status().message();
}

TEST(DataRefusals, ClassesOutOfRangeAreRefused) {
  ExpectRefused("NegativeLogLikelihoodLoss", {}, {Ones({3, 5}), Indices({3}, {0, 5, 1})},
                "element 1 of the target is class 5");
  ExpectRefused("SoftmaxCrossEntropyLoss", {{"ignore_index", int64_t{-1}}},
                {Ones({3, 5}), Indices({3}, {-1, 4, INT64_MIN})},
                "element 2 of the target is class");
}

TEST(DataRefusals, PositionsOutOfRangeAreRefused) {
  for (const int64_t position : {int64_t{-1}, int64_t{9}, INT64_MAX}) {
    ExpectRefused(
        "RotaryEmbedding", {},
        {Ones({1, 2, 3, 8}), Ones({9, 4}), Ones({9, 4}), Indices({1, 3}, {0, position, 8})},
        "element 1 of position_ids");
  }
}

TEST(DataRefusals, RegionsOutOfRangeAreRefused) {
  const ConstTensor image = Ones({1, 2, 4, 5});
  ExpectRefused("RoiAlign", {}, {image, Floats({1, 4}, {0, 0, 2, 2}), Indices({1}, {1})},
                "batch_indices[0] = 1");
  ExpectRefused("RoiAlign", {}, {image, Floats({1, 4}, {0, 0, 2, 2}), Indices({1}, {-1})},
                "batch_indices[0] = -1");
  ExpectRefused("RoiAlign", {}, {image, Floats({1, 4}, {0, 0, 1e30f, 2}), Indices({1}, {0})},
                "samples for a bin");
  ExpectRefused("RoiAlign", {}, {image, Floats({1, 4}, {NAN, 0, 2, 2}), Indices({1}, {0})},
                "samples for a bin");
}

TEST(DataRefusals, UnpoolingIndicesOutOfRangeAreRefused) {
  const AttrList attrs = {{"kernel_shape", std::vector<int64_t>{2, 2}},
                          {"strides", std::vector<int64_t>{2, 2}}};
  for (const int64_t place : {int64_t{-1}, int64_t{16}, INT64_MAX}) {
    ExpectRefused("MaxUnpool", attrs, {Ones({1, 1, 2, 2}), Indices({1, 1, 2, 2}, {0, 2, 8, place})},
                  "element 3 of the indices");
  }
}

TEST(DataRefusals, FrequenciesOutOfRangeAreRefused) {
  const AttrList attrs = {
      {"num_mel_bins", int64_t{4}}, {"dft_length", int64_t{16}}, {"sample_rate", int64_t{8000}}};
  SmallGraph g;
  const ValueId low = g.Input("low", DType::kF32, {}), high = g.Input("high", DType::kF32, {});
  g.graph.outputs = {
      g.Add("MelWeightMatrix", "test", {kNoValue, kNoValue, kNoValue, low, high}, attrs)};
  const auto run = [&](float from, float to) {
    return RunModule(g.module, {Floats({}, {from}), Floats({}, {to})});
  };
  EXPECT_TRUE(run(0, 4000).ok());
  for (const auto& [from, to] : {std::pair{-1.0f, 100.0f}, std::pair{200.0f, 100.0f},
                                 std::pair{0.0f, INFINITY}, std::pair{NAN, 100.0f}}) {
    EXPECT_EQ(run(from, to).status().code(), Code::kInvalidArgument) << from << " " << to;
  }
}

}  // namespace
}  // namespace msrt::testing

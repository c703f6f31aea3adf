// The cpu delegate against the reference kernels: every op row that it accepts, in every layout it
// offers, in place and not.
#include "delegates/cpu/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "delegates/cpu/geometry.h"
#include "delegates/cpu/loops.h"
#include "tests/conformance/delegate_checks.h"
#include "tests/conformance/small_graph.h"

namespace msrt {
namespace {

using cpu::LoopsHere;
using cpu::OfferedLayouts;
using testing::CheckNode;
using testing::OneNode;
using testing::RandomFloats;

constexpr std::string_view kMustAccept[] = {"Attention",
                                            "FusedAttention",
                                            "Relu",
                                            "LeakyRelu",
                                            "Sigmoid",
                                            "Tanh",
                                            "HardSigmoid",
                                            "HardSwish",
                                            "Clip",
                                            "Gelu",
                                            "Elu",
                                            "Swish",
                                            "Mish",
                                            "Softplus",
                                            "Exp",
                                            "Log",
                                            "Erf",
                                            "Abs",
                                            "Sqrt",
                                            "Neg",
                                            "Reciprocal",
                                            "Round",
                                            "Floor",
                                            "Ceil",
                                            "Add",
                                            "Sub",
                                            "Mul",
                                            "Div",
                                            "Max",
                                            "Min",
                                            "BatchNormalization",
                                            "FusedBatchNormalization",
                                            "ReduceSum",
                                            "ReduceMean",
                                            "ReduceMax",
                                            "ReduceMin",
                                            "ReduceSumSquare",
                                            "ReduceL1",
                                            "ReduceL2",
                                            "GlobalAveragePool",
                                            "GlobalMaxPool",
                                            "MaxPool",
                                            "AveragePool",
                                            "Transpose",
                                            "Cast",
                                            "Slice",
                                            "Split",
                                            "Concat",
                                            "Expand",
                                            "Softmax",
                                            "LogSoftmax",
                                            "LayerNormalization",
                                            "RMSNormalization",
                                            "InstanceNormalization",
                                            "GroupNormalization",
                                            "QuantizeLinear",
                                            "DequantizeLinear",
                                            "DynamicQuantizeLinear",
                                            "QuantizedAdd",
                                            "MatMulInteger",
                                            "QuantizedMatMul"};

TEST(Cpu, EveryAcceptedRowAgreesWithReference) {
  testing::CheckEveryRow(*MakeCpuDelegate(), kMustAccept);
}

// NaN and infinities are what the reference makes of them.
TEST(Cpu, KeepsNan) {
  const auto delegate = MakeCpuDelegate();
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values(8 * 4 * 4, 0.5f), others(values.size(), 1.5f);
  values[3] = values[40] = values[127] = nan, values[7] = infinity, values[9] = -infinity;
  others[3] = others[60] = nan, others[8] = -infinity;
  const ConstTensor x = ConstTensor::Floats({1, 8, 4, 4}, values),
                    y = ConstTensor::Floats({1, 8, 4, 4}, others);
  for (const std::string_view op : {"Relu",        "LeakyRelu",     "Clip",
                                    "HardSigmoid", "HardSwish",     "Exp",
                                    "Sigmoid",     "Tanh",          "Gelu",
                                    "Abs",         "Neg",           "Round",
                                    "Sqrt",        "Elu",           "Swish",
                                    "Mish",        "Softplus",      "Log",
                                    "Erf",         "Reciprocal",    "Floor",
                                    "Ceil",        "ReduceMax",     "ReduceMin",
                                    "ReduceSum",   "GlobalMaxPool", "GlobalAveragePool",
                                    "Softmax",     "LogSoftmax"}) {
    SCOPED_TRACE(op);
    const OneNode node("", op, {}, {x}, {false});
    ASSERT_TRUE(node.ok()) << node.status().message();
    EXPECT_GT(CheckNode(*delegate, node), 0u);
  }
  for (const std::string_view op : {"Add", "Sub", "Mul", "Div", "Max", "Min"}) {
    SCOPED_TRACE(op);
    EXPECT_GT(CheckNode(*delegate, OneNode("", op, {}, {x, y}, {false, false})), 0u);
  }
}

TEST(Cpu, PoolsKeepNan) {
  const auto delegate = MakeCpuDelegate();
  std::vector<float> values(8 * 9 * 9, 0.5f);
  values[3] = values[40] = values[127] = std::numeric_limits<float>::quiet_NaN();
  values[7] = std::numeric_limits<float>::infinity(),
  values[9] = -std::numeric_limits<float>::infinity();
  const ConstTensor x = ConstTensor::Floats({1, 8, 9, 9}, values);
  const AttrList window{{"kernel_shape", std::vector<int64_t>{3, 3}},
                        {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                        {"strides", std::vector<int64_t>{2, 2}}};
  for (const std::string_view op : {"MaxPool", "AveragePool"}) {
    EXPECT_GT(CheckNode(*delegate, OneNode("", op, window, {x}, {false})), 0u) << op;
  }
}

// Channels leave every kind of remainder of a vector.
TEST(Cpu, PoolsOfAnyWidth) {
  const auto delegate = MakeCpuDelegate();
  const AttrList window{{"kernel_shape", std::vector<int64_t>{3, 2}},
                        {"strides", std::vector<int64_t>{2, 1}},
                        {"pads", std::vector<int64_t>{1, 0, 1, 1}}};
  for (int64_t channels = 1; channels <= 70; ++channels) {
    const ConstTensor x = RandomFloats({2, channels, 7, 6}, static_cast<uint32_t>(channels));
    for (const std::string_view op : {"MaxPool", "AveragePool"}) {
      EXPECT_GE(CheckNode(*delegate, OneNode("", op, window, {x}, {false})), 2u)
          << op << " of " << channels << " channels";
    }
  }
}

// Bytes with the upper half set are large in one type and negative in the other; channels leave
// every kind of remainder.
TEST(Cpu, PoolsOfBytes) {
  const auto delegate = MakeCpuDelegate();
  for (const DType dtype : {DType::kU8, DType::kI8}) {
    for (const int64_t channels : {1, 7, 8, 64, 91}) {
      std::vector<uint8_t> bytes(static_cast<size_t>(2 * channels * 9 * 8));
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 97 % 251);
      const AttrList window{{"kernel_shape", std::vector<int64_t>{3, 3}},
                            {"strides", std::vector<int64_t>{2, 1}},
                            {"pads", std::vector<int64_t>{1, 1, 1, 1}}};
      const OneNode node("", "MaxPool", window,
                         {ConstTensor::Of<uint8_t>(dtype, {2, channels, 9, 8}, bytes)}, {false});
      ASSERT_TRUE(node.ok()) << node.status().message();
      EXPECT_GE(CheckNode(*delegate, node), 2u) << StrCat(dtype, " with ", channels, " channels");
    }
  }
}

// Every way in which two tensors broadcast against each other in networks, with sizes above what
// one thread takes.
TEST(Cpu, Broadcasts) {
  const auto delegate = MakeCpuDelegate();
  const std::pair<Dims, Dims> kShapes[] = {{{2, 16, 33, 35}, {2, 16, 33, 35}},
                                           {{2, 16, 33, 35}, {2, 16, 1, 1}},
                                           {{2, 16, 33, 35}, {1, 16, 1, 1}},
                                           {{2, 16, 33, 35}, {2, 1, 33, 35}},
                                           {{2, 16, 1, 35}, {1, 16, 33, 1}},
                                           {{16, 1, 1}, {2, 16, 33, 35}},
                                           {{128, 768}, {768}},
                                           {{128, 768}, {128, 1}},
                                           {{2, 40000}, {2, 1}},
                                           {{1}, {2, 40000}},
                                           {{2, 16, 7}, {16, 1}},
                                           {{1, 8, 5, 6, 7}, {1, 8, 1, 1, 1}},
                                           {{3, 1, 5, 1, 7}, {1, 4, 1, 6, 1}}};
  for (const auto& [a, b] : kShapes) {
    SCOPED_TRACE(StrCat(Type::Tensor(DType::kF32, a), " with ", Type::Tensor(DType::kF32, b)));
    EXPECT_GT(CheckNode(*delegate, OneNode("", "Sub", {}, {RandomFloats(a, 1), RandomFloats(b, 2)},
                                           {false, false})),
              0u);
    EXPECT_GT(CheckNode(*delegate, OneNode("", "Mul", {}, {RandomFloats(a, 1), RandomFloats(b, 2)},
                                           {false, true})),
              0u);
  }
}

TEST(Cpu, PowersThatAreFunctions) {
  const auto delegate = MakeCpuDelegate();
  for (const float exponent : {2.0f, 0.5f, -1.0f, 3.0f}) {
    const OneNode node(
        "", "Pow", {},
        {RandomFloats({300}, 1), ConstTensor::Floats({}, std::vector<float>{exponent})},
        {false, true});
    ASSERT_TRUE(node.ok());
    EXPECT_EQ(CheckNode(*delegate, node), exponent == 3.0f ? 0u : 1u) << exponent;
  }
}

TEST(Cpu, ReducesAnyAxes) {
  const auto delegate = MakeCpuDelegate();
  for (const std::vector<int64_t>& axes :
       {std::vector<int64_t>{2, 3}, {0}, {1}, {3}, {0, 2}, {1, 3}, {0, 1, 2, 3}, {0, 2, 3}}) {
    for (const int64_t keep : {0, 1}) {
      for (const Dims& dims : {Dims{2, 16, 33, 35}, Dims{1, 24, 7, 7}, Dims{3, 8, 1, 300}}) {
        SCOPED_TRACE(
            StrCat(axes.size(), " axes from ", axes[0], " of ", Type::Tensor(DType::kF32, dims)));
        const OneNode node("", "ReduceMean", {{"axes", axes}, {"keepdims", keep}},
                           {RandomFloats(dims, 1)}, {false});
        ASSERT_TRUE(node.ok()) << node.status().message();
        // Over space, with or without the batch, also channels-last and, with full blocks, blocked.
        // Each layout has a fast fold and one in the order of the elements.
        const bool over_space = axes == std::vector<int64_t>{2, 3} ||
                                axes == std::vector<int64_t>{0, 2, 3},
                   full_blocks = dims[1] % BlockOf(OfferedLayouts().back()) == 0;
        EXPECT_EQ(CheckNode(*delegate, node), 2 * (!over_space ? 1u : full_blocks ? 3u : 2u));
      }
    }
  }
}

// Cuts along every axis, at multiples of a block and between them.
TEST(Cpu, JoinsAndCutsAlongAnyAxis) {
  const auto delegate = MakeCpuDelegate();
  for (const int64_t axis : {0, 1, 2, 3}) {
    for (const int64_t first : {8, 5}) {
      SCOPED_TRACE(StrCat("axis ", axis, " at ", first));
      Dims a{2, 16, 9, 35}, b = a, whole = a;
      a[static_cast<int>(axis)] = first, b[static_cast<int>(axis)] = 16,
      whole[static_cast<int>(axis)] = first + 16;
      EXPECT_GT(
          CheckNode(*delegate, OneNode("", "Concat", {{"axis", axis}},
                                       {RandomFloats(a, 1), RandomFloats(b, 2)}, {false, false})),
          0u);
      const AttrList split{{"axis", axis}, {"split", std::vector<int64_t>{first, 16}}};
      EXPECT_GT(
          CheckNode(*delegate, OneNode("", "Split", split, {RandomFloats(whole, 1)}, {false}, 2)),
          0u);
      for (const int64_t step : {1, 2, -1}) {
        const AttrList slice{{"starts", std::vector<int64_t>{step > 0 ? first : -1}},
                             {"ends", std::vector<int64_t>{step > 0 ? first + 16 : first - 1}},
                             {"axes", std::vector<int64_t>{axis}},
                             {"steps", std::vector<int64_t>{step}}};
        EXPECT_GT(
            CheckNode(*delegate, OneNode("", "Slice", slice, {RandomFloats(whole, 1)}, {false})),
            0u)
            << "step " << step;
      }
    }
  }
}

TEST(Cpu, GathersChannels) {
  const auto delegate = MakeCpuDelegate();
  const std::vector<int64_t> order{3, -1, 0, 0, 4, 2, -5};
  const ConstTensor indices = ConstTensor::Of<int64_t>(DType::kI64, {7}, order);
  for (const Dims& dims : {Dims{2, 5, 9, 70}, Dims{1, 5, 3}, Dims{1, 5, 2, 3, 4}}) {
    const ConstTensor x = RandomFloats(dims, 1);
    for (const int64_t axis : {int64_t{1}, int64_t{1} - dims.rank()}) {
      const OneNode node("", "Gather", {{"axis", axis}}, {x, indices}, {false, true});
      EXPECT_EQ(CheckNode(*delegate, node), 2u) << "axis " << axis;
    }
    const OneNode computed("", "Gather", {{"axis", int64_t{1}}}, {x, indices}, {false, false});
    EXPECT_EQ(CheckNode(*delegate, computed), 0u);
  }
}

// ---- Winograd -----------------------------------------------------------------------------------

struct Convolution {
  int64_t batch, inputs, outputs, height, width;
  std::vector<int64_t> pads;
  bool bias, residual;
  const char* activation;
};

std::unique_ptr<OneNode> ConvolutionNode(const Convolution& c, ConstTensor x) {
  std::vector<std::optional<ConstTensor>> inputs{
      std::move(x), RandomFloats({c.outputs, c.inputs, 3, 3}, 2, 0.1f), std::nullopt, std::nullopt};
  if (c.bias) inputs[2] = RandomFloats({c.outputs}, 3);
  if (c.residual) {
    inputs[3] = RandomFloats({c.batch, c.outputs, c.height + c.pads[0] + c.pads[2] - 2,
                              c.width + c.pads[1] + c.pads[3] - 2},
                             4);
  }
  return std::make_unique<OneNode>(
      "msrt", "FusedConv", AttrList{{"pads", c.pads}, {"activation", std::string(c.activation)}},
      std::move(inputs), std::vector<bool>{false, true, true, false});
}

// Few tiles, which the threads share, and many; channels and sizes that leave remainders.
TEST(Cpu, WinogradAgreesWithReference) {
  const auto delegate = MakeCpuDelegate();
  const Convolution cases[] = {{1, 96, 100, 27, 30, {1, 1, 1, 1}, true, true, "Relu"},
                               {3, 64, 64, 25, 23, {1, 1, 1, 1}, true, false, ""},
                               {1, 32, 47, 90, 81, {0, 2, 1, 0}, false, true, "HardSwish"},
                               {1, 33, 32, 123, 67, {2, 0, 0, 3}, false, false, "Relu"},
                               {1, 256, 256, 12, 11, {1, 1, 1, 1}, true, false, ""}};
  for (const Convolution& c : cases) {
    const auto node = ConvolutionNode(c, RandomFloats({c.batch, c.inputs, c.height, c.width}, 1));
    ASSERT_TRUE(node->ok()) << node->status().message();
    if (LoopsHere().name == std::string_view("baseline")) continue;
    EXPECT_EQ(CheckNode(*delegate, *node), 2u) << c.inputs << " to " << c.outputs;
  }
}

// Infinity and NaN stay within the windows that they are in.
TEST(Cpu, WinogradKeepsInfinityAndNanLocal) {
  if (LoopsHere().name == std::string_view("baseline")) return;
  const auto delegate = MakeCpuDelegate();
  const Convolution c{1, 64, 64, 40, 40, {1, 1, 1, 1}, true, false, "Relu"};
  for (const float special :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const ConstTensor plain = RandomFloats({1, 64, 40, 40}, 1);
    std::vector<float> values(plain.As<float>().begin(), plain.As<float>().end());
    values[5 * 1600 + 7 * 40 + 9] = special;
    const auto node = ConvolutionNode(c, ConstTensor::Floats({1, 64, 40, 40}, values));
    EXPECT_EQ(CheckNode(*delegate, *node), 2u) << special;
  }
}

bool OffersWinograd(const sdk::Delegate& delegate, const OneNode& node) {
  sdk::QueryResult query;
  delegate.Query(node, &query);
  return std::any_of(query.candidates.begin(), query.candidates.end(), [](const auto& c) {
    return c.algorithm.find("Winograd") != std::string::npos;
  });
}

TEST(Cpu, WinogradRefusesOtherConvolutions) {
  const auto delegate = MakeCpuDelegate();
  for (const AttrList& attrs : {AttrList{{"strides", std::vector<int64_t>{2, 2}}},
                                AttrList{{"dilations", std::vector<int64_t>{1, 2}}}}) {
    const OneNode node("", "Conv", attrs,
                       {RandomFloats({1, 64, 80, 80}, 1), RandomFloats({64, 64, 3, 3}, 2)},
                       {false, true});
    ASSERT_TRUE(node.ok());
    EXPECT_FALSE(OffersWinograd(*delegate, node));
  }
  const OneNode computed("", "Conv", {},
                         {RandomFloats({1, 64, 80, 80}, 1), RandomFloats({64, 64, 3, 3}, 2)},
                         {false, false});
  EXPECT_FALSE(OffersWinograd(*delegate, computed));
}

TEST(Cpu, SoftmaxOverAnyAxis) {
  const auto delegate = MakeCpuDelegate();
  for (const int64_t axis : {0, 1, 2, -1}) {
    for (const Dims& dims : {Dims{3, 21, 70, 9}, Dims{1, 130, 5, 131}}) {
      for (const std::string_view op : {"Softmax", "LogSoftmax"}) {
        EXPECT_GT(CheckNode(*delegate,
                            OneNode("", op, {{"axis", axis}}, {RandomFloats(dims, 1)}, {false})),
                  0u)
            << op << " over " << axis;
      }
    }
  }
}

// Moments of numbers that are far from zero and close together.
TEST(Cpu, NormalizesWhatIsFarFromZero) {
  const auto delegate = MakeCpuDelegate();
  std::vector<float> values(2 * 8 * 700);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 1000.0f + static_cast<float>(i * 7919 % 100) * 0.25f;
  const ConstTensor x = ConstTensor::Floats({2, 8, 700}, values), wide = RandomFloats({700}, 2),
                    channels = RandomFloats({8}, 3);
  EXPECT_EQ(CheckNode(*delegate,
                      OneNode("", "LayerNormalization", {}, {x, wide, wide}, {false, true, true})),
            1u);
  EXPECT_EQ(CheckNode(*delegate, OneNode("", "InstanceNormalization", {}, {x, channels, channels},
                                         {false, true, true})),
            1u);
  EXPECT_EQ(CheckNode(*delegate, OneNode("", "GroupNormalization", {{"num_groups", int64_t{2}}},
                                         {x, channels, channels}, {false, true, true})),
            1u);
}

TEST(Cpu, Transposes) {
  const auto delegate = MakeCpuDelegate();
  std::vector<int64_t> perm{0, 1, 2, 3};
  do {
    SCOPED_TRACE(StrCat(perm[0], perm[1], perm[2], perm[3]));
    for (const Dims& dims : {Dims{2, 9, 65, 70}, Dims{1, 128, 12, 64}}) {
      EXPECT_GT(CheckNode(*delegate, OneNode("", "Transpose", {{"perm", perm}},
                                             {RandomFloats(dims, 1)}, {false})),
                0u);
    }
  } while (std::next_permutation(perm.begin(), perm.end()));
}

// More rows than are computed at once, of packed heads and others, causal and not, each with its
// part of the mask.
TEST(Cpu, AttentionOfManyRows) {
  const auto delegate = MakeCpuDelegate();
  constexpr int64_t kBatch = 2, kHeads = 4, kRows = 300, kWidth = 24;
  const ConstTensor mask = RandomFloats({kBatch, kHeads, 1, kRows}, 4);
  for (const bool packed : {true, false}) {
    const Dims dims =
        packed ? Dims{kBatch, kRows, kHeads * kWidth} : Dims{kBatch, kHeads, kRows, kWidth};
    AttrList attrs;
    if (packed)
      attrs = {{"q_num_heads", kHeads}, {"kv_num_heads", kHeads}, {"is_causal", int64_t{1}}};
    const OneNode node("", "Attention", attrs,
                       {RandomFloats(dims, 1), RandomFloats(dims, 2), RandomFloats(dims, 3), mask},
                       {false, false, false, false}, 1);
    ASSERT_TRUE(node.ok());
    EXPECT_EQ(CheckNode(*delegate, node), 1u);
  }
}

// Keys and values that a causal row does not see still count where they are not finite, as zero
// times infinity does.
TEST(Cpu, AttentionKeepsNan) {
  const auto delegate = MakeCpuDelegate();
  const Dims dims{1, 2, 20, 8};
  const float specials[] = {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()};
  for (const float special : specials) {
    for (size_t where = 0; where < 3; ++where) {
      SCOPED_TRACE(StrCat(special, " in input ", where));
      std::vector<std::optional<ConstTensor>> inputs;
      for (size_t i = 0; i < 3; ++i) {
        const ConstTensor plain = RandomFloats(dims, static_cast<uint32_t>(i));
        std::vector<float> values(plain.As<float>().begin(), plain.As<float>().end());
        if (i == where) values[15 * 8] = special;
        inputs.push_back(ConstTensor::Floats(dims, values));
      }
      for (const int64_t causal : {0, 1}) {
        const OneNode node("", "Attention", {{"is_causal", causal}}, inputs, {false, false, false},
                           1);
        ASSERT_TRUE(node.ok());
        EXPECT_EQ(CheckNode(*delegate, node), 1u);
      }
    }
  }
}

}  // namespace
}  // namespace msrt

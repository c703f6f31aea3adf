// The oneDNN delegate against the reference kernels: every op row that it accepts, in every layout
// it offers, in place and not; layers of real networks; several shapes and several threads on one
// kernel; memory over many shapes.
#include "delegates/onednn/onednn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "core/base/clock.h"
#include "delegates/reference/reference.h"
#include "tests/conformance/delegate_checks.h"
#include "tests/conformance/memory_in_use.h"
#include "tests/conformance/small_graph.h"

namespace msrt {
namespace {

using namespace sdk;

using testing::CheckNode;
using testing::CompileNode;
using testing::Expectation;
using testing::FloatDifference;
using testing::OneNode;
using testing::RandomFloats;
using testing::RunBound;

constexpr std::string_view kMustAccept[] = {"Conv",        "FusedConv",     "MatMul", "Gemm",
                                            "FusedMatMul", "ConvTranspose", "Resize"};

constexpr std::string_view kMustAcceptWithVnni[] = {"MatMulInteger", "ConvInteger",
                                                    "QuantizedMatMul", "QuantizedConv"};

// Whether the library sums products of bytes in 32 bits: with every instruction set after AVX-512
// VNNI, and with AVX2 VNNI.
bool HasVnni() {
  const std::string isa = OneDnnInstructions();
  return isa != "avx512_core" && (isa.starts_with("avx512_core") || isa.starts_with("avx2_vnni"));
}

TEST(OneDnn, EveryAcceptedRowAgreesWithReference) {
  std::vector<std::string_view> must_accept(std::begin(kMustAccept), std::end(kMustAccept));
  if (HasVnni())
    must_accept.insert(must_accept.end(), std::begin(kMustAcceptWithVnni),
                       std::end(kMustAcceptWithVnni));
  testing::CheckEveryRow(*MakeOneDnnDelegate(ReferenceEvaluator()), must_accept);
}

// Two products of 255 and 127 exceed 16 bits, where instructions before VNNI would stop.
TEST(OneDnn, ProductsOfBytesDoNotSaturate) {
  const auto delegate = MakeOneDnnDelegate(ReferenceEvaluator());
  for (const int limit : {64, 127}) {
    const std::vector<uint8_t> a(3 * 600, 255), b(600 * 40, static_cast<uint8_t>(limit));
    const OneNode node("", "MatMulInteger", {},
                       {ConstTensor::Of<uint8_t>(DType::kU8, {3, 600}, a),
                        ConstTensor::Of<uint8_t>(DType::kI8, {600, 40}, b)},
                       {false, true});
    ASSERT_TRUE(node.ok()) << node.status().message();
    const size_t candidates = CheckNode(*delegate, node);
    EXPECT_EQ(candidates > 0, limit <= 64 || HasVnni());
  }
}

// ---- layers of real networks --------------------------------------------------------------------

struct Layer {
  const char* name;
  int64_t inputs, outputs, groups, height, width, kernel, stride, pad, dilation = 1;
};
constexpr Layer kLayers[] = {
    {"resnet stem", 3, 64, 1, 28, 28, 7, 2, 3},
    {"mobilenet stem", 3, 32, 1, 32, 48, 3, 2, 1},
    {"resnet 1x1", 64, 256, 1, 14, 14, 1, 1, 0},
    {"resnet 3x3", 64, 64, 1, 14, 14, 3, 1, 1},
    {"resnet 3x3/2", 128, 128, 1, 14, 14, 3, 2, 1},
    {"resnet 1x1/2", 128, 64, 1, 14, 14, 1, 2, 0},
    {"mobilenet dw", 96, 96, 96, 14, 14, 3, 1, 1},
    {"mobilenet dw/2", 144, 144, 144, 15, 15, 3, 2, 1},
    {"5x5 dw", 40, 40, 40, 14, 14, 5, 1, 2},
    {"unet head", 32, 3, 1, 32, 32, 1, 1, 0},
    {"resnext", 64, 64, 8, 14, 14, 3, 1, 1},
    {"dilated", 16, 24, 1, 20, 20, 3, 1, 2, 2},
    {"odd channels", 13, 17, 1, 11, 9, 3, 1, 1},
    {"wide pad", 8, 8, 1, 5, 5, 3, 1, 2},
};

std::unique_ptr<OneNode> ConvNode(const Layer& l, int64_t batch, int64_t height, int64_t width,
                                  bool residual) {
  AttrList attrs{{"strides", std::vector<int64_t>{l.stride, l.stride}},
                 {"pads", std::vector<int64_t>(4, l.pad)},
                 {"dilations", std::vector<int64_t>(2, l.dilation)},
                 {"group", l.groups},
                 {"activation", std::string("Relu")}};
  std::vector<std::optional<ConstTensor>> inputs{
      RandomFloats({batch, l.inputs, height, width}, 1),
      RandomFloats({l.outputs, l.inputs / l.groups, l.kernel, l.kernel}, 2),
      RandomFloats({l.outputs}, 3)};
  const int64_t span = l.dilation * (l.kernel - 1) + 1;
  if (residual) {
    inputs.push_back(RandomFloats({batch, l.outputs, (height + 2 * l.pad - span) / l.stride + 1,
                                   (width + 2 * l.pad - span) / l.stride + 1},
                                  4));
  }
  return std::make_unique<OneNode>("msrt", "FusedConv", attrs, std::move(inputs),
                                   std::vector<bool>{false, true, true, false});
}

TEST(OneDnn, LayersOfNetworks) {
  const auto delegate = MakeOneDnnDelegate(ReferenceEvaluator());
  for (const Layer& l : kLayers) {
    SCOPED_TRACE(l.name);
    for (const bool residual : {false, true}) {
      SCOPED_TRACE(residual ? "residual" : "no residual");
      const auto node = ConvNode(l, 1, l.height, l.width, residual);
      ASSERT_TRUE(node->ok()) << node->status().message();
      EXPECT_GE(CheckNode(*delegate, *node), 2u);
    }
  }
}

// The library's loops of last resort are a thousand times slower than its kernels: no candidate may
// come down to them, whatever the layer's shape and the processor's instructions.
TEST(OneDnn, NoCandidateIsAbsurdlySlow) {
  const auto delegate = MakeOneDnnDelegate(ReferenceEvaluator());
  std::vector<Layer> layers(std::begin(kLayers), std::end(kLayers));
  layers.push_back({"alexnet stem", 3, 64, 1, 99, 99, 11, 4, 2});
  layers.push_back({"patches", 3, 96, 1, 64, 64, 16, 16, 0});
  layers.push_back({"dilated stem", 3, 32, 1, 40, 40, 3, 2, 2, 2});
  layers.push_back({"dilated dw", 32, 32, 32, 40, 40, 3, 1, 4, 4});
  layers.push_back({"dilated groups", 32, 64, 4, 40, 40, 3, 1, 2, 2});
  layers.push_back({"large dw", 32, 32, 32, 40, 40, 13, 1, 6});
  for (const Layer& l : layers) {
    const auto node = ConvNode(l, 1, l.height, l.width, false);
    ASSERT_TRUE(node->ok()) << node->status().message();
    QueryResult query;
    delegate->Query(*node, &query);
    std::vector<double> millis;
    for (const Candidate& candidate : query.candidates) {
      auto kernel = CompileNode(*delegate, *node, candidate);
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      auto bound = (*kernel)->Bind(node->op());
      ASSERT_TRUE(bound.ok() && (*bound)->Prepare().ok());
      millis.push_back(std::numeric_limits<double>::infinity());
      for (int run = 0; run < 5; ++run) {
        const StopWatch watch;
        ASSERT_TRUE(RunBound(**bound, *node, candidate).ok());
        millis.back() = std::min(millis.back(), watch.Millis());
      }
    }
    const double best = *std::min_element(millis.begin(), millis.end());
    for (size_t c = 0; c < millis.size(); ++c) {
      const Candidate& candidate = query.candidates[c];
      EXPECT_LT(millis[c], 40 * best + 1)
          << StrCat(l.name, ": ", candidate.algorithm, ", ", candidate.input_layouts[0], " -> ",
                    candidate.output_layouts[0]);
    }
  }
}

// One compiled kernel serves every shape, also where the library prefers other weights there.
TEST(OneDnn, ManyShapesOnOneKernel) {
  const auto delegate = MakeOneDnnDelegate(ReferenceEvaluator());
  for (const Layer& l : kLayers) {
    SCOPED_TRACE(l.name);
    const auto typical = ConvNode(l, 1, l.height, l.width, true);
    QueryResult query;
    delegate->Query(*typical, &query);
    for (const Candidate& candidate : query.candidates) {
      auto kernel = CompileNode(*delegate, *typical, candidate);
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      const size_t packed = (*kernel)->packed_bytes();
      for (const auto& [batch, height, width] : {std::tuple{3, 7, 7}, {1, 5, 33}}) {
        SCOPED_TRACE(StrCat(batch, "x", height, "x", width, " ", candidate.output_layouts[0]));
        const auto node = ConvNode(l, batch, height, width, true);
        const auto expected = Expectation::Of(*node, query);
        ASSERT_TRUE(expected.ok());
        auto bound = (*kernel)->Bind(node->op());
        ASSERT_TRUE(bound.ok() && (*bound)->Prepare().ok());
        for (const auto& way :
             {std::optional<std::pair<uint32_t, uint32_t>>(), std::optional(std::pair{3u, 0u})}) {
          auto got = RunBound(**bound, *node, candidate, way);
          ASSERT_TRUE(got.ok()) << got.status().message();
          EXPECT_EQ(expected->Difference(candidate, (*got)[0]), "");
        }
      }
      EXPECT_LE((*kernel)->packed_bytes(), 3 * packed + (64 << 10))
          << "more than two further forms of the weights";
    }
  }
}

// Sizes at which the library would have other weights than for the whole: narrow and low ones.
TEST(OneDnn, PiecesUseTheWeightsOfTheWhole) {
  constexpr Layer kWholes[] = {
      {"1x1", 64, 64, 1, 56, 56, 1, 1, 0},
      {"1x1, panels of 48", 128, 512, 1, 28, 28, 1, 1, 0},
      {"3x3", 64, 64, 1, 56, 56, 3, 1, 1},
      {"3x3/2", 64, 64, 1, 56, 56, 3, 2, 1},
      {"few outputs", 24, 40, 1, 72, 72, 3, 1, 1},
      {"48 outputs", 64, 48, 1, 64, 64, 3, 1, 1},
      {"dilated", 32, 64, 1, 64, 64, 3, 1, 2, 2},
      {"groups", 128, 128, 2, 56, 56, 3, 1, 1},
  };
  const auto delegate = MakeOneDnnDelegate(ReferenceEvaluator());
  for (const Layer& l : kWholes) {
    SCOPED_TRACE(l.name);
    const auto whole = ConvNode(l, 1, l.height, l.width, true);
    QueryResult query;
    delegate->Query(*whole, &query);
    for (const Candidate& candidate : query.candidates) {
      if (candidate.reduced) continue;  // weights in bf16 are not in panels
      auto kernel = CompileNode(*delegate, *whole, candidate);
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      const size_t packed = (*kernel)->packed_bytes();
      for (const auto& [height, width] :
           {std::pair{5, 5}, {5, 56}, {8, 9}, {13, 17}, {9, 33}, {40, 7}}) {
        SCOPED_TRACE(StrCat(height, "x", width, " ", candidate.output_layouts[0]));
        const auto node = ConvNode(l, 1, height, width, true);
        const auto expected = Expectation::Of(*node, query);
        ASSERT_TRUE(expected.ok());
        auto bound = (*kernel)->Bind(node->op());
        ASSERT_TRUE(bound.ok());
        for (const auto& way :
             {std::optional<std::pair<uint32_t, uint32_t>>(), std::optional(std::pair{3u, 0u})}) {
          auto got = RunBound(**bound, *node, candidate, way);
          ASSERT_TRUE(got.ok()) << got.status().message();
          EXPECT_EQ(expected->Difference(candidate, (*got)[0]), "");
        }
      }
      EXPECT_EQ((*kernel)->packed_bytes(), packed) << "packed a second time";
    }
  }
}

TEST(OneDnn, SeveralThreadsRunOneBinding) {
  const auto delegate = MakeOneDnnDelegate(ReferenceEvaluator());
  const auto node = ConvNode(kLayers[3], 1, 14, 14, true);
  QueryResult query;
  delegate->Query(*node, &query);
  const auto expected = Expectation::Of(*node, query);
  ASSERT_TRUE(expected.ok());
  for (const Candidate& candidate : query.candidates) {
    auto kernel = CompileNode(*delegate, *node, candidate);
    ASSERT_TRUE(kernel.ok());
    auto bound = (*kernel)->Bind(node->op());
    ASSERT_TRUE(bound.ok());
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        const auto team = MakeDefaultParallel(2);  // runs on one team would wait for each other
        for (int round = 0; round < 3; ++round) {
          auto got = RunBound(**bound, *node, candidate,
                              t == 0 ? std::optional(std::pair{3u, 0u}) : std::nullopt, *team);
          EXPECT_EQ(got.ok() ? expected->Difference(candidate, (*got)[0]) : "failed", "");
        }
      });
    }
    for (std::thread& t : threads) t.join();
  }
}

// Convolutions and products of networks are offered in bf16 where the machine has it, and are
// computed so.
TEST(OneDnn, ReducedCandidatesComputeInBf16) {
  const auto delegate = MakeOneDnnDelegate(ReferenceEvaluator());
  std::vector<std::unique_ptr<OneNode>> nodes;
  for (const size_t layer : {0, 2, 3, 4})
    nodes.push_back(ConvNode(kLayers[layer], 1, 14, 14, true));
  const auto add_product = [&](const Dims& a, const Dims& b, bool constant) {
    nodes.push_back(std::make_unique<OneNode>(
        "", "MatMul", AttrList{},
        std::vector<std::optional<ConstTensor>>{RandomFloats(a, 1), RandomFloats(b, 2)},
        std::vector<bool>{false, constant}));
  };
  add_product({1, 32, 64}, {64, 48}, true);
  add_product({4, 32, 64}, {4, 64, 48}, false);
  // The backward pass of a convolution: its gradients of weights and of inputs.
  const std::vector<int64_t> ones(4, 1), kernel{3, 3};
  nodes.push_back(std::make_unique<OneNode>(
      "msrt", "ConvWeightGrad", AttrList{{"kernel_shape", kernel}, {"pads", ones}},
      std::vector<std::optional<ConstTensor>>{RandomFloats({2, 32, 14, 14}, 1),
                                              RandomFloats({2, 64, 14, 14}, 2)},
      std::vector<bool>{false, false}));
  nodes.push_back(std::make_unique<OneNode>(
      "", "ConvTranspose", AttrList{{"kernel_shape", kernel}, {"pads", ones}},
      std::vector<std::optional<ConstTensor>>{RandomFloats({2, 64, 14, 14}, 1),
                                              RandomFloats({64, 32, 3, 3}, 2)},
      std::vector<bool>{false, false}));
  size_t reduced = 0;
  for (const auto& node : nodes) {
    ASSERT_TRUE(node->ok()) << node->status().message();
    QueryResult query;
    delegate->Query(*node, &query);
    const auto expected = Expectation::Of(*node, query);
    ASSERT_TRUE(expected.ok());
    for (const Candidate& candidate : query.candidates) {
      if (!candidate.reduced) continue;
      SCOPED_TRACE(candidate.algorithm);
      auto kernel = CompileNode(*delegate, *node, candidate);
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      auto bound = (*kernel)->Bind(node->op());
      ASSERT_TRUE(bound.ok());
      const auto got = RunBound(**bound, *node, candidate);
      ASSERT_TRUE(got.ok()) << got.status().message();
      EXPECT_EQ(FloatDifference((*got)[0], expected->reduced[0]), "");
      EXPECT_NE(FloatDifference((*got)[0], expected->exact[0]), "");
      ++reduced;
    }
  }
  if (reduced == 0) GTEST_SKIP() << "this machine has no products in bf16";
  EXPECT_EQ(reduced, nodes.size());
}

// ---- refusals and resources ---------------------------------------------------------------------

TEST(OneDnn, RefusesWithAReason) {
  const auto delegate = MakeOneDnnDelegate(ReferenceEvaluator());
  const std::vector<double> doubles(8, 1.0);
  const ConstTensor matrix = ConstTensor::Of<double>(DType::kF64, {2, 4}, doubles),
                    other = ConstTensor::Of<double>(DType::kF64, {4, 2}, doubles);
  const OneNode f64("", "MatMul", {}, {matrix, other}, {false, false});
  ASSERT_TRUE(f64.ok());
  QueryResult query;
  delegate->Query(f64, &query);
  EXPECT_TRUE(query.candidates.empty());
  ASSERT_EQ(query.refusals.size(), 1u);
  EXPECT_NE(query.refusals[0].reason.find("f64"), std::string::npos);
}

// Bindings come and go: neither ours nor the library's caches may grow with the number of shapes.
TEST(OneDnn, MemoryStaysFlatOverManyShapes) {
  const auto delegate = MakeOneDnnDelegate(ReferenceEvaluator());
  const Layer layer{"small", 8, 8, 1, 8, 8, 3, 1, 1};
  const auto typical = ConvNode(layer, 1, 8, 8, false);
  QueryResult query;
  delegate->Query(*typical, &query);
  const auto kernel = CompileNode(*delegate, *typical, query.candidates[1]);
  ASSERT_TRUE(kernel.ok());
  size_t after_warm_up = 0;
  constexpr int kShapes = 320, kWarmUp = 180;
  for (int i = 0; i < kShapes; ++i) {
    if (i == kWarmUp) after_warm_up = testing::MemoryInUse();
    const auto node = ConvNode(layer, 1, 4 + i % 30, 4 + i / 30, false);
    auto bound = (*kernel)->Bind(node->op());
    ASSERT_TRUE(bound.ok());
    ASSERT_TRUE(RunBound(**bound, *node, query.candidates[1]).ok());
  }
  const size_t end = testing::MemoryInUse();
  EXPECT_LT(end, after_warm_up + (8 << 20)) << "grew by " << (end - after_warm_up) / 1024 << " KB";
}

}  // namespace
}  // namespace msrt

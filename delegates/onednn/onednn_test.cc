// The oneDNN delegate against the reference kernels: every op row that it accepts, in every layout it offers, in place and not;
// layers of real networks; several shapes and several threads on one kernel; memory over many shapes.
#include "delegates/onednn/onednn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <thread>

#include "core/run/convert.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/reference.h"
#include "ops/infer.h"
#include "ops/registry.h"
#include "tests/conformance/memory_in_use.h"
#include "tests/conformance/small_graph.h"

namespace msrt {
namespace {

using namespace sdk;

using testing::AllOpCases;
using testing::OpCase;
using testing::RandomFloats;

// A graph of one node, with the inputs' values at hand.
class OneNode final : public GraphView {
 public:
  OneNode(std::string_view domain, std::string_view op, AttrList attrs, std::vector<std::optional<ConstTensor>> inputs,
          std::vector<bool> constant, size_t outputs = 1)
      : def_(FindOp(domain, op)),
        attrs_(std::move(attrs)),
        inputs_(std::move(inputs)),
        constant_(std::move(constant)),
        output_types_(outputs) {
    for (const auto& input : inputs_) input_types_.push_back(input ? input->type() : Type{});
    for (size_t i = 0; i < inputs_.size(); ++i) {
      input_pointers_.push_back(inputs_[i] ? &input_types_[i] : nullptr);
      values_.push_back(inputs_[i] ? &*inputs_[i] : nullptr);
      constants_.push_back(inputs_[i] && constant_[i] ? &*inputs_[i] : nullptr);
      input_ids_.push_back(inputs_[i] ? static_cast<int64_t>(i) : -1);
    }
    for (size_t o = 0; o < outputs; ++o) {
      output_pointers_.push_back(&output_types_[o]);
      output_ids_.push_back(static_cast<int64_t>(100 + o));
    }
    if (def_ == nullptr) return;
    status_ = InferTypes(*def_, View(values_), output_types_);
    if (!status_.ok()) return;
    declared_ = std::make_unique<OpView>(View(constants_));
    typical_ = std::make_unique<OpView>(View(constants_));
  }
  OneNode(const OneNode&) = delete;

  bool ok() const { return def_ != nullptr && status_.ok(); }
  const Status& status() const { return status_; }
  size_t node_count() const override { return 1; }
  NodeInfo node(size_t) const override {
    const Cost cost = def_->cost(*typical_);
    return {declared_.get(), typical_.get(), cost.flops, cost.bytes_read + cost.bytes_written, input_ids_, output_ids_, TypicalMachine(2)};
  }
  const OpView& op() const { return *typical_; }
  const std::vector<std::optional<ConstTensor>>& inputs() const { return inputs_; }

  // What the reference kernel makes of it.
  Result<std::vector<ConstTensor>> Expected() const {
    std::vector<TensorView> in, out;
    std::vector<ConstTensor> results;
    for (const auto& t : inputs_)
      in.push_back(t ? TensorView{t->dtype, t->dims, Layout::kPlain, const_cast<std::byte*>(t->bytes.data())} : TensorView{});
    for (const Type& t : output_types_) {
      results.push_back(ConstTensor::Copy(t.dtype, t.dims, std::vector<std::byte>(t.bytes())));
      out.push_back({t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(results.back().bytes.data())});
    }
    const auto kernel = reference::FindKernel(def_->domain, def_->name);
    if (kernel == nullptr) return NotFound("no reference kernel");
    const auto parallel = MakeThreadPool(2);
    MSRT_RETURN_IF_ERROR(kernel({View(values_), in, out, *parallel}));
    return results;
  }

 private:
  OpView View(std::span<const ConstTensor* const> constants) const {
    return OpView(def_->domain, def_->name, "node", &attrs_, def_->attrs, input_pointers_, output_pointers_, constants);
  }
  const OpDef* def_;
  AttrList attrs_;
  std::vector<std::optional<ConstTensor>> inputs_;
  std::vector<bool> constant_;
  std::vector<Type> input_types_, output_types_;
  std::vector<const Type*> input_pointers_, output_pointers_;
  std::vector<const ConstTensor*> values_, constants_;
  std::vector<int64_t> input_ids_, output_ids_;
  std::unique_ptr<OpView> declared_, typical_;
  Status status_;
};

class HeapScratch final : public Scratch {
 public:
  Result<void*> Get(size_t bytes) override {
    if (bytes > block_.bytes()) {
      MSRT_ASSIGN_OR_RETURN(block_, Block::Make(DefaultAllocator(), bytes, "scratch"));
    }
    return static_cast<void*>(block_.data());
  }

 private:
  Block block_;
};

// A tensor in some layout, with a guard behind it.
struct Buffer {
  Block block;
  TensorView view;
  static constexpr size_t kGuard = 64;

  Buffer(const Type& type, Layout layout) {
    const size_t bytes = BytesIn(layout, type.dtype, type.dims);
    block = *Block::Make(DefaultAllocator(), bytes + kGuard, "test");
    std::memset(block.data(), 0xA5, bytes + kGuard);
    view = {type.dtype, type.dims, layout, block.data()};
  }
  bool GuardIsWhole() const {
    for (size_t i = block.bytes() - kGuard; i < block.bytes(); ++i) {
      if (block.data()[i] != std::byte{0xA5}) return false;
    }
    return true;
  }
  void Set(const ConstTensor& t) const {
    const auto serial = MakeSerial();
    const TensorView plain{t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())};
    ASSERT_TRUE(ConvertLayout(plain, view, *serial).ok());
  }
  ConstTensor Get() const {
    const auto serial = MakeSerial();
    ConstTensor t = ConstTensor::Copy(view.dtype, view.dims, std::vector<std::byte>(BytesOf(view.dtype, view.elements())));
    const TensorView plain{t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())};
    EXPECT_TRUE(ConvertLayout(view, plain, *serial).ok());
    return t;
  }
};

// Empty where equal within 1e-5 of the value and of the output's range.
std::string FloatDifference(const ConstTensor& got, const ConstTensor& expected) {
  if (expected.dtype != DType::kF32) return testing::Difference(got, expected, 0, 0);
  double range = 0;
  for (float x : expected.As<float>()) {
    if (std::isfinite(x)) range = std::max(range, std::abs(double{x}));
  }
  return testing::Difference(got, expected, 1e-5, 1e-5 * range);
}

// One team for all tests: each team has threads of its own, which wait actively for a while.
ParallelFor& Team() {
  static const std::unique_ptr<ParallelFor> team = MakeDefaultParallel(2);
  return *team;
}

// Runs a bound kernel on the node's inputs; `shared` makes that pair of input and output one buffer.
Result<std::vector<ConstTensor>> RunBound(BoundKernel& bound, const OneNode& node, const Candidate& candidate,
                                          std::optional<std::pair<uint32_t, uint32_t>> shared = std::nullopt, ParallelFor& team = Team()) {
  std::vector<std::optional<Buffer>> in(node.inputs().size());
  std::vector<Buffer> out;
  std::vector<TensorView> inputs, outputs;
  for (size_t i = 0; i < in.size(); ++i) {
    inputs.emplace_back();
    if (!node.inputs()[i]) continue;
    in[i].emplace(node.op().input(i), candidate.input_layouts[i]);
    in[i]->Set(*node.inputs()[i]);
    inputs.back() = in[i]->view;
  }
  for (size_t o = 0; o < node.op().output_count(); ++o) {
    out.emplace_back(node.op().output(o), candidate.output_layouts[o]);
    outputs.push_back(out.back().view);
    if (shared && shared->second == o) outputs.back().data = inputs[shared->first].data;
  }
  HeapScratch scratch;
  MSRT_RETURN_IF_ERROR(RunOnTeam(team, [&] { return bound.Run({inputs, outputs, team, scratch}); }));
  std::vector<ConstTensor> results;
  for (size_t o = 0; o < out.size(); ++o) {
    EXPECT_TRUE(out[o].GuardIsWhole()) << "wrote behind output " << o;
    out[o].view.data = outputs[o].data;
    results.push_back(out[o].Get());
  }
  return results;
}

Result<std::unique_ptr<Kernel>> CompileNode(const Delegate& delegate, const OneNode& node, const Candidate& candidate) {
  return RunOnTeam(Team(), [&] { return delegate.Compile(node, candidate, {DefaultAllocator(), &Team()}); });
}

// Every candidate for the node, alone and with each pair that may share memory. Returns the number of candidates.
size_t CheckNode(const Delegate& delegate, const OneNode& node) {
  QueryResult query;
  delegate.Query(node, &query);
  if (query.candidates.empty()) {
    EXPECT_EQ(query.refusals.size(), 1u);
    return 0;
  }
  auto expected = node.Expected();
  EXPECT_TRUE(expected.ok()) << expected.status().message();
  if (!expected.ok()) return 0;
  for (const Candidate& candidate : query.candidates) {
    std::string layouts;
    for (Layout l : candidate.input_layouts) StrAppend(&layouts, l, " ");
    SCOPED_TRACE(StrCat(candidate.algorithm, ": ", layouts, "-> ", candidate.output_layouts[0]));
    auto kernel = CompileNode(delegate, node, candidate);
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
    if (!kernel.ok()) continue;
    auto bound = (*kernel)->Bind(node.op());
    EXPECT_TRUE(bound.ok());
    std::vector<std::optional<std::pair<uint32_t, uint32_t>>> ways{std::nullopt};
    for (const auto& pair : candidate.in_place) {
      const Type &in = node.op().input(pair.first), &out = node.op().output(pair.second);
      if (BytesIn(candidate.input_layouts[pair.first], in.dtype, in.dims) ==
          BytesIn(candidate.output_layouts[pair.second], out.dtype, out.dims)) {
        ways.push_back(pair);
      }
    }
    for (const auto& way : ways) {
      SCOPED_TRACE(way ? "in place" : "apart");
      auto got = RunBound(**bound, node, candidate, way);
      EXPECT_TRUE(got.ok()) << got.status().message();
      if (!got.ok()) continue;
      for (size_t o = 0; o < got->size(); ++o) {
        EXPECT_EQ(FloatDifference((*got)[o], (*expected)[o]), "") << "output " << o;
      }
    }
  }
  return query.candidates.size();
}

std::unique_ptr<OneNode> NodeOf(const OpCase& c, bool weights_constant) {
  std::vector<std::optional<ConstTensor>> inputs;
  std::vector<bool> constant;
  for (const auto& input : c.inputs) {
    constant.push_back(input.constant || (weights_constant && !inputs.empty()));
    inputs.push_back(input.tensor);
  }
  return std::make_unique<OneNode>(c.domain, c.op, c.attrs, std::move(inputs), std::move(constant), c.expected.size());
}

// ---- rows ----------------------------------------------------------------------------------------------------------------------

constexpr std::string_view kMustAccept[] = {"Attention",
                                            "Conv",
                                            "FusedConv",
                                            "MatMul",
                                            "Gemm",
                                            "FusedMatMul",
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
                                            "Abs",
                                            "Sqrt",
                                            "Neg",
                                            "Round",
                                            "ConvTranspose",
                                            "MaxPool",
                                            "AveragePool",
                                            "GlobalMaxPool",
                                            "GlobalAveragePool",
                                            "BatchNormalization",
                                            "LayerNormalization",
                                            "Softmax",
                                            "LogSoftmax",
                                            "ReduceSum",
                                            "ReduceMean",
                                            "ReduceMax",
                                            "ReduceMin",
                                            "ReduceProd",
                                            "Add",
                                            "Sub",
                                            "Mul",
                                            "Div",
                                            "Max",
                                            "Min",
                                            "Resize",
                                            "Concat"};

TEST(OneDnn, EveryAcceptedRowAgreesWithReference) {
  const auto delegate = MakeOneDnnDelegate(ReferenceEvaluator());
  std::map<std::string, std::pair<int, int>> rows;  // accepted, all
  for (const OpCase& c : AllOpCases()) {
    SCOPED_TRACE(c.name);
    auto& [accepted, all] = rows[c.op];
    ++all;
    bool any = false;
    for (const bool weights_constant : {false, true}) {
      SCOPED_TRACE(weights_constant ? "constant weights" : "inputs as marked");
      const auto node = NodeOf(c, weights_constant);
      if (!node->ok()) continue;
      any = CheckNode(*delegate, *node) > 0 || any;
    }
    accepted += any ? 1 : 0;
  }
  for (const auto& [op, count] : rows) {
    if (count.first > 0) std::printf("%-24s %3d of %3d rows\n", op.c_str(), count.first, count.second);
  }
  for (const std::string_view op : kMustAccept) EXPECT_GT(rows[std::string(op)].first, 0) << op << ": accepts nothing";
}

// ---- layers of real networks -----------------------------------------------------------------------------------------------------

struct Layer {
  const char* name;
  int64_t inputs, outputs, groups, height, width, kernel, stride, pad, dilation = 1;
};
constexpr Layer kLayers[] = {
    {"resnet stem", 3, 64, 1, 28, 28, 7, 2, 3},     {"mobilenet stem", 3, 32, 1, 32, 48, 3, 2, 1},
    {"resnet 1x1", 64, 256, 1, 14, 14, 1, 1, 0},    {"resnet 3x3", 64, 64, 1, 14, 14, 3, 1, 1},
    {"resnet 3x3/2", 128, 128, 1, 14, 14, 3, 2, 1}, {"resnet 1x1/2", 128, 64, 1, 14, 14, 1, 2, 0},
    {"mobilenet dw", 96, 96, 96, 14, 14, 3, 1, 1},  {"mobilenet dw/2", 144, 144, 144, 15, 15, 3, 2, 1},
    {"5x5 dw", 40, 40, 40, 14, 14, 5, 1, 2},        {"unet head", 32, 3, 1, 32, 32, 1, 1, 0},
    {"resnext", 64, 64, 8, 14, 14, 3, 1, 1},        {"dilated", 16, 24, 1, 20, 20, 3, 1, 2, 2},
    {"odd channels", 13, 17, 1, 11, 9, 3, 1, 1},    {"wide pad", 8, 8, 1, 5, 5, 3, 1, 2},
};

std::unique_ptr<OneNode> ConvNode(const Layer& l, int64_t batch, int64_t height, int64_t width, bool residual) {
  AttrList attrs{{"strides", std::vector<int64_t>{l.stride, l.stride}},
                 {"pads", std::vector<int64_t>(4, l.pad)},
                 {"dilations", std::vector<int64_t>(2, l.dilation)},
                 {"group", l.groups},
                 {"activation", std::string("Relu")}};
  std::vector<std::optional<ConstTensor>> inputs{RandomFloats({batch, l.inputs, height, width}, 1),
                                                 RandomFloats({l.outputs, l.inputs / l.groups, l.kernel, l.kernel}, 2),
                                                 RandomFloats({l.outputs}, 3)};
  const int64_t span = l.dilation * (l.kernel - 1) + 1;
  if (residual) {
    inputs.push_back(
        RandomFloats({batch, l.outputs, (height + 2 * l.pad - span) / l.stride + 1, (width + 2 * l.pad - span) / l.stride + 1}, 4));
  }
  return std::make_unique<OneNode>("msrt", "FusedConv", attrs, std::move(inputs), std::vector<bool>{false, true, true, false});
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

// One compiled kernel serves every shape, also where the library prefers other weights there.
// More scores than are computed at once: two heads of one batch at a time, each with its part of the mask; packed heads and others.
TEST(OneDnn, AttentionInPieces) {
  const auto delegate = MakeOneDnnDelegate(ReferenceEvaluator());
  constexpr int64_t kBatch = 2, kHeads = 4, kRows = 1000, kWidth = 8;
  ConstTensor mask = RandomFloats({kBatch, kHeads, 1, kRows}, 4);
  for (const bool packed : {true, false}) {
    const Dims dims = packed ? Dims{kBatch, kRows, kHeads * kWidth} : Dims{kBatch, kHeads, kRows, kWidth};
    AttrList attrs;
    if (packed) attrs = {{"q_num_heads", kHeads}, {"kv_num_heads", kHeads}, {"is_causal", int64_t{1}}};
    const OneNode node("", "Attention", attrs, {RandomFloats(dims, 1), RandomFloats(dims, 2), RandomFloats(dims, 3), mask},
                       {false, false, false, false}, 1);
    ASSERT_TRUE(node.ok());
    EXPECT_EQ(CheckNode(*delegate, node), 1u);
  }
}

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
        auto expected = node->Expected();
        ASSERT_TRUE(expected.ok());
        auto bound = (*kernel)->Bind(node->op());
        ASSERT_TRUE(bound.ok() && (*bound)->Prepare().ok());
        for (const auto& way : {std::optional<std::pair<uint32_t, uint32_t>>(), std::optional(std::pair{3u, 0u})}) {
          auto got = RunBound(**bound, *node, candidate, way);
          ASSERT_TRUE(got.ok()) << got.status().message();
          EXPECT_EQ(FloatDifference((*got)[0], (*expected)[0]), "");
        }
      }
      EXPECT_LE((*kernel)->packed_bytes(), 3 * packed + (64 << 10)) << "more than two further forms of the weights";
    }
  }
}

TEST(OneDnn, SeveralThreadsRunOneBinding) {
  const auto delegate = MakeOneDnnDelegate(ReferenceEvaluator());
  const auto node = ConvNode(kLayers[3], 1, 14, 14, true);
  auto expected = node->Expected();
  ASSERT_TRUE(expected.ok());
  QueryResult query;
  delegate->Query(*node, &query);
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
          auto got = RunBound(**bound, *node, candidate, t == 0 ? std::optional(std::pair{3u, 0u}) : std::nullopt, *team);
          EXPECT_EQ(got.ok() ? FloatDifference((*got)[0], (*expected)[0]) : "failed", "");
        }
      });
    }
    for (std::thread& t : threads) t.join();
  }
}

// ---- refusals and resources --------------------------------------------------------------------------------------------------------

// Standalone ops keep NaN as the reference does, whatever the library's functions make of it.
TEST(OneDnn, KeepsNan) {
  const auto delegate = MakeOneDnnDelegate(ReferenceEvaluator());
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values(8 * 4 * 4, 0.5f), others(values.size(), 1.5f);
  values[3] = values[40] = values[127] = nan, values[7] = infinity, values[9] = -infinity;
  others[3] = others[60] = nan, others[8] = -infinity;
  const ConstTensor x = ConstTensor::Floats({1, 8, 4, 4}, values), y = ConstTensor::Floats({1, 8, 4, 4}, others);
  for (const std::string_view op : {"Relu",      "LeakyRelu", "Clip",      "HardSigmoid",   "HardSwish",
                                    "Exp",       "Sigmoid",   "Tanh",      "Gelu",          "Abs",
                                    "Neg",       "Round",     "Sqrt",      "Elu",           "Swish",
                                    "Mish",      "Softplus",  "Log",       "Softmax",       "LogSoftmax",
                                    "ReduceMax", "ReduceMin", "ReduceSum", "GlobalMaxPool", "GlobalAveragePool"}) {
    SCOPED_TRACE(op);
    const OneNode node("", op, {}, {x}, {false});
    ASSERT_TRUE(node.ok()) << node.status().message();
    EXPECT_GT(CheckNode(*delegate, node), 0u);
  }
  for (const std::string_view op : {"Add", "Sub", "Mul", "Div", "Max", "Min"}) {
    SCOPED_TRACE(op);
    EXPECT_GT(CheckNode(*delegate, OneNode("", op, {}, {x, y}, {false, false})), 0u);
  }
  const AttrList window{{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  for (const std::string_view op : {"MaxPool", "AveragePool"})
    EXPECT_GT(CheckNode(*delegate, OneNode("", op, window, {x}, {false})), 0u) << op;
}

TEST(OneDnn, RefusesWithAReason) {
  const auto delegate = MakeOneDnnDelegate(ReferenceEvaluator());
  const std::vector<double> doubles(8, 1.0);
  const OneNode f64("", "Relu", {}, {ConstTensor::Of<double>(DType::kF64, {8}, doubles)}, {false});
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

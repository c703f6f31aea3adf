#include "tests/conformance/delegate_checks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "core/base/half.h"
#include "core/run/convert.h"
#include "delegates/reference/kernel.h"
#include "ops/infer.h"
#include "ops/registry.h"

namespace msrt::testing {

using sdk::BoundKernel;
using sdk::Candidate;
using sdk::Delegate;
using sdk::Kernel;
using sdk::NodeInfo;
using sdk::QueryResult;

OneNode::OneNode(std::string_view domain, std::string_view op, AttrList attrs,
                 std::vector<std::optional<ConstTensor>> inputs, std::vector<bool> constant,
                 size_t outputs)
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
    parameters_.push_back(false);
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

NodeInfo OneNode::node(size_t) const {
  const Cost cost = def_->cost(*typical_);
  return {declared_.get(), typical_.get(), cost.flops,  cost.bytes_read + cost.bytes_written,
          input_ids_,      output_ids_,    parameters_, TypicalMachine(2)};
}

void OneNode::MakeParameters() {
  for (size_t i = 1; i < parameters_.size(); ++i)
    parameters_[i] = inputs_[i].has_value() && !constant_[i];
}

Result<std::vector<ConstTensor>> OneNode::Expected(bool reduced) const {
  std::vector<TensorView> in, out;
  std::vector<ConstTensor> results;
  std::vector<std::optional<ConstTensor>> given = inputs_;
  for (size_t i = 0; reduced && i < 2; ++i) {
    std::vector<float> rounded;
    for (float v : given[i]->As<float>()) rounded.push_back(BFloat16(v));
    given[i] = ConstTensor::Floats(given[i]->dims, rounded);
  }
  for (const auto& t : given)
    in.push_back(
        t ? TensorView{t->dtype, t->dims, Layout::kPlain, const_cast<std::byte*>(t->bytes.data())}
          : TensorView{});
  for (const Type& t : output_types_) {
    results.push_back(ConstTensor::Copy(t.dtype, t.dims, std::vector<std::byte>(t.bytes())));
    out.push_back(
        {t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(results.back().bytes.data())});
  }
  const auto kernel = reference::FindKernel(def_->domain, def_->name);
  if (kernel == nullptr) return NotFound("no reference kernel");
  const auto parallel = MakeThreadPool(2);
  MSRT_RETURN_IF_ERROR(kernel({View(values_), in, out, *parallel}));
  return results;
}

OpView OneNode::View(std::span<const ConstTensor* const> constants) const {
  return OpView(def_->domain, def_->name, "node", &attrs_, def_->attrs, input_pointers_,
                output_pointers_, constants);
}

namespace {

class HeapScratch final : public sdk::Scratch {
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

// Packs every form anew.
class FreshForms final : public sdk::InputForms {
 public:
  Result<const void*> Get(size_t, const sdk::Packing&, size_t bytes,
                          FunctionRef<Status(std::byte*)> pack) override {
    MSRT_ASSIGN_OR_RETURN(Block block, Block::Make(DefaultAllocator(), bytes, "form"));
    MSRT_RETURN_IF_ERROR(pack(block.data()));
    blocks_.push_back(std::move(block));
    return static_cast<const void*>(blocks_.back().data());
  }

 private:
  std::vector<Block> blocks_;
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
    ConstTensor t = ConstTensor::Copy(view.dtype, view.dims,
                                      std::vector<std::byte>(BytesOf(view.dtype, view.elements())));
    const TensorView plain{t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())};
    EXPECT_TRUE(ConvertLayout(view, plain, *serial).ok());
    return t;
  }
};

}  // namespace

namespace {

template <typename T>
std::string DifferenceWithin(double share, const ConstTensor& got, const ConstTensor& expected) {
  double range = 0;
  for (T x : expected.As<T>()) {
    if (std::isfinite(x)) range = std::max(range, std::abs(double{x}));
  }
  return Difference(got, expected, share, share * range);
}

}  // namespace

std::string FloatDifference(const ConstTensor& got, const ConstTensor& expected) {
  // Some 80 units in the last place: sums have another order.
  if (expected.dtype == DType::kF32) return DifferenceWithin<float>(1e-5, got, expected);
  if (expected.dtype == DType::kF64) return DifferenceWithin<double>(2e-14, got, expected);
  return Difference(got, expected, 0, 0);
}

Result<Expectation> Expectation::Of(const OneNode& node, const QueryResult& query) {
  Expectation e;
  MSRT_ASSIGN_OR_RETURN(e.exact, node.Expected());
  const auto rounds = [](const Candidate& c) { return c.reduced; };
  if (std::none_of(query.candidates.begin(), query.candidates.end(), rounds)) return e;
  MSRT_ASSIGN_OR_RETURN(e.reduced, node.Expected(/*reduced=*/true));
  return e;
}

std::string Expectation::Difference(const Candidate& candidate, const ConstTensor& got,
                                    size_t output) const {
  std::string difference = FloatDifference(got, exact[output]);
  return difference.empty() || !candidate.reduced ? difference
                                                  : FloatDifference(got, reduced[output]);
}

ParallelFor& Team() {
  static const std::unique_ptr<ParallelFor> team = MakeDefaultParallel(2);
  return *team;
}

Result<std::vector<ConstTensor>> RunBound(BoundKernel& bound, const OneNode& node,
                                          const Candidate& candidate,
                                          std::optional<std::pair<uint32_t, uint32_t>> shared,
                                          ParallelFor& team) {
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
  FreshForms forms;
  MSRT_RETURN_IF_ERROR(RunOnTeam(team, [&] {
    return bound.Run({inputs, outputs, team, scratch, forms});
  }));
  std::vector<ConstTensor> results;
  for (size_t o = 0; o < out.size(); ++o) {
    EXPECT_TRUE(out[o].GuardIsWhole()) << "wrote behind output " << o;
    out[o].view.data = outputs[o].data;
    results.push_back(out[o].Get());
  }
  return results;
}

Result<std::unique_ptr<Kernel>> CompileNode(const Delegate& delegate, const OneNode& node,
                                            const Candidate& candidate) {
  return RunOnTeam(Team(), [&] {
    return delegate.Compile(node, candidate, {DefaultAllocator(), &Team()});
  });
}

size_t CheckNode(const Delegate& delegate, const OneNode& node) {
  QueryResult query;
  delegate.Query(node, &query);
  if (query.candidates.empty()) {
    EXPECT_EQ(query.refusals.size(), 1u);
    return 0;
  }
  const auto expected = Expectation::Of(node, query);
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
        EXPECT_EQ(expected->Difference(candidate, (*got)[o], o), "") << "output " << o;
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
  return std::make_unique<OneNode>(c.domain, c.op, c.attrs, std::move(inputs), std::move(constant),
                                   c.expected.size());
}

void CheckEveryRow(const Delegate& delegate, std::span<const std::string_view> must_accept) {
  std::map<std::string, std::pair<int, int>> rows;  // accepted, all
  for (const OpCase& c : AllOpCases()) {
    SCOPED_TRACE(c.name);
    auto& [accepted, all] = rows[c.op];
    ++all;
    bool any = false;
    for (const std::string_view weights : {"as marked", "constant", "parameters"}) {
      SCOPED_TRACE(StrCat("weights: ", weights));
      const auto node = NodeOf(c, weights == "constant");
      if (!node->ok()) continue;
      if (weights == "parameters") node->MakeParameters();
      any = CheckNode(delegate, *node) > 0 || any;
    }
    accepted += any ? 1 : 0;
  }
  for (const auto& [op, count] : rows) {
    if (count.first > 0)
      std::printf("%-24s %3d of %3d rows\n", op.c_str(), count.first, count.second);
  }
  for (const std::string_view op : must_accept)
    EXPECT_GT(rows[std::string(op)].first, 0) << op << ": accepts nothing";
}

}  // namespace msrt::testing

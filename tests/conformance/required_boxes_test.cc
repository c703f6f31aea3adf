// Resolved spaces and their backward composition, against brute force: input elements are changed
// one by one, and each one that changes an output inside a box must be in the boxes required for
// it.
#include "ops/required_boxes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "core/base/half.h"
#include "ops/registry.h"
#include "ops/resolve_space.h"
#include "tests/conformance/case_node.h"
#include "tests/conformance/small_graph.h"

namespace msrt::testing {
namespace {

using Random = std::mt19937;
int64_t Below(Random& random, int64_t n) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
}

// A random part of the box that is not empty, unless the box is.
Box RandomPart(Random& random, const Box& whole) {
  Box part = whole;
  for (int d = 0; d < part.rank(); ++d) {
    if (whole[d].empty()) continue;
    const int64_t a = whole[d].begin + Below(random, whole[d].size()),
                  b = whole[d].begin + Below(random, whole[d].size());
    part[d] = {std::min(a, b), std::max(a, b) + 1};
  }
  return part;
}

Box PositionOf(const Dims& dims, int64_t element) {
  Box box;
  const Dims strides = RowMajorStrides(dims);
  for (int d = 0; d < dims.rank(); ++d) {
    const int64_t i = element / strides[d];
    box.push_back({i, i + 1});
    element %= strides[d];
  }
  return box;
}

// Changes one element upwards (variant 0) or downwards, floats by `by`.
ConstTensor Changed(const ConstTensor& t, int64_t element, int variant, float by = 37.5f) {
  std::vector<std::byte> bytes(t.bytes.begin(), t.bytes.end());
  const auto width = static_cast<size_t>(BitsOf(t.dtype)) / 8;
  std::byte* at = bytes.data() + static_cast<size_t>(element) * width;
  const auto shift = [&]<typename T>(T) {
    T value;
    std::memcpy(&value, at, sizeof(T));
    value = static_cast<T>(static_cast<float>(value) + (variant == 0 ? by : -by));
    std::memcpy(at, &value, sizeof(T));
  };
  if (t.dtype == DType::kF32) shift(float());
  else if (t.dtype == DType::kF64) shift(double());
  else if (t.dtype == DType::kF16) shift(Half());
  else if (t.dtype == DType::kBF16) shift(BFloat16());
  else if (t.dtype == DType::kBool) *at ^= std::byte{1};
  else *at = static_cast<std::byte>(static_cast<uint8_t>(*at) + (variant == 0 ? 1 : 255));
  return ConstTensor::Copy(t.dtype, t.dims, bytes);
}

bool SameIn(const ConstTensor& a, const ConstTensor& b, const Box& box) {
  if (box.empty()) return true;
  const ConstTensor x = CutOut(a, box), y = CutOut(b, box);
  return std::ranges::equal(x.bytes, y.bytes);
}

bool IsWholeBytes(const ConstTensor& t) { return BitsOf(t.dtype) >= 8; }

// ---- every op row -------------------------------------------------------------------------------

class RowSpaces : public ::testing::TestWithParam<size_t> {
 protected:
  const OpCase& c() const { return AllOpCases()[GetParam()]; }
  static void TearDownTestSuite() { RecordProperty("tight_boxes", tight_boxes); }
  static inline int tight_boxes = 0;
};

// Large inputs are sampled: this many elements of each are changed.
constexpr int64_t kMaxChanges = 150;

TEST_P(RowSpaces, RequiredInputsContainWhatAffectsTheOutput) {
  CaseNode node = NodeOf(c());
  ASSERT_NE(node.def, nullptr);
  ASSERT_TRUE(node.Infer().ok());
  const OpView view = node.View();
  const auto space = ResolveSpace(*node.def, view);
  if (!space.ok()) return;
  Random random(static_cast<uint32_t>(GetParam()));
  const auto whole = CaseNode(node).Run();
  ASSERT_TRUE(whole.ok()) << whole.status().message();

  struct Question {
    size_t output;
    Box box;
    std::vector<Box> required;
  };
  std::vector<Question> questions;
  for (size_t o = 0; o < whole->size(); ++o) {
    if (!IsWholeBytes((*whole)[o])) return;
    for (int round = 0; round < 4; ++round) {
      const Box box = RandomPart(random, Box::Whole((*whole)[o].dims));
      const auto piece = PieceFor(*space, o, box);
      ASSERT_EQ(piece.has_value(), !box.empty());
      if (piece) {
        EXPECT_TRUE(Contains(OutputBoxes(*space, *piece)[o], box))
            << "output " << o << " box " << StrCat(box) << " piece " << StrCat(*piece);
      }
      questions.push_back({o, box, RequiredInputs(*space, o, box)});
    }
  }

  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool asked = node.present[i] && !space->inputs[i].dropped && IsWholeBytes(node.inputs[i]);
    if (!asked) continue;
    const int64_t elements = node.inputs[i].dims.elements();
    const int64_t step = std::max<int64_t>(elements / kMaxChanges, 1);
    for (int64_t e = Below(random, step); e < elements; e += step) {
      for (int variant : {0, 1}) {
        CaseNode changed = node;
        changed.inputs[i] = Changed(node.inputs[i], e, variant);
        // An index may no longer fit, or a size change; such inputs have no parts to compare.
        if (!changed.Infer().ok() || changed.output_types != node.output_types) continue;
        const auto got = changed.Run();
        if (!got.ok()) continue;
        const Box position = PositionOf(node.inputs[i].dims, e);
        for (const Question& q : questions) {
          if (Contains(q.required[i], position)) continue;
          ASSERT_TRUE(SameIn((*got)[q.output], (*whole)[q.output], q.box))
              << "input " << i << " at " << StrCat(position) << " affects output " << q.output
              << " in " << StrCat(q.box) << ", required is only " << StrCat(q.required[i]);
        }
      }
    }
  }
}

// Ops of which a box is not the hull of what affects the output, and why. Of all others it must be.
const std::map<std::string, std::string>& NotTight() {
  static const std::map<std::string, std::string> ops{};
  return ops;
}

// Whether brute force determines the box in this dim: the dim follows an axis that may be cut, and
// every element between the ends is read. Other dims are touched whole, in blocks, or where a
// function says, and contain more on purpose.
bool IsDetermined(const ResolvedSpace& space, const DimMap& d) {
  using Kind = DimMap::Kind;
  if (d.axis < 0) return false;
  const AxisKind axis = space.axes[d.axis].kind;
  if (axis != AxisKind::kParallel && axis != AxisKind::kWindow) return false;
  const bool window = d.kind == Kind::kWindow || d.kind == Kind::kTransposedWindow;
  return d.kind == Kind::kAffine || (window && d.dilation == 1 && d.kernel >= d.step);
}

// Positive numbers instead of the row's, so that no weight is zero and no activation is cut off.
void MakePositive(CaseNode* node) {
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    if (!node->present[i] || node->inputs[i].dtype != DType::kF32) continue;
    const Dims dims = node->inputs[i].dims;
    std::vector<float> values(static_cast<size_t>(dims.elements()));
    for (size_t e = 0; e < values.size(); ++e)
      values[e] = 0.3f + static_cast<float>(e * 37 % 64) / 61.f;
    node->inputs[i] = ConstTensor::Floats(dims, values);
  }
}

// By box of an output: the hull of the elements of an input of which some change shows in the box.
class AffectingElements {
 public:
  AffectingElements(size_t output, std::vector<Box> boxes)
      : output_(output), boxes_(std::move(boxes)), hulls_(boxes_.size()) {}

  // Changes every element of input `i` of the node, upwards and downwards, slightly and a lot.
  void Add(const CaseNode& node, size_t i) {
    const auto whole = CaseNode(node).Run();
    if (!whole.ok()) return;  // the op refuses such numbers
    for (int64_t e = 0; e < node.inputs[i].dims.elements(); ++e) {
      const Box position = PositionOf(node.inputs[i].dims, e);
      for (const auto& [variant, by] : {std::pair(0, 3e4f), {1, 3e4f}, {0, 0.5f}, {1, 0.25f}}) {
        if (Covers(position)) break;
        CaseNode changed = node;
        changed.inputs[i] = Changed(node.inputs[i], e, variant, by);
        if (!changed.Infer().ok() || changed.output_types != node.output_types) continue;
        const auto got = changed.Run();
        if (got.ok()) Compare((*got)[output_], (*whole)[output_], position);
      }
    }
  }

  const std::vector<Box>& boxes() const { return boxes_; }
  const std::optional<Box>& hull(size_t b) const { return hulls_[b]; }

 private:
  bool Covers(const Box& position) const {
    return std::ranges::all_of(hulls_, [&](const auto& h) { return h && Contains(*h, position); });
  }
  void Compare(const ConstTensor& got, const ConstTensor& whole, const Box& position) {
    for (size_t b = 0; b < boxes_.size(); ++b) {
      if (SameIn(got, whole, boxes_[b])) continue;
      hulls_[b] = hulls_[b] ? Hull(*hulls_[b], position) : position;
    }
  }

  const size_t output_;
  const std::vector<Box> boxes_;
  std::vector<std::optional<Box>> hulls_;
};

// Required boxes are equal to brute force: in each dim that follows an axis which may be cut, the
// box is the hull of the input elements that some change shows to affect the output. What an
// element affects may depend on the data (a maximum, a condition, a saturated function): it counts
// if it does so for the numbers of the row or for positive ones. Ops that need yet other data, or
// that overwrite what they read, are in NotTight with the reason; for them the test before this one
// shows that the box contains what affects the output.
TEST_P(RowSpaces, RequiredInputsEqualBruteForce) {
  CaseNode node = NodeOf(c());
  ASSERT_NE(node.def, nullptr);
  ASSERT_TRUE(node.Infer().ok());
  const OpView view = node.View();
  const auto space = ResolveSpace(*node.def, view);
  if (!space.ok() || NotTight().contains(c().op)) return;
  const auto whole = CaseNode(node).Run();
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  Random random(static_cast<uint32_t>(GetParam()));
  const size_t output = random() % whole->size();
  if (!IsWholeBytes((*whole)[output])) return;
  CaseNode positive = node;
  MakePositive(&positive);
  const bool has_positive = positive.Infer().ok() && positive.output_types == node.output_types;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool asked = node.present[i] && !space->inputs[i].dropped &&
                       node.inputs[i].dtype == DType::kF32 &&
                       node.inputs[i].dims.elements() <= 2 * kMaxChanges;
    if (!asked) continue;
    std::vector<Box> boxes;
    for (int b = 0; b < 3; ++b)
      boxes.push_back(RandomPart(random, Box::Whole((*whole)[output].dims)));
    AffectingElements affecting(output, boxes);
    affecting.Add(node, i);
    if (has_positive) affecting.Add(positive, i);
    for (size_t b = 0; b < boxes.size(); ++b) {
      const Box required = RequiredInputs(*space, output, boxes[b])[i];
      const std::optional<Box>& hull = affecting.hull(b);
      EXPECT_EQ(hull.has_value(), !required.empty())
          << "input " << i << ", output box " << StrCat(boxes[b]) << ": " << StrCat(required);
      if (!hull) continue;
      EXPECT_TRUE(Contains(required, *hull));
      for (int d = 0; d < required.rank(); ++d) {
        if (!IsDetermined(*space, space->inputs[i].dims[static_cast<size_t>(d)])) continue;
        EXPECT_EQ((*hull)[d], required[d])
            << "dim " << d << " of input " << i << ", box " << StrCat(boxes[b]) << " of output "
            << output << ": required " << StrCat(required) << ", affecting " << StrCat(*hull);
      }
      ++tight_boxes;
    }
  }
}

TEST_P(RowSpaces, InteriorReadsOnlyWhatIsOwned) {
  CaseNode node = NodeOf(c());
  ASSERT_NE(node.def, nullptr);
  ASSERT_TRUE(node.Infer().ok());
  const OpView view = node.View();
  const auto space = ResolveSpace(*node.def, view);
  if (!space.ok()) return;
  Random random(static_cast<uint32_t>(GetParam()));
  for (int round = 0; round < 10; ++round) {
    std::vector<Box> owned;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Box box = Box::Whole(node.inputs[i].dims);
      if (round > 0 && node.present[i]) {
        const Box part = RandomPart(random, box);
        for (int d = 0; d < box.rank(); ++d) {
          if (random() % 3 == 0) box[d] = part[d];
        }
      }
      owned.push_back(box);
    }
    const auto interior = InteriorPiece(*space, owned);
    if (round == 0 && !space->axes.Whole().empty()) {
      ASSERT_TRUE(interior.has_value());
      EXPECT_EQ(*interior, space->axes.Whole());
    }
    if (!interior) continue;
    const auto inside = [&](const Box& piece) {
      const std::vector<Box> read = InputBoxes(*space, piece);
      for (size_t i = 0; i < read.size(); ++i) {
        const bool touched = node.present[i] && IsPresent(space->inputs[i], piece);
        if (touched && !Contains(owned[i], read[i])) return false;
      }
      return true;
    };
    EXPECT_TRUE(inside(*interior)) << StrCat(*interior);
    // It cannot grow, except where that touches nothing of an input: each dim counts by itself.
    for (int a = 0; a < interior->rank(); ++a) {
      if (space->axes[a].kind != AxisKind::kParallel) continue;
      Box more = *interior;
      if (more[a].begin > 0) --more[a].begin;
      else if (more[a].end < space->axes[a].extent) ++more[a].end;
      else continue;
      bool touches_all = true;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.present[i] && IsPresent(space->inputs[i], more))
          touches_all = touches_all && !TouchedBox(space->inputs[i], more).empty();
      }
      EXPECT_FALSE(touches_all && inside(more)) << "axis " << a << " of " << StrCat(*interior);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RowSpaces, ::testing::Range(size_t{0}, AllOpCases().size()),
                         [](const auto& row) { return AllOpCases()[row.param].name; });

// A list that is an input does not keep a node from being cut if its value is known.
TEST(ListInputs, AreDroppedFromPieces) {
  std::map<std::string, int> dropped;
  for (const OpCase& c : AllOpCases()) {
    CaseNode node = NodeOf(c);
    ASSERT_NE(node.def, nullptr);
    ASSERT_TRUE(node.Infer().ok());
    const OpView view = node.View();
    const auto space = ResolveSpace(*node.def, view);
    if (!space.ok()) continue;
    for (const TensorMap& input : space->inputs) {
      if (input.present && input.dropped) ++dropped[c.op];
    }
    // The same list, not known before the run.
    if (c.op != "Slice" && c.op != "Tile" && c.op != "Split" && c.op != "Resize") continue;
    const OpView unknown = view.WithTypes(node.input_pointers, node.output_pointers);
    const bool has_list = std::ranges::any_of(
        space->inputs, [](const TensorMap& input) { return input.present && input.dropped; });
    EXPECT_EQ(ResolveSpace(*node.def, unknown).ok(), !has_list) << c.name;
  }
  for (std::string_view op :
       {"Reshape", "Squeeze", "Unsqueeze", "Expand", "Tile", "Slice", "Split", "Pad", "Resize"})
    EXPECT_GT(dropped[std::string(op)], 0) << op;
}

// ---- random graphs ------------------------------------------------------------------------------

// Runs the nodes of a graph one after the other, whole or in pieces.
class GraphRunner {
 public:
  explicit GraphRunner(const Graph& graph) : graph_(graph) {}

  Result<std::vector<ConstTensor>> RunWhole(const std::vector<ConstTensor>& inputs) {
    std::vector<ConstTensor> values(graph_.value_count());
    for (size_t v = 0; v < values.size(); ++v) {
      const auto& constant = graph_.value(ValueId(v)).constant;
      if (constant) values[v] = *constant;
    }
    for (size_t i = 0; i < inputs.size(); ++i) values[IndexOf(graph_.inputs[i])] = inputs[i];
    for (const Node& node : graph_.nodes) {
      CaseNode c = NodeWith(node, values);
      MSRT_RETURN_IF_ERROR(c.Infer());
      MSRT_ASSIGN_OR_RETURN(auto out, c.Run());
      for (size_t o = 0; o < out.size(); ++o) values[IndexOf(node.outputs[o])] = std::move(out[o]);
    }
    return values;
  }

  CaseNode NodeWith(const Node& node, const std::vector<ConstTensor>& values) const {
    CaseNode c;
    c.def = node.def;
    c.attrs = node.attrs;
    for (ValueId v : node.inputs) {
      c.present.push_back(v != kNoValue);
      c.inputs.push_back(v == kNoValue ? ConstTensor() : values[IndexOf(v)]);
      c.input_types.push_back(c.inputs.back().type());
    }
    c.output_types.resize(node.outputs.size());
    return c;
  }

 private:
  const Graph& graph_;
};

// Grows a graph of a few image ops. A dense graph has only ops of which each output row depends on
// a row of the input, so that required boxes are tight, and none that falls when an input rises, so
// that no two paths cancel.
class ImageGraph {
 public:
  ImageGraph(uint32_t seed, bool dense) : random_(seed), dense_(dense) {
    const Dims dims{1, Pick(1, 3), Pick(5, 9), Pick(4, 8)};
    values_.push_back(g.Input("x", DType::kF32, dims));
    if (random_() % 4 == 0) values_.push_back(g.Input("y", DType::kF32, dims));
    const int64_t nodes = Pick(2, 6);
    for (int64_t i = 0; i < nodes; ++i) Grow();
    g.graph.outputs = {values_.back()};
    if (random_() % 4 == 0) g.graph.outputs.push_back(values_[values_.size() / 2]);
  }

  SmallGraph g;
  std::map<std::string, int> counts;

 private:
  int64_t Pick(int64_t low, int64_t high) { return low + Below(random_, high - low + 1); }
  const Dims& DimsOf(ValueId v) const { return g.graph.value(v).type.dims; }

  ValueId Weights(const Dims& dims) {
    std::vector<float> values(static_cast<size_t>(dims.elements()));
    for (float& v : values) {
      v = 0.26f + static_cast<float>(random_() % 64) / 61.f;
      if (!dense_ && random_() % 2 == 0) v = -v;
    }
    return g.graph.AddConstant("w" + std::to_string(g.graph.value_count()),
                               ConstTensor::Floats(dims, values));
  }
  ValueId Ints(std::vector<int64_t> values) {
    std::vector<std::byte> bytes(values.size() * sizeof(int64_t));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return g.graph.AddConstant(
        "l" + std::to_string(g.graph.value_count()),
        ConstTensor::Copy(DType::kI64, {static_cast<int64_t>(values.size())}, bytes));
  }

  void Push(std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {}) {
    ++counts[std::string(op)];
    const ValueId v = g.Add(op, StrCat("n", g.graph.nodes.size()), std::move(inputs), attrs);
    ASSERT_NE(v, kNoValue);
    values_.push_back(v);
  }

  void Scale(ValueId x) { Push("Mul", {x, Weights({1, DimsOf(x)[1], 1, 1})}); }

  void Grow() {
    using L = std::vector<int64_t>;
    const ValueId x = random_() % 4 == 0 ? values_[random_() % values_.size()] : values_.back();
    const Dims d = DimsOf(x);
    const int64_t h = d[2], w = d[3];
    switch (random_() % (dense_ ? 9 : 16)) {
      case 0:
      case 1: {  // Conv
        const int64_t kh = Pick(1, std::min<int64_t>(3, h)), kw = Pick(1, std::min<int64_t>(3, w));
        const int64_t sh = Pick(1, dense_ ? kh : 3), sw = Pick(1, dense_ ? kw : 3);
        const int64_t dilation = dense_ || h < 2 * kh || w < 2 * kw ? 1 : Pick(1, 2);
        const int64_t groups = d[1] % 2 == 0 && random_() % 3 == 0 ? 2 : 1;
        const int64_t out = groups * Pick(1, 2);
        AttrList attrs{
            {"strides", L{sh, sw}},
            {"dilations", L{dilation, dilation}},
            {"group", groups},
            {"pads", L{Pick(0, kh - 1), Pick(0, kw - 1), Pick(0, kh - 1), Pick(0, kw - 1)}}};
        return Push("Conv", {x, Weights({out, d[1] / groups, kh, kw})}, attrs);
      }
      case 2: {  // pools
        const int64_t kh = Pick(1, std::min<int64_t>(3, h)), kw = Pick(1, std::min<int64_t>(3, w));
        AttrList attrs{{"kernel_shape", L{kh, kw}},
                       {"strides", L{Pick(1, dense_ ? kh : 3), Pick(1, dense_ ? kw : 3)}},
                       {"pads", L{Pick(0, kh - 1), 0, 0, Pick(0, kw - 1)}}};
        if (!dense_) attrs.Set("ceil_mode", int64_t{Below(random_, 2)});
        return Push(random_() % 2 == 0 ? "MaxPool" : "AveragePool", {x}, attrs);
      }
      case 3:  // elementwise with a skip connection
        for (size_t i = 0; i < values_.size(); ++i) {
          if (values_[i] != x && DimsOf(values_[i]) == d)
            return Push(dense_ || random_() % 2 == 0 ? "Add" : "Sub", {x, values_[i]});
        }
        return Scale(x);
      case 4:
        return Scale(x);
      case 5: {  // Transpose
        const bool swap = random_() % 2 == 0;
        return Push("Transpose", {x}, {{"perm", swap ? L{0, 1, 3, 2} : L{0, 2, 1, 3}}});
      }
      case 6: {  // Slice
        const int64_t axis = Pick(2, 3), n = d[static_cast<int>(axis)];
        if (n < 3) return Scale(x);
        const int64_t step = dense_ ? 1 : Pick(1, 2);
        if (random_() % 2 == 0)
          return Push("Slice", {x},
                      {{"starts", L{1}}, {"ends", L{n}}, {"axes", L{axis}}, {"steps", L{step}}});
        return Push("Slice", {x, Ints({n - 1}), Ints({-n}), Ints({axis}), Ints({-step})});
      }
      case 7: {  // Resize; the coordinates of nearest are those of single elements
        if (h > 12 || w > 12) return Scale(x);
        const bool linear = !dense_ && random_() % 2 == 0;
        return Push("Resize", {x},
                    {{"sizes", L{d[0], d[1], Pick(std::max<int64_t>(h / 2, 1), h + 4),
                                 Pick(std::max<int64_t>(w / 2, 1), w + 3)}},
                     {"mode", std::string(linear ? "linear" : "nearest")},
                     {"coordinate_transformation_mode",
                      std::string(random_() % 2 == 0 ? "asymmetric" : "half_pixel")}});
      }
      case 8: {  // ConvTranspose
        if (h > 10 || w > 10) return Scale(x);
        const int64_t k = Pick(1, 3), s = Pick(1, dense_ ? k : 3);
        return Push("ConvTranspose", {x, Weights({d[1], Pick(1, 2), k, k})},
                    {{"strides", L{s, s}}});
      }
      default:
        return GrowLoose(x);
    }
  }

  // Ops with holes, blocks, whole axes, or several sources of a row.
  void GrowLoose(ValueId x) {
    using L = std::vector<int64_t>;
    const Dims d = DimsOf(x);
    const int64_t h = d[2], w = d[3];
    switch (random_() % 7) {
      case 0:
      case 1: {  // Concat with anything that fits
        const int64_t axis = Pick(1, 3);
        for (size_t i = values_.size(); i-- > 0;) {
          Dims a = d, b = DimsOf(values_[i]);
          a[static_cast<int>(axis)] = b[static_cast<int>(axis)] = 0;
          if (a == b) return Push("Concat", {x, values_[i]}, {{"axis", axis}});
        }
        return Scale(x);
      }
      case 2: {  // Pad
        const char* modes[] = {"constant", "reflect", "edge", "wrap"};
        AttrList attrs{{"mode", std::string(modes[random_() % 4])}};
        const L pads{0, 0, Pick(-1, 2), Pick(0, 2), 0, 0, Pick(0, 2), Pick(-1, 2)};
        if (h < 3 || w < 3) return Scale(x);
        if (random_() % 2 == 0) return Push("Pad", {x, Ints(pads)}, attrs);
        attrs.Set("pads", pads);
        return Push("Pad", {x}, attrs);
      }
      case 3: {  // blocks
        if (h % 2 == 0 && w % 2 == 0) return Push("SpaceToDepth", {x}, {{"blocksize", int64_t{2}}});
        if (d[1] % 4 == 0 && h < 9)
          return Push("DepthToSpace", {x},
                      {{"blocksize", int64_t{2}},
                       {"mode", std::string(random_() % 2 == 0 ? "DCR" : "CRD")}});
        return Push("Relu", {x});
      }
      case 4:
        return Push(random_() % 2 == 0 ? "GlobalAveragePool" : "Softmax", {x});
      case 5: {  // Reshape
        if (random_() % 2 == 0) return Push("Reshape", {x, Ints({d[0], 1, d[1] * h, w})});
        return Push("Reshape", {x}, {{"shape", L{d[0], d[1], w, h}}});
      }
      default:
        return Push("Tile", {x}, {{"repeats", L{1, 1, h < 8 ? 2 : 1, 1}}});
    }
  }

  Random random_;
  bool dense_;
  std::vector<ValueId> values_;
};

// Computes the outputs' boxes from nothing but the required boxes of the graph inputs.
void CheckPiecesOfGraph(const Graph& graph, const GraphSpaces& spaces,
                        const RequiredBoxes& required, const std::vector<ConstTensor>& whole) {
  // Elements that are not required get a value that would show in the outputs.
  std::vector<ConstTensor> values(graph.value_count());
  const auto keep_only = [&](size_t v, const Box* box) {
    const ConstTensor& t = whole[v];
    std::vector<std::byte> bytes(t.bytes.begin(), t.bytes.end());
    for (int64_t e = 0; e < t.dims.elements() && t.dtype == DType::kF32; ++e) {
      if (box == nullptr || !Contains(*box, PositionOf(t.dims, e)))
        std::fill_n(bytes.begin() + e * 4, 4, std::byte{0x7F});
    }
    values[v] = ConstTensor::Copy(t.dtype, t.dims, bytes);
  };
  for (size_t v = 0; v < values.size(); ++v) {
    if (graph.value(ValueId(v)).constant) values[v] = whole[v];
    else keep_only(v, nullptr);
  }
  for (ValueId v : graph.inputs) {
    const auto& box = required.values[IndexOf(v)];
    keep_only(IndexOf(v), box ? &*box : nullptr);
  }
  GraphRunner runner(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!required.pieces[n]) continue;
    const Node& node = graph.nodes[n];
    CaseNode c = runner.NodeWith(node, values);
    ASSERT_TRUE(c.Infer().ok());
    const ResolvedSpace* space = spaces.of_node(n);
    ASSERT_NE(space, nullptr) << Describe(graph, n);
    auto piece = CutPiece(c, *space, *required.pieces[n]);
    ASSERT_TRUE(piece.ok()) << Describe(graph, n) << " " << piece.status().message();
    auto got = piece->node.Run();
    ASSERT_TRUE(got.ok()) << Describe(graph, n) << " " << got.status().message();
    for (size_t o = 0; o < got->size(); ++o) {
      const size_t v = IndexOf(node.outputs[o]);
      const auto& needed = required.values[v];
      if (!needed) continue;
      const Box& computed = piece->outputs[o];
      ASSERT_TRUE(Contains(computed, *needed)) << Describe(graph, n);
      ASSERT_EQ(Difference((*got)[o], CutOut(whole[v], computed), 0, 0), "") << Describe(graph, n);
      keep_only(v, &computed);
    }
  }
}

void CheckGraph(uint32_t seed, bool dense, std::map<std::string, int>* ops, int64_t* tight_boxes) {
  ImageGraph image(seed, dense);
  const Graph& graph = image.g.graph;
  for (const auto& [op, count] : image.counts) (*ops)[op] += count;
  SCOPED_TRACE(StrCat("seed ", seed, dense ? " dense\n" : "\n", Print(graph)));
  const GraphFacts facts(graph);
  const auto spaces = GraphSpaces::Resolve(graph, facts);
  ASSERT_TRUE(spaces.ok()) << spaces.status().message();
  Random random(seed);
  std::vector<Box> boxes;
  for (ValueId v : graph.outputs)
    boxes.push_back(RandomPart(random, Box::Whole(graph.value(v).type.dims)));
  const auto required = FindRequiredBoxes(*spaces, boxes);
  ASSERT_TRUE(required.ok()) << required.status().message();

  std::vector<ConstTensor> inputs;
  for (ValueId v : graph.inputs)
    inputs.push_back(RandomFloats(graph.value(v).type.dims, seed + IndexOf(v)));
  GraphRunner runner(graph);
  const auto whole = runner.RunWhole(inputs);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  CheckPiecesOfGraph(graph, *spaces, *required, *whole);
  if (::testing::Test::HasFatalFailure()) return;

  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& needed = required->values[IndexOf(graph.inputs[i])];
    std::optional<Box> affecting;
    for (int64_t e = 0; e < inputs[i].dims.elements(); ++e) {
      const Box position = PositionOf(inputs[i].dims, e);
      bool affects = false;
      for (int variant = 0; variant < 2 && !affects; ++variant) {
        std::vector<ConstTensor> changed = inputs;
        changed[i] = Changed(inputs[i], e, variant, 3e4f);  // enough to win any maximum
        const auto got = runner.RunWhole(changed);
        ASSERT_TRUE(got.ok());
        for (size_t o = 0; o < boxes.size(); ++o) {
          const size_t v = IndexOf(graph.outputs[o]);
          affects = affects || !SameIn((*got)[v], (*whole)[v], boxes[o]);
        }
      }
      if (!affects) continue;
      affecting = affecting ? Hull(*affecting, position) : position;
      ASSERT_TRUE(needed && Contains(*needed, position))
          << "input " << i << " at " << StrCat(position) << " affects the boxes";
    }
    if (!dense) continue;
    ASSERT_EQ(needed.has_value(), affecting.has_value());
    if (!needed) continue;
    EXPECT_EQ(*needed, *affecting)
        << "required " << StrCat(*needed) << ", affecting " << StrCat(*affecting);
    ++*tight_boxes;
  }
}

// The smallest interval that contains `i` and ends at multiples of the granule, or with the axis.
Interval SmallestAligned(Interval i, int64_t granule, int64_t extent) {
  Interval best{0, extent};
  for (int64_t begin = 0; begin <= i.begin; ++begin) {
    for (int64_t end = i.end; end <= extent; ++end) {
      const bool aligned = begin % granule == 0 && (end % granule == 0 || end == extent);
      if (aligned && end - begin < best.size()) best = {begin, end};
    }
  }
  return best;
}

// Every node has a random granule: pieces must be aligned, and as small as that allows.
void CheckGranules(uint32_t seed, int* extended) {
  ImageGraph image(seed, false);
  const Graph& graph = image.g.graph;
  SCOPED_TRACE(StrCat("seed ", seed, "\n", Print(graph)));
  const GraphFacts facts(graph);
  const auto spaces = GraphSpaces::Resolve(graph, facts);
  ASSERT_TRUE(spaces.ok()) << spaces.status().message();
  Random random(seed);
  std::vector<ValueBox> targets;
  for (ValueId v : graph.outputs)
    targets.push_back({v, RandomPart(random, Box::Whole(graph.value(v).type.dims))});
  std::vector<Dims> granules;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    granules.push_back({1, 0, 1 + Below(random, 5), 1 + Below(random, 5)});
  granules[0] = {};
  const auto required = FindRequiredBoxes(
      *spaces, {.targets = targets,
                .granule = [&](size_t n) -> std::span<const int64_t> { return granules[n]; }});
  ASSERT_TRUE(required.ok()) << required.status().message();
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!required->pieces[n] || granules[n].empty()) continue;
    const ValueId value = graph.nodes[n].outputs[0];
    const Box& needed = *required->values[IndexOf(value)];
    const Box got = OutputBoxes(*spaces->of_node(n), *required->pieces[n])[0];
    const auto without = PieceFor(*spaces->of_node(n), 0, needed);
    Box expected = needed;
    for (int d = 2; d < 4; ++d) {
      const int64_t extent = graph.value(value).type.dims[d], g = granules[n][d];
      expected[d] = SmallestAligned(needed[d], g, extent);
      EXPECT_TRUE(got[d].begin % g == 0 && (got[d].end % g == 0 || got[d].end == extent))
          << Describe(graph, n) << " granule " << g << " box " << StrCat(got);
    }
    EXPECT_TRUE(Contains(got, expected)) << Describe(graph, n);
    // Some nodes make more than is needed by themselves.
    if (!without || OutputBoxes(*spaces->of_node(n), *without)[0] != needed) continue;
    const auto aligned = PieceFor(*spaces->of_node(n), 0, expected);
    if (OutputBoxes(*spaces->of_node(n), *aligned)[0] != expected) continue;
    EXPECT_EQ(got, expected) << Describe(graph, n) << " needs " << StrCat(needed);
    *extended += expected != needed ? 1 : 0;
  }
  std::vector<ConstTensor> inputs;
  for (ValueId v : graph.inputs)
    inputs.push_back(RandomFloats(graph.value(v).type.dims, seed + IndexOf(v)));
  const auto whole = GraphRunner(graph).RunWhole(inputs);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  CheckPiecesOfGraph(graph, *spaces, *required, *whole);
}

TEST(RandomImageGraphs, PiecesAreExtendedToGranules) {
  int extended = 0;
  for (uint32_t seed = 0; seed < 300 && !HasFailure(); ++seed) CheckGranules(seed, &extended);
  EXPECT_GT(extended, 300);
}

constexpr uint32_t kGraphs = 1000;

TEST(RandomImageGraphs, RequiredBoxesContainWhatAffectsTheOutputs) {
  std::map<std::string, int> ops;
  int64_t tight = 0;
  for (uint32_t seed = 0; seed < kGraphs && !HasFailure(); ++seed)
    CheckGraph(seed, false, &ops, &tight);
  for (std::string_view op :
       {"Conv", "MaxPool", "AveragePool", "Add", "Transpose", "Slice", "Resize", "ConvTranspose",
        "Concat", "Pad", "SpaceToDepth", "Reshape", "Tile", "GlobalAveragePool", "Softmax"})
    EXPECT_GT(ops[std::string(op)], 10) << op;
}

// Here each path from an input element to an output element shows in some change, so the composed
// boxes are equal to brute force.
TEST(RandomImageGraphs, RequiredBoxesOfDenseGraphsAreTight) {
  std::map<std::string, int> ops;
  int64_t tight = 0;
  for (uint32_t seed = 0; seed < kGraphs && !HasFailure(); ++seed)
    CheckGraph(seed, true, &ops, &tight);
  EXPECT_GT(tight, 950);
  RecordProperty("tight_boxes", static_cast<int>(tight));
}

}  // namespace
}  // namespace msrt::testing

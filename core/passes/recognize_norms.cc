#include "core/passes/recognize_norms.h"

#include <algorithm>

#include "core/passes/rewrite.h"
#include "ops/infer.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

// A normalization found so far.
struct Norm {
  ValueId x = kNoValue;
  int axis = 0;  // normalises over this axis and all after it
  double epsilon = 0;
  bool centred = false;  // the mean is subtracted: LayerNormalization
};

// A mean over trailing axes that keeps the rank: {its input, the first axis}.
struct Mean {
  ValueId x;
  int axis;
};
std::optional<Mean> TakeMean(Match* m, ValueId v) {
  const Node* node = m->Take(v, "ReduceMean");
  if (node == nullptr) return std::nullopt;
  const NodeView view(m->r.graph(), *node);
  const Type& in = view.op().input(0);
  const auto axes = IntsAttrOrInput(view.op(), "axes", 1);
  if (!in.rank_known || !axes || axes->empty() || view.op().Int("keepdims") == 0)
    return std::nullopt;
  const auto sorted = NormalizeAxes(*axes, in.rank());
  if (!sorted.ok()) return std::nullopt;
  const int first = *std::min_element(sorted->begin(), sorted->end());
  // The axes are distinct, so this many from the first one on are all trailing axes.
  return first + static_cast<int>(sorted->size()) == in.rank()
             ? std::optional(Mean{node->inputs[0], first})
             : std::nullopt;
}

// Returns the base of a square.
ValueId TakeSquare(Match* m, ValueId v) {
  if (const Node* product = m->Take(v, "Mul"))
    return product->inputs[0] == product->inputs[1] ? product->inputs[0] : kNoValue;
  const auto power = m->TakeWithScalar(v, "Pow", true);
  return power && power->constant == 2 ? power->x : kNoValue;
}

// Matches mean(square of d) + epsilon. Returns {d, the first axis} and epsilon.
std::optional<Mean> TakeVariance(Match* m, ValueId v, double* epsilon) {
  const auto sum = m->TakeWithScalar(v, "Add");
  if (!sum || !(sum->constant >= 0)) return std::nullopt;
  *epsilon = sum->constant;
  auto mean = TakeMean(m, sum->x);
  if (!mean) return std::nullopt;
  mean->x = TakeSquare(m, mean->x);
  return mean->x == kNoValue ? std::nullopt : mean;
}

// Returns x if `v` is sqrt(x), or x to the power `exponent`.
ValueId TakeRoot(Match* m, ValueId v, double exponent) {
  if (exponent > 0) {
    if (const Node* root = m->Take(v, "Sqrt")) return root->inputs[0];
  } else {
    if (const Node* reciprocal = m->Take(v, "Reciprocal"))
      return TakeRoot(m, reciprocal->inputs[0], -exponent);
    if (const auto n = m->r.Producer(v, "Div");
        n && ScalarOf(m->r, m->r.node(*n).inputs[0]) == 1.0) {
      return TakeRoot(m, m->Take(v, "Div")->inputs[1], -exponent);
    }
  }
  const auto power = m->TakeWithScalar(v, "Pow", true);
  return power && power->constant == exponent ? power->x : kNoValue;
}

// Matches 1 / sqrt(variance + epsilon).
std::optional<Mean> TakeInverseDeviation(Match* m, ValueId v, double* epsilon) {
  const ValueId variance = TakeRoot(m, v, -0.5);
  return variance == kNoValue ? std::nullopt : TakeVariance(m, variance, epsilon);
}

// Returns x if d = x - mean(x).
ValueId TakeCentred(Match* m, ValueId d, int axis) {
  const Node* difference = m->Take(d, "Sub");
  if (difference == nullptr) return kNoValue;
  const auto mean = TakeMean(m, difference->inputs[1]);
  return mean && mean->axis == axis && mean->x == difference->inputs[0] ? mean->x : kNoValue;
}

// Matches a value divided by its own deviation. `root` is the last node of the pattern.
std::optional<Norm> FindQuotient(const Rewriter& r, const Node& node, size_t root, Match* m) {
  if (node.inputs.size() != 2 || (node.op != "Div" && node.op != "Mul")) return std::nullopt;
  for (size_t i = 0; i < (node.op == "Div" ? 1u : 2u); ++i) {
    Match trial = *m;
    Norm norm;
    const ValueId d = node.inputs[i], other = node.inputs[1 - i];
    std::optional<Mean> deviation;
    if (node.op == "Mul") {
      deviation = TakeInverseDeviation(&trial, other, &norm.epsilon);
    } else if (const ValueId variance = TakeRoot(&trial, other, 0.5); variance != kNoValue) {
      deviation = TakeVariance(&trial, variance, &norm.epsilon);
    }
    if (!deviation || deviation->x != d) continue;
    norm.x = d;
    norm.axis = deviation->axis;
    Match centred = trial;
    if (const ValueId x = TakeCentred(&centred, d, norm.axis);
        x != kNoValue && centred.OnlyFeeds(root)) {
      norm.x = x;
      norm.centred = true;
      trial.inner = centred.inner;
    }
    if (!trial.OnlyFeeds(root) || !r.type(norm.x).rank_known) continue;
    m->inner = trial.inner;
    return norm;
  }
  return std::nullopt;
}

// ---- scale and bias -----------------------------------------------------------------------------

// Returns `v` as a parameter with the normalised dims, or kNoValue if it does not have one element
// for each of them.
ValueId AsParameter(Rewriter* r, ValueId v, const Norm& norm) {
  const Type& x = r->type(norm.x);
  const Type& type = r->type(v);
  Dims trailing;
  for (int i = norm.axis; i < x.rank(); ++i) trailing.push_back(x.dims[i]);
  if (!type.concrete() || !trailing.known() || type.dtype != x.dtype) return kNoValue;
  if (type.dims == trailing) return v;
  const ConstTensor* constant = r->constant(v);
  if (constant == nullptr || type.rank() > x.rank()) return kNoValue;
  Dims dims = type.dims;
  while (dims.rank() > trailing.rank() && dims[0] == 1) dims.erase(0);
  if (!(dims == trailing)) return kNoValue;
  ConstTensor flat = *constant;
  flat.dims = trailing;
  return r->AddConstant(StrCat(r->graph().value(v).name, ".flat"), std::move(flat));
}

ValueId Ones(Rewriter* r, const Norm& norm) {
  const Type& x = r->type(norm.x);
  Dims trailing;
  for (int i = norm.axis; i < x.rank(); ++i) trailing.push_back(x.dims[i]);
  constexpr int64_t kMaxParameterElements = 1 << 20;  // an added constant should stay small
  if (!trailing.known() || trailing.elements() > kMaxParameterElements) return kNoValue;
  const auto count = static_cast<size_t>(trailing.elements());
  const std::string name = "ones";
  if (x.dtype == DType::kF64)
    return r->AddConstant(
        name, ConstTensor::Of<double>(DType::kF64, trailing, std::vector<double>(count, 1)));
  return r->AddConstant(name, ConstTensor::Floats(trailing, std::vector<float>(count, 1)));
}

bool Emit(Rewriter* r, size_t n, const Norm& norm, ValueId scale, ValueId bias) {
  if (scale == kNoValue) scale = Ones(r, norm);
  if (scale == kNoValue) return false;
  std::vector<ValueId> inputs{norm.x, scale};
  if (bias != kNoValue) inputs.push_back(bias);
  AttrList attrs{{"axis", int64_t{norm.axis} - r->type(norm.x).rank()}, {"epsilon", norm.epsilon}};
  // Statistics stay in the type of the data.
  if (r->type(norm.x).dtype == DType::kF64) attrs.Set("stash_type", DType::kF64);
  return r->Replace(n, norm.centred ? "LayerNormalization" : "RMSNormalization", std::move(inputs),
                    std::move(attrs));
}

// ---- forms --------------------------------------------------------------------------------------

// Matches norm(x) * scale, in either order; `parameter` is the scale.
std::optional<Norm> FindScaled(const Rewriter& r, const Node& node, size_t root, Match* m,
                               ValueId* scale) {
  if (node.op != "Mul") return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    for (std::string_view op : {"Div", "Mul"}) {
      Match trial = *m;
      const Node* quotient = trial.Take(node.inputs[i], op);
      if (quotient == nullptr) continue;
      if (auto norm = FindQuotient(r, *quotient, root, &trial)) {
        m->inner = trial.inner;
        *scale = node.inputs[1 - i];
        return norm;
      }
    }
  }
  return std::nullopt;
}

// Recognises norm(x) * scale + bias, where scale and bias are optional.
bool RecognizePlain(Rewriter* r, size_t n) {
  const Node node = r->node(n);
  Match m(*r);
  if (node.op != "Add") {
    ValueId scale = kNoValue;
    if (auto norm = FindScaled(*r, node, n, &m, &scale)) {
      scale = AsParameter(r, scale, *norm);
      if (scale != kNoValue && Emit(r, n, *norm, scale, kNoValue)) return true;
    }
    Match bare(*r);
    const auto norm = FindQuotient(*r, node, n, &bare);
    return norm && Emit(r, n, *norm, kNoValue, kNoValue);
  }
  for (size_t i = 0; i < 2; ++i) {
    Match trial(*r);
    ValueId scale = kNoValue;
    const Node* product = trial.Take(node.inputs[i], "Mul");
    auto norm = product != nullptr ? FindScaled(*r, *product, n, &trial, &scale) : std::nullopt;
    if (!norm || !norm->centred) continue;
    scale = AsParameter(r, scale, *norm);
    const ValueId bias = AsParameter(r, node.inputs[1 - i], *norm);
    if (scale != kNoValue && bias != kNoValue && Emit(r, n, *norm, scale, bias)) return true;
  }
  return false;
}

// x * g + (bias - mean * g) with g = scale / deviation.
struct FactoredNorm {
  Norm norm;
  ValueId mean = kNoValue, scale = kNoValue;
};
std::optional<FactoredNorm> TakeFactored(Match* m, ValueId g) {
  const Node* product = m->Take(g, "Mul");
  if (product == nullptr) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    Match trial = *m;
    FactoredNorm found;
    const auto deviation = TakeInverseDeviation(&trial, product->inputs[i], &found.norm.epsilon);
    const Node* difference = deviation ? trial.Take(deviation->x, "Sub") : nullptr;
    const auto mean =
        difference != nullptr ? TakeMean(&trial, difference->inputs[1]) : std::nullopt;
    if (!mean || mean->x != difference->inputs[0] || mean->axis != deviation->axis) continue;
    found.norm.x = mean->x;
    found.norm.axis = mean->axis;
    found.norm.centred = true;
    found.mean = difference->inputs[1];
    found.scale = product->inputs[1 - i];
    m->inner = trial.inner;
    return found;
  }
  return std::nullopt;
}

bool IsProductOf(const Node& node, ValueId a, ValueId b) {
  return (node.inputs[0] == a && node.inputs[1] == b) ||
         (node.inputs[0] == b && node.inputs[1] == a);
}

bool RecognizeFactored(Rewriter* r, size_t n) {
  const Node node = r->node(n);
  if (node.op != "Add") return false;
  for (size_t i = 0; i < 2; ++i) {
    Match m(*r);
    const Node* shift = m.Take(node.inputs[1 - i], "Sub");
    const Node* moved = shift != nullptr ? m.Take(shift->inputs[1], "Mul") : nullptr;
    const Node* scaled = moved != nullptr ? m.Take(node.inputs[i], "Mul") : nullptr;
    if (scaled == nullptr) continue;
    for (ValueId g : scaled->inputs) {
      Match trial = m;
      const auto found = TakeFactored(&trial, g);
      if (!found || !IsProductOf(*scaled, found->norm.x, g) ||
          !IsProductOf(*moved, found->mean, g) || !trial.OnlyFeeds(n))
        continue;
      const ValueId bias_source = shift->inputs[0];
      const ValueId scale = AsParameter(r, found->scale, found->norm),
                    bias = AsParameter(r, bias_source, found->norm);
      if (scale != kNoValue && bias != kNoValue && Emit(r, n, found->norm, scale, bias))
        return true;
    }
  }
  return false;
}

// ---- groups -------------------------------------------------------------------------------------

bool IsFilledWith(const Rewriter& r, ValueId v, float value) {
  const ConstTensor* c = v == kNoValue ? nullptr : r.constant(v);
  if (c == nullptr || c->dtype != DType::kF32) return false;
  const auto data = c->As<float>();
  return std::all_of(data.begin(), data.end(), [&](float x) { return x == value; });
}

// Returns the number of groups if a Reshape makes [batch, groups, rest] of [batch, channels, ...],
// else 0.
int64_t GroupsOf(const Rewriter& r, const Node& reshape) {
  const Type &x = r.type(reshape.inputs[0]), &y = r.type(reshape.outputs[0]);
  if (!x.rank_known || x.rank() < 3 || !y.rank_known || y.rank() != 3 || !IsKnown(x.dims[1]) ||
      !IsKnown(y.dims[1]))
    return 0;
  const NodeView view(r.graph(), reshape);
  const auto shape = view.op().Ints("shape");
  const bool copies_batch = !shape.empty() && shape[0] == 0 && view.op().Int("allowzero") == 0;
  if (!copies_batch && !ProvenEqual(x.dims[0], y.dims[0])) return 0;
  return y.dims[1] >= 1 && x.dims[1] % y.dims[1] == 0 ? y.dims[1] : 0;
}

// Whether a Reshape restores the dims of x: by the list of these dims, or proven.
bool RestoresDims(const Rewriter& r, const Node& reshape, ValueId x) {
  if (ProvenEqual(r.type(x), r.type(reshape.outputs[0]))) return true;
  const auto shape =
      reshape.inputs.size() == 2 ? r.Producer(reshape.inputs[1], "Shape") : std::nullopt;
  return shape && r.node(*shape).inputs[0] == x && r.node(*shape).attrs.empty();
}

// Returns a constant with one number for each channel (dim 1 of a tensor of this rank) as a list;
// kNoValue if it is anything else.
ValueId AsChannelList(Rewriter* r, ValueId v, int rank, int64_t channels) {
  const ConstTensor* c = r->constant(v);
  const int at = c == nullptr ? -1 : 1 - (rank - c->dims.rank());
  if (at < 0 || c->dtype != DType::kF32 || c->dims[at] != channels ||
      c->dims.elements() != channels)
    return kNoValue;
  ConstTensor flat = *c;
  flat.dims = {channels};
  return r->AddConstant(StrCat(r->graph().value(v).name, ".flat"), std::move(flat));
}

// Recognises PyTorch's form: an InstanceNormalization over the groups, followed by scale and bias
// for each channel.
bool RecognizeGroup(Rewriter* r, size_t n) {
  const Node sum = r->node(n);
  for (size_t i = 0; sum.op == "Add" && i < 2; ++i) {
    Match m(*r);
    const Node* product = m.Take(sum.inputs[i], "Mul");
    for (size_t j = 0; product != nullptr && j < 2; ++j) {
      Match side = m;
      const Node* back = side.Take(product->inputs[j], "Reshape");
      const Node* norm =
          back != nullptr ? side.Take(back->inputs[0], "InstanceNormalization") : nullptr;
      const Node* there = norm != nullptr ? side.Take(norm->inputs[0], "Reshape") : nullptr;
      if (there == nullptr || !IsFilledWith(*r, norm->inputs[1], 1) ||
          !IsFilledWith(*r, norm->inputs[2], 0))
        continue;
      const ValueId x = there->inputs[0], gamma = product->inputs[1 - j];
      const int64_t groups = GroupsOf(*r, *there);
      if (groups == 0 || !RestoresDims(*r, *back, x) || !side.OnlyFeeds(n)) continue;
      const int rank = r->type(x).rank();
      const int64_t channels = r->type(x).dims[1];
      const double epsilon = NodeView(r->graph(), *norm).op().Float("epsilon");
      const ValueId scale = AsChannelList(r, gamma, rank, channels),
                    bias = AsChannelList(r, sum.inputs[1 - i], rank, channels);
      if (scale == kNoValue || bias == kNoValue) continue;
      return r->Replace(n, "GroupNormalization", {x, scale, bias},
                        {{"num_groups", groups}, {"epsilon", epsilon}});
    }
  }
  return false;
}

bool IsReal(DType t) { return t == DType::kF32 || t == DType::kF64; }

}  // namespace

Status RecognizeNorms(const PassContext& context, Graph* graph) {
  // Every form contains one of these.
  const auto is_part = [](const Node& node) {
    return node.op == "ReduceMean" || node.op == "InstanceNormalization";
  };
  if (std::none_of(graph->nodes.begin(), graph->nodes.end(), is_part)) return OkStatus();
  Rewriter r(context, graph);
  // From the end: the last node of a chain is its root.
  for (size_t n = r.node_count(); n-- > 0;) {
    if (!r.Is(n, "Add") && !r.Is(n, "Mul") && !r.Is(n, "Div")) continue;
    if (!IsReal(r.type(r.node(n).outputs[0]).dtype)) continue;
    if (!RecognizePlain(&r, n) && !RecognizeFactored(&r, n)) RecognizeGroup(&r, n);
  }
  if (r.changed()) r.InferAgain();
  return OkStatus();
}

}  // namespace msrt

#include "core/passes/symbolic_shapes.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "ops/infer.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

constexpr int64_t kMostElements = 64;  // of a tensor whose elements are followed
constexpr size_t kMostWindows = 256;   // different ones; few networks have more than a dozen
constexpr uint64_t kWindows = uint64_t{1} << 48;
constexpr uint64_t kOpenDims = uint64_t{1} << 40;  // open dims are numbered from here, symbols below

}  // namespace

// ---- DimProduct -----------------------------------------------------------------------------------------------------------------

DimProduct DimProduct::Number(int64_t number) {
  DimProduct p;
  p.known_ = true;
  p.factor_ = number;
  return p;
}

DimProduct DimProduct::Dim(int64_t dim, ValueId value, int axis) {
  if (IsKnown(dim)) return Number(dim);
  DimProduct p = Number(1);
  p.count_ = 1;
  p.dims_[0] = IsSymbol(dim) ? SymbolOf(dim) : kOpenDims + uint64_t{IndexOf(value)} * kMaxRank + static_cast<uint64_t>(axis);
  return p;
}

DimProduct DimProduct::Windows(size_t number) {
  DimProduct p = Number(1);
  p.count_ = 1;
  p.dims_[0] = kWindows + number;
  return p;
}

std::optional<int64_t> DimProduct::dim() const {
  if (const auto n = number()) return *n >= 0 ? n : std::nullopt;
  const bool symbol = known_ && count_ == 1 && factor_ == 1 && dims_[0] < kOpenDims;
  return symbol ? std::optional(SymbolDim(static_cast<uint32_t>(dims_[0]))) : std::nullopt;
}

bool DimProduct::operator==(const DimProduct& other) const {
  return known_ && other.known_ && factor_ == other.factor_ && std::equal(dims_, dims_ + count_, other.dims_, other.dims_ + other.count_);
}

DimProduct DimProduct::Times(const DimProduct& other) const {
  DimProduct p = *this;
  if (!known_ || !other.known_ || count_ + other.count_ > kMost || !CheckedMul(factor_, other.factor_, &p.factor_)) return Unknown();
  if (p.factor_ == 0) return Number(0);
  std::merge(dims_, dims_ + count_, other.dims_, other.dims_ + other.count_, p.dims_);
  p.count_ += other.count_;
  return p;
}

DimProduct DimProduct::Plus(const DimProduct& other, int64_t sign) const {
  int64_t addend;
  if (!known_ || !other.known_ || !CheckedMul(other.factor_, sign, &addend)) return Unknown();
  if (other.factor_ == 0) return *this;
  DimProduct p = factor_ == 0 ? other : *this;
  if (!std::equal(p.dims_, p.dims_ + p.count_, other.dims_, other.dims_ + other.count_)) return Unknown();
  if (!CheckedAdd(factor_, addend, &p.factor_)) return Unknown();
  return p.factor_ == 0 ? Number(0) : p;
}

DimProduct DimProduct::Over(const DimProduct& other) const {
  const auto divisor = other.number();
  if (!known_ || !divisor || *divisor <= 0 || factor_ % *divisor != 0) return Unknown();
  DimProduct p = *this;
  p.factor_ /= *divisor;
  return p;
}

// ---- dims -----------------------------------------------------------------------------------------------------------------------

namespace {

// Output 0 has the dims of input 0.
bool KeepsDims(const Node& node) {
  static constexpr std::string_view kOps[] = {"LayerNormalization",
                                              "RMSNormalization",
                                              "BatchNormalization",
                                              "InstanceNormalization",
                                              "GroupNormalization",
                                              "Softmax",
                                              "LogSoftmax",
                                              "Cast",
                                              "CumSum"};
  if ((node.def->traits & kElementwise) != 0 && node.inputs.size() == 1) return true;
  return std::find(std::begin(kOps), std::end(kOps), node.op) != std::end(kOps);
}

DimProducts Broadcast(const DimProducts& a, const DimProducts& b) {
  const size_t rank = std::max(a.size(), b.size());
  const auto at = [&](const DimProducts& d, size_t i) { return i + d.size() < rank ? DimProduct::Number(1) : d[i + d.size() - rank]; };
  DimProducts out;
  for (size_t i = 0; i < rank; ++i) {
    const DimProduct x = at(a, i), y = at(b, i);
    out.push_back(x == y || y == DimProduct::Number(1) ? x : x == DimProduct::Number(1) ? y : DimProduct::Unknown());
  }
  return out;
}

// A -1 in the shape is what remains of the input when dims that stay in their place are left out, as for the run.
DimProduct Remaining(const DimProducts& in, const DimProducts& out, size_t inferred) {
  DimProduct from = DimProduct::Number(1), to = from;
  for (size_t i = 0; i < std::max(in.size(), out.size()); ++i) {
    const bool same = i < in.size() && i < out.size() && i != inferred && in[i] == out[i];
    if (!same && i < in.size()) from = from.Times(in[i]);
    if (!same && i < out.size() && i != inferred) to = to.Times(out[i]);
  }
  return from.Over(to);
}

std::optional<DimProducts> ReducedDims(const OpView& op, const DimProducts& in) {
  const auto axes = IntsAttrOrInput(op, "axes", 1);
  if (!axes || axes->empty()) return std::nullopt;
  const auto reduced = NormalizeAxes(*axes, static_cast<int>(in.size()));
  if (!reduced.ok()) return std::nullopt;
  DimProducts out;
  for (int i = 0; i < static_cast<int>(in.size()); ++i) {
    const bool gone = std::find(reduced->begin(), reduced->end(), i) != reduced->end();
    if (!gone) out.push_back(in[static_cast<size_t>(i)]);
    else if (op.Int("keepdims") != 0) out.push_back(DimProduct::Number(1));
  }
  return out;
}

std::optional<DimProducts> ReshapedDims(const OpView& op, const DimProducts& in, const DimProducts& shape) {
  DimProducts out;
  std::optional<size_t> inferred;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto number = shape[i].number();
    if (number == 0 && op.Int("allowzero") == 0) {
      if (i >= in.size()) return std::nullopt;
      out.push_back(in[i]);
    } else if (number == -1) {
      inferred = i;
      out.push_back(DimProduct::Unknown());
    } else {
      out.push_back(shape[i]);
    }
  }
  if (inferred) out[*inferred] = Remaining(in, out, *inferred);
  return out;
}

}  // namespace

SymbolicShapes::SymbolicShapes(const Graph& graph) : graph_(graph), dims_(graph.value_count()), data_(graph.value_count()) {
  for (uint32_t v = 0; v < graph.value_count(); ++v) {
    Declare(ValueId(v));
    const ConstTensor* c = graph.value(ValueId(v)).constant.get();
    if (c == nullptr || !kIndexTypes.Has(c->dtype) || c->dims.rank() > 1 || c->dims.elements() > kMostElements) continue;
    DimProducts numbers;
    for (int64_t n : IntValues(*c)) numbers.push_back(DimProduct::Number(n));
    data_[v] = std::move(numbers);
  }
}

void SymbolicShapes::Declare(ValueId v) {
  const Type& type = graph_.value(v).type;
  if (!type.is_tensor() || !type.rank_known) return;
  DimProducts dims;
  for (int i = 0; i < type.rank(); ++i) dims.push_back(DimProduct::Dim(type.dims[i], v, i));
  dims_[IndexOf(v)] = std::move(dims);
}

void SymbolicShapes::Follow(const Node& node) {
  if (node.def == nullptr || !node.domain.empty() || node.outputs.empty() || !has(node.outputs[0])) return;
  if (node.inputs.empty() || node.inputs[0] == kNoValue) return;
  const ValueId out = node.outputs[0];
  if (!std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v == kNoValue || has(v); })) return;
  if (const auto found = DimsOf(node); found && dims(out) && found->size() == dims(out)->size()) {
    // What the type says stays; an open dim is what it was found to be.
    for (size_t i = 0; i < found->size(); ++i) {
      if (!(*dims_[IndexOf(out)])[i].dim() && (*found)[i].known()) (*dims_[IndexOf(out)])[i] = (*found)[i];
    }
  }
  const Type& type = graph_.value(out).type;
  const bool followed = kIndexTypes.Has(type.dtype) || type.dtype == DType::kBool;
  if (data(out) || !followed || !type.rank_known || type.rank() > 1) return;
  auto found = DataOf(node);
  const int64_t elements = type.rank() == 0 ? 1 : type.dims[0];
  if (found && static_cast<int64_t>(found->size()) == elements && elements <= kMostElements) data_[IndexOf(out)] = std::move(found);
}

void SymbolicShapes::FollowAll() {
  for (const Node& node : graph_.nodes) Follow(node);
}

bool SymbolicShapes::AreEqual(ValueId a, ValueId b) const {
  if (!has(a) || !has(b) || !dims(a) || !dims(b) || graph_.value(a).type.dtype != graph_.value(b).type.dtype) return false;
  return std::equal(dims(a)->begin(), dims(a)->end(), dims(b)->begin(), dims(b)->end());
}

DimProduct SymbolicShapes::WindowsOver(const DimProduct& dim, int64_t room, int64_t stride) {
  if (stride == 1 && room == -1) return dim;
  const auto same = [&](const WindowCount& w) { return w.dim == dim && w.room == room && w.stride == stride; };
  const auto it = std::find_if(windows_.begin(), windows_.end(), same);
  if (it != windows_.end()) return DimProduct::Windows(static_cast<size_t>(it - windows_.begin()));
  if (!dim.known() || windows_.size() == kMostWindows) return DimProduct::Unknown();
  windows_.push_back({dim, room, stride});
  return DimProduct::Windows(windows_.size() - 1);
}

// Convolutions and pools with pads of their own: outputs of equal windows over equal images have equal dims.
std::optional<DimProducts> SymbolicShapes::DimsOfWindows(const Node& node) {
  const NodeView view(graph_, node);
  const OpView& op = view.op();
  const DimProducts& x = *dims(node.inputs[0]);
  const std::string_view mode = op.String("auto_pad");
  const bool conv = node.op == "Conv";
  if (x.size() < 3 || (mode != "NOTSET" && mode != "VALID") || (!conv && op.Int("ceil_mode") != 0)) return std::nullopt;
  const auto kernel = conv ? std::span<const int64_t>(op.input(1).dims) : op.Ints("kernel_shape");
  const auto strides = op.Ints("strides"), dilations = op.Ints("dilations"), pads = op.Ints("pads");
  const size_t space = x.size() - 2, skipped = conv ? 2 : 0;
  if (kernel.size() != space + skipped) return std::nullopt;
  DimProducts out{x[0], conv ? DimProduct::Unknown() : x[1]};
  for (size_t i = 0; i < space; ++i) {
    const int64_t taps = kernel[i + skipped], dilation = dilations.empty() ? 1 : dilations[i];
    if (!IsKnown(taps)) return std::nullopt;
    const int64_t padding = pads.empty() ? 0 : pads[i] + pads[space + i];
    // Inference has bounded all of them far below an overflow.
    out.push_back(WindowsOver(x[i + 2], padding - (dilation * (taps - 1) + 1), strides.empty() ? 1 : strides[i]));
  }
  return out;
}

std::optional<DimProducts> SymbolicShapes::DimsOf(const Node& node) {
  const NodeView view(graph_, node);
  const OpView& op = view.op();
  if (!op.has_input(0) || !dims(node.inputs[0])) return std::nullopt;
  const DimProducts& x = *dims(node.inputs[0]);
  if (KeepsDims(node)) return x;
  if (node.op == "Conv" || node.op == "MaxPool" || node.op == "AveragePool") return DimsOfWindows(node);
  if (node.op == "Transpose") {
    DimProducts out(x.rbegin(), x.rend());
    const auto perm = op.Ints("perm");
    for (size_t i = 0; i < perm.size() && perm.size() == x.size(); ++i) out[i] = x[static_cast<size_t>(perm[i])];
    return out;
  }
  if (node.op == "Reshape") {
    if (op.Has("shape")) {
      DimProducts shape;
      for (int64_t d : op.Ints("shape")) shape.push_back(DimProduct::Number(d));
      return ReshapedDims(op, x, shape);
    }
    return op.has_input(1) && data(node.inputs[1]) ? ReshapedDims(op, x, *data(node.inputs[1])) : std::nullopt;
  }
  if (node.op == "Gather" && op.has_input(1) && dims(node.inputs[1])) {
    const auto axis = NormalizeAxis(op.Int("axis"), static_cast<int>(x.size()));
    if (!axis.ok()) return std::nullopt;
    DimProducts out(x.begin(), x.begin() + *axis);
    out.insert(out.end(), dims(node.inputs[1])->begin(), dims(node.inputs[1])->end());
    out.insert(out.end(), x.begin() + *axis + 1, x.end());
    return out;
  }
  if ((node.def->traits & kElementwise) != 0) {
    DimProducts out = x;
    for (ValueId v : node.inputs) {
      if (v == kNoValue) continue;
      if (!dims(v)) return std::nullopt;
      out = Broadcast(out, *dims(v));
    }
    return out;
  }
  if (node.op.starts_with("Reduce")) return ReducedDims(op, x);
  if (node.op == "MatMul" && op.input(1).rank_known && op.input(1).rank() == 2 && x.size() >= 2) {
    DimProducts out = x;
    out.back() = (*dims(node.inputs[1]))[1];
    return out;
  }
  return std::nullopt;
}

// ---- elements -------------------------------------------------------------------------------------------------------------------

namespace {

using Pair = DimProduct (*)(const DimProduct&, const DimProduct&);

DimProduct Equals(const DimProduct& a, const DimProduct& b) {
  if (a == b) return DimProduct::Number(1);
  const auto differ = [](const DimProduct& x, const DimProduct& y) {
    return (x.number() && y.number()) || (x.IsNeverNegative() && y.number() && *y.number() < 0);
  };
  return differ(a, b) || differ(b, a) ? DimProduct::Number(0) : DimProduct::Unknown();
}

Pair PairOf(std::string_view op) {
  if (op == "Add") return [](const DimProduct& a, const DimProduct& b) { return a.Plus(b, 1); };
  if (op == "Sub") return [](const DimProduct& a, const DimProduct& b) { return a.Plus(b, -1); };
  if (op == "Mul") return [](const DimProduct& a, const DimProduct& b) { return a.Times(b); };
  if (op == "Div") return [](const DimProduct& a, const DimProduct& b) { return a.Over(b); };
  if (op == "Equal") return Equals;
  return nullptr;
}

// Element i of a list that is as long as the result, or has one element.
const DimProduct& At(const DimProducts& list, size_t i) { return list[list.size() == 1 ? 0 : i]; }

std::optional<DimProducts> Sliced(const OpView& op, const DimProducts& list) {
  const auto starts = IntsAttrOrInput(op, "starts", 1), ends = IntsAttrOrInput(op, "ends", 2), steps = IntsAttrOrInput(op, "steps", 4);
  if (!starts || !ends || !steps || starts->size() != 1 || ends->size() != 1) return std::nullopt;
  if (!steps->empty() && (*steps)[0] != 1) return std::nullopt;
  const auto size = static_cast<int64_t>(list.size());
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  const int64_t begin = clamp((*starts)[0]), end = std::max(begin, clamp((*ends)[0]));
  return DimProducts(list.begin() + begin, list.begin() + end);
}

std::optional<DimProducts> Gathered(const OpView& op, const DimProducts& list, const DimProducts& indices) {
  if (op.input(0).rank() != 1) return std::nullopt;
  DimProducts out;
  for (const DimProduct& index : indices) {
    const auto i = index.number();
    const auto size = static_cast<int64_t>(list.size());
    if (!i || *i < -size || *i >= size) return std::nullopt;
    out.push_back(list[static_cast<size_t>(*i < 0 ? *i + size : *i)]);
  }
  return out;
}

std::optional<DimProducts> ShapeOf(const OpView& op, const DimProducts& dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t begin = clamp(op.Int("start")), end = op.Has("end") ? clamp(op.Int("end")) : rank;
  return DimProducts(dims.begin() + begin, dims.begin() + std::max(begin, end));
}

DimProduct ProductOf(const DimProducts& list) {
  DimProduct product = DimProduct::Number(1);
  for (const DimProduct& p : list) product = product.Times(p);
  return product;
}

// A number must fit into the type it is cast to. A dim does in every run that does not fail.
bool FitsInto(DType dtype, const DimProducts& list) {
  if (dtype == DType::kI64) return true;
  return dtype == DType::kI32 && std::all_of(list.begin(), list.end(), [](const DimProduct& p) {
           return !p.number() || (*p.number() >= INT32_MIN && *p.number() <= INT32_MAX);
         });
}

}  // namespace

std::optional<DimProducts> SymbolicShapes::DataOf(const Node& node) const {
  const NodeView view(graph_, node);
  const OpView& op = view.op();
  if (node.op == "Shape") return dims(node.inputs[0]) ? ShapeOf(op, *dims(node.inputs[0])) : std::nullopt;
  if (node.op == "Size") return dims(node.inputs[0]) ? std::optional(DimProducts{ProductOf(*dims(node.inputs[0]))}) : std::nullopt;
  DimProducts joined;
  size_t most = 1;
  for (ValueId v : node.inputs) {
    if (v == kNoValue) continue;
    // Lists that are attributes in the usual form are read through the view.
    if (!data(v)) return std::nullopt;
    joined.insert(joined.end(), data(v)->begin(), data(v)->end());
    most = data(v)->size() == 1 ? most : data(v)->size();
  }
  const DimProducts& first = *data(node.inputs[0]);
  if (node.op == "Concat") return joined;
  if (node.op == "Identity" || node.op == "Unsqueeze" || node.op == "Squeeze" || node.op == "Reshape") return first;
  if (node.op == "Cast") return FitsInto(op.Dtype("to"), first) && kIndexTypes.Has(op.input(0).dtype) ? std::optional(first) : std::nullopt;
  if (node.op == "Slice") return Sliced(op, first);
  if (node.op == "Gather") return Gathered(op, first, *data(node.inputs[1]));
  if (node.op == "ReduceProd") return op.Int("noop_with_empty_axes") == 0 ? std::optional(DimProducts{ProductOf(first)}) : std::nullopt;
  for (ValueId v : node.inputs) {
    if (v == kNoValue || (data(v)->size() != 1 && data(v)->size() != most)) return std::nullopt;
  }
  DimProducts out;
  if (node.op == "Where") {
    const DimProducts &condition = first, &yes = *data(node.inputs[1]), &no = *data(node.inputs[2]);
    for (size_t i = 0; i < most; ++i) {
      const auto chosen = At(condition, i).number();
      out.push_back(!chosen ? DimProduct::Unknown() : *chosen != 0 ? At(yes, i) : At(no, i));
    }
    return out;
  }
  const Pair pair = PairOf(node.op);
  if (pair == nullptr) return std::nullopt;
  for (size_t i = 0; i < most; ++i) out.push_back(pair(At(first, i), At(*data(node.inputs[1]), i)));
  return out;
}

}  // namespace msrt

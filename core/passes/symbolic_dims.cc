// SymbolicShapes: the dims of outputs from the dims of inputs, op by op.
#include <algorithm>

#include "core/passes/symbolic_shapes.h"
#include "ops/infer.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

bool IsOneOf(std::string_view op, std::span<const std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

// Whether output 0 has the dims of input 0.
bool KeepsDims(const Node& node) {
  static constexpr std::string_view kOps[] = {"LayerNormalization",
                                              "RMSNormalization",
                                              "BatchNormalization",
                                              "InstanceNormalization",
                                              "GroupNormalization",
                                              "Softmax",
                                              "LogSoftmax",
                                              "Cast",
                                              "CumSum",
                                              "Trilu",
                                              "ScatterND",
                                              "ScatterElements"};
  return ((node.def->traits & kElementwise) != 0 && node.inputs.size() == 1) ||
         IsOneOf(node.op, kOps);
}

// Returns the dim for -1 in the shape of a Reshape: the rest of the input without the dims that
// keep their position, as at run time.
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

std::optional<DimProducts> ReshapedDims(const OpView& op, const DimProducts& in,
                                        const DimProducts& shape) {
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

DimProducts TransposedDims(const OpView& op, const DimProducts& x) {
  DimProducts out(x.rbegin(), x.rend());
  const auto perm = op.Ints("perm");
  for (size_t i = 0; i < perm.size() && perm.size() == x.size(); ++i)
    out[i] = x[static_cast<size_t>(perm[i])];
  return out;
}

std::optional<DimProducts> UnsqueezedDims(const OpView& op, const DimProducts& x) {
  const auto axes = IntsAttrOrInput(op, "axes", 1);
  if (!axes) return std::nullopt;
  auto sorted = NormalizeAxes(*axes, static_cast<int>(x.size() + axes->size()));
  if (!sorted.ok()) return std::nullopt;
  std::sort(sorted->begin(), sorted->end());
  DimProducts out = x;
  for (int axis : *sorted) out.insert(out.begin() + axis, DimProduct::Number(1));
  return out;
}

std::optional<DimProducts> SqueezedDims(const OpView& op, const DimProducts& x) {
  const auto axes = IntsAttrOrInput(op, "axes", 1);
  if (!axes || axes->empty()) return std::nullopt;
  auto sorted = NormalizeAxes(*axes, static_cast<int>(x.size()));
  if (!sorted.ok()) return std::nullopt;
  std::sort(sorted->rbegin(), sorted->rend());
  DimProducts out = x;
  for (int axis : *sorted) out.erase(out.begin() + axis);
  return out;
}

std::optional<DimProducts> FlattenedDims(const OpView& op, const DimProducts& x) {
  const int64_t given = op.Int("axis"), rank = static_cast<int64_t>(x.size()),
                axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) return std::nullopt;
  DimProducts out(2, DimProduct::Number(1));
  for (int64_t i = 0; i < rank; ++i)
    out[i < axis ? 0 : 1] = out[i < axis ? 0 : 1].Times(x[static_cast<size_t>(i)]);
  return out;
}

// Returns the dims of every output; the split axis is taken from the types.
std::optional<DimProducts> SplitDims(const OpView& op, const DimProducts& x) {
  const auto axis = NormalizeAxis(op.Int("axis"), static_cast<int>(x.size()));
  if (!axis.ok()) return std::nullopt;
  DimProducts out = x;
  out[static_cast<size_t>(*axis)] = DimProduct::Unknown();
  return out;
}

// Handles ops that move elements and need only the dims of their first input.
std::optional<DimProducts> MovedDims(const OpView& op, const DimProducts& x) {
  if (op.op() == "Transpose") return TransposedDims(op, x);
  if (op.op() == "Unsqueeze") return UnsqueezedDims(op, x);
  if (op.op() == "Squeeze") return SqueezedDims(op, x);
  if (op.op() == "Flatten") return FlattenedDims(op, x);
  if (op.op() == "Split") return SplitDims(op, x);
  return std::nullopt;
}

}  // namespace

std::optional<DimProducts> SymbolicShapes::ListedDims(const Node& node, size_t i) const {
  return i < node.inputs.size() && node.inputs[i] != kNoValue ? data(node.inputs[i]) : std::nullopt;
}

// Convolutions and pools with explicit pads: equal windows over equal images have outputs of equal
// dims.
std::optional<DimProducts> SymbolicShapes::DimsOfWindows(const Node& node) {
  const NodeView view(graph_, node);
  const OpView& op = view.op();
  const DimProducts& x = *dims(node.inputs[0]);
  const std::string_view mode = op.String("auto_pad");
  const bool conv = node.op == "Conv";
  if (x.size() < 3 || (mode != "NOTSET" && mode != "VALID") || (!conv && op.Int("ceil_mode") != 0))
    return std::nullopt;
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
    out.push_back(WindowsOver(x[i + 2], padding - (dilation * (taps - 1) + 1),
                              strides.empty() ? 1 : strides[i]));
  }
  return out;
}

// Batches are broadcast; the flags are those of Gemm and msrt.FusedMatMul.
std::optional<DimProducts> SymbolicShapes::DimsOfProduct(const Node& node) {
  const DimProducts &a = *dims(node.inputs[0]),
                    *b = dims(node.inputs[1]) ? &*dims(node.inputs[1]) : nullptr;
  if (b == nullptr || a.size() < 2 || b->size() < 2) return std::nullopt;
  const NodeView view(graph_, node);
  const bool plain = node.op == "MatMul";
  const size_t row = !plain && view.op().Int("transA") != 0 ? 1 : 2,
               column = !plain && view.op().Int("transB") != 0 ? 2 : 1;
  DimProducts out =
      Broadcast(DimProducts(a.begin(), a.end() - 2), DimProducts(b->begin(), b->end() - 2));
  out.push_back(a[a.size() - row]);
  out.push_back((*b)[b->size() - column]);
  return out;
}

std::optional<DimProducts> SymbolicShapes::DimsOfConcat(const Node& node) {
  DimProducts out = *dims(node.inputs[0]);
  const auto axis =
      NormalizeAxis(NodeView(graph_, node).op().Int("axis"), static_cast<int>(out.size()));
  if (!axis.ok()) return std::nullopt;
  DimProduct& total = out[static_cast<size_t>(*axis)];
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const auto& part = dims(node.inputs[i]);
    if (!part || part->size() != out.size()) return std::nullopt;
    total = Sum(total, (*part)[static_cast<size_t>(*axis)]);
  }
  return out;
}

// Slices from the front; the dims of others are taken from the types.
std::optional<DimProducts> SymbolicShapes::DimsOfSlice(const Node& node) {
  const NodeView view(graph_, node);
  const OpView& op = view.op();
  const auto starts = IntsAttrOrInput(op, "starts", 1), axes = IntsAttrOrInput(op, "axes", 3),
             steps = IntsAttrOrInput(op, "steps", 4);
  if (!starts || !axes || !steps) return std::nullopt;
  DimProducts ends;
  if (const auto numbers = IntsAttrOrInput(op, "ends", 2)) {
    for (int64_t end : *numbers) ends.push_back(DimProduct::Number(end));
  } else if (const auto listed = ListedDims(node, 2)) {
    ends = *listed;
  }
  DimProducts out = *dims(node.inputs[0]);
  if (ends.size() != starts->size() || (!axes->empty() && axes->size() != ends.size()))
    return std::nullopt;
  for (size_t i = 0; i < ends.size(); ++i) {
    const auto axis = NormalizeAxis(axes->empty() ? static_cast<int64_t>(i) : (*axes)[i],
                                    static_cast<int>(out.size()));
    if (!axis.ok()) return std::nullopt;
    DimProduct& dim = out[static_cast<size_t>(*axis)];
    const bool from_front =
        (*starts)[i] == 0 && (i >= steps->size() || (*steps)[i] == 1) && ends[i].IsNeverNegative();
    constexpr int64_t kToTheEnd = INT32_MAX;  // exporters write this or more
    if (!from_front) dim = DimProduct::Unknown();
    else if (!ends[i].number() || *ends[i].number() < kToTheEnd) dim = Smaller(dim, ends[i]);
  }
  return out;
}

std::optional<DimProducts> SymbolicShapes::DimsOfGather(const Node& node) {
  const NodeView view(graph_, node);
  const OpView& op = view.op();
  if (!op.has_input(1) || !dims(node.inputs[1])) return std::nullopt;
  const DimProducts &x = *dims(node.inputs[0]), &indices = *dims(node.inputs[1]);
  if (node.op == "GatherElements") return indices;
  if (node.op == "GatherND") {
    const auto depth = indices.empty() ? std::nullopt : indices.back().number();
    const int64_t first = depth ? op.Int("batch_dims") + *depth : -1;
    if (first < 0 || first > static_cast<int64_t>(x.size())) return std::nullopt;
    DimProducts out(indices.begin(), indices.end() - 1);
    out.insert(out.end(), x.begin() + first, x.end());
    return out;
  }
  const auto axis = NormalizeAxis(op.Int("axis"), static_cast<int>(x.size()));
  if (!axis.ok()) return std::nullopt;
  DimProducts out(x.begin(), x.begin() + *axis);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), x.begin() + *axis + 1, x.end());
  return out;
}

std::optional<DimProducts> SymbolicShapes::DimsOfBroadcast(const Node& node) {
  DimProducts out = *dims(node.inputs[0]);
  for (ValueId v : node.inputs) {
    if (v == kNoValue) continue;
    if (!dims(v)) return std::nullopt;
    out = Broadcast(out, *dims(v));
  }
  return out;
}

// The dims of the queries with the width of the values; for packed heads they are taken from the
// type.
std::optional<DimProducts> SymbolicShapes::DimsOfAttention(const Node& node) {
  DimProducts out = *dims(node.inputs[0]);
  const auto& value = dims(node.inputs[2]);
  out.back() =
      out.size() == 4 && value && value->size() == 4 ? value->back() : DimProduct::Unknown();
  return out;
}

std::optional<DimProducts> SymbolicShapes::DimsOf(const Node& node) {
  const NodeView view(graph_, node);
  const OpView& op = view.op();
  if (!op.has_input(0)) return std::nullopt;
  static constexpr std::string_view kFused[] = {"FusedMatMul", "FusedAttention"};
  if (!node.domain.empty() && (node.domain != "msrt" || !IsOneOf(node.op, kFused)))
    return std::nullopt;
  if (node.op == "ConstantOfShape") return ListedDims(node, 0);
  if (node.op == "Range") {
    const auto start = ListedDims(node, 0), limit = ListedDims(node, 1), step = ListedDims(node, 2);
    const bool counts = start && limit && step && (*step)[0].number() == 1;
    const DimProduct count = counts ? Difference((*limit)[0], (*start)[0]) : DimProduct::Unknown();
    return count.IsNeverNegative() ? std::optional(DimProducts{count}) : std::nullopt;
  }
  if (!dims(node.inputs[0])) return std::nullopt;
  const DimProducts& x = *dims(node.inputs[0]);
  if (KeepsDims(node)) return x;
  if (node.op == "Conv" || node.op == "MaxPool" || node.op == "AveragePool")
    return DimsOfWindows(node);
  if (node.op == "Reshape") {
    if (!op.Has("shape"))
      return ListedDims(node, 1) ? ReshapedDims(op, x, *ListedDims(node, 1)) : std::nullopt;
    DimProducts shape;
    for (int64_t d : op.Ints("shape")) shape.push_back(DimProduct::Number(d));
    return ReshapedDims(op, x, shape);
  }
  if (node.op == "Expand")
    return ListedDims(node, 1) ? std::optional(Broadcast(x, *ListedDims(node, 1))) : std::nullopt;
  if (node.op == "Concat") return DimsOfConcat(node);
  if (node.op == "Slice") return DimsOfSlice(node);
  if (node.op.starts_with("Gather")) return DimsOfGather(node);
  if (node.op.starts_with("Reduce")) return ReducedDims(op, x);
  if (node.op.ends_with("MatMul") || node.op == "Gemm") return DimsOfProduct(node);
  if (node.op.ends_with("Attention")) return DimsOfAttention(node);
  if ((node.def->traits & kElementwise) != 0) return DimsOfBroadcast(node);
  return MovedDims(op, x);
}

}  // namespace msrt

#include "core/passes/fold_pad.h"

#include <algorithm>
#include <cmath>

#include "core/passes/rewrite.h"
#include "core/region/pad.h"
#include "ops/infer.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

struct SpacePad {
  std::vector<int64_t> before, after;  // of spatial axes
  double value = 0;
};

// Returns the Pad as pads of an image, if it has a constant value and only extends spatial axes.
std::optional<SpacePad> SpacePadOf(const Rewriter& r, const Node& pad) {
  const NodeView view(r.graph(), pad);
  const OpView& op = view.op();
  const int rank = op.input(0).rank();
  const auto pads = IntsAttrOrInput(op, "pads", 1), axes = IntsAttrOrInput(op, "axes", 3);
  if (op.String("mode") != "constant" || !op.input(0).rank_known || rank < 3 || !pads || !axes ||
      op.Has("whole_dims"))
    return std::nullopt;
  SpacePad space{{}, {}, op.Has("value") ? op.Float("value") : 0};
  if (op.has_input(2)) {
    const auto value = ScalarOf(r, pad.inputs[2]);
    if (!value) return std::nullopt;
    space.value = *value;
  }
  const PadAmounts amounts = SpreadPads(*pads, *axes, rank);
  for (int d = 0; d < rank; ++d) {
    const int64_t before = amounts.before[d], after = amounts.after[d];
    if (d < 2 ? before != 0 || after != 0 : before < 0 || after < 0) return std::nullopt;
    if (d < 2) continue;
    space.before.push_back(before);
    space.after.push_back(after);
  }
  return space;
}

bool IsNeverNegative(const Rewriter& r, ValueId v) {
  const auto n = r.Producer(v);
  if (!n || !r.IsLive(*n)) return false;
  const Node& node = r.node(*n);
  if (node.op == "Clip") {
    const NodeView view(r.graph(), node);
    return node.inputs.size() == 1 && view.op().Has("min") && view.op().Float("min") >= 0;
  }
  return node.op == "Relu" || node.op == "Sigmoid" || node.op == "HardSigmoid" ||
         node.op == "Abs" || node.op == "Exp";
}

// Whether each window contains an element of the image, so that no result comes from padding alone.
bool EveryWindowSeesTheImage(const OpView& op, const Dims& image, const SpacePad& pad,
                             std::span<const int64_t> own) {
  const auto kernel = op.Ints("kernel_shape"), dilations = op.Ints("dilations");
  if (std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; }))
    return false;
  const size_t space = pad.before.size();
  for (size_t i = 0; i < space; ++i) {
    const int64_t before = pad.before[i] + (own.empty() ? 0 : own[i]),
                  after = pad.after[i] + (own.empty() ? 0 : own[space + i]);
    if (before >= kernel[i] || after >= kernel[i] || image[static_cast<int>(i) + 2] < 1)
      return false;
  }
  return true;
}

// Whether `op` computes the same with the amounts of the Pad before it added to its own pads.
bool MayTake(const Rewriter& r, const OpView& op, ValueId image, const SpacePad& pad) {
  const auto own = op.Ints("pads");
  const bool has_own = std::any_of(own.begin(), own.end(), [](int64_t p) { return p != 0; });
  if (op.op() == "Conv") return pad.value == 0;
  // In ceil mode windows may begin in the last rows of the image, but not in padding.
  if (op.Int("ceil_mode") != 0 || op.has_output(1)) return false;
  if (!EveryWindowSeesTheImage(op, r.type(image).dims, pad, own)) return false;
  if (op.op() == "AveragePool")
    return pad.value == 0 && (!has_own || op.Int("count_include_pad") == 1);
  return pad.value == -std::numeric_limits<double>::infinity() ||
         (pad.value == 0 && IsNeverNegative(r, image));
}

void Fold(Rewriter* r, size_t n) {
  const Node node = r->node(n);
  const auto p = node.inputs.empty() ? std::nullopt : r->Producer(node.inputs[0], "Pad");
  if (!p || r->uses(node.inputs[0]) != 1) return;
  const auto pad = SpacePadOf(*r, r->node(*p));
  const NodeView view(r->graph(), node);
  const OpView& op = view.op();
  const std::string_view mode = op.String("auto_pad");
  if (!pad || (mode != "NOTSET" && mode != "VALID")) return;
  const ValueId image = r->node(*p).inputs[0];
  if (!MayTake(*r, op, image, *pad)) return;
  const size_t space = pad->before.size();
  std::vector<int64_t> pads(op.Ints("pads").begin(), op.Ints("pads").end());
  pads.resize(2 * space, 0);
  for (size_t i = 0; i < space; ++i) pads[i] += pad->before[i], pads[space + i] += pad->after[i];
  AttrList attrs = node.attrs;
  attrs.Remove("auto_pad");
  attrs.Set("pads", std::move(pads));
  if (node.op == "AveragePool") attrs.Set("count_include_pad", int64_t{1});
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = image;
  r->Replace(n, node.op, std::move(inputs), std::move(attrs));
}

}  // namespace

Status FoldPad(const PassContext& context, Graph* graph) {
  if (std::none_of(graph->nodes.begin(), graph->nodes.end(),
                   [](const Node& node) { return node.op == "Pad"; }))
    return OkStatus();
  Rewriter r(context, graph);
  for (size_t n = 0; n < r.node_count(); ++n) {
    if (r.Is(n, "Conv") || r.Is(n, "AveragePool") || r.Is(n, "MaxPool")) Fold(&r, n);
  }
  return OkStatus();
}

}  // namespace msrt

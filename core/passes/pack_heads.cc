#include "core/passes/pack_heads.h"

#include <algorithm>

#include "core/passes/rewrite.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

// Whether a Transpose maps [batch, rows, heads, width] to [batch, heads, rows, width] or back.
bool SwapsHeadsAndRows(const Rewriter& r, size_t transpose) {
  static constexpr int64_t kSwap[] = {0, 2, 1, 3};
  const NodeView view(r.graph(), r.node(transpose));
  const auto perm = view.op().Ints("perm");
  return std::equal(perm.begin(), perm.end(), std::begin(kSwap), std::end(kSwap));
}

// Returns the value with rows before heads from which a Transpose made `v`, or kNoValue.
ValueId RowsBeforeHeads(const Rewriter& r, ValueId v) {
  const auto transpose = r.Producer(v, "Transpose");
  if (!transpose || !SwapsHeadsAndRows(r, *transpose)) return kNoValue;
  const ValueId source = r.node(*transpose).inputs[0];
  return IsKnown(r.type(source).dims[2]) && IsKnown(r.type(source).dims[3]) &&
                 r.type(source).dims[2] >= 1
             ? source
             : kNoValue;
}

// Adds a view of it with heads and width as one dim.
ValueId Packed(Rewriter* r, size_t before, ValueId rows) {
  const Dims& dims = r->type(rows).dims;
  return r->Add(before, "Reshape", {rows},
                {{"shape", std::vector<int64_t>{0, 0, dims[2] * dims[3]}}});
}

bool IsAttention(const Node& node) {
  if (IsPiece(node)) return false;
  return (node.domain.empty() && node.op == "Attention") ||
         (node.domain == "msrt" && node.op == "FusedAttention");
}

// Packs the heads of the Attention before Transpose `n`.
bool Pack(Rewriter* r, size_t n) {
  const ValueId result = r->node(n).inputs[0];
  const auto attention = r->Producer(result);
  if (!attention || !IsAttention(r->node(*attention)) || r->uses(result) != 1 ||
      !SwapsHeadsAndRows(*r, n))
    return false;
  const Node node = r->node(*attention);
  if (node.inputs.size() > 4 || node.outputs.size() != 1) return false;
  ValueId sources[3];
  for (size_t i = 0; i < 3; ++i) {
    sources[i] = RowsBeforeHeads(*r, node.inputs[i]);
    if (sources[i] == kNoValue) return false;
  }
  const int64_t heads = r->type(sources[0]).dims[2], width = r->type(sources[2]).dims[3];
  AttrList attrs = node.attrs;
  attrs.Set("q_num_heads", heads);
  attrs.Set("kv_num_heads", r->type(sources[1]).dims[2]);
  std::vector<ValueId> inputs = node.inputs;
  for (size_t i = 0; i < 3; ++i) inputs[i] = Packed(r, n, sources[i]);
  if (std::find(inputs.begin(), inputs.begin() + 3, kNoValue) != inputs.begin() + 3) return false;
  const ValueId packed = r->Add(n, node.op, std::move(inputs), std::move(attrs), node.domain);
  return packed != kNoValue &&
         r->Replace(n, "Reshape", {packed}, {{"shape", std::vector<int64_t>{0, 0, heads, width}}});
}

}  // namespace

bool PackHeads(const PassContext& context, Graph* graph) {
  Rewriter r(context, graph);
  bool any = false;
  const size_t count = r.node_count();
  for (size_t n = 0; n < count; ++n) any |= r.Is(n, "Transpose") && Pack(&r, n);
  return any;
}

}  // namespace msrt

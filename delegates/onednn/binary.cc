// Add, Sub, Mul, Div, Max and Min of two tensors, one of which has the result's shape. Dims that broadcast alike are merged in the order
// of memory, so that one description serves plain and channels-last tensors and the library finds its fast kernels.
#include <algorithm>
#include <optional>

#include "delegates/onednn/cost.h"
#include "delegates/onednn/plan.h"
#include "delegates/onednn/recipe.h"

namespace msrt::onednn {
namespace {

using Primitive = dnnl::binary;

std::optional<dnnl::algorithm> AlgorithmOf(std::string_view op) {
  if (op == "Add") return dnnl::algorithm::binary_add;
  if (op == "Sub") return dnnl::algorithm::binary_sub;
  if (op == "Mul") return dnnl::algorithm::binary_mul;
  if (op == "Div") return dnnl::algorithm::binary_div;
  if (op == "Max") return dnnl::algorithm::binary_max;
  if (op == "Min") return dnnl::algorithm::binary_min;
  return std::nullopt;
}
bool Commutes(std::string_view op) { return op != "Sub" && op != "Div"; }

Dims Extended(Dims dims, int rank) {
  while (dims.rank() < rank) dims.insert(0, 1);
  return dims;
}

// Dims in the order of memory. Blocks of 8 are a last dim of their own; a broadcast dim of channels stays 1 in both.
Dims InMemory(const Dims& dims, Layout layout) {
  if (layout == Layout::kPlain) return dims;
  Dims order{dims[0]};
  const bool blocked = layout == Layout::kBlocked8, blocks = blocked && dims[1] % 8 == 0;
  if (blocked) order.push_back(blocks ? dims[1] / 8 : dims[1]);
  for (int i = 2; i < dims.rank(); ++i) order.push_back(dims[i]);
  order.push_back(blocks ? 8 : blocked ? 1 : dims[1]);
  return order;
}

// Neighbouring dims that are both broadcast or both not become one.
struct Merged {
  Dims whole, other;
};
Merged Merge(const Dims& whole, const Dims& other) {
  Merged m;
  bool last_broadcasts = false;
  for (int i = 0; i < whole.rank(); ++i) {
    if (whole[i] == 1) continue;
    const bool broadcasts = other[i] == 1;
    if (!m.whole.empty() && broadcasts == last_broadcasts) {
      m.whole[m.whole.rank() - 1] *= whole[i];
      m.other[m.other.rank() - 1] *= other[i];
    } else {
      m.whole.push_back(whole[i]);
      m.other.push_back(other[i]);
    }
    last_broadcasts = broadcasts;
  }
  if (m.whole.empty()) m = {{1}, {1}};
  return m;
}

// The operand with the result's shape; the other one broadcasts. -1 where there is none that the library can take first.
int WholeOperand(const OpView& op) {
  const Dims& out = op.output(0).dims;
  if (Extended(op.input(0).dims, out.rank()) == out) return 0;
  return Commutes(op.op()) && Extended(op.input(1).dims, out.rank()) == out ? 1 : -1;
}

// Whether a plain tensor that broadcasts to rank `rank` lies in memory as `layout` would have it: all its extent is in channels or
// none of it is.
bool IsPlainInLayout(const Dims& dims, int rank, Layout layout) {
  const Dims d = Extended(dims, rank);
  if (d.elements() == 1) return true;
  if (d.elements() == d[1]) return layout == Layout::kChannelsLast || d[1] % 8 == 0;
  return d[1] == 1;
}

bool IsSameOrScalar(const OpView& op) {
  const auto fits = [&](const Dims& d) { return d.elements() == 1 || Extended(d, op.output(0).rank()) == op.output(0).dims; };
  return fits(op.input(0).dims) && fits(op.input(1).dims);
}

// ---- rules ---------------------------------------------------------------------------------------------------------------------

// The layout of one operand in a candidate whose result has `layout`; nothing where that cannot be.
std::optional<Layout> OperandLayout(const NodeInfo& node, size_t i, Layout layout) {
  const Type& type = node.op->input(i);
  const int rank = node.op->output(0).rank();
  if (layout == Layout::kPlain) return Layout::kPlain;
  if (type.rank() == rank && HasLayout(node, i) && Admits(type, layout)) return layout;
  return type.dims.known() && IsPlainInLayout(type.dims, rank, layout) ? std::optional(Layout::kPlain) : std::nullopt;
}

double Seconds(const NodeInfo& node, int whole, Layout layout) {
  const OpView& op = *node.typical;
  const int rank = op.output(0).rank();
  const Merged m =
      Merge(InMemory(op.output(0).dims, layout), InMemory(Extended(op.input(static_cast<size_t>(1 - whole)).dims, rank), layout));
  return PerElement(node.machine, static_cast<double>(op.output(0).elements()), m.whole.rank() <= 2 ? 0.15 : 0.3, node.bytes);
}

std::string QueryBinary(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.input_count() != 2 || !op.has_input(0) || !op.has_input(1)) return "other than two operands";
  const int whole = WholeOperand(*node.typical);
  if (whole < 0) return "a first operand that is broadcast";
  for (const Layout layout : kAllLayouts) {
    if (!Admits(op.output(0), layout)) continue;
    const auto first = OperandLayout(node, 0, layout), second = OperandLayout(node, 1, layout);
    if (!first || !second) continue;
    // Only naive loops for channels in blocks against a value for each channel.
    if (layout == Layout::kBlocked8 && !IsSameOrScalar(*node.typical)) continue;
    Candidate c = MakeCandidate(node, layout, layout, Seconds(node, whole, layout), "jit");
    c.input_layouts = {*first, *second};
    if (op.constant(static_cast<size_t>(whole)) == nullptr) c.in_place = {{static_cast<uint32_t>(whole), 0u}};
    candidates->push_back(std::move(c));
  }
  return {};
}

class BinaryRecipe final : public Recipe {
 public:
  using Recipe::Recipe;

  Status Build(const OpView& op, bool, Plan* plan) const override {
    const int whole = WholeOperand(op);
    if (whole < 0) return Unsupported("no operand has the shape of the result");
    const auto first = static_cast<size_t>(whole), second = 1 - first;
    const Layout layout = output_layout(0);
    const Dims& out = op.output(0).dims;
    for (const size_t i : {first, second}) {
      const bool same = input_layout(i) == layout || IsPlainInLayout(op.input(i).dims, out.rank(), layout);
      if (!same) return Unsupported("operands lie differently in memory");
    }
    const Merged m = Merge(InMemory(out, layout), InMemory(Extended(op.input(second).dims, out.rank()), layout));
    const memory::desc dst = DescribePlain(m.whole), other = DescribePlain(m.other);
    const Primitive::primitive_desc descriptor(Engine(), *AlgorithmOf(op.op()), dst, other, dst, UserScratchpad());
    if (IsNaive(descriptor)) return Unsupported("only naive loops for this way of broadcasting");
    plan->Add<Primitive::primitive_desc, Primitive>(
        descriptor,
        {{DNNL_ARG_SRC_0, Place::Input(first), dst}, {DNNL_ARG_SRC_1, Place::Input(second), other}, {DNNL_ARG_DST, Place::Output(0), dst}});
    return OkStatus();
  }
  bool drops_nan() const override { return op().op() == "Max" || op().op() == "Min"; }
};

constexpr Rule Binary(std::string_view op) { return {"", op, QueryBinary, CompileAs<BinaryRecipe>}; }
constexpr Rule kBinaryRules[] = {Binary("Add"), Binary("Sub"), Binary("Mul"), Binary("Div"), Binary("Max"), Binary("Min")};

}  // namespace

std::span<const Rule> BinaryRules() { return kBinaryRules; }

}  // namespace msrt::onednn

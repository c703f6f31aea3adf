// Reductions over any axes, SumTo, and global pools, which are reductions over space.
#include "delegates/cuda/launch.h"
#include "delegates/cuda/spaces.h"

#include <algorithm>

namespace msrt::cuda {
namespace {

constexpr KernelId<ReduceArgs> kRowsFloat{"reduce", "reduce_rows_float"},
    kRowsInt{"reduce", "reduce_rows_int"}, kColumnsFloat{"reduce", "reduce_columns_float"},
    kColumnsInt{"reduce", "reduce_columns_int"};

struct Row {
  std::string_view domain, op;
  ReduceOp code;
};
constexpr Row kRows[] = {
    {"", "ReduceSum", kReduceSum},       {"", "ReduceMean", kReduceMean},
    {"", "ReduceProd", kReduceProd},     {"", "ReduceL1", kReduceL1},
    {"", "ReduceL2", kReduceL2},         {"", "ReduceSumSquare", kReduceSumSquare},
    {"", "ReduceLogSum", kReduceLogSum}, {"", "ReduceLogSumExp", kReduceLogSumExp},
    {"", "ReduceMax", kReduceMax},       {"", "ReduceMin", kReduceMin},
    {"msrt", "SumTo", kReduceSum},       {"", "GlobalAveragePool", kReduceMean},
    {"", "GlobalMaxPool", kReduceMax},
};

ReduceOp CodeOf(const OpView& op) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const Row& r) { return r.op == op.op(); });
  return row->code;
}

bool IsGlobalPool(const OpView& op) { return op.op().substr(0, 6) == "Global"; }

// The reduced axes; nothing if they are not known.
std::optional<std::vector<bool>> ReducedAxes(const OpView& op) {
  const Dims& x = op.input(0).dims;
  std::vector<bool> reduced(x.size(), false);
  if (IsGlobalPool(op)) {
    std::fill(reduced.begin() + 2, reduced.end(), true);
    return reduced;
  }
  if (op.op() == "SumTo") {
    const Dims& y = op.output(0).dims;
    const int extra = x.rank() - y.rank();
    for (int d = 0; d < x.rank(); ++d)
      reduced[static_cast<size_t>(d)] = d < extra || y[d - extra] != x[d];
    return reduced;
  }
  const auto axes = IntsOf(op, "axes", 1);
  if (!axes) return std::nullopt;
  for (int64_t axis : *axes) reduced[static_cast<size_t>(PositiveAxis(axis, x.rank()))] = true;
  if (axes->empty() && op.Int("noop_with_empty_axes") == 0)
    std::fill(reduced.begin(), reduced.end(), true);
  return reduced;
}

// Whether a block computes an output: the last axis of some extent is reduced. Decided for every
// shape that the node can have, so that pieces are computed as the whole.
bool AreRows(const Dims& declared, const std::vector<bool>& reduced) {
  for (int d = declared.rank() - 1; d >= 0; --d) {
    if (declared[d] != 1) return reduced[static_cast<size_t>(d)];
  }
  return true;
}

std::string QueryReduce(const NodeInfo& node, const GpuProperties& gpu,
                        std::vector<Candidate>* out) {
  const OpView& op = *node.op;
  const DType type = op.input(0).dtype;
  if (!kNumberTypes.Has(type)) return StrCat("elements of type ", type);
  const ReduceOp code = CodeOf(op);
  const bool is_float = kFloatTypes.Has(type);
  if (type == DType::kU64 && (code == kReduceMax || code == kReduceMin || code == kReduceMean))
    return "comparisons of u64";
  const bool needs_float = code == kReduceL2 || code == kReduceLogSum || code == kReduceLogSumExp;
  if (needs_float && !is_float) return StrCat(op.op(), " of integers");
  const auto reduced = ReducedAxes(*node.typical);
  const bool rows = !reduced || AreRows(op.input(0).dims, *reduced);
  Candidate c = PlainCandidate(node, PassSeconds(gpu, node.bytes, node.flops),
                               rows ? "block for each result" : "thread for each result");
  c.arithmetic = StrCat(kArithmetic, rows ? " rows" : " columns");
  c.tag = rows ? 1 : 0;
  out->push_back(std::move(c));
  return {};
}

Result<std::unique_ptr<BoundKernel>> BindReduce(const OpView& op, const Candidate& candidate,
                                                Gpu& gpu) {
  const auto reduced = ReducedAxes(op);
  if (!reduced) return Unsupported("cuda: axes that are not known");
  const Dims& x = op.input(0).dims;
  const Dims strides = RowMajorStrides(x);
  Dims kept, kept_strides, inner, inner_strides;
  for (int d = 0; d < x.rank(); ++d) {
    const bool is_reduced = (*reduced)[static_cast<size_t>(d)];
    (is_reduced ? inner : kept).push_back(x[d]);
    (is_reduced ? inner_strides : kept_strides).push_back(strides[d]);
  }
  if (kept.elements() != op.output(0).dims.elements())
    return InvalidArgument("axes leave ", kept.elements(), " elements, but the output has dims ",
                           op.output(0).dims);
  ReduceArgs args;
  args.type = static_cast<int32_t>(op.input(0).dtype);
  args.op = CodeOf(op);
  args.divisor = op.Has("divisor") ? op.Int("divisor") : inner.elements();
  const int bits = BitsOf(op.input(0).dtype);
  if (kSignedTypes.Has(op.input(0).dtype)) {
    args.greatest = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
    args.least = -args.greatest - 1;
  } else {
    args.greatest = static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
  }
  Dims* const kept_list[] = {&kept_strides};
  args.kept = SpaceOf(Merge(kept, kept_list));
  CopyStrides(kept_strides, args.kept_strides);
  if (inner.elements() == 0) {
    args.reduced.elements = 0;
  } else {
    Dims* const inner_list[] = {&inner_strides};
    args.reduced = SpaceOf(Merge(inner, inner_list));
    CopyStrides(inner_strides, args.reduced_strides);
  }
  const bool rows = (candidate.tag & 1) != 0, is_float = kFloatTypes.Has(op.input(0).dtype);
  const Grid grid =
      rows ? Grid::OfRows(kept.elements(), inner.elements()) : Grid::OfElements(kept.elements());
  return BoundLaunch<ReduceArgs>::Make(
      gpu, rows ? (is_float ? kRowsFloat : kRowsInt) : (is_float ? kColumnsFloat : kColumnsInt),
      grid, args, [](const RunArgs& run, const Stream&, ReduceArgs* a) {
        a->in = run.inputs[0].data;
        a->out = run.outputs[0].data;
      });
}

constexpr auto kReductionRules = [] {
  std::array<Rule, std::size(kRows)> all{};
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = {kRows[i].domain, kRows[i].op, QueryReduce, BindReduce};
  return all;
}();

}  // namespace

std::span<const Rule> ReductionRules() { return kReductionRules; }

}  // namespace msrt::cuda

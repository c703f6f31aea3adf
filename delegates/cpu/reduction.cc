// ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceSumSquare, ReduceL1 and ReduceL2 over any
// axes, and over space, with or without the batch, in every layout. Dims that are reduced or kept
// alike are merged in the order of memory. Sums are f32 in short runs and double over them, or, in
// exact mode, double in the order of the elements.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/abi/msrt_plugin.h"
#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

struct Row {
  std::string_view op;
  Reduce how;
  bool mean = false, root = false;
};
constexpr Row kRows[] = {{"ReduceSum", Reduce::kSum},
                         {"ReduceMean", Reduce::kSum, true},
                         {"ReduceMax", Reduce::kMax},
                         {"ReduceMin", Reduce::kMin},
                         {"ReduceSumSquare", Reduce::kSumSquare},
                         {"ReduceL1", Reduce::kSumAbs},
                         {"ReduceL2", Reduce::kSumSquare, false, true},
                         {"GlobalAveragePool", Reduce::kSum, true},
                         {"GlobalMaxPool", Reduce::kMax}};

const Row& RowOf(const OpView& op) {
  return *std::find_if(std::begin(kRows), std::end(kRows),
                       [&](const Row& row) { return row.op == op.op(); });
}
bool IsGlobalPool(const OpView& op) { return op.op().starts_with("Global"); }

constexpr uint64_t kInOrder = 1;  // the tag of candidates that fold in order

// One bit for each reduced axis; nothing where they are not known or there are none, which makes
// the op a copy.
std::optional<uint32_t> AxesOf(const OpView& op) {
  const int rank = op.input(0).rank();
  const uint32_t all = (uint32_t{1} << rank) - 1;
  if (IsGlobalPool(op)) return all & ~uint32_t{3};
  std::vector<int64_t> given;
  if (op.Has("axes")) given.assign(op.Ints("axes").begin(), op.Ints("axes").end());
  else if (op.has_input(1) && op.constant(1) == nullptr) return std::nullopt;
  else if (op.has_input(1)) given = IntValues(*op.constant(1));
  uint32_t axes = 0;
  for (const int64_t a : given) axes |= uint32_t{1} << (a < 0 ? a + rank : a);
  if (axes != 0) return axes;
  return op.Int("noop_with_empty_axes") != 0 ? std::nullopt : std::optional(all);
}

std::string QueryReduction(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.input(0).dtype != DType::kF32) return StrCat("elements of type ", op.input(0).dtype);
  const auto axes = AxesOf(op);
  if (!axes) return "axes that are not known, or none";
  const int rank = op.input(0).rank();
  if (rank == 0) return "a scalar";
  const uint32_t space = ((uint32_t{1} << rank) - 1) & ~uint32_t{3};
  const bool over_space = rank >= 3 && (*axes | 1) == (space | 1);
  const auto elements = static_cast<double>(node.typical->input(0).elements());
  const double seconds = PassSeconds(node, elements, 0.06, node.bytes);
  for (const Layout layout : OfferedLayouts()) {
    if (layout != Layout::kPlain &&
        (!over_space || !Admits(op.input(0), layout) || op.constant(0) != nullptr))
      continue;
    Candidate c = PlainCandidate(node, seconds, "vectorised");
    c.input_layouts[0] = layout;
    // A result without the reduced dims has no layout: its channels are in order in any of them.
    if (op.output(0).rank() == rank) c.output_layouts[0] = layout;
    candidates->push_back(c);
    const bool rows = layout == Layout::kPlain && (*axes >> (rank - 1) & 1) != 0;
    // Columns are folded one after the other: short lines are slow.
    c.seconds =
        PassSeconds(node, elements, rows || layout != Layout::kPlain ? 1.2 : 0.15, node.bytes);
    c.algorithm = "in order";
    c.arithmetic = MSRT_ARITHMETIC_REFERENCE;
    c.tag = kInOrder;
    candidates->push_back(std::move(c));
  }
  return {};
}

// The loop nest: groups of dims in the order of memory that are kept or reduced, in turn.
struct Nest {
  Dims kept, kept_steps;  // outermost first
  Dims reduced,
      reduced_steps;  // without the group that the inner loop runs over, if that is reduced
  int64_t inner = 1;  // elements of the innermost group
  bool inner_is_reduced = false;
  int64_t count = 1;  // elements that make one result

  Nest(const Dims& dims, const std::vector<bool>& is_reduced) {
    struct Group {
      int64_t extent;
      bool reduced;
    };
    std::vector<Group> groups;
    for (int i = 0; i < dims.rank(); ++i) {
      if (dims[i] == 1) continue;
      if (groups.empty() || groups.back().reduced != is_reduced[static_cast<size_t>(i)])
        groups.push_back({1, is_reduced[static_cast<size_t>(i)]});
      groups.back().extent *= dims[i];
    }
    if (groups.empty()) return;
    inner = groups.back().extent, inner_is_reduced = groups.back().reduced;
    int64_t step = inner;
    for (size_t g = groups.size() - 1; g-- > 0;) {
      Dims &extents = groups[g].reduced ? reduced : kept,
           &steps = groups[g].reduced ? reduced_steps : kept_steps;
      extents.insert(0, groups[g].extent), steps.insert(0, step);
      step *= groups[g].extent;
    }
    count = reduced.elements() * (inner_is_reduced ? inner : 1);
  }
};

int64_t OffsetOf(const Dims& extents, const Dims& steps, int64_t index, int rank) {
  int64_t offset = 0;
  for (int i = rank - 1; i >= 0; --i) {
    offset += index % extents[i] * steps[i];
    index /= extents[i];
  }
  return offset;
}

class BoundReduction final : public BoundKernel {
 public:
  BoundReduction(const Row& row, const Nest& nest, int64_t divisor, bool in_order)
      : row_(row), nest_(nest), divisor_(divisor), in_order_(in_order) {}

  Status Run(const RunArgs& args) override {
    const float* x = args.inputs[0].As<float>();
    float* y = args.outputs[0].As<float>();
    const int64_t results = nest_.kept.elements(),
                  work = std::max<int64_t>(
                      1, nest_.count * (nest_.inner_is_reduced ? 1 : nest_.inner));
    const int64_t grain = std::max<int64_t>(1, kGrain / work);
    if (nest_.inner_is_reduced) {
      return ParallelRanges(args.parallel, results, grain, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          y[r] = Rows(x + OffsetOf(nest_.kept, nest_.kept_steps, r, nest_.kept.rank()));
      });
    }
    // Columns are split where there are few results, so that every thread has some.
    const int64_t tiles = (nest_.inner + kColumns - 1) / kColumns;
    return ParallelRanges(
        args.parallel, results * tiles,
        std::max<int64_t>(1, kGrain * nest_.inner / (work * std::min(kColumns, nest_.inner))),
        [&](int64_t begin, int64_t end) {
          for (int64_t t = begin; t < end; ++t) {
            const int64_t r = t / tiles, first = t % tiles * kColumns,
                          columns = std::min(kColumns, nest_.inner - first);
            const int64_t at = OffsetOf(nest_.kept, nest_.kept_steps, r, nest_.kept.rank());
            Columns(x + at + first, columns, y + r * nest_.inner + first);
          }
        });
  }

 private:
  static constexpr int64_t kColumns = 256;

  double Start() const {
    if (row_.how == Reduce::kMax) return -std::numeric_limits<double>::infinity();
    return row_.how == Reduce::kMin ? std::numeric_limits<double>::infinity() : 0;
  }
  float Finish(double folded) const {
    if (row_.mean) folded /= static_cast<double>(divisor_);
    return static_cast<float>(row_.root ? std::sqrt(folded) : folded);
  }
  float Rows(const float* x) const {
    double folded = Start();
    const Loops& loops = LoopsHere();
    const ReduceRow loop =
        (in_order_ ? loops.reduce_row_in_order : loops.reduce_row)[static_cast<size_t>(row_.how)];
    for (int64_t i = 0; i < nest_.reduced.elements(); ++i) {
      loop(x + OffsetOf(nest_.reduced, nest_.reduced_steps, i, nest_.reduced.rank()), nest_.inner,
           &folded);
    }
    return Finish(folded);
  }
  void Columns(const float* x, int64_t columns, float* y) const {
    double folded[kColumns];
    std::fill_n(folded, columns, Start());
    const Loops& loops = LoopsHere();
    const ReduceColumns loop = (in_order_ ? loops.reduce_columns_in_order
                                          : loops.reduce_columns)[static_cast<size_t>(row_.how)];
    const int last = nest_.reduced.rank() - 1;
    const int64_t lines = last < 0 ? 1 : nest_.reduced[last],
                  step = last < 0 ? 0 : nest_.reduced_steps[last];
    for (int64_t i = 0; i < (last < 0 ? 1 : nest_.reduced.product(0, last)); ++i) {
      loop(x + OffsetOf(nest_.reduced, nest_.reduced_steps, i, last), lines, step, columns, folded);
    }
    for (int64_t c = 0; c < columns; ++c) y[c] = Finish(folded[c]);
  }

  const Row& row_;
  const Nest nest_;
  const int64_t divisor_;  // of a mean
  const bool in_order_;
};

// The result of an op for no elements.
class BoundEmpty final : public BoundKernel {
 public:
  BoundEmpty(float value, int64_t count) : value_(value), count_(count) {}
  Status Run(const RunArgs& args) override {
    std::fill_n(args.outputs[0].As<float>(), count_, value_);
    return OkStatus();
  }

 private:
  const float value_;
  const int64_t count_;
};

float ValueOfNothing(const Row& row) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (row.how == Reduce::kMax) return -kInfinity;
  if (row.how == Reduce::kMin) return kInfinity;
  return row.mean ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
}

Result<std::unique_ptr<BoundKernel>> BindReduction(const OpView& op, const Candidate& candidate) {
  const auto axes = AxesOf(op);
  if (!axes) return InternalError("cpu: asked to bind ", op.op(), ", which it refused");
  const Dims& dims = op.input(0).dims;
  const Row& row = RowOf(op);
  if (dims.elements() == 0) {
    return std::unique_ptr<BoundKernel>(
        std::make_unique<BoundEmpty>(ValueOfNothing(row), op.output(0).elements()));
  }
  // Which dims in the order of memory are reduced.
  const Layout layout = candidate.input_layouts[0];
  const Dims order = InMemory(dims, layout);
  std::vector<bool> reduced;
  if (layout == Layout::kPlain) {
    for (int i = 0; i < dims.rank(); ++i) reduced.push_back((*axes >> i) & 1);
  } else {
    reduced.assign(order.size(), true);  // space
    reduced.front() = (*axes & 1) != 0;  // the batch
    reduced.back() = false;
    if (BlockOf(layout) > 1) reduced[1] = false;
  }
  const Nest nest(order, reduced);
  // A part of a mean divides by the size of the whole.
  const int64_t divisor = op.Has("divisor") ? op.Int("divisor") : nest.count;
  return std::unique_ptr<BoundKernel>(std::make_unique<BoundReduction>(
      row, nest, divisor, (candidate.tag & UINT32_MAX) == kInOrder));
}

constexpr Rule Of(std::string_view op) { return {"", op, QueryReduction, BindReduction}; }
constexpr Rule kReductionRules[] = {Of("ReduceSum"), Of("ReduceMean"),        Of("ReduceMax"),
                                    Of("ReduceMin"), Of("ReduceSumSquare"),   Of("ReduceL1"),
                                    Of("ReduceL2"),  Of("GlobalAveragePool"), Of("GlobalMaxPool")};

}  // namespace

std::span<const Rule> ReductionRules() { return kReductionRules; }

}  // namespace msrt::cpu

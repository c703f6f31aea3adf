// Slice, Split, Concat and Expand as moves, in every layout where the cut does not divide a block
// of channels.
#include <algorithm>
#include <optional>

#include "core/region/slice.h"
#include "delegates/cpu/moves.h"

namespace msrt::cpu {
namespace {

int PositiveAxis(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

// A list from the attribute, or from a constant input; nothing where the input is given and its
// value is not known.
std::optional<std::vector<int64_t>> IntsOf(const OpView& op, std::string_view attr, size_t input) {
  if (op.Has(attr)) return std::vector<int64_t>(op.Ints(attr).begin(), op.Ints(attr).end());
  if (!op.has_input(input)) return std::vector<int64_t>();
  return op.constant(input) == nullptr ? std::nullopt
                                       : std::optional(IntValues(*op.constant(input)));
}

std::string WidthRefusal(const OpView& op) {
  return BitsOf(op.input(0).dtype) < 8 ? StrCat("elements of type ", op.input(0).dtype)
                                       : std::string();
}
size_t WidthOf(const OpView& op) { return BitsOf(op.input(0).dtype) / 8; }
double CopySeconds(const NodeInfo& node) { return PassSeconds(node, 0, 0, node.bytes); }

// The dim in memory that has the logical axis; with blocks, that of the blocks.
int InMemoryAxis(int axis, int rank, Layout layout) {
  if (layout == Layout::kPlain || axis == 0) return axis;
  if (axis == 1) return BlockOf(layout) > 1 ? 1 : rank - 1;
  return BlockOf(layout) > 1 ? axis : axis - 1;
}
// Elements of the logical axis in one element of that dim.
int64_t UnitOf(int axis, Layout layout) { return axis == 1 ? BlockOf(layout) : 1; }

// ---- copies of boxes ----------------------------------------------------------------------------

// A copy between a box of an input and a box of an output, in the order of memory. Index i of a dim
// is element from + from_step * i of the input and element to + i of the output.
struct BoxCopy {
  size_t input = 0, output = 0;
  Dims dims = {}, from = {}, from_step = {}, to = {};

  // A box of `box_dims` that begins at 0 on both sides.
  static BoxCopy Of(size_t input, size_t output, const Dims& box_dims) {
    const int rank = box_dims.rank();
    return {input,
            output,
            box_dims,
            Dims::Filled(rank, 0),
            Dims::Filled(rank, 1),
            Dims::Filled(rank, 0)};
  }
  Move ToMove(const Dims& from_steps, const Dims& to_steps) const {
    Move m{.input = input, .output = output, .dims = dims, .from = from_steps, .to = to_steps};
    for (int i = 0; i < dims.rank(); ++i) {
      m.from_offset += from[i] * from_steps[i];
      m.to_offset += to[i] * to_steps[i];
      m.from[i] *= from_step[i];
    }
    return m;
  }
};

// The moves of dense tensors are prepared; those of tensors with strides are made by each run.
class BoundBoxCopies final : public BoundKernel {
 public:
  BoundBoxCopies(std::vector<BoxCopy> copies, const OpView& op, const Candidate& candidate)
      : copies_(std::move(copies)), width_(WidthOf(op)) {
    const auto dense = [](const Type& type, Layout layout) {
      return StepsInMemory({type.dtype, type.dims, layout, nullptr});
    };
    std::vector<Move> moves;
    for (const BoxCopy& c : copies_) {
      moves.push_back(c.ToMove(dense(op.input(c.input), candidate.input_layouts[c.input]),
                               dense(op.output(c.output), candidate.output_layouts[c.output])));
    }
    dense_ = MakeMoves(std::move(moves), width_);
  }

  Status Run(const RunArgs& args) override {
    const auto strided = [](const TensorView& t) { return t.strides != nullptr; };
    if (std::none_of(args.inputs.begin(), args.inputs.end(), strided) &&
        std::none_of(args.outputs.begin(), args.outputs.end(), strided))
      return dense_->Run(args);
    std::vector<Move> moves;
    for (const BoxCopy& c : copies_)
      moves.push_back(
          c.ToMove(StepsInMemory(args.inputs[c.input]), StepsInMemory(args.outputs[c.output])));
    return MakeMoves(std::move(moves), width_)->Run(args);
  }
  size_t bytes() const override { return copies_.size() * sizeof(BoxCopy) + dense_->bytes(); }

 private:
  const std::vector<BoxCopy> copies_;
  const size_t width_;
  std::unique_ptr<BoundKernel> dense_;
};

// ---- Concat and Split: the same moves in opposite directions ------------------------------------

std::string QueryJoin(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (std::string reason = WidthRefusal(op); !reason.empty()) return reason;
  const bool split = op.op() == "Split";
  for (const Layout layout : OfferedLayouts()) {
    bool all = true;
    for (size_t i = 0; i < (split ? 1 : op.input_count()) && all; ++i) {
      all = op.has_input(i) && Admits(op.input(i), layout) &&
            (layout == Layout::kPlain || op.constant(i) == nullptr);
    }
    for (size_t o = 0; o < op.output_count() && all; ++o)
      all = op.has_output(o) && Admits(op.output(o), layout);
    if (!all) continue;
    Candidate c = PlainCandidate(node, CopySeconds(node), "copy");
    for (size_t i = 0; i < (split ? 1 : op.input_count()); ++i) c.input_layouts[i] = layout;
    c.output_layouts.assign(op.output_count(), layout);
    c.strided_inputs = split ? 1 : ~uint64_t{0};
    c.strided_outputs = ~uint64_t{0};
    c.arithmetic = ArithmeticOf(*node.op);
    candidates->push_back(std::move(c));
  }
  return candidates->empty() ? "an output without use" : std::string();
}

Result<std::unique_ptr<BoundKernel>> BindJoin(const OpView& op, const Candidate& candidate) {
  const bool split = op.op() == "Split";
  const Layout layout = candidate.output_layouts[0];
  const Type& whole = split ? op.input(0) : op.output(0);
  const int logical = PositiveAxis(op.Int("axis"), whole.rank()),
            axis = InMemoryAxis(logical, whole.rank(), layout);
  std::vector<BoxCopy> copies;
  int64_t offset = 0;
  for (size_t i = 0; i < (split ? op.output_count() : op.input_count()); ++i) {
    const Dims& part = split ? op.output(i).dims : op.input(i).dims;
    BoxCopy c = BoxCopy::Of(split ? 0 : i, split ? i : 0, InMemory(part, layout));
    (split ? c.from : c.to)[axis] = offset;
    offset += part[logical] / UnitOf(logical, layout);
    copies.push_back(std::move(c));
  }
  return std::unique_ptr<BoundKernel>(
      std::make_unique<BoundBoxCopies>(std::move(copies), op, candidate));
}

// ---- Slice --------------------------------------------------------------------------------------

// One entry for each logical axis.
std::optional<std::vector<SliceAxis>> SlicesOf(const OpView& op) {
  const Dims& x = op.input(0).dims;
  const auto starts = IntsOf(op, "starts", 1), ends = IntsOf(op, "ends", 2),
             axes = IntsOf(op, "axes", 3), steps = IntsOf(op, "steps", 4);
  if (!starts || !ends || !axes || !steps) return std::nullopt;
  std::vector<SliceAxis> slices;
  for (int i = 0; i < x.rank(); ++i) slices.push_back({0, 1, x[i]});
  for (size_t i = 0; i < starts->size(); ++i) {
    const int axis = axes->empty() ? static_cast<int>(i) : PositiveAxis((*axes)[i], x.rank());
    slices[static_cast<size_t>(axis)] =
        NormalizeSlice((*starts)[i], (*ends)[i], steps->empty() ? 1 : (*steps)[i], x[axis]);
  }
  return slices;
}

bool KeepsBlocks(const SliceAxis& channels, int64_t block) {
  return block == 1 ||
         (channels.step == 1 && channels.start % block == 0 && channels.count % block == 0);
}

std::string QuerySlice(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (std::string reason = WidthRefusal(op); !reason.empty()) return reason;
  const auto slices = SlicesOf(*node.typical);
  if (!slices) return "bounds that are not known";
  for (const Layout layout : OfferedLayouts()) {
    if (!Admits(op.input(0), layout) || !Admits(op.output(0), layout) ||
        (layout != Layout::kPlain && op.constant(0) != nullptr))
      continue;
    if (layout != Layout::kPlain && !KeepsBlocks((*slices)[1], BlockOf(layout))) continue;
    Candidate c = PlainCandidate(node, CopySeconds(node), "copy");
    c.input_layouts[0] = c.output_layouts[0] = layout;
    c.strided_inputs = c.strided_outputs = 1;
    c.arithmetic = ArithmeticOf(*node.op);
    candidates->push_back(std::move(c));
  }
  return {};
}

Result<std::unique_ptr<BoundKernel>> BindSlice(const OpView& op, const Candidate& candidate) {
  const auto slices = SlicesOf(op);
  if (!slices) return InternalError("cpu: asked to bind a Slice whose bounds are not known");
  const Layout layout = candidate.output_layouts[0];
  const int rank = op.input(0).rank();
  BoxCopy copy = BoxCopy::Of(0, 0, InMemory(op.output(0).dims, layout));
  for (int i = 0; i < rank; ++i) {
    const SliceAxis& slice = (*slices)[static_cast<size_t>(i)];
    const int axis = InMemoryAxis(i, rank, layout);
    copy.from[axis] = slice.start / UnitOf(i, layout);
    copy.from_step[axis] = slice.step;
  }
  return std::unique_ptr<BoundKernel>(
      std::make_unique<BoundBoxCopies>(std::vector{std::move(copy)}, op, candidate));
}

// ---- Expand -------------------------------------------------------------------------------------

std::string QueryExpand(const NodeInfo& node, std::vector<Candidate>* candidates) {
  if (std::string reason = WidthRefusal(*node.op); !reason.empty()) return reason;
  Candidate c = PlainCandidate(node, CopySeconds(node), "copy");
  c.arithmetic = ArithmeticOf(*node.op);
  candidates->push_back(std::move(c));
  return {};
}

Result<std::unique_ptr<BoundKernel>> BindExpand(const OpView& op, const Candidate&) {
  const Dims &out = op.output(0).dims, in = Extended(op.input(0).dims, out.rank());
  Move m{.dims = out, .from = RowMajorStrides(in), .to = RowMajorStrides(out)};
  for (int i = 0; i < out.rank(); ++i) {
    if (in[i] == 1 && out[i] != 1) m.from[i] = 0;
  }
  return MakeMoves({std::move(m)}, WidthOf(op));
}

constexpr Rule kMovementRules[] = {{"", "Concat", QueryJoin, BindJoin},
                                   {"", "Split", QueryJoin, BindJoin},
                                   {"", "Slice", QuerySlice, BindSlice},
                                   {"", "Expand", QueryExpand, BindExpand}};

}  // namespace

std::span<const Rule> MovementRules() { return kMovementRules; }

}  // namespace msrt::cpu

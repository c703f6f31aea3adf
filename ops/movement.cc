// Ops that move elements without changing them: Transpose, Concat, Split, Slice, Tile,
// ReverseSequence. (Pad: pad.cc.)
#include "core/base/checked_math.h"
#include "core/region/slice.h"
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

constexpr int64_t kMaxSplitOutputs = 4096;

// ---- Transpose ----------------------------------------------------------------------------------

// Returns the input axis of output axis i. Requires a checked perm.
int SourceAxis(const OpView& op, int rank, int i) {
  return op.Has("perm") ? static_cast<int>(op.Ints("perm")[static_cast<size_t>(i)]) : rank - 1 - i;
}

Status InferTranspose(InferContext& c) {
  const Type& in = c.input(0);
  if (c.op().Has("perm")) {
    const auto perm = c.op().Ints("perm");
    uint32_t seen = 0;
    for (int64_t p : perm) {
      if (p >= static_cast<int64_t>(perm.size()) || (seen >> p & 1) != 0) {
        return InvalidModel("perm names axis ", p, " twice or beyond its ", perm.size(),
                            " elements, must be a permutation");
      }
      seen |= uint32_t{1} << p;
    }
    if (in.rank_known && static_cast<int>(perm.size()) != in.rank()) {
      return InvalidModel("perm has ", perm.size(), " elements, must have ", in.rank(), " for ",
                          in.dims);
    }
    if (!in.rank_known) {
      c.SetOutput(0, in.dtype, Dims::Filled(static_cast<int>(perm.size()), kUnknownDim));
      return OkStatus();
    }
  }
  if (!in.rank_known) return InferSameAsFirst(c);
  Dims out = in.dims;
  for (int i = 0; i < in.rank(); ++i) out[i] = in.dims[SourceAxis(c.op(), in.rank(), i)];
  c.SetOutput(0, in.dtype, out);
  return OkStatus();
}

Status ResolveTranspose(const OpView& op, ResolvedSpace* space) {
  const Dims& out = op.output(0).dims;
  for (int i = 0; i < out.rank(); ++i) {
    const auto source = static_cast<size_t>(SourceAxis(op, out.rank(), i));
    space->inputs[0].dims[source] = DimMap::Same(i, out[i]);
  }
  return ResolveByOutput(op, space);
}

// ---- Concat -------------------------------------------------------------------------------------

Status InferConcat(InferContext& c) {
  const Type* ranked = nullptr;
  bool all_ranked = true;
  for (size_t i = 0; i < c.op().input_count(); ++i) {
    if (c.input(i).rank_known) ranked = &c.input(i);
    else all_ranked = false;
  }
  if (ranked == nullptr) return InferSameAsFirst(c);
  const int rank = ranked->rank();
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.op().Int("axis"), rank));
  Dims out = Dims::Filled(rank, kUnknownDim);
  int64_t total = all_ranked ? 0 : kUnknownDim;
  for (size_t i = 0; i < c.op().input_count(); ++i) {
    const Type& in = c.input(i);
    if (!in.rank_known) continue;
    if (in.rank() != rank)
      return InvalidModel("input ", i, " has shape ", in.dims, ", must have rank ", rank,
                          " like the others");
    for (int d = 0; d < rank; ++d) {
      if (d == axis) continue;
      if (IsKnown(in.dims[d]) && IsKnown(out[d]) && in.dims[d] != out[d]) {
        return InvalidModel("input ", i, " has shape ", in.dims, ", dim ", d, " must be ", out[d],
                            " like that of the inputs before it");
      }
      if (!IsKnown(out[d]) && in.dims[d] != kUnknownDim) out[d] = in.dims[d];
    }
    if (!IsKnown(in.dims[axis])) total = kUnknownDim;
    if (IsKnown(total) && !CheckedAdd(total, in.dims[axis], &total))
      return InvalidModel("the sum of dims along axis ", axis, " overflows");
  }
  out[axis] = total;
  c.SetOutput(0, ranked->dtype, out);
  return OkStatus();
}

// A piece reads the part of each input inside it, and nothing of inputs outside.
Status ResolveConcat(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), op.output(0).rank()));
  int64_t begin = 0;
  for (size_t i = 0; i < op.input_count(); ++i) {
    const Dims& dims = op.input(i).dims;
    space->inputs[i] = TensorMap::Same(dims);
    space->inputs[i].dims[static_cast<size_t>(axis)] = DimMap::Affine(axis, -begin, 1, dims[axis]);
    begin += dims[axis];
  }
  return ResolveByOutput(op, space);
}

// ---- Split --------------------------------------------------------------------------------------

// Returns the size of every output along the axis of extent `extent`: from the list, or equal parts
// of which the last may be smaller. Unknown sizes are kUnknownDim.
Result<std::vector<int64_t>> SplitSizes(const OpView& op, int64_t extent, size_t outputs) {
  const auto split = IntsAttrOrInput(op, "split", 1);
  if (!split) return std::vector<int64_t>(outputs, kUnknownDim);
  if (op.Has("num_outputs")) {
    if (!IsKnown(extent)) return std::vector<int64_t>(outputs, kUnknownDim);
    const auto count = static_cast<int64_t>(outputs);
    const int64_t part = CeilDiv(extent, count), last = extent - part * (count - 1);
    if (last < 0)
      return InvalidModel("cannot split ", extent, " elements into ", count, " parts of ", part,
                          ": give the sizes in 'split'");
    std::vector<int64_t> sizes(outputs, part);
    sizes.back() = last;
    return sizes;
  }
  if (split->size() != outputs)
    return InvalidModel("split has ", split->size(), " sizes, must have one for each of ", outputs,
                        " outputs");
  int64_t total = 0;
  for (size_t i = 0; i < outputs; ++i) {
    const int64_t size = (*split)[i];
    if (size < 0) return InvalidModel("split[", i, "] = ", size, ", must be at least 0");
    if (!CheckedAdd(total, size, &total)) return InvalidModel("the sum of split overflows");
  }
  if (IsKnown(extent) && total != extent)
    return InvalidModel("split adds up to ", total, ", must be ", extent,
                        ", the dim along the axis");
  return *split;
}

Status InferSplit(InferContext& c) {
  const OpView& op = c.op();
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(op, "split", 1));
  const bool has_list = op.Has("split") || op.has_input(1);
  if (has_list == op.Has("num_outputs"))
    return InvalidModel("needs either 'split' or 'num_outputs', and not both");
  if (op.Has("num_outputs") && op.Int("num_outputs") != static_cast<int64_t>(c.output_count())) {
    return InvalidModel("num_outputs = ", op.Int("num_outputs"), ", but the node has ",
                        c.output_count(), " outputs");
  }
  const Type& in = c.input(0);
  int axis = 0;
  if (in.rank_known) {
    MSRT_ASSIGN_OR_RETURN(axis, NormalizeAxis(op.Int("axis"), in.rank()));
  }
  MSRT_ASSIGN_OR_RETURN(
      const auto sizes,
      SplitSizes(op, in.rank_known ? in.dims[axis] : kUnknownDim, c.output_count()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    Type out = in;
    if (in.rank_known) out.dims[axis] = sizes[i];
    c.SetOutput(i, std::move(out));
  }
  return OkStatus();
}

// A piece writes the part of each output inside it, and nothing of outputs outside.
Status ResolveSplit(const OpView& op, ResolvedSpace* space) {
  const Dims& in = op.input(0).dims;
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), in.rank()));
  MSRT_ASSIGN_OR_RETURN(const auto sizes, SplitSizes(op, in[axis], op.output_count()));
  DropInputs(1, space);
  ResolveByInput(
      op, [](int) { return false; }, space);
  int64_t begin = 0;
  for (size_t o = 0; o < sizes.size(); ++o) {
    if (!IsKnown(sizes[o])) return Unsupported("cannot be cut before its sizes are known");
    if (op.has_output(o)) {
      space->outputs[o] = TensorMap::Same(op.output(o).dims);
      space->outputs[o].dims[static_cast<size_t>(axis)] = DimMap::Affine(axis, -begin, 1, sizes[o]);
    }
    begin += sizes[o];
  }
  return OkStatus();
}

Status LocalizeSplit(const OpView& op, const Box& box, std::span<const Box>, std::span<const Box>,
                     AttrList* attrs) {
  const Dims& in = op.input(0).dims;
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(op.Int("axis"), in.rank()));
  MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, SplitSizes(op, in[axis], op.output_count()));
  int64_t begin = 0;
  for (int64_t& size : sizes) {
    const int64_t end = begin + size;
    size = Intersect(box[axis], {begin, end}).size();
    begin = end;
  }
  attrs->Set("split", std::move(sizes));
  attrs->Remove("num_outputs");
  return OkStatus();
}

// ---- Slice --------------------------------------------------------------------------------------

struct SliceLists {
  std::vector<int64_t> starts, ends, steps;
  std::vector<int> axes;
};

// Returns the lists, checked against each other and the rank; nullopt if only the run will know
// them.
Result<std::optional<SliceLists>> CheckedSliceLists(const OpView& op, int rank) {
  auto starts = IntsAttrOrInput(op, "starts", 1), ends = IntsAttrOrInput(op, "ends", 2),
       steps = IntsAttrOrInput(op, "steps", 4);
  const auto known_axes = IntsAttrOrInput(op, "axes", 3);
  if (!starts || !ends || !steps || !known_axes) return std::optional<SliceLists>();
  SliceLists lists{*std::move(starts), *std::move(ends), *std::move(steps), {}};
  const std::vector<int64_t>& axes = *known_axes;
  const size_t count = lists.starts.size();
  if (lists.ends.size() != count)
    return InvalidModel("starts has ", count, " elements and ends ", lists.ends.size(),
                        ", must have the same number");
  if (axes.empty() && count > static_cast<size_t>(rank))
    return InvalidModel("starts has ", count, " elements for ", rank, " dims");
  if (!axes.empty() && axes.size() != count)
    return InvalidModel("axes has ", axes.size(), " elements, must have ", count, " like starts");
  if (!lists.steps.empty() && lists.steps.size() != count) {
    return InvalidModel("steps has ", lists.steps.size(), " elements, must have ", count,
                        " like starts");
  }
  for (size_t i = 0; i < lists.steps.size(); ++i) {
    if (lists.steps[i] == 0) return InvalidModel("steps[", i, "] = 0, must be another number");
  }
  lists.steps.resize(count, 1);
  MSRT_ASSIGN_OR_RETURN(lists.axes, NormalizeAxes(axes, rank));
  if (axes.empty()) {
    for (size_t i = 0; i < count; ++i) lists.axes.push_back(static_cast<int>(i));
  }
  return std::optional(std::move(lists));
}

// Whether a slice takes all of an axis of any extent: no tensor has 2^56 elements along it.
bool TakesAll(int64_t start, int64_t end, int64_t step) {
  constexpr int64_t kBeyond = int64_t{1} << 56;
  return (step == 1 && start == 0 && end >= kBeyond) ||
         (step == -1 && (start == -1 || start >= kBeyond) && end < -kBeyond);
}

// Starts, ends or steps are not known yet: the dims that may be cut are unknown.
Status InferUnknownSlice(InferContext& c) {
  Type out = c.input(0);
  const auto axes = IntsAttrOrInput(c.op(), "axes", 3);
  const bool listed = axes && !axes->empty();
  if (listed) {
    MSRT_ASSIGN_OR_RETURN(const auto normalized, NormalizeAxes(*axes, out.rank()));
    for (int a : normalized) out.dims[a] = kUnknownDim;
  } else {
    out.dims = Dims::Filled(out.rank(), kUnknownDim);
  }
  c.SetOutput(0, std::move(out));
  return OkStatus();
}

Status InferSlice(InferContext& c) {
  const OpView& op = c.op();
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(op, "starts", 1, true));
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(op, "ends", 2, true));
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(op, "axes", 3));
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(op, "steps", 4));
  const Type& in = c.input(0);
  if (!in.rank_known) return InferSameAsFirst(c);
  MSRT_ASSIGN_OR_RETURN(const auto lists, CheckedSliceLists(op, in.rank()));
  if (!lists) return InferUnknownSlice(c);
  Dims out = in.dims;
  for (size_t i = 0; i < lists->axes.size(); ++i) {
    int64_t& d = out[lists->axes[i]];
    if (IsKnown(d)) d = NormalizeSlice(lists->starts[i], lists->ends[i], lists->steps[i], d).count;
    else if (!TakesAll(lists->starts[i], lists->ends[i], lists->steps[i])) d = kUnknownDim;
  }
  c.SetOutput(0, in.dtype, out);
  return OkStatus();
}

// Fills in every axis of the input, including those that are taken whole.
Status AllSliceAxes(const OpView& op, std::span<SliceAxis> all) {
  const Dims& in = op.input(0).dims;
  MSRT_ASSIGN_OR_RETURN(const auto lists, CheckedSliceLists(op, in.rank()));
  if (!lists) return Unsupported("cannot be cut before its starts, ends and steps are known");
  for (int d = 0; d < in.rank(); ++d) all[static_cast<size_t>(d)] = {0, 1, in[d]};
  for (size_t i = 0; i < lists->axes.size(); ++i) {
    const int a = lists->axes[i];
    all[static_cast<size_t>(a)] =
        NormalizeSlice(lists->starts[i], lists->ends[i], lists->steps[i], in[a]);
  }
  return OkStatus();
}

Status ResolveSlice(const OpView& op, ResolvedSpace* space) {
  SliceAxis axes[kMaxRank];
  MSRT_RETURN_IF_ERROR(AllSliceAxes(op, axes));
  const Dims& in = op.input(0).dims;
  for (int d = 0; d < in.rank(); ++d) {
    space->inputs[0].dims[static_cast<size_t>(d)] =
        DimMap::Affine(d, axes[d].start, axes[d].step, in[d]);
  }
  DropInputs(1, space);
  return ResolveByOutput(op, space);
}

Status LocalizeSlice(const OpView& op, const Box& box, std::span<const Box> inputs,
                     std::span<const Box>, AttrList* attrs) {
  SliceAxis axes[kMaxRank];
  MSRT_RETURN_IF_ERROR(AllSliceAxes(op, axes));
  std::vector<int64_t> starts, ends, steps;
  for (int d = 0; d < box.rank(); ++d) {
    const int64_t step = axes[d].step, extent = inputs[0][d].size();
    // The piece of the input ends at the last element that is taken, so the slice covers all of it.
    starts.push_back(step > 0 ? 0 : extent - 1);
    ends.push_back(step > 0 ? extent : std::numeric_limits<int64_t>::min());
    steps.push_back(step);
  }
  attrs->Set("starts", std::move(starts));
  attrs->Set("ends", std::move(ends));
  attrs->Set("steps", std::move(steps));
  attrs->Remove("axes");
  return OkStatus();
}

// A slice reads as much as it writes, not all of its input.
Cost CostOfSlice(const OpView& op) {
  const auto bytes = static_cast<double>(op.output(0).bytes());
  return {.flops = 0, .bytes_read = bytes, .bytes_written = bytes};
}

// ---- Tile ---------------------------------------------------------------------------------------

// A piece of a Tile: output dims and where they begin in the whole output.
Status InferTilePiece(InferContext& c, const Dims& whole) {
  const auto begin = c.op().Ints("piece_begin"), extents = c.op().Ints("piece_dims");
  if (begin.size() != whole.size() || extents.size() != whole.size()) {
    return InvalidModel("piece_begin and piece_dims must have ", whole.size(), " elements");
  }
  for (int d = 0; d < whole.rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    if (IsKnown(whole[d]) && (begin[i] > whole[d] || extents[i] > whole[d] - begin[i])) {
      return InvalidModel("piece_begin[", d, "] = ", begin[i], " and piece_dims[", d,
                          "] = ", extents[i], " are outside ", whole);
    }
  }
  c.SetOutput(0, c.dtype(0), Dims(extents));
  return OkStatus();
}

Status InferTile(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(c.op(), "repeats", 1, true));
  const Type& in = c.input(0);
  if (!in.rank_known) return InferSameAsFirst(c);
  Dims out = Dims::Filled(in.rank(), kUnknownDim);
  if (const auto repeats = IntsAttrOrInput(c.op(), "repeats", 1)) {
    if (repeats->size() != in.dims.size()) {
      return InvalidModel("repeats has ", repeats->size(), " elements, must have ", in.rank(),
                          " for ", in.dims);
    }
    for (int d = 0; d < in.rank(); ++d) {
      const int64_t times = (*repeats)[static_cast<size_t>(d)];
      if (times < 0) return InvalidModel("repeats[", d, "] = ", times, ", must be at least 0");
      if (times == 1) out[d] = in.dims[d];
      else if (times == 0) out[d] = 0;
      else if (IsKnown(in.dims[d]) && !CheckedMul(in.dims[d], times, &out[d])) {
        return InvalidModel("repeats[", d, "] = ", times, " times ", in.dims[d],
                            " elements overflows");
      }
    }
  }
  if (c.op().Has("piece_begin") || c.op().Has("piece_dims")) return InferTilePiece(c, out);
  c.SetOutput(0, in.dtype, out);
  return OkStatus();
}

// Returns the repeats of all axes; kUnsupported if only the run will know them.
Result<std::vector<int64_t>> KnownRepeats(const OpView& op) {
  auto repeats = IntsAttrOrInput(op, "repeats", 1);
  if (!repeats) return Unsupported("cannot be cut before its repeats are known");
  return *std::move(repeats);
}

// One axis of a piece of the space, seen from the whole: the part of the input it reads, and where
// in that part it begins. Pieces within one repetition read only their own part; others read the
// axis whole.
struct TilePart {
  Interval needs;
  int64_t phase;
};
int64_t TileOrigin(const OpView& op, int axis) {
  return op.Has("piece_begin") ? op.Ints("piece_begin")[static_cast<size_t>(axis)] : 0;
}
TilePart TilePartOf(int64_t extent, int64_t origin, Interval piece) {
  if (piece.empty()) return {{0, 0}, 0};
  const int64_t begin = (origin + piece.begin) % extent;
  if (begin + piece.size() <= extent) return {{begin, begin + piece.size()}, 0};
  return {{0, extent}, begin};
}

class RepeatedDim : public IntervalMap {
 public:
  RepeatedDim(int64_t extent, int64_t origin) : extent_(extent), origin_(origin) {}
  Interval Touched(Interval piece) const override {
    return TilePartOf(extent_, origin_, piece).needs;
  }

 private:
  int64_t extent_, origin_;
};

Status ResolveTile(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, KnownRepeats(op));
  const Dims& in = op.input(0).dims;
  for (int d = 0; d < in.rank(); ++d) {
    const bool once = repeats[static_cast<size_t>(d)] == 1 && !op.Has("piece_begin");
    space->axes.Add(once ? AxisKind::kParallel : AxisKind::kWindow, op.output(0).dims[d]);
    space->inputs[0].dims[static_cast<size_t>(d)] =
        once ? DimMap::Same(d, in[d])
             : DimMap::Function(d, in[d], std::make_shared<RepeatedDim>(in[d], TileOrigin(op, d)));
  }
  DropInputs(1, space);
  space->outputs[0] = TensorMap::Same(op.output(0).dims);
  return OkStatus();
}

Status LocalizeTile(const OpView& op, const Box& box, std::span<const Box>,
                    std::span<const Box> outputs, AttrList* attrs) {
  std::vector<int64_t> repeats, begin;
  for (int d = 0; d < box.rank(); ++d) {
    const TilePart part = TilePartOf(op.input(0).dims[d], TileOrigin(op, d), box[d]);
    repeats.push_back(part.needs.empty() ? 1
                                         : CeilDiv(part.phase + box[d].size(), part.needs.size()));
    begin.push_back(part.phase);
  }
  attrs->Set("repeats", std::move(repeats));
  attrs->Set("piece_begin", std::move(begin));
  attrs->Set("piece_dims", ExtentsOf(outputs[0]));
  return OkStatus();
}

// ---- ReverseSequence ----------------------------------------------------------------------------

Status InferReverseSequence(InferContext& c) {
  const int64_t batch = c.op().Int("batch_axis"), time = c.op().Int("time_axis");
  if (batch == time)
    return InvalidModel("batch_axis and time_axis are both ", batch, ", must differ");
  const Type& in = c.input(0);
  if (in.rank_known && in.rank() < 2)
    return InvalidModel("input 0 has shape ", in.dims, ", must have rank 2 or more");
  MSRT_RETURN_IF_ERROR(CheckRank(c, 1, 1));
  if (in.rank_known && c.input(1).rank_known) {
    const int64_t batches = in.dims[static_cast<int>(batch)];
    MSRT_RETURN_IF_ERROR(
        SameDim(batches, c.dims(1)[0], "the batch and the number of sequence_lens differ")
            .status());
  }
  return InferSameAsFirst(c);
}

Status ResolveReverseSequence(const OpView& op, ResolvedSpace* space) {
  const auto time = static_cast<int>(op.Int("time_axis"));
  ResolveByInput(
      op, [&](int d) { return d == time; }, space);
  space->inputs[1] = TensorMap::Same(op.input(1).dims, static_cast<int>(op.Int("batch_axis")));
  space->outputs[0] = TensorMap::Same(op.output(0).dims);
  return OkStatus();
}

// ---- entries ------------------------------------------------------------------------------------

constexpr SpaceDef kTransposeSpace{.resolve = ResolveTranspose};
constexpr SpaceDef kConcatSpace{.resolve = ResolveConcat};
constexpr SpaceDef kSplitSpace{.localize = LocalizeSplit, .resolve = ResolveSplit};
constexpr SpaceDef kSliceSpace{.localize = LocalizeSlice, .resolve = ResolveSlice};
constexpr SpaceDef kTileSpace{.localize = LocalizeTile, .resolve = ResolveTile};
constexpr SpaceDef kReverseSequenceSpace{.resolve = ResolveReverseSequence};

constexpr DTypeSet kMovedTypes = kComputeTypes | kF8Types;  // 4-bit elements are not addressable

constexpr AttrDef kTransposeAttrs[] = {
    {.name = "perm",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_int = kMaxRank - 1,
     .max_count = kMaxRank},
};
constexpr AttrDef kConcatAttrs[] = {
    {.name = "axis", .required = true, .min_int = -kMaxRank, .max_int = kMaxRank - 1}};
constexpr AttrDef kSplitAttrs[] = {
    {.name = "axis", .min_int = -kMaxRank, .max_int = kMaxRank - 1},
    {.name = "split", .kind = AttrKind::kInts, .min_int = 0, .max_count = kMaxSplitOutputs},
    {.name = "num_outputs", .min_int = 1, .max_int = kMaxSplitOutputs},
};
constexpr AttrDef kSliceAttrs[] = {
    {.name = "starts", .kind = AttrKind::kInts, .max_count = kMaxRank},
    {.name = "ends", .kind = AttrKind::kInts, .max_count = kMaxRank},
    {.name = "axes",
     .kind = AttrKind::kInts,
     .min_int = -kMaxRank,
     .max_int = kMaxRank - 1,
     .max_count = kMaxRank},
    {.name = "steps", .kind = AttrKind::kInts, .max_count = kMaxRank},
};
constexpr AttrDef kTileAttrs[] = {
    {.name = "repeats", .kind = AttrKind::kInts, .min_int = 0, .max_count = kMaxRank},
    {.name = "piece_begin",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_count = kMaxRank,
     .local = true},
    {.name = "piece_dims",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_count = kMaxRank,
     .local = true},
};
constexpr AttrDef kReverseSequenceAttrs[] = {
    {.name = "batch_axis", .default_int = 1, .min_int = 0, .max_int = 1},
    {.name = "time_axis", .default_int = 0, .min_int = 0, .max_int = 1},
};

constexpr ParamDef kOneInput[] = {{"data", kMovedTypes}};
constexpr ParamDef kConcatInputs[] = {{"inputs", kMovedTypes, ParamDef::kVariadic, 1}};
constexpr ParamDef kSplitInputs[] = {{"input", kMovedTypes},
                                     {"split", kIndexTypes, ParamDef::kOptional}};
constexpr ParamDef kSliceInputs[] = {{"data", kMovedTypes},
                                     {"starts", kIndexTypes, ParamDef::kOptional},
                                     {"ends", kIndexTypes, ParamDef::kOptional},
                                     {"axes", kIndexTypes, ParamDef::kOptional},
                                     {"steps", kIndexTypes, ParamDef::kOptional}};
constexpr ParamDef kTileInputs[] = {{"input", kMovedTypes},
                                    {"repeats", kIndexTypes, ParamDef::kOptional}};
constexpr ParamDef kReverseSequenceInputs[] = {{"input", kMovedTypes},
                                               {"sequence_lens", kIndexTypes}};

constexpr OpDef kMovementOps[] = {
    {.name = "Transpose",
     .attrs = kTransposeAttrs,
     .inputs = kOneInput,
     .infer = InferTranspose,
     .grad = GradTranspose,
     .space = &kTransposeSpace},
    {.name = "Concat",
     .attrs = kConcatAttrs,
     .inputs = kConcatInputs,
     .infer = InferConcat,
     .grad = GradConcat,
     .space = &kConcatSpace},
    {.name = "Split",
     .attrs = kSplitAttrs,
     .inputs = kSplitInputs,
     .max_outputs = kMaxSplitOutputs,
     .infer = InferSplit,
     .grad = GradSplit,
     .space = &kSplitSpace},
    {.name = "Slice",
     .attrs = kSliceAttrs,
     .inputs = kSliceInputs,
     .infer = InferSlice,
     .grad = GradSlice,
     .space = &kSliceSpace,
     .cost = CostOfSlice},
    {.name = "Tile",
     .attrs = kTileAttrs,
     .inputs = kTileInputs,
     .infer = InferTile,
     .grad = GradTile,
     .space = &kTileSpace},
    {.name = "ReverseSequence",
     .attrs = kReverseSequenceAttrs,
     .inputs = kReverseSequenceInputs,
     .infer = InferReverseSequence,
     .grad = GradReverseSequence,
     .space = &kReverseSequenceSpace},
};

}  // namespace

std::span<const OpDef> MovementOps() { return kMovementOps; }

}  // namespace msrt

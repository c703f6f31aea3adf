// Pad: constant, reflect, edge and wrap; negative pads crop. The rule of one axis is in
// core/region/pad.h.
#include "core/region/pad.h"
#include "core/base/checked_math.h"
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

constexpr int64_t kMaxPadElements =
    int64_t{1} << 56;  // no tensor has more elements, so sums of a few of these never overflow

PadMode ModeOf(const OpView& op) { return *PadModeFromName(op.String("mode")); }

// The rules of all axes, and the position of a piece (localize) in the whole. Requires concrete
// types, checked and known lists.
struct PadNode {
  std::vector<PadAxis> axes;
  Dims input_begin, output_begin;
};
PadNode PadNodeOf(const OpView& op) {
  const Dims& in = op.input(0).dims;
  const int rank = in.rank();
  const PadAmounts amounts =
      SpreadPads(*IntsAttrOrInput(op, "pads", 1), *IntsAttrOrInput(op, "axes", 3), rank);
  PadNode node{{}, Dims::Filled(rank, 0), Dims::Filled(rank, 0)};
  Dims whole = in;
  if (op.Has("whole_dims")) {
    whole = Dims(op.Ints("whole_dims"));
    node.input_begin = Dims(op.Ints("piece_input_begin"));
    node.output_begin = Dims(op.Ints("piece_output_begin"));
  }
  for (int d = 0; d < rank; ++d)
    node.axes.emplace_back(ModeOf(op), whole[d], amounts.before[d], amounts.after[d]);
  return node;
}

// ---- inference ----------------------------------------------------------------------------------

Status CheckConstantValue(const InferContext& c) {
  const OpView& op = c.op();
  MSRT_RETURN_IF_ERROR(RefuseAttrAndInput(op, "value", 2));
  if (op.Has("value") && op.Float("value") != 0 && kF8Types.Has(c.dtype(0))) {
    return InvalidModel("value = ", op.Float("value"), " cannot be an attribute for ", c.dtype(0),
                        " elements: give it as input 2");
  }
  if (!op.has_input(2) || !op.input(2).concrete() || op.input(2).elements() == 1) return OkStatus();
  return InvalidModel("input 2 'constant_value' has shape ", op.input(2).dims,
                      ", must have one element");
}

Status CheckPadLists(std::span<const int64_t> pads, std::span<const int64_t> axes, int rank) {
  MSRT_RETURN_IF_ERROR(NormalizeAxes(axes, rank).status());
  const size_t count = axes.empty() ? static_cast<size_t>(rank) : axes.size();
  if (pads.size() != 2 * count)
    return InvalidModel("pads has ", pads.size(), " elements, must have two for each of ", count,
                        " axes");
  for (size_t i = 0; i < pads.size(); ++i) {
    if (pads[i] < -kMaxPadElements || pads[i] > kMaxPadElements)
      return InvalidModel("pads[", i, "] = ", pads[i], ", must be within 2^56 of 0");
  }
  return OkStatus();
}

// Checks the position that a piece claims against its input: kernels rely on it.
Status InferPadPiece(InferContext& c) {
  const OpView& op = c.op();
  const auto extents = op.Ints("piece_dims");
  const auto rank = static_cast<size_t>(c.input(0).rank());
  for (std::string_view name :
       {"whole_dims", "piece_input_begin", "piece_output_begin", "piece_dims"}) {
    if (op.Ints(name).size() != rank)
      return InvalidModel(name, " has ", op.Ints(name).size(), " elements, must have ", rank);
  }
  if (c.input(0).concrete()) {
    const PadNode node = PadNodeOf(op);
    for (int d = 0; d < c.input(0).rank(); ++d) {
      const int64_t begin = node.output_begin[d], extent = extents[static_cast<size_t>(d)],
                    first = node.input_begin[d];
      if (extent == 0) continue;
      const bool has_source = node.axes[static_cast<size_t>(d)].kept > 0;
      const Interval have{first, first + c.dims(0)[d]};
      if (!has_source ||
          !have.Contains(node.axes[static_cast<size_t>(d)].Needs({begin, begin + extent}))) {
        return InvalidModel("piece_dims[", d, "] = ", extent, " needs more than the elements ",
                            have, " that the piece has");
      }
    }
  }
  c.SetOutput(0, c.dtype(0), Dims(extents));
  return OkStatus();
}

Status InferPad(InferContext& c) {
  const OpView& op = c.op();
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(op, "pads", 1, true));
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(op, "axes", 3));
  MSRT_RETURN_IF_ERROR(CheckConstantValue(c));
  const Type& in = c.input(0);
  if (!in.rank_known) return InferSameAsFirst(c);
  const auto pads = IntsAttrOrInput(op, "pads", 1), axes = IntsAttrOrInput(op, "axes", 3);
  Dims out = in.dims;
  if (!pads || !axes) {
    out = Dims::Filled(in.rank(), kUnknownDim);
    c.SetOutput(0, in.dtype, out);
    return OkStatus();
  }
  MSRT_RETURN_IF_ERROR(CheckPadLists(*pads, *axes, in.rank()));
  if (op.Has("whole_dims")) return InferPadPiece(c);
  const PadAmounts amounts = SpreadPads(*pads, *axes, in.rank());
  for (int d = 0; d < in.rank(); ++d) {
    const int64_t before = amounts.before[d], after = amounts.after[d];
    if (before == 0 && after == 0) continue;
    if (!IsKnown(in.dims[d])) {
      out[d] = kUnknownDim;
      continue;
    }
    if (!CheckedAdd(in.dims[d], before + after, &out[d]) || out[d] < 0) {
      return InvalidModel("pads of ", before, " and ", after, " leave no valid dim of ", in.dims[d],
                          " along axis ", d);
    }
    if (ModeOf(op) != PadMode::kConstant && out[d] > 0 &&
        PadAxis(ModeOf(op), in.dims[d], before, after).kept == 0) {
      return InvalidModel("mode '", op.String("mode"), "' has no element to repeat along axis ", d,
                          " of ", in.dims);
    }
  }
  c.SetOutput(0, in.dtype, out);
  return OkStatus();
}

// ---- iteration space ----------------------------------------------------------------------------

// Boxes are relative to this node's tensors, the rule to the whole ones.
class PaddedDim : public IntervalMap {
 public:
  PaddedDim(const PadAxis& axis, int64_t input_begin, int64_t output_begin)
      : axis_(axis), input_begin_(input_begin), output_begin_(output_begin) {}
  Interval Touched(Interval piece) const override {
    const Interval needs = axis_.Needs({piece.begin + output_begin_, piece.end + output_begin_});
    if (needs.empty()) return {0, 0};
    return {needs.begin - input_begin_, needs.end - input_begin_};
  }

 private:
  PadAxis axis_;
  int64_t input_begin_, output_begin_;
};

constexpr size_t kPadsInput = 1, kAxesInput = 3;

Status ResolvePad(const OpView& op, ResolvedSpace* space) {
  if (!IntsAttrOrInput(op, "pads", kPadsInput) || !IntsAttrOrInput(op, "axes", kAxesInput))
    return Unsupported("cannot be cut before its pads and axes are known");
  const PadNode node = PadNodeOf(op);
  const Dims &in = op.input(0).dims, &out = op.output(0).dims;
  for (int d = 0; d < out.rank(); ++d) {
    const PadAxis& axis = node.axes[static_cast<size_t>(d)];
    const bool same = axis.first == 0 && axis.before == 0 && out[d] == in[d] &&
                      node.output_begin[d] == node.input_begin[d];
    space->axes.Add(same ? AxisKind::kParallel : AxisKind::kWindow, out[d]);
    // A constant is not read, so only the other modes need their rule.
    const int64_t shift = axis.first - axis.before + node.output_begin[d] - node.input_begin[d];
    DimMap& map = space->inputs[0].dims[static_cast<size_t>(d)];
    if (same) map = DimMap::Same(d, in[d]);
    else if (axis.mode == PadMode::kConstant && axis.first == 0 && axis.kept == in[d])
      map = DimMap::Affine(d, shift, 1, in[d]);
    else
      map = DimMap::Function(
          d, in[d], std::make_shared<PaddedDim>(axis, node.input_begin[d], node.output_begin[d]));
  }
  for (size_t i : {kPadsInput, kAxesInput}) {
    if (op.has_input(i)) space->inputs[i].dropped = true;
  }
  space->outputs[0] = TensorMap::Same(out);
  return OkStatus();
}

// Constants and edges become pads of the piece, which every delegate supports.
void LocalizePads(const PadNode& node, const Box& box, const Box& input, AttrList* attrs) {
  const auto rank = static_cast<size_t>(box.rank());
  std::vector<int64_t> pads(2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    const Interval out = box[static_cast<int>(d)];
    const int64_t extent = input[static_cast<int>(d)].size(), zero = 0;
    const PadAxis& axis = node.axes[d];
    pads[d] = std::clamp(axis.before - out.begin, zero, out.size() - extent);
    pads[rank + d] = out.size() - extent - pads[d];
  }
  attrs->Set("pads", std::move(pads));
  attrs->Remove("axes");
}

// A reflection or a repeat may read any element: the piece keeps the rule of the whole and its own
// position in it.
void LocalizeByPosition(const OpView& op, const PadNode& node, const Box& box, const Box& input,
                        AttrList* attrs) {
  std::vector<int64_t> input_begin, output_begin;
  for (int d = 0; d < box.rank(); ++d) {
    input_begin.push_back(node.input_begin[d] + input[d].begin);
    output_begin.push_back(node.output_begin[d] + box[d].begin);
  }
  if (!op.Has("whole_dims")) {
    const Dims& in = op.input(0).dims;
    attrs->Set("whole_dims", std::vector<int64_t>(in.begin(), in.end()));
  }
  attrs->Set("piece_input_begin", std::move(input_begin));
  attrs->Set("piece_output_begin", std::move(output_begin));
  attrs->Set("piece_dims", ExtentsOf(box));
  attrs->Set("pads", *IntsAttrOrInput(op, "pads", kPadsInput));
  std::vector<int64_t> axes = *IntsAttrOrInput(op, "axes", kAxesInput);
  if (!axes.empty()) attrs->Set("axes", std::move(axes));
}

Status LocalizePad(const OpView& op, const Box& box, std::span<const Box> inputs,
                   std::span<const Box>, AttrList* attrs) {
  const PadNode node = PadNodeOf(op);
  const PadMode mode = ModeOf(op);
  if (mode == PadMode::kConstant || mode == PadMode::kEdge)
    LocalizePads(node, box, inputs[0], attrs);
  else LocalizeByPosition(op, node, box, inputs[0], attrs);
  return OkStatus();
}

// ---- entries ------------------------------------------------------------------------------------

constexpr SpaceDef kPadSpace{.localize = LocalizePad, .resolve = ResolvePad};

constexpr std::string_view kPadModes[] = {"constant", "reflect", "edge", "wrap"};
constexpr AttrDef kPadAttrs[] = {
    {.name = "mode", .kind = AttrKind::kString, .default_string = "constant", .choices = kPadModes},
    {.name = "pads",
     .kind = AttrKind::kInts,
     .min_int = -kMaxPadElements,
     .max_int = kMaxPadElements,
     .max_count = 2 * kMaxRank},
    {.name = "value", .kind = AttrKind::kFloat},
    {.name = "axes",
     .kind = AttrKind::kInts,
     .min_int = -kMaxRank,
     .max_int = kMaxRank - 1,
     .max_count = kMaxRank},
    {.name = "whole_dims",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_int = kMaxPadElements,
     .max_count = kMaxRank,
     .local = true},
    {.name = "piece_input_begin",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_int = kMaxPadElements,
     .max_count = kMaxRank,
     .local = true},
    {.name = "piece_output_begin",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_int = kMaxPadElements,
     .max_count = kMaxRank,
     .local = true},
    {.name = "piece_dims",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_int = kMaxPadElements,
     .max_count = kMaxRank,
     .local = true},
};
constexpr ParamDef kPadInputs[] = {
    {"data", kComputeTypes | kF8Types, ParamDef::kRequired, 1},
    {"pads", kIndexTypes, ParamDef::kOptional},
    {"constant_value", kComputeTypes | kF8Types, ParamDef::kOptional, 1},
    {"axes", kIndexTypes, ParamDef::kOptional}};

constexpr OpDef kPadOps[] = {
    {.name = "Pad",
     .attrs = kPadAttrs,
     .inputs = kPadInputs,
     .infer = InferPad,
     .grad = GradPad,
     .space = &kPadSpace},
};

}  // namespace

std::span<const OpDef> PadOps() { return kPadOps; }

}  // namespace msrt

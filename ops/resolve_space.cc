#include "ops/resolve_space.h"

#include "core/base/checked_math.h"

namespace msrt {
namespace {

ResolvedSpace WholeTensors(const OpView& op) {
  ResolvedSpace space;
  for (size_t i = 0; i < op.input_count(); ++i)
    space.inputs.push_back(op.has_input(i) ? TensorMap::Whole(op.input(i).dims) : TensorMap());
  for (size_t o = 0; o < op.output_count(); ++o)
    space.outputs.push_back(op.has_output(o) ? TensorMap::Whole(op.output(o).dims) : TensorMap());
  return space;
}

// ---- entries with callbacks ---------------------------------------------------------------------

struct PieceBoxes {
  std::vector<Box> inputs, outputs;
  const Box& of(bool input, size_t i) const { return input ? inputs[i] : outputs[i]; }
};

Result<PieceBoxes> AskCallbacks(const SpaceDef& def, const OpView& op, const Box& piece) {
  PieceBoxes boxes{std::vector<Box>(op.input_count()), std::vector<Box>(op.output_count())};
  MSRT_RETURN_IF_ERROR(def.operands(op, piece, boxes.inputs));
  MSRT_RETURN_IF_ERROR(def.results(op, piece, boxes.outputs));
  return boxes;
}

// One dim of one tensor, which depends on one axis only: all other axes are whole in each call.
class CallbackMap : public IntervalMap {
 public:
  CallbackMap(const SpaceDef& def, const OpView& op, const Box& whole, int axis, bool input,
              size_t tensor, int dim)
      : def_(def), op_(op), whole_(whole), axis_(axis), input_(input), tensor_(tensor), dim_(dim) {}

  Interval Touched(Interval of_axis) const override {
    Box piece = whole_;
    piece[axis_] = of_axis;
    const auto boxes = AskCallbacks(def_, op_, piece);
    // It answered for the probes; a refusal now is safe to read as "the whole dim".
    if (!boxes.ok() || dim_ >= boxes->of(input_, tensor_).rank()) return {0, extent()};
    return boxes->of(input_, tensor_)[dim_];
  }

 private:
  int64_t extent() const { return (input_ ? op_.input(tensor_) : op_.output(tensor_)).dims[dim_]; }
  const SpaceDef& def_;
  OpView op_;
  Box whole_;
  int axis_;
  bool input_;
  size_t tensor_;
  int dim_;
};

// Makes the maps of all inputs or all outputs: a dim follows the axis whose probes change it.
class Prober {
 public:
  Prober(const SpaceDef& def, const OpView& op) : def_(def), op_(op) {}

  Status Resolve(ResolvedSpace* space) {
    MSRT_RETURN_IF_ERROR(def_.axes(op_, &space->axes));
    whole_ = space->axes.Whole();
    MSRT_ASSIGN_OR_RETURN(whole_boxes_, AskCallbacks(def_, op_, whole_));
    for (size_t i = 0; i < space->inputs.size(); ++i)
      MSRT_RETURN_IF_ERROR(Start(true, i, &space->inputs[i]));
    for (size_t o = 0; o < space->outputs.size(); ++o)
      MSRT_RETURN_IF_ERROR(Start(false, o, &space->outputs[o]));
    for (int a = 0; a < space->axes.rank(); ++a) MSRT_RETURN_IF_ERROR(ProbeAxis(a, space));
    return OkStatus();
  }

 private:
  Status Start(bool input, size_t i, TensorMap* map) {
    if (!map->present) return OkStatus();
    const Box& box = whole_boxes_.of(input, i);
    if (static_cast<size_t>(box.rank()) != map->dims.size())
      return Unsupported(input ? "input " : "output ", i, " has ", map->dims.size(),
                         " dims, but a box of rank ", box.rank());
    for (int d = 0; d < box.rank(); ++d) map->dims[static_cast<size_t>(d)] = DimMap::Fixed(box[d]);
    return OkStatus();
  }

  Status ProbeAxis(int axis, ResolvedSpace* space) {
    const int64_t extent = whole_[axis].end;
    if (extent < 2) return OkStatus();
    for (const int64_t at : {int64_t{0}, extent / 2, extent - 1}) {
      Box piece = whole_;
      piece[axis] = {at, at + 1};
      MSRT_ASSIGN_OR_RETURN(const PieceBoxes boxes, AskCallbacks(def_, op_, piece));
      for (size_t i = 0; i < space->inputs.size(); ++i)
        MSRT_RETURN_IF_ERROR(Compare(boxes, axis, true, i, &space->inputs[i]));
      for (size_t o = 0; o < space->outputs.size(); ++o)
        MSRT_RETURN_IF_ERROR(Compare(boxes, axis, false, o, &space->outputs[o]));
    }
    return OkStatus();
  }

  Status Compare(const PieceBoxes& boxes, int axis, bool input, size_t i, TensorMap* map) {
    if (!map->present) return OkStatus();
    const Box& now = boxes.of(input, i);
    const Box& whole = whole_boxes_.of(input, i);
    if (now.rank() != whole.rank()) return Unsupported("the rank of a box depends on the piece");
    for (int d = 0; d < now.rank(); ++d) {
      DimMap& dim = map->dims[static_cast<size_t>(d)];
      if (now[d] == whole[d] || dim.axis == axis) continue;
      if (dim.axis >= 0) {
        return Unsupported("dim ", d, " of ", input ? "input " : "output ", i, " follows axes ",
                           dim.axis, " and ", axis, "; only one can be followed");
      }
      const int64_t extent = (input ? op_.input(i) : op_.output(i)).dims[d];
      dim = DimMap::Function(axis, extent,
                             std::make_shared<CallbackMap>(def_, op_, whole_, axis, input, i, d));
    }
    return OkStatus();
  }

  const SpaceDef& def_;
  const OpView& op_;
  Box whole_;
  PieceBoxes whole_boxes_;
};

}  // namespace

Result<ResolvedSpace> ResolveSpace(const SpaceDef& def, const OpView& op) {
  ResolvedSpace space = WholeTensors(op);
  if (def.resolve != nullptr) MSRT_RETURN_IF_ERROR(def.resolve(op, &space));
  else MSRT_RETURN_IF_ERROR(Prober(def, op).Resolve(&space));
  return space;
}

Result<ResolvedSpace> ResolveSpace(const OpDef& def, const OpView& op) {
  if (def.space == nullptr) return Unsupported(def.name, " needs the whole of its inputs");
  return ResolveSpace(*def.space, op);
}

}  // namespace msrt

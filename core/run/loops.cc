#include "core/run/loops.h"

#include <algorithm>

#include "core/run/results.h"
#include "core/run/slices.h"
#include "core/run/step_values.h"

namespace msrt {
namespace {

int64_t ListAttr(const Node& node, std::string_view name, size_t i) {
  const AttrValue* value = node.attrs.Find(name);
  if (value == nullptr) return 0;
  const auto& list = std::get<std::vector<int64_t>>(*value);
  return i < list.size() ? list[i] : 0;
}

// Returns the dims of a number as the callee declares it: loop bodies may take lists of one.
Dims DimsOfNumber(const Module& module, uint32_t graph, size_t input) {
  const Graph& callee = module.graphs[graph];
  return callee.value(callee.inputs[input]).type.dims == Dims{1} ? Dims{1} : Dims{};
}

}  // namespace

Result<bool> Loops::Begin(Frame* frame, const Step& step) {
  const ControlShape& shape = *step.control;
  LoopState& loop = frame->loop;
  loop.iteration = 0;
  loop.in_condition = false;
  MSRT_RETURN_IF_ERROR(SetTrips(frame, step));
  if (loop.carried.size() < shape.carried) loop.carried.resize(shape.carried);
  for (size_t i = 0; i < shape.carried; ++i) {
    loop.carried[i].now = InputOf(frame, context_.states, step, shape.leading + i);
    loop.carried[i].next = 0;
  }
  const size_t before = shape.body_extra_outputs() + shape.carried;
  const size_t results = context_.model.module.graphs[shape.graphs.back()].outputs.size();
  loop.scanned.resize(std::max(loop.scanned.size(), results - before));
  for (ScannedResult& s : loop.scanned) s.filled = 0;
  return Next(frame, step);
}

// Sets the maximum number of iterations: the trip count, or the length of the scanned inputs.
Status Loops::SetTrips(Frame* frame, const Step& step) {
  const ControlShape& shape = *step.control;
  LoopState& loop = frame->loop;
  loop.trips = INT64_MAX;
  bool go_on = true;
  if (shape.kind == ControlKind::kLoop) {
    if (step.inputs[0] != kNoBuffer) {
      MSRT_ASSIGN_OR_RETURN(loop.trips, NumberOf(frame, context_.states, step, 0));
    }
    if (step.inputs[1] != kNoBuffer) {
      MSRT_ASSIGN_OR_RETURN(const int64_t condition, NumberOf(frame, context_.states, step, 1));
      go_on = condition != 0;
    }
  }
  loop.slices.resize(std::max(loop.slices.size(), shape.scan_inputs));
  for (size_t i = 0; i < shape.scan_inputs; ++i) {
    const TensorView whole =
        InputOf(frame, context_.states, step, shape.leading + shape.carried + i).tensor;
    MSRT_ASSIGN_OR_RETURN(
        const SliceGeometry sliced,
        SliceAlong(whole.dtype, whole.dims, ListAttr(NodeOf(*frame, step), "scan_input_axes", i)));
    if (i != 0 && sliced.length != loop.trips) {
      return InvalidArgument("scanned input ", i, " has ", sliced.length, " slices, the first has ",
                             loop.trips);
    }
    loop.trips = sliced.length;
  }
  if (!go_on) loop.trips = 0;
  return OkStatus();
}

Result<bool> Loops::Next(Frame* frame, const Step& step) {
  LoopState& loop = frame->loop;
  if (step.control->kind == ControlKind::kWhile && !loop.in_condition && loop.trips != 0) {
    loop.in_condition = true;
    MSRT_RETURN_IF_ERROR(CallBody(frame, step));
    return false;
  }
  loop.in_condition = false;
  if (loop.iteration < loop.trips) {
    MSRT_RETURN_IF_ERROR(CallBody(frame, step));
    return false;
  }
  Status status = Finish(frame, step);
  if (!status.ok()) return std::move(status).Within(Describe(frame->program(), step));
  return true;
}

Status Loops::CallBody(Frame* frame, const Step& step) {
  const ControlShape& shape = *step.control;
  LoopState& loop = frame->loop;
  const uint32_t graph = shape.kind == ControlKind::kWhile && loop.in_condition
                             ? shape.graphs[0]
                             : shape.graphs.back();
  MSRT_RETURN_IF_ERROR(AddArguments(frame, step, graph));
  targets_.clear();
  if (shape.kind == ControlKind::kLoop || loop.in_condition) targets_.push_back(&loop.condition);
  if (!loop.in_condition) {
    for (size_t i = 0; i < shape.carried; ++i) targets_.push_back(&loop.carried[i].written());
    const size_t results = context_.model.module.graphs[graph].outputs.size();
    for (size_t i = 0; targets_.size() < results; ++i) targets_.push_back(&loop.scanned[i].slice);
  }
  // The values that the loop captures are in memory of this frame or its callers until the loop has
  // ended.
  const size_t captured = step.inputs.size() - shape.captured_from();
  return calls_.Call(graph, std::move(arguments_), targets_, arguments_.size() - captured);
}

Status Loops::AddArguments(Frame* frame, const Step& step, uint32_t graph) {
  const ControlShape& shape = *step.control;
  LoopState& loop = frame->loop;
  arguments_.clear();
  // The counter and the condition that the body reads must outlive the call: the counter is in the
  // frame, the condition is static.
  static const uint8_t kTrue = 1;
  if (shape.kind == ControlKind::kLoop) {
    const Module& module = context_.model.module;
    arguments_.push_back(RunValue::Of(
        {DType::kI64, DimsOfNumber(module, graph, 0), Layout::kPlain, &loop.iteration}));
    arguments_.push_back(RunValue::Of({DType::kBool, DimsOfNumber(module, graph, 1), Layout::kPlain,
                                       const_cast<uint8_t*>(&kTrue)}));
  }
  for (size_t i = 0; i < shape.carried; ++i) arguments_.push_back(loop.carried[i].now);
  for (size_t i = 0; i < shape.scan_inputs; ++i) {
    MSRT_ASSIGN_OR_RETURN(RunValue slice, SliceOf(frame, step, i));
    arguments_.push_back(std::move(slice));
  }
  for (size_t i = shape.captured_from(); i < step.inputs.size(); ++i)
    arguments_.push_back(InputOf(frame, context_.states, step, i));
  return OkStatus();
}

Status Loops::TakeResults(Frame* frame, const Step& step) {
  const ControlShape& shape = *step.control;
  LoopState& loop = frame->loop;
  if (shape.kind == ControlKind::kLoop || loop.in_condition) {
    const TensorView condition = loop.condition.value.tensor;
    if (condition.elements() != 1)
      return InvalidArgument("its condition has ", condition.elements(),
                             " elements, must have one");
    if (*condition.As<uint8_t>() == 0)
      loop.trips = loop.in_condition ? loop.iteration : loop.iteration + 1;
  }
  if (loop.in_condition) return OkStatus();
  for (size_t i = 0; i < shape.carried; ++i) {
    CarriedValue& c = loop.carried[i];
    c.now = c.written().value;
    c.next ^= 1;
  }
  const bool scan = shape.kind == ControlKind::kScan;
  const Node& node = NodeOf(*frame, step);
  const size_t results = context_.model.module.graphs[shape.graphs.back()].outputs.size();
  const size_t scanned = results - shape.body_extra_outputs() - shape.carried;
  for (size_t i = 0; i < scanned; ++i) {
    // A Scan knows how many slices there will be; a Loop does not.
    Stacking stacking;
    if (scan)
      stacking = {ListAttr(node, "scan_output_axes", i), loop.trips,
                  ListAttr(node, "scan_output_directions", i) != 0};
    MSRT_RETURN_IF_ERROR(StackSlice(stacking, i, &loop.scanned[i], &context_.budget));
  }
  ++loop.iteration;
  return OkStatus();
}

// Returns slice i of the iteration in progress. Slices along the first axis are contiguous and are
// used in place.
Result<RunValue> Loops::SliceOf(Frame* frame, const Step& step, size_t i) {
  const ControlShape& shape = *step.control;
  const Node& node = NodeOf(*frame, step);
  LoopState& loop = frame->loop;
  const TensorView whole =
      InputOf(frame, context_.states, step, shape.leading + shape.carried + i).tensor;
  const int64_t axis = ListAttr(node, "scan_input_axes", i);
  MSRT_ASSIGN_OR_RETURN(const SliceGeometry s, SliceAlong(whole.dtype, whole.dims, axis));
  const bool backwards = ListAttr(node, "scan_input_directions", i) != 0;
  const int64_t at = backwards ? s.length - 1 - loop.iteration : loop.iteration;
  Dims dims = whole.dims;
  dims.erase(static_cast<int>(axis < 0 ? axis + dims.rank() : axis));
  std::byte* from = whole.As<std::byte>() + static_cast<size_t>(at) * s.inner_bytes;
  if (s.outer == 1) return RunValue::Of({whole.dtype, dims, Layout::kPlain, from});
  MSRT_ASSIGN_OR_RETURN(
      const TensorView slice,
      AllocateResult(&loop.slices[i], Type::Tensor(whole.dtype, dims), "slice", &context_.budget));
  CopySlices(slice.As<std::byte>(), s.inner_bytes, from,
             static_cast<size_t>(s.length) * s.inner_bytes, s);
  return RunValue::Of(slice);
}

Status Loops::Finish(Frame* frame, const Step& step) {
  MSRT_RETURN_IF_ERROR(values_.JoinReads());
  const ControlShape& shape = *step.control;
  const Node& node = NodeOf(*frame, step);
  LoopState& loop = frame->loop;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i] == kNoBuffer) continue;
    const std::string& name = frame->graph_of().value(node.outputs[i]).name;
    ResultCell* cell = CellOf(frame, step, i);
    if (i >= shape.carried) {
      MSRT_RETURN_IF_ERROR(FinishScanned(frame, step, i - shape.carried, cell));
      continue;
    }
    CarriedValue& c = loop.carried[i];
    if (c.now.device != nullptr) {
      MSRT_RETURN_IF_ERROR(values_.CopyToHost(frame, cell, c.now, name));
      continue;
    }
    MSRT_RETURN_IF_ERROR(Deliver(cell, c.now, loop.iteration != 0 ? &c.cells[c.next ^ 1] : nullptr,
                                 name, &context_.budget));
  }
  // The carried values have been delivered or are no longer needed.
  for (CarriedValue& c : loop.carried) c.now = {};
  return OkStatus();
}

Status Loops::FinishScanned(Frame* frame, const Step& step, size_t i, ResultCell* cell) {
  const ControlShape& shape = *step.control;
  const Node& node = NodeOf(*frame, step);
  const std::string& name = frame->graph_of().value(node.outputs[shape.carried + i]).name;
  ScannedResult& s = frame->loop.scanned[i];
  if (s.filled != 0) return Deliver(cell, s.whole.value, &s.whole, name, &context_.budget);
  // There was no iteration: only the declaration of the body tells the size.
  const Graph& body = context_.model.module.graphs[shape.graphs.back()];
  const Type& slice = body.value(body.outputs[shape.body_extra_outputs() + shape.carried + i]).type;
  Dims dims = slice.rank_known ? slice.dims : Dims{};
  for (int64_t& d : dims) d = IsKnown(d) ? d : 0;
  const int64_t axis = shape.kind == ControlKind::kScan ? ListAttr(node, "scan_output_axes", i) : 0;
  dims.insert(static_cast<int>(axis < 0 ? axis + dims.rank() + 1 : axis), 0);
  return AllocateResult(cell, Type::Tensor(slice.dtype, dims), name, &context_.budget).status();
}

}  // namespace msrt

// Control flow, which the executor runs between the segments of a frame.
#include <algorithm>
#include <cstring>

#include "core/run/executor.h"

namespace msrt {
namespace {

const Node& NodeOf(const Frame& frame, const Step& step) {
  return frame.graph_of().nodes[step.node];
}

int64_t ListAttr(const Node& node, std::string_view name, size_t i) {
  const AttrValue* value = node.attrs.Find(name);
  if (value == nullptr) return 0;
  const auto& list = std::get<std::vector<int64_t>>(*value);
  return i < list.size() ? list[i] : 0;
}

// The slices of a tensor along one of its axes.
struct SliceGeometry {
  int64_t outer, length;
  size_t inner_bytes;
};

Result<SliceGeometry> SliceAlong(DType dtype, const Dims& dims, int64_t axis) {
  if (BitsOf(dtype) < 8)
    return Unsupported("elements of ", dtype,
                       " are packed within bytes and cannot be scanned; cast them first");
  const int rank = dims.rank();
  if (axis < -rank || axis >= rank)
    return InvalidArgument("axis ", axis, " of a tensor of shape ", dims, " cannot be scanned");
  const int a = static_cast<int>(axis < 0 ? axis + rank : axis);
  return SliceGeometry{dims.product(0, a), dims[a], BytesOf(dtype, dims.product(a + 1, rank))};
}

void CopySlices(std::byte* to, size_t to_stride, const std::byte* from, size_t from_stride,
                const SliceGeometry& s) {
  for (int64_t o = 0; o < s.outer; ++o) {
    if (s.inner_bytes != 0)
      std::memcpy(to + static_cast<size_t>(o) * to_stride,
                  from + static_cast<size_t>(o) * from_stride, s.inner_bytes);
  }
}

// Returns the dims of a number as the callee declares it: loop bodies may take lists of one.
Dims DimsOfNumber(const Module& module, uint32_t graph, size_t input) {
  const Graph& callee = module.graphs[graph];
  return callee.value(callee.inputs[input]).type.dims == Dims{1} ? Dims{1} : Dims{};
}

}  // namespace

RunValue Executor::InputOf(Frame* frame, const Step& step, size_t i) const {
  const BufferId b = i < step.inputs.size() ? step.inputs[i] : kNoBuffer;
  if (b == kNoBuffer) return {};
  const Buffer& buffer = frame->program().buffers[b];
  const Binding& binding = *frame->segment().binding;
  const Type& type = binding.facts.types[IndexOf(buffer.value)];
  if (!type.is_tensor()) return frame->held[static_cast<size_t>(buffer.held)].value;
  RunValue value = RunValue::Of(
      {type.dtype, type.dims, Layout::kPlain, Resolve(*frame, binding.locations[b], frame->depth)});
  if (binding.locations[b].kind == Location::kHeld) {
    const RunValue& held = frame->held[binding.locations[b].index].value;
    if (held.lasting) value = held;
  }
  return value;
}

// Reads a bool or an integer of one element.
Result<int64_t> Executor::NumberOf(Frame* frame, const Step& step, size_t i) const {
  const RunValue value = InputOf(frame, step, i);
  if (value.kind != TypeKind::kTensor || value.tensor.elements() != 1) {
    return InvalidArgument("input ", i, " has ", value.tensor.elements(),
                           " elements, must have one");
  }
  if (value.tensor.dtype == DType::kBool)
    return static_cast<int64_t>(*value.tensor.As<uint8_t>() != 0);
  return IntValues(value.tensor.dtype, value.tensor.data, 1)[0];
}

ResultCell* Executor::CellOf(Frame* frame, const Step& step, size_t i) {
  const BufferId b = i < step.outputs.size() ? step.outputs[i] : kNoBuffer;
  if (b == kNoBuffer) return UnwantedCell(frame, i);
  const Program& program = frame->program();
  if (frame->graph_of().value(program.buffers[b].value).type.is_tensor()) {
    const auto output = std::find(program.output_buffers.begin(), program.output_buffers.end(), b);
    if (output != program.output_buffers.end())
      return frame->outputs[static_cast<size_t>(output - program.output_buffers.begin())];
  }
  return &frame->held[static_cast<size_t>(program.buffers[b].held)];
}

ResultCell* Executor::UnwantedCell(Frame* frame, size_t i) {
  if (frame->unwanted.size() <= i) frame->unwanted.resize(i + 1);
  return &frame->unwanted[i];
}

Result<bool> Executor::BeginControl(Frame* frame) {
  const Step& step = frame->program().steps[frame->segment().binding->end_step];
  const auto describe = [&](Status status) {
    return std::move(status).Within(Describe(frame->program(), step));
  };
  MSRT_RETURN_IF_ERROR(CheckStopped(*frame, step));
  if (step.control == nullptr) {
    Status status = RunListStep(frame, step);
    if (!status.ok()) return describe(std::move(status));
    return true;
  }
  const ControlShape& shape = *step.control;
  switch (shape.kind) {
    case ControlKind::kIf: {
      const auto condition = NumberOf(frame, step, 0);
      if (!condition.ok()) return describe(condition.status());
      return Call(frame, step, shape.graphs[*condition != 0 ? 0 : 1], {});
    }
    case ControlKind::kSwitch: {
      const auto index = NumberOf(frame, step, 0);
      if (!index.ok()) return describe(index.status());
      const auto count = static_cast<int64_t>(shape.graphs.size());
      if (*index < -count || *index >= count)
        return describe(InvalidArgument("index ", *index, " names none of ", count, " branches"));
      return Call(frame, step,
                  shape.graphs[static_cast<size_t>(*index < 0 ? *index + count : *index)], {});
    }
    case ControlKind::kCall: {
      if (!shape.graphs.empty()) return Call(frame, step, shape.graphs[0], {});
      const RunValue function = InputOf(frame, step, 0);
      if (!function.present())
        return describe(InvalidArgument("the function that it calls was never made"));
      return Call(frame, step, function.closure().graph, function.closure().captured);
    }
    case ControlKind::kPartial: {
      Status status = MakePartial(frame, step);
      if (!status.ok()) return describe(std::move(status));
      return true;
    }
    case ControlKind::kLoop:
    case ControlKind::kScan:
    case ControlKind::kWhile: {
      auto done = BeginLoop(frame, step);
      if (!done.ok()) return describe(std::move(done).status());
      return done;
    }
  }
  return true;
}

Result<bool> Executor::ResumeControl(Frame* frame) {
  const Step& step = frame->program().steps[frame->segment().binding->end_step];
  switch (step.control->kind) {
    case ControlKind::kLoop:
    case ControlKind::kScan:
    case ControlKind::kWhile: {
      Status status = CheckStopped(*frame, step);
      if (status.ok()) status = TakeResults(frame, step);
      if (!status.ok()) return std::move(status).Within(Describe(frame->program(), step));
      return NextIteration(frame, step);
    }
    default:
      return true;  // the callee wrote its results directly to their cells
  }
}

Result<bool> Executor::Call(Frame* frame, const Step& step, uint32_t graph,
                            std::span<const RunValue> captured) {
  arguments_.assign(captured.begin(), captured.end());
  for (size_t i = step.control->leading; i < step.inputs.size(); ++i)
    arguments_.push_back(InputOf(frame, step, i));
  if (step.tail) {
    MSRT_RETURN_IF_ERROR(TailCall(frame, graph));
    return false;
  }
  targets_.clear();
  const size_t results = model_.module.graphs[graph].outputs.size();
  if (results != 0)
    (void)UnwantedCell(frame, results - 1);  // grows once: pointers to these cells stay valid
  for (size_t i = 0; i < results; ++i) targets_.push_back(CellOf(frame, step, i));
  MSRT_RETURN_IF_ERROR(Push(graph, arguments_, targets_));
  return false;
}

// The callee replaces the caller: its arguments are copied into its own memory, and its results go
// to the caller's outputs.
Status Executor::TailCall(Frame* caller, uint32_t graph) {
  MSRT_ASSIGN_OR_RETURN(FrameOwner owner, Acquire(graph, caller));
  stack_.push_back(std::move(owner));
  Frame* callee = stack_.back().get();
  if (callee->arguments.size() < arguments_.size()) callee->arguments.resize(arguments_.size());
  for (size_t i = 0; i < arguments_.size(); ++i) {
    ResultCell& cell = callee->arguments[i];
    MSRT_RETURN_IF_ERROR(Deliver(&cell, arguments_[i], nullptr, "argument"));
    callee->inputs[i] = cell.value;
  }
  callee->outputs = caller->outputs;
  std::swap(stack_[stack_.size() - 1], stack_[stack_.size() - 2]);
  Pop();
  return BindInputs(callee);
}

Status Executor::MakePartial(Frame* frame, const Step& step) {
  auto closure = std::make_shared<Closure>();
  closure->graph = step.control->graphs[0];
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    MSRT_ASSIGN_OR_RETURN(RunValue copy, LastingCopy(InputOf(frame, step, i)));
    closure->captured.push_back(std::move(copy));
  }
  CellOf(frame, step, 0)->value = RunValue::Of(std::shared_ptr<const Closure>(std::move(closure)));
  return OkStatus();
}

// ---- loops --------------------------------------------------------------------------------------

Result<bool> Executor::BeginLoop(Frame* frame, const Step& step) {
  const ControlShape& shape = *step.control;
  LoopState& loop = frame->loop;
  loop.iteration = 0;
  loop.trips = INT64_MAX;
  loop.in_condition = false;
  bool go_on = true;
  if (shape.kind == ControlKind::kLoop) {
    if (step.inputs[0] != kNoBuffer) {
      MSRT_ASSIGN_OR_RETURN(loop.trips, NumberOf(frame, step, 0));
    }
    if (step.inputs[1] != kNoBuffer) {
      MSRT_ASSIGN_OR_RETURN(const int64_t condition, NumberOf(frame, step, 1));
      go_on = condition != 0;
    }
  }
  loop.slices.resize(std::max(loop.slices.size(), shape.scan_inputs));
  for (size_t i = 0; i < shape.scan_inputs; ++i) {
    const TensorView whole = InputOf(frame, step, shape.leading + shape.carried + i).tensor;
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
  if (loop.carried.size() < shape.carried) loop.carried.resize(shape.carried);
  for (size_t i = 0; i < shape.carried; ++i) {
    loop.carried[i].now = InputOf(frame, step, shape.leading + i);
    loop.carried[i].next = 0;
  }
  const size_t before = shape.body_extra_outputs() + shape.carried;
  const size_t results = model_.module.graphs[shape.graphs.back()].outputs.size();
  loop.scanned.resize(std::max(loop.scanned.size(), results - before));
  for (ScannedResult& s : loop.scanned) s.filled = 0;
  return NextIteration(frame, step);
}

Result<bool> Executor::NextIteration(Frame* frame, const Step& step) {
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
  Status status = FinishLoop(frame, step);
  if (!status.ok()) return std::move(status).Within(Describe(frame->program(), step));
  return true;
}

// Calls the body, or the condition of a While.
Status Executor::CallBody(Frame* frame, const Step& step) {
  const ControlShape& shape = *step.control;
  LoopState& loop = frame->loop;
  const uint32_t graph = shape.kind == ControlKind::kWhile && loop.in_condition
                             ? shape.graphs[0]
                             : shape.graphs.back();
  arguments_.clear();
  targets_.clear();
  // The counter and the condition that the body reads must outlive the call: the counter is in the
  // frame, the condition is static.
  static const uint8_t kTrue = 1;
  if (shape.kind == ControlKind::kLoop) {
    arguments_.push_back(RunValue::Of(
        {DType::kI64, DimsOfNumber(model_.module, graph, 0), Layout::kPlain, &loop.iteration}));
    arguments_.push_back(RunValue::Of({DType::kBool, DimsOfNumber(model_.module, graph, 1),
                                       Layout::kPlain, const_cast<uint8_t*>(&kTrue)}));
    targets_.push_back(&loop.condition);
  }
  for (size_t i = 0; i < shape.carried; ++i) arguments_.push_back(loop.carried[i].now);
  for (size_t i = 0; i < shape.scan_inputs; ++i) {
    MSRT_ASSIGN_OR_RETURN(RunValue slice, SliceOf(frame, step, i));
    arguments_.push_back(std::move(slice));
  }
  for (size_t i = shape.captured_from(); i < step.inputs.size(); ++i)
    arguments_.push_back(InputOf(frame, step, i));
  if (loop.in_condition) {
    targets_.push_back(&loop.condition);
  } else {
    for (size_t i = 0; i < shape.carried; ++i) targets_.push_back(&loop.carried[i].written());
    const size_t results = model_.module.graphs[graph].outputs.size();
    for (size_t i = 0; targets_.size() < results; ++i) targets_.push_back(&loop.scanned[i].slice);
  }
  return Push(graph, arguments_, targets_);
}

// Takes the results of the call: the condition, or the values for the next iteration.
Status Executor::TakeResults(Frame* frame, const Step& step) {
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
  const size_t results = model_.module.graphs[shape.graphs.back()].outputs.size();
  const size_t scanned = results - shape.body_extra_outputs() - shape.carried;
  for (size_t i = 0; i < scanned; ++i) MSRT_RETURN_IF_ERROR(Stack(frame, step, i));
  ++loop.iteration;
  return OkStatus();
}

// Returns slice i of the iteration in progress. Slices along the first axis are contiguous and are
// used in place.
Result<RunValue> Executor::SliceOf(Frame* frame, const Step& step, size_t i) {
  const ControlShape& shape = *step.control;
  const Node& node = NodeOf(*frame, step);
  LoopState& loop = frame->loop;
  const TensorView whole = InputOf(frame, step, shape.leading + shape.carried + i).tensor;
  const int64_t axis = ListAttr(node, "scan_input_axes", i);
  MSRT_ASSIGN_OR_RETURN(const SliceGeometry s, SliceAlong(whole.dtype, whole.dims, axis));
  const bool backwards = ListAttr(node, "scan_input_directions", i) != 0;
  const int64_t at = backwards ? s.length - 1 - loop.iteration : loop.iteration;
  Dims dims = whole.dims;
  dims.erase(static_cast<int>(axis < 0 ? axis + dims.rank() : axis));
  std::byte* from = whole.As<std::byte>() + static_cast<size_t>(at) * s.inner_bytes;
  if (s.outer == 1) return RunValue::Of({whole.dtype, dims, Layout::kPlain, from});
  MSRT_ASSIGN_OR_RETURN(const TensorView slice,
                        AllocateResult(&loop.slices[i], Type::Tensor(whole.dtype, dims), "slice"));
  CopySlices(slice.As<std::byte>(), s.inner_bytes, from,
             static_cast<size_t>(s.length) * s.inner_bytes, s);
  return RunValue::Of(slice);
}

// Appends the slice that the body returned. A Scan knows how many there will be; a Loop does not,
// so its memory grows by doubling.
Status Executor::Stack(Frame* frame, const Step& step, size_t i) {
  const bool scan = step.control->kind == ControlKind::kScan;
  const Node& node = NodeOf(*frame, step);
  LoopState& loop = frame->loop;
  ScannedResult& result = loop.scanned[i];
  if (result.slice.value.kind != TypeKind::kTensor)
    return InvalidArgument("scanned result ", i, " is not a tensor");
  const TensorView slice = result.slice.value.tensor;
  const int64_t axis = scan ? ListAttr(node, "scan_output_axes", i) : 0;
  const int rank = slice.dims.rank() + 1;
  if (rank > kMaxRank || axis < -rank || axis >= rank)
    return InvalidArgument("scanned result ", i, " of shape ", slice.dims,
                           " cannot be stacked along axis ", axis);
  const int a = static_cast<int>(axis < 0 ? axis + rank : axis);
  if (result.filled != 0) {
    Dims before = result.whole.value.tensor.dims;
    before.erase(a);
    if (!(before == slice.dims)) {
      return InvalidArgument("scanned result ", i, " has shape ", slice.dims, " in iteration ",
                             loop.iteration, ", before it was ", before);
    }
  }
  Dims dims = slice.dims;
  dims.insert(a, scan ? loop.trips : result.filled + 1);
  MSRT_ASSIGN_OR_RETURN(const SliceGeometry s, SliceAlong(slice.dtype, dims, a));
  const size_t bytes = BytesOf(slice.dtype, dims.elements());
  if (!scan && result.filled != 0 && result.whole.block->bytes() < bytes) {
    std::shared_ptr<Block> larger;
    MSRT_RETURN_IF_ERROR(budget_.Ensure(&larger, 2 * bytes, "a scanned result"));
    std::memcpy(larger->data(), result.whole.block->data(),
                static_cast<size_t>(result.filled) * s.inner_bytes);
    std::swap(result.whole.block, larger);
    budget_.Release(&larger);
  }
  MSRT_ASSIGN_OR_RETURN(
      const TensorView whole,
      AllocateResult(&result.whole, Type::Tensor(slice.dtype, dims), "a scanned result"));
  const bool backwards = scan && ListAttr(node, "scan_output_directions", i) != 0;
  const int64_t at = backwards ? s.length - 1 - result.filled : result.filled;
  CopySlices(whole.As<std::byte>() + static_cast<size_t>(at) * s.inner_bytes,
             static_cast<size_t>(s.length) * s.inner_bytes, slice.As<std::byte>(), s.inner_bytes,
             s);
  ++result.filled;
  return OkStatus();
}

Status Executor::FinishLoop(Frame* frame, const Step& step) {
  const ControlShape& shape = *step.control;
  const Node& node = NodeOf(*frame, step);
  LoopState& loop = frame->loop;
  const Graph& body = model_.module.graphs[shape.graphs.back()];
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i] == kNoBuffer) continue;
    const std::string& name = frame->graph_of().value(node.outputs[i]).name;
    ResultCell* cell = CellOf(frame, step, i);
    if (i < shape.carried) {
      CarriedValue& c = loop.carried[i];
      if (c.now.device != nullptr) {
        MSRT_RETURN_IF_ERROR(CopyToHost(cell, c.now, shape.graphs.back(), name));
        continue;
      }
      MSRT_RETURN_IF_ERROR(
          Deliver(cell, c.now, loop.iteration != 0 ? &c.cells[c.next ^ 1] : nullptr, name));
      continue;
    }
    ScannedResult& s = loop.scanned[i - shape.carried];
    if (s.filled == 0) {
      // There was no iteration: only the declaration of the body tells the size.
      const Type& slice = body.value(body.outputs[shape.body_extra_outputs() + i]).type;
      Dims dims = slice.rank_known ? slice.dims : Dims{};
      for (int64_t& d : dims) d = IsKnown(d) ? d : 0;
      const int64_t axis = shape.kind == ControlKind::kScan
                               ? ListAttr(node, "scan_output_axes", i - shape.carried)
                               : 0;
      dims.insert(static_cast<int>(axis < 0 ? axis + dims.rank() + 1 : axis), 0);
      MSRT_RETURN_IF_ERROR(AllocateResult(cell, Type::Tensor(slice.dtype, dims), name).status());
      continue;
    }
    MSRT_RETURN_IF_ERROR(Deliver(cell, s.whole.value, &s.whole, name));
  }
  // The carried values have been delivered or are no longer needed.
  for (CarriedValue& c : loop.carried) c.now = {};
  return OkStatus();
}

}  // namespace msrt

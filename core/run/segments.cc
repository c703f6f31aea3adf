#include "core/run/segments.h"

#include <cstring>

#include "core/run/resolve.h"
#include "core/run/step_values.h"

namespace msrt {
namespace {

// Records a type that a binding depends on. A binding for another type is dropped first, so that no
// failure can leave a binding that does not fit the recorded type.
void RecordType(DType dtype, const Dims& dims, Type* type,
                std::shared_ptr<const Binding>* binding) {
  if (type->is_tensor() && type->dtype == dtype && type->dims == dims) return;
  binding->reset();
  *type = Type::Tensor(dtype, dims);
}

// Records the types of the slots that the program touches, if any has changed since `*seen`.
void RecordStates(const StateStore& states, const Program& program, std::vector<Type>* types,
                  uint64_t* seen, std::shared_ptr<const Binding>* binding) {
  const std::vector<uint32_t>& slots = program.state_slots;
  if (*seen == states.type_changes() && types->size() == slots.size()) return;
  types->resize(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    const Type& type = states.CurrentType(slots[i]);
    RecordType(type.dtype, type.dims, &(*types)[i], binding);
  }
  *seen = states.type_changes();
}

}  // namespace

Status Segments::BindFirst(Frame* frame) {
  const Program& program = frame->program();
  const Graph& graph = frame->graph_of();
  frame->request.inputs.resize(frame->inputs.size());
  if (frame->segments.empty()) frame->segments.emplace_back();
  std::shared_ptr<const Binding>* const binding = &frame->segments[0].binding;
  for (size_t i = 0; i < frame->inputs.size(); ++i) {
    const RunValue& input = frame->inputs[i];
    if (!input.present())
      return InvalidArgument("input ", i, " '", graph.value(graph.inputs[i]).name, "' is not set");
    if (input.kind == TypeKind::kTensor) {
      RecordType(input.tensor.dtype, input.tensor.dims, &frame->request.inputs[i], binding);
      if (input.device != DeviceOfInput(program, i))
        MSRT_RETURN_IF_ERROR(values_.MoveInput(frame, i));
      continue;
    }
    frame->request.inputs[i] = graph.value(graph.inputs[i]).type;
    if (frame->request.inputs[i].kind != input.kind) {
      return InvalidArgument("input ", i, " '", graph.value(graph.inputs[i]).name, "' must be ",
                             frame->request.inputs[i]);
    }
    frame->held[static_cast<size_t>(program.buffers[program.input_buffers[i]].held)].value = input;
  }
  RecordStates(context_.states, program, &frame->request.states, &frame->state_types, binding);
  if (*binding != nullptr) return OkStatus();
  MSRT_ASSIGN_OR_RETURN(*binding, BindingFor(context_.model, *frame->placed, frame->request));
  return OkStatus();
}

Status Segments::BindNext(Frame* frame) {
  const Step& ended = StepAtEnd(frame);
  if (frame->segments.size() == frame->depth + 1) frame->segments.emplace_back();
  MSRT_RETURN_IF_ERROR(ended.kind == StepKind::kControl ? AfterControl(frame, ended)
                                                        : AfterData(frame));
  ++frame->depth;
  return OkStatus();
}

Status Segments::AfterData(Frame* frame) {
  constexpr size_t kMaxRememberedBytes = 4096;
  BoundSegment& next = frame->segments[frame->depth + 1];
  MSRT_ASSIGN_OR_RETURN(const bool same, DataUnchanged(frame, next));
  if (same) return OkStatus();
  next.binding.reset();
  next.reads.clear();
  size_t read_bytes = 0;
  auto binding =
      Continue(frame->program(), *context_.model.environment->evaluator, frame->segment().binding,
               frame->depth + 1, [&](BufferId b, void* to, size_t bytes) {
                 MSRT_RETURN_IF_ERROR(Read(frame, b, to, bytes));
                 read_bytes += bytes;
                 const auto* data = static_cast<const std::byte*>(to);
                 if (read_bytes <= kMaxRememberedBytes)
                   next.reads.push_back({b, {data, data + bytes}});
                 return OkStatus();
               });
  if (read_bytes > kMaxRememberedBytes) next.reads.clear();
  if (!binding.ok()) return std::move(binding).status();
  return SetOwnBinding(&next, *std::move(binding));
}

// Whether the data that determined the sizes of `next` is unchanged.
Result<bool> Segments::DataUnchanged(Frame* frame, const BoundSegment& next) {
  if (next.binding == nullptr || next.binding->previous != frame->segment().binding ||
      next.reads.empty())
    return false;
  for (const DataRead& read : next.reads) {
    read_.resize(read.bytes.size());
    MSRT_RETURN_IF_ERROR(Read(frame, read.buffer, read_.data(), read_.size()));
    if (read_ != read.bytes) return false;
  }
  return true;
}

Status Segments::AfterControl(Frame* frame, const Step& control) {
  const Program& program = frame->program();
  BoundSegment& next = frame->segments[frame->depth + 1];
  if (next.binding != nullptr && next.binding->previous != frame->segment().binding)
    next.binding.reset();
  next.results.resize(control.outputs.size());
  for (size_t i = 0; i < control.outputs.size(); ++i) {
    if (control.outputs[i] == kNoBuffer) continue;
    const RunValue& value = CellOf(frame, control, i)->value;
    if (value.kind == TypeKind::kTensor)
      RecordType(value.tensor.dtype, value.tensor.dims, &next.results[i], &next.binding);
    else next.results[i] = frame->graph_of().value(program.buffers[control.outputs[i]].value).type;
  }
  RecordStates(context_.states, program, &next.states, &next.state_types, &next.binding);
  return next.binding != nullptr ? OkStatus() : BindAfterControl(frame, &next);
}

// A recursion makes many frames of one graph that continue with the same types: the binding of the
// last one is reused for the next.
Status Segments::BindAfterControl(Frame* frame, BoundSegment* next) {
  std::vector<Continuation>& known = continuations_[frame->graph];
  if (known.size() <= frame->depth) known.resize(frame->depth + 1);
  Continuation& last = known[frame->depth];
  context_.budget.Release(next->own_bytes);
  next->own_bytes = 0;
  if (last.binding != nullptr && last.binding->previous == frame->segment().binding &&
      last.results == next->results && last.states == next->states) {
    next->binding = last.binding;
    return OkStatus();
  }
  auto binding =
      ContinueAfterControl(frame->program(), *context_.model.environment->evaluator,
                           frame->segment().binding, frame->depth + 1, next->results, next->states);
  if (!binding.ok()) return std::move(binding).status();
  MSRT_RETURN_IF_ERROR(SetOwnBinding(next, *std::move(binding)));
  last.binding.reset();  // before its program
  last = {frame->placed, next->binding, next->results, next->states};
  return OkStatus();
}

Status Segments::SetOwnBinding(BoundSegment* segment, std::shared_ptr<const Binding> binding) {
  context_.budget.Release(segment->own_bytes);
  segment->own_bytes = 0;
  MSRT_RETURN_IF_ERROR(context_.budget.Reserve(binding->bytes, "a binding"));
  segment->own_bytes = binding->bytes;
  segment->binding = std::move(binding);
  return OkStatus();
}

Status Segments::Read(Frame* frame, BufferId b, void* to, size_t bytes) {
  const Location& place = frame->segment().binding->locations[b];
  if (place.kind == Location::kState) MSRT_RETURN_IF_ERROR(values_.FetchState(place.index));
  const void* from = Resolve(*frame, context_.states, place, frame->depth);
  const uint16_t device = frame->program().buffers[b].state.device;
  if (device == 0) {
    std::memcpy(to, from, bytes);
    return OkStatus();
  }
  DeviceQueue& queue = *frame->queues[device];
  MSRT_RETURN_IF_ERROR(queue.CopyToHost(to, from, bytes));
  return queue.Synchronize();
}

void Segments::Trim() {
  for (auto& known : continuations_) known.clear();
}

}  // namespace msrt

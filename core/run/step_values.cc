#include "core/run/step_values.h"

#include <algorithm>

namespace msrt {

const Node& NodeOf(const Frame& frame, const Step& step) {
  return frame.graph_of().nodes[step.node];
}

RunValue InputOf(Frame* frame, const StateStore& states, const Step& step, size_t i) {
  const BufferId b = i < step.inputs.size() ? step.inputs[i] : kNoBuffer;
  if (b == kNoBuffer) return {};
  const Buffer& buffer = frame->program().buffers[b];
  const Binding& binding = *frame->segment().binding;
  const Type& type = binding.facts.types[IndexOf(buffer.value)];
  if (!type.is_tensor()) return frame->held[static_cast<size_t>(buffer.held)].value;
  RunValue value = RunValue::Of({type.dtype, type.dims, Layout::kPlain,
                                 Resolve(*frame, states, binding.locations[b], frame->depth)});
  const Location& place = binding.locations[b];
  if (place.kind == Location::kState && place.offset != 0) value.slot = place.index;
  if (place.kind == Location::kInput && place.offset == 0)
    value.slot = frame->inputs[place.index].slot;
  if (place.kind == Location::kHeld) {
    const RunValue& held = frame->held[place.index].value;
    if (held.lasting) value = held;
  }
  return value;
}

Result<int64_t> NumberOf(Frame* frame, const StateStore& states, const Step& step, size_t i) {
  const RunValue value = InputOf(frame, states, step, i);
  if (value.kind != TypeKind::kTensor || value.tensor.elements() != 1) {
    return InvalidArgument("input ", i, " has ", value.tensor.elements(),
                           " elements, must have one");
  }
  if (value.tensor.dtype == DType::kBool)
    return static_cast<int64_t>(*value.tensor.As<uint8_t>() != 0);
  return IntValues(value.tensor.dtype, value.tensor.data, 1)[0];
}

ResultCell* CellOf(Frame* frame, const Step& step, size_t i) {
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

ResultCell* UnwantedCell(Frame* frame, size_t i) {
  if (frame->unwanted.size() <= i) frame->unwanted.resize(i + 1);
  return &frame->unwanted[i];
}

}  // namespace msrt

#include "core/run/device_values.h"

#include "core/run/results.h"

namespace msrt {

const Device* DeviceOfInput(const Program& program, size_t i) {
  return program.devices[program.buffers[program.input_buffers[i]].state.device].get();
}

Result<DeviceQueue*> DeviceValues::QueueOf(Frame* frame, uint16_t device, size_t event_count) {
  DeviceQueue*& queue = frame->queues[device];
  if (queue == nullptr) queue = queues_.Of(frame->program().devices[device]);
  MSRT_RETURN_IF_ERROR(queue->Use(frame->graph, frame->placed, event_count));
  return queue;
}

Status DeviceValues::JoinReads() {
  if (!context_.reads_caller) return OkStatus();
  context_.reads_caller = false;
  return queues_.Synchronize();
}

Status DeviceValues::FetchState(size_t slot) const {
  return context_.states.Fetch(slot, [&](const Device& device) {
    DeviceQueue* const queue = queues_.Find(&device);
    return queue == nullptr ? OkStatus() : queue->Synchronize();
  });
}

Status DeviceValues::MoveInput(Frame* frame, size_t i) {
  const Program& program = frame->program();
  const ValueId v = frame->graph_of().inputs[i];
  if (program.offered->ReadersOf(v).empty() && !program.offered->IsOutput(v))
    return OkStatus();  // never read
  RunValue& input = frame->inputs[i];
  if (frame->arguments.size() <= i) frame->arguments.resize(i + 1);
  ResultCell& cell = frame->arguments[i];
  const uint16_t device = program.buffers[program.input_buffers[i]].state.device;
  const bool direct =
      input.device != nullptr && device != 0 && program.devices[device]->Reaches(*input.device);
  if (input.device != nullptr && !direct) {
    MSRT_RETURN_IF_ERROR(CopyToHost(frame, &cell, input, frame->graph_of().value(v).name));
    input = cell.value;
  }
  if (device == 0) return OkStatus();
  const RunValue from = input;
  MSRT_RETURN_IF_ERROR(MoveToDevice(frame, from, i >= frame->stable_from, device, &cell));
  input = cell.value;
  return OkStatus();
}

Status DeviceValues::MoveToDevice(Frame* frame, const RunValue& value, bool stable, uint16_t device,
                                  ResultCell* cell) {
  const TensorView from = value.tensor;
  const size_t bytes = BytesOf(from.dtype, from.elements());
  MSRT_ASSIGN_OR_RETURN(DeviceQueue* const queue, QueueOf(frame, device));
  MSRT_RETURN_IF_ERROR(Allocate(frame, cell, device, Type::Tensor(from.dtype, from.dims)));
  void* const to = cell->value.tensor.data;
  if (value.device != nullptr) {
    DeviceQueue* const source = queues_.Find(value.device);  // null: the application's memory
    if (source != nullptr) MSRT_RETURN_IF_ERROR(queue->Join(source));
    MSRT_RETURN_IF_ERROR(queue->CopyPeer(to, *value.device, from.data, bytes));
    return source == nullptr ? OkStatus() : source->Join(queue);
  }
  const bool staged = bytes <= kMaxStagedBytes;
  MSRT_RETURN_IF_ERROR(queue->CopyToDevice(to, from.data, bytes, staged));
  if (staged) return OkStatus();
  context_.reads_caller |= stable;
  return stable ? OkStatus() : queue->Synchronize();
}

Status DeviceValues::Allocate(Frame* frame, ResultCell* cell, uint16_t device, const Type& type) {
  MSRT_ASSIGN_OR_RETURN(DeviceQueue* const queue, QueueOf(frame, device));
  if (cell->bound.present() && cell->bound_device == &queue->device()) {
    cell->value = RunValue::Of(cell->bound, cell->bound_owner);
    cell->value.device = cell->bound_device;
    return OkStatus();
  }
  MSRT_RETURN_IF_ERROR(queue->Ensure(&cell->device_block, type.bytes(), "a value"));
  cell->value = RunValue::Of({type.dtype, type.dims, Layout::kPlain, cell->device_block->data()},
                             cell->device_block);
  cell->value.device = cell->device_block->device();
  return OkStatus();
}

Status DeviceValues::DeliverBound(Frame* frame, ResultCell* cell) {
  if (!cell->bound.present() || cell->value.device == cell->bound_device) return OkStatus();
  const RunValue made = cell->value;
  const size_t bytes = BytesOf(made.tensor.dtype, made.tensor.elements());
  RunValue bound = RunValue::Of(cell->bound, cell->bound_owner);
  bound.device = cell->bound_device;
  if (made.device != nullptr) {
    // Through the host: in its bound memory, or in memory of the cell.
    MSRT_RETURN_IF_ERROR(CopyToHost(frame, cell, made, "result"));
    if (bound.device == nullptr) return OkStatus();
  }
  const void* const from = cell->value.tensor.data;
  DeviceQueue* const queue = queues_.Of(bound.device->shared_from_this());
  MSRT_RETURN_IF_ERROR(queue->Use(frame->graph, frame->placed, 0));
  MSRT_RETURN_IF_ERROR(queue->CopyToDevice(bound.tensor.data, from, bytes, /*staged=*/false));
  cell->value = std::move(bound);
  return OkStatus();
}

Status DeviceValues::CopyToHost(Frame* frame, ResultCell* cell, const RunValue& value,
                                std::string_view name) {
  const TensorView from = value.tensor;  // `value` may be the cell's own
  DeviceQueue* queue = queues_.Find(value.device);
  if (queue == nullptr) {
    // The application's tensor, on a device that this session has not used yet.
    queue = queues_.Of(value.device->shared_from_this());
    MSRT_RETURN_IF_ERROR(queue->Use(frame->graph, frame->placed, 0));
  }
  MSRT_ASSIGN_OR_RETURN(
      const TensorView to,
      AllocateResult(cell, Type::Tensor(from.dtype, from.dims), name, &context_.budget));
  MSRT_RETURN_IF_ERROR(queue->CopyToHost(to.data, from.data, BytesOf(from.dtype, from.elements())));
  return queue->Synchronize();
}

}  // namespace msrt

#include "core/run/device_values.h"

#include <algorithm>

#include "core/run/results.h"

namespace msrt {

const Device* DeviceOfInput(const Program& program, size_t i) {
  return program.devices[program.buffers[program.input_buffers[i]].state.device].get();
}

Status DeviceValues::MoveInput(Frame* frame, size_t i) {
  const Program& program = frame->program();
  const ValueId v = frame->graph_of().inputs[i];
  if (program.offered->ReadersOf(v).empty() && !program.offered->IsOutput(v))
    return OkStatus();  // never read
  const std::string& name = frame->graph_of().value(v).name;
  RunValue& input = frame->inputs[i];
  if (frame->arguments.size() <= i) frame->arguments.resize(i + 1);
  ResultCell& cell = frame->arguments[i];
  if (input.device != nullptr) {
    // Only the caller's loop keeps values on devices.
    const Frame& caller = frames_.caller();
    const Step& loop = caller.program().steps[caller.segments[caller.depth].binding->end_step];
    MSRT_RETURN_IF_ERROR(CopyToHost(&cell, input, loop.control->graphs.back(), name));
    input = cell.value;
  }
  const uint16_t device = program.buffers[program.input_buffers[i]].state.device;
  if (device == 0) return OkStatus();
  const TensorView from = input.tensor;
  MSRT_RETURN_IF_ERROR(Allocate(frame, &cell, device, Type::Tensor(from.dtype, from.dims)));
  input = cell.value;
  return frame->devices.CopyToDevice(device, input.tensor.data, from.data,
                                     BytesOf(from.dtype, from.elements()));
}

Status DeviceValues::Allocate(Frame* frame, ResultCell* cell, uint16_t device, const Type& type) {
  if (cell->device_block == nullptr) cell->device_block = std::make_unique<DeviceBlock>();
  MSRT_RETURN_IF_ERROR(
      frame->devices.Ensure(device, cell->device_block.get(), type.bytes(), "what a loop carries"));
  cell->value = RunValue::Of({type.dtype, type.dims, Layout::kPlain, cell->device_block->data()});
  cell->value.device = cell->device_block->device();
  return OkStatus();
}

Status DeviceValues::CopyToHost(ResultCell* cell, const RunValue& value, uint32_t producer,
                                std::string_view name) {
  const TensorView from = value.tensor;  // `value` may be the cell's own
  const Device& device = *value.device;
  MSRT_ASSIGN_OR_RETURN(
      const TensorView to,
      AllocateResult(cell, Type::Tensor(from.dtype, from.dims), name, &context_.budget));
  const Host& host = *frames_.last().program().host;
  const auto copy = [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(Stream* const stream, CopyStream(device));
    MSRT_RETURN_IF_ERROR(
        stream->CopyToHost(host, to.data, from.data, BytesOf(from.dtype, from.elements())));
    return stream->Synchronize(host);
  };
  Status status = copy();
  if (status.ok()) return status;
  if (MayRunElsewhere(status.code(), /*on_device=*/true))
    context_.failure = {device.name(), producer, context_.model.graphs[producer]->current()};
  return std::move(status).Within(StrCat("on ", device.name()));
}

Result<Stream*> DeviceValues::CopyStream(const Device& device) {
  const auto known = std::find(devices_.begin(), devices_.end(), &device);
  if (known != devices_.end()) return streams_[static_cast<size_t>(known - devices_.begin())].get();
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream,
                        device.MakeStream(*frames_.last().program().host));
  streams_.push_back(std::move(stream));
  devices_.push_back(&device);
  return streams_.back().get();
}

void DeviceValues::Trim() {
  streams_.clear();
  devices_.clear();
}

}  // namespace msrt

// Values that a loop keeps on a device. The program of a body states on which device it expects its
// inputs and leaves its outputs (Placement::device_values); all other values are on the host.
// Values that cross over are copied here, once.
#include <algorithm>

#include "core/run/executor.h"

namespace msrt {

const Device* Executor::DeviceOfInput(const Program& program, size_t i) {
  return program.devices[program.buffers[program.input_buffers[i]].state.device].get();
}

// Requires that input i is not on the device where the program expects it.
Status Executor::MoveInput(Frame* frame, size_t i) {
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
    const Frame& caller = *stack_[stack_.size() - 2];
    const Step& loop = caller.program().steps[caller.segments[caller.depth].binding->end_step];
    MSRT_RETURN_IF_ERROR(CopyToHost(&cell, input, loop.control->graphs.back(), name));
    input = cell.value;
  }
  const uint16_t device = program.buffers[program.input_buffers[i]].state.device;
  if (device == 0) return OkStatus();
  const TensorView from = input.tensor;
  MSRT_RETURN_IF_ERROR(AllocateOnDevice(frame, &cell, device, Type::Tensor(from.dtype, from.dims)));
  input = cell.value;
  return frame->devices.CopyToDevice(device, input.tensor.data, from.data,
                                     BytesOf(from.dtype, from.elements()));
}

Status Executor::AllocateOnDevice(Frame* frame, ResultCell* cell, uint16_t device,
                                  const Type& type) {
  if (cell->device_block == nullptr) cell->device_block = std::make_unique<DeviceBlock>();
  MSRT_RETURN_IF_ERROR(
      frame->devices.Ensure(device, cell->device_block.get(), type.bytes(), "what a loop carries"));
  cell->value = RunValue::Of({type.dtype, type.dims, Layout::kPlain, cell->device_block->data()});
  cell->value.device = cell->device_block->device();
  return OkStatus();
}

Status Executor::CopyToHost(ResultCell* cell, const RunValue& value, uint32_t producer,
                            std::string_view name) {
  const TensorView from = value.tensor;  // `value` may be the cell's own
  const Device& device = *value.device;
  MSRT_ASSIGN_OR_RETURN(const TensorView to,
                        AllocateResult(cell, Type::Tensor(from.dtype, from.dims), name));
  const Host& host = *stack_.back()->program().host;
  const auto copy = [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(Stream* const stream, CopyStream(device));
    MSRT_RETURN_IF_ERROR(
        stream->CopyToHost(host, to.data, from.data, BytesOf(from.dtype, from.elements())));
    return stream->Synchronize(host);
  };
  Status status = copy();
  if (status.ok()) return status;
  if (MayRunElsewhere(status.code(), /*on_device=*/true))
    failure_ = {device.name(), producer, model_.graphs[producer]->current()};
  return std::move(status).Within(StrCat("on ", device.name()));
}

Result<Stream*> Executor::CopyStream(const Device& device) {
  const auto known = std::find(copy_devices_.begin(), copy_devices_.end(), &device);
  if (known != copy_devices_.end())
    return copy_streams_[static_cast<size_t>(known - copy_devices_.begin())].get();
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream,
                        device.MakeStream(*stack_.back()->program().host));
  copy_streams_.push_back(std::move(stream));
  copy_devices_.push_back(&device);
  return copy_streams_.back().get();
}

}  // namespace msrt

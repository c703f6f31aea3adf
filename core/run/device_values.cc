// Values that a loop keeps on a device: programs of bodies say where they want what they are given
// and where they leave what they make (Placement::kept), everybody else is the host. What crosses
// over is copied here, once.
#include <algorithm>

#include "core/run/executor.h"

namespace msrt {

const Device* Executor::HomeOfInput(const Program& program, size_t i) {
  return program.devices[program.buffers[program.input_buffers[i]].state.device].get();
}

// Input i is not where the program wants it.
Status Executor::MoveInput(Frame* frame, size_t i) {
  const Program& program = frame->program();
  const ValueId v = frame->graph_of().inputs[i];
  if (program.placed->ReadersOf(v).empty() && !program.placed->IsOutput(v))
    return OkStatus();  // nobody looks at it
  const std::string& name = frame->graph_of().value(v).name;
  RunValue& input = frame->inputs[i];
  if (frame->arguments.size() <= i) frame->arguments.resize(i + 1);
  ResultCell& cell = frame->arguments[i];
  if (input.device != nullptr) {
    // Only the caller's loop keeps values on devices.
    const Frame& caller = *stack_[stack_.size() - 2];
    const Step& loop = caller.program().steps[caller.links[caller.depth].binding->end_step];
    MSRT_RETURN_IF_ERROR(CopyToHost(&cell, input, loop.control->graphs.back(), name));
    input = cell.value;
  }
  const uint16_t device = program.buffers[program.input_buffers[i]].state.device;
  if (device == 0) return OkStatus();
  const TensorView from = input.tensor;
  MSRT_RETURN_IF_ERROR(PlaceOnDevice(frame, &cell, device, Type::Tensor(from.dtype, from.dims)));
  input = cell.value;
  return frame->devices.CopyToDevice(device, input.tensor.data, from.data,
                                     BytesOf(from.dtype, from.elements()));
}

Status Executor::PlaceOnDevice(Frame* frame, ResultCell* cell, uint16_t device, const Type& type) {
  if (cell->device_block == nullptr) cell->device_block = std::make_unique<DeviceBlock>();
  MSRT_RETURN_IF_ERROR(
      frame->devices.Ensure(device, cell->device_block.get(), type.bytes(), "what a loop carries"));
  cell->value = RunValue::Of({type.dtype, type.dims, Layout::kPlain, cell->device_block->data()});
  cell->value.device = cell->device_block->device();
  return OkStatus();
}

Status Executor::CopyToHost(ResultCell* cell, const RunValue& value, uint32_t maker,
                            std::string_view name) {
  const TensorView from = value.tensor;  // `value` may be the cell's own
  const Device& device = *value.device;
  MSRT_ASSIGN_OR_RETURN(const TensorView to,
                        PlaceResult(cell, Type::Tensor(from.dtype, from.dims), name));
  const Host& host = *stack_.back()->program().host;
  const auto copy = [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(Stream* const stream, HomeStream(device));
    MSRT_RETURN_IF_ERROR(
        stream->CopyToHost(host, to.data, from.data, BytesOf(from.dtype, from.elements())));
    return stream->Synchronize(host);
  };
  Status status = copy();
  if (status.ok()) return status;
  if (MayDoElsewhere(status.code(), /*on_device=*/true))
    failure_ = {device.name(), maker, model_.graphs[maker]->current()};
  return std::move(status).Within(StrCat("on ", device.name()));
}

Result<Stream*> Executor::HomeStream(const Device& device) {
  const auto known = std::find(home_devices_.begin(), home_devices_.end(), &device);
  if (known != home_devices_.end())
    return home_streams_[static_cast<size_t>(known - home_devices_.begin())].get();
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream,
                        device.MakeStream(*stack_.back()->program().host));
  home_streams_.push_back(std::move(stream));
  home_devices_.push_back(&device);
  return home_streams_.back().get();
}

}  // namespace msrt

// A GPU as a device of msrt: its memory, streams, events, copies and recordings as the functions of
// msrt_device_api.
#pragma once

#include <memory>

#include "core/abi/msrt_device.h"
#include "delegates/cuda/gpu.h"

namespace msrt::cuda {

// Register both together. `self` holds the GPU; api.destroy(self) lets it go. `api.name` is the
// GPU's and lives as long as `self`.
struct ExportedDevice {
  msrt_device_api api;
  void* self;
};
ExportedDevice ExportDevice(std::shared_ptr<Gpu> gpu);

}  // namespace msrt::cuda

// The accelerator: the state shared by its delegate (delegate.h) and its devices (device.h). The
// host passes a handle to it back as `self`.
#pragma once

#include <memory>
#include <vector>

#include "delegates/sdk/export.h"
#include "tests/examples/accelerator/device_memory.h"
#include "tests/examples/accelerator/faults.h"
#include "tests/examples/accelerator/options.h"

namespace accelerator {

struct Accelerator {
  Accelerator(const Options& o, msrt::sdk::ExportedDelegate loops)
      : options(o), inner(loops), faults(options) {
    for (size_t d = 0; d < options.devices; ++d)
      memories.push_back(std::make_unique<DeviceMemory>(options.capacity, options.reuse_addresses));
  }
  ~Accelerator() { inner.api.destroy(inner.self); }

  const Options options;
  const msrt::sdk::ExportedDelegate inner;  // provides the kernels: plain loops, all tensors plain
  Faults faults;
  std::vector<std::unique_ptr<DeviceMemory>> memories;  // by device
};

// `self` of the delegate and of each device. The last of them ends the accelerator.
struct Handle {
  std::shared_ptr<Accelerator> accelerator;
  size_t device = 0;
};

inline Accelerator& Of(void* self) { return *static_cast<Handle*>(self)->accelerator; }
inline DeviceMemory& MemoryOf(void* self) {
  return *Of(self).memories[static_cast<Handle*>(self)->device];
}
inline void DestroyHandle(void* self) { delete static_cast<Handle*>(self); }

}  // namespace accelerator

// The accelerator: the state shared by its delegate (delegate.h) and its device (device.h). The
// host passes it back as `self`.
#pragma once

#include "delegates/sdk/export.h"
#include "tests/examples/accelerator/device_memory.h"
#include "tests/examples/accelerator/faults.h"
#include "tests/examples/accelerator/options.h"

namespace accelerator {

struct Accelerator {
  Accelerator(const Options& o, msrt::sdk::ExportedDelegate loops)
      : options(o), inner(loops), faults(options), memory(options.capacity) {}
  ~Accelerator() { inner.api.destroy(inner.self); }

  const Options options;
  const msrt::sdk::ExportedDelegate inner;  // provides the kernels: plain loops, all tensors plain
  Faults faults;
  DeviceMemory memory;
};

inline Accelerator& Of(void* self) { return *static_cast<Accelerator*>(self); }

}  // namespace accelerator

// Loads the emulated accelerator of tests/examples as a plugin.
#pragma once

#include <memory>
#include <string>

#include "tests/conformance/pipeline.h"

namespace msrt::testing {

// The options are those of its options.h. Stops the process if it cannot be loaded.
std::shared_ptr<const Delegate> LoadAccelerator(const std::string& options);
const char* AcceleratorPath();
// Options of a device that claims to be so fast that everything is placed on it.
inline constexpr const char* kFastDevice = "speed=1e6,launch_us=0,copy_us=0,copy_gbs=1e4";

// Returns the number of operations of this kind so far in this process; see its counters.h.
uint64_t AcceleratorCount(const char* kind);

// Returns the misuse by the host that it noticed since the last call; empty if there was none.
std::string NewMisuses();

// Has the accelerator and the reference delegate. Log messages are appended to `log` if it is
// given.
std::shared_ptr<Environment> AcceleratedEnvironment(const std::string& options,
                                                    std::string* log = nullptr);

}  // namespace msrt::testing

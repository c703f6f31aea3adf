// The emulated accelerator of tests/examples, loaded as the plugin that it is.
#pragma once

#include <memory>
#include <string>

#include "tests/conformance/pipeline.h"

namespace msrt::testing {

// With options as its options.h has them. Stops the process if it cannot be loaded.
std::shared_ptr<const Delegate> LoadAccelerator(const std::string& options);
const char* AcceleratorPath();
// Options of a device that is worth using for everything, by what it says of itself.
inline constexpr const char* kFastDevice = "speed=1e6,launch_us=0,copy_us=0,copy_gbs=1e4";

// What it noticed of the host's mistakes since the last call: empty if there were none.
std::string NewMisuses();

// The accelerator and the reference delegate. What is logged is added to `log` if there is one.
std::shared_ptr<Environment> AcceleratedEnvironment(const std::string& options,
                                                    std::string* log = nullptr);

}  // namespace msrt::testing

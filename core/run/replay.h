// Capture and replay: the device steps of a segment that has run with the same addresses and
// versions of slots before are recorded by the device, and run as one from then on.
#pragma once

#include "core/run/frame.h"

namespace msrt {

// How the device steps of a segment are run.
enum class ReplayMode : uint8_t { kEnqueue, kCapture, kRun };

// Decides by the addresses that the steps use and the versions of the slots that they read, in
// their order: kernels may compute with forms that they made of one version. `replay` gets the
// entry to record to or to run; null for kEnqueue.
ReplayMode ChooseReplay(const std::shared_ptr<const Binding>& binding,
                        std::span<const uint64_t> key, Replays* replays, Replay** replay);

}  // namespace msrt

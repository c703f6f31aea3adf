// The communicator of every engine: it checks arguments, numbers operations, runs them in order on
// a CommQueue, and turns the first error into the end of the job.
#pragma once

#include <memory>

#include "core/comm/job/control.h"
#include "core/comm/transport.h"

namespace msrt {

// `control`, which may be null and outlives the communicator, is told which operation is in
// progress and which has failed, and ends the operations when the job is aborted. `group_id` is the
// same on all ranks of the group and on no other group of the job.
std::unique_ptr<Communicator> MakeQueuedCommunicator(std::unique_ptr<CommTransport> transport,
                                                     Control* control = nullptr,
                                                     uint64_t group_id = 0);

}  // namespace msrt

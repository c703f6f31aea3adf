// The communicator of all ranks of a job, connected with its store and its control connection.
#pragma once

#include <memory>

#include "core/comm/engine.h"
#include "core/comm/job/job.h"

namespace msrt {

// A collective of all ranks. The engine is the one of the job's settings, else "auto"; under mpirun
// it is "mpi". `options.control` is the job's; an empty `options.address` becomes the address of
// this host toward the job's server, and without a stall limit that of the job's settings counts.
// The job outlives the communicator. kInvalidArgument for a
// process that runs alone: it has nobody to communicate with.
Result<std::unique_ptr<Communicator>> MakeJobCommunicator(Job* job, CommOptions options = {});

}  // namespace msrt

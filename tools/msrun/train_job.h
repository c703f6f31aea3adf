// Joins the ranks of a training run.
#pragma once

#include <memory>

#include "core/comm/job_communicator.h"
#include "tools/msrun/train_arguments.h"

namespace msrt {

struct TrainJob {
  std::unique_ptr<Job> job;
  std::unique_ptr<Communicator> communicator;  // null: one rank alone
};

// Joins the ranks of msrun launch, of mpirun or of variables set by hand, if this process is one of
// several, and adapts the options: the ranks of a host share its cores.
Result<TrainJob> JoinTrainJob(TrainArguments* arguments);

}  // namespace msrt

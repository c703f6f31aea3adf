#include "core/comm/job_communicator.h"

namespace msrt {

Result<std::unique_ptr<Communicator>> MakeJobCommunicator(Job* job, CommOptions options) {
  const JobSettings& settings = job->settings();
  if (settings.source == JobSettings::Source::kAlone) {
    return InvalidArgument(
        "this process is the only rank; start several by 'msrun launch -n 4' or by mpirun");
  }
  if (!options.stall_limit) options.stall_limit = settings.stall_limit;
  const std::string engine = settings.engine.empty() ? "auto" : settings.engine;
  if (job->store() == nullptr)
    return MakeCommunicator(engine, settings.rank, settings.size, nullptr, options);
  options.control = job->control();
  if (options.address.empty()) {
    // The name of a host often has the loopback address, which other hosts cannot reach.
    MSRT_ASSIGN_OR_RETURN(options.address, OwnAddressToward(settings.server.host));
  }
  return MakeCommunicator(engine, settings.rank, settings.size, job->store(), options);
}

}  // namespace msrt

// The job that this process is a rank of, as the environment describes it. `msrun launch` sets the
// variables; they can also be set by hand:
//
//   MSRT_RANK, MSRT_SIZE  this rank, and the number of ranks
//   MSRT_STORE            HOST:PORT of the job's server, which rank 0 starts there
//   MSRT_TOKEN            32 hexadecimal digits, the same for all ranks, new for each launch
//   MSRT_LOCAL_RANK, MSRT_LOCAL_SIZE   this rank among those of its host, and their number
//   MSRT_HOST             the host's name in messages
//   MSRT_ENGINE           the communication engine that the user asks for
//   MSRT_TIMEOUT          by hand, on rank 0: seconds of silence after which a rank has failed
//   MSRT_STALL_TIMEOUT    seconds after which a rank has failed that keeps others waiting
//   MSRT_LAUNCHER         set by the launcher, which runs the server itself
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/comm/job/control.h"
#include "core/comm/job/job_server.h"
#include "core/comm/job/tcp_store.h"

namespace msrt {

inline constexpr int kMaxRanks = 65536;
inline constexpr double kMinStallSeconds = 0.05, kMaxStallSeconds = 7 * 86400;

struct JobSettings {
  enum class Source {
    kAlone,     // no variable is set: a job of one rank
    kLauncher,  // msrun launch
    kByHand,    // the variables were set by hand
    kMpi,       // mpirun: rank and size are known, MPI does the rest
  };
  Source source = Source::kAlone;
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;
  std::string host;
  std::string engine;  // empty: the caller chooses
  Address server;
  JobToken token{};
  std::chrono::milliseconds silence_limit = kDefaultSilenceLimit;
  std::chrono::milliseconds stall_limit = kDefaultStallLimit;
};

// `find` returns the value of a variable or null, as getenv does.
Result<JobSettings> ReadJobSettings(const std::function<const char*(const char*)>& find);

// One per process. Thread-safe.
class Job {
 public:
  // Reads the environment and, unless this rank is alone or under MPI, joins the other ranks:
  // returns when all of them are there. SIGPIPE is ignored from then on unless it is handled.
  static Result<std::unique_ptr<Job>> FromEnvironment(
      const WaitLimit& limit = LimitOf(std::chrono::seconds(60)));
  static Result<std::unique_ptr<Job>> Join(JobSettings settings, const WaitLimit& limit);
  // Leaves the job. If this rank runs the server, waits for the others to leave.
  ~Job();

  const JobSettings& settings() const { return settings_; }
  int rank() const { return settings_.rank; }
  int size() const { return settings_.size; }
  // Null if this rank is alone or under MPI.
  Store* store() { return store_.get(); }
  Control* control() { return control_.get(); }

 private:
  explicit Job(JobSettings settings) : settings_(std::move(settings)) {}
  JobSettings settings_;
  std::unique_ptr<JobServer> server_;
  std::unique_ptr<TcpStore> store_;
  std::unique_ptr<Control> control_;
};

}  // namespace msrt

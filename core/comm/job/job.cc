#include "core/comm/job/job.h"

#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "core/base/utf8.h"

namespace msrt {
namespace {

using std::chrono::milliseconds;
using FindVariable = std::function<const char*(const char*)>;

// A launched process whose job was aborted has this long to end. The launcher is faster where it
// can reach the process; this is for hosts that it cannot reach any more.
constexpr milliseconds kTimeToEnd{5000};

Status ReadInteger(const FindVariable& find, const char* name, int min, int max, int* value) {
  const char* text = find(name);
  if (text == nullptr) return OkStatus();
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), *value);
  if (error == std::errc() && *end == '\0' && *value >= min && *value <= max) return OkStatus();
  return InvalidArgument(name, "='", Printable(text, 100), "': must be a number from ", min, " to ",
                         max);
}

// With a fraction of a second.
Status ReadSeconds(const FindVariable& find, const char* name, double min, double max,
                   milliseconds* value) {
  const char* text = find(name);
  if (text == nullptr) return OkStatus();
  double seconds = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), seconds);
  if (error != std::errc() || *end != '\0' || !(seconds >= min && seconds <= max))
    return InvalidArgument(name, "='", Printable(text, 100), "': must be seconds from ", min,
                           " to ", max);
  *value = milliseconds(static_cast<int64_t>(seconds * 1e3));
  return OkStatus();
}

Status Require(const FindVariable& find, const char* name, const char* example) {
  if (find(name) != nullptr) return OkStatus();
  return InvalidArgument("MSRT_RANK is set, but ", name, " is not; set ", name, "=", example,
                         ", or start the ranks by 'msrun launch'");
}

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "unknown";
  return name;
}

Status ReadPlace(const FindVariable& find, JobSettings* s) {
  MSRT_RETURN_IF_ERROR(ReadInteger(find, "MSRT_SIZE", 1, kMaxRanks, &s->size));
  MSRT_RETURN_IF_ERROR(ReadInteger(find, "MSRT_RANK", 0, s->size - 1, &s->rank));
  MSRT_RETURN_IF_ERROR(ReadInteger(find, "MSRT_LOCAL_SIZE", 1, s->size, &s->local_size));
  MSRT_RETURN_IF_ERROR(ReadInteger(find, "MSRT_LOCAL_RANK", 0, s->local_size - 1, &s->local_rank));
  const char* host = find("MSRT_HOST");
  s->host = host != nullptr && *host != '\0' ? host : HostName();
  return OkStatus();
}

Result<JobSettings> ReadMpiSettings(const FindVariable& find, JobSettings s) {
  s.source = JobSettings::Source::kMpi;
  s.host = HostName();
  MSRT_RETURN_IF_ERROR(ReadInteger(find, "OMPI_COMM_WORLD_SIZE", 1, kMaxRanks, &s.size));
  MSRT_RETURN_IF_ERROR(ReadInteger(find, "OMPI_COMM_WORLD_RANK", 0, s.size - 1, &s.rank));
  MSRT_RETURN_IF_ERROR(ReadInteger(find, "OMPI_COMM_WORLD_LOCAL_SIZE", 1, s.size, &s.local_size));
  MSRT_RETURN_IF_ERROR(
      ReadInteger(find, "OMPI_COMM_WORLD_LOCAL_RANK", 0, s.local_size - 1, &s.local_rank));
  return s;
}

// Engines may write to the connection of a rank that has died. That must become an error, not the
// end of this process.
void IgnoreBrokenPipes() {
  struct sigaction action = {};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL)
    (void)std::signal(SIGPIPE, SIG_IGN);
}

JoinOptions JoinOptionsOf(const JobSettings& s) {
  JoinOptions options;
  options.server = s.server;
  options.token = s.token;
  options.hello = {Purpose::kStore, static_cast<uint32_t>(s.rank), static_cast<uint32_t>(s.size),
                   static_cast<uint64_t>(getpid()), s.host};
  options.keep_trying = s.source == JobSettings::Source::kByHand;
  return options;
}

}  // namespace

Result<JobSettings> ReadJobSettings(const FindVariable& find) {
  JobSettings s;
  if (const char* engine = find("MSRT_ENGINE")) s.engine = engine;
  MSRT_RETURN_IF_ERROR(
      ReadSeconds(find, "MSRT_STALL_TIMEOUT", kMinStallSeconds, kMaxStallSeconds, &s.stall_limit));
  if (find("MSRT_RANK") == nullptr) {
    for (const char* name : {"MSRT_SIZE", "MSRT_STORE"}) {
      if (find(name) == nullptr) continue;
      return InvalidArgument(name,
                             " is set, but MSRT_RANK is not; set MSRT_RANK to 0, 1, ... for "
                             "each rank, or start the ranks by 'msrun launch'");
    }
    if (find("OMPI_COMM_WORLD_RANK") != nullptr && find("OMPI_COMM_WORLD_SIZE") != nullptr)
      return ReadMpiSettings(find, std::move(s));
    s.host = HostName();
    return s;
  }
  MSRT_RETURN_IF_ERROR(Require(find, "MSRT_SIZE", "the number of ranks"));
  MSRT_RETURN_IF_ERROR(ReadPlace(find, &s));
  MSRT_RETURN_IF_ERROR(Require(find, "MSRT_STORE", "HOST:PORT on the host of rank 0"));
  MSRT_RETURN_IF_ERROR(
      Require(find, "MSRT_TOKEN", "32 random hexadecimal digits, the same for all ranks"));
  s.source = find("MSRT_LAUNCHER") != nullptr ? JobSettings::Source::kLauncher
                                              : JobSettings::Source::kByHand;
  auto server = ParseAddress(find("MSRT_STORE"));
  if (!server.ok()) return std::move(server).status().Within("MSRT_STORE");
  s.server = *std::move(server);
  if (s.server.port == 0)
    return InvalidArgument("MSRT_STORE='", s.server, "': the port must not be 0; choose one");
  auto token = ParseToken(find("MSRT_TOKEN"));
  if (!token.ok()) return std::move(token).status().Within("MSRT_TOKEN");
  s.token = *token;
  int seconds = static_cast<int>(s.silence_limit.count() / 1000);
  MSRT_RETURN_IF_ERROR(ReadInteger(find, "MSRT_TIMEOUT", 1, 86'400, &seconds));
  s.silence_limit = std::chrono::seconds(seconds);
  return s;
}

Result<std::unique_ptr<Job>> Job::FromEnvironment(const WaitLimit& limit) {
  MSRT_ASSIGN_OR_RETURN(JobSettings settings, ReadJobSettings(std::getenv));
  return Join(std::move(settings), limit);
}

Result<std::unique_ptr<Job>> Job::Join(JobSettings settings, const WaitLimit& limit) {
  using Source = JobSettings::Source;
  std::unique_ptr<Job> job(new Job(std::move(settings)));
  const JobSettings& s = job->settings_;
  if (s.source == Source::kAlone || s.source == Source::kMpi) return job;
  IgnoreBrokenPipes();
  if (s.source == Source::kByHand && s.rank == 0) {
    auto server = JobServer::Start({s.server, s.token, s.size, s.silence_limit, {}});
    if (!server.ok())
      return std::move(server).status().Within("MSRT_STORE, where rank 0 runs the job's server");
    job->server_ = *std::move(server);
  }
  ControlOptions options{JoinOptionsOf(s), "the launcher", kTimeToEnd};
  if (s.source == Source::kByHand) {
    options.server_name = "rank 0";
    options.exit_after_abort = milliseconds(0);
  }
  MSRT_ASSIGN_OR_RETURN(job->control_, Control::Join(options, limit));
  job->store_ = std::make_unique<TcpStore>(options.join);
  TcpStore* store = job->store_.get();
  job->control_->OnAbort([store](const Status& reason) { store->Abort(reason); });
  Status all_there = StoreBarrier(store, "job/joined", s.rank, s.size, limit);
  if (!all_there.ok()) {
    job->control_->Fail(all_there);
    return all_there;
  }
  return job;
}

Job::~Job() {
  control_.reset();
  store_.reset();
  if (server_ == nullptr) return;
  // The others need the server until they leave. After a failure they have been told.
  while (!server_->failure() && !server_->AwaitAllLeft(LimitOf(milliseconds(100))).ok()) {
  }
  (void)server_->AwaitAllLeft(LimitOf(milliseconds(1000)));
}

}  // namespace msrt

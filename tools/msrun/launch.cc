#include "tools/msrun/launch.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "core/comm/job/job.h"
#include "tools/msrun/arguments.h"
#include "tools/msrun/launch_hosts.h"
#include "tools/msrun/launch_output.h"
#include "tools/msrun/launch_process.h"
#include "tools/msrun/launch_signals.h"
#include "tools/msrun/launch_writer.h"

namespace msrt {
namespace {

using Milliseconds = std::chrono::milliseconds;

// After a failure the ranks are told, and have this long to end by themselves.
constexpr Milliseconds kTimeToUnwind{1000};
constexpr int kCannotRun = 127;  // as shells do

Milliseconds FromSeconds(double seconds) {
  return Milliseconds(static_cast<int64_t>(seconds * 1000));
}

std::string ExitText(int status) {
  if (WIFEXITED(status)) return StrCat("ended with code ", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return StrCat("was killed by signal ", signal, " (", strsignal(signal), ")");
}

int ExitCodeOf(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string Saying(const std::string& text) { return StrCat("msrun launch: ", text, "\n"); }

// Whether two descriptors write to one place, where their lines must not mix.
bool SameFile(int a, int b) {
  struct stat x {
  }, y{};
  return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

// One rank and its process.
struct LaunchedRank {
  LaunchedRank(int number, Process started, LaunchWriter* to, LaunchWriter* errors_to)
      : process(std::move(started)), out(number, to), error_out(number, errors_to) {}
  Process process;
  LabelledOutput out, error_out;
  bool ended = false;
  int status = 0;
};

class Launcher {
 public:
  Launcher(const LaunchArguments& arguments, std::vector<RankPlace> places)
      : a_(arguments), places_(std::move(places)) {}
  ~Launcher() { SignalAll(SIGKILL); }

  Status StartServer(const Address& address);
  Status StartRanks();
  // Runs until all ranks have ended, and returns the exit code.
  int Supervise();

 private:
  ProcessSpec SpecOf(int rank) const;
  void Wait();
  void ReadOutput(bool all);
  void Drain(Socket* from, LabelledOutput* to, bool all);
  void Say(const std::string& text) { errors_->Write(Saying(text)); }
  void Flush();
  void Reap();
  void HandleSignals();
  void StopForUser(int signal, const std::string& why);
  void Suspend();
  void Escalate();
  void SignalAll(int signal);
  bool AllEnded() const;
  int Conclude();

  const LaunchArguments& a_;
  const std::vector<RankPlace> places_;
  JobToken token_{};
  std::unique_ptr<JobServer> server_;
  const WakePipe* wake_ = nullptr;
  std::shared_ptr<LaunchWriter> out_, errors_;
  std::vector<std::unique_ptr<LaunchedRank>> ranks_;
  bool failure_shown_ = false;
  int user_signal_ = 0;
  int terminations_ = 0;  // 0: none; 1: asked to end; 2: killed
  SteadyTime next_step_ = SteadyTime::max();
};

Status Launcher::StartServer(const Address& address) {
  MSRT_ASSIGN_OR_RETURN(wake_, CollectSignals());
  const auto wake_me = [wake = wake_] { wake->Wake(); };
  errors_ = std::make_shared<LaunchWriter>(STDERR_FILENO, wake_me);
  const bool together = SameFile(STDOUT_FILENO, STDERR_FILENO);
  out_ = together ? errors_ : std::make_shared<LaunchWriter>(STDOUT_FILENO, wake_me);
  MSRT_ASSIGN_OR_RETURN(token_, NewToken());
  JobServerOptions options;
  options.address = address;
  options.token = token_;
  options.size = static_cast<int>(places_.size());
  options.silence_limit = FromSeconds(a_.timeout_seconds);
  options.on_failure = [wake = wake_](const JobFailure&) { wake->Wake(); };
  auto server = JobServer::Start(std::move(options));
  if (!server.ok()) return std::move(server).status().Within("--address");
  server_ = *std::move(server);
  return OkStatus();
}

ProcessSpec Launcher::SpecOf(int rank) const {
  const RankPlace& place = places_[static_cast<size_t>(rank)];
  ProcessSpec spec;
  spec.command = a_.command;
  spec.variables = {StrCat("MSRT_RANK=", rank),
                    StrCat("MSRT_SIZE=", places_.size()),
                    StrCat("MSRT_LOCAL_RANK=", place.local_rank),
                    StrCat("MSRT_LOCAL_SIZE=", place.local_size),
                    StrCat("MSRT_HOST=", place.host),
                    StrCat("MSRT_STORE=", server_->address()),
                    "MSRT_LAUNCHER=1"};
  if (!a_.engine.empty()) spec.variables.push_back(StrCat("MSRT_ENGINE=", a_.engine));
  if (a_.stall_seconds != 0)
    spec.variables.push_back(StrCat("MSRT_STALL_TIMEOUT=", a_.stall_seconds));
  const std::string secret = StrCat("MSRT_TOKEN=", TokenText(token_));
  if (!place.local) {
    std::error_code error;
    const std::string folder = std::filesystem::current_path(error).string();
    return RemoteProcess(a_.rsh, place.host, spec, secret, folder);
  }
  spec.variables.push_back(secret);
  return spec;
}

Status Launcher::StartRanks() {
  for (int rank = 0; rank < static_cast<int>(places_.size()); ++rank) {
    auto process = StartProcess(SpecOf(rank));
    if (!process.ok()) return std::move(process).status().Within(StrCat("rank ", rank));
    ranks_.push_back(
        std::make_unique<LaunchedRank>(rank, *std::move(process), out_.get(), errors_.get()));
  }
  return OkStatus();
}

int Launcher::Supervise() {
  while (!AllEnded()) {
    Wait();
    HandleSignals();
    ReadOutput(false);
    Reap();
    Escalate();
  }
  ReadOutput(true);
  const int code = Conclude();
  Flush();
  return code;
}

// Whoever reads the output may take any time; a signal ends the wait.
void Launcher::Flush() {
  while (!out_->idle() || !errors_->idle()) {
    if (TakeSignal() != 0) return;
    pollfd polled{wake_->fd(), POLLIN, 0};
    (void)poll(&polled, 1, 1000);
    wake_->Drain();
  }
}

void Launcher::Wait() {
  std::vector<pollfd> polled = {{wake_->fd(), POLLIN, 0}};
  // Poll ignores negative descriptors.
  const bool out_full = out_->full(), errors_full = errors_->full();
  for (const auto& rank : ranks_) {
    polled.push_back({out_full ? -1 : rank->process.out.fd(), POLLIN, 0});
    polled.push_back({errors_full ? -1 : rank->process.error_out.fd(), POLLIN, 0});
  }
  int wait = 1000;
  if (next_step_ != SteadyTime::max()) {
    const auto left =
        std::chrono::ceil<Milliseconds>(next_step_ - std::chrono::steady_clock::now());
    wait = static_cast<int>(std::clamp(left, Milliseconds(0), Milliseconds(1000)).count());
  }
  (void)poll(polled.data(), polled.size(), wait);
  wake_->Drain();
}

// Moves what has arrived; unless `all`, only while the writer takes it, and so much that ranks
// which write without end do not keep the launcher here.
void Launcher::Drain(Socket* from, LabelledOutput* to, bool all) {
  char bytes[64 << 10];
  for (int i = 0; from->is_open() && (all || (i < 16 && !to->writer().full())); ++i) {
    const ssize_t got = read(from->fd(), bytes, sizeof bytes);
    if (got > 0) {
      to->Append({bytes, static_cast<size_t>(got)});
      continue;
    }
    if (got == 0) from->Close();
    if (got == 0 || errno != EINTR) break;
  }
}

// `all`: nothing will follow.
void Launcher::ReadOutput(bool all) {
  for (const auto& rank : ranks_) {
    Drain(&rank->process.out, &rank->out, all);
    Drain(&rank->process.error_out, &rank->error_out, all);
    if (!all && (!rank->ended || rank->process.out.is_open() || rank->process.error_out.is_open()))
      continue;
    rank->out.Finish();
    rank->error_out.Finish();
  }
  const bool failed = out_->failed() || errors_->failed();
  if (failed && user_signal_ == 0) StopForUser(SIGTERM, "the output cannot be written any more");
}

void Launcher::Reap() {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    LaunchedRank& rank = *ranks_[i];
    siginfo_t info{};
    if (rank.ended ||
        waitid(P_PID, static_cast<id_t>(rank.process.pid), &info, WEXITED | WNOHANG | WNOWAIT) !=
            0 ||
        info.si_pid == 0) {
      continue;
    }
    // What the rank started ends with it. Its number is not used again before it is collected.
    (void)kill(-rank.process.pid, SIGKILL);
    (void)waitpid(rank.process.pid, &rank.status, 0);
    rank.ended = true;
    server_->ReportExit(static_cast<int>(i), ExitText(rank.status), rank.status != 0);
  }
}

void Launcher::HandleSignals() {
  while (const int signal = TakeSignal()) {
    if (signal == SIGTSTP) Suspend();
    else StopForUser(signal, StrCat("ends the ranks on signal ", signal));
  }
}

// The second request does not wait.
void Launcher::StopForUser(int signal, const std::string& why) {
  if (user_signal_ == 0) {
    user_signal_ = signal;
    Say(why);
    SignalAll(signal);
    SignalAll(SIGCONT);
    terminations_ = 1;
    next_step_ = std::chrono::steady_clock::now() + FromSeconds(a_.grace_seconds);
  } else {
    next_step_ = std::chrono::steady_clock::now();
  }
}

void Launcher::Suspend() {
  SignalAll(SIGSTOP);
  raise(SIGSTOP);
  SignalAll(SIGCONT);
}

void Launcher::Escalate() {
  const SteadyTime now = std::chrono::steady_clock::now();
  const auto failure = server_->failure();
  if (failure && !failure_shown_) {
    failure_shown_ = true;
    if (user_signal_ == 0) {
      Say(failure->message);
      next_step_ = now + kTimeToUnwind;
    }
  }
  if (now < next_step_) return;
  // A stopped process ends only when it continues.
  SignalAll(terminations_ == 0 ? SIGTERM : SIGKILL);
  SignalAll(SIGCONT);
  next_step_ = terminations_ == 0 ? now + FromSeconds(a_.grace_seconds) : SteadyTime::max();
  ++terminations_;
}

// To each rank's whole process group: what it started as well.
void Launcher::SignalAll(int signal) {
  for (const auto& rank : ranks_) {
    if (rank->ended) continue;
    if (signal == SIGTERM || signal == SIGINT) rank->process.in.Close();
    (void)kill(-rank->process.pid, signal);
  }
}

bool Launcher::AllEnded() const {
  for (const auto& rank : ranks_)
    if (!rank->ended) return false;
  return true;
}

int Launcher::Conclude() {
  if (user_signal_ != 0) return 128 + user_signal_;
  // The server describes a failure a moment after the last rank has ended.
  bool failed = false;
  for (const auto& rank : ranks_) failed = failed || rank->status != 0;
  for (int i = 0; failed && !server_->failure() && i < 100; ++i) usleep(5000);
  const auto failure = server_->failure();
  if (!failure) return failed ? kFailed : kDone;
  if (!failure_shown_) Say(failure->message);
  const LaunchedRank& culprit = *ranks_[static_cast<size_t>(failure->rank)];
  const auto& lines = culprit.error_out.last_lines();
  if (!lines.empty()) {
    Say(StrCat("the last messages of rank ", failure->rank, ":"));
    for (const std::string& line : lines) errors_->Write(StrCat("  ", line, "\n"));
  }
  return culprit.status == 0 ? kFailed : ExitCodeOf(culprit.status);
}

Result<std::vector<RankPlace>> FindPlaces(const LaunchArguments& a) {
  if (a.hosts_file.empty()) return PlaceLocally(a.ranks);
  std::ifstream file(a.hosts_file);
  std::stringstream text;
  if (!file || !(text << file.rdbuf()))
    return IoError("--hosts '", a.hosts_file, "' cannot be read, or is empty; name a file with a ",
                   "host on each line");
  MSRT_ASSIGN_OR_RETURN(const auto hosts, ParseHosts(a.hosts_file, text.str()));
  return PlaceRanks(hosts, a.ranks);
}

// HOST, HOST:PORT or a bare IPv6 address.
Result<Address> ListenAddress(const LaunchArguments& a, const std::vector<RankPlace>& places) {
  const auto remote =
      std::find_if(places.begin(), places.end(), [](const RankPlace& p) { return !p.local; });
  if (!a.address.empty()) {
    const bool has_port = std::count(a.address.begin(), a.address.end(), ':') == 1 ||
                          a.address.find("]:") != std::string::npos;
    Address address{a.address, 0};
    if (has_port) {
      auto parsed = ParseAddress(a.address);
      if (!parsed.ok()) return std::move(parsed).status().Within("--address");
      address = *std::move(parsed);
    }
    if (remote != places.end() && (address.host == "0.0.0.0" || address.host == "::"))
      return InvalidArgument("--address ", a.address,
                             ": ranks on other hosts need one address of this host");
    return address;
  }
  if (remote == places.end()) return Address{"127.0.0.1", 0};
  auto own = OwnAddressToward(remote->host.substr(remote->host.find('@') + 1));
  if (!own.ok()) {
    return std::move(own).status().Within(
        "which address of this host do the others use? say it by --address");
  }
  return Address{*std::move(own), 0};
}

}  // namespace

int Launch(const LaunchArguments& arguments) {
  const auto fail = [](const Status& status, int code) {
    std::cerr << Saying(status.message()) << std::flush;
    return code;
  };
  auto places = FindPlaces(arguments);
  if (!places.ok()) return fail(places.status(), kWrongCommandLine);
  const auto address = ListenAddress(arguments, *places);
  if (!address.ok()) return fail(address.status(), kWrongCommandLine);
  Launcher launcher(arguments, *std::move(places));
  Status started = launcher.StartServer(*address);
  if (!started.ok()) return fail(started, kFailed);
  started = launcher.StartRanks();
  if (!started.ok()) return fail(started, kCannotRun);
  return launcher.Supervise();
}

}  // namespace msrt

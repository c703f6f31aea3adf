// The server of a job: its store, and the control connections of its ranks, on one port and one
// thread. It runs in the launcher, or in rank 0 if the ranks were started by hand. Each launch has
// its own server and token, so nothing of an earlier one can be met.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/comm/job/monitor.h"
#include "core/comm/job/socket.h"
#include "core/comm/job/token.h"

namespace msrt {

inline constexpr std::chrono::milliseconds kDefaultSilenceLimit{10'000};

struct JobServerOptions {
  Address address{"127.0.0.1", 0};
  JobToken token{};
  int size = 1;
  std::chrono::milliseconds silence_limit = kDefaultSilenceLimit;
  // Called once, on the server's thread, when the ranks are told to abort. May be empty.
  std::function<void(const JobFailure&)> on_failure;
};

// Thread-safe.
class JobServer {
 public:
  static Result<std::unique_ptr<JobServer>> Start(JobServerOptions options);
  ~JobServer();

  // Where the server listens, with the port.
  const Address& address() const;
  // The launcher saw the process of a rank end; see Monitor::Exit.
  void ReportExit(int rank, std::string how, bool failed);
  // The error that the ranks are told; null while there is none.
  std::optional<JobFailure> failure() const;
  // Waits until every rank has left or failed.
  Status AwaitAllLeft(const WaitLimit& limit);

 private:
  class Loop;
  explicit JobServer(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace msrt

// The control connection of a rank: separate from its data, served by its own thread. It sends
// heartbeats with what the rank does, and it learns when another rank has failed.
#pragma once

#include <functional>
#include <memory>

#include "core/comm/job/progress.h"
#include "core/comm/job/protocol.h"

namespace msrt {

struct ControlOptions {
  JoinOptions join;
  // The server's name in messages: "the launcher", "rank 0".
  std::string server_name = "the launcher";
  // After an abort the process ends itself if the control is still open then: nobody else may be
  // left to end it. Zero: never.
  std::chrono::milliseconds exit_after_abort{0};
};

// Thread-safe.
class Control {
 public:
  static Result<std::unique_ptr<Control>> Join(ControlOptions options, const WaitLimit& limit);
  // Leaves the job.
  ~Control();

  ProgressBoard& progress();

  // `callback` is called once, on the control's thread, when the job is aborted, or at once if it
  // has been. The error names the culprit. The callback must be short and must not call
  // RemoveCallback, which waits for callbacks that run.
  uint64_t OnAbort(std::function<void(const Status&)> callback);
  void RemoveCallback(uint64_t id);
  // OK until the job is aborted.
  Status status() const;

  // Aborts the job: all ranks, this one included, are told that this rank failed with `reason`.
  void Fail(const Status& reason);
  // Calls Fail and returns the error with which the job is aborted. It may name another rank, whose
  // end is the cause of `error`. Returns `error` if the server does not answer within a second.
  Status Explain(const Status& error);

 private:
  class Thread;
  explicit Control(std::unique_ptr<Thread> thread);
  std::unique_ptr<Thread> thread_;
};

}  // namespace msrt

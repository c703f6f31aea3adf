// Gloo writes to sockets without MSG_NOSIGNAL, so a connection that a peer closed would end the
// process by SIGPIPE. A library must not change the process's handler; it blocks the signal on its
// own threads and while a caller's thread is inside Gloo.
#pragma once

#include <signal.h>
#include <time.h>

namespace msrt {

// Threads that start meanwhile keep the signal blocked.
class PipeSignalBlock {
 public:
  PipeSignalBlock() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    was_pending_ = IsPending();
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~PipeSignalBlock() {
    // A signal of Gloo's would arrive as soon as it is no longer blocked.
    const timespec at_once{};
    if (!was_pending_ && IsPending()) sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  PipeSignalBlock(const PipeSignalBlock&) = delete;
  PipeSignalBlock& operator=(const PipeSignalBlock&) = delete;

 private:
  static bool IsPending() {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
  }
  sigset_t pipe_, before_;
  bool was_pending_;
};

}  // namespace msrt

#include "tools/msrun/launch_signals.h"

#include <atomic>
#include <csignal>

namespace msrt {
namespace {

constexpr int kCollected[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
std::atomic<bool> arrived[32];
std::atomic<const WakePipe*> signal_pipe{nullptr};

void Collect(int signal) {
  if (signal != SIGCHLD) arrived[signal].store(true);
  if (const WakePipe* pipe = signal_pipe.load()) pipe->Wake();
}

}  // namespace

Result<const WakePipe*> CollectSignals() {
  if (signal_pipe.load() == nullptr) {
    MSRT_ASSIGN_OR_RETURN(WakePipe pipe, WakePipe::Open());
    signal_pipe.store(new WakePipe(std::move(pipe)));
  }
  struct sigaction action = {};
  action.sa_handler = Collect;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : kCollected) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    // What the caller ignores (nohup) stays ignored.
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
  sigaction(SIGCHLD, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signal_pipe.load();
}

int TakeSignal() {
  for (const int signal : kCollected)
    if (arrived[signal].exchange(false)) return signal;
  return 0;
}

}  // namespace msrt

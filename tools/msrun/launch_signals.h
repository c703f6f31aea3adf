// Signals to the launcher, collected for its loop.
#pragma once

#include "core/comm/job/wake_pipe.h"

namespace msrt {

// Collects SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP and SIGCHLD from now on, and ignores SIGPIPE.
// Returns the pipe that each of them wakes, which lives as long as the process.
Result<const WakePipe*> CollectSignals();

// Returns the next signal that arrived, or 0. The end of a child only wakes.
int TakeSignal();

}  // namespace msrt

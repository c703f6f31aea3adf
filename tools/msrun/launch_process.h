// One rank's process, started with its output in pipes and in a process group of its own.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/comm/job/socket.h"

namespace msrt {

struct ProcessSpec {
  std::vector<std::string> command;    // found in PATH
  std::vector<std::string> variables;  // NAME=VALUE, in addition to the environment
  std::string input;                   // a few bytes for its standard input
  bool keeps_input = false;            // the input ends with `Process::in`, not at once
};

struct Process {
  pid_t pid = 0;          // also its group
  Socket out, error_out;  // non-blocking ends of its standard output and error
  Socket in;              // closed unless ProcessSpec::keeps_input
};

// The process dies with the thread that calls this. kNotFound, kIo: the command cannot be executed.
Result<Process> StartProcess(const ProcessSpec& spec);

// The command that runs `spec` in `folder` on another host: `rsh` is a list of words, in which
// {host} is replaced, or to which the host is appended, followed by one word that a POSIX shell
// there executes. The value of `secret` comes by standard input, where `ps` does not show it. When
// that input ends, because the launcher closes it or has died, the rank there is ended as well.
ProcessSpec RemoteProcess(const std::string& rsh, const std::string& host, const ProcessSpec& spec,
                          const std::string& secret, const std::string& folder);

}  // namespace msrt

// msrun launch: starts the ranks of a job, here or on other hosts, shows their output, and ends
// them together. The job's server (core/comm/job/job_server.h) runs in this process.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace msrt {

struct LaunchArguments {
  int ranks = 0;  // 0: as many as the hosts have slots
  std::string hosts_file;
  std::string address;  // HOST or HOST:PORT at which the server listens; empty: chosen
  std::string rsh = "ssh -o BatchMode=yes {host}";  // reaches a host; see RemoteProcess
  double timeout_seconds = 10;
  double stall_seconds = 0;  // for the ranks; 0: their own default
  double grace_seconds = 3;
  std::string engine;
  std::vector<std::string> command;
};

// Checks the arguments and finds the ranks' hosts before anything is started. Returns the exit code
// of the process; errors have been printed.
int Launch(const LaunchArguments& arguments);

}  // namespace msrt

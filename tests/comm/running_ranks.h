// Runs a function on every rank of a communicator, on any engine: in threads, or in processes that
// are forked for the purpose.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "core/comm/comm_op.h"
#include "core/comm/communicator.h"
#include "core/comm/job/store.h"

namespace msrt {

// Returns the first problem that the rank found, or nothing.
using RankBody = std::function<std::string(Communicator&)>;

// Files in a folder. A key is a file that appears whole; ranks of several processes see it.
class FolderStore final : public Store {
 public:
  explicit FolderStore(std::string folder) : folder_(std::move(folder)) {}
  using Store::Set;
  Status Set(std::string_view key, std::string_view value, const WaitLimit& limit) override;
  Result<std::string> Get(std::string_view key, const WaitLimit& limit) override;

 private:
  std::string PathOf(std::string_view key) const;
  std::string folder_;
};

// A fresh folder that is removed at the end.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A row of the conformance suite.
struct EngineRow {
  std::string name;
  int max_ranks;
  // Runs `body` on that many ranks and returns the problems of all of them.
  std::function<std::string(int ranks, const RankBody& body, std::chrono::milliseconds stall_limit)>
      run_limited;
  // Iterations of the suite relative to the fastest engine.
  double share = 1;

  std::string run(int ranks, const RankBody& body) const {
    return run_limited(ranks, body, kDefaultStallLimit);
  }
};

std::string RunInThreads(int ranks, const RankBody& body,
                         std::chrono::milliseconds stall_limit = kDefaultStallLimit);
// `engine` is a name for MakeCommunicator.
std::string RunInProcesses(const std::string& engine, int ranks, const RankBody& body,
                           std::chrono::milliseconds stall_limit = kDefaultStallLimit);

// Kills a random one of three processes at a random moment, `trials` times. The others must fail
// within a second with an error that names it. Returns the first problem.
std::string CheckKilledRanks(const std::string& engine, int trials);

// Stops one of three processes (SIGSTOP) at a random moment, `trials` times. The others must fail
// with an error that names it, within a second after the stall limit.
std::string CheckStoppedRanks(const std::string& engine, int trials);

}  // namespace msrt

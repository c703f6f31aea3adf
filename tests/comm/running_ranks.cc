#include "tests/comm/running_ranks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "core/comm/engine.h"
#include "core/comm/thread_engine.h"
#include "tests/comm/random_operations.h"

namespace msrt {

std::string FolderStore::PathOf(std::string_view key) const {
  std::string name;
  for (const char c : key) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) name += c;
    else StrAppend(&name, "_", static_cast<int>(static_cast<unsigned char>(c)), "_");
  }
  return folder_ + "/k" + name;
}

Status FolderStore::Set(std::string_view key, std::string_view value, const WaitLimit&) {
  const std::string path = PathOf(key), temporary = StrCat(path, ".", getpid());
  std::ofstream(temporary, std::ios::binary) << value;
  const bool is_new = link(temporary.c_str(), path.c_str()) == 0;
  unlink(temporary.c_str());
  return is_new ? OkStatus() : InvalidArgument("key '", key, "' exists");
}

Result<std::string> FolderStore::Get(std::string_view key, const WaitLimit& limit) {
  // Ranks find each other fast, and hardly disturb each other while they wait for long.
  for (useconds_t pause = 100;; pause = std::min<useconds_t>(2 * pause, 2000)) {
    std::ifstream file(PathOf(key), std::ios::binary);
    if (file) {
      std::ostringstream text;
      text << file.rdbuf();
      return text.str();
    }
    if (limit.expired()) return MakeStatus(Code::kDeadlineExceeded, "no key '", key, "'");
    usleep(pause);
  }
}

ScratchFolder::ScratchFolder() {
  const char* base = getenv("TMPDIR");
  path_ = std::string(base != nullptr ? base : "/tmp") + "/msrt_comm.XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) path_.clear();
}
ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string RunInThreads(int ranks, const RankBody& body, std::chrono::milliseconds stall_limit) {
  auto communicators = MakeThreadCommunicators(ranks, "world", stall_limit);
  if (!communicators.ok()) return communicators.status().message();
  std::vector<std::string> problems(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      auto communicator = std::move((*communicators)[static_cast<size_t>(r)]);
      problems[static_cast<size_t>(r)] = body(*communicator);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (int r = 0; r < ranks; ++r)
    if (!problems[static_cast<size_t>(r)].empty())
      StrAppend(&all, "rank ", r, ": ", problems[static_cast<size_t>(r)], "\n");
  return all;
}

namespace {

std::string RunRank(const std::string& engine, int rank, int ranks, Store* store,
                    const RankBody& body, std::chrono::milliseconds stall_limit) {
  CommOptions options;
  options.stall_limit = stall_limit;
  options.address = "127.0.0.1";
  auto communicator = MakeCommunicator(engine, rank, ranks, store, options);
  if (!communicator.ok()) return communicator.status().message();
  return body(**communicator);
}

std::string ReadAll(int file) {
  std::string text;
  char block[4096];
  for (ssize_t n; (n = read(file, block, sizeof(block))) > 0;)
    text.append(block, static_cast<size_t>(n));
  return text;
}

}  // namespace

std::string RunInProcesses(const std::string& engine, int ranks, const RankBody& body,
                           std::chrono::milliseconds stall_limit) {
  const ScratchFolder folder;
  struct Child {
    pid_t process;
    int pipe;
  };
  std::vector<Child> children;
  for (int r = 0; r < ranks; ++r) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
    const pid_t process = fork();
    if (process == 0) {
      close(ends[0]);
      alarm(120);  // a hang becomes a failure
      FolderStore store(folder.path());
      const std::string problem = RunRank(engine, r, ranks, &store, body, stall_limit);
      if (!problem.empty() && write(ends[1], problem.data(), problem.size()) < 0) _exit(3);
      _exit(problem.empty() ? 0 : 1);
    }
    close(ends[1]);
    children.push_back({process, ends[0]});
  }
  std::string all;
  for (int r = 0; r < ranks; ++r) {
    const Child& child = children[static_cast<size_t>(r)];
    const std::string problem = ReadAll(child.pipe);
    close(child.pipe);
    int status = 0;
    waitpid(child.process, &status, 0);
    if (WIFSIGNALED(status))
      StrAppend(&all, "rank ", r, ": killed by signal ", WTERMSIG(status), "\n");
    else if (WEXITSTATUS(status) != 0) StrAppend(&all, "rank ", r, ": ", problem, "\n");
  }
  return all;
}

std::string CheckKilledRanks(const std::string& engine, int trials) {
  constexpr int kRanks = 3;
  std::mt19937 random(17);
  std::string problems;
  for (int trial = 0; trial < trials && problems.empty(); ++trial) {
    const int dead = static_cast<int>(random() % kRanks);
    const useconds_t delay = static_cast<useconds_t>(random() % 15000);
    const auto until_failure = [&](Communicator& comm) -> std::string {
      if (comm.rank() == dead) {
        std::thread([delay] {
          usleep(delay);
          kill(getpid(), SIGKILL);
        }).detach();
      }
      std::string problem;
      for (unsigned seed = 0; problem.empty(); ++seed)
        problem = RunRandomOperations(comm, {.seed = seed, .count = 50, .max_bytes = 100000});
      return problem.find(StrCat("rank ", dead)) != std::string::npos ? "" : problem;
    };
    const StopWatch watch;
    const std::string expected = StrCat("rank ", dead, ": killed by signal 9\n");
    const std::string found = RunInProcesses(engine, kRanks, until_failure);
    if (found != expected) StrAppend(&problems, "trial ", trial, ", rank ", dead, ": ", found);
    if (watch.Millis() > 1500) StrAppend(&problems, "trial ", trial, ": ", watch.Millis(), " ms");
  }
  return problems;
}

std::string CheckStoppedRanks(const std::string& engine, int trials) {
  constexpr int kRanks = 3;
  constexpr std::chrono::milliseconds kLimit(250);
  std::mt19937 random(18);
  std::string problems;
  for (int trial = 0; trial < trials && problems.empty(); ++trial) {
    const int stopped = static_cast<int>(random() % kRanks);
    const useconds_t delay = static_cast<useconds_t>(random() % 15000);
    const auto until_failure = [&](Communicator& comm) -> std::string {
      if (comm.rank() == stopped) {
        // Another process ends this one, after the others should have failed.
        const pid_t me = getpid();
        if (fork() == 0) {
          usleep(delay);
          kill(me, SIGSTOP);
          usleep(static_cast<useconds_t>((kLimit.count() + 400) * 1000));
          kill(me, SIGKILL);
          _exit(0);
        }
      }
      std::string problem;
      double millis = 0;
      for (unsigned seed = 0; problem.empty(); ++seed) {
        const StopWatch watch;
        problem = RunRandomOperations(comm, {.seed = seed, .count = 20, .max_bytes = 100000});
        millis = watch.Millis();
      }
      const size_t waited = problem.find(" ms for rank ");
      const std::string names = waited == std::string::npos ? "" : problem.substr(waited, 40);
      if (names.find(StrCat(stopped)) == std::string::npos) return problem;
      const double limit = static_cast<double>(kLimit.count()) + 1000;
      return millis < limit ? "" : StrCat("the error came after ", millis, " ms");
    };
    const std::string expected = StrCat("rank ", stopped, ": killed by signal 9\n");
    const std::string found = RunInProcesses(engine, kRanks, until_failure, kLimit);
    if (found != expected) StrAppend(&problems, "trial ", trial, ", rank ", stopped, ": ", found);
  }
  return problems;
}

}  // namespace msrt

// One rank of the conformance suite under mpirun: mpi_ranks CASE.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "core/comm/engine.h"
#include "tests/comm/conformance.h"
#include "tests/comm/random_operations.h"

namespace msrt {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStallLimit(120);

// Subsets of the ranks, from one to all. More ranks than cores take turns, so they do less.
std::string CheckOperations(Communicator& world) {
  std::string problem;
  for (int ranks = 1; ranks <= world.size() && problem.empty(); ++ranks) {
    auto part = world.Split(world.rank() < ranks ? 0 : -1, 0, "world");
    if (!part.ok()) return part.status().message();
    if (*part == nullptr) continue;
    const int count = ranks <= 4 ? 60 : 10;
    for (const CommOrder order : {CommOrder::kFixedTree, CommOrder::kAny}) {
      RandomOperations options{
          .seed = static_cast<unsigned>(ranks), .count = count, .order = order};
      if (problem.empty()) problem = RunRandomOperations(**part, options);
    }
    RandomOperations large{.seed = 77, .count = 8, .max_bytes = 2000000, .delays = false};
    if (problem.empty() && ranks <= 4) problem = RunRandomOperations(**part, large);
    if (problem.empty()) problem = CheckSplits(**part);
    if (problem.empty() && ranks > 1) problem = CheckPairs(**part);
    if (problem.empty()) problem = CheckFixedTree(**part);
    if (problem.empty()) problem = CheckCounters(**part);
    if (problem.empty()) problem = CheckRefusals(**part);
  }
  return problem;
}

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Rank 0 waits for each other rank in a thread, as it does in an image job. That must leave the
// cores to those that compute.
std::string CheckIdleWaits(Communicator& world) {
  constexpr double kMaxShare = 0.04;  // of a core, for each thread
  constexpr milliseconds kWait(1500);
  auto made = world.SplitPairs("pair");
  if (!made.ok()) return made.status().message();
  const std::vector<std::unique_ptr<Communicator>> pairs = *std::move(made);
  std::vector<std::string> problems(pairs.size());
  std::vector<std::thread> threads;
  const double before = CpuSeconds();
  for (size_t p = 0; p < pairs.size(); ++p) {
    threads.emplace_back([&, p] {
      int number = 0;
      const CommPart part{1 - pairs[p]->rank(), reinterpret_cast<std::byte*>(&number),
                          sizeof number};
      const std::span<const CommPart> one(&part, 1), none;
      if (world.rank() != 0) std::this_thread::sleep_for(kWait);
      auto work = world.rank() == 0 ? pairs[p]->Exchange(none, one) : pairs[p]->Exchange(one, none);
      const Status status = work.ok() ? (*work)->Wait({}) : work.status();
      if (!status.ok()) problems[p] = status.message();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double share = (CpuSeconds() - before) / (static_cast<double>(kWait.count()) * 1e-3) /
                       static_cast<double>(pairs.size());
  std::string problem;
  for (const std::string& text : problems) problem += text;
  if (world.rank() == 0) std::printf("a waiting thread takes %.1f %% of a core\n", share * 100);
  if (world.rank() == 0 && share > kMaxShare)
    StrAppend(&problem, "a waiting thread takes ", share * 100, " % of a core, more than ",
              kMaxShare * 100, " %");
  return problem;
}

// Works until a rank is killed: by the test, which reads the process ids, or by itself.
std::string WorkUntilKilled(Communicator& world, bool by_itself) {
  std::printf("pid %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  if (by_itself && world.rank() == world.size() - 1) {
    std::thread([] {
      usleep(100000);
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      std::printf("killed %lld\n",
                  static_cast<long long>(std::chrono::duration_cast<milliseconds>(now).count()));
      std::fflush(stdout);
      kill(getpid(), SIGKILL);
    }).detach();
  }
  std::string problem;
  for (unsigned seed = 0; problem.empty(); ++seed)
    problem = RunRandomOperations(world, {.seed = seed, .count = 50, .max_bytes = 100000});
  return problem;
}

// Every failure ends a communicator, so each has one of its own.
std::string RunFailures() {
  std::string problems;
  const auto check = [&](std::string_view name, int number, milliseconds stall_limit,
                         const RankBody& body) {
    CommOptions options;
    options.stall_limit = stall_limit;
    auto world = MakeCommunicator("mpi", 0, 0, nullptr, options);
    const std::string problem = world.ok() ? body(**world) : world.status().message();
    if (!problem.empty()) StrAppend(&problems, name, " ", number, ": ", problem, "\n");
  };
  for (int kind = 0; kind < kAbortKinds; ++kind)
    check("abort", kind, kDefaultStallLimit,
          [&](Communicator& c) { return CheckAbort(c, kind % c.size(), kind); });
  for (int kind = 0; kind < kMismatchKinds; ++kind)
    check("mismatch", kind, kDefaultStallLimit,
          [&](Communicator& c) { return CheckMismatch(c, kind); });
  check("stall", 0, kStallLimit, [](Communicator& c) { return CheckStall(c, kStallLimit); });
  // After a failure a rank does not wait for the others long, so all end together.
  check("end", 0, kDefaultStallLimit, [](Communicator& c) -> std::string {
    auto work = c.Barrier();
    const Status status = work.ok() ? (*work)->Wait({}) : work.status();
    return status.ok() ? "" : status.message();
  });
  return problems;
}

std::string RunCase(std::string_view name) {
  if (name == "failures") return RunFailures();
  auto world = MakeCommunicator("auto", 0, 0, nullptr, {});
  if (!world.ok()) return world.status().message();
  if (name == "operations") return CheckOperations(**world);
  if (name == "deadlines") return CheckDeadlines(**world);
  if (name == "idle") return CheckIdleWaits(**world);
  if (name == "killed" || name == "work") return WorkUntilKilled(**world, name == "killed");
  return "no such case";
}

}  // namespace
}  // namespace msrt

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "operations";
  const std::string problem = msrt::RunCase(name);
  if (!problem.empty()) std::fprintf(stderr, "%s: %s\n", name, problem.c_str());
  return problem.empty() ? 0 : 1;
}

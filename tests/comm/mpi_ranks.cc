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
    if (problem.empty()) problem = CheckFixedTree(**part);
    if (problem.empty()) problem = CheckCounters(**part);
    if (problem.empty()) problem = CheckRefusals(**part);
  }
  return problem;
}

// Works until a rank is killed: by the test, which reads the process ids, or by itself.
std::string WorkUntilKilled(Communicator& world, bool by_itself) {
  std::printf("pid %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  if (by_itself && world.rank() == world.size() - 1) {
    std::thread([] {
      usleep(100000);
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
  return problems;
}

std::string RunCase(std::string_view name) {
  if (name == "failures") return RunFailures();
  auto world = MakeCommunicator("auto", 0, 0, nullptr, {});
  if (!world.ok()) return world.status().message();
  if (name == "operations") return CheckOperations(**world);
  if (name == "deadlines") return CheckDeadlines(**world);
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

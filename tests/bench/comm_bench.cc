// comm_bench [PERCENT]: microseconds of an all-reduce over two ranks of one host, for each engine
// that is there, next to OpenMPI and Gloo by themselves. Less than 100 percent makes fewer calls.
//
// From 100 percent on, all are measured three times in turn, the medians count, and it exits with 1
// if shm, which is there to be faster, takes longer than OpenMPI or Gloo by themselves, by more
// than what an idle machine varies. The other engines stand on these libraries or share a process,
// and have no limit.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/str_cat.h"
#include "core/comm/engine.h"
#include "tests/bench/comm_measure.h"
#include "tests/comm/running_ranks.h"

namespace {

using msrt::StrCat;
using msrt::bench::kCommSizes;

std::string Measure(msrt::Communicator& comm, int percent) {
  std::string problem;
  msrt::bench::MeasureAllReduce(
      comm.engine().c_str(), comm.rank() == 0, percent, [&](float* data, size_t count) {
        auto work = comm.AllReduce(data, count, msrt::CommType::kF32, msrt::CommReduce::kSum,
                                   msrt::CommOrder::kAny);
        const msrt::Status status = work.ok() ? (*work)->Wait({}) : work.status();
        if (!status.ok() && problem.empty()) problem = status.message();
      });
  return problem;
}

// The lines that `run` prints in a process of its own.
std::vector<std::string> LinesOf(const std::function<int()>& run) {
  std::fflush(stdout);
  FILE* file = std::tmpfile();
  if (file == nullptr) return {};
  const pid_t process = fork();
  if (process == 0) {
    dup2(fileno(file), STDOUT_FILENO);
    const int code = run();
    std::fflush(stdout);
    _exit(code);
  }
  waitpid(process, nullptr, 0);
  std::rewind(file);
  std::vector<std::string> lines;
  char line[256];
  while (std::fgets(line, sizeof(line), file) != nullptr) lines.emplace_back(line);
  std::fclose(file);
  return lines;
}

int Complain(const std::string& problem) {
  if (!problem.empty()) std::fprintf(stderr, "%s\n", problem.c_str());
  return problem.empty() ? 0 : 1;
}

int RunShell(const std::string& command) { return std::system(command.c_str()) == 0 ? 0 : 1; }

bool Exists(const std::string& file) { return std::filesystem::exists(file); }

// "name;size;microseconds" of all engines, in the order of the table.
std::vector<std::string> MeasureAll(int percent, const std::string& self) {
  const std::string folder = self.substr(0, self.find_last_of('/'));
  const msrt::ScratchFolder scratch;
  const auto measure = [&](msrt::Communicator& comm) { return Measure(comm, percent); };
  std::vector<std::function<int()>> runs;
  runs.push_back([&] { return Complain(msrt::RunInThreads(2, measure)); });
  runs.push_back([&] { return Complain(msrt::RunInProcesses("shm", 2, measure)); });
  if (Exists(folder + "/../lib/libmsrt_comm_gloo.so"))
    runs.push_back([&] { return Complain(msrt::RunInProcesses("gloo", 2, measure)); });
  const std::string mpirun =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout "
      "100 mpirun --oversubscribe -n 2 ";
  if (Exists(folder + "/comm_plain_mpi")) {
    runs.push_back([&] { return RunShell(StrCat(mpirun, self, " --mpi ", percent)); });
    runs.push_back([&] { return RunShell(StrCat(mpirun, folder, "/comm_plain_mpi ", percent)); });
  }
  if (Exists(folder + "/comm_plain_gloo")) {
    const std::string plain = StrCat("timeout 100 ", folder, "/comm_plain_gloo ");
    const std::string arguments = StrCat(" ", scratch.path(), " ", percent);
    runs.push_back([&, plain, arguments] {
      return RunShell(StrCat(plain, "1", arguments, " & ", plain, "0", arguments, "; wait"));
    });
  }
  std::vector<std::string> lines;
  for (const auto& run : runs)
    for (std::string& line : LinesOf(run)) lines.push_back(std::move(line));
  return lines;
}

constexpr int kJudgedPercent = 100, kRounds = 3;
constexpr double kMaxRatio = 1.25;  // of shm to the libraries

class Table {
 public:
  // "name;size;microseconds"
  void Add(const std::string& line) {
    const size_t first = line.find(';'), second = line.find(';', first + 1);
    if (second == std::string::npos) return;
    const std::string name = line.substr(0, first);
    if (!times_.contains(name)) names_.push_back(name);
    times_[name][line.substr(first + 1, second - first - 1)].push_back(
        std::atof(&line[second + 1]));
  }

  void Print() {
    std::printf("%-16s", "all-reduce, us");
    for (const auto& size : kCommSizes) std::printf("%12s", size.name);
    std::printf("\n");
    for (const std::string& name : names_) {
      std::printf("%-16s", name.c_str());
      for (const auto& size : kCommSizes) std::printf("%12.1f", MedianOf(name, size.name));
      std::printf("\n");
    }
  }

  bool complete(int rounds) {
    bool all = names_.size() >= 2;
    for (const std::string& name : names_) {
      for (const auto& size : kCommSizes)
        all &= times_[name][size.name].size() == static_cast<size_t>(rounds);
    }
    return all;
  }

  // Returns the limits that were missed.
  std::string Judge() {
    std::string missed;
    for (const char* library : {"plain OpenMPI", "plain Gloo"}) {
      if (!times_.contains(library)) continue;
      for (const auto& size : kCommSizes) {
        const double ratio = MedianOf("shm", size.name) / MedianOf(library, size.name);
        if (ratio > kMaxRatio)
          msrt::StrAppend(&missed, "limit missed: shm takes ", ratio, " of the time of ", library,
                          " for ", size.name, "; the limit is ", kMaxRatio, "\n");
      }
    }
    return missed;
  }

 private:
  double MedianOf(const std::string& name, const char* size) {
    std::vector<double> times = times_[name][size];
    if (times.empty()) return 0;
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  std::vector<std::string> names_;
  std::map<std::string, std::map<std::string, std::vector<double>>> times_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "--mpi") == 0) {
    auto comm = msrt::MakeCommunicator("mpi", 0, 0, nullptr, {});
    if (!comm.ok()) return Complain(comm.status().message());
    return Complain(Measure(**comm, std::atoi(argv[2])));
  }
  const int percent = argc > 1 ? std::atoi(argv[1]) : 100;
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) return 1;
  const std::string self(path, static_cast<size_t>(length));
  Table table;
  const int rounds = percent >= kJudgedPercent ? kRounds : 1;
  for (int round = 0; round < rounds; ++round) {
    for (const std::string& line : MeasureAll(percent, self)) table.Add(line);
  }
  table.Print();
  if (!table.complete(rounds)) return Complain("a measurement is missing");
  return percent >= kJudgedPercent ? Complain(table.Judge()) : 0;
}

// comm_bench [PERCENT]: microseconds of an all-reduce over two ranks of one host, for each engine
// that is there, next to OpenMPI and Gloo by themselves. Less than 100 percent makes fewer calls.
#include <sys/wait.h>
#include <unistd.h>

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
  std::vector<std::string> names;
  std::map<std::string, std::map<std::string, double>> table;
  for (const std::string& line :
       MeasureAll(percent, std::string(path, static_cast<size_t>(length)))) {
    const size_t first = line.find(';'), second = line.find(';', first + 1);
    if (second == std::string::npos) continue;
    const std::string name = line.substr(0, first);
    if (!table.contains(name)) names.push_back(name);
    table[name][line.substr(first + 1, second - first - 1)] = std::atof(&line[second + 1]);
  }
  std::printf("%-16s", "all-reduce, us");
  for (const auto& size : kCommSizes) std::printf("%12s", size.name);
  std::printf("\n");
  bool complete = names.size() >= 2;
  for (const std::string& name : names) {
    std::printf("%-16s", name.c_str());
    for (const auto& size : kCommSizes) std::printf("%12.1f", table[name][size.name]);
    std::printf("\n");
    complete &= table[name].size() == std::size(kCommSizes);
  }
  return complete ? 0 : 1;
}

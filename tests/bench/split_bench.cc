// One rank with as many threads as ranks, against ranks with one thread each, in turn: the speed of
// a split, and the time for which halos are waited for.
//   split_bench [network] [image] [rounds] [rows] [columns]
//   msrun launch -n 2 --engine shm -- split_bench unet 2048 5
//   mpirun -n 2 split_bench unet 2048 5
// By itself the ranks are threads of this process. Where it is started as several ranks, they are
// those processes; the one rank with several threads is then in rank 0, while the others wait.
// With images from 1024 on, exits with 1 if the split has less than 0.95 of the speed of one rank,
// or waits for halos for more than 5 % of its time; smaller ones measure the start of threads.
// Needs an idle machine.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "core/comm/job_communicator.h"
#include "core/comm/thread_engine.h"
#include "core/run/rank_session.h"
#include "delegates/builtin.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/zoo.h"

namespace msrt::testing {
namespace {

std::shared_ptr<Environment> WithThreads(int threads) {
  auto env = std::make_shared<Environment>();
  env->parallel = MakeThreadPool(threads);
  env->delegates = BuiltinDelegates();
  env->evaluator = &BuiltinEvaluator();
  return env;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

RankIo NoIo() {
  RankIo io;
  io.read = [](size_t, const Box&, const TensorView& memory) {
    std::fill_n(memory.As<float>(), memory.dims.elements(), 0.5f);
    return OkStatus();
  };
  io.write = [](size_t, const Box&, const TensorView&) { return OkStatus(); };
  return io;
}

// What one rank did in a run. Ranks of one job have the same byte order.
struct RankTimes {
  double seconds = 0;
  ExchangeTotals exchanges = {};
  size_t memory_bytes = 0;
};
RankTimes TimesOf(const RankReport& report) {
  return {report.seconds, report.exchanges, report.memory_bytes};
}

// All ranks of a split.
class Ranks {
 public:
  virtual ~Ranks() = default;
  // Runs all of them once; returns the times by rank.
  virtual Result<std::vector<RankTimes>> Run() = 0;
};

// Each with its session and `threads` threads of this process.
class ThreadRanks final : public Ranks {
 public:
  Status Make(const Module& module, const Dims& image, const RankOptions& options, int threads) {
    MSRT_ASSIGN_OR_RETURN(const int ranks, RanksOf(options.split));
    MSRT_ASSIGN_OR_RETURN(comms_, MakeThreadCommunicators(ranks));
    for (auto& comm : comms_) {
      MSRT_ASSIGN_OR_RETURN(auto session, RankSession::Create(WithThreads(threads), module,
                                                              {&image, 1}, options, comm.get()));
      sessions_.push_back(std::move(session));
    }
    return Run().status();  // allocates
  }

  Result<std::vector<RankTimes>> Run() override {
    std::vector<Status> statuses(sessions_.size());
    std::vector<RankTimes> times(sessions_.size());
    std::vector<std::thread> threads;
    for (size_t r = 0; r < sessions_.size(); ++r) {
      threads.emplace_back([&, r] {
        auto report = sessions_[r]->Run(NoIo(), {});
        statuses[r] = report.status();
        if (report.ok()) times[r] = TimesOf(*report);
      });
    }
    for (std::thread& t : threads) t.join();
    for (Status& status : statuses) MSRT_RETURN_IF_ERROR(std::move(status));
    return times;
  }

 private:
  std::vector<std::unique_ptr<Communicator>> comms_;
  std::vector<std::unique_ptr<RankSession>> sessions_;
};

// Processes with one thread each, of which this one is a rank.
class ProcessRanks final : public Ranks {
 public:
  explicit ProcessRanks(Communicator* comm) : comm_(*comm) {}
  Status Make(const Module& module, const Dims& image, const RankOptions& options) {
    MSRT_ASSIGN_OR_RETURN(
        session_, RankSession::Create(WithThreads(1), module, {&image, 1}, options, &comm_));
    return Run().status();
  }

  Status Barrier() {
    MSRT_ASSIGN_OR_RETURN(const CommWorkPtr work, comm_.Barrier());
    return work->Wait({});
  }

  Result<std::vector<RankTimes>> Run() override {
    MSRT_RETURN_IF_ERROR(Barrier());
    MSRT_ASSIGN_OR_RETURN(const RankReport report, session_->Run(NoIo(), {}));
    const RankTimes mine = TimesOf(report);
    const auto ranks = static_cast<size_t>(comm_.size());
    std::vector<RankTimes> times(ranks);
    const std::vector<size_t> bytes(ranks, sizeof mine);
    MSRT_ASSIGN_OR_RETURN(const CommWorkPtr work, comm_.AllGather(&mine, times.data(), bytes));
    MSRT_RETURN_IF_ERROR(work->Wait({}));
    return times;
  }

 private:
  Communicator& comm_;
  std::unique_ptr<RankSession> session_;
};

double Slowest(const std::vector<RankTimes>& times) {
  double most = 0;
  for (const RankTimes& t : times) most = std::max(most, t.seconds);
  return most;
}

constexpr int64_t kMinJudgedSize = 1024;
constexpr double kMinSpeed = 0.95, kMaxExposed = 0.05;

Status Judge(double speed, double exposed) {
  if (speed < kMinSpeed)
    return IoError("limit missed: speed ", speed, " of one rank is less than ", kMinSpeed);
  if (exposed > kMaxExposed)
    return IoError("limit missed: exposed halo time is ", exposed * 100, " %, more than ",
                   kMaxExposed * 100, " %");
  return OkStatus();
}

struct Task {
  std::string network;
  int64_t size = 0;
  int rounds = 0;
  RankOptions split, whole;
};

// The times of one rank alone and of all in turn.
struct Rounds {
  std::vector<double> ratios, exposed, one_seconds, many_seconds;
  std::vector<RankTimes> last;

  void Add(double one, std::vector<RankTimes> many) {
    const double seconds = Slowest(many);
    one_seconds.push_back(one), many_seconds.push_back(seconds), ratios.push_back(one / seconds);
    double most = 0;
    for (const RankTimes& t : many)
      most = std::max(most, static_cast<double>(t.exchanges.exposed_nanos) * 1e-9 / t.seconds);
    exposed.push_back(most);
    last = std::move(many);
  }

  Status Finish(const Task& task, const std::string& engine) const {
    const auto size = static_cast<long long>(task.size);
    std::printf(
        "%s %lldx%lld, engine %s: 1 rank, %zu threads %.3f s; %zu ranks, 1 thread %.3f s; "
        "speed %.3f\n",
        task.network.c_str(), size, size, engine.c_str(), last.size(), Median(one_seconds),
        last.size(), Median(many_seconds), Median(ratios));
    for (size_t r = 0; r < last.size(); ++r) {
      const ExchangeTotals& t = last[r].exchanges;
      std::printf(
          "  rank %zu: %lld exchanges, %lld messages, %.2f MiB sent, %.1f ms in flight, "
          "%.1f ms exposed of %.1f ms, %.1f MiB of memory\n",
          r, static_cast<long long>(t.exchanges), static_cast<long long>(t.messages_sent),
          static_cast<double>(t.bytes_sent) / 1048576, static_cast<double>(t.nanos) * 1e-6,
          static_cast<double>(t.exposed_nanos) * 1e-6, last[r].seconds * 1e3,
          static_cast<double>(last[r].memory_bytes) / 1048576);
    }
    std::printf("  exposed, median of the worst rank: %.1f %%\n", Median(exposed) * 100);
    return task.size < kMinJudgedSize ? OkStatus() : Judge(Median(ratios), Median(exposed));
  }
};

// `world`: all ranks, if they are processes.
Status Measure(Task task, Communicator* world) {
  MSRT_ASSIGN_OR_RETURN(const Module module,
                        zoo::Build(task.network, {.batch = 1, .image = task.size}));
  const Graph& graph = module.main();
  const Dims image = graph.value(graph.inputs[0]).type.dims;
  task.split.compile.place.exact = task.whole.compile.place.exact = true;
  task.whole.split.parts = {1};
  MSRT_ASSIGN_OR_RETURN(const int ranks, RanksOf(task.split.split));
  if (world != nullptr && world->size() != ranks)
    return InvalidArgument(ranks, " parts need as many ranks, not ", world->size());
  ThreadRanks one, threads;
  std::unique_ptr<ProcessRanks> processes;
  const bool is_first = world == nullptr || world->rank() == 0;
  if (is_first) MSRT_RETURN_IF_ERROR(one.Make(module, image, task.whole, ranks));
  if (world != nullptr) {
    processes = std::make_unique<ProcessRanks>(world);
    MSRT_RETURN_IF_ERROR(processes->Make(module, image, task.split));
  } else {
    MSRT_RETURN_IF_ERROR(threads.Make(module, image, task.split, 1));
  }
  Ranks& many = processes ? static_cast<Ranks&>(*processes) : threads;
  Rounds rounds;
  for (int i = 0; i < task.rounds; ++i) {
    double alone = 0;
    if (is_first) {
      MSRT_ASSIGN_OR_RETURN(const std::vector<RankTimes> times, one.Run());
      alone = Slowest(times);
    }
    MSRT_ASSIGN_OR_RETURN(std::vector<RankTimes> times, many.Run());
    rounds.Add(alone, std::move(times));
  }
  if (!is_first) return OkStatus();
  return rounds.Finish(task, world == nullptr ? "threads" : world->engine());
}

Status Run(Task task) {
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<Job> job, Job::FromEnvironment());
  if (job->size() == 1) return Measure(std::move(task), nullptr);
  MSRT_ASSIGN_OR_RETURN(const auto world, MakeJobCommunicator(job.get()));
  const Status status = Measure(std::move(task), world.get());
  if (!status.ok()) world->Abort(status);
  return status;
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) {
  const auto number = [&](int i, int otherwise) { return argc > i ? atoi(argv[i]) : otherwise; };
  msrt::testing::Task task;
  task.network = argc > 1 ? argv[1] : "unet";
  task.size = number(2, 256);
  task.rounds = number(3, 3);
  task.split.split.parts = {number(4, 2), number(5, 1)};
  const msrt::Status status = msrt::testing::Run(std::move(task));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

// One rank with as many threads as ranks, against ranks with one thread each, in turn: the speed of
// a split, and the time for which halos are waited for.
//   split_bench [network] [image] [rounds] [rows] [columns]
// With images from 1024 on, exits with 1 if the split has less than 0.95 of the speed of one rank,
// or waits for halos for more than 5 % of its time; smaller ones measure the start of threads.
// Needs an idle machine.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

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

// All ranks of a split, each with its session.
struct Ranks {
  std::vector<std::unique_ptr<Communicator>> comms;
  std::vector<std::unique_ptr<RankSession>> sessions;
  std::vector<RankReport> reports;

  Status Make(const Module& module, const Dims& image, const RankOptions& options, int threads) {
    MSRT_ASSIGN_OR_RETURN(const int ranks, RanksOf(options.split));
    MSRT_ASSIGN_OR_RETURN(comms, MakeThreadCommunicators(ranks));
    for (auto& comm : comms) {
      MSRT_ASSIGN_OR_RETURN(auto session, RankSession::Create(WithThreads(threads), module,
                                                              {&image, 1}, options, comm.get()));
      sessions.push_back(std::move(session));
    }
    reports.resize(sessions.size());
    return Run().status();  // allocates
  }

  // Returns the seconds of the slowest rank.
  Result<double> Run() {
    std::vector<Status> statuses(sessions.size());
    std::vector<std::thread> threads;
    for (size_t r = 0; r < sessions.size(); ++r) {
      threads.emplace_back([&, r] {
        auto report = sessions[r]->Run(NoIo(), {});
        statuses[r] = report.status();
        if (report.ok()) reports[r] = *report;
      });
    }
    for (std::thread& t : threads) t.join();
    double most = 0;
    for (size_t r = 0; r < sessions.size(); ++r) {
      MSRT_RETURN_IF_ERROR(std::move(statuses[r]));
      most = std::max(most, reports[r].seconds);
    }
    return most;
  }
};

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

Status Measure(const char* network, int64_t size, int rounds, const std::vector<int>& parts) {
  MSRT_ASSIGN_OR_RETURN(const Module module, zoo::Build(network, {.batch = 1, .image = size}));
  const Graph& graph = module.main();
  const Dims image = graph.value(graph.inputs[0]).type.dims;
  RankOptions split, whole;
  split.compile.place.exact = whole.compile.place.exact = true;
  split.split.parts = parts;
  whole.split.parts = {1};
  Ranks one, many;
  MSRT_ASSIGN_OR_RETURN(const int ranks, RanksOf(split.split));
  MSRT_RETURN_IF_ERROR(one.Make(module, image, whole, ranks));
  MSRT_RETURN_IF_ERROR(many.Make(module, image, split, 1));
  std::vector<double> ratios, exposed, one_seconds, many_seconds;
  for (int i = 0; i < rounds; ++i) {
    MSRT_ASSIGN_OR_RETURN(const double a, one.Run());
    MSRT_ASSIGN_OR_RETURN(const double b, many.Run());
    one_seconds.push_back(a), many_seconds.push_back(b), ratios.push_back(a / b);
    double most = 0;
    for (const RankReport& r : many.reports)
      most = std::max(most, static_cast<double>(r.exchanges.exposed_nanos) * 1e-9 / r.seconds);
    exposed.push_back(most);
  }
  std::printf("%s %lldx%lld: 1 rank, %d threads %.3f s; %d ranks, 1 thread %.3f s; speed %.3f\n",
              network, static_cast<long long>(size), static_cast<long long>(size), ranks,
              Median(one_seconds), ranks, Median(many_seconds), Median(ratios));
  for (size_t r = 0; r < many.reports.size(); ++r) {
    const RankReport& report = many.reports[r];
    const ExchangeTotals& t = report.exchanges;
    std::printf(
        "  rank %zu: %lld exchanges, %lld messages, %.2f MiB sent, %.1f ms in flight, "
        "%.1f ms exposed of %.1f ms, %.1f MiB of memory\n",
        r, static_cast<long long>(t.exchanges), static_cast<long long>(t.messages_sent),
        static_cast<double>(t.bytes_sent) / 1048576, static_cast<double>(t.nanos) * 1e-6,
        static_cast<double>(t.exposed_nanos) * 1e-6, report.seconds * 1e3,
        static_cast<double>(report.memory_bytes) / 1048576);
  }
  std::printf("  exposed, median of the worst rank: %.1f %%\n", Median(exposed) * 100);
  return size < kMinJudgedSize ? OkStatus() : Judge(Median(ratios), Median(exposed));
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) {
  const auto number = [&](int i, int otherwise) { return argc > i ? atoi(argv[i]) : otherwise; };
  const char* network = argc > 1 ? argv[1] : "unet";
  const msrt::Status status =
      msrt::testing::Measure(network, number(2, 256), number(3, 3), {number(4, 2), number(5, 1)});
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

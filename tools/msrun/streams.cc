// Throughput: sessions that share a model, each on its own thread.
#include <atomic>
#include <thread>

#include "core/base/catch_as_status.h"
#include "tools/msrun/bench.h"

namespace msrt {
namespace {

struct BenchStream {
  std::unique_ptr<Session> session;
  std::vector<double> millis;
  Status status;
};

// Runs until the time is over, at least once.
void RunStream(double seconds, const StopWatch& watch, std::atomic<bool>* failed,
               BenchStream* stream) {
  const auto run = [&]() -> Status {
    do {
      const StopWatch one;
      MSRT_RETURN_IF_ERROR(stream->session->Run({}));
      stream->millis.push_back(one.Millis());
    } while (watch.Millis() < seconds * 1000 && !failed->load());
    return OkStatus();
  };
  Status thrown = CatchAsStatus([&] { stream->status = run(); });
  if (!thrown.ok()) stream->status = std::move(thrown);
  if (!stream->status.ok()) *failed = true;
}

}  // namespace

Status MeasureStreams(const Arguments& a, Workload& w, Measurement* m) {
  std::vector<BenchStream> streams(static_cast<size_t>(a.streams));
  for (BenchStream& stream : streams) {
    MSRT_ASSIGN_OR_RETURN(stream.session, w.session->Clone());
    for (size_t i = 0; i < w.inputs.size(); ++i)
      MSRT_RETURN_IF_ERROR(stream.session->SetInput(i, w.inputs[i]));
    MSRT_RETURN_IF_ERROR(stream.session->Run({}));  // allocates its memory
  }
  std::atomic<bool> failed{false};
  const StopWatch watch;
  {
    std::vector<std::jthread> threads;
    for (BenchStream& stream : streams)
      threads.emplace_back([&] { RunStream(a.seconds, watch, &failed, &stream); });
  }
  const double total = watch.Millis();
  for (BenchStream& stream : streams) {
    MSRT_RETURN_IF_ERROR(stream.status);
    m->millis.insert(m->millis.end(), stream.millis.begin(), stream.millis.end());
  }
  m->runs_per_second = 1000 * static_cast<double>(m->millis.size()) / total;
  return OkStatus();
}

}  // namespace msrt

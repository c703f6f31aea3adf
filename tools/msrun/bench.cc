#include "tools/msrun/bench.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/base/machine.h"

namespace msrt {
namespace {

// Runs with profiling, after the timed runs, so that reading the clock between steps does not
// affect the latency.
Status Profile(Workload& w, Measurement* m) {
  constexpr int kRuns = 5;
  for (int run = 0; run < kRuns; ++run) {
    MSRT_RETURN_IF_ERROR(w.session->Run({.profile = true}));
    m->profiles.push_back(w.session->profile());
  }
  // If a delegate failed meanwhile, the earlier profiles are of another program.
  const auto last = m->profiles.back().placed;
  std::erase_if(m->profiles, [&](const RunProfile& profile) { return profile.placed != last; });
  AddUpSteps(m);
  return OkStatus();
}

}  // namespace

Progress::Progress(bool quiet) : terminal_(!quiet && isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (terminal_) std::fprintf(stderr, "\r\033[K");
}

void Progress::Show(const char* what, double part) {
  if (!terminal_ || watch_.Millis() - last_ <= 100) return;
  last_ = watch_.Millis();
  std::fprintf(stderr, "\r\033[K%s %3.0f %%", what, std::min(part, 1.0) * 100);
  std::fflush(stderr);
}

double Percentile(const std::vector<double>& sorted, double p) {
  if (sorted.empty()) return 0;
  const double at = p / 100 * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const double fraction = at - static_cast<double>(low);
  return low + 1 < sorted.size() ? sorted[low] * (1 - fraction) + sorted[low + 1] * fraction
                                 : sorted[low];
}

namespace {

Status MeasureLatency(const Arguments& a, Workload& w, Progress* progress, Measurement* m) {
  const StopWatch all;
  double total = 0;
  do {
    progress->Show("running", all.Millis() / (a.seconds * 1000));
    const StopWatch one;
    MSRT_RETURN_IF_ERROR(w.session->Run({}));
    m->millis.push_back(one.Millis());
    total += m->millis.back();
  } while (all.Millis() < a.seconds * 1000 || m->millis.size() < 3);
  m->runs_per_second = 1000 * static_cast<double>(m->millis.size()) / total;
  return OkStatus();
}

}  // namespace

Result<Measurement> Measure(const Arguments& a, Workload& w) {
  Measurement m;
  Progress progress(a.quiet);
  const StopWatch first;
  MSRT_RETURN_IF_ERROR(w.session->Run({}));
  m.first_run_millis = first.Millis();
  for (int i = 0; i < a.warmup; ++i) {
    progress.Show("warm-up", static_cast<double>(i) / a.warmup);
    MSRT_RETURN_IF_ERROR(w.session->Run({}));
  }
  MSRT_RETURN_IF_ERROR(a.streams > 1 ? MeasureStreams(a, w, &m)
                                     : MeasureLatency(a, w, &progress, &m));
  m.memory = w.session->memory();
  MSRT_ASSIGN_OR_RETURN(m.peak_rss_bytes,
                        PeakResidentBytes());  // before measuring the machine allocates memory
  MSRT_RETURN_IF_ERROR(Profile(w, &m));
  MSRT_ASSIGN_OR_RETURN(const Machine peak, MeasureMachine(*w.model->environment->parallel));
  m.peak_gflops = peak.flops_per_second * 1e-9;
  m.peak_gbytes_per_second = peak.bytes_per_second * 1e-9;
  return m;
}

}  // namespace msrt

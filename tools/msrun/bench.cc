#include "tools/msrun/bench.h"
#include "tools/tensors/made_input.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "core/base/machine.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

double BytesOfStep(const BoundStep& s) {
  double bytes = 0;
  for (const TensorView& v : s.views) {
    if (v.dtype != DType::kNone) bytes += static_cast<double>(BytesIn(v.layout, v.dtype, v.dims));
  }
  return bytes;
}

StepTotal DescribeStep(const Program& program, const Binding& binding, const BoundStep& s) {
  const Step& step = program.steps[s.step];
  const Node& node = program.graph->nodes[step.node];
  StepTotal t;
  t.name = node.name;
  t.op = step.kind == StepKind::kKernel ? OpName(node) : step.kind == StepKind::kConvert ? step.algorithm : "state";
  t.delegate = step.kind == StepKind::kKernel ? std::string(step.delegate) : "host";
  t.algorithm = step.algorithm;
  const TensorView& shown = s.views.size() > s.input_count ? s.views[s.input_count] : s.views[0];
  t.layout = LayoutName(shown.layout);
  t.shape = ShapeText(shown.dims);
  t.gbytes_per_second = BytesOfStep(s);
  if (step.kind == StepKind::kKernel && node.def != nullptr && node.def->cost != nullptr) {
    t.gflops = node.def->cost(NodeView(node, binding.facts).op()).flops;
  }
  return t;
}

// Profiled runs after the timed ones, so that the clock reads between steps do not touch the latency.
Status Profile(Workload& w, Measurement* m) {
  constexpr int kRuns = 5;
  std::vector<double> millis;
  for (int run = 0; run < kRuns; ++run) {
    MSRT_RETURN_IF_ERROR(w.session->Run({.profile = true}));
    m->traces.push_back(w.session->profile());
  }
  const Program& program = w.session->program();
  const std::shared_ptr<const Binding> binding = w.session->binding();
  // A delegate that fails meanwhile leaves traces of another program.
  std::erase_if(m->traces, [&](const auto& trace) { return trace.empty() || trace[0].placed->program.get() != &program; });
  if (binding->end_step != program.steps.size()) return OkStatus();  // sizes depend on data: the trace has the times
  double total = 0;
  for (size_t i = 0; i < binding->steps.size(); ++i) {
    StepTotal t = DescribeStep(program, *binding, binding->steps[i]);
    for (const auto& trace : m->traces) t.millis += static_cast<double>(trace[i].end_nanos - trace[i].begin_nanos) * 1e-6;
    t.millis /= static_cast<double>(std::max<size_t>(m->traces.size(), 1));
    const double seconds = std::max(t.millis * 1e-3, 1e-9);
    t.gflops = t.gflops * 1e-9 / seconds;
    t.gbytes_per_second = t.gbytes_per_second * 1e-9 / seconds;
    total += t.millis;
    m->steps.push_back(std::move(t));
  }
  for (StepTotal& t : m->steps) t.share = t.millis / total;
  return OkStatus();
}

}  // namespace

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

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
  return low + 1 < sorted.size() ? sorted[low] * (1 - fraction) + sorted[low + 1] * fraction : sorted[low];
}

Result<Measurement> Measure(const Arguments& a, Workload& w) {
  Measurement m;
  Progress progress;
  const StopWatch first;
  MSRT_RETURN_IF_ERROR(w.session->Run({}));
  m.first_run_millis = first.Millis();
  for (int i = 0; i < a.warmup; ++i) {
    progress.Show("warm-up", static_cast<double>(i) / a.warmup);
    MSRT_RETURN_IF_ERROR(w.session->Run({}));
  }
  const StopWatch all;
  do {
    progress.Show("running", all.Millis() / (a.seconds * 1000));
    const StopWatch one;
    MSRT_RETURN_IF_ERROR(w.session->Run({}));
    m.millis.push_back(one.Millis());
  } while (all.Millis() < a.seconds * 1000 || m.millis.size() < 3);
  m.memory = w.session->memory();
  m.gflop = w.session->binding()->flops * 1e-9;
  MSRT_ASSIGN_OR_RETURN(m.peak_rss_bytes, PeakResidentBytes());  // before the yardstick takes memory of its own
  MSRT_RETURN_IF_ERROR(Profile(w, &m));
  MSRT_ASSIGN_OR_RETURN(const Machine peak, MeasureMachine(*w.model->environment->parallel));
  m.peak_gflops = peak.flops_per_second * 1e-9;
  m.peak_gbytes_per_second = peak.bytes_per_second * 1e-9;
  return m;
}

}  // namespace msrt

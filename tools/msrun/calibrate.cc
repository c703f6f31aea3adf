// msrun calibrate: measures the machine's speed and the cost of every candidate and writes a file.
#include <cstdio>

#include "core/base/units.h"
#include "core/run/measure.h"
#include "tools/msrun/bench.h"

namespace msrt {
namespace {

Status WriteTable(const std::string& path, const CostTable& table) {
  const std::string text = table.Print();
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(text))};
  return DefaultIo()->WriteFile(path, pieces);
}

}  // namespace

Status Calibrate(const Arguments& a) {
  MSRT_ASSIGN_OR_RETURN(const Workload w, Prepare(a));
  const Environment& env = *w.model->environment;
  CostTable table;
  if (w.model->options.place.costs != nullptr)
    table = *w.model->options.place.costs;  // costs of --costs are not measured again
  table.origin = CurrentOrigin(env, msrt_version());
  const StopWatch watch;
  MSRT_ASSIGN_OR_RETURN(table.origin.machine, MeasureMachine(*env.parallel));
  const auto say = [&](const char* format, auto... values) {
    if (!a.quiet) std::printf(format, values...);
  };
  say("machine    %.1f GFLOP/s, %.1f GB/s, measured in %s\n",
      table.origin.machine.flops_per_second * 1e-9, table.origin.machine.bytes_per_second * 1e-9,
      SecondsText(watch.Millis() * 1e-3).c_str());
  MeasureOptions options;
  options.budget_seconds = a.seconds;
  MeasureReport report;
  {
    Progress progress(a.quiet);
    options.progress = [&](size_t done, size_t all) {
      progress.Show("measuring", static_cast<double>(done) / static_cast<double>(all));
    };
    report = MeasureCosts(*w.model, options, &table);
  }
  const std::string path = a.costs_file();
  MSRT_RETURN_IF_ERROR(WriteTable(path, table));
  say("measured   %zu candidates in %s; %zu more are like one of them, %zu stay estimates\n",
      report.measured, SecondsText(watch.Millis() * 1e-3).c_str(), report.known, report.failed);
  if (report.nodes_left != 0)
    say("           %zu nodes are left for want of time: give more --seconds\n", report.nodes_left);
  say("written    %s; use it with msrun %s --costs %s\n", path.c_str(), a.model.c_str(),
      path.c_str());
  return OkStatus();
}

}  // namespace msrt

// How msrun shows a measurement.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <numeric>

#include "core/base/units.h"
#include "tools/msrun/bench.h"
#include "tools/msrun/value_files.h"
#include "tools/tensors/made_input.h"

namespace msrt {
namespace {

using Json = nlohmann::json;

std::string Time(double millis) { return SecondsText(millis * 1e-3); }

Json LoadJson(const LoadTimes& t) {
  return {{"map", t.map},     {"verify", t.verify},   {"validate", t.validate}, {"passes", t.passes},
          {"place", t.place}, {"compile", t.compile}, {"prepare", t.prepare}};
}

void PrintSteps(const Measurement& m) {
  std::map<std::string, std::pair<int, double>> by_op;
  for (const StepTotal& s : m.steps) {
    by_op[s.op].first++;
    by_op[s.op].second += s.millis;
  }
  std::vector<std::pair<std::string, std::pair<int, double>>> ops(by_op.begin(), by_op.end());
  std::sort(ops.begin(), ops.end(), [](const auto& x, const auto& y) { return x.second.second > y.second.second; });
  const double total = std::accumulate(m.steps.begin(), m.steps.end(), 0.0, [](double sum, const StepTotal& s) { return sum + s.millis; });
  std::printf("\n%-28s %6s %11s %6s\n", "op", "count", "time", "%");
  for (const auto& [op, n] : ops)
    std::printf("%-28s %6d %11s %6.1f\n", op.c_str(), n.first, Time(n.second).c_str(), 100 * n.second / total);

  std::vector<const StepTotal*> slowest;
  for (const StepTotal& s : m.steps) slowest.push_back(&s);
  std::sort(slowest.begin(), slowest.end(), [](const StepTotal* x, const StepTotal* y) { return x->millis > y->millis; });
  slowest.resize(std::min<size_t>(slowest.size(), 20));
  std::printf("\n%-30s %-16s %-16s %-22s %-14s %10s %5s %8s %7s\n", "slowest steps", "op", "shape", "by", "layout", "time", "%", "GFLOP/s",
              "GB/s");
  for (const StepTotal* s : slowest) {
    std::printf("%-30.30s %-16.16s %-16.16s %-22.22s %-14s %10s %5.1f %8.1f %7.1f\n", s->name.c_str(), s->op.c_str(), s->shape.c_str(),
                StrCat(s->delegate, ":", s->algorithm).c_str(), s->layout.c_str(), Time(s->millis).c_str(), 100 * s->share, s->gflops,
                s->gbytes_per_second);
  }
}

// One line on what limits this run, where something clearly does.
void PrintAdvice(const Workload& w, const Measurement& m, double median, double low) {
  double reference = 0, convert = 0;
  for (const StepTotal& s : m.steps) {
    if (s.delegate == "reference") reference += s.share;
    if (s.op == "convert") convert += s.share;
  }
  if (reference > 0.1) {
    std::printf("note: %.0f %% of the time is in plain loops (reference); --explain says why no faster delegate took them\n",
                100 * reference);
  } else if (convert > 0.1) {
    std::printf("note: %.0f %% of the time goes into layout changes\n", 100 * convert);
  } else if (median > 1.3 * low) {
    std::printf("note: the median is %.1f times the minimum: something else is using this machine\n", median / low);
  } else if (static_cast<double>(w.model->entries[0]->current()->program->steps.size()) * 2e-3 > median) {
    std::printf("note: most steps take only microseconds; a larger batch would use the machine better\n");
  }
}

Result<Json> ReadJson(const std::string& path) {
  std::ifstream file(path);
  if (!file) return NotFound("file '", path, "' cannot be opened");
  Json j = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (j.is_discarded() || !j.contains("latency_ms")) return InvalidArgument("file '", path, "' is not a report of msrun");
  return j;
}

}  // namespace

Json ToJson(const Arguments& a, const Workload& w, const Measurement& m) {
  std::vector<double> sorted = m.millis;
  std::sort(sorted.begin(), sorted.end());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  double variance = 0;
  for (double x : sorted) variance += (x - mean) * (x - mean) / static_cast<double>(sorted.size());
  Json inputs = Json::array(), steps = Json::array();
  for (size_t i = 0; i < w.inputs.size(); ++i) {
    const Value& v = w.session->graph().value(w.session->graph().inputs[i]);
    const TensorView& t = w.inputs[i].tensor;
    const bool tensor = w.inputs[i].kind == TypeKind::kTensor;
    inputs.push_back({{"name", v.name},
                      {"type", tensor ? std::string(DTypeName(t.dtype)) : StrCat(v.type)},
                      {"dims", tensor ? Json(std::vector<int64_t>(t.dims.begin(), t.dims.end())) : Json(nullptr)}});
  }
  for (const StepTotal& s : m.steps) {
    steps.push_back({{"name", s.name},
                     {"op", s.op},
                     {"delegate", s.delegate},
                     {"algorithm", s.algorithm},
                     {"layout", s.layout},
                     {"shape", s.shape},
                     {"ms", s.millis},
                     {"share", s.share},
                     {"gflops", s.gflops},
                     {"gbytes_per_second", s.gbytes_per_second}});
  }
  const double median = Percentile(sorted, 50);
  return {{"model", a.model},
          {"threads", w.model->parallel->threads()},
          {"inputs", inputs},
          {"load_ms", w.load_millis},
          {"load_parts_ms", LoadJson(w.model->times)},
          {"first_run_ms", m.first_run_millis},
          {"runs", sorted.size()},
          {"latency_ms",
           {{"min", sorted.front()},
            {"median", median},
            {"mean", mean},
            {"p90", Percentile(sorted, 90)},
            {"p99", Percentile(sorted, 99)},
            {"std", std::sqrt(variance)}}},
          {"throughput_per_second", 1000 / mean},
          {"peak_rss_bytes", m.peak_rss_bytes},
          {"arena_bytes", m.memory.arena_bytes},
          {"arena_lower_bound_bytes", m.memory.arena_lower_bound_bytes},
          {"scratch_bytes", m.memory.scratch_bytes},
          {"packed_bytes", w.model->entries[0]->current()->program->packed_bytes},
          {"packed_in_file_bytes", w.model->forms == nullptr ? size_t{0} : w.model->forms->found_bytes()},
          {"gflop", m.gflop},
          {"gflops", m.gflop / (median * 1e-3)},
          {"peak_gflops", m.peak_gflops},
          {"peak_gbytes_per_second", m.peak_gbytes_per_second},
          {"steps", steps}};
}

void PrintReport(const Arguments& a, const Workload& w, const Measurement& m) {
  std::vector<double> sorted = m.millis;
  std::sort(sorted.begin(), sorted.end());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  const double median = Percentile(sorted, 50);
  const Program& program = w.session->program();
  std::printf("model      %s: %zu nodes, %zu steps, %d threads\n", a.model.c_str(), program.graph->nodes.size(), program.steps.size(),
              w.model->parallel->threads());
  for (size_t i = 0; i < w.inputs.size(); ++i) {
    std::printf("input      %s %s\n", w.session->graph().value(w.session->graph().inputs[i]).name.c_str(), ValueText(w.inputs[i]).c_str());
  }
  const LoadTimes& t = w.model->times;
  std::printf("load       %s = map %.2f + verify %.2f + validate %.2f + passes %.2f + place %.2f + compile and pack %.2f + prepare %.2f\n",
              Time(w.load_millis).c_str(), t.map, t.verify, t.validate, t.passes, t.place, t.compile, t.prepare);
  std::printf("first run  %s\n", Time(m.first_run_millis).c_str());
  std::printf("latency    min %s, median %s, mean %s, p90 %s, p99 %s over %zu runs\n", Time(sorted.front()).c_str(), Time(median).c_str(),
              Time(mean).c_str(), Time(Percentile(sorted, 90)).c_str(), Time(Percentile(sorted, 99)).c_str(), sorted.size());
  std::printf("throughput %.1f runs/s\n", 1000 / mean);
  std::printf("compute    %.3f GFLOP a run, %.1f GFLOP/s = %.0f %% of the measured peak of %.0f GFLOP/s\n", m.gflop,
              m.gflop / (median * 1e-3), 100 * m.gflop / (median * 1e-3) / m.peak_gflops, m.peak_gflops);
  std::printf("memory     peak %s; arena %s (%.3f of its lower bound), scratch %s, packed weights %s\n",
              BytesText(m.peak_rss_bytes).c_str(), BytesText(static_cast<double>(m.memory.arena_bytes)).c_str(),
              m.memory.arena_lower_bound_bytes == 0
                  ? 1.0
                  : static_cast<double>(m.memory.arena_bytes) / static_cast<double>(m.memory.arena_lower_bound_bytes),
              BytesText(static_cast<double>(m.memory.scratch_bytes)).c_str(), BytesText(static_cast<double>(program.packed_bytes)).c_str());
  if (a.per_op && !m.steps.empty()) PrintSteps(m);
  PrintAdvice(w, m, median, sorted.front());
}

Status WriteTrace(const std::string& path, const Measurement& m) {
  Json events = Json::array();
  for (const auto& trace : m.traces) {
    for (const StepTime& t : trace) {
      const Program& program = *t.placed->program;
      const Step& step = program.steps[t.step];
      const Node& node = program.graph->nodes[step.node];
      events.push_back({{"name", step.kind == StepKind::kKernel ? OpName(node) : step.algorithm},
                        {"cat", std::string(step.delegate)},
                        {"ph", "X"},
                        {"pid", 1},
                        {"tid", 1},
                        {"ts", static_cast<double>(t.begin_nanos - m.traces[0][0].begin_nanos) * 1e-3},
                        {"dur", static_cast<double>(t.end_nanos - t.begin_nanos) * 1e-3},
                        {"args", {{"node", node.name}, {"algorithm", step.algorithm}}}});
    }
  }
  const std::string text = Json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump();
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(text))};
  return DefaultIo()->WriteFile(path, pieces);
}

Status CompareReports(const std::string& path_a, const std::string& path_b) {
  MSRT_ASSIGN_OR_RETURN(const Json a, ReadJson(path_a));
  MSRT_ASSIGN_OR_RETURN(const Json b, ReadJson(path_b));
  const auto row = [&](const char* what, double x, double y, bool time) {
    std::printf("%-14s %14s %14s %8.3f\n", what, time ? Time(x).c_str() : BytesText(x).c_str(),
                time ? Time(y).c_str() : BytesText(y).c_str(), x > 0 ? y / x : 0);
  };
  std::printf("%-14s %14s %14s %8s\n", "", "A", "B", "B / A");
  row("load", a.value("load_ms", 0.0), b.value("load_ms", 0.0), true);
  row("first run", a.value("first_run_ms", 0.0), b.value("first_run_ms", 0.0), true);
  for (const char* what : {"min", "median", "mean", "p90", "p99"})
    row(what, a["latency_ms"].value(what, 0.0), b["latency_ms"].value(what, 0.0), true);
  row("peak memory", a.value("peak_rss_bytes", 0.0), b.value("peak_rss_bytes", 0.0), false);
  row("arena", a.value("arena_bytes", 0.0), b.value("arena_bytes", 0.0), false);
  std::map<std::string, std::pair<double, double>> steps;
  for (const Json& s : a.value("steps", Json::array())) steps[s.value("name", "") + " " + s.value("op", "")].first += s.value("ms", 0.0);
  for (const Json& s : b.value("steps", Json::array())) steps[s.value("name", "") + " " + s.value("op", "")].second += s.value("ms", 0.0);
  std::vector<std::pair<std::string, std::pair<double, double>>> rows(steps.begin(), steps.end());
  std::sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) {
    return std::abs(x.second.second - x.second.first) > std::abs(y.second.second - y.second.first);
  });
  rows.resize(std::min<size_t>(rows.size(), 10));
  std::printf("\nsteps that differ most\n");
  for (const auto& [name, t] : rows)
    std::printf("%-46.46s %11s %11s %+9.3f ms\n", name.c_str(), Time(t.first).c_str(), Time(t.second).c_str(), t.second - t.first);
  return OkStatus();
}

}  // namespace msrt

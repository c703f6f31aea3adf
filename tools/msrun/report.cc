// Prints a measurement as text and JSON, and compares two reports.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <numeric>

#include "core/api/version.h"
#include "core/base/text_table.h"
#include "core/base/units.h"
#include "core/base/utf8.h"
#include "tools/msrun/bench.h"
#include "tools/msrun/value_files.h"
#include "tools/tensors/made_input.h"

namespace msrt {
namespace {

using Json = nlohmann::json;

std::string Time(double millis) { return SecondsText(millis * 1e-3); }

Json LoadJson(const LoadTimes& t) {
  return {{"map", t.map},        {"verify", t.verify}, {"validate", t.validate},
          {"passes", t.passes},  {"place", t.place},   {"compile", t.compile},
          {"prepare", t.prepare}};
}

std::string Fixed(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// Formats how often a run executes a step; not an integer if a branch is not taken in every run.
std::string CountText(double count) {
  return Fixed(count, std::abs(count - std::round(count)) < 0.05 ? 0 : 1);
}

// Returns the batch size of one run: the first dim of every input of rank 2 or more if they agree,
// else 1.
int64_t BatchOf(const Workload& w) {
  int64_t batch = 0;
  for (const RunValue& input : w.inputs) {
    if (input.kind != TypeKind::kTensor || input.tensor.dims.rank() < 2) continue;
    if (batch != 0 && input.tensor.dims[0] != batch) return 1;
    batch = input.tensor.dims[0];
  }
  return std::max<int64_t>(batch, 1);
}

void PrintOps(const Measurement& m, double total) {
  struct Sum {
    double count = 0, millis = 0;
  };
  std::map<std::string, Sum> by_op;
  for (const StepTotal& s : m.steps) {
    by_op[s.op].count += s.count;
    by_op[s.op].millis += s.millis;
  }
  std::vector<std::pair<std::string, Sum>> ops(by_op.begin(), by_op.end());
  std::sort(ops.begin(), ops.end(),
            [](const auto& x, const auto& y) { return x.second.millis > y.second.millis; });
  ops.push_back({"between steps", {0, m.between_steps_millis}});
  std::vector<TextRow> rows = {{{"op", "count", "time", "%"}, {}}};
  for (const auto& [op, sum] : ops) {
    rows.push_back({{Printable(op, 32), sum.count == 0 ? "" : CountText(sum.count),
                     Time(sum.millis), Fixed(100 * sum.millis / total, 1)},
                    {}});
  }
  std::string table = "\n";
  AppendTable(&table, rows, "lrrr");
  std::fputs(table.c_str(), stdout);
}

void PrintSteps(const Measurement& m) {
  const double total =
      std::accumulate(m.steps.begin(), m.steps.end(), m.between_steps_millis,
                      [](double sum, const StepTotal& s) { return sum + s.millis; });
  PrintOps(m, total);
  std::vector<const StepTotal*> slowest;
  for (const StepTotal& s : m.steps) slowest.push_back(&s);
  std::sort(slowest.begin(), slowest.end(),
            [](const StepTotal* x, const StepTotal* y) { return x->millis > y->millis; });
  slowest.resize(std::min<size_t>(slowest.size(), 20));
  std::vector<TextRow> rows = {
      {{"slowest steps", "op", "shape", "by", "layout", "count", "time", "%", "GFLOP/s", "GB/s"},
       {}}};
  for (const StepTotal* s : slowest) {
    rows.push_back(
        {{PrintableEnd(s->graph.empty() ? s->name : StrCat(s->graph, ": ", s->name), 44),
          Printable(s->op, 20), s->shape,
          Printable(s->algorithm.empty() ? s->delegate : StrCat(s->delegate, ":", s->algorithm),
                    24),
          s->layout, CountText(s->count), Time(s->millis), Fixed(100 * s->share, 1),
          Fixed(s->gflops, 1), Fixed(s->gbytes_per_second, 1)},
         {}});
  }
  std::string table = "\n";
  AppendTable(&table, rows, "lllllrrrrr");
  std::fputs(table.c_str(), stdout);
}

// Prints one line on what limits this run, if something clearly does.
void PrintAdvice(const Workload& w, const Measurement& m, double median, double low) {
  double reference = 0, convert = 0;
  for (const StepTotal& s : m.steps) {
    if (s.delegate == "reference") reference += s.share;
    if (s.op == "convert") convert += s.share;
  }
  if (reference > 0.1) {
    std::printf(
        "note: %.0f %% of the time is in plain loops (reference); --explain says why no faster "
        "delegate took them\n",
        100 * reference);
  } else if (convert > 0.1) {
    std::printf("note: %.0f %% of the time goes into layout changes\n", 100 * convert);
  } else if (median > 1.3 * low) {
    std::printf(
        "note: the median is %.1f times the minimum: something else is using this machine\n",
        median / low);
  } else if (static_cast<double>(w.model->entries[0]->current()->program->steps.size()) * 2e-3 >
             median) {
    std::printf(
        "note: most steps take only microseconds; a larger batch would use the machine better\n");
  }
}

Result<Json> ReadJson(const std::string& path) {
  std::ifstream file(path);
  if (!file) return NotFound("file '", path, "' cannot be opened");
  Json j = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (j.is_discarded() || !j.contains("latency_ms"))
    return InvalidArgument("file '", path, "' is not a report of msrun");
  return j;
}

}  // namespace

Json ToJson(const Arguments& a, const Workload& w, const Measurement& m) {
  std::vector<double> sorted = m.millis;
  std::sort(sorted.begin(), sorted.end());
  const double mean =
      std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  double variance = 0;
  for (double x : sorted) variance += (x - mean) * (x - mean) / static_cast<double>(sorted.size());
  Json inputs = Json::array(), steps = Json::array();
  for (size_t i = 0; i < w.inputs.size(); ++i) {
    const Value& v = w.session->graph().value(w.session->graph().inputs[i]);
    const TensorView& t = w.inputs[i].tensor;
    const bool tensor = w.inputs[i].kind == TypeKind::kTensor;
    inputs.push_back({{"name", v.name},
                      {"type", tensor ? std::string(DTypeName(t.dtype)) : StrCat(v.type)},
                      {"dims", tensor ? Json(std::vector<int64_t>(t.dims.begin(), t.dims.end()))
                                      : Json(nullptr)}});
  }
  for (const StepTotal& s : m.steps) {
    steps.push_back({{"name", s.name},
                     {"graph", s.graph},
                     {"op", s.op},
                     {"count", s.count},
                     {"delegate", s.delegate},
                     {"algorithm", s.algorithm},
                     {"arithmetic", s.arithmetic},
                     {"layout", s.layout},
                     {"shape", s.shape},
                     {"ms", s.millis},
                     {"share", s.share},
                     {"gflops", s.gflops},
                     {"gbytes_per_second", s.gbytes_per_second}});
  }
  const double median = Percentile(sorted, 50);
  Json changes = Json::array(), activations;
  for (const auto& [name, effect] : w.changes)
    changes.push_back({{"name", name}, {"effect", effect}});
  if (w.activations) {
    activations = {{"kept_bytes", w.activations->kept_bytes},
                   {"planned_bytes", w.activations->planned_bytes},
                   {"recomputed", w.activations->recomputed}};
  }
  return {{"model", a.model},
          {"changes", changes},
          {"activations", activations},
          {"build", Json::parse(BuildInfoJson())},
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
          {"streams", a.streams},
          {"throughput_per_second", m.runs_per_second},
          {"items_per_second", m.runs_per_second * static_cast<double>(BatchOf(w))},
          {"peak_rss_bytes", m.peak_rss_bytes},
          {"arena_bytes", m.memory.arena_bytes},
          {"arena_lower_bound_bytes", m.memory.arena_lower_bound_bytes},
          {"scratch_bytes", m.memory.scratch_bytes},
          {"packed_bytes", w.model->entries[0]->current()->program->packed_bytes},
          {"packed_in_file_bytes",
           w.model->forms == nullptr ? size_t{0} : w.model->forms->found_bytes()},
          {"gflop", m.gflop},
          {"gflops", m.gflop / (median * 1e-3)},
          {"peak_gflops", m.peak_gflops},
          {"peak_gbytes_per_second", m.peak_gbytes_per_second},
          {"between_steps_ms", m.between_steps_millis},
          {"steps", steps}};
}

void PrintReport(const Arguments& a, const Workload& w, const Measurement& m) {
  std::vector<double> sorted = m.millis;
  std::sort(sorted.begin(), sorted.end());
  const double mean =
      std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  const double median = Percentile(sorted, 50);
  const Program& program = w.session->program();
  std::printf("model      %s: %zu nodes, %zu steps, %d threads\n", a.model.c_str(),
              program.graph->nodes.size(), program.steps.size(), w.model->parallel->threads());
  for (size_t i = 0; i < w.inputs.size(); ++i) {
    std::printf("input      %s %s\n",
                w.session->graph().value(w.session->graph().inputs[i]).name.c_str(),
                ValueText(w.inputs[i]).c_str());
  }
  PrintChanges(w.changes);
  const LoadTimes& t = w.model->times;
  std::printf(
      "load       %s = map %.2f + verify %.2f + validate %.2f + passes %.2f + place %.2f + compile "
      "and pack %.2f + prepare %.2f\n",
      Time(w.load_millis).c_str(), t.map, t.verify, t.validate, t.passes, t.place, t.compile,
      t.prepare);
  std::printf("first run  %s\n", Time(m.first_run_millis).c_str());
  std::printf("latency    min %s, median %s, mean %s, p90 %s, p99 %s over %zu runs\n",
              Time(sorted.front()).c_str(), Time(median).c_str(), Time(mean).c_str(),
              Time(Percentile(sorted, 90)).c_str(), Time(Percentile(sorted, 99)).c_str(),
              sorted.size());
  std::printf("throughput %.1f runs/s", m.runs_per_second);
  if (const int64_t batch = BatchOf(w); batch > 1)
    std::printf(" = %.1f items/s", m.runs_per_second * static_cast<double>(batch));
  if (a.streams > 1) std::printf(" by %d streams of one thread each", a.streams);
  std::printf("\n");
  std::printf(
      "compute    %.3f GFLOP a run, %.1f GFLOP/s = %.0f %% of the measured peak of %.0f GFLOP/s\n",
      m.gflop, m.gflop / (median * 1e-3), 100 * m.gflop / (median * 1e-3) / m.peak_gflops,
      m.peak_gflops);
  std::printf(
      "memory     peak %s; arena %s (%.3f of its lower bound), scratch %s, packed weights %s\n",
      BytesText(m.peak_rss_bytes).c_str(),
      BytesText(static_cast<double>(m.memory.arena_bytes)).c_str(),
      m.memory.arena_lower_bound_bytes == 0
          ? 1.0
          : static_cast<double>(m.memory.arena_bytes) /
                static_cast<double>(m.memory.arena_lower_bound_bytes),
      BytesText(static_cast<double>(m.memory.scratch_bytes)).c_str(),
      BytesText(static_cast<double>(program.packed_bytes)).c_str());
  if (a.per_op && !m.steps.empty()) PrintSteps(m);
  PrintAdvice(w, m, median, sorted.front());
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
  for (const Json& s : a.value("steps", Json::array()))
    steps[s.value("name", "") + " " + s.value("op", "")].first += s.value("ms", 0.0);
  for (const Json& s : b.value("steps", Json::array()))
    steps[s.value("name", "") + " " + s.value("op", "")].second += s.value("ms", 0.0);
  std::vector<std::pair<std::string, std::pair<double, double>>> rows(steps.begin(), steps.end());
  std::sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) {
    return std::abs(x.second.second - x.second.first) > std::abs(y.second.second - y.second.first);
  });
  rows.resize(std::min<size_t>(rows.size(), 10));
  std::printf("\nsteps that differ most\n");
  for (const auto& [name, t] : rows)
    std::printf("%-46.46s %11s %11s %+9.3f ms\n", name.c_str(), Time(t.first).c_str(),
                Time(t.second).c_str(), t.second - t.first);
  return OkStatus();
}

}  // namespace msrt

// Writes profiled runs as a Chrome trace (chrome://tracing, ui.perfetto.dev): a bar for each run,
// below it its steps, and below control flow the steps of the graphs that it calls.
#include "core/program/explain.h"
#include "tools/msrun/bench.h"
#include "tools/tensors/made_input.h"

namespace msrt {
namespace {

using Json = nlohmann::json;

std::string TensorText(const TensorView& v) {
  return StrCat(DTypeName(v.dtype), " ", ShapeText(v.dims), " ", LayoutName(v.layout));
}

Json ArgsOf(const StepTime& time) {
  const Program& program = *time.placed->program;
  const Step& step = program.steps[time.step];
  Json args = {{"node", std::string(NameOf(program, step))},
               {"algorithm", step.algorithm},
               {"arithmetic", step.arithmetic},
               {"graph", program.graph->name}};
  const BoundStep* bound = time.bound_step();
  if (bound == nullptr) return args;
  Json inputs = Json::array(), outputs = Json::array();
  for (size_t i = 0; i < bound->views.size(); ++i) {
    if (bound->views[i].dtype != DType::kNone)
      (i < bound->input_count ? inputs : outputs).push_back(TensorText(bound->views[i]));
  }
  args["inputs"] = std::move(inputs);
  args["outputs"] = std::move(outputs);
  if (bound->flops > 0) args["flops"] = bound->flops;
  return args;
}

Json Name(const char* what, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", 1}, {"tid", 1}, {"args", {{"name", name}}}};
}

}  // namespace

Status WriteTrace(const std::string& path, const std::string& model, const Measurement& m) {
  Json events =
      Json::array({Name("process_name", StrCat("msrun ", model)), Name("thread_name", "session")});
  const int64_t start = m.profiles.empty() ? 0 : m.profiles[0].begin_nanos;
  const auto add = [&](std::string name, std::string category, int64_t begin, int64_t end,
                       Json args) {
    events.push_back({{"name", std::move(name)},
                      {"cat", std::move(category)},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", 1},
                      {"ts", static_cast<double>(begin - start) * 1e-3},
                      {"dur", static_cast<double>(end - begin) * 1e-3},
                      {"args", std::move(args)}});
  };
  for (size_t run = 0; run < m.profiles.size(); ++run) {
    const RunProfile& profile = m.profiles[run];
    add(StrCat("run ", run + 1), "run", profile.begin_nanos, profile.end_nanos, Json::object());
    for (const StepTime& time : profile.steps) {
      const Program& program = *time.placed->program;
      const Step& step = program.steps[time.step];
      add(OpLabel(program, step), std::string(DelegateName(step)), time.begin_nanos, time.end_nanos,
          ArgsOf(time));
    }
  }
  const std::string text = Json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(text))};
  return DefaultIo()->WriteFile(path, pieces);
}

}  // namespace msrt

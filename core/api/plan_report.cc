// Placement report of a session, for all graphs that its runs may reach: as JSON, as text, as SVG.
#include <algorithm>

#include "core/api/json_writer.h"
#include "core/api/session.h"
#include "core/program/explain.h"

namespace msrt {
namespace {

// Writes an array; `write` writes each element.
template <typename List, typename Write>
void WriteList(JsonWriter* json, std::string_view key, const List& list, Write&& write) {
  json->Key(key);
  json->BeginArray();
  for (const auto& element : list) write(element);
  json->EndArray();
}

// Writes why a delegate does not run something.
void WriteReason(JsonWriter* json, std::string_view delegate, std::string_view reason) {
  json->BeginObject();
  json->Field("delegate", delegate);
  json->Field("reason", reason);
  json->EndObject();
}

void WriteExplanation(JsonWriter* json, const Node& node, const NodeExplanation& why) {
  json->BeginObject();
  json->Field("node", node.name);
  json->Field("op", OpName(node));
  json->Field("delegate", why.delegate.empty() ? std::string_view("host") : why.delegate);
  json->Field("algorithm", why.algorithm);
  json->Field("arithmetic", why.arithmetic);
  json->Field("us", why.seconds * 1e6);
  json->Field("measured", why.measured);
  WriteList(json, "others", why.others,
            [&](const auto& other) { WriteReason(json, other.first, other.second); });
  json->EndObject();
}

void WriteNumbers(JsonWriter* json, std::string_view key, const std::vector<uint32_t>& numbers) {
  json->Key(key);
  json->BeginArray();
  for (uint32_t n : numbers) json->Value(n);
  json->EndArray();
}

void WriteTensors(JsonWriter* json, std::string_view key, const Program& program,
                  const std::vector<BufferId>& buffers) {
  json->Key(key);
  json->BeginArray();
  for (BufferId b : MovingBuffers(program, buffers)) {
    const Buffer& buffer = program.buffers[b];
    json->BeginObject();
    json->Field("value", program.graph->value(buffer.value).name);
    json->Field("layout", LayoutName(buffer.state.layout));
    json->Field("device", DeviceName(program, buffer.state.device));
    json->Field("bytes", TypicalBytes(program, b));
    json->EndObject();
  }
  json->EndArray();
}

void WriteStep(JsonWriter* json, const Program& program, const Step& step) {
  json->BeginObject();
  json->Field("kind", StepKindName(step.kind));
  json->Field("delegate", DelegateName(step));
  json->Field("device", DeviceName(program, step.queue));
  json->Field("algorithm", step.algorithm);
  json->Field("arithmetic", step.arithmetic);
  WriteNumbers(json, "nodes", step.nodes);
  json->Field("us", step.seconds * 1e6);
  if (step.nodes.empty()) json->Field("moved_bytes", TypicalBytes(program, step.outputs[0]));
  WriteTensors(json, "inputs", program, step.inputs);
  WriteTensors(json, "outputs", program, step.outputs);
  json->EndObject();
}

void WritePartition(JsonWriter* json, const Program& program, const PlacementPartition& partition) {
  json->BeginObject();
  json->Field("delegate", partition.delegate);
  json->Field("device", DeviceName(program, partition.device));
  WriteNumbers(json, "nodes", partition.nodes);
  json->Field("kernels_ms", partition.seconds * 1e3);
  json->Field("transfers_ms", partition.transfer_seconds * 1e3);
  json->Field("launch_ms", partition.launch_seconds * 1e3);
  json->Field("bytes_in", partition.bytes_in);
  json->Field("bytes_out", partition.bytes_out);
  json->EndObject();
}

// Over all graphs of the model: a called graph may have lost a delegate that its caller still uses.
std::vector<FailedDelegate> FailedDelegates(const CompiledModel& model) {
  std::vector<FailedDelegate> all;
  for (const auto& current : ProgramsOf(model)) {
    if (current == nullptr) continue;
    for (const FailedDelegate& failed : current->program->failed_delegates) {
      if (std::none_of(all.begin(), all.end(),
                       [&](const FailedDelegate& known) { return known.name == failed.name; }))
        all.push_back(failed);
    }
  }
  return all;
}

// A program that runs of the session may reach.
struct ReachableProgram {
  uint32_t graph;
  std::shared_ptr<const EntryProgram> placed;
  // The first node that calls it: "node 3 'choice' (If) of graph 'main'"; empty for the session's
  // own program.
  std::string caller;

  const Program& program() const { return *placed->program; }
  std::string title() const {
    return caller.empty() ? program().graph->name
                          : StrCat("graph #", graph, " '", program().graph->name, "', which ",
                                   caller, " calls");
  }
};

// The session's own program first, then each graph in the order of its first call.
std::vector<ReachableProgram> ReachablePrograms(const Session& session) {
  const std::vector<std::shared_ptr<const EntryProgram>> programs = ProgramsOf(session.model());
  std::vector<ReachableProgram> reachable;
  std::vector<bool> seen(programs.size());
  const auto reach = [&](uint32_t graph, std::string caller) {
    if (programs[graph] == nullptr || seen[graph]) return;
    seen[graph] = true;
    reachable.push_back({graph, programs[graph], std::move(caller)});
  };
  const std::vector<Graph>& graphs = session.model().module.graphs;
  const auto own = std::find_if(graphs.begin(), graphs.end(),
                                [&](const Graph& g) { return &g == session.program().graph; });
  reach(static_cast<uint32_t>(own - graphs.begin()), "");
  for (size_t i = 0; i < reachable.size(); ++i) {
    const std::shared_ptr<const EntryProgram> caller = reachable[i].placed;  // `reachable` may grow
    for (const Step& step : caller->program->steps) {
      if (step.control == nullptr) continue;
      const std::string where = StrCat(Describe(*caller->program, step), " of graph '",
                                       caller->program->graph->name, "'");
      for (uint32_t graph : step.control->graphs) reach(graph, where);
    }
  }
  return reachable;
}

void WriteProgram(JsonWriter* json, const Program& program) {
  const PlacementReport report = MakePlacementReport(program);
  json->Field("function", program.graph->name);
  json->Field("expected_ms", program.seconds * 1e3);
  json->Field("lower_bound_ms", program.lower_bound * 1e3);
  json->Field("optimal", program.optimal);
  json->Field("kernels_ms", report.kernel_seconds * 1e3);
  json->Field("transfers_ms", report.transfer_seconds * 1e3);
  json->Field("launches_ms", report.launch_seconds * 1e3);
  json->Field("flops", program.flops);
  json->Field("packed_bytes", program.packed_bytes);
  json->Key("devices");
  json->BeginArray();
  for (uint16_t d = 0; d < program.devices.size(); ++d) {
    if (d == 0 || program.devices[d] != nullptr) json->Value(DeviceName(program, d));
  }
  json->EndArray();
  WriteList(json, "partitions", report.partitions,
            [&](const PlacementPartition& p) { WritePartition(json, program, p); });
  WriteList(json, "steps", program.steps,
            [&](const Step& step) { WriteStep(json, program, step); });
  json->Key("nodes");
  json->BeginArray();
  for (size_t n = 0; n < program.explanations.size(); ++n)
    WriteExplanation(json, program.graph->nodes[n], program.explanations[n]);
  json->EndArray();
}

}  // namespace

std::string PlacementReportJson(const Session& session) {
  const std::vector<ReachableProgram> programs = ReachablePrograms(session);
  JsonWriter json;
  json.BeginObject();
  WriteProgram(&json, programs[0].program());
  WriteList(&json, "lost", FailedDelegates(session.model()),
            [&](const FailedDelegate& d) { WriteReason(&json, d.name, d.reason); });
  WriteList(&json, "graphs", std::span(programs).subspan(1), [&](const ReachableProgram& p) {
    json.BeginObject();
    json.Field("graph", p.graph);
    json.Field("called_by", p.caller);
    WriteProgram(&json, p.program());
    json.EndObject();
  });
  json.EndObject();
  return json.Take();
}

std::string PlacementReportText(const Session& session) {
  std::string out;
  for (const ReachableProgram& p : ReachablePrograms(session)) {
    if (!p.caller.empty()) StrAppend(&out, "\n", p.title(), ":\n");
    out += PlacementText(MakePlacementReport(p.program()));
  }
  return out;
}

std::string PlacementReportSvg(const Session& session) {
  const std::vector<ReachableProgram> reachable = ReachablePrograms(session);
  std::vector<TitledProgram> programs;
  for (const ReachableProgram& p : reachable)
    programs.push_back({&p.program(), StrCat(p.title(), ": ")});
  return PlacementSvg(programs);
}

}  // namespace msrt

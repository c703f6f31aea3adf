// Profile and memory reports of a session, as JSON.
#include "core/api/json_writer.h"
#include "core/api/session.h"
#include "core/program/explain.h"

namespace msrt {
namespace {

void WriteDims(JsonWriter* json, const TensorView& tensor) {
  json->Field("type", DTypeName(tensor.dtype));
  json->Key("dims");
  json->BeginArray();
  for (int64_t d : tensor.dims) json->Value(d);
  json->EndArray();
}

}  // namespace

std::string ProfileReport(const Session& session) {
  const RunProfile& profile = session.profile();
  const std::vector<int64_t> self = SelfNanos(profile);
  JsonWriter json;
  json.BeginObject();
  json.Key("steps");
  json.BeginArray();
  for (size_t i = 0; i < profile.steps.size(); ++i) {
    const StepTime& time = profile.steps[i];
    const Program& program = *time.placed->program;
    const Step& step = program.steps[time.step];
    json.BeginObject();
    json.Field("node", NameOf(program, step));
    json.Field("op", OpOf(program, step));
    if (session.model().module.graphs.size() > 1) json.Field("graph", program.graph->name);
    json.Field("kind", StepKindName(step.kind));
    json.Field("delegate", DelegateName(step));
    json.Field("algorithm", step.algorithm);
    json.Field("arithmetic", step.arithmetic);
    if (const BoundStep* bound = time.bound_step()) {
      if (const TensorView* shown = MainTensor(*bound)) WriteDims(&json, *shown);
    }
    json.Field("begin_us", static_cast<double>(time.begin_nanos - profile.begin_nanos) * 1e-3);
    json.Field("us", static_cast<double>(time.nanos()) * 1e-3);
    json.Field("self_us", static_cast<double>(self[i]) * 1e-3);
    json.EndObject();
  }
  json.EndArray();
  json.Field("total_us", static_cast<double>(profile.end_nanos - profile.begin_nanos) * 1e-3);
  json.EndObject();
  return json.Take();
}

std::string MemoryReport(const Session& session, size_t cap_bytes) {
  const SessionMemory memory = session.memory();
  size_t bindings = 0, binding_bytes = 0, packed_bytes = 0;
  for (const auto& current : ProgramsOf(session.model())) {
    if (current == nullptr) continue;
    bindings += current->bindings->count();
    binding_bytes += current->bindings->bytes();
    packed_bytes += current->program->packed_bytes;
  }
  JsonWriter json;
  json.BeginObject();
  json.Field("arena_bytes", memory.arena_bytes);
  json.Field("frame_bytes", memory.frame_bytes);
  json.Field("arena_lower_bound_bytes", memory.arena_lower_bound_bytes);
  json.Field("scratch_bytes", memory.scratch_bytes);
  json.Field("output_bytes", memory.output_bytes);
  json.Field("state_bytes", memory.state_bytes);
  json.Field("packed_state_bytes", memory.packed_state_bytes);
  json.Field("total_bytes", memory.total());
  json.Field("cap_bytes", cap_bytes);
  json.Key("shared");  // with all sessions of the model
  json.BeginObject();
  json.Field("packed_bytes", packed_bytes);
  json.Field("bindings", bindings);
  json.Field("binding_bytes", binding_bytes);
  json.EndObject();
  json.EndObject();
  return json.Take();
}

}  // namespace msrt

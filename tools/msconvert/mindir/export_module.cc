#include "tools/msconvert/mindir/export_module.h"

#include <algorithm>
#include <utility>

#include "ops/control.h"

namespace msrt::mindir_export {
namespace {

bool IsState(const Node& node) { return node.domain == "msrt" && (node.op == "StateRead" || node.op == "StateWrite"); }

Ref ScalarOf(FunctionWriter* out) { return out->Constant(NumberTensor(DType::kF32, 0)); }

Status CheckType(const Type& type, std::string_view what) {
  if (type.kind == TypeKind::kList) return Unsupported(what, " is a list: MindSpore's sequences do not change their length");
  if (type.kind == TypeKind::kFunction) return OkStatus();
  if (DataTypeOf(type.dtype) == mindir::TensorProto::UNDEFINED) {
    return Unsupported(what, " has element type ", type.dtype, ", which MindIR lacks");
  }
  return OkStatus();
}

Status CheckTypes(const Graph& graph, const Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNoValue) MSRT_RETURN_IF_ERROR(CheckType(graph.value(node.inputs[i]).type, StrCat("input ", i)));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) MSRT_RETURN_IF_ERROR(CheckType(graph.value(node.outputs[i]).type, StrCat("output ", i)));
  }
  return OkStatus();
}

size_t SlotOf(const Node& node) { return static_cast<size_t>(std::get<int64_t>(*node.attrs.Find("slot"))); }

// Reads and writes follow each other by the token: each takes the one before and leaves the next.
Status LowerState(GraphNames* names, StateNames* state, const Node& node) {
  FunctionWriter& out = names->out();
  const Ref slot = state->slots[SlotOf(node)];
  if (node.op == "StateRead") {
    // A copy: what Load gives is the parameter itself, and shows what is written to it later.
    const Ref read = out.Prim("TensorMove", {}, {out.Prim("Load", {}, {slot, state->token})});
    state->token = out.Prim("UpdateState", {}, {state->token, read});
    names->Set(node.outputs[0], read);
    return OkStatus();
  }
  const Ref written = out.Assign(slot, names->Of(node.inputs[0]), state->token);
  state->token = out.Prim("UpdateState", {}, {state->token, written});
  return OkStatus();
}

Status LowerPlain(GraphNames* names, const Node& node) {
  const Lowerer* row = FindLowerer(node);
  if (row == nullptr) return Unsupported("MindSpore has no such op, and it is not taken apart");
  NodeLowering lowering(names, node, *row);
  return row->lower(lowering);
}

std::string ScopeOf(const Graph& graph, const Node& node) {
  for (ValueId v : node.outputs) {
    if (v != kNoValue && !graph.value(v).name.empty()) return graph.value(v).name;
  }
  return node.name.empty() ? node.op : node.name;
}

}  // namespace

Ref Bundle(FunctionWriter* out, const std::vector<Ref>& results) {
  if (results.empty()) return ScalarOf(out);  // a function gives something
  return results.size() == 1 ? results[0] : out->Tuple(results);
}

void ModuleExport::Refuse(const Node& node, const Status& why) {
  refusals_.push_back({OpName(node), node.name.empty() ? "(without a name)" : node.name, why.message()});
}

bool ModuleExport::CallsState(const Node& node) const {
  if (!IsControl(node)) return false;
  const ControlShape shape = ShapeOfControl(node);
  return std::any_of(shape.graphs.begin(), shape.graphs.end(), [&](uint32_t callee) { return touches_state_[callee]; });
}

// A graph touches state if it does so itself or calls one that does. Graphs that an index chooses from are called alike, so one that
// touches state makes the others take it too.
void ModuleExport::FindEffects() {
  touches_state_.assign(module_.graphs.size(), false);
  bool changed = true;
  const auto mark = [&](uint32_t graph) {
    changed = changed || !touches_state_[graph];
    touches_state_[graph] = true;
  };
  while (std::exchange(changed, false)) {
    for (uint32_t g = 0; g < module_.graphs.size(); ++g) {
      for (const Node& node : module_.graphs[g].nodes) {
        const bool calls = CallsState(node);
        if (calls || IsState(node)) mark(g);
        if (!calls) continue;
        const ControlShape shape = ShapeOfControl(node);
        if (shape.kind == ControlKind::kSwitch) std::for_each(shape.graphs.begin(), shape.graphs.end(), mark);
      }
    }
  }
}

Ref ModuleExport::FunctionOf(uint32_t graph) {
  const auto found = functions_.find(graph);
  if (found != functions_.end()) return found->second;
  mindir::GraphProto* function = file_.AddFunction(module_.graphs[graph].name.empty() ? "function" : module_.graphs[graph].name);
  pending_.push_back({graph, function});
  return functions_[graph] = {function->name()};
}

void ModuleExport::WriteGraph(const Graph& graph, FunctionWriter* out, bool is_main, bool with_state) {
  GraphNames names(graph, out, &file_, is_main);
  for (ValueId v : graph.inputs) names.Set(v, out->Input(graph.value(v).name, graph.value(v).type));
  StateNames state;
  if (with_state && is_main) {
    state = {slots_, out->Monad()};
  } else if (with_state) {
    for (const StateSlot& slot : module_.states) state.slots.push_back(out->Input(slot.name, slot.type));
    state.token = out->MonadInput();
  }
  for (const Node& node : graph.nodes) {
    out->SetScope(ScopeOf(graph, node));
    Status lowered = CheckTypes(graph, node);
    if (lowered.ok()) {
      lowered = IsControl(node) ? LowerControl(this, &names, &state, node)
                : IsState(node) ? LowerState(&names, &state, node)
                                : LowerPlain(&names, node);
    }
    if (lowered.ok()) continue;
    Refuse(node, lowered);
    for (ValueId v : node.outputs) {
      if (v != kNoValue) names.Set(v, {kRefused});
    }
  }
  out->SetScope("");
  std::vector<Ref> results;
  std::vector<Type> types;
  for (ValueId v : graph.outputs) {
    results.push_back(names.Of(v));
    types.push_back(graph.value(v).type);
  }
  Ref result = Bundle(out, results);
  out->Describe(result, types);
  if (with_state) {
    result = out->Prim("Depend", {}, {result, state.token});
    out->Describe(result, types);
  }
  out->Return(result, types);
}

void ModuleExport::WriteMain() {
  const Graph& main = module_.main();
  file_.NameMain(main.name.empty() ? "main" : main.name);
  for (const StateSlot& slot : module_.states) slots_.push_back(file_.AddWeight(slot.name, slot.initial));
  FunctionWriter out(&file_, file_.main());
  WriteGraph(main, &out, true, touches_state_[module_.entries[0]]);
}

std::vector<Refusal> ModuleExport::Run() {
  FindEffects();
  WriteMain();
  for (; !pending_.empty(); pending_.pop_front()) {
    const auto [graph, function] = pending_.front();
    FunctionWriter out(&file_, function);
    WriteGraph(module_.graphs[graph], &out, false, touches_state_[graph]);
  }
  return std::move(refusals_);
}

}  // namespace msrt::mindir_export

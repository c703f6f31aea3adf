#include "tools/msconvert/mindir/export_module.h"

#include <algorithm>
#include <utility>

#include "ops/control.h"
#include "tools/msconvert/mindir/export_origin.h"

namespace msrt::mindir_export {
namespace {

bool IsState(const Node& node) {
  return node.domain == "msrt" && (node.op == "StateRead" || node.op == "StateWrite");
}

Ref ScalarOf(FunctionWriter* out) { return out->Constant(NumberTensor(DType::kF32, 0)); }

Status CheckType(const Type& type, std::string_view what) {
  if (type.kind == TypeKind::kList)
    return Unsupported(what, " is a list: MindSpore's sequences do not change their length");
  if (type.kind == TypeKind::kFunction) return OkStatus();
  if (DataTypeOf(type.dtype) == mindir::TensorProto::UNDEFINED) {
    return Unsupported(what, " has element type ", type.dtype, ", which MindIR lacks");
  }
  return OkStatus();
}

Status CheckTypes(const Graph& graph, const Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNoValue)
      MSRT_RETURN_IF_ERROR(CheckType(graph.value(node.inputs[i]).type, StrCat("input ", i)));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue)
      MSRT_RETURN_IF_ERROR(CheckType(graph.value(node.outputs[i]).type, StrCat("output ", i)));
  }
  return OkStatus();
}

size_t SlotOf(const Node& node) {
  return static_cast<size_t>(std::get<int64_t>(*node.attrs.Find("slot")));
}

// The token orders reads and writes: each takes the token of the one before and makes the next.
Status LowerState(GraphNames* names, StateNames* state, const Node& node) {
  FunctionWriter& out = names->out();
  const Ref slot = state->slots[SlotOf(node)];
  if (node.op == "StateRead") {
    // A copy: the result of Load is the parameter itself, which later writes would change.
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
  if (results.empty()) return ScalarOf(out);  // a function must return something
  return results.size() == 1 ? results[0] : out->Tuple(results);
}

void ModuleExport::Refuse(const Node& node, const Status& why) {
  refusals_.push_back(
      {OpName(node), node.name.empty() ? "(without a name)" : node.name, why.message()});
}

bool ModuleExport::CallsState(const Node& node) const {
  if (!IsControl(node)) return false;
  const ControlShape shape = ShapeOfControl(node);
  return std::any_of(shape.graphs.begin(), shape.graphs.end(),
                     [&](uint32_t callee) { return touches_state_[callee]; });
}

// A graph touches state if it does so itself or calls one that does. The branches of one node have
// the same arguments, so if one of them touches state, all of them take it.
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
        if (shape.kind == ControlKind::kSwitch)
          std::for_each(shape.graphs.begin(), shape.graphs.end(), mark);
      }
    }
  }
}

Ref ModuleExport::FunctionOf(uint32_t graph) {
  const auto found = functions_.find(graph);
  if (found != functions_.end()) return found->second;
  mindir::GraphProto* function = file_.AddFunction(
      module_.graphs[graph].name.empty() ? "function" : module_.graphs[graph].name);
  pending_.push_back({graph, function});
  return functions_[graph] = {function->name()};
}

Status ModuleExport::WriteNode(GraphNames* names, StateNames* state, const Node& node) {
  MSRT_RETURN_IF_ERROR(CheckTypes(names->graph(), node));
  if (IsControl(node)) return LowerControl(this, names, state, node);
  if (IsState(node)) return LowerState(names, state, node);
  return LowerPlain(names, node);
}

void ModuleExport::WriteNodes(uint32_t index, GraphNames* names, StateNames* state) {
  const Graph& graph = names->graph();
  FunctionWriter& out = names->out();
  auto group = std::find_if(expanded_.begin(), expanded_.end(),
                            [&](const ExpandedNode& e) { return e.graph == index; });
  size_t before = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (group != expanded_.end() && group->graph == index && i == group->end) ++group;
    const bool grouped = group != expanded_.end() && group->graph == index && i >= group->first;
    if (!grouped || i == group->first) before = out.node_count();
    out.SetScope(ScopeOf(graph, node));
    const Status written = WriteNode(names, state, node);
    if (!written.ok()) {
      Refuse(node, written);
      for (ValueId v : node.outputs) {
        if (v != kNoValue) names->Set(v, {kRefused});
      }
    } else if (grouped && i + 1 == group->end) {
      NoteOrigin(names, group->original, before);
    } else if (!grouped && !IsControl(node) && !IsState(node)) {
      NoteOrigin(names, node, before);
    }
  }
}

void ModuleExport::WriteGraph(uint32_t index, FunctionWriter* out, bool is_main) {
  const Graph& graph = module_.graphs[index];
  const bool with_state = touches_state_[index];
  GraphNames names(graph, out, &file_, is_main);
  for (ValueId v : graph.inputs) names.Set(v, out->Input(graph.value(v).name, graph.value(v).type));
  StateNames state;
  if (with_state && is_main) {
    state = {slots_, out->Monad()};
  } else if (with_state) {
    for (const StateSlot& slot : module_.states)
      state.slots.push_back(out->Input(slot.name, slot.type));
    state.token = out->MonadInput();
  }
  WriteNodes(index, &names, &state);
  out->SetScope("");
  std::vector<Ref> results;
  std::vector<Type> types;
  std::vector<std::string> called;
  for (ValueId v : graph.outputs) {
    results.push_back(names.Of(v));
    types.push_back(graph.value(v).type);
    if (is_main) called.push_back(graph.value(v).name);
  }
  Ref result = Bundle(out, results);
  out->Describe(result, types);
  if (with_state) {
    result = out->Prim("Depend", {}, {result, state.token});
    out->Describe(result, types);
  }
  out->Return(result, types, called);
}

void ModuleExport::WriteMain() {
  const Graph& main = module_.main();
  file_.NameMain(main.name.empty() ? "main" : main.name);
  for (const StateSlot& slot : module_.states)
    slots_.push_back(file_.AddWeight(slot.name, slot.initial));
  FunctionWriter out(&file_, file_.main());
  WriteGraph(module_.entries[0], &out, true);
}

std::vector<Refusal> ModuleExport::Run() {
  FindEffects();
  WriteMain();
  for (; !pending_.empty(); pending_.pop_front()) {
    const auto [graph, function] = pending_.front();
    FunctionWriter out(&file_, function);
    WriteGraph(graph, &out, false);
  }
  return std::move(refusals_);
}

}  // namespace msrt::mindir_export

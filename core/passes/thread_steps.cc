#include "core/passes/thread_steps.h"

#include <algorithm>
#include <optional>

#include "core/passes/call_graph.h"
#include "ops/registry.h"
#include "ops/streams.h"

namespace msrt {
namespace {

const Type kStepType = Type::Tensor(DType::kI64, {});

ConstTensor Number(int64_t value) {
  return ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&value, 1));
}

bool CallsFunction(const Node& node) {
  if (!IsControl(node)) return false;
  const ControlShape shape = ShapeOfControl(node);
  return shape.kind == ControlKind::kCall && shape.graphs.empty();
}

// The graphs that need a step: those that draw, those that call one of them, and those that are
// called in place of one of them.
class NeededSteps {
 public:
  explicit NeededSteps(const Module& module)
      : module_(module), needed_(module.graphs.size()), sites_(module.graphs.size()) {
    for (uint32_t g = 0; g < module.graphs.size(); ++g) Collect(g);
    for (uint32_t g = 0; g < module.graphs.size(); ++g) {
      const std::vector<Node>& nodes = module.graphs[g].nodes;
      if (std::any_of(nodes.begin(), nodes.end(),
                      [](const Node& n) { return DrawsNumbers(n) && !HasStep(n); }))
        Need(g);
    }
    while (!waiting_.empty()) {
      const uint32_t g = waiting_.back();
      waiting_.pop_back();
      Spread(g);
    }
  }

  bool any() const { return std::find(needed_.begin(), needed_.end(), true) != needed_.end(); }
  bool needed(uint32_t graph) const { return needed_[graph]; }
  bool called(uint32_t graph) const { return !sites_[graph].empty(); }
  bool functions() const { return functions_; }  // function values take a step

 private:
  void Collect(uint32_t g) {
    const std::vector<Node>& nodes = module_.graphs[g].nodes;
    for (uint32_t n = 0; n < nodes.size(); ++n) {
      if (CallsFunction(nodes[n])) function_callers_.push_back(g);
      if (!IsControl(nodes[n])) continue;
      const ControlShape shape = ShapeOfControl(nodes[n]);
      for (uint32_t callee : shape.graphs) sites_[callee].push_back({g, n, 0});
      if (shape.kind == ControlKind::kPartial) partial_graphs_.push_back(shape.graphs[0]);
    }
  }
  void Need(uint32_t g) {
    if (!needed_[g]) waiting_.push_back(g);
    needed_[g] = true;
  }
  void Spread(uint32_t g) {
    for (const CallSite& site : sites_[g]) {
      const ControlShape shape = ShapeOfControl(module_.graphs[site.graph].nodes[site.node]);
      if (shape.kind == ControlKind::kPartial) {
        NeedFunctions();
        continue;
      }
      Need(site.graph);
      for (uint32_t sibling : shape.graphs) Need(sibling);
    }
  }
  void NeedFunctions() {
    if (functions_) return;
    functions_ = true;
    for (uint32_t g : partial_graphs_) Need(g);
    for (uint32_t g : function_callers_) Need(g);
  }

  const Module& module_;
  std::vector<bool> needed_;
  std::vector<std::vector<CallSite>> sites_;  // by graph
  std::vector<uint32_t> partial_graphs_, function_callers_, waiting_;
  bool functions_ = false;
};

// Where a called graph takes its step and, if it is a loop's body, where it returns the next one.
struct StepPlace {
  size_t input = 0;
  std::optional<size_t> output;
  bool operator==(const StepPlace&) const = default;
};

StepPlace PlaceIn(const Graph& callee, const ControlShape& shape, size_t position) {
  const bool loop = shape.kind == ControlKind::kLoop || shape.kind == ControlKind::kScan ||
                    shape.kind == ControlKind::kWhile;
  if (!loop) return {callee.inputs.size(), std::nullopt};
  StepPlace place{shape.body_extra_inputs() + shape.carried, std::nullopt};
  if (position + 1 == shape.graphs.size())
    place.output = shape.body_extra_outputs() + shape.carried;
  return place;
}

// A function type takes a step as its last parameter, and so do the functions in it.
Type WithStep(const Type& type) {
  if (type.kind == TypeKind::kList) return Type::ListOf(WithStep(*type.element));
  if (type.kind != TypeKind::kFunction) return type;
  std::vector<Type> parameters, results;
  for (const Type& t : type.signature->parameters) parameters.push_back(WithStep(t));
  for (const Type& t : type.signature->results) results.push_back(WithStep(t));
  parameters.push_back(kStepType);
  return Type::Function(std::move(parameters), std::move(results));
}

template <typename List, typename Element>
void InsertAt(List* list, size_t index, const Element& element) {
  list->insert(list->begin() + static_cast<ptrdiff_t>(index), element);
}

class StepThreading {
 public:
  explicit StepThreading(Module* module)
      : module_(*module), needs_(*module), streams_(*module), places_(module->graphs.size()) {}

  Status Run() {
    if (!needs_.any()) return OkStatus();
    MSRT_RETURN_IF_ERROR(FindPlaces());
    MSRT_RETURN_IF_ERROR(FindSlot());
    if (needs_.functions()) ExtendFunctionTypes();
    const auto graphs = static_cast<uint32_t>(module_.graphs.size());
    for (uint32_t g = 0; g < graphs; ++g) {
      if (!needs_.needed(g)) continue;
      if (needs_.called(g)) ThreadCalled(g);
      else ThreadUncalled(g);
    }
    for (uint32_t& entry : module_.entries) {
      if (needs_.needed(entry) && needs_.called(entry)) entry = Wrap(entry);
    }
    return OkStatus();
  }

 private:
  bool IsEntry(uint32_t g) const {
    return std::find(module_.entries.begin(), module_.entries.end(), g) != module_.entries.end();
  }

  Status FindPlaces() {
    for (const Graph& graph : module_.graphs) {
      for (const Node& node : graph.nodes) {
        if (!IsControl(node)) continue;
        const ControlShape shape = ShapeOfControl(node);
        for (size_t i = 0; i < shape.graphs.size(); ++i) {
          const uint32_t g = shape.graphs[i];
          if (!needs_.needed(g)) continue;
          const StepPlace place = PlaceIn(module_.graphs[g], shape, i);
          if (places_[g] && !(*places_[g] == place)) {
            return Unsupported("graph ", g, " '", module_.graphs[g].name,
                               "' draws random numbers and is both the body of a loop and called "
                               "in another way: give each caller its own copy of it");
          }
          places_[g] = place;
        }
      }
    }
    return OkStatus();
  }

  Status FindSlot() {
    const auto found = std::find_if(module_.states.begin(), module_.states.end(),
                                    [](const StateSlot& s) { return s.name == kStepSlot; });
    slot_ = found - module_.states.begin();
    if (found == module_.states.end()) {
      module_.states.push_back({std::string(kStepSlot), kStepType, Number(0)});
      return OkStatus();
    }
    if (!(found->type == kStepType))
      return InvalidModel("state '", kStepSlot, "' is ", found->type,
                          ": the name is reserved for the step of random ops, which is ",
                          kStepType);
    for (const Graph& graph : module_.graphs) {
      for (const Node& node : graph.nodes) {
        counted_by_model_ |= node.domain == "msrt" && node.op == "StateWrite" &&
                             std::get<int64_t>(*node.attrs.Find("slot")) == slot_;
      }
    }
    return OkStatus();
  }

  void ExtendFunctionTypes() {
    for (Graph& graph : module_.graphs) {
      for (uint32_t v = 0; v < graph.value_count(); ++v) {
        Type& type = graph.value(ValueId(v)).type;
        if (!type.is_tensor()) type = WithStep(type);
      }
    }
  }

  ValueId Append(Graph* graph, std::string_view domain, std::string_view op,
                 std::vector<ValueId> inputs, AttrList attrs) {
    Node node;
    node.name = StrCat("step/", op, graph->nodes.size());
    node.domain = domain;
    node.op = op;
    node.def = FindOp(domain, op, nullptr);
    node.inputs = std::move(inputs);
    node.attrs = std::move(attrs);
    if (op != "StateWrite") node.outputs = {graph->AddValue(node.name, kStepType)};
    const ValueId output = node.outputs.empty() ? kNoValue : node.outputs[0];
    graph->nodes.push_back(std::move(node));
    return output;
  }
  ValueId Next(Graph* graph, ValueId step) {
    return Append(graph, "", "Add", {step, graph->AddConstant("step/one", Number(1))}, {});
  }
  ValueId Derive(Graph* graph, ValueId step) {
    return Append(graph, "msrt", "DeriveStep", {step}, {{"stream", streams_.Take()}});
  }
  ValueId ReadSlot(Graph* graph) {
    return Append(graph, "msrt", "StateRead", {},
                  {{"slot", slot_}, {"dtype", DType::kI64}, {"dims", std::vector<int64_t>{}}});
  }
  void CountRun(Graph* graph, ValueId step) {
    if (counted_by_model_) return;
    Append(graph, "msrt", "StateWrite", {Next(graph, step)}, {{"slot", slot_}});
  }

  // An entry, or a graph that only an unknown op refers to: its signature stays.
  void ThreadUncalled(uint32_t g) {
    Graph& graph = module_.graphs[g];
    std::vector<Node> before = std::exchange(graph.nodes, {});
    const ValueId step = ReadSlot(&graph);
    ThreadNodes(&graph, std::move(before), step);
    if (IsEntry(g)) CountRun(&graph, step);
  }

  void ThreadCalled(uint32_t g) {
    Graph& graph = module_.graphs[g];
    const StepPlace& place = *places_[g];
    std::vector<Node> before = std::exchange(graph.nodes, {});
    const ValueId step = graph.AddValue("step", kStepType);
    InsertAt(&graph.inputs, place.input, step);
    ThreadNodes(&graph, std::move(before), step);
    if (place.output) InsertAt(&graph.outputs, *place.output, Next(&graph, step));
  }

  void ThreadNodes(Graph* graph, std::vector<Node> nodes, ValueId step) {
    for (Node& node : nodes) {
      if (DrawsNumbers(node) && !HasStep(node)) {
        SetInput(&node, StepInput(*node.def), step);
      } else if (IsControl(node)) {
        PassStep(graph, step, &node);
      }
      graph->nodes.push_back(std::move(node));
    }
  }

  void PassStep(Graph* graph, ValueId step, Node* node) {
    const ControlShape shape = ShapeOfControl(*node);
    if (shape.kind == ControlKind::kPartial) return;  // the function's callers pass it
    const bool pass = shape.graphs.empty() ? needs_.functions() : needs_.needed(shape.graphs[0]);
    if (!pass) return;
    const ValueId derived = Derive(graph, step);
    if (node->attrs.Find("carried") == nullptr) {
      node->inputs.push_back(derived);
      return;
    }
    InsertAt(&node->inputs, shape.leading + shape.carried, derived);
    if (node->outputs.size() > shape.carried) InsertAt(&node->outputs, shape.carried, kNoValue);
    node->attrs.Set("carried", static_cast<int64_t>(shape.carried + 1));
  }

  // An entry that is also called keeps its signature for sessions: a new graph calls it.
  uint32_t Wrap(uint32_t entry) {
    Graph wrapper;
    Graph& called = module_.graphs[entry];
    wrapper.name = called.name;
    const size_t step_input = places_[entry]->input;
    Node call;
    call.name = StrCat(called.name, "/call");
    call.domain = "msrt";
    call.op = "Call";
    call.def = FindOp("msrt", "Call", nullptr);
    call.attrs = {{"graph", GraphRef{entry}}};
    const ValueId step = ReadSlot(&wrapper);
    for (size_t i = 0; i < called.inputs.size(); ++i) {
      const Value& input = called.value(called.inputs[i]);
      call.inputs.push_back(i == step_input ? Derive(&wrapper, step)
                                            : wrapper.AddInput(input.name, input.type));
    }
    for (size_t i = 0; i < called.outputs.size(); ++i) {
      const Value& output = called.value(called.outputs[i]);
      call.outputs.push_back(wrapper.AddValue(output.name, output.type));
      if (places_[entry]->output != i) wrapper.outputs.push_back(call.outputs.back());
    }
    wrapper.nodes.push_back(std::move(call));
    CountRun(&wrapper, step);
    called.name += "/called";
    module_.graphs.push_back(std::move(wrapper));
    return static_cast<uint32_t>(module_.graphs.size() - 1);
  }

  Module& module_;
  const NeededSteps needs_;
  FreeStreams streams_;
  std::vector<std::optional<StepPlace>> places_;  // by graph: if it is called
  int64_t slot_ = 0;
  bool counted_by_model_ = false;
};

}  // namespace

Status ThreadSteps(Module* module) { return StepThreading(module).Run(); }

}  // namespace msrt

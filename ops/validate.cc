#include "ops/validate.h"

#include <algorithm>
#include <unordered_set>

#include "core/base/countable.h"
#include "core/graph/sources.h"
#include "ops/control.h"
#include "ops/infer.h"
#include "ops/node_view.h"
#include "ops/registry.h"
#include "ops/streams.h"

namespace msrt {
namespace {

// Far more than models have, and little enough to keep the stack in memory.
constexpr size_t kMaxCallDepth = 100'000;

// `parts_left` bounds the work on types that contain types.
Status CheckType(const Module& module, const Type& type, uint32_t* parts_left) {
  if ((*parts_left)-- == 0) return LimitExceeded("a type has more than ", kMaxTypeParts, " parts");
  switch (type.kind) {
    case TypeKind::kTensor: {
      for (int64_t d : type.dims) {
        if (IsSymbol(d) && -1 - d >= static_cast<int64_t>(module.symbols.size())) {
          return InvalidModel("type ", type, " uses symbol ", -1 - d, ", the module has ",
                              module.symbols.size());
        }
      }
      return IsCountable(type.dims) ? OkStatus()
                                    : InvalidModel("type ", type, " has more than 2^56 elements");
    }
    case TypeKind::kList:
      if (type.element == nullptr)
        return InvalidModel("a list type without the type of its elements");
      return CheckType(module, *type.element, parts_left);
    case TypeKind::kFunction:
      if (type.signature == nullptr) return InvalidModel("a function type without a signature");
      for (const Type& t : type.signature->parameters)
        MSRT_RETURN_IF_ERROR(CheckType(module, t, parts_left));
      for (const Type& t : type.signature->results)
        MSRT_RETURN_IF_ERROR(CheckType(module, t, parts_left));
      return OkStatus();
  }
  return InvalidModel("a type of unknown kind ", static_cast<int>(type.kind));
}

Status CheckType(const Module& module, const Type& type) {
  uint32_t parts_left = kMaxTypeParts;
  return CheckType(module, type, &parts_left);
}

Status CheckConstant(const ConstTensor& tensor) {
  const bool fits = IsDType(static_cast<uint32_t>(tensor.dtype)) && tensor.dims.known() &&
                    IsCountable(tensor.dims);
  if (!fits) return InvalidModel("a constant cannot be ", tensor.type());
  const size_t bytes = tensor.type().bytes();
  if (bytes != tensor.bytes.size())
    return InvalidModel("constant ", tensor.type(), " needs ", bytes, " bytes, has ",
                        tensor.bytes.size());
  return OkStatus();
}

// Checks the references in attributes, for known and unknown ops alike.
Status CheckReferences(const Module& module, const AttrList& attrs) {
  const auto check = [&](const Attr& attr, GraphRef ref) -> Status {
    if (ref.index < module.graphs.size()) return OkStatus();
    return InvalidModel("attribute '", attr.name, "' refers to graph ", ref.index,
                        ", the module has ", module.graphs.size());
  };
  for (const Attr& attr : attrs) {
    if (const auto* ref = std::get_if<GraphRef>(&attr.value)) {
      MSRT_RETURN_IF_ERROR(check(attr, *ref));
    } else if (const auto* refs = std::get_if<std::vector<GraphRef>>(&attr.value)) {
      for (GraphRef r : *refs) MSRT_RETURN_IF_ERROR(check(attr, r));
    } else if (const auto* tensor = std::get_if<ConstTensor>(&attr.value)) {
      if (Status status = CheckConstant(*tensor); !status.ok())
        return std::move(status).Within(StrCat("attribute '", attr.name, "'"));
    }
  }
  return OkStatus();
}

// Delegates find kernels by an op's name. A newer version of an op that they know by name would
// reach a kernel with unchecked attributes, types and shapes, so it is refused.
Status CheckVersion(const Node& node) {
  if (node.version < 0) return InvalidModel("version ", node.version, " is negative");
  if (node.def == nullptr || node.version <= node.def->version) return OkStatus();
  return Unsupported("has the meaning of version ", node.version, ", this build knows version ",
                     node.def->version, ": write the model for that one, or update msrt");
}

// Kernels write all required outputs of an op, so none of them may be absent.
Status CheckRequiredOutputs(const Node& node) {
  const auto required = std::min(static_cast<size_t>(node.def->min_outputs), node.outputs.size());
  for (size_t i = 0; i < required; ++i) {
    if (node.outputs[i] == kNoValue)
      return InvalidModel("output ", i, " is left out, which only optional outputs may be");
  }
  return OkStatus();
}

// Attributes for the position of a piece in a whole come only from localize, which computes them
// correctly; kernels trust them.
Status RefuseLocalAttrs(const Node& node) {
  for (const AttrDef& def : node.def->attrs) {
    if (def.local && node.attrs.Find(def.name) != nullptr) {
      return InvalidModel("attribute '", def.name,
                          "' is reserved for the runtime, models must not have it");
    }
  }
  return OkStatus();
}

std::string DescribeOutput(const Graph& graph, const Node& node, size_t i) {
  return StrCat("output ", i, " '", graph.value(node.outputs[i]).name, "'");
}

std::string InputTypes(const Graph& graph, const Node& node) {
  std::string out;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (i != 0) out += ", ";
    if (node.inputs[i] == kNoValue) out += "none";
    else AppendTo(&out, graph.value(node.inputs[i]).type);
  }
  return out;
}

class Validator {
 public:
  Validator(Module* module, const OpSet* ops) : module_(*module), ops_(ops) {}

  Status Run() {
    MSRT_RETURN_IF_ERROR(CheckStates());
    MSRT_RETURN_IF_ERROR(CheckEntries());
    progress_.resize(module_.graphs.size());
    for (uint32_t entry : module_.entries) MSRT_RETURN_IF_ERROR(ValidateFrom(entry));
    for (uint32_t g = 0; g < module_.graphs.size(); ++g) MSRT_RETURN_IF_ERROR(ValidateFrom(g));
    AssignStreams(&module_);
    return OkStatus();
  }

 private:
  Status CheckStates() const;
  Status CheckEntries() const;
  // Validates a graph after all graphs that it calls: their result types determine those of its
  // nodes.
  Status ValidateFrom(uint32_t graph);
  Status BeginGraph(Graph* graph) const;
  // Continues with a graph. Returns true if it stopped at a call of a graph that must be validated
  // first.
  Result<bool> AdvanceGraph(uint32_t graph);
  Status ValidateCalls(Graph* graph, Node* node, bool* postponed);
  Status CheckValues(const Graph& graph) const;
  Status ValidateNode(Graph* graph, Node* node, bool* postponed);
  Status MergeOutput(Graph* graph, const Node& node, size_t i, const Type& inferred) const;
  Status CheckStateUse(const Graph& graph, const Node& node) const;

  Module& module_;
  const OpSet* ops_;
  struct Progress {
    bool begun = false;
    size_t node = 0;
  };
  std::vector<Progress> progress_;  // by graph
  std::vector<uint32_t> stack_;     // graphs in progress
  std::vector<Type> inferred_;      // reused from node to node
};

Status Validator::CheckStates() const {
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < module_.states.size(); ++i) {
    const StateSlot& slot = module_.states[i];
    const auto fail = [&](Status status) {
      return std::move(status).Within(StrCat("state ", i, " '", slot.name, "'"));
    };
    if (slot.name.empty()) return fail(InvalidModel("has no name"));
    if (!names.insert(slot.name).second)
      return fail(InvalidModel("another state has the same name"));
    if (!slot.type.is_tensor() || !IsDeclared(slot.type))
      return fail(InvalidModel("is not a tensor with an element type"));
    if (Status status = CheckType(module_, slot.type); !status.ok()) return fail(std::move(status));
    if (Status status = CheckConstant(slot.initial); !status.ok()) return fail(std::move(status));
    const auto merged = MergeTypes(slot.type, slot.initial.type());
    if (!merged.ok()) {
      return fail(InvalidModel("is ", slot.type, ", its initial data ", slot.initial.type(), ": ",
                               merged.status().message()));
    }
  }
  return OkStatus();
}

Status Validator::CheckEntries() const {
  if (module_.entries.empty())
    return InvalidModel("the module has no entry: no graph of it can be run");
  for (uint32_t entry : module_.entries) {
    if (entry >= module_.graphs.size()) {
      return InvalidModel("entry graph ", entry, " does not exist, the module has ",
                          module_.graphs.size());
    }
  }
  return OkStatus();
}

Status Validator::CheckValues(const Graph& graph) const {
  for (uint32_t v = 0; v < graph.value_count(); ++v) {
    const Value& value = graph.value(ValueId(v));
    Status status = CheckType(module_, value.type);
    if (status.ok() && value.constant != nullptr) {
      status = CheckConstant(*value.constant);
      if (status.ok() && value.type != value.constant->type()) {
        status =
            InvalidModel("is declared ", value.type, ", its constant is ", value.constant->type());
      }
    }
    if (!status.ok()) return std::move(status).Within(StrCat("value ", v, " '", value.name, "'"));
  }
  // Inputs are found by name, so names must be unique; inputs without a name are found by position.
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& input = graph.value(graph.inputs[i]);
    if (!IsDeclared(input.type))
      return InvalidModel("input ", i, " '", input.name, "' has no type");
    if (!input.name.empty() && !names.insert(input.name).second)
      return InvalidModel("two inputs are named '", input.name, "'");
  }
  return OkStatus();
}

Status Validator::BeginGraph(Graph* graph) const {
  MSRT_RETURN_IF_ERROR(CheckSources(GraphSources(*graph)));
  return CheckValues(*graph);
}

Status Validator::ValidateFrom(uint32_t first) {
  if (progress_[first].begun) return OkStatus();
  stack_.push_back(first);
  while (!stack_.empty()) {
    const uint32_t g = stack_.back();
    Graph& graph = module_.graphs[g];
    Status status;
    if (!progress_[g].begun) status = BeginGraph(&graph);
    progress_[g].begun = true;
    if (status.ok()) {
      auto postponed = AdvanceGraph(g);
      if (postponed.ok() && !*postponed) stack_.pop_back();
      status = std::move(postponed).status();
    }
    if (!status.ok()) return std::move(status).Within(StrCat("graph ", g, " '", graph.name, "'"));
  }
  return OkStatus();
}

Result<bool> Validator::AdvanceGraph(uint32_t g) {
  Graph& graph = module_.graphs[g];
  for (size_t& n = progress_[g].node; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    bool postponed = false;
    Status status = ValidateNode(&graph, &node, &postponed);
    if (!status.ok())
      return std::move(status)
          .Within(Describe(graph, n))
          .With("node", node.name)
          .With("op", OpName(node));
    if (postponed) return true;
  }
  return false;
}

// Checks the arguments of the graphs that a node calls. Graphs that have not been validated yet
// come first; for a graph that calls itself, directly or not, its declared types count.
Status Validator::ValidateCalls(Graph* graph, Node* node, bool* postponed) {
  MSRT_ASSIGN_OR_RETURN(const std::vector<GraphCall> calls,
                        CallsOf(*node, [&](ValueId v) { return graph->value(v).type; }));
  for (const GraphCall& call : calls) {
    MSRT_RETURN_IF_ERROR(CheckArguments(module_, *node, call));
    if (progress_[call.graph].begun) continue;
    if (stack_.size() >= kMaxCallDepth)
      return LimitExceeded("graphs call each other more than ", kMaxCallDepth, " deep");
    stack_.push_back(call.graph);
    *postponed = true;
    return OkStatus();
  }
  MSRT_ASSIGN_OR_RETURN(inferred_, ResultsOf(module_, *graph, *node));
  if (inferred_.size() < node->outputs.size()) {
    return InvalidModel("has ", node->outputs.size(), " outputs, the called graph has ",
                        inferred_.size());
  }
  // A Partial must have an output even if its function is unused.
  if (node->outputs.empty() && ShapeOfControl(*node).kind == ControlKind::kPartial)
    return InvalidModel("has no output for its function");
  return OkStatus();
}

Status Validator::ValidateNode(Graph* graph, Node* node, bool* postponed) {
  node->def = FindOp(node->domain, node->op, ops_);
  MSRT_RETURN_IF_ERROR(CheckVersion(*node));
  MSRT_RETURN_IF_ERROR(CheckReferences(module_, node->attrs));
  inferred_.assign(node->outputs.size(), UndeclaredType());
  if (node->def != nullptr) {
    if (!module_.has_pieces) MSRT_RETURN_IF_ERROR(RefuseLocalAttrs(*node));
    MSRT_RETURN_IF_ERROR(CheckRequiredOutputs(*node));
    Status status = InferTypes(*node->def, NodeView(*graph, *node).op(), inferred_);
    if (!status.ok()) return std::move(status).With("inputs", InputTypes(*graph, *node));
    if (IsControl(*node)) {
      MSRT_RETURN_IF_ERROR(ValidateCalls(graph, node, postponed));
      if (*postponed) return OkStatus();
    }
  }
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    if (node->outputs[i] != kNoValue)
      MSRT_RETURN_IF_ERROR(MergeOutput(graph, *node, i, inferred_[i]));
  }
  return node->domain == "msrt" ? CheckStateUse(*graph, *node) : OkStatus();
}

Status Validator::MergeOutput(Graph* graph, const Node& node, size_t i,
                              const Type& inferred) const {
  Type& declared = graph->value(node.outputs[i]).type;
  if (!IsDeclared(inferred)) {
    if (IsDeclared(declared)) return OkStatus();
    return InvalidModel(DescribeOutput(*graph, node, i), " has no declared type, and ",
                        node.def == nullptr ? "this build does not know the op; declare it, or "
                                              "register a kernel that defines the op"
                                            : "the op does not determine it");
  }
  if (!IsDeclared(declared)) {
    declared = inferred;
    return OkStatus();
  }
  auto merged = MergeTypes(declared, inferred);
  if (!merged.ok()) {
    return InvalidModel(DescribeOutput(*graph, node, i), " is declared ", declared,
                        ", but inputs (", InputTypes(*graph, node), ") give ", inferred, ": ",
                        merged.status().message());
  }
  declared = *std::move(merged);
  return OkStatus();
}

// A value that is read from a slot or written to it must be a tensor that the slot can hold.
// Symbols are not taken from the slot: a growing cache has another size when it is written than
// when it was read.
Status Validator::CheckStateUse(const Graph& graph, const Node& node) const {
  const bool read = node.op == "StateRead";
  if (node.def == nullptr || (!read && node.op != "StateWrite")) return OkStatus();
  const auto slot = static_cast<uint64_t>(
      std::get<int64_t>(*node.attrs.Find("slot")));  // required, and checked by InferTypes
  if (slot >= module_.states.size())
    return InvalidModel("slot = ", slot, ", the module has ", module_.states.size(), " states");
  const ValueId value = read ? node.outputs[0] : node.inputs[0];
  const StateSlot& state = module_.states[slot];
  const auto merged = MergeTypes(state.type, graph.value(value).type);
  if (merged.ok()) return OkStatus();
  return InvalidModel(read ? "reads " : "writes ", graph.value(value).type, read ? " from" : " to",
                      " state ", slot, " '", state.name, "' of type ", state.type, ": ",
                      merged.status().message());
}

}  // namespace

Status Validate(Module* module, const OpSet* ops) { return Validator(module, ops).Run(); }

}  // namespace msrt

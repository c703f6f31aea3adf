#include "ops/control.h"

#include <algorithm>
#include <limits>

#include "ops/families.h"
#include "ops/infer.h"

namespace msrt {
namespace {

constexpr int kMaxOutputs = std::numeric_limits<int>::max();

constexpr AttrDef kIfAttrs[] = {
    {.name = "then_branch", .kind = AttrKind::kGraph, .required = true},
    {.name = "else_branch", .kind = AttrKind::kGraph, .required = true}};
constexpr AttrDef kSwitchAttrs[] = {
    {.name = "branches", .kind = AttrKind::kGraphs, .required = true, .max_count = 1 << 16}};
constexpr AttrDef kLoopAttrs[] = {
    {.name = "body", .kind = AttrKind::kGraph, .required = true},
    {.name = "carried", .required = true, .min_int = 0, .max_int = 1 << 16}};
constexpr AttrDef kScanAttrs[] = {
    {.name = "body", .kind = AttrKind::kGraph, .required = true},
    {.name = "num_scan_inputs", .required = true, .min_int = 1, .max_int = 1 << 16},
    {.name = "carried", .required = true, .min_int = 0, .max_int = 1 << 16},
    {.name = "scan_input_axes",
     .kind = AttrKind::kInts,
     .min_int = -kMaxRank,
     .max_int = kMaxRank - 1,
     .max_count = 1 << 16},
    {.name = "scan_input_directions",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_int = 1,
     .max_count = 1 << 16},
    {.name = "scan_output_axes",
     .kind = AttrKind::kInts,
     .min_int = -kMaxRank,
     .max_int = kMaxRank - 1,
     .max_count = 1 << 16},
    {.name = "scan_output_directions",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_int = 1,
     .max_count = 1 << 16}};
constexpr AttrDef kWhileAttrs[] = {
    {.name = "condition", .kind = AttrKind::kGraph, .required = true},
    {.name = "body", .kind = AttrKind::kGraph, .required = true},
    {.name = "carried", .required = true, .min_int = 0, .max_int = 1 << 16}};
constexpr AttrDef kCallAttrs[] = {{.name = "graph", .kind = AttrKind::kGraph}};
constexpr AttrDef kPartialAttrs[] = {{.name = "graph", .kind = AttrKind::kGraph, .required = true}};

constexpr DTypeSet kBool = {DType::kBool};
constexpr ParamDef kIfInputs[] = {
    {.name = "condition", .types = kBool},
    {.name = "captured", .types = kAllTypes, .kind = ParamDef::kRest}};
constexpr ParamDef kSwitchInputs[] = {
    {.name = "index", .types = {DType::kI32, DType::kI64}},
    {.name = "captured", .types = kAllTypes, .kind = ParamDef::kRest}};
constexpr ParamDef kLoopInputs[] = {
    {.name = "trip_count", .types = {DType::kI64}, .kind = ParamDef::kOptional},
    {.name = "condition", .types = kBool, .kind = ParamDef::kOptional},
    {.name = "carried and captured", .types = kAllTypes, .kind = ParamDef::kRest}};
constexpr ParamDef kAnyInputs[] = {{.name = "values", .types = kAllTypes, .kind = ParamDef::kRest}};

// The result types of the called graphs are known only to the module: see ResultsOf.
Status InferByModule(InferContext& c) {
  for (size_t i = 0; i < c.output_count(); ++i) c.SetOutput(i, UndeclaredType());
  return OkStatus();
}

Cost NoCost(const OpView&) { return {}; }

constexpr OpDef Entry(std::string_view name, std::string_view domain,
                      std::span<const AttrDef> attrs, std::span<const ParamDef> inputs) {
  return {.name = name,
          .domain = domain,
          .version = domain.empty() ? 23 : 1,
          .attrs = attrs,
          .inputs = inputs,
          .min_outputs = 0,
          .max_outputs = kMaxOutputs,
          .infer = InferByModule,
          .cost = NoCost,
          .effect = Effect::kControl,
          .traits = kRunByExecutor};
}

constexpr OpDef kControlOps[] = {
    Entry("If", "", kIfAttrs, kIfInputs),
    Entry("Loop", "", kLoopAttrs, kLoopInputs),
    Entry("Scan", "", kScanAttrs, kAnyInputs),
    Entry("While", "msrt", kWhileAttrs, kAnyInputs),
    Entry("SwitchN", "msrt", kSwitchAttrs, kSwitchInputs),
    Entry("Call", "msrt", kCallAttrs, kAnyInputs),
    Entry("Partial", "msrt", kPartialAttrs, kAnyInputs),
};

ControlKind KindOfEntry(const OpDef& def) {
  constexpr std::pair<std::string_view, ControlKind> kKinds[] = {
      {"If", ControlKind::kIf},          {"Loop", ControlKind::kLoop},
      {"Scan", ControlKind::kScan},      {"While", ControlKind::kWhile},
      {"SwitchN", ControlKind::kSwitch}, {"Call", ControlKind::kCall},
      {"Partial", ControlKind::kPartial}};
  const auto* found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](const auto& kind) { return kind.first == def.name; });
  MSRT_CHECK(found != std::end(kKinds));
  return found->second;
}

size_t CountAttr(const Node& node, std::string_view name) {
  return static_cast<size_t>(std::get<int64_t>(*node.attrs.Find(name)));
}
uint32_t GraphAttr(const Node& node, std::string_view name) {
  return std::get<GraphRef>(*node.attrs.Find(name)).index;
}

Type InputType(const Graph& graph, const Node& node, size_t i) {
  return node.inputs[i] == kNoValue ? UndeclaredType() : graph.value(node.inputs[i]).type;
}

std::vector<int64_t> AxesOf(const Node& node, std::string_view name, size_t count) {
  std::vector<int64_t> axes(count);
  if (const AttrValue* given = node.attrs.Find(name)) {
    const auto& values = std::get<std::vector<int64_t>>(*given);
    std::copy_n(values.begin(), std::min(values.size(), count), axes.begin());
  }
  return axes;
}

// Returns the type of a slice of a scanned value: without dim `axis`.
Result<Type> SliceType(const Type& whole, int64_t axis) {
  if (!whole.is_tensor()) return InvalidModel("a ", whole, " cannot be scanned, only tensors can");
  if (!whole.rank_known) return whole;
  MSRT_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, whole.rank()));
  Type slice = whole;
  slice.dims.erase(a);
  return slice;
}

Result<Type> StackType(const Type& slice, int64_t axis, int64_t length) {
  if (!IsDeclared(slice)) return slice;
  if (!slice.is_tensor()) return InvalidModel("a ", slice, " cannot be stacked, only tensors can");
  if (!slice.rank_known) return slice;
  if (slice.rank() == kMaxRank)
    return InvalidModel("stacked, ", slice, " would have more than ", kMaxRank, " dims");
  MSRT_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, slice.rank() + 1));
  Type whole = slice;
  whole.dims.insert(a, length);
  return whole;
}

class Calls {
 public:
  Calls(const Node& node, FunctionRef<Type(ValueId)> type_of)
      : node_(node), type_of_(type_of), shape_(ShapeOfControl(node)) {}

  Result<std::vector<GraphCall>> Run() {
    if (node_.inputs.size() < shape_.captured_from()) {
      return InvalidModel("has ", node_.inputs.size(), " inputs, its attributes require at least ",
                          shape_.captured_from());
    }
    switch (shape_.kind) {
      case ControlKind::kIf:
        return Branches({"then_branch", "else_branch"});
      case ControlKind::kSwitch:
        return Branches({});
      case ControlKind::kLoop:
        return Body();
      case ControlKind::kScan:
        return ScanBody();
      case ControlKind::kWhile:
        return std::vector<GraphCall>{Plain(0, "condition"), Plain(1, "body")};
      case ControlKind::kCall:
      case ControlKind::kPartial:
        return shape_.graphs.empty() ? std::vector<GraphCall>()
                                     : std::vector<GraphCall>{Plain(0, "graph")};
    }
    return std::vector<GraphCall>();
  }

 private:
  // The graph receives all inputs except the leading ones.
  GraphCall Plain(size_t g, std::string_view role) const {
    GraphCall call{shape_.graphs[g], role, {}};
    for (size_t i = shape_.leading; i < node_.inputs.size(); ++i) {
      call.arguments.push_back(node_.inputs[i] == kNoValue ? UndeclaredType()
                                                           : type_of_(node_.inputs[i]));
    }
    return call;
  }
  Result<std::vector<GraphCall>> Branches(std::initializer_list<std::string_view> roles) const {
    std::vector<GraphCall> calls;
    if (shape_.graphs.empty()) return InvalidModel("has no branches");
    for (size_t g = 0; g < shape_.graphs.size(); ++g)
      calls.push_back(Plain(g, roles.size() == 0 ? "branches" : roles.begin()[g]));
    return calls;
  }
  Result<std::vector<GraphCall>> Body() const {
    GraphCall call = Plain(0, "body");
    call.arguments.insert(call.arguments.begin(),
                          {Type::Tensor(DType::kI64, {}), Type::Tensor(DType::kBool, {})});
    return std::vector<GraphCall>{std::move(call)};
  }
  Result<std::vector<GraphCall>> ScanBody() const {
    GraphCall call = Plain(0, "body");
    const std::vector<int64_t> axes = AxesOf(node_, "scan_input_axes", shape_.scan_inputs);
    for (size_t i = 0; i < shape_.scan_inputs; ++i) {
      Type& type = call.arguments[shape_.carried + i];
      MSRT_ASSIGN_OR_RETURN(type, SliceType(type, axes[i]));
    }
    return std::vector<GraphCall>{std::move(call)};
  }

  const Node& node_;
  const FunctionRef<Type(ValueId)> type_of_;
  const ControlShape shape_;
};

class Results {
 public:
  Results(const Module& module, const Graph& graph, const Node& node)
      : module_(module), graph_(graph), node_(node), shape_(ShapeOfControl(node)) {}

  Result<std::vector<Type>> Run() {
    switch (shape_.kind) {
      case ControlKind::kIf:
      case ControlKind::kSwitch:
        return Joined();
      case ControlKind::kLoop:
        return Looped(kUnknownDim);
      case ControlKind::kWhile:
        return OfWhile();
      case ControlKind::kScan:
        return Looped(ScanLength());
      case ControlKind::kCall:
        return Called();
      case ControlKind::kPartial:
        return Bound();
    }
    return std::vector<Type>();
  }

 private:
  Type Output(size_t g, size_t i) const {
    const Graph& callee = module_.graphs[shape_.graphs[g]];
    return callee.value(callee.outputs[i]).type;
  }
  size_t Outputs(size_t g) const { return module_.graphs[shape_.graphs[g]].outputs.size(); }

  Result<std::vector<Type>> Joined() const {
    std::vector<Type> types;
    for (size_t g = 0; g < shape_.graphs.size(); ++g) {
      if (g != 0 && Outputs(g) != types.size()) {
        return InvalidModel("its branches give ", types.size(), " and ", Outputs(g), " results");
      }
      for (size_t i = 0; i < Outputs(g); ++i) {
        if (g == 0) types.push_back(UndeclaredType());
        auto joined = JoinTypes(types[i], Output(g, i));
        if (!joined.ok())
          return InvalidModel("result ", i,
                              " differs from branch to branch: ", joined.status().message());
        types[i] = *std::move(joined);
      }
    }
    return types;
  }

  // Checks that the body returns the carried values, after its extra outputs, so that it can be
  // called again.
  Result<std::vector<Type>> Looped(int64_t length) const {
    const size_t first = shape_.body_extra_outputs() + shape_.carried;
    if (Outputs(0) < first)
      return InvalidModel("its body gives ", Outputs(0), " results, ", first,
                          " at least are needed");
    if (shape_.body_extra_outputs() != 0)
      MSRT_RETURN_IF_ERROR(CheckCondition(Output(0, 0), "the body's first result"));
    MSRT_ASSIGN_OR_RETURN(std::vector<Type> types, Carried(0));
    const std::vector<int64_t> axes = AxesOf(node_, "scan_output_axes", Outputs(0) - first);
    for (size_t i = first; i < Outputs(0); ++i) {
      MSRT_ASSIGN_OR_RETURN(Type stacked, StackType(Output(0, i), axes[i - first], length));
      types.push_back(std::move(stacked));
    }
    return types;
  }

  Result<std::vector<Type>> OfWhile() const {
    if (Outputs(0) != 1)
      return InvalidModel("its condition gives ", Outputs(0), " results, must give one");
    MSRT_RETURN_IF_ERROR(CheckCondition(Output(0, 0), "what its condition gives"));
    if (Outputs(1) != shape_.carried)
      return InvalidModel("its body gives ", Outputs(1), " results, ", shape_.carried,
                          " are carried");
    return Carried(1);
  }

  Status CheckCondition(const Type& type, std::string_view what) const {
    if (!IsDeclared(type) || (type.is_tensor() && type.dtype == DType::kBool)) return OkStatus();
    return InvalidModel(what, " is ", type, ", must be a bool");
  }

  Result<std::vector<Type>> Carried(size_t g) const {
    std::vector<Type> types;
    const Graph& body = module_.graphs[shape_.graphs[g]];
    for (size_t i = 0; i < shape_.carried; ++i) {
      const Type begin = InputType(graph_, node_, shape_.leading + i),
                 next = Output(g, shape_.body_extra_outputs() + i);
      auto joined = JoinTypes(begin, next);
      if (!joined.ok())
        return InvalidModel("carried value ", i, " begins as ", begin, " and becomes ", next);
      if (IsDeclared(next) && shape_.body_extra_inputs() + i < body.inputs.size()) {
        const Type& declared = body.value(body.inputs[shape_.body_extra_inputs() + i]).type;
        const auto fits = MergeTypes(next, declared);
        if (!fits.ok()) {
          return InvalidModel("carried value ", i, " becomes ", next, ", but the body takes ",
                              declared, ": ", fits.status().message(),
                              "; declare that input with open dims");
        }
      }
      types.push_back(*std::move(joined));
    }
    return types;
  }

  int64_t ScanLength() const {
    const std::vector<int64_t> axes = AxesOf(node_, "scan_input_axes", shape_.scan_inputs);
    for (size_t i = 0; i < shape_.scan_inputs; ++i) {
      const Type type = InputType(graph_, node_, shape_.carried + i);
      if (!type.is_tensor() || !type.rank_known) continue;
      const auto axis = NormalizeAxis(axes[i], type.rank());
      if (axis.ok() && IsKnown(type.dims[*axis])) return type.dims[*axis];
    }
    return kUnknownDim;
  }

  Result<std::vector<Type>> Called() const {
    if (!shape_.graphs.empty()) {
      std::vector<Type> types;
      for (size_t i = 0; i < Outputs(0); ++i) types.push_back(Output(0, i));
      return types;
    }
    const Type function = node_.inputs.empty() ? UndeclaredType() : InputType(graph_, node_, 0);
    if (function.kind != TypeKind::kFunction)
      return InvalidModel("calls neither a graph nor a function: input 0 is ", function);
    const FunctionSignature& signature = *function.signature;
    if (signature.parameters.size() != node_.inputs.size() - 1) {
      return InvalidModel("calls a function of ", signature.parameters.size(), " parameters with ",
                          node_.inputs.size() - 1, " arguments");
    }
    for (size_t i = 0; i < signature.parameters.size(); ++i) {
      const auto fits = MergeTypes(InputType(graph_, node_, 1 + i), signature.parameters[i]);
      if (!fits.ok()) return InvalidModel("argument ", i, ": ", fits.status().message());
    }
    return signature.results;
  }

  Result<std::vector<Type>> Bound() const {
    const Graph& callee = module_.graphs[shape_.graphs[0]];
    std::vector<Type> parameters, results;
    for (size_t i = node_.inputs.size(); i < callee.inputs.size(); ++i)
      parameters.push_back(callee.value(callee.inputs[i]).type);
    for (ValueId v : callee.outputs) results.push_back(callee.value(v).type);
    return std::vector<Type>{Type::Function(std::move(parameters), std::move(results))};
  }

  const Module& module_;
  const Graph& graph_;
  const Node& node_;
  const ControlShape shape_;
};

}  // namespace

std::span<const OpDef> ControlOps() { return kControlOps; }

bool IsControl(const Node& node) {
  return node.def != nullptr && node.def->effect == Effect::kControl;
}

ControlShape ShapeOfControl(const Node& node) {
  ControlShape shape;
  shape.kind = KindOfEntry(*node.def);
  switch (shape.kind) {
    case ControlKind::kIf:
      shape.leading = 1;
      shape.graphs = {GraphAttr(node, "then_branch"), GraphAttr(node, "else_branch")};
      break;
    case ControlKind::kSwitch:
      shape.leading = 1;
      for (GraphRef g : std::get<std::vector<GraphRef>>(*node.attrs.Find("branches")))
        shape.graphs.push_back(g.index);
      break;
    case ControlKind::kLoop:
      shape.leading = 2;
      shape.carried = CountAttr(node, "carried");
      shape.graphs = {GraphAttr(node, "body")};
      break;
    case ControlKind::kScan:
      shape.carried = CountAttr(node, "carried");
      shape.scan_inputs = CountAttr(node, "num_scan_inputs");
      shape.graphs = {GraphAttr(node, "body")};
      break;
    case ControlKind::kWhile:
      shape.carried = CountAttr(node, "carried");
      shape.graphs = {GraphAttr(node, "condition"), GraphAttr(node, "body")};
      break;
    case ControlKind::kCall:
    case ControlKind::kPartial:
      if (node.attrs.Find("graph") != nullptr) shape.graphs = {GraphAttr(node, "graph")};
      else shape.leading = 1;
      break;
  }
  return shape;
}

Result<std::vector<GraphCall>> CallsOf(const Node& node, FunctionRef<Type(ValueId)> type_of) {
  return Calls(node, type_of).Run();
}

Status CheckArguments(const Module& module, const Node& node, const GraphCall& call) {
  const Graph& callee = module.graphs[call.graph];
  const auto name = [&] {
    return StrCat("'", call.role, "' (graph ", call.graph, " '", callee.name, "')");
  };
  const bool partial = ShapeOfControl(node).kind == ControlKind::kPartial;
  if (partial ? callee.inputs.size() < call.arguments.size()
              : callee.inputs.size() != call.arguments.size()) {
    return InvalidModel(name(), " takes ", callee.inputs.size(), " inputs, gets ",
                        call.arguments.size());
  }
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const Value& input = callee.value(callee.inputs[i]);
    const Type& argument = call.arguments[i];
    if (!IsDeclared(argument))
      return InvalidModel(name(), ": the argument for input ", i, " '", input.name, "' is missing");
    // A body may declare a number as a list of one element.
    const bool one = argument.is_tensor() && input.type.is_tensor() && argument.dims.empty() &&
                     input.type.dims == Dims{1};
    if (one && argument.dtype == input.type.dtype) continue;
    const auto fits = MergeTypes(input.type, argument);
    if (!fits.ok())
      return InvalidModel(name(), ": input ", i, " '", input.name, "': ", fits.status().message());
  }
  return OkStatus();
}

Result<std::vector<Type>> ResultsOf(const Module& module, const Graph& graph, const Node& node) {
  return Results(module, graph, node).Run();
}

}  // namespace msrt

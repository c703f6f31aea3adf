// If, Loop, Scan and SequenceMap, whose bodies become graphs of the module, and optionals.
#include <algorithm>

#include "ops/builder.h"
#include "ops/control.h"
#include "ops/propagate.h"
#include "ops/registry.h"
#include "tools/msconvert/onnx/model_import.h"
#include "tools/msconvert/onnx/proto_import.h"

namespace msrt::onnx_import {
namespace {

// Importing a loop may read its body twice, so nested loops would double the work at each level.
constexpr size_t kMaxRereads = 10'000;

// A condition that depends on more nodes is not decided during import, nor is any condition after
// so many values have been visited.
constexpr size_t kMaxDecidingNodes = 64;
constexpr uint64_t kMaxVisitedValues = 50'000'000;

// Increments *depth for the lifetime of the object; null: does nothing.
class ScopedDepth {
 public:
  explicit ScopedDepth(size_t* depth) : depth_(depth) {
    if (depth_ != nullptr) ++*depth_;
  }
  ~ScopedDepth() {
    if (depth_ != nullptr) --*depth_;
  }
  ScopedDepth(const ScopedDepth&) = delete;
  ScopedDepth& operator=(const ScopedDepth&) = delete;

 private:
  size_t* depth_;
};

Type NumberType(DType dtype) { return Type::Tensor(dtype, {}); }

// Returns the type of one slice of a scanned tensor.
Type WithoutDim(Type type, int64_t axis) {
  if (!type.is_tensor() || !type.rank_known || type.rank() == 0) return type;
  const int64_t a = axis < 0 ? axis + type.rank() : axis;
  if (a >= 0 && a < type.rank()) type.dims.erase(static_cast<int>(a));
  return type;
}

int64_t IntOf(const AttrList& attrs, std::string_view name, int64_t fallback) {
  const AttrValue* value = attrs.Find(name);
  const int64_t* number = value == nullptr ? nullptr : std::get_if<int64_t>(value);
  return number == nullptr ? fallback : *number;
}

std::vector<int64_t> IntsOf(const AttrList& attrs, std::string_view name) {
  const AttrValue* value = attrs.Find(name);
  const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(value);
  return list == nullptr ? std::vector<int64_t>() : *list;
}

}  // namespace

Status Importer::FindInner(const NodeInFile& node, Scope* scope, AttrList* attrs,
                           std::vector<onnx::AttributeProto>* graphs, bool* understood) {
  for (auto& given : *node.proto->mutable_attribute()) {
    onnx::AttributeProto copy;
    onnx::AttributeProto* a = Resolve(&given, *scope, &copy);
    if (a == nullptr) continue;
    const auto same = [&](const onnx::AttributeProto& other) { return other.name() == a->name(); };
    if (std::any_of(graphs->begin(), graphs->end(), same))
      return InvalidModel("attribute '", a->name(), "' is there twice");
    if (a->type() == onnx::AttributeProto::GRAPH) graphs->push_back(*a);
    else MSRT_RETURN_IF_ERROR(ImportAttr(&given, node, scope, attrs, understood));
  }
  return OkStatus();
}

Status Importer::FindCaptured(std::span<const onnx::AttributeProto> graphs, const Scope& scope,
                              std::vector<Capture>* captures) {
  std::unordered_set<std::string> seen;
  for (const onnx::AttributeProto& a : graphs) {
    std::vector<std::string> names;
    std::unordered_set<std::string> of_graph;
    FindCaptures(a.g(), &names, &of_graph, 0);
    for (const std::string& name : names) {
      if (!seen.insert(name).second) continue;
      const auto found = scope.values.find(name);
      if (found == scope.values.end())
        return InvalidModel("graph '", a.g().name(), "' uses '", name,
                            "', which no node, input or outer graph defines");
      const Value& value = out_.module.graphs[scope.graph].value(found->second);
      captures->push_back({name, found->second, value.type, value.constant});
    }
  }
  return OkStatus();
}

Result<uint32_t> Importer::ImportInner(const onnx::GraphProto& graph, const InnerGraph& inner,
                                       const Scope& scope) {
  MSRT_RETURN_IF_ERROR(Spend(graph.ByteSizeLong()));
  onnx::GraphProto copy =
      graph;  // importing moves tensors out, and the graph may be imported again
  Scope inner_scope;
  inner_scope.opsets = scope.opsets;
  inner_scope.bindings = scope.bindings;
  inner_scope.prefix = scope.prefix;
  inner_scope.depth = scope.depth + 1;
  inner_scope.caller = &scope;
  for (const Capture& c : inner.captures) {
    // An optional that is captured stays one.
    if (IsOptional(scope, c.value)) inner_scope.optional_captures.insert(c.name);
  }
  MSRT_RETURN_IF_ERROR(ImportGraph(&copy, &inner, &inner_scope));
  return inner_scope.graph;
}

// A body may take an optional and return a plain value in its place. Wraps that value, since the
// next iteration expects an optional.
Status Importer::WrapOptionals(uint32_t index, size_t first, size_t first_result, size_t carried) {
  Graph& body = out_.module.graphs[index];
  if (body.outputs.size() < first_result + carried || body.inputs.size() < first + carried)
    return OkStatus();  // refused later
  for (size_t i = 0; i < carried; ++i) {
    const ValueId begin = body.inputs[first + i];
    ValueId& next = body.outputs[first_result + i];
    const Type &taken = body.value(begin).type, &given = body.value(next).type;
    const bool optional =
        optionals_.count({index, IndexOf(begin)}) != 0 && taken.kind == TypeKind::kList;
    if (!optional || JoinTypes(taken, given).ok() || !JoinTypes(*taken.element, given).ok())
      continue;
    MSRT_ASSIGN_OR_RETURN(
        next, GraphBuilder(&body).Add("SequenceConstruct", StrCat("optional", i), {next}));
  }
  return OkStatus();
}

// Imports the body of a loop. A carried value has its initial type, unless the body returns another
// one: then the common part of both, and finally unknown dims.
Result<uint32_t> Importer::ImportBody(const onnx::GraphProto& graph, InnerGraph inner, size_t first,
                                      size_t first_result, size_t carried, const Scope& scope) {
  for (int attempt = 0;; ++attempt) {
    const size_t graphs = out_.module.graphs.size();
    const Problems problems = out_.problems;
    MSRT_ASSIGN_OR_RETURN(const uint32_t index, ImportInner(graph, inner, scope));
    MSRT_RETURN_IF_ERROR(WrapOptionals(index, first, first_result, carried));
    const Graph& body = out_.module.graphs[index];
    bool settled = attempt == 2 || body.outputs.size() < first_result + carried ||
                   body.inputs.size() < first + carried;
    if (!settled) {
      settled = true;
      for (size_t i = 0; i < carried; ++i) {
        const Type& begin = body.value(body.inputs[first + i]).type;
        const Type& next = body.value(body.outputs[first_result + i]).type;
        auto joined = JoinTypes(begin, next);
        if (!IsDeclared(begin) || !IsDeclared(next) || !joined.ok() || *joined == begin) continue;
        settled = false;
        inner.inputs[first + i] = attempt == 0        ? *joined
                                  : begin.is_tensor() ? Type::UnrankedTensor(begin.dtype)
                                                      : *joined;
      }
    }
    if (settled) return index;
    if (++rereads_ > kMaxRereads)
      return LimitExceeded("loops in loops had to be read again more than ", kMaxRereads, " times");
    inner.exact = true;
    out_.module.graphs.resize(graphs);
    out_.problems = problems;
    std::erase_if(optionals_, [&](const auto& o) { return o.first >= graphs; });
  }
}

// Returns the value of a condition that depends on constants and known shapes only; else nullopt.
std::optional<bool> Importer::Decided(ValueId condition, const Scope& scope) {
  const Graph& graph = GraphOf(scope);
  if (options_.evaluator == nullptr || IsUnknown(scope, condition)) return std::nullopt;
  visited_values_ += graph.value_count();
  if (visited_values_ > kMaxVisitedValues) return std::nullopt;
  const std::vector<int32_t> producers = graph.Producers();
  std::set<size_t> nodes;  // that it depends on, in order
  std::vector<ValueId> waiting = {condition};
  while (!waiting.empty()) {
    const int32_t n = producers[IndexOf(waiting.back())];
    waiting.pop_back();
    if (n < 0 || !nodes.insert(static_cast<size_t>(n)).second) continue;
    if (nodes.size() > kMaxDecidingNodes) return std::nullopt;
    for (ValueId v : graph.nodes[static_cast<size_t>(n)].inputs) {
      if (v != kNoValue) waiting.push_back(v);
    }
  }
  GraphFacts facts(graph);
  for (size_t n : nodes) {
    if (!PropagateNode(graph, n, *options_.evaluator, &facts).ok()) return std::nullopt;
  }
  const ConstTensor* known = facts.known[IndexOf(condition)];
  if (known == nullptr || known->dtype != DType::kBool || known->dims.elements() != 1)
    return std::nullopt;
  return known->As<uint8_t>()[0] != 0;
}

// Keeps only the branch of a decided If that is taken: the other may be invalid for these shapes.
Status Importer::KeepDecided(const std::vector<ValueId>& inputs, const Scope& scope,
                             std::vector<onnx::AttributeProto>* branches) {
  if (inputs.size() != 1 || inputs[0] == kNoValue)
    return InvalidModel("has ", inputs.size(), " inputs, must have one");
  // Inside a branch that may never run, the shapes that would decide may be invalid.
  const auto taken = open_choices_ == 0 ? Decided(inputs[0], scope) : std::nullopt;
  if (!taken) return OkStatus();
  const std::string_view untaken = *taken ? "else_branch" : "then_branch";
  if (std::none_of(branches->begin(), branches->end(),
                   [&](const auto& a) { return a.name() == untaken; }))
    return OkStatus();
  std::erase_if(*branches, [&](const auto& a) { return a.name() == untaken; });
  return OkStatus();
}

Status Importer::ImportDecided(const NodeInFile& node, const onnx::GraphProto& branch,
                               const InnerGraph& inner, Scope* scope) {
  MSRT_ASSIGN_OR_RETURN(const uint32_t graph, ImportInner(branch, inner, *scope));
  std::vector<ValueId> captured;
  for (const Capture& c : inner.captures) {
    if (c.constant == nullptr) captured.push_back(c.value);
  }
  return FinishControl(node, "Call", std::move(captured), {{"graph", GraphRef{graph}}}, scope);
}

Status Importer::ImportControl(const NodeInFile& node, std::vector<ValueId> inputs, Scope* scope) {
  AttrList attrs;
  std::vector<onnx::AttributeProto> graphs;
  bool understood = true;
  MSRT_RETURN_IF_ERROR(FindInner(node, scope, &attrs, &graphs, &understood));
  const size_t wanted = node.op == "If" ? 2 : 1;
  if (graphs.size() != wanted)
    return InvalidModel("has ", graphs.size(), " graphs, must have ", wanted);
  if (node.op == "If") MSRT_RETURN_IF_ERROR(KeepDecided(inputs, *scope, &graphs));
  const ScopedDepth open_choice(graphs.size() < wanted ? nullptr : &open_choices_);
  std::vector<Capture> captures;
  MSRT_RETURN_IF_ERROR(FindCaptured(graphs, *scope, &captures));
  const auto type_of = [&](ValueId v) {
    return v == kNoValue ? UndeclaredType() : GraphOf(*scope).value(v).type;
  };
  InnerGraph inner{{}, captures};
  if (node.op == "SequenceMap")
    return ImportSequenceMap(node, std::move(inputs), graphs[0].g(), captures, scope);
  if (node.op == "Scan" && node.version < 9) {
    return ImportBatchedScan(node, std::move(inputs), std::move(attrs), graphs[0].g(), captures,
                             scope);
  }
  if (graphs.size() < wanted) return ImportDecided(node, graphs[0].g(), inner, scope);
  if (node.op == "If") {
    for (const onnx::AttributeProto& a : graphs) {
      MSRT_ASSIGN_OR_RETURN(const uint32_t graph, ImportInner(a.g(), inner, *scope));
      attrs.Set(a.name(), GraphRef{graph});
    }
  } else if (node.op == "Loop") {
    inputs.resize(std::max<size_t>(inputs.size(), 2), kNoValue);
    const size_t carried = inputs.size() - 2;
    inner.inputs = {NumberType(DType::kI64), NumberType(DType::kBool)};
    for (size_t i = 0; i < carried; ++i) inner.inputs.push_back(type_of(inputs[2 + i]));
    MSRT_ASSIGN_OR_RETURN(const uint32_t graph,
                          ImportBody(graphs[0].g(), inner, 2, 1, carried, *scope));
    attrs.Set("body", GraphRef{graph});
    attrs.Set("carried", static_cast<int64_t>(carried));
  } else {
    const int64_t scanned = IntOf(attrs, "num_scan_inputs", 0);
    if (scanned < 1 || scanned > static_cast<int64_t>(inputs.size())) {
      return InvalidModel("num_scan_inputs = ", scanned, ", it has ", inputs.size(), " inputs");
    }
    const size_t carried = inputs.size() - static_cast<size_t>(scanned);
    const std::vector<int64_t> axes = IntsOf(attrs, "scan_input_axes");
    for (size_t i = 0; i < inputs.size(); ++i) {
      const size_t s = i - carried;
      inner.inputs.push_back(i < carried
                                 ? type_of(inputs[i])
                                 : WithoutDim(type_of(inputs[i]), s < axes.size() ? axes[s] : 0));
    }
    MSRT_ASSIGN_OR_RETURN(const uint32_t graph,
                          ImportBody(graphs[0].g(), inner, 0, 0, carried, *scope));
    attrs.Set("body", GraphRef{graph});
    attrs.Set("carried", static_cast<int64_t>(carried));
  }
  for (const Capture& c : captures) {
    if (c.constant == nullptr) inputs.push_back(c.value);
  }
  if (!understood) return DefineUnknown(*node.proto, scope);
  return FinishControl(node, node.op, std::move(inputs), std::move(attrs), scope);
}

// Adds the node that calls the imported graphs.
Status Importer::FinishControl(const NodeInFile& node, std::string_view op,
                               std::vector<ValueId> inputs, AttrList attrs, Scope* scope) {
  const onnx::NodeProto& proto = *node.proto;
  Graph& graph = GraphOf(*scope);
  for (ValueId v : inputs) {
    if (IsUnknown(*scope, v)) return DefineUnknown(proto, scope);
  }
  const std::string_view domain = op == "Call" ? "msrt" : "";
  Node draft;
  draft.domain = domain;
  draft.op = op;
  draft.def = FindOp(domain, op);
  draft.inputs = inputs;
  draft.attrs = attrs;
  MSRT_RETURN_IF_ERROR(CheckAttrs(attrs, draft.def->attrs));
  auto types = ResultsOf(out_.module, graph, draft);
  if (!types.ok()) {
    Problem(node, std::string(types.status().message()), "");
    return DefineUnknown(proto, scope);
  }
  if (types->size() < static_cast<size_t>(proto.output_size())) {
    return InvalidModel("has ", proto.output_size(), " outputs, the called graph has ",
                        types->size());
  }
  types->resize(static_cast<size_t>(proto.output_size()));
  // The result types of a graph that could not be converted are unknown: the reason is in the
  // report.
  if (!std::all_of(types->begin(), types->end(), [](const Type& t) { return IsDeclared(t); }))
    return DefineUnknown(proto, scope);
  const size_t count = types->size();
  auto outputs = GraphBuilder(&graph).Add(domain, op, node.name, std::move(inputs),
                                          std::move(attrs), count, *std::move(types));
  if (!outputs.ok()) {
    Problem(node, std::string(outputs.status().message()), "");
    return DefineUnknown(proto, scope);
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    const ValueId value = (*outputs)[static_cast<size_t>(i)];
    if (proto.output(i).empty()) continue;
    graph.value(value).name = scope->prefix + proto.output(i);
    // Carried optionals are returned as optionals.
    const size_t carried_from = op == "Loop" ? 2 : 0;
    const bool optional = carried_from != 0 &&
                          carried_from + static_cast<size_t>(i) < draft.inputs.size() &&
                          IsOptional(*scope, draft.inputs[carried_from + static_cast<size_t>(i)]);
    if (optional) optionals_.insert({scope->graph, IndexOf(value)});
    MSRT_RETURN_IF_ERROR(Define(scope, proto.output(i), value));
  }
  return OkStatus();
}

// Scan of opset 8 works on a batch of sequences: becomes a scan over the batch whose body is the
// scan of one sequence.
Status Importer::ImportBatchedScan(const NodeInFile& node, std::vector<ValueId> inputs,
                                   AttrList attrs, const onnx::GraphProto& body,
                                   const std::vector<Capture>& captures, Scope* scope) {
  if (!inputs.empty() && inputs[0] != kNoValue) {
    Problem(node, "sequence_lens is given: sequences of different lengths are not scanned together",
            "lift the model to opset 9 or later");
    return DefineUnknown(*node.proto, scope);
  }
  if (!inputs.empty()) inputs.erase(inputs.begin());
  const int64_t scanned = IntOf(attrs, "num_scan_inputs", 0);
  if (scanned < 1 || scanned > static_cast<int64_t>(inputs.size())) {
    return InvalidModel("num_scan_inputs = ", scanned, ", it has ", inputs.size(), " inputs");
  }
  const size_t carried = inputs.size() - static_cast<size_t>(scanned);
  InnerGraph inner{{}, captures};
  std::vector<Type> of_one;  // sequence
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type type =
        inputs[i] == kNoValue ? UndeclaredType() : GraphOf(*scope).value(inputs[i]).type;
    of_one.push_back(WithoutDim(type, 0));
    inner.inputs.push_back(i < carried ? of_one.back() : WithoutDim(of_one.back(), 0));
  }
  MSRT_ASSIGN_OR_RETURN(const uint32_t graph, ImportBody(body, inner, 0, 0, carried, *scope));
  std::vector<ValueId> captured;
  for (const Capture& c : captures) {
    if (c.constant == nullptr) captured.push_back(c.value);
  }
  // The graph around the scan of one sequence.
  Graph outer;
  outer.name = StrCat(node.name, " (one sequence)");
  std::vector<ValueId> arguments;
  for (size_t i = 0; i < inputs.size(); ++i)
    arguments.push_back(outer.AddInput(StrCat("input", i), of_one[i]));
  for (ValueId v : captured)
    arguments.push_back(
        outer.AddInput(StrCat("captured", arguments.size()), GraphOf(*scope).value(v).type));
  Node scan;
  scan.op = "Scan";
  scan.def = FindOp("", "Scan");
  scan.inputs = arguments;
  scan.attrs = AttrList{{"body", GraphRef{graph}},
                        {"num_scan_inputs", scanned},
                        {"carried", static_cast<int64_t>(carried)}};
  if (const AttrValue* directions = attrs.Find("directions"))
    scan.attrs.Set("scan_input_directions", *directions);
  MSRT_RETURN_IF_ERROR(CheckAttrs(scan.attrs, scan.def->attrs));
  auto types = ResultsOf(out_.module, outer, scan);
  if (!types.ok()) return std::move(types).status();
  const size_t results = types->size();
  MSRT_ASSIGN_OR_RETURN(outer.outputs,
                        GraphBuilder(&outer).Add("", "Scan", node.name, scan.inputs, scan.attrs,
                                                 results, *std::move(types)));
  const auto index = static_cast<uint32_t>(out_.module.graphs.size());
  out_.module.graphs.push_back(std::move(outer));
  const auto all = static_cast<int64_t>(inputs.size());
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  return FinishControl(
      node, "Scan", std::move(inputs),
      {{"body", GraphRef{index}}, {"num_scan_inputs", all}, {"carried", int64_t{0}}}, scope);
}

// Becomes a loop over the list that calls the graph for each element and appends its results to new
// lists.
Status Importer::ImportSequenceMap(const NodeInFile& node, std::vector<ValueId> inputs,
                                   const onnx::GraphProto& body,
                                   const std::vector<Capture>& captures, Scope* scope) {
  InnerGraph inner{{}, captures};
  for (ValueId v : inputs) {
    if (v == kNoValue || IsUnknown(*scope, v)) return DefineUnknown(*node.proto, scope);
    const Type& type = GraphOf(*scope).value(v).type;
    inner.inputs.push_back(type.kind == TypeKind::kList ? *type.element : type);
  }
  if (inputs.empty() || GraphOf(*scope).value(inputs[0]).type.kind != TypeKind::kList)
    return InvalidModel("input 0 is no list");
  MSRT_ASSIGN_OR_RETURN(const uint32_t graph, ImportInner(body, inner, *scope));
  for (const Capture& c : captures) {
    if (c.constant == nullptr) inputs.push_back(c.value);
  }
  std::vector<Type> results;
  for (ValueId v : out_.module.graphs[graph].outputs)
    results.push_back(out_.module.graphs[graph].value(v).type);
  Graph loop;
  loop.name = StrCat(node.name, " (each element)");
  GraphBuilder builder(&loop);
  const ValueId iteration = loop.AddInput("iteration", NumberType(DType::kI64)),
                go_on = loop.AddInput("go_on", NumberType(DType::kBool));
  std::vector<ValueId> lists, arguments, begin;
  std::vector<Type> list_types;
  for (const Type& r : results) {
    if (!IsDeclared(r)) return DefineUnknown(*node.proto, scope);
    list_types.push_back(Type::ListOf(Type::UnrankedTensor(r.dtype)));
    lists.push_back(loop.AddInput(StrCat("list", lists.size()), list_types.back()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type type = GraphOf(*scope).value(inputs[i]).type;
    ValueId v = loop.AddInput(StrCat("input", i), type);
    if (type.kind == TypeKind::kList && i < inner.inputs.size()) {
      MSRT_ASSIGN_OR_RETURN(v, builder.Add("SequenceAt", StrCat("element", i), {v, iteration}));
    }
    arguments.push_back(v);
  }
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> given,
                        builder.Add("msrt", "Call", "call", arguments, {{"graph", GraphRef{graph}}},
                                    results.size(), results));
  loop.outputs.push_back(go_on);
  for (size_t i = 0; i < given.size(); ++i) {
    MSRT_ASSIGN_OR_RETURN(const ValueId list,
                          builder.Add("SequenceInsert", StrCat("insert", i), {lists[i], given[i]}));
    loop.outputs.push_back(list);
  }
  const auto index = static_cast<uint32_t>(out_.module.graphs.size());
  out_.module.graphs.push_back(std::move(loop));
  GraphBuilder outer(&GraphOf(*scope));
  MSRT_ASSIGN_OR_RETURN(const ValueId length,
                        outer.Add("SequenceLength", StrCat(node.name, "/length"), {inputs[0]}));
  std::vector<ValueId> operands = {length, kNoValue};
  for (const Type& r : results) {
    MSRT_ASSIGN_OR_RETURN(
        const ValueId empty,
        outer.Add("SequenceEmpty", StrCat(node.name, "/empty"), {}, {{"dtype", r.dtype}}));
    operands.push_back(empty);
  }
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  return FinishControl(
      node, "Loop", std::move(operands),
      {{"body", GraphRef{index}}, {"carried", static_cast<int64_t>(results.size())}}, scope);
}

Result<ValueId> Importer::ContentOf(Scope* scope, ValueId optional, const std::string& name) {
  const int64_t zero = 0;
  Graph& graph = GraphOf(*scope);
  const ValueId first = graph.AddConstant(
      StrCat(name, "/position"), ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&zero, 1)));
  return GraphBuilder(&graph).Add("SequenceAt", name, {optional, first});
}

// An optional is a list of at most one element. Since opset 18 these ops also take other values,
// which always have an element.
Status Importer::ImportOptional(const NodeInFile& node, const std::vector<ValueId>& inputs,
                                Scope* scope) {
  const onnx::NodeProto& proto = *node.proto;
  GraphBuilder builder(&GraphOf(*scope));
  const bool given = !inputs.empty() && inputs[0] != kNoValue;
  const bool optional = given && IsOptional(*scope, inputs[0]);
  const auto constant = [&](bool value) {
    const uint8_t byte = value ? 1 : 0;
    return GraphOf(*scope).AddConstant(
        proto.output(0), ConstTensor::Of<uint8_t>(DType::kBool, {}, std::span(&byte, 1)));
  };
  if (proto.output_size() != 1) return InvalidModel("must have one output");
  if (node.op == "OptionalHasElement") {
    if (!optional) return Define(scope, proto.output(0), constant(given));
    MSRT_ASSIGN_OR_RETURN(const ValueId length,
                          builder.Add("SequenceLength", StrCat(node.name, "/length"), {inputs[0]}));
    MSRT_ASSIGN_OR_RETURN(const ValueId has,
                          builder.Add("Cast", proto.output(0), {length}, {{"to", DType::kBool}}));
    return Define(scope, proto.output(0), has);
  }
  if (node.op == "OptionalGetElement") {
    if (!given) return InvalidModel("input 0 is missing");
    if (!optional) return Define(scope, proto.output(0), inputs[0]);
    MSRT_ASSIGN_OR_RETURN(const ValueId element, ContentOf(scope, inputs[0], proto.output(0)));
    return Define(scope, proto.output(0), element);
  }
  ValueId made = kNoValue;
  if (given) {
    MSRT_ASSIGN_OR_RETURN(made, builder.Add("SequenceConstruct", proto.output(0), {inputs[0]}));
  } else {
    const auto type = std::find_if(proto.attribute().begin(), proto.attribute().end(),
                                   [](const auto& a) { return a.name() == "type"; });
    if (type == proto.attribute().end() || !type->has_tp())
      return InvalidModel("has neither an input nor a type");
    auto element = TypeOf(type->tp(), &out_.module);
    if (!element.ok()) {
      Problem(node, StrCat("an empty optional of ", element.status().message()), "");
      return DefineUnknown(proto, scope);
    }
    int64_t depth = 1;
    const Type* leaf = &*element;
    for (; leaf->kind == TypeKind::kList; leaf = leaf->element.get()) ++depth;
    MSRT_ASSIGN_OR_RETURN(made, builder.Add("SequenceEmpty", proto.output(0), {},
                                            {{"dtype", leaf->dtype}, {"depth", depth}}));
  }
  optionals_.insert({scope->graph, IndexOf(made)});
  return Define(scope, proto.output(0), made);
}

}  // namespace msrt::onnx_import

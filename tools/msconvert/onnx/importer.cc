#include "tools/msconvert/onnx/importer.h"

#include <algorithm>

#include "ops/registry.h"
#include "tools/msconvert/file_stream.h"
#include "tools/msconvert/messages.h"
#include "tools/msconvert/onnx/cures.h"
#include "tools/msconvert/onnx/model_import.h"
#include "tools/msconvert/onnx/proto_import.h"

namespace msrt::onnx_import {
namespace {

constexpr int64_t kOldestOpset = 1,
                  kNewestOpset = 28;  // the newest is that of the message definitions
// A graph in a graph takes three levels, so this is beyond kMaxNesting, whose error is clearer.
constexpr int kMaxMessageDepth = 1000;
constexpr int kMaxAttributes = 64;  // the limit of .msrt files

std::string FullName(const std::string& domain, const std::string& op) {
  return domain.empty() ? op : StrCat(domain, ".", op);
}

// Returns the type that the file declares for the output of a node; null if there is none.
const onnx::TypeProto* DeclaredType(const onnx::GraphProto& graph, const std::string& name) {
  for (const auto* values : {&graph.value_info(), &graph.output()}) {
    for (const onnx::ValueInfoProto& v : *values) {
      if (v.name() == name) return &v.type();
    }
  }
  return nullptr;
}

// Returns a name for messages, shortened if it is long.
std::string Short(const std::string& name) {
  constexpr size_t kMaxBytes = 100;
  return name.size() <= kMaxBytes ? name
                                  : StrCat(std::string_view(name).substr(0, kMaxBytes), "...");
}

bool CallsGraphs(const NodeInFile& node) {
  return node.op == "If" || node.op == "Loop" || node.op == "Scan" || node.op == "SequenceMap";
}
bool IsAboutOptionals(const NodeInFile& node) {
  return node.op == "Optional" || node.op == "OptionalHasElement" ||
         node.op == "OptionalGetElement";
}

}  // namespace

void FindCaptures(const onnx::GraphProto& graph, std::vector<std::string>* out,
                  std::unordered_set<std::string>* seen, int depth) {
  if (depth > kMaxNesting) return;  // refused where it is imported
  std::unordered_set<std::string> defined;
  for (const auto& i : graph.input()) defined.insert(i.name());
  for (const auto& i : graph.initializer()) defined.insert(i.name());
  for (const auto& n : graph.node()) {
    for (const auto& o : n.output()) defined.insert(o);
  }
  const auto use = [&](const std::string& name) {
    if (!name.empty() && defined.count(name) == 0 && seen->insert(name).second)
      out->push_back(name);
  };
  for (const auto& n : graph.node()) {
    for (const auto& i : n.input()) use(i);
    for (const auto& a : n.attribute()) {
      std::vector<std::string> inner;
      std::unordered_set<std::string> inner_seen;
      if (a.has_g()) FindCaptures(a.g(), &inner, &inner_seen, depth + 1);
      for (const auto& g : a.graphs()) FindCaptures(g, &inner, &inner_seen, depth + 1);
      for (const std::string& name : inner) use(name);
    }
  }
  for (const auto& o : graph.output()) use(o.name());
}

Result<ImportResult> Importer::Run() {
  MSRT_RETURN_IF_ERROR(CheckModel());
  MSRT_RETURN_IF_ERROR(FindFunctions());
  Module& module = out_.module;
  module.name = model_.graph().name();
  module.producer = StrCat(model_.producer_name(), model_.producer_version().empty() ? "" : " ",
                           model_.producer_version());
  for (const auto& p : model_.metadata_props()) module.metadata.emplace_back(p.key(), p.value());
  module.entries = {0};
  Scope scope;
  scope.opsets = &opsets_;
  MSRT_RETURN_IF_ERROR(BindSizes());
  MSRT_RETURN_IF_ERROR(ImportGraph(model_.mutable_graph(), nullptr, &scope));
  return std::move(out_);
}

Status Importer::CheckModel() {
  if (!model_.has_graph()) return InvalidModel("the file holds no ONNX graph");
  if (opsets_.empty()) return InvalidModel("the model imports no opset");
  if (model_.graph().output_size() == 0)
    return InvalidModel("graph '", model_.graph().name(), "' has no outputs");
  const auto main = opsets_.find("");
  if (main != opsets_.end() && main->second < kOldestOpset) {
    out_.problems.Add(
        "", main->second, "",
        StrCat("it uses opset ", main->second, ", the oldest that is read is ", kOldestOpset),
        "lift it with onnx.version_converter");
  }
  if (main != opsets_.end() && main->second > kNewestOpset) {
    out_.problems.Add(
        "", main->second, "",
        StrCat("it uses opset ", main->second, ", the newest that is known is ", kNewestOpset),
        StrCat("export it with opset ", kNewestOpset,
               " or older, or lower it with onnx.version_converter"));
  }
  return OkStatus();
}

Status Importer::FindFunctions() {
  for (auto& f : *model_.mutable_functions()) {
    const bool added = functions_
                           .try_emplace({Canonical(f.domain()), f.name(), f.overload()},
                                        Function{&f, OpsetsOf(f.opset_import())})
                           .second;
    if (!added)
      return InvalidModel("function '", FullName(f.domain(), f.name()), "' is there twice");
  }
  return OkStatus();
}

Status Importer::Spend(size_t bytes) {
  copied_bytes_ += bytes;
  if (copied_bytes_ <= max_copied_bytes_) return OkStatus();
  return LimitExceeded("functions and graphs, written out wherever they are used, take more than ",
                       max_copied_bytes_, " bytes");
}

Result<int64_t> Importer::OpsetOf(const std::string& domain, const Scope& scope) const {
  if (const auto own = scope.opsets->find(domain); own != scope.opsets->end()) return own->second;
  if (const auto model = opsets_.find(domain); model != opsets_.end()) return model->second;
  if (domain.empty()) return InvalidModel("the model imports no opset for the standard ops");
  return 1;
}

Status Importer::BindSizes() {
  std::unordered_set<std::string_view> weights;
  for (const auto& t : model_.graph().initializer()) weights.insert(t.name());
  std::vector<NamedType> inputs;
  for (const auto& input : model_.graph().input()) {
    if (weights.count(input.name()) != 0) continue;
    auto type = TypeOf(input.type(), &out_.module);  // errors are reported when it is imported
    if (type.ok()) inputs.push_back({input.name(), *std::move(type)});
  }
  MSRT_ASSIGN_OR_RETURN(sizes_, BoundSizes::Bind("--shape", options_.shapes, inputs, out_.module));
  return OkStatus();
}

Result<Type> Importer::Declared(const onnx::TypeProto& type) {
  MSRT_ASSIGN_OR_RETURN(Type declared, TypeOf(type, &out_.module));
  return sizes_.Apply(std::move(declared));
}

Status Importer::ImportGraph(onnx::GraphProto* graph, const InnerGraph* inner, Scope* scope) {
  if (scope->depth > kMaxNesting)
    return InvalidModel("graphs are nested more than ", kMaxNesting, " deep");
  scope->graph = static_cast<uint32_t>(out_.module.graphs.size());
  out_.module.graphs.emplace_back().name = graph->name();
  MSRT_RETURN_IF_ERROR(ImportInitializers(graph, scope));
  MSRT_RETURN_IF_ERROR(ImportInputs(*graph, inner, scope));
  if (inner != nullptr) AddCaptures(*inner, scope);
  MSRT_RETURN_IF_ERROR(ImportNodes(graph->mutable_node(), scope));
  return AddOutputs(*graph, scope);
}

void Importer::AddCaptures(const InnerGraph& inner, Scope* scope) {
  Graph& graph = GraphOf(*scope);
  for (const Capture& c : inner.captures) {
    const bool shadowed = scope->values.count(c.name) != 0;
    if (c.constant != nullptr) {
      if (!shadowed) scope->values[c.name] = graph.AddConstant(c.name, *c.constant);
      continue;
    }
    // All branches get the captures of each.
    const ValueId value = graph.AddInput(shadowed ? StrCat(c.name, " (outer)") : c.name, c.type);
    if (!shadowed) scope->values[c.name] = value;
    if (scope->optional_captures.count(c.name) != 0)
      optionals_.insert({scope->graph, IndexOf(value)});
  }
}

Status Importer::AddOutputs(const onnx::GraphProto& graph, Scope* scope) {
  std::set<ValueId> given;
  for (const auto& o : graph.output()) {
    const auto found = scope->values.find(o.name());
    if (found == scope->values.end())
      return InvalidModel("output '", o.name(), "' of graph '", graph.name(),
                          "' is made by no node");
    ValueId value = found->second;
    const bool declared_as_content =
        IsOptional(*scope, value) && o.has_type() && !o.type().has_optional_type();
    if (declared_as_content) {
      MSRT_ASSIGN_OR_RETURN(value, ContentOf(scope, value, o.name()));
    }
    MSRT_ASSIGN_OR_RETURN(const ValueId named,
                          Named(scope, value, o.name(), !given.insert(value).second));
    given.insert(named);
    GraphOf(*scope).outputs.push_back(named);
  }
  return OkStatus();
}

Result<ValueId> Importer::Named(Scope* scope, ValueId value, const std::string& name, bool twice) {
  Graph& graph = GraphOf(*scope);
  const bool needless =
      scope->graph != 0 || !graph.value(value).type.is_tensor() || IsUnknown(*scope, value);
  if (needless || (graph.value(value).name == name && !twice)) return value;
  MSRT_ASSIGN_OR_RETURN(const ValueId copy, GraphBuilder(&graph).Add("Identity", name, {value}));
  graph.value(copy).name = name;
  return copy;
}

Status Importer::ImportInitializers(onnx::GraphProto* graph, Scope* scope) {
  if (graph->sparse_initializer_size() != 0) {
    out_.problems.Add("", 0, "", "it has sparse initializers",
                      "make them dense with onnx before converting");
  }
  for (auto& t : *graph->mutable_initializer()) {
    const std::string name = t.name();
    auto tensor = TakeTensor(&t, external_);
    if (!tensor.ok()) {
      if (tensor.status().code() != Code::kUnsupported) return std::move(tensor).status();
      out_.problems.Add("", 0, name, tensor.status().message());
      MSRT_RETURN_IF_ERROR(Define(scope, name, Unknown(scope, name)));
      continue;
    }
    MSRT_RETURN_IF_ERROR(
        Define(scope, name, GraphOf(*scope).AddConstant(name, *std::move(tensor))));
  }
  return OkStatus();
}

Status Importer::ImportInputs(const onnx::GraphProto& graph, const InnerGraph* inner,
                              Scope* scope) {
  std::unordered_set<std::string_view> seen;
  for (int i = 0; i < graph.input_size(); ++i) {
    const auto& input = graph.input(i);
    if (!seen.insert(input.name()).second)
      return InvalidModel("two inputs of graph '", graph.name(), "' are called '", input.name(),
                          "'");
    if (scope->values.count(input.name()) != 0) continue;  // has a default value: an initializer
    // Symbols of inner graphs may have other sizes in every iteration.
    auto type = inner == nullptr ? Declared(input.type()) : TypeOf(input.type(), &out_.module);
    if (inner != nullptr && static_cast<size_t>(i) < inner->inputs.size()) {
      const Type& given = inner->inputs[static_cast<size_t>(i)];
      // The types of the arguments are more exact than those that the graph declares. If they
      // disagree, the declared ones may be those of later iterations.
      auto merged = type.ok() ? MergeTypes(*type, given) : Result<Type>(given);
      if (!type.ok() || !IsDeclared(*type) || inner->exact) type = given;
      else if (merged.ok()) type = *std::move(merged);
    }
    if (type.ok() && !IsDeclared(*type) && inner == nullptr) type = Unsupported("of no type");
    if (!type.ok()) {
      if (type.status().code() != Code::kUnsupported)
        return std::move(type).status().Within(StrCat("input '", input.name(), "'"));
      out_.problems.Add("", 0, input.name(),
                        StrCat("input '", input.name(), "' is ", type.status().message()));
      MSRT_RETURN_IF_ERROR(Define(scope, input.name(), Unknown(scope, input.name())));
      continue;
    }
    if (inner == nullptr) type = sizes_.OfInput(input.name(), *std::move(type));
    const ValueId value = GraphOf(*scope).AddInput(input.name(), *std::move(type));
    if (input.type().has_optional_type()) optionals_.insert({scope->graph, IndexOf(value)});
    MSRT_RETURN_IF_ERROR(Define(scope, input.name(), value));
  }
  return OkStatus();
}

Status Importer::Define(Scope* scope, const std::string& name, ValueId value) {
  if (name.empty()) return InvalidModel("an input or initializer has no name");
  if (name.size() > kMaxNameBytes) {
    return InvalidModel("the name '", Short(name), "' has ", name.size(), " bytes, at most ",
                        kMaxNameBytes, " are allowed");
  }
  if (scope->values.emplace(name, value).second) return OkStatus();
  return InvalidModel("two things make the value '", name, "'");
}

Result<std::vector<onnx::NodeProto*>> Importer::Ordered(Nodes* nodes, const Scope& scope) {
  std::unordered_map<std::string, size_t> maker;
  for (int i = 0; i < nodes->size(); ++i) {
    for (const auto& o : (*nodes)[i].output()) {
      if (!o.empty() && !maker.emplace(o, static_cast<size_t>(i)).second)
        return InvalidModel("two nodes make the value '", o, "'");
    }
  }
  std::vector<onnx::NodeProto*> order;
  std::vector<size_t> missing(static_cast<size_t>(nodes->size()));
  std::vector<std::vector<size_t>> readers(missing.size());
  for (size_t i = 0; i < missing.size(); ++i) {
    std::set<size_t> sources;
    for (const std::string& name : UsedNames((*nodes)[static_cast<int>(i)])) {
      const auto found = maker.find(name);
      if (found != maker.end() && scope.values.count(name) == 0) sources.insert(found->second);
    }
    missing[i] = sources.size();
    for (size_t s : sources) readers[s].push_back(i);
  }
  // In file order, which is kept where it is valid.
  std::set<size_t> ready;
  for (size_t i = 0; i < missing.size(); ++i) {
    if (missing[i] == 0) ready.insert(i);
  }
  while (!ready.empty()) {
    const size_t i = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(&(*nodes)[static_cast<int>(i)]);
    for (size_t reader : readers[i]) {
      if (--missing[reader] == 0) ready.insert(reader);
    }
  }
  for (size_t i = 0; i < missing.size(); ++i) {
    if (missing[i] != 0)
      return InvalidModel("node '", (*nodes)[static_cast<int>(i)].name(),
                          "' depends on itself: the graph has a circle");
  }
  return order;
}

std::vector<std::string> Importer::UsedNames(const onnx::NodeProto& node) {
  std::vector<std::string> names(node.input().begin(), node.input().end());
  std::unordered_set<std::string> seen;
  for (const auto& a : node.attribute()) {
    if (a.has_g()) FindCaptures(a.g(), &names, &seen, 0);
    for (const auto& g : a.graphs()) FindCaptures(g, &names, &seen, 0);
  }
  return names;
}

Status Importer::ImportNodes(Nodes* nodes, Scope* scope) {
  node_count_ += static_cast<size_t>(nodes->size());
  if (node_count_ > options_.max_nodes)
    return LimitExceeded("the model has more than ", options_.max_nodes, " nodes");
  MSRT_ASSIGN_OR_RETURN(const std::vector<onnx::NodeProto*> order, Ordered(nodes, *scope));
  for (onnx::NodeProto* node : order) {
    if (options_.progress)
      options_.progress("importing",
                        static_cast<double>(++imported_count_) / model_.graph().node_size());
    Status status = ImportNode(node, scope);
    if (!status.ok())
      return std::move(status).Within(
          StrCat("node '", Short(NodeName(*node, *scope)), "' (", Short(node->op_type()), ")"));
  }
  return OkStatus();
}

std::string Importer::NodeName(const onnx::NodeProto& node, const Scope& scope) {
  if (!node.name().empty()) return scope.prefix + node.name();
  for (const auto& o : node.output()) {
    if (!o.empty()) return scope.prefix + o;
  }
  return scope.prefix + node.op_type();
}

Status Importer::ImportNode(onnx::NodeProto* proto, Scope* scope) {
  NodeInFile node{proto, Canonical(proto->domain()), "", NodeName(*proto, *scope), 0};
  node.op = FullName(node.domain, proto->op_type());
  MSRT_ASSIGN_OR_RETURN(node.version, OpsetOf(node.domain, *scope));
  if (node.name.size() > kMaxNameBytes)
    return InvalidModel("its name has ", node.name.size(), " bytes, at most ", kMaxNameBytes,
                        " are allowed");
  if (proto->attribute_size() > kMaxAttributes) {
    return InvalidModel("it has ", proto->attribute_size(), " attributes, at most ", kMaxAttributes,
                        " are allowed");
  }
  MSRT_RETURN_IF_ERROR(Spend(scope->prefix.size() * static_cast<size_t>(1 + proto->output_size())));
  std::vector<ValueId> inputs;
  bool unknown = false;
  for (const auto& name : proto->input()) {
    if (name.empty()) {
      inputs.push_back(kNoValue);
      continue;
    }
    const auto found = scope->values.find(name);
    if (found == scope->values.end())
      return InvalidModel("input '", name, "' is made by no node, no initializer and no input");
    inputs.push_back(found->second);
    unknown |= IsUnknown(*scope, found->second);
  }
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  if (CallsGraphs(node)) return ImportControl(node, std::move(inputs), scope);
  const bool known = IsAboutOptionals(node) || FindLift(node.domain, proto->op_type()) != nullptr ||
                     FindOp(node.domain, proto->op_type()) != nullptr;
  const RegisteredImporter* rule = PluginRule(node);
  if (!known &&
      (rule != nullptr || FindOp(node.domain, proto->op_type(), options_.ops) != nullptr)) {
    return unknown ? DefineUnknown(*proto, scope)
                   : ImportByPlugin(node, rule, std::move(inputs), scope);
  }
  const auto function = functions_.find({node.domain, proto->op_type(), proto->overload()});
  if (!known && function != functions_.end()) return Expand(proto, function->second, inputs, scope);
  if (!known && (!options_.keep_unknown || unknown)) {
    const bool imported = scope->opsets->count(node.domain) != 0 || opsets_.count(node.domain) != 0;
    Problem(node, "the op is not known",
            CureForUnknownOp(node.domain, node.op, imported ? node.version : 0));
    return DefineUnknown(*proto, scope);
  }
  if (proto->output_size() == 0) return InvalidModel("it has no outputs");
  if (IsAboutOptionals(node))
    return unknown ? DefineUnknown(*proto, scope) : ImportOptional(node, inputs, scope);
  AttrList attrs;
  bool understood = true;
  for (auto& a : *proto->mutable_attribute())
    MSRT_RETURN_IF_ERROR(ImportAttr(&a, node, scope, &attrs, &understood));
  if (unknown || !understood) return DefineUnknown(*proto, scope);
  // Values that are no tensors are never copied.
  const bool copies = node.op == "Identity" && inputs.size() == 1 && inputs[0] != kNoValue &&
                      proto->output_size() == 1;
  if (copies && !GraphOf(*scope).value(inputs[0]).type.is_tensor()) {
    return Define(scope, proto->output(0), inputs[0]);
  }
  return known ? Lift(node, std::move(inputs), std::move(attrs), scope)
               : Keep(node, std::move(inputs), std::move(attrs), scope);
}

Status Importer::Keep(const NodeInFile& node, std::vector<ValueId> inputs, AttrList attrs,
                      Scope* scope) {
  const onnx::NodeProto& proto = *node.proto;
  std::vector<Type> declared;
  for (const auto& name : proto.output()) {
    const onnx::TypeProto* given = scope->depth == 0 ? DeclaredType(model_.graph(), name) : nullptr;
    auto type = given != nullptr ? Declared(*given) : Result<Type>(UndeclaredType());
    if (!type.ok() || !IsDeclared(*type)) {
      Problem(node,
              StrCat("the op is not known, and the model does not declare the type of its output '",
                     name, "'"),
              "declare it as value_info of the main graph");
      return DefineUnknown(proto, scope);
    }
    declared.push_back(*std::move(type));
  }
  const size_t count = declared.size();
  auto added = GraphBuilder(&GraphOf(*scope))
                   .Add(node.domain, proto.op_type(), node.name, std::move(inputs),
                        std::move(attrs), count, std::move(declared));
  if (!added.ok()) {
    Problem(node, std::string(added.status().message()), "");
    return DefineUnknown(proto, scope);
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    const ValueId value = (*added)[static_cast<size_t>(i)];
    GraphOf(*scope).value(value).name = proto.output(i);
    MSRT_RETURN_IF_ERROR(Define(scope, proto.output(i), value));
  }
  return OkStatus();
}

const RegisteredImporter* Importer::PluginRule(const NodeInFile& node) const {
  const auto rule = std::find_if(options_.importers.begin(), options_.importers.end(),
                                 [&](const RegisteredImporter& r) {
                                   return r.domain == node.domain && r.op == node.proto->op_type();
                                 });
  return rule == options_.importers.end() ? nullptr : &*rule;
}

Status Importer::ImportByPlugin(const NodeInFile& node, const RegisteredImporter* rule,
                                std::vector<ValueId> inputs, Scope* scope) {
  onnx::NodeProto& proto = *node.proto;
  Node given;
  bool understood = true;
  for (auto& a : *proto.mutable_attribute())
    MSRT_RETURN_IF_ERROR(ImportAttr(&a, node, scope, &given.attrs, &understood));
  if (!understood) return DefineUnknown(proto, scope);
  given.name = node.name;
  given.domain = node.domain;
  given.op = proto.op_type();
  given.version = static_cast<int32_t>(node.version);
  given.inputs = std::move(inputs);
  given.outputs.assign(static_cast<size_t>(proto.output_size()), kNoValue);
  Graph& graph = GraphOf(*scope);
  auto outputs = rule != nullptr ? rule->Import(given, &graph, options_.ops, *options_.evaluator)
                                 : GraphBuilder(&graph, options_.ops)
                                       .Add(given.domain, given.op, given.name, given.inputs,
                                            given.attrs, given.outputs.size());
  if (!outputs.ok()) {
    Problem(node, std::string(outputs.status().message()), "");
    return DefineUnknown(proto, scope);
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    if (!proto.output(i).empty())
      MSRT_RETURN_IF_ERROR(Define(scope, proto.output(i), (*outputs)[static_cast<size_t>(i)]));
  }
  return OkStatus();
}

Status Importer::Lift(const NodeInFile& node, std::vector<ValueId> inputs, AttrList attrs,
                      Scope* scope) {
  const onnx::NodeProto& proto = *node.proto;
  const size_t values_before = GraphOf(*scope).value_count();
  NodeLift lift(&GraphOf(*scope), node.domain, proto.op_type(), node.version, node.name,
                std::move(inputs), std::move(attrs),
                {proto.output().begin(), proto.output().end()});
  lift.set_for_training(options_.for_training);
  const LiftFn rule = FindLift(node.domain, proto.op_type());
  Status status = rule != nullptr ? rule(lift) : lift.Pass();
  if (!status.ok()) {
    // Invalid use of an op is reported with the rest, so that one run shows all problems.
    if (status.code() == Code::kOutOfMemory || status.code() == Code::kLimitExceeded) return status;
    Problem(node, std::string(status.message()),
            status.code() == Code::kInvalidModel ? kCureForWrongFile : "");
    return DefineUnknown(proto, scope);
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    if (proto.output(i).empty()) continue;
    const ValueId value = lift.outputs()[static_cast<size_t>(i)];
    if (value == kNoValue) {
      Problem(node, StrCat("its output ", i, " is not supported"), "");
      MSRT_RETURN_IF_ERROR(Define(scope, proto.output(i), Unknown(scope, proto.output(i))));
      continue;
    }
    // A rule may return an input as the output, which keeps its name.
    if (IndexOf(value) >= values_before)
      GraphOf(*scope).value(value).name = scope->prefix + proto.output(i);
    MSRT_RETURN_IF_ERROR(Define(scope, proto.output(i), value));
  }
  return OkStatus();
}

void Importer::Problem(const NodeInFile& node, std::string reason, std::string cure) {
  out_.problems.Add(node.op, node.version, node.name, std::move(reason), std::move(cure));
}

Status Importer::DefineUnknown(const onnx::NodeProto& node, Scope* scope) {
  for (const auto& o : node.output()) {
    if (!o.empty()) MSRT_RETURN_IF_ERROR(Define(scope, o, Unknown(scope, o)));
  }
  return OkStatus();
}

onnx::AttributeProto* Importer::Resolve(onnx::AttributeProto* given, const Scope& scope,
                                        onnx::AttributeProto* copy) const {
  if (!given->ref_attr_name().empty()) {
    const auto bound = scope.bindings.find(given->ref_attr_name());
    if (bound == scope.bindings.end() || bound->second == nullptr) return nullptr;
    *copy = *bound->second;
    copy->set_name(given->name());
    return copy;
  }
  if (scope.bindings.empty() && scope.prefix.empty()) return given;
  *copy = *given;  // importing moves tensors out, and the function may be expanded again
  return copy;
}

Status Importer::ImportAttr(onnx::AttributeProto* given, const NodeInFile& node, Scope* scope,
                            AttrList* attrs, bool* understood) {
  onnx::AttributeProto copy;
  onnx::AttributeProto* a = Resolve(given, *scope, &copy);
  if (a == nullptr) return OkStatus();
  auto value = AttrOf(a, external_);
  if (attrs->Find(a->name()) != nullptr)
    return InvalidModel("attribute '", a->name(), "' is there twice");
  if (value.ok()) {
    attrs->Set(a->name(), *std::move(value));
    return OkStatus();
  }
  if (value.status().code() != Code::kUnsupported) return std::move(value).status();
  Problem(node, StrCat("attribute '", a->name(), "': ", value.status().message()), "");
  *understood = false;
  return OkStatus();
}

Status Importer::Expand(onnx::NodeProto* call, const Function& function,
                        const std::vector<ValueId>& inputs, Scope* scope) {
  if (scope->depth >= kMaxNesting)
    return InvalidModel("functions call each other more than ", kMaxNesting, " deep");
  const onnx::FunctionProto& f = *function.proto;
  for (const Scope* s = scope; s != nullptr; s = s->caller) {
    if (s->function == &f)
      return InvalidModel("function '", FullName(f.domain(), f.name()), "' calls itself");
  }
  MSRT_RETURN_IF_ERROR(Spend(f.ByteSizeLong()));
  Scope inner;
  inner.graph = scope->graph;
  inner.opsets = &function.opsets;
  inner.prefix = NodeName(*call, *scope) + "/";
  inner.depth = scope->depth + 1;
  inner.caller = scope;
  inner.function = &f;
  if (inputs.size() > static_cast<size_t>(f.input_size()))
    return InvalidModel("function takes ", f.input_size(), " inputs, gets ", inputs.size());
  for (int i = 0; i < f.input_size(); ++i) {
    const bool given =
        static_cast<size_t>(i) < inputs.size() && inputs[static_cast<size_t>(i)] != kNoValue;
    if (given) inner.values[f.input(i)] = inputs[static_cast<size_t>(i)];
  }
  for (const std::string& name : f.attribute()) inner.bindings[name] = nullptr;
  for (const auto& a : f.attribute_proto()) inner.bindings[a.name()] = &a;
  for (const auto& a : call->attribute()) {
    if (a.ref_attr_name().empty()) inner.bindings[a.name()] = &a;
    else if (const auto outer = scope->bindings.find(a.ref_attr_name());
             outer != scope->bindings.end())
      inner.bindings[a.name()] = outer->second;
  }
  Nodes body = f.node();
  // An input that the call omits is omitted for the nodes that read it.
  const std::unordered_set<std::string_view> formal(f.input().begin(), f.input().end());
  for (auto& n : body) {
    for (auto& i : *n.mutable_input()) {
      if (formal.count(i) != 0 && inner.values.count(i) == 0) i.clear();
    }
  }
  MSRT_RETURN_IF_ERROR(ImportNodes(&body, &inner));
  for (int i = 0; i < call->output_size(); ++i) {
    if (call->output(i).empty()) continue;
    if (i >= f.output_size())
      return InvalidModel("function gives ", f.output_size(), " outputs, output ", i, " is wanted");
    const auto found = inner.values.find(f.output(i));
    if (found == inner.values.end())
      return InvalidModel("output '", f.output(i), "' of function '", f.name(),
                          "' is made by no node");
    MSRT_RETURN_IF_ERROR(Define(scope, call->output(i), found->second));
  }
  return OkStatus();
}

namespace {

// `mapped_by`: see FileStream.
Result<ImportResult> ImportFrom(std::span<const std::byte> bytes, Io* mapped_by,
                                const std::string& path, const ImportOptions& options, Io* io) {
  if (bytes.size() > static_cast<size_t>(INT32_MAX)) {
    return InvalidModel(
        "the file has ", bytes.size(),
        " bytes; an ONNX file ends at 2 GiB, larger weights belong into external data");
  }
  onnx::ModelProto model;
  FileStream stream(bytes, mapped_by, [&](double part) {
    if (options.progress) options.progress("reading", part);
  });
  MSRT_RETURN_IF_ERROR(ParseMessage(&stream, "ONNX", kMaxMessageDepth, &model));
  return Importer(&model, path, options, io).Run();
}

}  // namespace

Result<ImportResult> ImportBytes(std::span<const std::byte> bytes, const std::string& path,
                                 const ImportOptions& options, Io* io) {
  return ImportFrom(bytes, nullptr, path, options, io);
}

Result<ImportResult> ImportFile(const std::string& path, const ImportOptions& options, Io* io) {
  MSRT_ASSIGN_OR_RETURN(const Bytes bytes, io->MapFile(path));
  auto imported = ImportFrom(bytes.data, io, path, options, io);
  if (!imported.ok()) return std::move(imported).status().Within(StrCat("model '", path, "'"));
  return imported;
}

}  // namespace msrt::onnx_import

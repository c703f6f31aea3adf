#include "tools/msconvert/onnx/importer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "onnx-ml.pb.h"
#include "ops/registry.h"
#include "tools/msconvert/onnx/external_data.h"
#include "tools/msconvert/onnx/lift.h"
#include "tools/msconvert/onnx/proto_import.h"

namespace msrt::onnx_import {
namespace {

constexpr int64_t kOldestOpset = 1;
constexpr int kDeepestNesting = 64;
constexpr size_t kMostNodes = 1'000'000;

std::string Canonical(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }
std::string FullName(const std::string& domain, const std::string& op) { return domain.empty() ? op : StrCat(domain, ".", op); }

using Opsets = std::map<std::string, int64_t>;

template <typename Imports>
Opsets OpsetsOf(const Imports& imports) {
  Opsets opsets;
  for (const auto& import : imports) opsets[Canonical(import.domain())] = import.version();
  return opsets;
}

// Names in one graph, or in one expanded function.
struct Scope {
  uint32_t graph = 0;  // of the module
  const Opsets* opsets = nullptr;
  std::unordered_map<std::string, ValueId> values;
  std::map<std::string, const onnx::AttributeProto*> bindings;  // a function's attributes; null: not given
  std::string prefix;                                           // of node names in an expanded function
  int depth = 0;
};

// Names that a graph uses and does not define: what it captures.
void FindCaptures(const onnx::GraphProto& graph, std::vector<std::string>* out, std::unordered_set<std::string>* seen, int depth) {
  if (depth > kDeepestNesting) return;  // refused where it is imported
  std::unordered_set<std::string> defined;
  for (const auto& i : graph.input()) defined.insert(i.name());
  for (const auto& i : graph.initializer()) defined.insert(i.name());
  for (const auto& n : graph.node()) {
    for (const auto& o : n.output()) defined.insert(o);
  }
  const auto use = [&](const std::string& name) {
    if (!name.empty() && defined.count(name) == 0 && seen->insert(name).second) out->push_back(name);
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

class Importer {
 public:
  Importer(onnx::ModelProto* model, const std::string& path, const ImportOptions& options, Io* io)
      : model_(*model), options_(options), external_(path, io), opsets_(OpsetsOf(model->opset_import())) {}

  Result<Imported> Run() {
    MSRT_RETURN_IF_ERROR(CheckModel());
    for (auto& f : *model_.mutable_functions()) {
      functions_[{Canonical(f.domain()), f.name(), f.overload()}] = {&f, OpsetsOf(f.opset_import())};
    }
    Module& module = out_.module;
    module.name = model_.graph().name();
    module.producer = StrCat(model_.producer_name(), model_.producer_version().empty() ? "" : " ", model_.producer_version());
    for (const auto& p : model_.metadata_props()) module.metadata.emplace_back(p.key(), p.value());
    module.entries = {0};
    Scope scope;
    scope.opsets = &opsets_;
    MSRT_RETURN_IF_ERROR(ImportGraph(model_.mutable_graph(), {}, &scope));
    MSRT_RETURN_IF_ERROR(CheckShapesWereUsed());
    return std::move(out_);
  }

 private:
  struct Function {
    onnx::FunctionProto* proto = nullptr;
    Opsets opsets;
  };

  Status CheckModel() {
    if (!model_.has_graph()) return InvalidModel("the file holds no ONNX graph");
    if (opsets_.empty()) return InvalidModel("the model imports no opset");
    const auto main = opsets_.find("");
    if (main != opsets_.end() && main->second < kOldestOpset) {
      out_.problems.Add("", main->second, "", StrCat("it uses opset ", main->second, ", the oldest that is read is ", kOldestOpset),
                        "lift it with onnx.version_converter");
    }
    return OkStatus();
  }

  Status CheckShapesWereUsed() const {
    for (const auto& [name, dims] : options_.shapes) {
      const auto& inputs = model_.graph().input();
      if (std::any_of(inputs.begin(), inputs.end(), [&](const auto& i) { return i.name() == name; })) continue;
      return NotFound("--shape ", name, ": the model has no input of that name");
    }
    return OkStatus();
  }

  Graph& GraphOf(const Scope& scope) { return out_.module.graphs[scope.graph]; }

  // Fills a new graph of the module; `captures` become inputs after the graph's own.
  Status ImportGraph(onnx::GraphProto* graph, const std::vector<std::pair<std::string, Type>>& captures, Scope* scope) {
    if (scope->depth > kDeepestNesting) return InvalidModel("graphs are nested more than ", kDeepestNesting, " deep");
    scope->graph = static_cast<uint32_t>(out_.module.graphs.size());
    out_.module.graphs.emplace_back().name = graph->name();
    MSRT_RETURN_IF_ERROR(ImportInitializers(graph, scope));
    MSRT_RETURN_IF_ERROR(ImportInputs(*graph, scope));
    for (const auto& [name, type] : captures) {
      if (scope->values.count(name) == 0) scope->values[name] = GraphOf(*scope).AddInput(name, type);
    }
    MSRT_RETURN_IF_ERROR(ImportNodes(graph->mutable_node(), scope));
    for (const auto& o : graph->output()) {
      const auto found = scope->values.find(o.name());
      if (found == scope->values.end()) return InvalidModel("output '", o.name(), "' of graph '", graph->name(), "' is made by no node");
      MSRT_ASSIGN_OR_RETURN(const ValueId named, Named(scope, found->second, o.name()));
      GraphOf(*scope).outputs.push_back(named);
    }
    return OkStatus();
  }

  // Outputs of the model are found by name, so each has a value of that name, even if it is only a copy of another.
  Result<ValueId> Named(Scope* scope, ValueId value, const std::string& name) {
    Graph& graph = GraphOf(*scope);
    const bool twice = std::find(graph.outputs.begin(), graph.outputs.end(), value) != graph.outputs.end();
    if (IsUnknown(*scope, value) || (graph.value(value).name == name && !twice)) return value;
    MSRT_ASSIGN_OR_RETURN(const ValueId copy, GraphBuilder(&graph).Add("Identity", name, {value}));
    graph.value(copy).name = name;
    return copy;
  }

  Status ImportInitializers(onnx::GraphProto* graph, Scope* scope) {
    if (graph->sparse_initializer_size() != 0) {
      out_.problems.Add("", 0, "", "it has sparse initializers", "make them dense with onnx before converting");
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
      MSRT_RETURN_IF_ERROR(Define(scope, name, GraphOf(*scope).AddConstant(name, *std::move(tensor))));
    }
    return OkStatus();
  }

  Status ImportInputs(const onnx::GraphProto& graph, Scope* scope) {
    for (const auto& input : graph.input()) {
      if (scope->values.count(input.name()) != 0) continue;  // has a value: an initializer that could be overridden
      auto type = TypeOf(input.type(), &out_.module);
      if (!type.ok()) {
        if (type.status().code() != Code::kUnsupported) return std::move(type).status().Within(StrCat("input '", input.name(), "'"));
        out_.problems.Add("", 0, input.name(), StrCat("input '", input.name(), "' is ", type.status().message()));
        MSRT_RETURN_IF_ERROR(Define(scope, input.name(), Unknown(scope, input.name())));
        continue;
      }
      if (const auto given = options_.shapes.find(input.name()); given != options_.shapes.end() && scope->graph == 0) {
        auto merged = MergeTypes(*type, Type::Tensor(type->dtype, given->second));
        if (!merged.ok()) return InvalidArgument("--shape ", input.name(), ": the model declares ", *type, ": ", merged.status().message());
        type->rank_known = true;
        type->dims = given->second;
      }
      MSRT_RETURN_IF_ERROR(Define(scope, input.name(), GraphOf(*scope).AddInput(input.name(), *std::move(type))));
    }
    return OkStatus();
  }

  // A value about which nothing is known, because what makes it could not be converted. What depends on it is looked at, not converted.
  ValueId Unknown(Scope* scope, const std::string& name) { return GraphOf(*scope).AddValue(name, UndeclaredType()); }
  bool IsUnknown(const Scope& scope, ValueId v) { return v != kNoValue && !IsDeclared(GraphOf(scope).value(v).type); }

  Status Define(Scope* scope, const std::string& name, ValueId value) {
    if (scope->values.emplace(name, value).second) return OkStatus();
    return InvalidModel("two things make the value '", name, "'");
  }

  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  // In an order in which they can run: the file should have one, and what has none is a circle.
  Result<std::vector<onnx::NodeProto*>> Ordered(Nodes* nodes, const Scope& scope) {
    std::unordered_map<std::string, size_t> maker;
    for (int i = 0; i < nodes->size(); ++i) {
      for (const auto& o : (*nodes)[i].output()) {
        if (!o.empty() && !maker.emplace(o, static_cast<size_t>(i)).second) return InvalidModel("two nodes make the value '", o, "'");
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
    // The file's own order wherever it is one.
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
        return InvalidModel("node '", (*nodes)[static_cast<int>(i)].name(), "' depends on itself: the graph has a circle");
    }
    return order;
  }

  static std::vector<std::string> UsedNames(const onnx::NodeProto& node) {
    std::vector<std::string> names(node.input().begin(), node.input().end());
    std::unordered_set<std::string> seen;
    for (const auto& a : node.attribute()) {
      if (a.has_g()) FindCaptures(a.g(), &names, &seen, 0);
      for (const auto& g : a.graphs()) FindCaptures(g, &names, &seen, 0);
    }
    return names;
  }

  Status ImportNodes(Nodes* nodes, Scope* scope) {
    MSRT_ASSIGN_OR_RETURN(const std::vector<onnx::NodeProto*> order, Ordered(nodes, *scope));
    for (onnx::NodeProto* node : order) {
      if (++node_count_ > kMostNodes) return LimitExceeded("the model has more than ", kMostNodes, " nodes");
      Status status = ImportNode(node, scope);
      if (!status.ok()) return std::move(status).Within(StrCat("node '", NodeName(*node, *scope), "' (", node->op_type(), ")"));
    }
    return OkStatus();
  }

  static std::string NodeName(const onnx::NodeProto& node, const Scope& scope) {
    if (!node.name().empty()) return scope.prefix + node.name();
    for (const auto& o : node.output()) {
      if (!o.empty()) return scope.prefix + o;
    }
    return scope.prefix + node.op_type();
  }

  Status ImportNode(onnx::NodeProto* node, Scope* scope) {
    const std::string domain = Canonical(node->domain());
    const auto opset = scope->opsets->find(domain);
    std::vector<ValueId> inputs;
    bool unknown = false;
    for (const auto& name : node->input()) {
      if (name.empty()) {
        inputs.push_back(kNoValue);
        continue;
      }
      const auto found = scope->values.find(name);
      if (found == scope->values.end()) return InvalidModel("input '", name, "' is made by no node, no initializer and no input");
      inputs.push_back(found->second);
      unknown |= IsUnknown(*scope, found->second);
    }
    while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
    const bool known = FindLift(domain, node->op_type()) != nullptr || FindOp(domain, node->op_type()) != nullptr;
    const auto function = functions_.find({domain, node->op_type(), node->overload()});
    if (!known && function != functions_.end()) return Expand(node, function->second, inputs, scope);
    const int64_t version = opset == scope->opsets->end() ? 0 : opset->second;
    const std::string op = FullName(domain, node->op_type());
    const auto skip = [&] { return DefineUnknown(*node, scope); };
    if (!known) {
      Problem(op, version, *node, *scope, "the op is not known", "register a kernel for it, or expand it into standard ops");
      return skip();
    }
    AttrList attrs;
    bool understood = true;
    for (auto& a : *node->mutable_attribute())
      MSRT_RETURN_IF_ERROR(ImportAttr(&a, op, version, *node, scope, &attrs, &inputs, &understood));
    if (unknown || !understood) return skip();
    return Lift(*node, op, domain, version, std::move(inputs), std::move(attrs), scope);
  }

  Status Lift(const onnx::NodeProto& node, const std::string& op, const std::string& domain, int64_t version, std::vector<ValueId> inputs,
              AttrList attrs, Scope* scope) {
    const size_t values_before = GraphOf(*scope).value_count();
    NodeLift lift(&GraphOf(*scope), domain, node.op_type(), version, NodeName(node, *scope), std::move(inputs), std::move(attrs),
                  {node.output().begin(), node.output().end()});
    const LiftFn rule = FindLift(domain, node.op_type());
    Status status = rule != nullptr ? rule(lift) : lift.Pass();
    if (!status.ok()) {
      // Wrong use of an op is reported with the rest, so that one run shows all of it.
      if (status.code() == Code::kOutOfMemory || status.code() == Code::kLimitExceeded) return status;
      Problem(op, version, node, *scope, status.message(), "");
      return DefineUnknown(node, scope);
    }
    for (int i = 0; i < node.output_size(); ++i) {
      if (node.output(i).empty()) continue;
      const ValueId value = lift.outputs()[static_cast<size_t>(i)];
      if (value == kNoValue) {
        Problem(op, version, node, *scope, StrCat("its output ", i, " is not supported"), "");
        MSRT_RETURN_IF_ERROR(Define(scope, node.output(i), Unknown(scope, node.output(i))));
        continue;
      }
      // A rule may hand an input on; then the name stays what it was.
      if (IndexOf(value) >= values_before) GraphOf(*scope).value(value).name = scope->prefix + node.output(i);
      MSRT_RETURN_IF_ERROR(Define(scope, node.output(i), value));
    }
    return OkStatus();
  }

  void Problem(const std::string& op, int64_t version, const onnx::NodeProto& node, const Scope& scope, std::string reason,
               std::string cure) {
    out_.problems.Add(op, version, NodeName(node, scope), std::move(reason), std::move(cure));
  }

  Status DefineUnknown(const onnx::NodeProto& node, Scope* scope) {
    for (const auto& o : node.output()) {
      if (!o.empty()) MSRT_RETURN_IF_ERROR(Define(scope, o, Unknown(scope, o)));
    }
    return OkStatus();
  }

  // An attribute of a node. Graphs are imported as graphs of the module, and what they capture becomes inputs of the node.
  Status ImportAttr(onnx::AttributeProto* given, const std::string& op, int64_t version, const onnx::NodeProto& node, Scope* scope,
                    AttrList* attrs, std::vector<ValueId>* inputs, bool* understood) {
    onnx::AttributeProto copy;  // tensors are taken out of what is imported; a function may be expanded again
    onnx::AttributeProto* a = given;
    if (!given->ref_attr_name().empty()) {
      const auto bound = scope->bindings.find(given->ref_attr_name());
      if (bound == scope->bindings.end() || bound->second == nullptr) return OkStatus();
      copy = *bound->second;
      copy.set_name(given->name());
      a = &copy;
    } else if (!scope->bindings.empty() || !scope->prefix.empty()) {
      copy = *given;
      a = &copy;
    }
    if (a->type() == onnx::AttributeProto::GRAPH || a->type() == onnx::AttributeProto::GRAPHS) {
      return ImportGraphAttr(a, scope, attrs, inputs);
    }
    auto value = AttrOf(a, external_);
    if (value.ok()) {
      attrs->Set(a->name(), *std::move(value));
      return OkStatus();
    }
    if (value.status().code() != Code::kUnsupported) return std::move(value).status();
    Problem(op, version, node, *scope, StrCat("attribute '", a->name(), "': ", value.status().message()), "");
    *understood = false;
    return OkStatus();
  }

  Status ImportGraphAttr(onnx::AttributeProto* a, Scope* scope, AttrList* attrs, std::vector<ValueId>* inputs) {
    std::vector<onnx::GraphProto*> graphs;
    if (a->type() == onnx::AttributeProto::GRAPH) graphs.push_back(a->mutable_g());
    for (auto& g : *a->mutable_graphs()) graphs.push_back(&g);
    std::vector<GraphRef> refs;
    for (onnx::GraphProto* g : graphs) {
      std::vector<std::string> names;
      std::unordered_set<std::string> seen;
      FindCaptures(*g, &names, &seen, 0);
      std::vector<std::pair<std::string, Type>> captures;
      for (const std::string& name : names) {
        const auto found = scope->values.find(name);
        if (found == scope->values.end()) return InvalidModel("graph '", g->name(), "' uses '", name, "', which nobody makes");
        captures.emplace_back(name, GraphOf(*scope).value(found->second).type);
        inputs->push_back(found->second);
      }
      Scope inner;
      inner.opsets = scope->opsets;
      inner.bindings = scope->bindings;
      inner.prefix = scope->prefix;
      inner.depth = scope->depth + 1;
      MSRT_RETURN_IF_ERROR(ImportGraph(g, captures, &inner));
      refs.push_back({inner.graph});
    }
    if (a->type() == onnx::AttributeProto::GRAPH) attrs->Set(a->name(), refs[0]);
    else attrs->Set(a->name(), refs);
    return OkStatus();
  }

  // A model-local function, written out where it is called.
  Status Expand(onnx::NodeProto* call, const Function& function, const std::vector<ValueId>& inputs, Scope* scope) {
    if (scope->depth >= kDeepestNesting) return InvalidModel("functions call each other more than ", kDeepestNesting, " deep");
    const onnx::FunctionProto& f = *function.proto;
    Scope inner;
    inner.graph = scope->graph;
    inner.opsets = &function.opsets;
    inner.prefix = NodeName(*call, *scope) + "/";
    inner.depth = scope->depth + 1;
    if (inputs.size() > static_cast<size_t>(f.input_size()))
      return InvalidModel("function takes ", f.input_size(), " inputs, gets ", inputs.size());
    for (int i = 0; i < f.input_size(); ++i) {
      const bool given = static_cast<size_t>(i) < inputs.size() && inputs[static_cast<size_t>(i)] != kNoValue;
      if (given) inner.values[f.input(i)] = inputs[static_cast<size_t>(i)];
    }
    for (const std::string& name : f.attribute()) inner.bindings[name] = nullptr;
    for (const auto& a : f.attribute_proto()) inner.bindings[a.name()] = &a;
    for (const auto& a : call->attribute()) {
      if (a.ref_attr_name().empty()) inner.bindings[a.name()] = &a;
      else if (const auto outer = scope->bindings.find(a.ref_attr_name()); outer != scope->bindings.end())
        inner.bindings[a.name()] = outer->second;
    }
    Nodes body = f.node();
    // An input that the call leaves out is left out by those who read it.
    for (auto& n : body) {
      for (auto& i : *n.mutable_input()) {
        const bool formal = std::find(f.input().begin(), f.input().end(), i) != f.input().end();
        if (formal && inner.values.count(i) == 0) i.clear();
      }
    }
    MSRT_RETURN_IF_ERROR(ImportNodes(&body, &inner));
    for (int i = 0; i < call->output_size(); ++i) {
      if (call->output(i).empty()) continue;
      if (i >= f.output_size()) return InvalidModel("function gives ", f.output_size(), " outputs, output ", i, " is wanted");
      const auto found = inner.values.find(f.output(i));
      if (found == inner.values.end()) return InvalidModel("output '", f.output(i), "' of function '", f.name(), "' is made by no node");
      MSRT_RETURN_IF_ERROR(Define(scope, call->output(i), found->second));
    }
    return OkStatus();
  }

  onnx::ModelProto& model_;
  const ImportOptions& options_;
  const ExternalData external_;
  const Opsets opsets_;
  std::map<std::tuple<std::string, std::string, std::string>, Function> functions_;  // by domain, name, overload
  size_t node_count_ = 0;
  Imported out_;
};

}  // namespace

Result<Imported> ImportBytes(std::span<const std::byte> bytes, const std::string& path, const ImportOptions& options, Io* io) {
  if (bytes.size() > static_cast<size_t>(INT32_MAX)) {
    return InvalidModel("the file has ", bytes.size(), " bytes; an ONNX file ends at 2 GiB, larger weights belong into external data");
  }
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(INT32_MAX);
  onnx::ModelProto model;
  if (!model.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) return InvalidModel("the bytes are no ONNX model (protobuf)");
  return Importer(&model, path, options, io).Run();
}

Result<Imported> ImportFile(const std::string& path, const ImportOptions& options, Io* io) {
  MSRT_ASSIGN_OR_RETURN(const Bytes bytes, io->MapFile(path));
  auto imported = ImportBytes(bytes.data, path, options, io);
  if (!imported.ok()) return std::move(imported).status().Within(StrCat("model '", path, "'"));
  return imported;
}

}  // namespace msrt::onnx_import

#include "tools/msconvert/mindir/import_model.h"

#include <algorithm>
#include <set>

#include "tools/msconvert/file_stream.h"
#include "tools/msconvert/messages.h"
#include "tools/msconvert/mindir/import_rule.h"

namespace msrt::mindir_import {
namespace {

constexpr int64_t kNewestVersion = 3;
constexpr int kMaxMessageDepth = 200;  // a tuple in a tuple takes one level

const mindir::AttributeProto* DeclarationOf(const mindir::NodeProto& node) {
  for (const auto& a : node.attribute()) {
    if (a.name() == "shape") return &a;
  }
  return nullptr;
}

// Returns the names of the results, which msconvert writes and MindSpore does not. Empty if there
// are none or they are not unique.
std::vector<std::string> NamesOfResults(const mindir::GraphProto& graph, size_t count) {
  std::vector<std::string> names;
  if (graph.output_size() == 1 && graph.output(0).tensor_size() == 1)
    names.push_back(graph.output(0).tensor(0).name());
  else if (graph.output_size() == 1) {
    for (const auto& value : graph.output(0).attr_info().values()) names.push_back(value.name());
  }
  std::set<std::string> distinct(names.begin(), names.end());
  return names.size() == count && distinct.size() == count && !distinct.contains("")
             ? names
             : std::vector<std::string>();
}

constexpr const char* kCureForWrongFile =
    "the file breaks MindIR's rules here: export it again with mindspore.export";

}  // namespace

Importer::Importer(mindir::ModelProto* model, const std::string& path, const ImportOptions& options,
                   Io* io)
    : model_(*model), options_(options), external_(path, io) {}

Status Importer::CheckModel() const {
  if (!model_.has_graph()) return InvalidModel("the file holds no MindIR graph");
  if (model_.mind_ir_version() < 0 || model_.mind_ir_version() > kNewestVersion) {
    return Unsupported("the file has version ", model_.mind_ir_version(),
                       " of MindIR, the newest that is read is ", kNewestVersion,
                       ": export it with an older MindSpore, or update msrt");
  }
  if (model_.has_little_endian() && !model_.little_endian())
    return Unsupported("the file was written on a big-endian machine");
  return OkStatus();
}

Result<ImportResult> Importer::Run() {
  MSRT_RETURN_IF_ERROR(CheckModel());
  MSRT_ASSIGN_OR_RETURN(file_, ModelFile::Of(&model_));
  MSRT_RETURN_IF_ERROR(ReadWeights());
  do {
    out_ = ImportResult();
    MSRT_RETURN_IF_ERROR(ImportAll());
  } while (AssignSlots());
  return std::move(out_);
}

Status Importer::ReadWeights() {
  std::set<std::string> names;
  for (mindir::TensorProto* t : file_.weights()) {
    Weights::Entry entry;
    entry.name = t->ref_key().empty() ? ModelFile::Short(t->name()) : t->ref_key();
    if (!names.insert(entry.name).second) entry.name = t->name();
    auto weight = TakeTensor(t, external_);
    if (weight.ok()) entry.weight = *std::move(weight);
    else if (weight.status().code() == Code::kUnsupported) entry.wrong = std::move(weight).status();
    else return std::move(weight).status();
    weights_.entries.push_back(std::move(entry));
  }
  return OkStatus();
}

bool Importer::AssignSlots() {
  int64_t slots = 0;
  bool changed = false;
  for (Weights::Entry& e : weights_.entries) {
    if (!e.assigned || !e.wrong.ok()) continue;
    changed |= e.slot < 0;
    e.slot = slots++;
  }
  return changed;
}

Status Importer::ImportAll() {
  todo_.clear();
  instances_.clear();
  node_count_ = 0;
  passed_values_ = 0;
  Module& module = out_.module;
  module.name = model_.graph().name();
  module.producer = StrCat(model_.producer_name(), model_.model_version().empty() ? "" : " ",
                           model_.model_version());
  for (const auto& [key, value] : model_.user_info()) module.metadata.emplace_back(key, value);
  std::sort(module.metadata.begin(), module.metadata.end());
  for (const Weights::Entry& e : weights_.entries) {
    if (e.slot >= 0) module.states.push_back({e.name, e.weight.data.type(), e.weight.data});
  }
  Instance main;
  MSRT_ASSIGN_OR_RETURN(main.inputs, MainInputs(&main.arguments));
  MSRT_ASSIGN_OR_RETURN(main.callee, Compound(ItemKind::kFunction, {}, 0));
  main.whole = true;
  main.name = module.name;
  module.entries = {0};
  MSRT_RETURN_IF_ERROR(AddInstance(std::move(main)).status());
  size_t done = 0;
  while (!todo_.empty()) {
    const Instance instance = std::move(todo_.front());
    todo_.pop_front();
    ++done;
    if (options_.progress)
      options_.progress("importing",
                        static_cast<double>(done) / static_cast<double>(done + todo_.size()));
    MSRT_RETURN_IF_ERROR(Write(instance).Within(StrCat("graph '", instance.name, "'")));
  }
  return OkStatus();
}

Result<std::vector<Instance::Input>> Importer::MainInputs(Items* arguments) {
  std::vector<Instance::Input> inputs;
  for (const auto& i : model_.graph().input()) {
    auto declared = DeclaredBy(i);
    if (declared.ok() && declared->kind == ItemKind::kUnknown)
      declared = Unsupported("of no type that is known");
    if (!declared.ok()) {
      if (declared.status().code() != Code::kUnsupported)
        return std::move(declared).status().Within(StrCat("input '", i.name(), "'"));
      const std::string name = ModelFile::Short(i.name());
      out_.problems.Add("", 0, name, StrCat("input '", name, "' is ", declared.status().message()));
      arguments->emplace_back();
      continue;
    }
    const size_t first = inputs.size();
    MSRT_ASSIGN_OR_RETURN(Item item, ItemOver(*declared, [&](const Type& type) {
                            inputs.push_back({"", type});
                            return ValueId(static_cast<uint32_t>(inputs.size() - 1));
                          }));
    const bool one = item.is(ItemKind::kTensor);
    for (size_t k = first; k < inputs.size(); ++k) {
      inputs[k].name =
          one ? ModelFile::Short(i.name()) : StrCat(ModelFile::Short(i.name()), ".", k - first);
    }
    arguments->push_back(std::move(item));
  }
  MSRT_ASSIGN_OR_RETURN(const BoundSizes sizes,
                        BoundSizes::Bind("--shape", options_.shapes, inputs, out_.module));
  for (Instance::Input& i : inputs) i.type = sizes.OfInput(i.name, std::move(i.type));
  return inputs;
}

Status Importer::Write(const Instance& instance) {
  Scope scope{GraphDraft(&out_.module, instance.graph, &weights_)};
  Graph& graph = scope.draft.graph();
  std::set<std::string_view> names;
  std::vector<ValueId> inputs;
  for (const Instance::Input& i : instance.inputs) {
    // Inputs with equal names are distinguished by position.
    inputs.push_back(graph.AddInput(names.insert(i.name).second ? i.name : std::string(), i.type));
  }
  const auto bind = [&](const Item& item) {
    return Mapped(item, [&](const Item& leaf) {
      Item bound = leaf;
      bound.value = inputs[IndexOf(leaf.value)];
      return bound;
    });
  };
  Items arguments;
  for (const Item& a : instance.arguments) arguments.push_back(bind(a));
  const Item callee = bind(instance.callee);
  if (!instance.whole) {
    MSRT_ASSIGN_OR_RETURN(const Item result,
                          Call(callee, arguments, instance.result, instance.name, &scope));
    return SetResult(instance, result, &scope);
  }
  Items all;
  if (callee.parts != nullptr) all = *callee.parts;
  all.insert(all.end(), arguments.begin(), arguments.end());
  return WriteBody(instance, all, &scope);
}

Status Importer::WriteBody(const Instance& instance, const Items& arguments, Scope* scope) {
  const FileGraph& graph = file_.graphs()[instance.callee.index];
  scope->graph = &graph;
  const size_t expected = graph.free.size() + static_cast<size_t>(graph.proto->input_size());
  if (arguments.size() != expected) {
    return InvalidModel("takes ", graph.proto->input_size(), " arguments, gets ",
                        arguments.size() - std::min(arguments.size(), graph.free.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool captured = i < graph.free.size();
    scope->items[captured ? graph.free[i]
                          : graph.proto->input(static_cast<int>(i - graph.free.size())).name()] =
        arguments[i];
  }
  node_count_ += graph.nodes.size() + 1;
  if (node_count_ > options_.max_nodes)
    return LimitExceeded("the model has more than ", options_.max_nodes, " nodes");
  for (const FileNode& node : graph.nodes) {
    if (!node.needed) continue;
    Status status = ImportNode(node, scope);
    if (!status.ok())
      return std::move(status).Within(
          StrCat("node '", node.proto->output(0), "' (", node.target.op, ")"));
  }
  Items results;
  for (const auto& o : graph.proto->output()) {
    MSRT_ASSIGN_OR_RETURN(Item item, Lookup(o.name(), scope));
    results.push_back(std::move(item));
  }
  if (results.size() == 1) return SetResult(instance, results[0], scope);
  MSRT_ASSIGN_OR_RETURN(const Item tuple, Compound(ItemKind::kTuple, std::move(results)));
  return SetResult(instance, tuple, scope);
}

// The results of a graph are values, so weights among them are read.
Result<Item> Importer::ReadAll(const Item& item, const std::string& name, Scope* scope) {
  if (item.is(ItemKind::kUnknown) && out_.problems.empty()) {
    out_.problems.Add("Return", 0, name,
                      "gives a result of a primitive that is not known to inference");
  }
  if (item.is(ItemKind::kParameter)) {
    MSRT_ASSIGN_OR_RETURN(const ValueId value, scope->draft.Materialize(item, name));
    return Item::Tensor(value);
  }
  if (!item.is(ItemKind::kTuple)) return scope->draft.Materialized(item, name);
  Items parts;
  for (size_t i = 0; i < item.part_count(); ++i) {
    MSRT_ASSIGN_OR_RETURN(Item part, ReadAll(item.part(i), name, scope));
    parts.push_back(std::move(part));
  }
  return Compound(ItemKind::kTuple, std::move(parts));
}

Status Importer::SetResult(const Instance& instance, const Item& result, Scope* scope) {
  Graph& graph = scope->draft.graph();
  MSRT_ASSIGN_OR_RETURN(const Item ready, ReadAll(result, instance.name, scope));
  AppendLeaves(ready, &graph.outputs);
  if (instance.graph == 0) return NameOutputs(&graph);
  if (out_.problems.empty() && ShapeOf(ready) != ShapeOf(instance.result)) {
    return InvalidModel("gives ", Describe(ready), " of ", graph.outputs.size(),
                        " tensors, its caller counts on something else");
  }
  return OkStatus();
}

Status Importer::NameOutputs(Graph* graph) {
  if (graph->outputs.empty() && out_.problems.empty()) return InvalidModel("gives no tensor");
  const auto& proto = model_.graph();
  const std::vector<std::string> names = NamesOfResults(proto, graph->outputs.size());
  std::set<ValueId> given(graph->inputs.begin(), graph->inputs.end());
  for (size_t i = 0; i < graph->outputs.size(); ++i) {
    ValueId& value = graph->outputs[i];
    const bool one = static_cast<size_t>(proto.output_size()) == graph->outputs.size();
    const std::string first = ModelFile::Short(proto.output(one ? static_cast<int>(i) : 0).name());
    const std::string name = !names.empty() ? names[i] : one ? first : StrCat(first, ".", i);
    if (!given.insert(value).second || graph->value(value).constant != nullptr) {
      if (!IsDeclared(graph->value(value).type)) continue;  // a problem has been reported
      MSRT_ASSIGN_OR_RETURN(value, GraphBuilder(graph).Add("Identity", name, {value}));
      given.insert(value);
    }
    graph->value(value).name = name;
  }
  return OkStatus();
}

Result<Item> Importer::FunctionOf(uint32_t graph, Scope* scope) {
  Items environment;
  for (const std::string& name : file_.graphs()[graph].free) {
    const auto found = scope->items.find(name);
    if (found == scope->items.end()) {
      return InvalidModel("function '", file_.graphs()[graph].proto->name(), "' needs '", name,
                          "', which is not known here");
    }
    environment.push_back(found->second);
  }
  return Compound(ItemKind::kFunction, std::move(environment), graph);
}

Result<Item> Importer::Constant(mindir::AttributeProto* value) {
  auto known = constants_.find(value);
  if (known == constants_.end()) known = constants_.emplace(value, ItemOf(value, external_)).first;
  if (!known->second.ok()) return known->second.status();
  return *known->second;
}

Result<Item> Importer::Lookup(const std::string& name, Scope* scope) {
  if (const auto found = scope->items.find(name); found != scope->items.end()) return found->second;
  const ModelFile::Name what = file_.Find(name);
  switch (what.kind) {
    case ModelFile::NameKind::kConstant:
      return Constant(what.constant);
    case ModelFile::NameKind::kWeight:
      return Item::Parameter(what.weight);
    case ModelFile::NameKind::kGraph:
      return FunctionOf(what.graph, scope);
    default:
      return InvalidModel("'", name, "' is not known here");
  }
}

Status Importer::ImportNode(const FileNode& node, Scope* scope) {
  const std::string& output = node.proto->output(0);
  Declaration declared;
  if (const auto* said = DeclarationOf(*node.proto)) {
    auto read = DeclaredBy(*said);
    if (read.ok()) declared = *std::move(read);
    else if (read.status().code() != Code::kUnsupported) return std::move(read).status();
  }
  auto result = node.origin != nullptr ? ImportOrigin(node, declared, scope)
                                       : ImportAsWritten(node, declared, scope);
  if (!result.ok()) {
    const Code code = result.status().code();
    // Wrong use of a primitive is reported with the rest, so that one run shows all of it.
    const bool told = code == Code::kUnsupported ||
                      (code == Code::kInvalidModel && node.target.kind == Target::kPrimitive);
    if (!told) return std::move(result).status();
    out_.problems.Add(node.target.op, 0, ModelFile::Short(output), result.status().message(),
                      code == Code::kInvalidModel ? kCureForWrongFile : "");
    result = Assumed(declared, scope, output);
    MSRT_RETURN_IF_ERROR(result.status());
  }
  scope->items[output] = *std::move(result);
  return OkStatus();
}

Result<Item> Importer::ImportAsWritten(const FileNode& node, const Declaration& declared,
                                       Scope* scope) {
  Items inputs;
  Status wrong;
  for (const auto& name : node.proto->input()) {
    auto item = Lookup(name, scope);
    if (!item.ok() && item.status().code() != Code::kUnsupported)
      return std::move(item).status().Within(StrCat("input '", name, "'"));
    if (!item.ok() && wrong.ok()) wrong = item.status();
    inputs.push_back(item.ok() ? *std::move(item) : Item());
  }
  if (!wrong.ok()) return wrong;
  return ImportTarget(node, declared, std::move(inputs), scope);
}

Result<std::vector<ValueId>> Importer::MakeOrigin(const Origin& origin, Scope* scope) {
  std::vector<ValueId> inputs;
  for (const std::string& name : origin.inputs) {
    if (name.empty()) {
      inputs.push_back(kNoValue);
      continue;
    }
    MSRT_ASSIGN_OR_RETURN(const Item item, Lookup(name, scope));
    MSRT_ASSIGN_OR_RETURN(const ValueId value,
                          scope->draft.Materialize(item, ModelFile::Short(name)));
    inputs.push_back(value);
  }
  MSRT_ASSIGN_OR_RETURN(
      std::vector<ValueId> outputs,
      scope->draft.AddMany(origin.domain, origin.op, origin.name, std::move(inputs), origin.attrs,
                           origin.outputs.size()));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (origin.outputs[i].empty()) scope->draft.graph().nodes.back().outputs[i] = kNoValue;
  }
  ++node_count_;
  return outputs;
}

// The first node of a note creates the op for all nodes that have its results.
Result<Item> Importer::ImportOrigin(const FileNode& node, const Declaration& declared,
                                    Scope* scope) {
  const Origin& origin = *node.origin;
  const std::string& key = *std::find_if(origin.outputs.begin(), origin.outputs.end(),
                                         [](const std::string& output) { return !output.empty(); });
  auto made = scope->origins.find(key);
  if (made == scope->origins.end()) {
    MSRT_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, MakeOrigin(origin, scope));
    made = scope->origins.emplace(key, std::move(outputs)).first;
  }
  const size_t index = origin.OutputOf(node.proto->output(0));
  if (index >= made->second.size())
    return InvalidModel("is noted as result ", index, " of an op that has ", made->second.size());
  const ValueId value = made->second[index];
  if (declared.kind == ItemKind::kTensor) {
    const auto agreed = MergeTypes(declared.type, scope->draft.type(value));
    if (!agreed.ok())
      return InvalidModel("is noted as a result of ", origin.op,
                          ", which is not what it gives: ", agreed.status().message());
  }
  return Item::Tensor(value);
}

Result<Item> Importer::Assumed(const Declaration& declared, Scope* scope, const std::string& name) {
  auto assumed = ItemOver(
      declared, [&](const Type& type) { return scope->draft.graph().AddValue(name, type); });
  if (!assumed.ok() && assumed.status().code() == Code::kUnsupported) return Item();
  return assumed;
}

Result<Item> Importer::ImportTarget(const FileNode& node, const Declaration& declared, Items inputs,
                                    Scope* scope) {
  const std::string name = ModelFile::Short(node.proto->output(0));
  switch (node.target.kind) {
    case Target::kPrimitive:
      return ImportPrimitive(node, declared, std::move(inputs), scope);
    case Target::kGraph: {
      MSRT_ASSIGN_OR_RETURN(const Item function, FunctionOf(node.target.graph, scope));
      return Call(function, inputs, declared, name, scope);
    }
    case Target::kValue: {
      MSRT_ASSIGN_OR_RETURN(const Item function, Lookup(node.target.op, scope));
      return Call(function, inputs, declared, name, scope);
    }
    case Target::kForeign:
      return Unsupported("it is Python's own and not part of a graph");
  }
  return Item();
}

Result<std::vector<std::pair<std::string, Item>>> Importer::Attributes(const FileNode& node) {
  std::vector<std::pair<std::string, Item>> attributes;
  constexpr int kMaxAttributes = 256;
  auto* list = node.target.primitive != nullptr ? node.target.primitive->mutable_attribute()
                                                : node.proto->mutable_attribute();
  if (list->size() > kMaxAttributes)
    return InvalidModel("has ", list->size(), " attributes, at most ", kMaxAttributes,
                        " are allowed");
  for (auto& a : *list) {
    if (node.target.primitive == nullptr && a.name() == "shape") continue;
    auto value = Constant(&a);
    // Exporters add attributes that only they read, so one that cannot be read is skipped; a rule
    // that needs it reports it as missing.
    if (value.ok()) attributes.emplace_back(a.name(), *std::move(value));
    else if (value.status().code() != Code::kUnsupported) return std::move(value).status();
  }
  return attributes;
}

Result<Item> Importer::ImportPrimitive(const FileNode& node, const Declaration& declared,
                                       Items inputs, Scope* scope) {
  Item result;
  MSRT_ASSIGN_OR_RETURN(const bool done, ImportPlumbing(node, inputs, scope, &result));
  if (done) return result;
  const std::string name = ModelFile::Short(node.proto->output(0));
  const Rule* rule = FindRule(node.target.op);
  if (rule == nullptr) return Unsupported("the primitive is not known");
  if (std::any_of(inputs.begin(), inputs.end(),
                  [](const Item& i) { return i.is(ItemKind::kUnknown); })) {
    return Assumed(declared, scope, name);
  }
  MSRT_ASSIGN_OR_RETURN(auto attributes, Attributes(node));
  const size_t nodes_before = scope->draft.graph().nodes.size();
  PrimitiveCall call(&scope->draft, *rule, name, std::move(inputs), std::move(attributes),
                     declared);
  call.set_for_training(options_.for_training);
  MSRT_RETURN_IF_ERROR(rule->rule(call));
  node_count_ += scope->draft.graph().nodes.size() - nodes_before;
  return call.result();
}

std::string CureFor(std::string_view reason) {
  constexpr struct {
    std::string_view word, cure;
  } kCures[] = {
      {"not known", "express it by other primitives in construct(), or export the network as ONNX"},
      {"Python", "take what runs in Python out of construct(): it cannot be exported"},
      {"constant", "make it a constant of the network, not something that is computed"},
      {"rank", "export with inputs of known shapes, or give them with --shape NAME=1x3x224x224"},
      {"be known",
       "export with inputs of known shapes, or give them with --shape NAME=1x3x224x224"},
      {"training", "export for inference: network.set_train(False)"},
      {"compressed", "export the model without compressing its weights"},
  };
  for (const auto& [word, cure] : kCures) {
    if (reason.find(word) != std::string_view::npos) return std::string(cure);
  }
  return "express the node by others when exporting the model";
}

namespace {

// Recognises the first bytes of MindSpore's encrypted blocks, which depend on the cipher.
bool IsEncrypted(std::span<const std::byte> bytes) {
  constexpr std::byte kRest[] = {std::byte{0x5e}, std::byte{0x3a}, std::byte{0x7f}};
  return bytes.size() >= 4 && (bytes[0] & std::byte{0xf0}) == std::byte{0xd0} &&
         std::equal(std::begin(kRest), std::end(kRest), bytes.begin() + 1);
}

}  // namespace

bool LooksLikeMindIr(std::span<const std::byte> bytes) {
  // The first field of both formats is ir_version; MindIR's is a text, ONNX's a number.
  return bytes.size() > 2 && bytes[0] == std::byte{0x0a};
}

namespace {

// `mapped_by`: see FileStream.
Result<ImportResult> ImportFrom(std::span<const std::byte> bytes, Io* mapped_by,
                                const std::string& path, const ImportOptions& options, Io* io) {
  if (bytes.size() > static_cast<size_t>(INT32_MAX)) {
    return InvalidModel(
        "the file has ", bytes.size(),
        " bytes; a MindIR file ends at 2 GiB, larger weights belong into files beside it");
  }
  if (IsEncrypted(bytes))
    return Unsupported(
        "the file is encrypted: export it without a key (enc_key of mindspore.export)");
  FileStream stream(bytes, mapped_by, {});
  mindir::ModelProto model;
  MSRT_RETURN_IF_ERROR(ParseMessage(&stream, "MindIR", kMaxMessageDepth, &model));
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

}  // namespace msrt::mindir_import

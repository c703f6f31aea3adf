#include "tools/msconvert/mindir/import_file.h"

#include <algorithm>
#include <set>
#include <unordered_set>

namespace msrt::mindir_import {
namespace {

constexpr std::string_view kReference = "REF::";
constexpr size_t kMaxNameBytes = 4096;       // the limit of .msrt files
constexpr size_t kMaxFreeNames = 1'000'000;  // of all graphs

bool IsForeign(std::string_view target) {
  return target.starts_with("MetaFuncGraph::") || target.starts_with("ClassType::");
}

mindir::AttributeProto* ValueOf(mindir::NodeProto* constant) {
  for (auto& a : *constant->mutable_attribute()) {
    if (a.name() == "value") return &a;
  }
  return nullptr;
}

}  // namespace

std::string ModelFile::Short(const std::string& name) {
  const size_t colon = name.find(':');
  return colon == std::string::npos || colon + 1 == name.size() ? name : name.substr(colon + 1);
}

ModelFile::Name ModelFile::Find(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? Name{} : found->second;
}

Status ModelFile::Add(const std::string& name, Name what) {
  if (name.empty()) return InvalidModel("a value has no name");
  if (name.size() > kMaxNameBytes)
    return InvalidModel("a name has ", name.size(), " bytes, at most ", kMaxNameBytes,
                        " are allowed");
  if (!names_.emplace(name, what).second)
    return InvalidModel("the name '", name, "' stands for two things");
  return OkStatus();
}

Result<ModelFile> ModelFile::Of(mindir::ModelProto* model) {
  ModelFile file;
  for (auto& p : *model->mutable_primitives()) {
    if (!file.primitives_.emplace(p.name(), &p).second)
      return InvalidModel("primitive '", p.name(), "' is there twice");
  }
  MSRT_RETURN_IF_ERROR(file.AddGraph(model->mutable_graph()));
  for (auto& f : *model->mutable_functions()) MSRT_RETURN_IF_ERROR(file.AddGraph(&f));
  for (uint32_t g = 0; g < file.graphs_.size(); ++g) MSRT_RETURN_IF_ERROR(file.AddNodes(g));
  MSRT_RETURN_IF_ERROR(file.FindFree());
  for (uint32_t g = 0; g < file.graphs_.size(); ++g) {
    MSRT_RETURN_IF_ERROR(file.Order(g));
    file.FindOrigins(g);
    file.FindNeeded(g);
  }
  return file;
}

Status ModelFile::AddGraph(mindir::GraphProto* graph) {
  const auto index = static_cast<uint32_t>(graphs_.size());
  graphs_.emplace_back().proto = graph;
  MSRT_RETURN_IF_ERROR(Add(graph->name(), {.kind = NameKind::kGraph, .graph = index}));
  for (auto& p : *graph->mutable_parameter()) {
    MSRT_RETURN_IF_ERROR(Add(
        p.name(), {.kind = NameKind::kWeight, .weight = static_cast<uint32_t>(weights_.size())}));
    weights_.push_back(&p);
  }
  for (const auto& i : graph->input())
    MSRT_RETURN_IF_ERROR(Add(i.name(), {.kind = NameKind::kValue, .graph = index}));
  for (auto& n : *graph->mutable_node()) {
    if (n.output_size() != 1)
      return InvalidModel("node '", n.name(), "' has ", n.output_size(), " outputs, must have one");
    const bool constant = n.op_type() == "Constant";
    Name name{.kind = constant ? NameKind::kConstant : NameKind::kValue, .graph = index};
    if (constant && (name.constant = ValueOf(&n)) == nullptr)
      return InvalidModel("constant '", n.name(), "' has no value");
    MSRT_RETURN_IF_ERROR(Add(n.output(0), name));
  }
  return OkStatus();
}

Target ModelFile::TargetOf(const mindir::NodeProto& node) const {
  const std::string& type = node.op_type();
  if (!type.starts_with(kReference))
    return {.kind = IsForeign(type) ? Target::kForeign : Target::kPrimitive, .op = type};
  const std::string target = type.substr(kReference.size());
  if (const auto p = primitives_.find(target); p != primitives_.end()) {
    const std::string& op = p->second->op_type();
    return {.kind = Target::kPrimitive,
            .op = op.empty() ? p->second->name() : op,
            .primitive = p->second};
  }
  if (IsForeign(target)) return {.kind = Target::kForeign, .op = target};
  if (const Name name = Find(target); name.kind == NameKind::kGraph)
    return {.kind = Target::kGraph, .op = target, .graph = name.graph};
  return {.kind = Target::kValue, .op = target};
}

std::vector<std::string> ModelFile::Used(const FileNode& node) {
  std::vector<std::string> names(node.proto->input().begin(), node.proto->input().end());
  if (node.target.kind == Target::kGraph || node.target.kind == Target::kValue)
    names.push_back(node.target.op);
  return names;
}

Status ModelFile::AddNodes(uint32_t g) {
  FileGraph& graph = graphs_[g];
  const auto use = [&](const std::string& name, const std::string& user) -> Status {
    const Name found = Find(name);
    if (found.kind == NameKind::kNothing) {
      constexpr size_t kShown = 100;
      return InvalidModel("'", user, "' of graph '", graph.proto->name(), "' uses '",
                          name.substr(0, kShown), "', which is nowhere");
    }
    if (found.kind == NameKind::kGraph) ++graphs_[found.graph].references;
    return OkStatus();
  };
  for (auto& n : *graph.proto->mutable_node()) {
    if (n.op_type() == "Constant") continue;
    graph.nodes.push_back({.proto = &n, .target = TargetOf(n), .origin = nullptr});
    for (const std::string& name : Used(graph.nodes.back()))
      MSRT_RETURN_IF_ERROR(use(name, n.output(0)));
  }
  if (graph.proto->output_size() == 0)
    return InvalidModel("graph '", graph.proto->name(), "' has no outputs");
  for (const auto& o : graph.proto->output()) MSRT_RETURN_IF_ERROR(use(o.name(), "the result"));
  return OkStatus();
}

// A graph needs the values of other graphs that it uses itself, and those that a graph it refers to
// needs, unless it makes them.
Status ModelFile::FindFree() {
  std::vector<std::unordered_set<std::string>> free(graphs_.size());
  std::vector<std::set<uint32_t>> named_by(graphs_.size());
  std::vector<std::pair<uint32_t, std::string>> work;  // a graph needs a name
  const auto look = [&](uint32_t g, const std::string& name) {
    const Name found = Find(name);
    if (found.kind == NameKind::kGraph) named_by[found.graph].insert(g);
    if (found.kind == NameKind::kValue && found.graph != g) work.emplace_back(g, name);
  };
  for (uint32_t g = 0; g < graphs_.size(); ++g) {
    for (const FileNode& n : graphs_[g].nodes) {
      for (const std::string& name : Used(n)) look(g, name);
    }
    for (const auto& o : graphs_[g].proto->output()) look(g, o.name());
  }
  size_t count = 0;
  while (!work.empty()) {
    if (++count > kMaxFreeNames)
      return LimitExceeded("graphs use more than ", kMaxFreeNames,
                           " values of the graphs around them");
    const auto [g, name] = std::move(work.back());
    work.pop_back();
    if (Find(name).graph == g || !free[g].insert(name).second) continue;
    graphs_[g].free.push_back(name);
    for (uint32_t user : named_by[g]) work.emplace_back(user, name);
  }
  if (!graphs_[0].free.empty()) {
    return InvalidModel("value '", graphs_[0].free[0], "' of graph '",
                        graphs_[Find(graphs_[0].free[0]).graph].proto->name(),
                        "' is used where that graph is not around");
  }
  return OkStatus();
}

Status ModelFile::Order(uint32_t g) {
  FileGraph& graph = graphs_[g];
  std::unordered_map<std::string_view, size_t> maker;
  for (size_t i = 0; i < graph.nodes.size(); ++i) maker.emplace(graph.nodes[i].proto->output(0), i);
  std::vector<size_t> missing(graph.nodes.size());
  std::vector<std::vector<size_t>> readers(graph.nodes.size());
  size_t needed = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    std::set<size_t> sources;
    const auto need = [&](const std::string& name) {
      if (const auto found = maker.find(name); found != maker.end()) sources.insert(found->second);
    };
    for (const std::string& name : Used(graph.nodes[i])) {
      need(name);
      const Name found = Find(name);
      if (found.kind == NameKind::kGraph) {
        needed += graphs_[found.graph].free.size();
        if (needed > kMaxFreeNames)
          return LimitExceeded("graphs use more than ", kMaxFreeNames,
                               " values of the graphs around them");
        for (const std::string& captured : graphs_[found.graph].free) need(captured);
      }
    }
    missing[i] = sources.size();
    for (size_t s : sources) readers[s].push_back(i);
  }
  std::set<size_t> ready;  // in file order, which is kept where it is valid
  for (size_t i = 0; i < missing.size(); ++i) {
    if (missing[i] == 0) ready.insert(i);
  }
  std::vector<FileNode> ordered;
  while (!ready.empty()) {
    const size_t i = *ready.begin();
    ready.erase(ready.begin());
    ordered.push_back(graph.nodes[i]);
    for (size_t reader : readers[i]) {
      if (--missing[reader] == 0) ready.insert(reader);
    }
  }
  for (size_t i = 0; i < missing.size(); ++i) {
    if (missing[i] != 0)
      return InvalidModel("node '", graph.nodes[i].proto->output(0), "' depends on itself: graph '",
                          graph.proto->name(), "' has a cycle");
  }
  graph.nodes = std::move(ordered);
  return OkStatus();
}

// A note is used only if all of its inputs precede the first of the nodes that it stands for.
void ModelFile::FindOrigins(uint32_t g) {
  FileGraph& graph = graphs_[g];
  std::unordered_map<std::string_view, size_t> position;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    position.emplace(graph.nodes[i].proto->output(0), i);
  const auto known_before = [&](const std::string& name, size_t i) {
    if (name.empty()) return true;
    const Name found = Find(name);
    if (found.kind == NameKind::kConstant || found.kind == NameKind::kWeight) return true;
    if (found.kind != NameKind::kValue || found.graph != g) return false;
    const auto made = position.find(name);
    return made == position.end() || made->second < i;
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    auto origin = OriginOf(*graph.nodes[i].proto);
    if (origin == nullptr) continue;
    const auto known = [&](const std::string& name) { return known_before(name, i); };
    if (std::all_of(origin->inputs.begin(), origin->inputs.end(), known))
      graph.nodes[i].origin = std::move(origin);
  }
}

void ModelFile::FindNeeded(uint32_t g) {
  FileGraph& graph = graphs_[g];
  std::unordered_set<std::string_view> needed;
  const auto need = [&](const std::string& name) {
    needed.insert(name);
    const Name found = Find(name);
    if (found.kind == NameKind::kGraph)
      needed.insert(graphs_[found.graph].free.begin(), graphs_[found.graph].free.end());
  };
  for (const auto& o : graph.proto->output()) need(o.name());
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    node->needed = needed.contains(node->proto->output(0));
    if (!node->needed) continue;
    if (node->origin != nullptr) {
      for (const std::string& name : node->origin->inputs) need(name);
      continue;
    }
    for (const auto& name : node->proto->input()) need(name);
    if (node->target.kind == Target::kGraph || node->target.kind == Target::kValue)
      need(node->target.op);
  }
}

}  // namespace msrt::mindir_import

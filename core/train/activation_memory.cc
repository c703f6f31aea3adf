#include "core/train/activation_memory.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "core/autodiff/recompute.h"
#include "ops/propagate.h"
#include "ops/registry.h"

namespace msrt {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr Unit kUnits[] = {{"", 1},     {"B", 1},      {"kB", 1e3},      {"MB", 1e6},
                           {"GB", 1e9}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};

// A copy of the graph whose forward nodes have the types of the typical batch.
Result<Graph> SizedGraph(const ActivationLimit& limit, size_t forward_nodes, const Graph& graph) {
  GraphFacts facts(graph);
  std::map<int64_t, int64_t> symbols;
  for (ValueId v : graph.inputs) {
    Type& type = facts.types[IndexOf(v)];
    for (const auto& [name, dims] : limit.typical) {
      if (name != graph.value(v).name || !type.rank_known || dims.rank() != type.rank()) continue;
      for (int d = 0; d < dims.rank(); ++d) {
        if (IsSymbol(type.dims[d])) symbols[type.dims[d]] = dims[d];
      }
      type.dims = dims;
    }
  }
  const Type* const first = graph.inputs.empty() ? nullptr : &facts.types[IndexOf(graph.inputs[0])];
  for (ValueId v : graph.inputs) {
    Type& type = facts.types[IndexOf(v)];
    for (int64_t& d : type.dims) {
      if (symbols.count(d) != 0) d = symbols[d];
    }
    if (type.rank_known && type.rank() > 0 && !IsKnown(type.dims[0]) && first->rank() > 0 &&
        IsKnown(first->dims[0]))
      type.dims[0] = first->dims[0];
    if (type.is_tensor() && !type.concrete())
      return InvalidArgument("the memory of activations is limited, but input '",
                             graph.value(v).name, "' is ", type,
                             ": its size for a typical batch must be given");
  }
  for (size_t n = 0; n < forward_nodes; ++n)
    MSRT_RETURN_IF_ERROR(PropagateNode(graph, n, *limit.evaluator, &facts));
  Graph sized = graph;
  for (uint32_t v = 0; v < graph.value_count(); ++v) sized.value(ValueId{v}).type = facts.types[v];
  return sized;
}

Node CastOf(ValueId from, ValueId to, DType dtype, std::string name) {
  Node cast;
  cast.name = std::move(name);
  cast.op = "Cast";
  cast.def = FindOp("", "Cast", nullptr);
  cast.version = cast.def->version;
  cast.inputs = {from};
  cast.outputs = {to};
  cast.attrs = {{"to", dtype}};
  return cast;
}

// Puts Casts around the time in which a value waits for the backward pass.
class ReducedStorage {
 public:
  ReducedStorage(size_t model_nodes, size_t forward_nodes, Graph* graph)
      : graph_(*graph), model_nodes_(model_nodes), forward_nodes_(forward_nodes) {}

  size_t Run() {
    FindValues();
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (n >= forward_nodes_) UseCopies(n, &nodes[n]);
      graph_.nodes.push_back(std::move(nodes[n]));
      const auto [first, end] = narrowed_after_.equal_range(n);
      for (auto i = first; i != end; ++i) Narrow(i->second);
    }
    return narrowed_after_.size();
  }

 private:
  // A value is widened again if it was last used so many nodes before: the second use of a skip
  // connection is far from the first.
  static constexpr size_t kFarApart = 24;
  struct Stored {
    ValueId narrow = kNoValue, wide = kNoValue;
    size_t last_use = 0;  // of `wide`
  };

  void FindValues() {
    std::vector<size_t> last_use(graph_.value_count());
    std::vector<bool> varies(graph_.value_count()), made(graph_.value_count());
    for (ValueId v : graph_.inputs) varies[IndexOf(v)] = true;
    for (const Node& node : graph_.nodes) region_ = std::max(region_, node.region);
    for (size_t n = 0; n < forward_nodes_; ++n) {
      const Node& node = graph_.nodes[n];
      bool any = false;
      for (ValueId v : node.inputs) {
        if (v == kNoValue) continue;
        any = any || varies[IndexOf(v)];
        last_use[IndexOf(v)] = n;
      }
      for (ValueId v : node.outputs) {
        if (v == kNoValue) continue;
        varies[IndexOf(v)] = any;
        made[IndexOf(v)] = any && n < model_nodes_;
        last_use[IndexOf(v)] = n;
      }
    }
    for (ValueId v : graph_.outputs) made[IndexOf(v)] = false;
    for (size_t n = forward_nodes_; n < graph_.nodes.size(); ++n) {
      const OpDef* def = graph_.nodes[n].def;
      if (def != nullptr && (def->traits & kShapeOnly) != 0) continue;
      for (ValueId v : graph_.nodes[n].inputs) {
        if (v == kNoValue || !made[IndexOf(v)]) continue;
        made[IndexOf(v)] = false;
        const Type& type = graph_.value(v).type;
        if (type.is_tensor() && type.dtype == DType::kF32 && type.rank_known && type.rank() > 1)
          narrowed_after_.emplace(last_use[IndexOf(v)], v);
      }
    }
  }

  void Narrow(ValueId v) {
    Type type = graph_.value(v).type;
    type.dtype = DType::kBF16;
    const std::string name = StrCat(graph_.value(v).name, ".bf16");
    Stored& stored = stored_[v];
    stored.narrow = graph_.AddValue(name, type);
    graph_.nodes.push_back(CastOf(v, stored.narrow, DType::kBF16, name));
  }

  void UseCopies(size_t n, Node* node) {
    if (node->def != nullptr && (node->def->traits & kShapeOnly) != 0) return;
    for (ValueId& v : node->inputs) {
      const auto found = stored_.find(v);
      if (v == kNoValue || found == stored_.end()) continue;
      Stored& stored = found->second;
      if (stored.wide == kNoValue || n - stored.last_use > kFarApart) {
        const std::string name = StrCat(graph_.value(v).name, ".f32");
        stored.wide = graph_.AddValue(name, graph_.value(v).type);
        Node cast = CastOf(stored.narrow, stored.wide, DType::kF32, name);
        cast.region = ++region_;  // equal Casts stay apart
        graph_.nodes.push_back(std::move(cast));
      }
      stored.last_use = n;
      v = stored.wide;
    }
  }

  Graph& graph_;
  const size_t model_nodes_, forward_nodes_;
  std::multimap<size_t, ValueId> narrowed_after_;  // by node
  std::map<ValueId, Stored> stored_;
  uint32_t region_ = 0;
};

}  // namespace

Result<ActivationLimit> ParseActivationLimit(std::string_view text) {
  ActivationLimit limit;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const auto found = std::find_if(std::begin(kUnits), std::end(kUnits),
                                  [&](const Unit& u) { return u.name == unit; });
  if (error == std::errc() && number > 0 && unit == "%" && number <= 100) {
    constexpr double kPercent = 0.01;
    limit.part = number * kPercent;
  } else if (error == std::errc() && number > 0 && found != std::end(kUnits)) {
    limit.bytes = number * found->bytes;
  } else {
    return InvalidArgument("'", text, "' must look like 2GiB, 1500MB, 65536 or 40%");
  }
  return limit;
}

Result<ActivationMemory> LimitActivations(const ActivationLimit& limit, size_t forward_nodes,
                                          Graph* graph) {
  if (limit.evaluator == nullptr) return InternalError("the limit of activations has no evaluator");
  MSRT_ASSIGN_OR_RETURN(const Graph sized, SizedGraph(limit, forward_nodes, *graph));
  MSRT_ASSIGN_OR_RETURN(const RecomputePlan plan,
                        PlanRecomputation(sized, forward_nodes, limit.bytes, limit.part));
  MSRT_RETURN_IF_ERROR(RecomputeBlocks(graph, forward_nodes, plan.blocks));
  ActivationMemory memory;
  memory.kept_bytes = plan.kept_bytes;
  memory.planned_bytes = plan.chain.peak_bytes;
  memory.blocks = plan.blocks.size();
  if (plan.forward_seconds > 0) memory.recomputed = plan.chain.seconds / plan.forward_seconds;
  return memory;
}

Result<size_t> StoreActivationsReduced(size_t model_nodes, size_t forward_nodes, Graph* graph) {
  if (model_nodes > forward_nodes || forward_nodes > graph->nodes.size())
    return InternalError("nodes ", model_nodes, " and ", forward_nodes, " of ", graph->nodes.size(),
                         " are in no order");
  return ReducedStorage(model_nodes, forward_nodes, graph).Run();
}

}  // namespace msrt

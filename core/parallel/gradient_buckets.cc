#include "core/parallel/gradient_buckets.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op_def.h"

namespace msrt {
namespace {

constexpr size_t kNever = std::numeric_limits<size_t>::max();

bool IsReduction(const Node& node) {
  if (node.domain != "msrt" || node.op != "AllReduce" || node.outputs.size() != 1) return false;
  return node.outputs[0] != kNoValue;
}

class ReductionGrouper {
 public:
  ReductionGrouper(int64_t bucket_bytes, Graph* graph) : limit_(bucket_bytes), graph_(*graph) {}

  int Run() {
    SinkFollowers();
    FindBuckets();
    int buckets = 0;
    std::vector<Node> nodes;
    nodes.reserve(graph_.nodes.size());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (bucket_of_[n] < 0) {
        nodes.push_back(std::move(graph_.nodes[n]));
        continue;
      }
      const std::vector<size_t>& members = buckets_[static_cast<size_t>(bucket_of_[n])];
      if (n != members.back()) continue;
      buckets += members.size() > 1 ? 1 : 0;
      nodes.push_back(Joined(members));
    }
    graph_.nodes = std::move(nodes);
    return buckets;
  }

 private:
  // By value: the first node that uses it; kNever for one that only leaves the graph.
  std::vector<size_t> FirstUses() const {
    std::vector<size_t> first(graph_.value_count(), kNever);
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      for (ValueId v : graph_.nodes[n].inputs) {
        if (v != kNoValue) first[IndexOf(v)] = n;
      }
    }
    return first;
  }

  // Nodes that need a reduction and constants only move to just before their first use.
  void SinkFollowers() {
    std::vector<bool> late(graph_.value_count());  // follows from reductions alone
    std::vector<bool> sinks(graph_.nodes.size());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (IsReduction(node)) {
        late[IndexOf(node.outputs[0])] = true;
        continue;
      }
      if (node.def == nullptr || node.def->effect != Effect::kNone) continue;
      bool follows = false, others = false;
      for (ValueId v : node.inputs) {
        if (v == kNoValue || graph_.value(v).constant != nullptr) continue;
        (late[IndexOf(v)] ? follows : others) = true;
      }
      if (!follows || others) continue;
      sinks[n] = true;
      for (ValueId v : node.outputs) {
        if (v != kNoValue) late[IndexOf(v)] = true;
      }
    }
    const std::vector<size_t> first = FirstUses();
    // From the last: a sunk node may be the first use of another.
    std::vector<std::vector<size_t>> before(graph_.nodes.size() + 1);
    std::vector<size_t> place(graph_.nodes.size());
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      place[n] = n;
      if (!sinks[n]) continue;
      size_t use = graph_.nodes.size();
      for (ValueId v : graph_.nodes[n].outputs) {
        if (v == kNoValue) continue;
        for (size_t user = first[IndexOf(v)]; user < graph_.nodes.size(); ++user) {
          const std::vector<ValueId>& inputs = graph_.nodes[user].inputs;
          if (std::find(inputs.begin(), inputs.end(), v) != inputs.end())
            use = std::min(use, place[user]);
        }
      }
      place[n] = use;
      before[use].push_back(n);
    }
    std::vector<Node> nodes;
    nodes.reserve(graph_.nodes.size());
    for (size_t n = 0; n <= graph_.nodes.size(); ++n) {
      std::vector<size_t>& moved = before[n];
      std::sort(moved.begin(), moved.end());
      for (const size_t m : moved) nodes.push_back(std::move(graph_.nodes[m]));
      if (n < graph_.nodes.size() && !sinks[n]) nodes.push_back(std::move(graph_.nodes[n]));
    }
    graph_.nodes = std::move(nodes);
  }

  int64_t BytesOfReduction(const Node& node) const {
    const Type& type = graph_.value(node.outputs[0]).type;
    if (!type.concrete()) return -1;
    return static_cast<int64_t>(BytesOf(type.dtype, type.dims.elements()));
  }

  bool MayJoin(const Node& a, const Node& b) const {
    for (const std::string_view name : {"reduce", "order", "group"}) {
      const AttrValue *x = a.attrs.Find(name), *y = b.attrs.Find(name);
      if ((x == nullptr) != (y == nullptr)) return false;
      if (x != nullptr && std::get<std::string>(*x) != std::get<std::string>(*y)) return false;
    }
    return TypeOf(a) == TypeOf(b) && a.inputs.size() == b.inputs.size();
  }
  DType TypeOf(const Node& reduction) const {
    return graph_.value(reduction.outputs[0]).type.dtype;
  }

  void FindBuckets() {
    const std::vector<size_t> first = FirstUses();
    bucket_of_.assign(graph_.nodes.size(), -1);
    std::vector<size_t> waiting;  // reductions whose results are used after the next one begins
    std::vector<size_t> reductions;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (IsReduction(graph_.nodes[n])) reductions.push_back(n);
    }
    for (size_t i = 0; i < reductions.size(); ++i) {
      const size_t n = reductions[i];
      const size_t next = i + 1 < reductions.size() ? reductions[i + 1] : n;
      if (BytesOfReduction(graph_.nodes[n]) >= 0 &&
          first[IndexOf(graph_.nodes[n].outputs[0])] > next)
        waiting.push_back(n);
    }
    for (const size_t n : waiting) Add(n, first);
  }

  // The open buckets of all kinds; a bucket is closed when it is full, or a result of it is used.
  void Add(size_t n, const std::vector<size_t>& first) {
    const Node& node = graph_.nodes[n];
    for (Open& open : open_) {
      std::vector<size_t>& members = buckets_[open.bucket];
      if (open.bytes >= limit_ || open.first_use < n || !MayJoin(graph_.nodes[members[0]], node))
        continue;
      members.push_back(n);
      bucket_of_[n] = static_cast<int>(open.bucket);
      open.bytes += BytesOfReduction(node);
      open.first_use = std::min(open.first_use, first[IndexOf(node.outputs[0])]);
      return;
    }
    std::erase_if(open_, [&](const Open& open) {
      return open.bytes >= limit_ || open.first_use < n ||
             MayJoin(graph_.nodes[buckets_[open.bucket][0]], node);
    });
    bucket_of_[n] = static_cast<int>(buckets_.size());
    open_.push_back({buckets_.size(), BytesOfReduction(node), first[IndexOf(node.outputs[0])]});
    buckets_.push_back({n});
  }

  Node Joined(const std::vector<size_t>& members) {
    Node joined = std::move(graph_.nodes[members[0]]);
    for (size_t i = 1; i < members.size(); ++i) {
      const Node& node = graph_.nodes[members[i]];
      joined.inputs.insert(joined.inputs.end(), node.inputs.begin(), node.inputs.end());
      joined.outputs.push_back(node.outputs[0]);
    }
    joined.attrs.Set("tensors", static_cast<int64_t>(members.size()));
    joined.attrs.Set("background", int64_t{1});
    return joined;
  }

  struct Open {
    size_t bucket;
    int64_t bytes;
    size_t first_use;
  };

  const int64_t limit_;
  Graph& graph_;
  std::vector<int> bucket_of_;  // by node; -1: none
  std::vector<std::vector<size_t>> buckets_;
  std::vector<Open> open_;
};

}  // namespace

int GroupReductions(int64_t bucket_bytes, Graph* graph) {
  return ReductionGrouper(bucket_bytes, graph).Run();
}

}  // namespace msrt

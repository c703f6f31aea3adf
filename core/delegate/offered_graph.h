// A graph as delegates see it before placement: an msrt_graph_view with declared and typical shapes
// of every value.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/delegate/attr_views.h"
#include "core/delegate/carried.h"
#include "core/delegate/transfer.h"
#include "ops/propagate.h"

namespace msrt {

msrt_shape ShapeOf(const Type& type);

// The values that cross the border of a candidate, as msrt_candidate defines them.
struct CandidateBorder {
  std::vector<ValueId> inputs, outputs;
};

class OfferedGraph;
// The graphs of a module, by number; null if unreachable from every entry.
using OfferedModule = std::vector<std::shared_ptr<const OfferedGraph>>;

// Owns the data behind its views, so it lives as long as the kernels compiled from it. The graph
// must outlive it and not change.
class OfferedGraph {
 public:
  // The evaluator outlives it. `typical_dims[i]` replaces unknown dims of input i; where that is
  // unknown too, the first dim becomes 1 and others `kTypicalExtent`. `module` (may be null)
  // contains the graphs that this one calls and the state slots that it reads. `passed` has the
  // slots that callers pass to the inputs (FindPassedSlots); it may be empty.
  static Result<std::unique_ptr<OfferedGraph>> Make(const Graph& graph, const Evaluator& evaluator,
                                                    std::span<const Dims> typical_dims,
                                                    const Module* module = nullptr,
                                                    std::span<const int64_t> passed = {});
  OfferedGraph(const OfferedGraph&) = delete;
  OfferedGraph& operator=(const OfferedGraph&) = delete;

  const Graph& graph() const { return graph_; }
  const Evaluator& evaluator() const { return evaluator_; }
  size_t node_count() const { return nodes_.size(); }
  const msrt_node_view& node(size_t index) const { return nodes_[index]; }
  const msrt_graph_view* api() const { return &api_; }
  const GraphFacts& typical() const { return typical_; }
  // The values that a loop with this body carries from one iteration to the next; none if the graph
  // is not a loop body.
  std::span<const CarriedPair> carried() const { return carried_; }
  void SetCarried(std::vector<CarriedPair> carried) { carried_ = std::move(carried); }
  // Inputs and outputs that the application has on devices, by the names of these.
  std::span<const std::pair<ValueId, std::string>> homes() const { return homes_; }
  void SetHomes(std::vector<std::pair<ValueId, std::string>> homes) { homes_ = std::move(homes); }
  // The module's graph of that number; null if unknown.
  const OfferedGraph* callee(int64_t number) const;
  // Makes the graphs of the module visible to callee(). The module outlives this object.
  void SetModule(const OfferedModule* module) { module_ = module; }
  // The nodes that read a value, ascending, each once.
  const std::vector<uint32_t>& ReadersOf(ValueId value) const { return readers_[IndexOf(value)]; }
  // Whether the value is that of a slot that has the role of a parameter.
  bool IsParameter(ValueId value) const;
  bool IsOutput(ValueId value) const { return is_output_[IndexOf(value)]; }
  // Whether the typical shapes of the node's outputs follow from those of its inputs: none is a
  // guess that data may contradict.
  bool IsSettled(size_t node) const { return settled_[node]; }

  CandidateBorder BorderOf(std::span<const uint32_t> nodes) const;
  // Whether all sizes inside are known before the first of the nodes runs: none depends on data
  // that another of them makes.
  bool CanBindAtOnce(std::span<const uint32_t> nodes) const;
  // Whether a delegate may choose the value's layout: a tensor of rank 3 to 5 that is not a
  // constant.
  bool MayHaveLayout(ValueId value) const;

  // The bytes of a value at its typical shape, by layout; 0 if the shape is not known.
  std::array<double, kLayoutCount> TypicalBytes(ValueId value) const;
  // The same, as far as it is moved in each run: none of a slot that is not a cache and that the
  // graph does not write, because its copies are kept while it does not change, and none of a value
  // that is only written to a parameter or optimizer state, which may stay where it is made.
  std::array<double, kLayoutCount> MovedBytes(ValueId value) const;

  static constexpr int64_t kTypicalExtent = 128;

 private:
  OfferedGraph(const Graph& graph, const Evaluator& evaluator);
  void FindTypicalTypes(std::span<const Dims> typical_dims, const Module* module);
  void FindState(const Module& module, std::span<const int64_t> passed);
  void TakeResults(std::span<const Type> results, size_t node);
  void AddNode(size_t n);
  void MakeApi();
  msrt_value_view ValueOf(ValueId value) const;
  template <typename T>
  const T* Keep(std::vector<T> list, std::deque<std::vector<T>>* owner) {
    return owner->emplace_back(std::move(list)).data();
  }

  const Graph& graph_;
  const Evaluator& evaluator_;
  GraphFacts typical_;
  std::vector<bool> agreed_;   // by node: the typical shapes do not contradict it
  std::vector<bool> settled_;  // by node: see IsSettled
  std::vector<bool>
      size_in_data_;  // by node: the types of its outputs do not follow from those of its inputs
  std::vector<std::vector<uint32_t>> readers_;
  std::vector<bool> is_output_;
  std::map<ValueId, std::pair<uint32_t, StateRole>> state_;   // slot and role of state reads
  std::map<ValueId, std::pair<uint32_t, StateRole>> passed_;  // the same of inputs
  std::set<uint32_t> written_slots_;
  std::set<ValueId> updates_;  // values that nothing reads but writes to slots, in place
  std::vector<CarriedPair> carried_;
  std::vector<std::pair<ValueId, std::string>> homes_;
  const OfferedModule* module_ = nullptr;
  std::vector<msrt_node_view> nodes_;
  std::deque<std::vector<msrt_value_view>> values_;
  std::deque<std::vector<msrt_attr_view>> attrs_;
  AttrStore attr_store_;
  msrt_graph_view api_;
};

}  // namespace msrt

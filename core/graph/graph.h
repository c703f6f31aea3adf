// The graph: values, nodes in an order in which they can run, and a module of graphs that call each
// other by index. A Graph is built (by the loader, the C API, the zoo), rewritten by passes, and
// from then on only read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/attribute.h"
#include "core/graph/op_view.h"
#include "core/graph/tensor.h"

namespace msrt {

struct OpDef;  // ops/op_def.h

enum class ValueId : uint32_t {};
inline constexpr ValueId kNoValue{UINT32_MAX};  // an omitted optional input or output
inline constexpr uint32_t IndexOf(ValueId v) { return static_cast<uint32_t>(v); }

// A value has exactly one source: an input of its graph, a constant, or an output of a node (SSA).
struct Value {
  std::string name;
  Type type;
  std::shared_ptr<const ConstTensor> constant;  // set for constants only
};

struct Node {
  std::string name;
  std::string domain;  // "" is ONNX's default domain, "msrt" is ours
  std::string op;
  int32_t version = 0;           // of the op's semantics; 0: that of the op's entry
  const OpDef* def = nullptr;    // null: this build does not know the op, though a delegate may
  std::vector<ValueId> inputs;   // kNoValue where an optional input is left out
  std::vector<ValueId> outputs;  // kNoValue where the output is not used
  AttrList attrs;
  // Of a piece: the arithmetic of its whole node, which its own candidates must have; empty: any.
  // Made by the runtime, never part of a file.
  std::string arithmetic = {};
  // Nodes of different regions are never merged, so that what is computed again stays so
  // (core/autodiff/recompute.h). Made by the runtime, never part of a file.
  uint32_t region = 0;
};

class Graph {
 public:
  std::string name;
  std::vector<ValueId> inputs, outputs;
  std::vector<Node> nodes;  // each after the producers of its inputs

  const Value& value(ValueId id) const { return values_[IndexOf(id)]; }
  Value& value(ValueId id) { return values_[IndexOf(id)]; }
  size_t value_count() const { return values_.size(); }
  void ReserveValues(size_t count) { values_.reserve(count); }
  ValueId AddValue(std::string value_name, Type type);
  ValueId AddConstant(std::string value_name, ConstTensor data);
  ValueId AddInput(std::string value_name, Type type);

  // For every value the index of the node that produces it, or -1.
  std::vector<int32_t> Producers() const;
  // For every value how many node inputs and graph outputs use it.
  std::vector<uint32_t> UseCounts() const;
  // Replaces `from` by `to` in all node inputs and graph outputs.
  void ReplaceUses(ValueId from, ValueId to);
  // Removes unused values and renumbers the rest.
  void CompactValues();

 private:
  std::vector<Value> values_;
};

// The purpose of a state slot. The numbers are those of the file format and of msrt_state_role.
enum class StateRole : uint8_t {
  kCache,      // of one stream of requests: KV cache, recurrent state
  kParameter,  // a weight that training changes
  kOptimizer,  // what an optimizer keeps beside a parameter: momentum, moments
  kStatistic,  // running mean and variance
};
inline constexpr uint32_t kStateRoleCount = 4;
std::string_view StateRoleName(StateRole role);
// Runs write slots of these roles in their own memory; a failed run may leave a mixture. Writes to
// all others become visible when the run succeeds.
inline constexpr bool IsUpdatedInPlace(StateRole role) {
  return role == StateRole::kParameter || role == StateRole::kOptimizer;
}
// A cache belongs to one session; sessions may share the slots of all other roles.
inline constexpr bool IsShareable(StateRole role) { return role != StateRole::kCache; }

// A named tensor that outlives the runs of a session. Graphs touch it with msrt.StateRead and
// msrt.StateWrite.
struct StateSlot {
  std::string name;
  Type type;            // dims may be symbolic: a cache may grow
  ConstTensor initial;  // the value in a new or reset session
  StateRole role = StateRole::kCache;
};

struct Module {
  std::string name, producer;
  std::vector<Graph> graphs;
  // Indices of the graphs that a session can run as functions; the first is the default.
  std::vector<uint32_t> entries;
  std::vector<StateSlot> states;
  std::vector<std::string> symbols;  // names of symbolic dims; SymbolDim(i) refers to symbols[i]
  std::vector<std::pair<std::string, std::string>> metadata;
  // Made by the runtime: nodes may be pieces, with local attributes. Never set for a module from a
  // file or an application.
  bool has_pieces = false;

  const Graph& main() const { return graphs[entries[0]]; }
  Graph& main() { return graphs[entries[0]]; }
  // Returns the symbolic dim of that name; adds the symbol if it is new.
  int64_t SymbolFor(std::string_view symbol_name);
};

// "node 17 'conv1' (Conv)".
std::string Describe(const Graph& graph, size_t node_index);
inline std::string OpName(const Node& node) {
  return node.domain.empty() ? node.op : node.domain + "." + node.op;
}

// Readable text of a whole graph or module with types, one node per line.
std::string Print(const Graph& graph, const Module* module = nullptr);
std::string Print(const Module& module);

}  // namespace msrt

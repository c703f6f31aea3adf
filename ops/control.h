// Control flow: nodes that call graphs of their module, the arguments that they pass, and the types
// of their results.
//
// A graph sees nothing of its caller but its inputs: values that a branch or a body captures are
// passed with every call, after its own parameters. So the inputs of a node end with the captured
// values:
//   If            condition, captured...
//       branches: captured... -> results
//   msrt.SwitchN  index, captured...
//       branches: captured... -> results
//   Loop          trip count?, condition?, carried..., captured...
//       body:     iteration, condition, carried..., captured...
//                 -> condition, carried..., scanned...
//   Scan          carried..., scanned..., captured...
//       body:     carried..., slices..., captured... -> carried..., slices...
//   msrt.While    carried..., captured...
//       condition: carried..., captured... -> bool
//       body:     carried..., captured... -> carried...
//   msrt.Call     arguments... (attribute graph), or function, arguments...
//   msrt.Partial  captured... (attribute graph)
//                 -> a function of the remaining parameters: captured values come first
#pragma once

#include <vector>

#include "core/base/parallel_for.h"
#include "ops/op_def.h"

namespace msrt {

enum class ControlKind : uint8_t { kIf, kSwitch, kLoop, kScan, kWhile, kCall, kPartial };

// The parts of a node's inputs and outputs. Only loops carry and scan values.
struct ControlShape {
  ControlKind kind;
  size_t leading = 0;  // inputs before the carried ones: conditions, counts, an index, a function
  size_t carried = 0, scan_inputs = 0;
  std::vector<uint32_t> graphs;  // branches in order; then, else; condition, body
  size_t captured_from() const { return leading + carried + scan_inputs; }
  // Inputs and outputs that only the body of a Loop has: the iteration and the condition it is
  // passed, and the condition it returns. Input body_extra_inputs() + i of the body is node input
  // leading + i, and output body_extra_outputs() + i of the body becomes node output i.
  size_t body_extra_inputs() const { return kind == ControlKind::kLoop ? 2 : 0; }
  size_t body_extra_outputs() const { return kind == ControlKind::kLoop ? 1 : 0; }
};

bool IsControl(const Node& node);
// Requires IsControl and attributes that fit the entry. CallsOf checks the counts against the node.
ControlShape ShapeOfControl(const Node& node);

// One call of a graph, with the types of its arguments.
struct GraphCall {
  uint32_t graph = 0;
  std::string_view role;  // "body"
  std::vector<Type> arguments;
};
// Returns the calls of a node, from the types of its inputs. Errors name the counts that do not
// fit.
Result<std::vector<GraphCall>> CallsOf(const Node& node, FunctionRef<Type(ValueId)> type_of);

// Checks the arguments against the inputs of the called graph; only the first inputs for a Partial.
Status CheckArguments(const Module& module, const Node& node, const GraphCall& call);

// Returns the types of the node's outputs from those of the graphs it calls; undeclared where they
// are not known yet.
Result<std::vector<Type>> ResultsOf(const Module& module, const Graph& graph, const Node& node);

}  // namespace msrt

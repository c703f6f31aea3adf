// Control flow: nodes that call graphs of their module. What they hand to those graphs, and what
// they give, as far as types tell.
//
// A graph sees nothing of its caller but its inputs: what a branch or a body captures is handed to
// it with every call, after its own parameters. So the inputs of a node end with the captured
// values:
//   If          condition, captured...                        branches: captured... -> results
//   msrt.SwitchN index, captured...                           branches: captured... -> results
//   Loop        trip count?, condition?, carried..., captured...
//                                    body: iteration, condition, carried..., captured... ->
//                                    condition, carried..., scanned...
//   Scan        carried..., scanned..., captured...           body: carried..., slices...,
//   captured... -> carried..., slices... msrt.While  carried..., captured...   condition:
//   carried..., captured... -> bool;  body: the same -> carried... msrt.Call   arguments...
//   (attribute graph), or function, arguments... msrt.Partial captured... (attribute graph) -> a
//   function of the remaining parameters: captured values come first
#pragma once

#include <vector>

#include "core/base/parallel_for.h"
#include "ops/op_def.h"

namespace msrt {

enum class ControlKind : uint8_t { kIf, kSwitch, kLoop, kScan, kWhile, kCall, kPartial };

// How the inputs and outputs of a node divide. Loops only: others carry and scan nothing.
struct ControlShape {
  ControlKind kind;
  size_t leading = 0;  // inputs before the carried ones: conditions, counts, an index, a function
  size_t carried = 0, scan_inputs = 0;
  std::vector<uint32_t> graphs;  // branches in order; then, else; condition, body
  size_t captured_from() const { return leading + carried + scan_inputs; }
  // What is the body's alone: the number and the condition that a Loop tells it, and the condition
  // that it answers. Input told() + i of the body is node input leading + i, and output answered()
  // + i of the body becomes node output i.
  size_t told() const { return kind == ControlKind::kLoop ? 2 : 0; }
  size_t answered() const { return kind == ControlKind::kLoop ? 1 : 0; }
};

bool IsControl(const Node& node);
// Requires IsControl and attributes that fit the entry. The numbers may still not fit the node:
// CheckCalls tells.
ControlShape ShapeOfControl(const Node& node);

// One use of a graph: the types of what it gets.
struct GraphCall {
  uint32_t graph = 0;
  std::string_view role;  // "body"
  std::vector<Type> arguments;
};
// The graphs that a node calls, from the types of its inputs. Errors say which numbers do not fit.
Result<std::vector<GraphCall>> CallsOf(const Node& node, FunctionRef<Type(ValueId)> type_of);

// The graph that is called takes what it gets; the first inputs only, if the node is a Partial.
Status CheckArguments(const Module& module, const Node& node, const GraphCall& call);

// The types of the node's outputs from those of the graphs it calls, which may be undeclared where
// they are not known yet.
Result<std::vector<Type>> ResultsOf(const Module& module, const Graph& graph, const Node& node);

}  // namespace msrt

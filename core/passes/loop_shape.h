// Facts about loops that passes need beyond their ControlShape.
#pragma once

#include <optional>

#include "ops/control.h"

namespace msrt {

inline bool IsLoop(const ControlShape& shape) {
  return shape.kind == ControlKind::kLoop || shape.kind == ControlKind::kScan ||
         shape.kind == ControlKind::kWhile;
}

struct LoopGraphs {
  Graph* body = nullptr;
  Graph* condition = nullptr;  // of a While
};
inline LoopGraphs GraphsOf(Module* module, const ControlShape& shape) {
  LoopGraphs loop{&module->graphs[shape.graphs.back()]};
  if (shape.kind == ControlKind::kWhile) loop.condition = &module->graphs[shape.graphs[0]];
  return loop;
}

// Returns the number of slices of a Scan, or -1 if its inputs do not determine it or disagree.
int64_t ScanLength(const Graph& graph, const Node& node, const ControlShape& shape);

// The value of a constant of one element that is a bool, i32 or i64.
std::optional<int64_t> ConstantNumber(const Graph& graph, ValueId v);

}  // namespace msrt

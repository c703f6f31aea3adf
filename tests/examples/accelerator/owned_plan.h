// A plan for control flow that the accelerator takes whole: every tensor of every graph inside has
// a fixed offset in one block of memory. Sizes are fixed and no graph calls itself, so that all of
// it is known at compile time.
#pragma once

#include <string>
#include <vector>

#include "tests/examples/accelerator/accelerator.h"

namespace accelerator {

// The location of a tensor: in the memory of the run, or among the constants of the kernel.
struct Slot {
  enum Where : uint8_t { kNowhere, kArena, kConstant } where = kNowhere;
  size_t offset = 0, bytes = 0;
};

struct OwnedGraph;

// A node of the inner delegate, or nested control flow.
struct OwnedStep {
  enum Kind : uint8_t { kKernel, kIf, kLoop, kWhile } kind = kKernel;
  const msrt_graph_view* graph = nullptr;
  uint32_t node = 0;
  std::vector<Slot> inputs, outputs;
  size_t kernel = 0;                // index among all kernels of the plan
  size_t leading = 0, carried = 0;  // as in ops/control.h
  std::vector<OwnedGraph> graphs;   // then, else; body; condition, body
};

// A graph, for one node that calls it.
struct OwnedGraph {
  std::vector<Slot> inputs, outputs;
  std::vector<OwnedStep> steps;
};

struct OwnedPlan {
  OwnedStep step;
  size_t arena_bytes = 0, constant_bytes = 0, kernels = 0;
  std::vector<std::pair<Slot, const void*>> constants;
  double seconds = 0;   // of one run, by the inner delegate's estimates
  std::string refused;  // why there is no plan
};

bool IsOwned(const Options& options, const msrt_node_view& node);
OwnedPlan PlanOwned(const Accelerator& a, const msrt_host_api* host, const msrt_graph_view& graph,
                    uint32_t node);

}  // namespace accelerator

// Decides how ranks share the work of a graph: which box of each value each rank computes, which
// pieces of nodes compute them, and which values ranks exchange. Every rank makes the same plan for
// all ranks.
#pragma once

#include <optional>
#include <vector>

#include "core/parallel/redistribute.h"
#include "ops/required_boxes.h"

namespace msrt {

// Machine and network, as far as decisions depend on them. All ranks must have the same numbers.
struct SplitCosts {
  double message_seconds = 30e-6;
  double link_bytes_per_second = 2e9;
  double flops_per_second = 20e9;        // of one rank
  double memory_bytes_per_second = 5e9;  // of a copy
};

enum class HaloRule : uint8_t {
  kByCost,
  kExchange,   // each value that is required beyond its owner is exchanged
  kRecompute,  // only inputs of the graph are; everything else is computed where it is required
};
enum class OverlapRule : uint8_t { kByCost, kNever, kAlways };
// The part of each input that a rank is given.
enum class InputRule : uint8_t {
  kOwned,     // its own box; halos are exchanged
  kRequired,  // all that it requires, so that no input is exchanged
  kWhole,
};

struct SplitOptions {
  std::vector<int> parts;  // along each axis of the grid of ranks; their product is the ranks
  std::vector<int> dims = {2, 3};  // by axis: the dim of the graph's inputs that it cuts
  // By axis: the share of each part; none: equal shares.
  std::vector<std::vector<double>> shares = {};
  InputRule inputs = InputRule::kOwned;
  HaloRule halos = HaloRule::kByCost;
  OverlapRule overlap = OverlapRule::kByCost;
  SplitCosts costs = {};
  // By node of the graph: its granule by dim of output 0 (msrt_candidate). Pieces of the node begin
  // and end at multiples of it. Empty: none.
  std::vector<Dims> granules = {};
  // By node: the arithmetic that its pieces must have. Empty: any.
  std::vector<std::string> arithmetics = {};
  std::string group = "world";
};

// The part of a node's work that one rank does.
struct RankPiece {
  // Boxes of the iteration space, together the piece: the interior first if it is computed while
  // the halo is in flight. One of rank 0 for a node that runs whole. Empty: nothing to do.
  std::vector<Box> pieces;
  std::vector<Box> outputs;  // what the piece computes, by output of the node
};

struct ValuePlan {
  std::vector<std::optional<Box>> computed;  // by rank: what it computes or is given
  // By rank: the boxes that it gets from an exchange; of no rank if the value is not exchanged.
  std::vector<std::vector<Box>> exchanged;
  std::vector<RankTransfers> transfers;  // by rank; empty: not exchanged
};

struct SplitPlan {
  int ranks = 1;
  std::vector<ValuePlan> values;              // by value; without ranks if it is not needed
  std::vector<std::vector<RankPiece>> nodes;  // by node, then by rank
  std::vector<std::vector<Box>> outputs;      // by output of the graph, then by rank
};

// Returns the number of ranks. kInvalidArgument if the options do not describe a grid.
Result<int> RanksOf(const SplitOptions& options);

// The plan does not refer to `spaces`. kUnsupported if the graph has state, control flow or
// communication, or sizes that depend on data; kInvalidArgument if the grid has more parts than an
// input has elements along the dim that is cut.
Result<SplitPlan> PlanSplit(const GraphSpaces& spaces, const SplitOptions& options);

}  // namespace msrt

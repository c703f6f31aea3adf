// Placement: from a graph and the registered delegates to a Program.
#pragma once

#include "core/place/program.h"

namespace msrt {

struct PlaceOptions {
  std::vector<std::string> delegates;  // allow only these, in any order; empty: all that are registered
  bool exact = false;                  // only candidates whose bits do not depend on the piece
  bool strict = false;                 // a delegate that fails to compile fails the model; otherwise placement is made again without it
};

// One choice for each node; nothing for nodes that the host runs itself.
struct Placement {
  struct Choice {
    int32_t delegate = -1;  // index into the delegates; -1: the host
    Candidate candidate;
  };
  std::vector<Choice> choices;
  std::vector<NodeExplanation> explanations;
};

// Asks every delegate and chooses. `banned` lists (delegate, node) pairs that failed to compile before.
Result<Placement> Place(const Graph& graph, const PlacedGraph& view, std::span<const Delegate* const> delegates,
                        const PlaceOptions& options, std::span<const std::pair<uint32_t, uint32_t>> banned);

// Places, compiles and lays out the steps; after a failed compile it places again without that delegate for that node.
// `place_millis` gets the time up to the first finished placement.
Result<std::unique_ptr<Program>> MakeProgram(const Graph& graph, std::unique_ptr<PlacedGraph> view,
                                             std::span<const Delegate* const> delegates, const PlaceOptions& options,
                                             const CompileContext& context, const Log& log, double* place_millis);

}  // namespace msrt

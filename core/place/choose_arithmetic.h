// The rule of exact mode: which arithmetic each node has. It depends on which candidates may be
// used, never on their costs, on threads or on measured times, so that a model computes the same
// bits however it is cut and wherever its parts run. Cost then chooses among the candidates of that
// arithmetic.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/delegate/delegate.h"

namespace msrt {

struct NamedCandidate {
  const Candidate* candidate;  // has an arithmetic
  uint32_t delegate;           // in the order of registration
};

// Returns the arithmetic of each node, which points into the candidates; empty where none runs it.
//
// Names are preferred in the order that msrt_candidate states. A node that runs alone in some
// candidate takes the first of the names of these. Every other node needs a candidate of several
// nodes: in order of preference, such a candidate sets the name of all of its nodes, unless it
// would change a name that another one set. A candidate is usable if each of its nodes has its
// name, or none. `on_host`, by node: the host itself can run it, which needs no name.
std::vector<std::string_view> ChooseArithmetic(const std::vector<bool>& on_host,
                                               std::span<const NamedCandidate> candidates);

}  // namespace msrt

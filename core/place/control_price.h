// The cost of control flow that the host runs: the alternative when a delegate offers to run a
// control node whole.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>

#include "core/delegate/delegate.h"
#include "core/delegate/offered_graph.h"

namespace msrt {

struct PlaceOptions;

// The assumed iterations of a loop whose count is not known.
inline constexpr double kTypicalTrips = MSRT_TYPICAL_TRIPS;

// Places the graphs that a node calls, each once, to estimate the time of one run. All arguments
// outlive it.
class ControlPrices {
 public:
  ControlPrices(const Host& host, std::span<const std::shared_ptr<const Delegate>> delegates,
                const PlaceOptions& options)
      : host_(host), delegates_(delegates), options_(options) {}

  // Requires a control node inside of which no graph calls itself. Returns infinity if a graph that
  // it calls has a node that no delegate can run.
  double SecondsOf(const OfferedGraph& graph, const Node& node);

 private:
  double SecondsOfCall(const OfferedGraph& caller, uint32_t number);

  const Host& host_;
  const std::span<const std::shared_ptr<const Delegate>> delegates_;
  const PlaceOptions& options_;
  std::unordered_map<const OfferedGraph*, double> seconds_;  // of one run
};

}  // namespace msrt

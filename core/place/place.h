// Placement: which delegate runs each node, on which device and in which layouts, so that the whole
// takes the least time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/delegate/delegate.h"
#include "core/delegate/offered_graph.h"
#include "core/place/assign.h"
#include "core/place/control_price.h"
#include "core/place/cost_table.h"
#include "core/place/pin.h"

namespace msrt {

// One that failed and gets no node any more.
struct FailedDelegate {
  std::string name;
  std::string reason;  // "it failed at run time (...)"
};

struct PlaceOptions {
  std::vector<std::string>
      delegates;  // allow only these, in any order; empty: all that are registered
  std::vector<Pin> pins;
  std::vector<FailedDelegate> lost;
  std::shared_ptr<const CostTable>
      costs;             // measured, instead of estimates where it has them; null: none
  bool exact = false;    // only candidates whose bits do not depend on the piece
  bool reduced = false;  // also candidates that round to fewer bits than their types have
  bool strict =
      false;  // a delegate that fails fails the model; otherwise placement is made again without it
};

// Why a node is where it is: for --explain.
struct NodeExplanation {
  std::string delegate;  // empty: the runtime itself (views, state, control flow that no delegate
                         // took whole)
  std::string algorithm;
  double seconds = 0;     // of a step of several nodes, its share
  bool reduced = false;   // rounds to fewer bits than its types have
  bool measured = false;  // not estimated: seconds come from a table of costs
  std::vector<std::pair<std::string, std::string>> others;  // delegate, its reason or its cost
};

// What was decided, step by step in the order in which they run.
struct Placement {
  struct Step {
    std::vector<uint32_t> nodes;  // that it runs, ascending
    int32_t delegate = -1;        // index; -1: the runtime itself
    uint32_t option =
        0;  // of the placer; the same number means the same candidate in every placement
    const Candidate* candidate = nullptr;
    uint16_t device = 0;  // where its tensors are; views of the runtime may be on any device
    double seconds = 0;
  };
  std::vector<Step> steps;
  // Inputs and outputs of the graph that a loop keeps on a device, plain. All others are the
  // host's.
  std::vector<std::pair<ValueId, uint16_t>> kept;
  std::vector<NodeExplanation> explanations;  // by node
  double seconds = 0, lower_bound = 0;        // of the model of costs
  bool optimal = false;
  TransferCosts transfers;  // what the model charges for moving a value
};

// Asks every delegate once and then makes placements, again and again as candidates turn out not to
// compile. All arguments outlive it.
//
// Control flow that the host carries out has a price only where a delegate offers to take the node
// whole: elsewhere there is nothing to choose, and nobody waits for the price. With `prices` it has
// one everywhere, so that the placement tells what the graph costs.
class Placer {
 public:
  Placer(const OfferedGraph& graph, const Host& host,
         std::span<const std::shared_ptr<const Delegate>> delegates, const PlaceOptions& options,
         ControlPrices* prices = nullptr);
  // Once, before the first Place.
  Status Query();
  Result<Placement> Place() const;
  // From now on without this option; without this delegate.
  void Ban(uint32_t option, std::string reason);
  void BanDelegate(int32_t delegate, const std::string& reason);
  // Whether every node has somebody else.
  bool HasAlternatives(int32_t delegate) const;
  // By device of a placement; null for the host.
  const std::vector<std::shared_ptr<const Device>>& devices() const { return devices_; }

 private:
  struct Option {
    int32_t delegate;
    uint16_t device;
    Candidate candidate;
    std::string refused;  // why it is not used; empty: it may be
    bool measured = false;
  };
  void AddCandidates(uint32_t delegate, QueryResult answer);
  std::string Refused(uint32_t delegate, const Candidate& candidate) const;
  std::string PinnedAway(uint32_t delegate, const Node& node) const;
  // By node: whether the host or a delegate may run it.
  std::vector<bool> Taken(int32_t without = -1) const;
  Status CheckEveryNodeHasOne() const;
  // Its index, or why it cannot be used.
  std::string AddDevice(const std::shared_ptr<const Device>& device, uint16_t* index);
  AssignProblem MakeProblem(std::vector<uint32_t>* option_of) const;
  void AddHostWork(uint32_t n, double seconds, AssignProblem* problem,
                   std::vector<uint32_t>* option_of) const;
  // What the host's way of a control node costs; infinity where it has to be left to a delegate.
  // `offered`: there is one.
  double HostSeconds(const Node& node, bool offered) const;
  // By node: whether it is control flow that a delegate may take whole.
  std::vector<bool> OfferedWhole() const;
  void AddCarried(AssignProblem* problem) const;
  void SetCaps(std::span<const uint32_t> option_of, AssignProblem* problem) const;
  Status NamingDevices(Status status) const;
  // By device: the bytes that are left for tensors beside what stays there.
  std::vector<double> RoomsForTensors(const Placement& placement) const;
  void Explain(Placement* placement) const;

  const OfferedGraph& graph_;
  const Host& host_;
  const std::span<const std::shared_ptr<const Delegate>> delegates_;
  const PlaceOptions& options_;
  std::vector<std::shared_ptr<const Device>> devices_{nullptr};
  std::vector<size_t> free_bytes_{SIZE_MAX};  // by device
  ControlPrices* const given_prices_;
  mutable ControlPrices own_prices_;
  std::vector<Option> candidates_;
  std::vector<std::vector<std::pair<std::string, std::string>>>
      refusals_;  // by node: delegate, reason
};

}  // namespace msrt

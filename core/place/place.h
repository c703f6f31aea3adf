// Placement decides which delegate runs each node, on which device and in which layouts, so that a
// run takes the least time. It follows the passes; Program (core/program) is made from its result.
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

// A delegate or a device that failed and gets no more nodes.
struct FailedDelegate {
  std::string name;
  std::string reason;  // "it failed at run time (...)"
};

struct PlaceOptions {
  std::vector<std::string>
      delegates;  // allow only these, in any order; empty: all that are registered
  std::vector<Pin> pins;
  std::vector<FailedDelegate> failed_delegates;
  std::shared_ptr<const CostTable> costs;  // measured costs, which replace estimates; null: none
  bool exact = false;                      // each node has the arithmetic of ChooseArithmetic
  bool reduced = false;  // also candidates that compute with fewer bits than their types have
  // No candidates of several nodes: strips of an image keep rows of any value between two nodes.
  bool single_nodes = false;
  bool plain_layouts = false;  // all tensors in plain order, for debugging
  bool strict =
      false;  // a failing delegate fails the model; otherwise the graph is placed again without it
};

// Why a node is where it is: for --explain.
struct NodeExplanation {
  std::string delegate;  // empty: the runtime itself (views, state, control flow that no delegate
                         // took whole)
  std::string algorithm;
  std::string arithmetic;  // empty: no promise
  Dims granule = {};       // of the candidate; empty: none
  double seconds = 0;      // its share, if the step has several nodes
  bool reduced = false;    // computes with fewer bits than its types have
  bool measured = false;   // seconds are from a cost table, not estimated
  std::vector<std::pair<std::string, std::string>> others;  // delegate, its reason or its cost
};

// The result of placement: the steps in the order in which they run.
struct Placement {
  struct Step {
    std::vector<uint32_t> nodes;  // the nodes that it runs, ascending
    int32_t delegate = -1;        // index; -1: the runtime itself
    uint32_t option = 0;  // number of the placer's option; the same candidate in every placement
    const Candidate* candidate = nullptr;
    uint16_t device = 0;  // where its tensors are; the runtime's views may be on any device
    double seconds = 0;
  };
  std::vector<Step> steps;
  // Inputs and outputs of the graph that are on a device, plain: carried by a loop, or the
  // application's. All others are on the host.
  std::vector<std::pair<ValueId, uint16_t>> device_values;
  std::vector<NodeExplanation> explanations;  // by node
  double seconds = 0, lower_bound = 0;        // by the cost model
  bool optimal = false;
  TransferCosts transfers;  // the cost model's prices for moving a value
};

// Queries every delegate once and then makes placements, repeatedly if candidates fail to compile.
// All arguments outlive it.
//
// Control flow that the host runs has a price only where a delegate offers to run the node whole:
// elsewhere there is no choice, and computing the price would cost time. With `prices` it always
// has one, so that Placement::seconds is the cost of the whole graph.
class Placer {
 public:
  Placer(const OfferedGraph& graph, const Host& host,
         std::span<const std::shared_ptr<const Delegate>> delegates, const PlaceOptions& options,
         ControlPrices* prices = nullptr);
  // Call once, before the first Place.
  Status Query();
  Result<Placement> Place() const;
  // Later placements do not use this option, or this delegate.
  void Ban(uint32_t option, std::string reason);
  void BanDelegate(int32_t delegate, const std::string& reason);
  // Whether every node can run without this delegate.
  bool HasAlternatives(int32_t delegate) const;
  // By device of a placement; null for the host.
  const std::vector<std::shared_ptr<const Device>>& devices() const { return devices_; }

 private:
  struct Option {
    int32_t delegate;
    uint16_t device;
    Candidate candidate;
    std::string refused;  // why it is never used; empty: see WhyNotUsed
    bool measured = false;
  };
  void AddCandidates(uint32_t delegate, QueryResult answer);
  std::string WhyRefused(uint32_t delegate, const Candidate& candidate) const;
  // Returns why no delegate may run this control node whole.
  std::string WhyNotTaken(const Node& control) const;
  std::string WhyPinnedAway(uint32_t delegate, std::string_view device, const Node& node) const;
  // By node: the arithmetic that exact mode, or the node itself, fixes; empty: any.
  std::vector<std::string_view> Arithmetics() const;
  // Returns why the option is not used; empty: it may be used.
  std::string WhyNotUsed(const Option& option, std::span<const std::string_view> arithmetics) const;
  // By node: whether the host or a delegate may run it.
  std::vector<bool> CoveredNodes(int32_t without = -1) const;
  Status CheckEveryNodeIsCovered() const;
  // Checks that nodes which state their arithmetic have candidates of it.
  Status CheckFixedArithmetics() const;
  // Sets `index` and returns an empty string, or returns why the device cannot be used. Delegates
  // may share a device.
  std::string AddDevice(const std::shared_ptr<const Device>& device, uint16_t* index);
  // Sets the devices of a delegate's options, or why they cannot be used.
  void AddDevices(const Delegate& delegate, std::span<Option> options);
  TransferCosts MakeTransferCosts() const;
  AssignProblem MakeProblem(std::vector<uint32_t>* option_of) const;
  void AddHostWork(uint32_t n, double seconds, AssignProblem* problem,
                   std::vector<uint32_t>* option_of) const;
  // Returns the cost of a control node that the host runs; infinity if it must run on a delegate.
  // `offered`: a delegate offers to run it whole.
  double HostSeconds(const Node& node, bool offered) const;
  // By node: whether it is control flow that a delegate may run whole.
  std::vector<bool> OfferedWhole() const;
  void AddCarried(AssignProblem* problem) const;
  Status AddHomes();
  void SetCaps(std::span<const uint32_t> option_of, AssignProblem* problem) const;
  Status WithDeviceNames(Status status) const;
  // By device: the bytes left for tensors beside weights, workspaces and carried values.
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
  std::vector<std::pair<ValueId, uint16_t>> homes_;  // inputs and outputs that are on a device
  std::vector<Option> candidates_;
  std::vector<std::vector<std::pair<std::string, std::string>>>
      refusals_;  // by node: delegate, reason
};

}  // namespace msrt

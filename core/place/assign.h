// The placement problem without graphs and delegates: nodes in program order, the ways to run them,
// and what their values cost to move. Assign finds the ways that take the least time together,
// exactly. Placement fills the problem in from what delegates offer.
//
// The time of a plan is the sum of
//   kernels    the seconds of every chosen option, once an option;
//   transfers  copies and layout changes, each (value, state) at most once however many read it
//   (transfer.h); launches   launch_seconds of a delegate each time that, in program order, it
//   takes over from another one or begins; carried    what it costs to keep the values that a loop
//   carries where the plan keeps them.
// An option of several nodes runs as one step in the place of its last node.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/delegate/transfer.h"

namespace msrt {

struct AssignValue {
  std::array<double, kLayoutCount> bytes = {};  // by Layout
  int32_t producer =
      -1;  // node; -1: on the host and plain from the start (inputs of the graph), unless carried
  std::vector<uint32_t> readers;  // nodes, ascending, each once; all after the producer
  bool is_output = false;         // must end on the host, plain, unless carried
};

// The delegate of what the runtime does itself (views, state): not launched, and no interruption of
// another delegate's launch.
inline constexpr uint32_t kHostWork = UINT32_MAX;

// One way to run one or several nodes.
struct AssignOption {
  std::vector<uint32_t> nodes;  // ascending
  uint32_t delegate = kHostWork;
  // Values that cross the border, with the state that the option wants or makes. Constants are not
  // listed, nor what nobody outside reads.
  std::vector<std::pair<uint32_t, TensorState>> inputs, outputs;
  double seconds = 0;
  double memory_bytes = 0;  // counts against the cap of `device`
  uint16_t device = 0;
};

// What a run of the graph hands to the next one: `begin` is made by no node and no output, `end` is
// an output. The plan keeps both plain on one device.
struct AssignCarried {
  uint32_t begin, end;
  std::vector<double> seconds;  // by device, a run; infinity: it cannot be kept there
};

struct AssignProblem {
  uint32_t node_count = 0;
  std::vector<AssignValue> values;
  std::vector<AssignOption> options;
  std::vector<AssignCarried> carried;
  std::vector<double> launch_seconds;  // by delegate
  std::vector<double>
      device_caps;  // in bytes, by device, the host first; infinity: none. At most kMaxDevices
  TransferCosts transfers;  // with a link for each device
};

struct Assignment {
  std::vector<uint32_t> option_of_node;
  std::vector<uint16_t> carried_on;  // devices, by AssignProblem::carried
  double seconds = 0;
  double lower_bound = 0;         // no plan is faster than this
  bool optimal = false;           // seconds is the least possible
  std::vector<uint32_t> refused;  // options that are not Admissible, ascending
};

// The fastest plan; where that is not proven, one no slower than what Assign finds for any delegate
// alone. Errors: kUnsupported where nodes cannot be covered (the message names one that has no
// option at all), kLimitExceeded where no plan keeps the caps or the search ended before it found
// one, kInvalidArgument for a problem that is not well-formed.
Result<Assignment> Assign(const AssignProblem& problem);

// OK, or why an option cannot be part of any plan. What it makes must be listed where somebody
// outside reads it, and everybody who does must come after its last node: then the steps, each at
// its last node, never wait for one another in a circle. Requires indices in range.
Status Admissible(const AssignProblem& problem, const AssignOption& option);

// The time of a plan; infinity if an option is chosen by some of its nodes but not by all, or reads
// what is not made. Caps are not looked at. Requires one option for each node and a device for each
// carried pair.
double SecondsOf(const AssignProblem& problem, std::span<const uint32_t> option_of_node,
                 std::span<const uint16_t> carried_on = {});

}  // namespace msrt

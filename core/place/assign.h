// The placement problem without graphs and delegates: nodes in program order, the options to run
// them, and the costs of moving their values. Assign finds the options that take the least time
// together, exactly. Placement makes the problem from the candidates that delegates offer.
//
// The time of an assignment is the sum of
//   - kernels: the seconds of every chosen option, once per option;
//   - transfers: copies and layout changes, each (value, state) at most once however many nodes
//     read it (transfer.h);
//   - launches: launch_seconds of a delegate each time that, in program order, it is the first or
//     takes over from another one;
//   - carried: the cost of keeping loop-carried values on the device where the assignment keeps
//     them.
// An option of several nodes runs as one step at the position of its last node.
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
      -1;  // node; -1: in `home` from the start (inputs of the graph), unless carried
  std::vector<uint32_t> readers;  // nodes, ascending, each once; all after the producer
  bool is_output = false;         // must end in `home`, unless carried
  TensorState home = kHostPlain;
};

// The delegate of steps that the runtime runs itself (views, state): not launched, and does not
// interrupt another delegate's launch.
inline constexpr uint32_t kHostWork = UINT32_MAX;

// One way to run one or several nodes.
struct AssignOption {
  std::vector<uint32_t> nodes;  // ascending
  uint32_t delegate = kHostWork;
  // Values that cross the border, with the state that the option wants or makes. Constants and
  // values that only its own nodes read are not listed.
  std::vector<std::pair<uint32_t, TensorState>> inputs, outputs;
  double seconds = 0;
  double memory_bytes = 0;  // counts against the cap of `device`
  uint16_t device = 0;
};

// A value that one run of the graph passes to the next: `begin` is not made by a node and is not an
// output, `end` is an output. The assignment keeps both plain on one device.
struct AssignCarried {
  uint32_t begin, end;
  std::vector<double> seconds;  // by device, for one run; infinity: cannot be kept there
};

struct AssignProblem {
  uint32_t node_count = 0;
  std::vector<AssignValue> values;
  std::vector<AssignOption> options;
  std::vector<AssignCarried> carried;
  std::vector<double> launch_seconds;  // by delegate
  std::vector<double>
      device_caps;  // in bytes, by device, the host first; infinity: no cap. At most kMaxDevices
  TransferCosts transfers;  // with a link for each device
};

struct Assignment {
  std::vector<uint32_t> option_of_node;
  std::vector<uint16_t> carried_on;  // devices, by AssignProblem::carried
  double seconds = 0;
  double lower_bound = 0;         // no assignment is faster than this
  bool optimal = false;           // seconds is the least possible
  std::vector<uint32_t> refused;  // options that are not Admissible, ascending
};

// Returns the fastest assignment; if that is not proven, one no slower than what Assign finds for
// any delegate alone. Errors: kUnsupported if nodes cannot be covered (the message names one that
// has no option at all), kLimitExceeded if no assignment keeps the caps or the search ended before
// it found one, kInvalidArgument for a problem that is not well-formed.
Result<Assignment> Assign(const AssignProblem& problem);

// OK, or why an option cannot be part of any assignment. A value that it makes must be listed if a
// node outside reads it, and every such reader must come after its last node: then the steps, each
// at its last node, never wait for one another in a circle. Requires indices in range.
Status Admissible(const AssignProblem& problem, const AssignOption& option);

// Returns the time of an assignment; infinity if an option is chosen by some of its nodes but not
// by all, or reads a value that is not made. Caps are ignored. Requires one option for each node
// and a device for each carried pair.
double SecondsOf(const AssignProblem& problem, std::span<const uint32_t> option_of_node,
                 std::span<const uint16_t> carried_on = {});

}  // namespace msrt

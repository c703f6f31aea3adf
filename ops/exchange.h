// The boxes that an msrt.Exchange node moves between ranks, read from its attributes and written to
// them. core/parallel makes the nodes, core/run executes them.
#pragma once

#include <string>
#include <vector>

#include "core/region/box.h"
#include "ops/op_def.h"

namespace msrt {

// A box of a value that goes to or comes from one rank, in global coordinates.
struct PeerBox {
  int rank = 0;
  Box box;
  bool operator==(const PeerBox&) const = default;
};

struct ExchangePlan {
  DType dtype = DType::kNone;
  Box own;                     // the part of the value that this rank has: input 0
  std::vector<Box> required;   // one for each output
  std::vector<PeerBox> sends;  // parts of `own`
  // Disjoint from each other and from `own`; with it they cover every output.
  std::vector<PeerBox> receives;
  std::string group;  // of ranks, for messages

  bool operator==(const ExchangePlan&) const = default;
};

// kInvalidModel, with the reason, if the attributes do not describe such a plan.
Result<ExchangePlan> ExchangePlanOf(const OpView& op);
AttrList AttrsOf(const ExchangePlan& plan);

int64_t ElementsOf(std::span<const PeerBox> boxes);

}  // namespace msrt

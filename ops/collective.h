// What a collective node does, read from its attributes. core/run executes it.
#pragma once

#include <optional>
#include <string>

#include "core/comm/communicator.h"
#include "ops/op_def.h"

namespace msrt {

enum class CollectiveKind : uint8_t { kAllReduce };

struct CollectivePlan {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  DType dtype = DType::kNone;
  CommReduce reduce = CommReduce::kSum;
  CommOrder order = CommOrder::kFixedTree;
  bool by_shards = false;  // the inputs are those of the rank's virtual shards
  std::string group;       // of ranks, for messages
};

// Requires a valid node of this family.
CollectivePlan CollectivePlanOf(const OpView& op);
// The type of elements that reductions add; nullopt for others.
std::optional<CommType> CommTypeOf(DType dtype);
// Whether the node is one of this family. All others that communicate are msrt.Exchange.
bool IsCollective(const Node& node);

}  // namespace msrt

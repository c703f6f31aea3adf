// What a collective node does, read from its attributes. core/run executes it.
#pragma once

#include <optional>
#include <string>

#include "core/comm/communicator.h"
#include "ops/op_def.h"

namespace msrt {

enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kSend,
  kReceive,
  kGroupRank,
  kGroupSize,
  kAllScatterAdd,
};

struct CollectivePlan {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  DType dtype = DType::kNone;  // of the elements that are sent
  CommReduce reduce = CommReduce::kSum;
  CommOrder order = CommOrder::kFixedTree;
  bool by_shards = false;   // the inputs are those of the rank's virtual shards
  bool background = false;  // beside other collectives, on a communicator of its own
  int ranks = 0;            // that the group must have; 0: any number
  int peer = 0;             // the root, or the other rank of Send and Receive
  // Along which ranks have parts; negative: from the end. AllToAll has one for its output, too.
  int axis = 0, concat_axis = 0;
  std::string name;   // of the op, for messages
  std::string group;  // of ranks, for messages
};

// Requires a valid node of this family.
CollectivePlan CollectivePlanOf(const OpView& op);
// The type of elements that reductions add; nullopt for others.
std::optional<CommType> CommTypeOf(DType dtype);
// Whether the node is one of this family. All others that communicate are msrt.Exchange.
bool IsCollective(const Node& node);

}  // namespace msrt

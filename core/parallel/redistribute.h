// The plan of a redistribution: from the boxes of a tensor that ranks own to the boxes that they
// require. Halo exchange, gathering and re-sharding are all of this kind. Every rank makes the plan
// of all ranks by itself, so that both sides agree without a message.
#pragma once

#include <span>
#include <vector>

#include "ops/exchange.h"

namespace msrt {

// The transfers of one rank. Between two ranks, sends and receives are in the same order.
struct RankTransfers {
  std::vector<PeerBox> sends, receives;

  // Parts for one rank are sent as one message.
  int messages_sent() const;
  int64_t elements_sent() const { return ElementsOf(sends); }
};

// `required` has, by rank, any number of boxes. Each rank receives every element that it requires
// and does not own exactly once, from the first rank that owns it. kInvalidArgument if no rank
// does.
Result<std::vector<RankTransfers>> PlanRedistribution(std::span<const Box> owned,
                                                      std::span<const std::vector<Box>> required);

// Returns disjoint boxes that make up the part of `box` outside all of `without`.
std::vector<Box> Subtract(const Box& box, std::span<const Box> without);

}  // namespace msrt

// The description of an operation that ranks compare with each other, and its text in messages.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "core/comm/communicator.h"

namespace msrt {

enum class CommKind : uint8_t {
  kExchange,
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kBroadcast,
  kBarrier,
  kSplit,
  kAborted,  // on the wire only: the sender has failed
};

std::string_view CommKindName(CommKind kind);  // "AllReduce"

// Equal on all ranks of a collective; plain bytes, so that it can be sent. Exchanges of different
// ranks have nothing in common but their kind.
struct CommHeader {
  uint64_t sequence = 0;  // numbers the collectives of a communicator from 1
  uint64_t count = 0;     // elements of reductions, else bytes
  uint32_t detail = 0;    // the root, a hash of the counts of all ranks, or kSplitPairs
  CommKind kind = CommKind::kExchange;
  CommType type = CommType::kU8;
  CommReduce reduce = CommReduce::kSum;
  CommOrder order = CommOrder::kAny;

  bool operator==(const CommHeader&) const = default;
};
static_assert(sizeof(CommHeader) == 24);

// The header of one message between two ranks.
struct MessageHeader {
  CommHeader op;
  uint64_t bytes = 0;
};
static_assert(sizeof(MessageHeader) == 32);

// The detail of a split into pairs with rank 0.
inline constexpr uint32_t kSplitPairs = 1;

uint64_t HashNumbers(std::span<const size_t> numbers);
uint32_t HashCounts(std::span<const size_t> counts);

// "AllReduce #17 (sum of 1024 f32)".
std::string Describe(const CommHeader& op);

// Two ranks called different operations. The text does not depend on which of them found out.
Status MismatchError(std::string_view group, int rank, const CommHeader& mine, int peer,
                     const CommHeader& theirs);

// How long an operation may wait for its peers before it fails, unless CommOptions says otherwise.
// A rank may compute or write files for minutes between two operations.
inline constexpr std::chrono::milliseconds kDefaultStallLimit = std::chrono::minutes(10);
// `awaited`: the ranks that still owe something; empty if that is not known.
Status StallError(std::string_view group, int rank, std::chrono::milliseconds limit,
                  std::span<const int> awaited);

// Checks a message that arrived from `peer` while this rank runs `op` and expects `bytes`.
Status CheckMessage(std::string_view group, int rank, const CommHeader& op, uint64_t bytes,
                    int peer, const MessageHeader& message);

}  // namespace msrt

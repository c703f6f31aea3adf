#include "core/comm/comm_op.h"

#include <algorithm>
#include <vector>

#include "core/comm/combine.h"

namespace msrt {
namespace {

bool IsReduction(CommKind kind) {
  return kind == CommKind::kAllReduce || kind == CommKind::kReduceScatter;
}

}  // namespace

std::string_view CommKindName(CommKind kind) {
  constexpr std::string_view kNames[] = {"Exchange",  "AllReduce", "ReduceScatter",
                                         "AllGather", "AllToAll",  "Broadcast",
                                         "Barrier",   "Split",     "Abort"};
  const auto index = static_cast<size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "unknown operation";
}

uint64_t HashNumbers(std::span<const size_t> numbers) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a, by words
  for (size_t number : numbers) hash = (hash ^ number) * 0x100000001b3u;
  return hash;
}

uint32_t HashCounts(std::span<const size_t> counts) {
  const uint64_t hash = HashNumbers(counts);
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

std::string Describe(const CommHeader& op) {
  std::string text = StrCat(CommKindName(op.kind), " #", op.sequence);
  if (IsReduction(op.kind)) {
    StrAppend(&text, " (", CommReduceName(op.reduce), " of ", op.count, " ", CommTypeName(op.type),
              op.order == CommOrder::kFixedTree ? ", fixed tree)" : ")");
  } else if (op.kind == CommKind::kBroadcast) {
    StrAppend(&text, " (", op.count, " bytes from rank ", op.detail, ")");
  } else if (op.kind == CommKind::kAllGather) {
    StrAppend(&text, " (", op.count, " bytes in all)");
  } else if (op.kind == CommKind::kSplit && op.detail == kSplitPairs) {
    text += " (into pairs)";
  }
  return text;
}

Status MismatchError(std::string_view group, int rank, const CommHeader& mine, int peer,
                     const CommHeader& theirs) {
  const bool first = rank < peer;
  std::string text = StrCat("group '", group, "': rank ", first ? rank : peer, " calls ",
                            Describe(first ? mine : theirs), ", rank ", first ? peer : rank,
                            " calls ", Describe(first ? theirs : mine));
  const bool same_text = Describe(mine) == Describe(theirs);
  return InvalidArgument(text, same_text ? " with other counts per rank" : "",
                         "; all ranks must start the same collectives in the same order, and "
                         "exchanges in the same place among them");
}

Status StallError(std::string_view group, int rank, std::chrono::milliseconds limit,
                  std::span<const int> awaited) {
  std::vector<int> peers(awaited.begin(), awaited.end());
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  std::string names;
  for (const int peer : peers) StrAppend(&names, names.empty() ? "rank " : ", ", peer);
  return MakeStatus(Code::kDeadlineExceeded, "group '", group, "': rank ", rank, " waited ",
                    limit.count(), " ms for ", names.empty() ? "its peers" : names,
                    "; a rank is stuck or stopped, or the limit ",
                    "(CommOptions::stall_limit, MSRT_STALL_TIMEOUT) is too short for the work ",
                    "between operations");
}

Status CheckMessage(std::string_view group, int rank, const CommHeader& op, uint64_t bytes,
                    int peer, const MessageHeader& message) {
  if (op.kind == CommKind::kExchange && message.op.kind == CommKind::kExchange) {
    if (message.bytes == bytes) return OkStatus();
    return InvalidArgument("group '", group, "': rank ", rank, " expects ", bytes,
                           " bytes from rank ", peer, " in ", Describe(op), ", rank ", peer,
                           " sends ", message.bytes, " in ", Describe(message.op),
                           "; parts between two ranks must match in order and size");
  }
  if (!(op == message.op)) return MismatchError(group, rank, op, peer, message.op);
  if (message.bytes == bytes) return OkStatus();
  return InvalidArgument("group '", group, "', ", Describe(op), ": rank ", rank, " expects ", bytes,
                         " bytes from rank ", peer, ", which sends ", message.bytes,
                         "; counts must agree on all ranks");
}

}  // namespace msrt

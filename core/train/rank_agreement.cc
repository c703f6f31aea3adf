#include "core/train/rank_agreement.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <vector>

namespace msrt {
namespace {

Status Await(Result<CommWorkPtr> work) {
  if (!work.ok()) return std::move(work).status();
  return (*work)->Wait({});
}

}  // namespace

Status CheckSameOnRanks(Communicator& comm, std::string_view what, std::string_view text,
                        std::string_view fix) {
  const auto ranks = static_cast<size_t>(comm.size());
  const uint64_t own = XXH64(text.data(), text.size(), 0);
  std::vector<uint64_t> hashes(ranks);
  const std::vector<size_t> bytes(ranks, sizeof own);
  MSRT_RETURN_IF_ERROR(Await(comm.AllGather(&own, hashes.data(), bytes)));
  std::string others;
  for (size_t r = 1; r < ranks; ++r) {
    if (hashes[r] != hashes[0]) StrAppend(&others, others.empty() ? "" : ", ", r);
  }
  if (others.empty()) return OkStatus();
  return InvalidArgument("rank ", others, " of group '", comm.group(), "' has another ", what,
                         " than rank 0; ", fix);
}

Result<std::string> TextOfFirstRank(Communicator& comm, std::string text) {
  uint64_t size = text.size();
  MSRT_RETURN_IF_ERROR(Await(comm.Broadcast(&size, sizeof size, 0)));
  text.resize(size);
  if (size != 0) MSRT_RETURN_IF_ERROR(Await(comm.Broadcast(text.data(), text.size(), 0)));
  return text;
}

Result<bool> AnyRankSays(Communicator& comm, bool says) {
  int32_t any = says ? 1 : 0;
  MSRT_RETURN_IF_ERROR(
      Await(comm.AllReduce(&any, 1, CommType::kI32, CommReduce::kMax, CommOrder::kAny)));
  return any != 0;
}

Status SumOverRanks(Communicator& comm, std::span<int64_t> numbers) {
  return Await(comm.AllReduce(numbers.data(), numbers.size(), CommType::kI64, CommReduce::kSum,
                              CommOrder::kAny));
}

}  // namespace msrt

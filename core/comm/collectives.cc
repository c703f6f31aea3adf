#include "core/comm/collectives.h"

#include <cstring>
#include <memory>
#include <numeric>

#include "core/comm/combine.h"
#include "core/comm/tree_reduce.h"

namespace msrt {
namespace {

using Parts = std::vector<CommPart>;

// Messages are sent in the order me + 1, me + 2, ..., so that not all ranks begin with rank 0.
template <typename F>
Parts PartsOfPeers(const CommTransport& t, F&& part) {
  Parts parts;
  parts.reserve(static_cast<size_t>(t.size()) - 1);
  for (int i = 1; i < t.size(); ++i) parts.push_back(part((t.rank() + i) % t.size()));
  return parts;
}

std::byte* Mutable(const std::byte* data) { return const_cast<std::byte*>(data); }

// Room for one array of each peer, and the arrays of all ranks in order.
class PeerArrays {
 public:
  PeerArrays(CommTransport& t, size_t max_bytes)
      : rank_(static_cast<size_t>(t.rank())),
        arrays_(static_cast<size_t>(t.size())),
        room_(t.Scratch(max_bytes * (arrays_.size() - 1))) {}
  // At most max_bytes.
  void Use(size_t bytes, const std::byte* own) {
    bytes_ = bytes;
    size_t next = 0;
    for (size_t r = 0; r < arrays_.size(); ++r)
      arrays_[r] = r == rank_ ? own : room_ + bytes * next++;
  }
  CommPart part(int peer) const {
    return {peer, Mutable(static_cast<const std::byte*>(arrays_[static_cast<size_t>(peer)])),
            bytes_};
  }
  std::span<const void* const> arrays() const { return arrays_; }

 private:
  size_t rank_;
  size_t bytes_ = 0;
  std::vector<const void*> arrays_;
  std::byte* room_;
};

Status ReduceDirectly(CommTransport& t, const CommHeader& op, std::byte* data) {
  const size_t bytes = op.count * CommTypeBytes(op.type);
  PeerArrays peers(t, bytes);
  peers.Use(bytes, data);
  const Parts sends = PartsOfPeers(t, [&](int peer) { return CommPart{peer, data, bytes}; });
  const Parts receives = PartsOfPeers(t, [&](int peer) { return peers.part(peer); });
  MSRT_RETURN_IF_ERROR(t.Exchange(op, sends, receives));
  TreeReduce(peers.arrays(), data, op.count, op.type, op.reduce);
  return OkStatus();
}

// Each rank reduces its segment of a block and sends the result to all.
Status ReduceBlock(CommTransport& t, const CommHeader& op, std::byte* data, size_t count,
                   bool is_first, PeerArrays& peers) {
  const size_t element = CommTypeBytes(op.type);
  const auto segment = [&](int rank) {
    const auto [first, last] = SegmentOfRank(count, rank, t.size());
    return CommPart{rank, data + first * element, (last - first) * element};
  };
  const CommPart own = segment(t.rank());
  peers.Use(own.bytes, own.data);
  const Parts receives = PartsOfPeers(t, [&](int peer) { return peers.part(peer); });
  const Parts sends = PartsOfPeers(t, segment);
  MSRT_RETURN_IF_ERROR(is_first ? t.Exchange(op, sends, receives)
                                : t.Continue(op, sends, receives));
  TreeReduce(peers.arrays(), own.data, own.bytes / element, op.type, op.reduce);
  const auto result = [&](int peer) { return CommPart{peer, own.data, own.bytes}; };
  return t.Continue(op, PartsOfPeers(t, result), sends);
}

std::vector<size_t> Offsets(std::span<const size_t> counts) {
  std::vector<size_t> offsets(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), size_t{0});
  return offsets;
}

}  // namespace

std::pair<size_t, size_t> SegmentOfRank(size_t count, int rank, int size) {
  // Whole cache lines of any type, so that neighbours do not write to one line.
  constexpr size_t kGrain = 64;
  const size_t grains = (count + kGrain - 1) / kGrain;
  const auto n = static_cast<size_t>(size), r = static_cast<size_t>(rank);
  const auto begin = [&](size_t i) {
    return std::min(count, (grains / n * i + std::min(i, grains % n)) * kGrain);
  };
  return {begin(r), begin(r + 1)};
}

Status RunExchange(CommTransport& t, const CommHeader& op, std::span<const CommPart> sends,
                   std::span<const CommPart> receives) {
  // Parts of this rank to itself are copies; they match in order.
  Parts other_sends, other_receives;
  std::vector<const CommPart*> own;
  for (const CommPart& part : sends) {
    if (part.rank == t.rank()) own.push_back(&part);
    else other_sends.push_back(part);
  }
  size_t next = 0;
  for (const CommPart& part : receives) {
    if (part.rank != t.rank()) {
      other_receives.push_back(part);
    } else {
      const CommPart& from = *own[next++];
      if (part.bytes != 0) std::memmove(part.data, from.data, part.bytes);
    }
  }
  return t.Exchange(op, other_sends, other_receives);
}

Status RunAllReduce(CommTransport& t, const CommHeader& op, std::byte* data) {
  if (t.size() == 1) return OkStatus();
  if (auto status = t.AllReduce(op, data)) return *std::move(status);
  const size_t element = CommTypeBytes(op.type);
  if (op.count * element <= kDirectReduceBytes) return ReduceDirectly(t, op, data);
  const size_t block = std::min(op.count, kReduceBlockBytes / element);
  const auto [first, last] = SegmentOfRank(block, 0, t.size());  // none is longer
  PeerArrays peers(t, (last - first) * element);
  for (size_t begin = 0; begin < op.count; begin += block)
    MSRT_RETURN_IF_ERROR(ReduceBlock(t, op, data + begin * element,
                                     std::min(block, op.count - begin), begin == 0, peers));
  return OkStatus();
}

Status RunReduceScatter(CommTransport& t, const CommHeader& op, const std::byte* send,
                        std::byte* receive, std::span<const size_t> counts) {
  const size_t element = CommTypeBytes(op.type);
  const std::vector<size_t> offsets = Offsets(counts);
  const auto segment = [&](int rank) {
    const auto r = static_cast<size_t>(rank);
    return CommPart{rank, Mutable(send) + offsets[r] * element, counts[r] * element};
  };
  const CommPart own = segment(t.rank());
  if (t.size() == 1) {
    if (own.bytes != 0 && receive != own.data) std::memmove(receive, own.data, own.bytes);
    return OkStatus();
  }
  if (auto status = t.ReduceScatter(op, send, receive, counts)) return *std::move(status);
  PeerArrays peers(t, own.bytes);
  peers.Use(own.bytes, own.data);
  const Parts receives = PartsOfPeers(t, [&](int peer) { return peers.part(peer); });
  MSRT_RETURN_IF_ERROR(t.Exchange(op, PartsOfPeers(t, segment), receives));
  TreeReduce(peers.arrays(), receive, own.bytes / element, op.type, op.reduce);
  return OkStatus();
}

Status RunAllGather(CommTransport& t, const CommHeader& op, const std::byte* send,
                    std::byte* receive, std::span<const size_t> bytes) {
  const std::vector<size_t> offsets = Offsets(bytes);
  const auto segment = [&](int rank) {
    const auto r = static_cast<size_t>(rank);
    return CommPart{rank, receive + offsets[r], bytes[r]};
  };
  const CommPart own = segment(t.rank());
  if (own.bytes != 0 && own.data != send) std::memmove(own.data, send, own.bytes);
  const auto copy = [&](int peer) { return CommPart{peer, own.data, own.bytes}; };
  return t.Exchange(op, PartsOfPeers(t, copy), PartsOfPeers(t, segment));
}

Status RunBroadcast(CommTransport& t, const CommHeader& op, std::byte* data) {
  const int root = static_cast<int>(op.detail);
  if (t.rank() != root) {
    const CommPart part{root, data, op.count};
    return t.Exchange(op, {}, {&part, 1});
  }
  const auto copy = [&](int peer) { return CommPart{peer, data, op.count}; };
  return t.Exchange(op, PartsOfPeers(t, copy), {});
}

Status RunBarrier(CommTransport& t, const CommHeader& op) {
  if (auto status = t.Barrier(op)) return *std::move(status);
  const auto empty = [](int peer) { return CommPart{peer, nullptr, 0}; };
  return t.Exchange(op, PartsOfPeers(t, empty), PartsOfPeers(t, empty));
}

}  // namespace msrt

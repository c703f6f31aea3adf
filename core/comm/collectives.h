// Collectives made of Exchange, for engines that have nothing better. Every message carries the
// operation's header, so ranks that call different collectives find out from the first message.
// Reductions always follow the fixed tree (tree_reduce.h), so the bits are the same on all engines.
#pragma once

#include <span>

#include "core/comm/transport.h"

namespace msrt {

// Up to this many bytes, ranks send each other their whole contributions: one message of latency
// for size - 1 times the bytes. Beyond, each rank reduces its own segment and all gather the
// results: 2 * bytes * (size - 1) / size.
inline constexpr size_t kDirectReduceBytes = 8192;
// Large arrays are reduced block by block, which bounds the memory for the contributions of peers.
inline constexpr size_t kReduceBlockBytes = size_t{8} << 20;

// The elements [first, last) of the segment that `rank` reduces.
std::pair<size_t, size_t> SegmentOfRank(size_t count, int rank, int size);

// Each runs the operation on the calling thread. Arguments as in Communicator, already checked.
Status RunExchange(CommTransport& transport, const CommHeader& op, std::span<const CommPart> sends,
                   std::span<const CommPart> receives);
Status RunAllReduce(CommTransport& transport, const CommHeader& op, std::byte* data);
Status RunReduceScatter(CommTransport& transport, const CommHeader& op, const std::byte* send,
                        std::byte* receive, std::span<const size_t> counts);
Status RunAllGather(CommTransport& transport, const CommHeader& op, const std::byte* send,
                    std::byte* receive, std::span<const size_t> bytes);
Status RunBroadcast(CommTransport& transport, const CommHeader& op, std::byte* data);
Status RunBarrier(CommTransport& transport, const CommHeader& op);

}  // namespace msrt

// Ranks exchange tensors through communicators, whatever engine carries the bytes: threads of one
// process, shared memory, OpenMPI, Gloo. An engine is found at run time (engine.h).
//
// Operations are asynchronous. Each call starts one and returns a handle; operations of one
// communicator run in the order in which they were started, apart from the caller's thread (on a
// thread, or on a stream of a device). All ranks of a communicator start the same collectives in
// the same order. Buffers belong to the operation until it has ended. Every error names the rank,
// the group, the operation and its sequence number; after one, the communicator and all others of
// the job fail at once with the same error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/parallel_for.h"
#include "core/base/status.h"

namespace msrt {

// Element types that reductions add. Other operations move bytes.
enum class CommType : uint8_t { kF32, kF64, kF16, kBF16, kI32, kI64, kU8 };
enum class CommReduce : uint8_t { kSum, kProduct, kMin, kMax };

// How a sum over ranks is rounded. kFixedTree combines the contributions of ranks in one binary
// tree over `kVirtualShards` equal shards of the work, so that jobs of 1, 2, 4 and 8 ranks, each
// with the partial results of its own shards, have the same bits. See tree_reduce.h.
enum class CommOrder : uint8_t { kAny, kFixedTree };

// The bytes that go to or come from one rank. A rank may be its own peer.
struct CommPart {
  int rank = 0;
  std::byte* data = nullptr;
  size_t bytes = 0;
};

// An operation that was started. Destroying it before it ended waits for it.
class CommWork {
 public:
  virtual ~CommWork() = default;
  virtual bool done() const = 0;
  // kCancelled or kDeadlineExceeded if the limit expires: the operation goes on, and its buffers
  // stay in use, until it ends or the communicator is aborted. Without a limit the caller's thread
  // runs the operation itself where it can, which saves two thread switches.
  virtual Status Wait(const WaitLimit& limit) = 0;
};
using CommWorkPtr = std::unique_ptr<CommWork>;

// Payload bytes that a rank passed to others and got from them since the communicator exists. A
// byte that two ranks read counts twice. Bytes of a rank to itself do not count.
struct CommCounters {
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
};

// Operations are started by one thread at a time; Abort may be called from any.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& group() const = 0;   // for messages: "world", "world/rows 1"
  virtual const std::string& engine() const = 0;  // "threads", "shm", "mpi", "gloo"

  // Point to point, several at once: sends and receives of one call proceed together, so that ranks
  // that exchange with each other do not wait in circles. Parts between two ranks match in the
  // order of calls, then of parts. Ranks that take no part in an exchange need not call it. A send
  // may end before the peer receives, or only then. An exchange that can only proceed after a
  // collective that the peer has already begun is a mismatch.
  virtual Result<CommWorkPtr> Exchange(std::span<const CommPart> sends,
                                       std::span<const CommPart> receives) = 0;

  // Collectives. `data` is both argument and result.
  virtual Result<CommWorkPtr> AllReduce(void* data, size_t count, CommType type, CommReduce reduce,
                                        CommOrder order) = 0;
  // `send` has sum(counts) elements; this rank gets the reduced counts[rank()] of them.
  // The two do not overlap.
  virtual Result<CommWorkPtr> ReduceScatter(const void* send, void* receive,
                                            std::span<const size_t> counts, CommType type,
                                            CommReduce reduce, CommOrder order) = 0;
  // Rank r contributes bytes[r]; `receive` gets all of them, in the order of ranks.
  virtual Result<CommWorkPtr> AllGather(const void* send, void* receive,
                                        std::span<const size_t> bytes) = 0;
  // `sends` and `receives` have one part for each rank, in order.
  virtual Result<CommWorkPtr> AllToAll(std::span<const CommPart> sends,
                                       std::span<const CommPart> receives) = 0;
  virtual Result<CommWorkPtr> Broadcast(void* data, size_t bytes, int root) = 0;
  virtual Result<CommWorkPtr> Barrier() = 0;

  virtual CommCounters counters() const = 0;

  // Whether an operation runs, here or in a communicator that Split has made of this one, and the
  // current or last one in words: "in Exchange #3 of group 'halos'". Pairs (SplitPairs) do not
  // count. Any thread.
  virtual bool active() const { return false; }
  virtual std::string doing() const { return {}; }

  // A collective: ranks of one color form a new communicator, ordered by key, then by rank. A
  // negative color takes part in none and gets null.
  virtual Result<std::unique_ptr<Communicator>> Split(int color, int key,
                                                      const std::string& group) = 0;
  // A collective: connects rank 0 with each other rank. Rank 0 gets its communicators with ranks 1,
  // 2, ...; another rank gets the one with rank 0, which is rank 0 of the pair. Only the two of a
  // pair exchange anything, so that many ranks start fast.
  virtual Result<std::vector<std::unique_ptr<Communicator>>> SplitPairs(
      const std::string& group) = 0;
  // Ends all operations of this rank with `reason`, and makes those of the other ranks fail with it
  // where the engine can reach them. Later calls fail with the first reason.
  virtual void Abort(const Status& reason) = 0;
};

inline constexpr int kVirtualShards = 8;

}  // namespace msrt

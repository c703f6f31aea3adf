// The boundary between a communicator and the engine that carries its bytes. A transport runs one
// operation at a time, to its end, on whatever thread the communicator's queue uses; Abort comes
// from any thread and ends an operation in progress. Engines of the modules implement it too, so it
// has no code of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/comm/comm_op.h"

namespace msrt {

// A subset of the ranks of a transport that forms a new one.
struct CommSubgroup {
  std::vector<int> members;  // ranks in the parent, in the order of the new ranks
  int rank = 0;              // this rank's number in the new group
  std::string name;          // for messages
  uint64_t number = 0;       // of the split in the parent, the same on all ranks
  int color = 0;
  std::vector<std::byte> leader_note;  // SplitNote of members[0]
};

class CommTransport {
 public:
  CommTransport(int rank, int size, std::string group)
      : rank_(rank), size_(size), group_(std::move(group)) {}
  virtual ~CommTransport() = default;
  CommTransport(const CommTransport&) = delete;
  CommTransport& operator=(const CommTransport&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& group() const { return group_; }
  virtual const std::string& engine() const = 0;

  // The longest that an operation waits for a peer; then it fails (StallError).
  virtual void set_stall_limit(std::chrono::milliseconds limit) { stall_limit_ = limit; }
  std::chrono::milliseconds stall_limit() const { return stall_limit_; }

  // Called at the begin of each collective, before any other call for it. An engine that can
  // compares the operations of all ranks here, without waiting for ranks that are not there yet.
  virtual Status Enter(const CommHeader& op) {
    (void)op;
    return OkStatus();
  }

  // Sends and receives the parts and returns when all are done. No part is for this rank itself.
  // Every part carries `op`; a part that arrives with another one, or another size, is an error.
  virtual Status Exchange(const CommHeader& op, std::span<const CommPart> sends,
                          std::span<const CommPart> receives) = 0;

  // A further exchange of a collective. Every rank has exchanged parts with every other one since
  // its begin, so all run the same operation, and nothing needs to be compared again.
  virtual Status Continue(const CommHeader& op, std::span<const CommPart> sends,
                          std::span<const CommPart> receives) {
    return Exchange(op, sends, receives);
  }

  // Collectives that an engine does better than by Exchange (collectives.h). Null: not this one.
  // Reductions in fixed-tree order must have the bits of TreeReduce.
  virtual std::optional<Status> AllReduce(const CommHeader& op, std::byte* data) {
    (void)op, (void)data;
    return std::nullopt;
  }
  virtual std::optional<Status> ReduceScatter(const CommHeader& op, const std::byte* send,
                                              std::byte* receive, std::span<const size_t> counts) {
    (void)op, (void)send, (void)receive, (void)counts;
    return std::nullopt;
  }
  virtual std::optional<Status> Barrier(const CommHeader& op) {
    (void)op;
    return std::nullopt;
  }

  // A split has two steps. Every rank gives a note that all ranks get (at most kMaxSplitNote
  // bytes); then the members of each subgroup, and only they, connect. The rank whose `leads` is
  // true is the first of its subgroup of `members` ranks.
  static constexpr size_t kMaxSplitNote = 128;
  virtual Result<std::vector<std::byte>> SplitNote(bool leads, int members) {
    (void)leads, (void)members;
    return std::vector<std::byte>();
  }
  virtual Result<std::unique_ptr<CommTransport>> Split(const CommSubgroup& subgroup) = 0;

  // Ends the operation in progress, and all later ones, with `reason`, on this rank and on the
  // peers that the engine reaches. The first reason wins.
  virtual void Abort(const Status& reason) = 0;

  // Memory for the operation in progress, kept for later ones while it is not large: fresh memory
  // costs more than a message through it.
  std::byte* Scratch(size_t bytes) {
    if (bytes > scratch_bytes_ || scratch_bytes_ > kMaxKeptScratch) {
      scratch_.reset();
      scratch_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      scratch_bytes_ = bytes;
    }
    return scratch_.get();
  }

  CommCounters counters() const { return {sent_bytes_.load(), received_bytes_.load()}; }

 protected:
  void CountBytes(uint64_t sent, uint64_t received) {
    sent_bytes_.fetch_add(sent, std::memory_order_relaxed);
    received_bytes_.fetch_add(received, std::memory_order_relaxed);
  }

  void CountParts(std::span<const CommPart> sends, std::span<const CommPart> receives) {
    uint64_t sent = 0, received = 0;
    for (const CommPart& part : sends) sent += part.bytes;
    for (const CommPart& part : receives) received += part.bytes;
    CountBytes(sent, received);
  }

 private:
  const int rank_;
  const int size_;
  const std::string group_;
  std::chrono::milliseconds stall_limit_ = kDefaultStallLimit;
  static constexpr size_t kMaxKeptScratch = size_t{8} << 20;
  std::unique_ptr<std::byte[]> scratch_;
  size_t scratch_bytes_ = 0;
  std::atomic<uint64_t> sent_bytes_{0};
  std::atomic<uint64_t> received_bytes_{0};
};

}  // namespace msrt

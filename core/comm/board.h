// A board is memory that all ranks of a communicator see: the heap for ranks that are threads, a
// shared mapping for ranks that are processes. Ranks announce their collectives on it, meet at
// steps, wait for each other, and find the reason of an abort. It has no locks, so a rank that is
// killed at any moment blocks no other.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/comm/comm_op.h"

namespace msrt {

// What one rank writes and the others read. All zero at first.
struct BoardRank {
  static constexpr uint64_t kPosts = 16;

  alignas(64) std::atomic<uint64_t> step;  // the last step this rank has arrived at
  std::atomic<uint64_t> address;           // engine-specific, valid from that step on
  // Sleeping: `sleeps` is 1 while the rank may be asleep on `wakes`.
  alignas(64) std::atomic<uint32_t> wakes;
  std::atomic<uint32_t> sleeps;
  std::atomic<uint32_t> closed;              // the rank has left
  std::atomic<int32_t> process;              // its id, where ranks are processes
  alignas(64) std::atomic<uint64_t> posted;  // the last collective that this rank has begun
  struct {
    std::atomic<uint64_t> words[2];  // the header of collective number (index mod kPosts)
  } posts[kPosts];
};

struct BoardAbort {
  static constexpr size_t kTextBytes = 1000;
  std::atomic<uint32_t> state;    // 0: no; 1: the reason is being written; 2: aborted
  std::atomic<uint32_t> readers;  // ranks that use each other's buffers (thread_engine.cc)
  int32_t code;
  uint32_t text_bytes;
  char text[kTextBytes];
};

// One rank's view of a board. The owner of the memory outlives it.
class Board {
 public:
  Board(BoardAbort* abort, BoardRank* ranks, int rank, int size, std::string group);

  int rank() const { return rank_; }
  int size() const { return size_; }
  BoardRank& at(int rank) const { return ranks_[rank]; }
  const std::string& group() const { return group_; }

  // A wait that takes longer fails: some rank is stuck or stopped.
  void set_stall_limit(std::chrono::milliseconds limit) { stall_limit_ = limit; }
  // Called now and then during long waits; an error is the end of the group.
  void set_peer_check(std::function<Status()> check) { peer_check_ = std::move(check); }

  // Announces a collective and compares it with those of the ranks that have begun theirs. The last
  // rank to come sees all others, so a mismatch is always found, without waiting.
  Status Post(const CommHeader& op);

  // A rank in an exchange waits for `peer`. It is a mismatch if the peer has begun a collective
  // that this rank has not. Call it after loading posted(peer) and then finding nothing from the
  // peer.
  uint64_t posted(int peer) const { return at(peer).posted.load(); }
  Status CheckExchange(const CommHeader& op, int peer, uint64_t peer_posted) const;

  // Announces that this rank has arrived at its next step; waits until all ranks have.
  void Arrive();
  Status AwaitStep();

  // Calls `ready` until it returns true, spinning for a while, then asleep in between. Another rank
  // that changes something `ready` looks at calls Wake afterwards, with sequentially consistent
  // order. Returns the reason of an abort.
  template <typename F>
  Status Await(F&& ready) {
    for (int i = 0; i < kFirstTries; ++i) {
      if (ready()) return OkStatus();
      Pause();
    }
    const auto begin = std::chrono::steady_clock::now();
    bool spins = true;
    while (!aborted()) {
      if (spins) {
        for (int i = 0; i < kTries; ++i) {
          if (ready()) return OkStatus();
          Pause();
        }
        spins = std::chrono::steady_clock::now() - begin < spin_;
        continue;
      }
      BoardRank& me = at(rank_);
      const uint32_t wakes = me.wakes.load();
      me.sleeps.store(1);
      if (ready()) {
        me.sleeps.store(0);
        return OkStatus();
      }
      const bool woken = aborted() || Sleep(wakes);
      me.sleeps.store(0);
      if (woken) continue;
      if (ready()) return OkStatus();
      MSRT_RETURN_IF_ERROR(CheckLongWait(begin));
    }
    return reason();
  }
  // The result of an Await that may have reached the limit, with the ranks that it waited for.
  Status NameAwaited(Status waited, std::span<const int> awaited) const;
  void Wake(int peer) {
    BoardRank& other = at(peer);
    if (other.sleeps.load() != 0) WakeSleeper(other);
  }
  void WakeAll();

  bool aborted() const { return abort_->state.load() != 0; }
  Status reason() const;
  void Abort(const Status& reason);
  // This rank leaves; peers that still need it fail.
  void Close();
  Status ClosedError(int peer) const;

 private:
  static constexpr int kFirstTries = 32;
  static constexpr int kTries = 64;

  static void Pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }
  // Returns false after a while without a wake.
  bool Sleep(uint32_t wakes);
  Status CheckLongWait(std::chrono::steady_clock::time_point begin);
  static void WakeSleeper(BoardRank& other);

  BoardAbort* abort_;
  BoardRank* ranks_;
  const int rank_;
  const int size_;
  const std::string group_;
  const std::chrono::microseconds spin_;
  uint64_t step_ = 0;
  std::chrono::milliseconds stall_limit_ = kDefaultStallLimit;
  std::function<Status()> peer_check_;
};

}  // namespace msrt

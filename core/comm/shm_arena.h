// The memory that the ranks of one host share: a board, staging buffers per rank for
// reductions, and a ring of bytes for each ordered pair of ranks. It is an anonymous file
// (memfd_create) that peers open through /proc, so it has no name, needs no space in /dev/shm, and
// disappears with the last rank however that one ends.
#pragma once

#include <chrono>
#include <memory>
#include <span>

#include "core/comm/board.h"

namespace msrt {

// The ends of a ring count bytes and never wrap.
struct ShmRing {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
};

// How a peer finds an arena: plain bytes.
struct ShmNote {
  uint64_t nonce = 0;
  uint64_t host = 0;  // HostId of the creator
  int32_t process = 0;
  int32_t descriptor = -1;
};

class ShmArena {
 public:
  static constexpr size_t kBuffers = 4;
  static constexpr size_t kMaxRanks = 256;

  static Result<std::unique_ptr<ShmArena>> Create(int ranks);
  static Result<std::unique_ptr<ShmArena>> Open(const ShmNote& note, int ranks);
  ~ShmArena();
  ShmArena(const ShmArena&) = delete;
  ShmArena& operator=(const ShmArena&) = delete;

  // Waits until all ranks have opened the arena; then no rank needs the descriptor any more. Gives
  // up if `parent`, which may be null, is aborted.
  Status AwaitPeers(Board& board, const Board* parent, std::chrono::steady_clock::time_point until);

  ShmNote note() const { return note_; }
  BoardAbort* abort() const;
  BoardRank* ranks() const;
  size_t buffer_bytes() const { return buffer_bytes_; }
  std::byte* buffer(int rank, size_t index) const;
  size_t ring_bytes() const { return ring_bytes_; }  // a power of two
  ShmRing& ring(int from, int to) const;
  std::byte* ring_data(int from, int to) const;

 private:
  explicit ShmArena(int ranks);
  Status Map(int descriptor);
  struct Header;
  Header* header() const;

  const size_t size_;
  size_t buffer_bytes_ = 0, ring_bytes_ = 0;
  size_t ranks_offset_ = 0, rings_offset_ = 0, buffers_offset_ = 0, ring_data_offset_ = 0;
  size_t total_bytes_ = 0;
  std::byte* base_ = nullptr;
  int descriptor_ = -1;
  ShmNote note_;
};

// Equal for processes that can share memory this way: same boot, same namespace of processes.
uint64_t HostId();

}  // namespace msrt

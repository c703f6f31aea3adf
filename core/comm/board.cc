#include "core/comm/board.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <vector>

namespace msrt {
namespace {

using std::chrono::microseconds;

// Sleeping ranks look this often for peers that have died.
inline constexpr long kSleepNanos = 50'000'000;

std::atomic<uint32_t>* Word(std::atomic<uint32_t>* word) {
  static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free);
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
  return word;
}

struct HeaderWords {
  uint64_t words[2];
};

// The sequence number is the index, so two words remain.
HeaderWords Pack(const CommHeader& op) {
  HeaderWords packed;
  packed.words[0] = op.count;
  packed.words[1] = uint64_t{op.detail} << 32 | uint64_t{static_cast<uint8_t>(op.kind)} << 24 |
                    uint64_t{static_cast<uint8_t>(op.type)} << 16 |
                    uint64_t{static_cast<uint8_t>(op.reduce)} << 8 | static_cast<uint8_t>(op.order);
  return packed;
}

CommHeader Unpack(uint64_t sequence, const HeaderWords& packed) {
  CommHeader op;
  op.sequence = sequence;
  op.count = packed.words[0];
  op.detail = static_cast<uint32_t>(packed.words[1] >> 32);
  op.kind = static_cast<CommKind>(packed.words[1] >> 24 & 255);
  op.type = static_cast<CommType>(packed.words[1] >> 16 & 255);
  op.reduce = static_cast<CommReduce>(packed.words[1] >> 8 & 255);
  op.order = static_cast<CommOrder>(packed.words[1] & 255);
  return op;
}

// The header of a collective that a rank has begun; false if it is no longer known.
bool ReadPost(const BoardRank& rank, uint64_t sequence, CommHeader* op) {
  const auto& post = rank.posts[sequence % BoardRank::kPosts];
  HeaderWords packed;
  for (int i = 0; i < 2; ++i) packed.words[i] = post.words[i].load();
  *op = Unpack(sequence, packed);
  // The rank writes the words of a later collective before it announces it.
  return rank.posted.load() + 1 < sequence + BoardRank::kPosts;
}

}  // namespace

// More ranks than cores: a rank that spins keeps the one it waits for from running.
Board::Board(BoardAbort* abort, BoardRank* ranks, int rank, int size, std::string group)
    : abort_(abort),
      ranks_(ranks),
      rank_(rank),
      size_(size),
      group_(std::move(group)),
      spin_(size <= AvailableCores() ? microseconds(50) : microseconds(2)) {}

Status Board::Post(const CommHeader& op) {
  BoardRank& me = at(rank_);
  const HeaderWords packed = Pack(op);
  auto& post = me.posts[op.sequence % BoardRank::kPosts];
  for (int i = 0; i < 2; ++i) post.words[i].store(packed.words[i], std::memory_order_release);
  me.posted.store(op.sequence);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    Wake(peer);  // it may be in an exchange that this collective makes impossible
    CommHeader theirs;
    if (posted(peer) < op.sequence || !ReadPost(at(peer), op.sequence, &theirs)) continue;
    if (!(theirs == op)) return MismatchError(group_, rank_, op, peer, theirs);
  }
  return OkStatus();
}

Status Board::CheckExchange(const CommHeader& op, int peer, uint64_t peer_posted) const {
  const uint64_t mine = at(rank_).posted.load(std::memory_order_relaxed);
  if (op.kind != CommKind::kExchange || peer_posted <= mine) return OkStatus();
  CommHeader theirs;
  if (!ReadPost(at(peer), mine + 1, &theirs)) theirs.sequence = mine + 1;
  return MismatchError(group_, rank_, op, peer, theirs);
}

void Board::Arrive() {
  at(rank_).step.store(++step_);
  WakeAll();
}

Status Board::AwaitStep() {
  const uint64_t step = step_;
  int closed = -1;
  const Status status = Await([&] {
    for (int peer = 0; peer < size_; ++peer) {
      if (at(peer).step.load() >= step) continue;
      if (at(peer).closed.load() == 0 || at(peer).step.load() >= step) return false;
      closed = peer;
      return true;
    }
    return true;
  });
  if (status.ok()) return closed >= 0 ? ClosedError(closed) : OkStatus();
  std::vector<int> missing;
  for (int peer = 0; peer < size_; ++peer)
    if (at(peer).step.load() < step) missing.push_back(peer);
  return NameAwaited(status, missing);
}

Status Board::NameAwaited(Status waited, std::span<const int> awaited) const {
  if (waited.code() != Code::kDeadlineExceeded) return waited;
  if (aborted()) return reason();  // another rank was first
  return StallError(group_, rank_, stall_limit_, awaited);
}

void Board::WakeAll() {
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) Wake(peer);
}

bool Board::Sleep(uint32_t wakes) {
  const timespec limit{0, kSleepNanos};
  const long result =
      syscall(SYS_futex, Word(&at(rank_).wakes), FUTEX_WAIT, wakes, &limit, nullptr, 0);
  return result == 0 || errno != ETIMEDOUT;
}

Status Board::CheckLongWait(std::chrono::steady_clock::time_point begin) {
  if (aborted()) return reason();
  if (peer_check_) MSRT_RETURN_IF_ERROR(peer_check_());
  const auto waited = std::chrono::steady_clock::now() - begin;
  if (waited < stall_limit_) return OkStatus();
  return StallError(group_, rank_, stall_limit_, {});
}

void Board::WakeSleeper(BoardRank& other) {
  other.wakes.fetch_add(1);
  syscall(SYS_futex, Word(&other.wakes), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

Status Board::reason() const {
  // The writer may have been killed in between, so there is an end to patience.
  for (int i = 0; i < 1000 && abort_->state.load() != 2; ++i) usleep(100);
  if (abort_->state.load() != 2)
    return MakeStatus(Code::kCancelled, "group '", group_, "' was aborted by a rank that has died");
  const size_t bytes = std::min<size_t>(abort_->text_bytes, BoardAbort::kTextBytes);
  return Status(static_cast<Code>(abort_->code), std::string(abort_->text, bytes));
}

void Board::Abort(const Status& reason) {
  uint32_t none = 0;
  if (abort_->state.compare_exchange_strong(none, 1)) {
    const std::string& text = reason.message();
    abort_->code = static_cast<int32_t>(reason.code());
    abort_->text_bytes = static_cast<uint32_t>(std::min(text.size(), BoardAbort::kTextBytes));
    std::memcpy(abort_->text, text.data(), abort_->text_bytes);
    abort_->state.store(2);
  }
  // Also this rank's own thread, which may be asleep.
  for (int peer = 0; peer < size_; ++peer) WakeSleeper(at(peer));
}

void Board::Close() {
  at(rank_).closed.store(1);
  WakeAll();
}

Status Board::ClosedError(int peer) const {
  if (aborted()) return reason();  // then that is why it left
  return MakeStatus(Code::kCancelled, "group '", group_, "': rank ", peer,
                    " has closed its communicator; it did not start this operation");
}

}  // namespace msrt

#include "core/comm/shm_engine.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/comm/collectives.h"
#include "core/comm/combine.h"
#include "core/comm/peer_processes.h"
#include "core/comm/shm_arena.h"
#include "core/comm/tree_reduce.h"

namespace msrt {
namespace {

using std::chrono::steady_clock;

// A piece that a receiver can read while the sender copies the next.
inline constexpr size_t kPieceBytes = 32 * 1024;
// A part of a result that stays in the first-level cache until it is copied.
inline constexpr size_t kResultBytes = 4096;

void Copy(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

class ShmTransport final : public CommTransport {
 public:
  ShmTransport(std::unique_ptr<ShmArena> arena, int rank, int size, const std::string& group)
      : CommTransport(rank, size, group),
        arena_(std::move(arena)),
        board_(arena_->abort(), arena_->ranks(), rank, size, group) {}
  ~ShmTransport() override { board_.Close(); }

  const std::string& engine() const override {
    static const std::string name = "shm";
    return name;
  }
  Status Connect(const Board* parent, steady_clock::time_point until);

  void set_stall_limit(std::chrono::milliseconds limit) override {
    CommTransport::set_stall_limit(limit);
    board_.set_stall_limit(limit);
  }
  Status Enter(const CommHeader& op) override { return board_.Post(op); }
  Status Exchange(const CommHeader& op, std::span<const CommPart> sends,
                  std::span<const CommPart> receives) override;
  std::optional<Status> AllReduce(const CommHeader& op, std::byte* data) override;
  std::optional<Status> ReduceScatter(const CommHeader& op, const std::byte* send,
                                      std::byte* receive, std::span<const size_t> counts) override;
  std::optional<Status> Barrier(const CommHeader& op) override;
  Result<std::vector<std::byte>> SplitNote(bool leads, int members) override;
  Result<std::unique_ptr<CommTransport>> Split(const CommSubgroup& subgroup) override;
  void Abort(const Status& reason) override { board_.Abort(reason); }

 private:
  // One part on its way through a ring: its header, then its bytes.
  struct Transfer {
    CommPart part;
    bool header_done = false;
    size_t moved = 0;
    bool done() const { return header_done && moved == part.bytes; }
  };

  static std::vector<int> AwaitedRanks(const std::vector<Transfer>& out,
                                       const std::vector<Transfer>& in) {
    std::vector<int> ranks;
    for (const auto* transfers : {&out, &in})
      for (const Transfer& t : *transfers)
        if (!t.done()) ranks.push_back(t.part.rank);
    return ranks;
  }
  bool PumpSend(const CommHeader& op, Transfer& t, Status* status);
  bool PumpReceive(const CommHeader& op, Transfer& t, Status* status);
  Status Stalled(const CommHeader& op, int peer, uint64_t posted, bool closed) const {
    return closed ? board_.ClosedError(peer) : board_.CheckExchange(op, peer, posted);
  }
  Status ReduceWhole(const CommHeader& op, std::byte* data);
  Status ReduceSegments(const CommHeader& op, std::byte* data);
  // The buffers of the next round. A rank that begins a round has met all others in the previous
  // one, which each of them began after it had read the buffers of the one before that; so none
  // still reads a buffer that is written.
  size_t NextRound() { return round_++ % ShmArena::kBuffers; }
  std::byte* Buffer(int of_rank, size_t round) const { return arena_->buffer(of_rank, round); }
  Status Meet() {
    board_.Arrive();
    return board_.AwaitStep();
  }

  std::unique_ptr<ShmArena> arena_;
  Board board_;
  PeerProcesses peers_;
  uint64_t round_ = 0;
  std::unique_ptr<ShmArena> split_arena_;  // between SplitNote and Split
};

Status ShmTransport::Connect(const Board* parent, steady_clock::time_point until) {
  MSRT_RETURN_IF_ERROR(arena_->AwaitPeers(board_, parent, until));
  MSRT_RETURN_IF_ERROR(peers_.Open(board_));
  board_.set_peer_check([this] {
    Status status = peers_.Check(board_);
    if (!status.ok()) board_.Abort(status);
    return status;
  });
  return OkStatus();
}

// Copies into or out of the ring at position `at`, around its end.
void CopyIn(std::byte* ring, size_t ring_bytes, uint64_t at, const void* from, size_t bytes) {
  const size_t begin = at & (ring_bytes - 1), first = std::min(bytes, ring_bytes - begin);
  Copy(ring + begin, static_cast<const std::byte*>(from), first);
  Copy(ring, static_cast<const std::byte*>(from) + first, bytes - first);
}
void CopyOut(const std::byte* ring, size_t ring_bytes, uint64_t at, void* to, size_t bytes) {
  const size_t begin = at & (ring_bytes - 1), first = std::min(bytes, ring_bytes - begin);
  Copy(static_cast<std::byte*>(to), ring + begin, first);
  Copy(static_cast<std::byte*>(to) + first, ring, bytes - first);
}

bool ShmTransport::PumpSend(const CommHeader& op, Transfer& t, Status* status) {
  const int peer = t.part.rank;
  const uint64_t posted = board_.posted(peer);
  const bool closed = board_.at(peer).closed.load() != 0;
  ShmRing& ring = arena_->ring(rank(), peer);
  const size_t ring_bytes = arena_->ring_bytes();
  uint64_t at = ring.written.load(std::memory_order_relaxed);
  const uint64_t used = at - ring.read.load();
  size_t room = used <= ring_bytes ? ring_bytes - static_cast<size_t>(used) : 0;
  std::byte* data = arena_->ring_data(rank(), peer);
  const uint64_t begin = at;
  if (!t.header_done && room >= sizeof(MessageHeader)) {
    const MessageHeader header{op, t.part.bytes};
    CopyIn(data, ring_bytes, at, &header, sizeof(header));
    at += sizeof(header), room -= sizeof(header);
    t.header_done = true;
  }
  if (t.header_done) {
    const size_t piece = std::min({room, t.part.bytes - t.moved, kPieceBytes});
    CopyIn(data, ring_bytes, at, t.part.data + t.moved, piece);
    at += piece, t.moved += piece;
  }
  if (at == begin && !t.done()) {
    *status = Stalled(op, peer, posted, closed);
    return !status->ok();
  }
  ring.written.store(at);
  board_.Wake(peer);
  return true;
}

bool ShmTransport::PumpReceive(const CommHeader& op, Transfer& t, Status* status) {
  const int peer = t.part.rank;
  const uint64_t posted = board_.posted(peer);
  const bool closed = board_.at(peer).closed.load() != 0;
  ShmRing& ring = arena_->ring(peer, rank());
  const size_t ring_bytes = arena_->ring_bytes();
  uint64_t at = ring.read.load(std::memory_order_relaxed);
  size_t there = static_cast<size_t>(std::min<uint64_t>(ring.written.load() - at, ring_bytes));
  const std::byte* data = arena_->ring_data(peer, rank());
  const uint64_t begin = at;
  if (!t.header_done && there >= sizeof(MessageHeader)) {
    MessageHeader header;
    CopyOut(data, ring_bytes, at, &header, sizeof(header));
    *status = CheckMessage(group(), rank(), op, t.part.bytes, peer, header);
    if (!status->ok()) return true;
    at += sizeof(header), there -= sizeof(header);
    t.header_done = true;
  }
  if (t.header_done) {
    const size_t piece = std::min({there, t.part.bytes - t.moved, kPieceBytes});
    CopyOut(data, ring_bytes, at, t.part.data + t.moved, piece);
    at += piece, t.moved += piece;
  }
  if (at == begin && !t.done()) {
    *status = Stalled(op, peer, posted, closed);
    return !status->ok();
  }
  ring.read.store(at);
  board_.Wake(peer);
  return true;
}

Status ShmTransport::Exchange(const CommHeader& op, std::span<const CommPart> sends,
                              std::span<const CommPart> receives) {
  std::vector<Transfer> out, in;
  uint64_t sent = 0, received = 0;
  for (const CommPart& part : sends) out.push_back({part}), sent += part.bytes;
  for (const CommPart& part : receives) in.push_back({part}), received += part.bytes;
  Status status;
  size_t left = out.size() + in.size();
  std::vector<char> blocked(static_cast<size_t>(size()));
  while (left != 0) {
    Status waited = board_.Await([&] {
      bool progress = false;
      // Parts between two ranks pass through their ring one after the other.
      for (auto* transfers : {&out, &in}) {
        std::fill(blocked.begin(), blocked.end(), 0);
        for (Transfer& t : *transfers) {
          const auto peer = static_cast<size_t>(t.part.rank);
          if (t.done() || blocked[peer] != 0 || !status.ok()) continue;
          progress |= transfers == &out ? PumpSend(op, t, &status) : PumpReceive(op, t, &status);
          if (t.done()) --left;
          else blocked[peer] = 1;
        }
      }
      return progress;
    });
    MSRT_RETURN_IF_ERROR(status);
    if (!waited.ok()) return board_.NameAwaited(std::move(waited), AwaitedRanks(out, in));
  }
  CountBytes(sent, received);
  return OkStatus();
}

// Every rank stages all of its few bytes and reduces all of them: one meeting.
Status ShmTransport::ReduceWhole(const CommHeader& op, std::byte* data) {
  const size_t total = op.count * CommTypeBytes(op.type), round = NextRound();
  Copy(Buffer(rank(), round), data, total);
  MSRT_RETURN_IF_ERROR(Meet());
  std::vector<const void*> parts(static_cast<size_t>(size()));
  for (int r = 0; r < size(); ++r) parts[static_cast<size_t>(r)] = Buffer(r, round);
  TreeReduce(parts, data, op.count, op.type, op.reduce);
  const uint64_t passed = total * static_cast<uint64_t>(size() - 1);
  CountBytes(passed, passed);
  return OkStatus();
}

// A round stages a piece of each segment. Every rank reduces the piece of its own segment, and
// copies the results of the others. Its own piece is read and written in place; a copy of the
// result goes into its buffer while it is in the first-level cache.
Status ShmTransport::ReduceSegments(const CommHeader& op, std::byte* data) {
  const size_t element = CommTypeBytes(op.type), ranks = static_cast<size_t>(size());
  const size_t piece = arena_->buffer_bytes() / ranks / 64 * 64;
  struct Range {
    size_t begin, end;
  };
  std::vector<Range> segments;
  size_t longest = 0;
  for (int r = 0; r < size(); ++r) {
    const auto [first, last] = SegmentOfRank(op.count, r, size());
    segments.push_back({first * element, last * element});
    longest = std::max(longest, (last - first) * element);
  }
  const auto bytes_at = [&](size_t r, size_t offset) {
    const size_t length = segments[r].end - segments[r].begin;
    return offset < length ? std::min(piece, length - offset) : 0;
  };
  const auto me = static_cast<size_t>(rank());
  std::vector<const void*> parts(ranks);
  uint64_t sent = 0, received = 0;
  for (size_t offset = 0; offset < longest; offset += piece) {
    const size_t round = NextRound(), own = bytes_at(me, offset);
    std::byte* result = data + segments[me].begin + offset;
    for (size_t q = 0; q < ranks; ++q) {
      const size_t bytes = bytes_at(q, offset);
      sent += q == me ? (ranks - 1) * own : bytes;
      received += q == me ? (ranks - 1) * own : bytes;
      if (q != me)
        Copy(Buffer(rank(), round) + q * piece, data + segments[q].begin + offset, bytes);
    }
    MSRT_RETURN_IF_ERROR(Meet());
    for (size_t begin = 0; begin < own; begin += kResultBytes) {
      const size_t bytes = std::min(kResultBytes, own - begin);
      for (size_t q = 0; q < ranks; ++q)
        parts[q] =
            q == me ? result + begin : Buffer(static_cast<int>(q), round) + me * piece + begin;
      TreeReduce(parts, result + begin, bytes / element, op.type, op.reduce);
      Copy(Buffer(rank(), round) + me * piece + begin, result + begin, bytes);
    }
    MSRT_RETURN_IF_ERROR(Meet());
    for (size_t q = 0; q < ranks; ++q)
      if (q != me)
        Copy(data + segments[q].begin + offset, Buffer(static_cast<int>(q), round) + q * piece,
             bytes_at(q, offset));
  }
  CountBytes(sent, received);
  return OkStatus();
}

std::optional<Status> ShmTransport::AllReduce(const CommHeader& op, std::byte* data) {
  const bool few = op.count * CommTypeBytes(op.type) <= kDirectReduceBytes;
  return few ? ReduceWhole(op, data) : ReduceSegments(op, data);
}

std::optional<Status> ShmTransport::ReduceScatter(const CommHeader& op, const std::byte* send,
                                                  std::byte* receive,
                                                  std::span<const size_t> counts) {
  const size_t element = CommTypeBytes(op.type), ranks = static_cast<size_t>(size());
  const size_t piece = arena_->buffer_bytes() / ranks / 64 * 64;
  const size_t longest = *std::max_element(counts.begin(), counts.end()) * element;
  const auto me = static_cast<size_t>(rank());
  const auto bytes_at = [&](size_t r, size_t offset) {
    const size_t length = counts[r] * element;
    return offset < length ? std::min(piece, length - offset) : 0;
  };
  std::vector<const void*> parts(ranks);
  uint64_t sent = 0, received = 0;
  for (size_t offset = 0; offset < longest; offset += piece) {
    const size_t round = NextRound(), own = bytes_at(me, offset);
    size_t begin = 0;
    for (size_t q = 0; q < ranks; begin += counts[q++] * element) {
      if (q == me) {
        parts[q] = send + begin + offset;
        continue;
      }
      Copy(Buffer(rank(), round) + q * piece, send + begin + offset, bytes_at(q, offset));
      parts[q] = Buffer(static_cast<int>(q), round) + me * piece;
      sent += bytes_at(q, offset);
    }
    Status status = Meet();
    if (!status.ok()) return status;
    if (own != 0) TreeReduce(parts, receive + offset, own / element, op.type, op.reduce);
    received += own * (ranks - 1);
  }
  CountBytes(sent, received);
  return OkStatus();
}

std::optional<Status> ShmTransport::Barrier(const CommHeader&) { return Meet(); }

Result<std::vector<std::byte>> ShmTransport::SplitNote(bool leads, int members) {
  if (!leads) return std::vector<std::byte>();
  MSRT_ASSIGN_OR_RETURN(split_arena_, ShmArena::Create(members));
  const ShmNote note = split_arena_->note();
  const auto* bytes = reinterpret_cast<const std::byte*>(&note);
  return std::vector<std::byte>(bytes, bytes + sizeof(note));
}

Result<std::unique_ptr<CommTransport>> ShmTransport::Split(const CommSubgroup& subgroup) {
  const int members = static_cast<int>(subgroup.members.size());
  std::unique_ptr<ShmArena> arena = std::move(split_arena_);
  if (subgroup.rank != 0) {
    ShmNote note;
    if (subgroup.leader_note.size() != sizeof(note))
      return InternalError("the note of a split has ", subgroup.leader_note.size(), " bytes");
    std::memcpy(&note, subgroup.leader_note.data(), sizeof(note));
    MSRT_ASSIGN_OR_RETURN(arena, ShmArena::Open(note, members));
  }
  auto child =
      std::make_unique<ShmTransport>(std::move(arena), subgroup.rank, members, subgroup.name);
  MSRT_RETURN_IF_ERROR(child->Connect(&board_, steady_clock::now() + std::chrono::seconds(30)));
  return std::unique_ptr<CommTransport>(std::move(child));
}

std::string NoteText(const ShmNote& note) {
  return StrCat(note.nonce, " ", note.host, " ", note.process, " ", note.descriptor);
}

Result<ShmNote> ParseNote(const std::string& text) {
  ShmNote note;
  unsigned long long nonce = 0, host = 0;
  if (std::sscanf(text.c_str(), "%llu %llu %d %d", &nonce, &host, &note.process,
                  &note.descriptor) != 4)
    return InvalidArgument("engine shm: the store has no valid address of shared memory");
  note.nonce = nonce, note.host = host;
  return note;
}

}  // namespace

Result<std::unique_ptr<CommTransport>> MakeShmTransport(int rank, int size, Store& store,
                                                        const std::string& key,
                                                        const std::string& group,
                                                        steady_clock::time_point until) {
  if (static_cast<size_t>(size) > ShmArena::kMaxRanks)
    return Unsupported("engine shm: ", size, " ranks, at most ", ShmArena::kMaxRanks);
  const std::string arena_key = StrCat(key, "/arena");
  std::unique_ptr<ShmArena> arena;
  if (rank == 0) {
    MSRT_ASSIGN_OR_RETURN(arena, ShmArena::Create(size));
    MSRT_RETURN_IF_ERROR(store.Set(arena_key, NoteText(arena->note())));
  } else {
    WaitLimit limit;
    limit.until = until;
    MSRT_ASSIGN_OR_RETURN(const std::string text, store.Get(arena_key, limit));
    MSRT_ASSIGN_OR_RETURN(const ShmNote note, ParseNote(text));
    MSRT_ASSIGN_OR_RETURN(arena, ShmArena::Open(note, size));
  }
  auto transport = std::make_unique<ShmTransport>(std::move(arena), rank, size, group);
  MSRT_RETURN_IF_ERROR(transport->Connect(nullptr, until));
  return std::unique_ptr<CommTransport>(std::move(transport));
}

}  // namespace msrt

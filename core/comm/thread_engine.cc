#include "core/comm/thread_engine.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "core/comm/board.h"
#include "core/comm/collectives.h"
#include "core/comm/combine.h"
#include "core/comm/queued_communicator.h"
#include "core/comm/tree_reduce.h"

namespace msrt {
namespace {

// The parts that one rank has announced to another and that are not received yet.
struct Mailbox {
  static constexpr uint64_t kSlots = 8;
  struct Letter {
    MessageHeader header;
    const std::byte* data;
  };
  alignas(64) std::atomic<uint64_t> written{0};
  alignas(64) std::atomic<uint64_t> read{0};
  Letter letters[kSlots];
};

struct ThreadGroup {
  explicit ThreadGroup(int n)
      : size(n),
        ranks(new BoardRank[static_cast<size_t>(n)]()),
        boxes(new Mailbox[static_cast<size_t>(n) * static_cast<size_t>(n)]) {}
  Mailbox& box(int from, int to) const { return boxes[from * size + to]; }

  const int size;
  BoardAbort abort{};
  std::unique_ptr<BoardRank[]> ranks;
  std::unique_ptr<Mailbox[]> boxes;
  // Groups of splits that some, not all, members have joined.
  std::mutex mutex;
  std::map<std::pair<uint64_t, int>, std::pair<int, std::shared_ptr<ThreadGroup>>> subgroups;
};

class ThreadTransport final : public CommTransport {
 public:
  ThreadTransport(std::shared_ptr<ThreadGroup> shared, int rank, const std::string& name)
      : CommTransport(rank, shared->size, name),
        shared_(std::move(shared)),
        board_(&shared_->abort, shared_->ranks.get(), rank, shared_->size, name) {}
  ~ThreadTransport() override { board_.Close(); }

  const std::string& engine() const override {
    static const std::string name = "threads";
    return name;
  }
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
  Result<std::unique_ptr<CommTransport>> Split(const CommSubgroup& subgroup) override;
  void Abort(const Status& reason) override { board_.Abort(reason); }

 private:
  struct Transfer;

  // Calls `use` while buffers of other ranks are guaranteed to exist, or returns false if the group
  // is aborted. Leave is the other side: a rank whose operation fails returns only when no other
  // rank uses its buffers.
  template <typename F>
  bool UseBuffers(F&& use) {
    shared_->abort.readers.fetch_add(1);
    const bool alive = !board_.aborted();
    if (alive) use();
    shared_->abort.readers.fetch_sub(1);
    return alive;
  }
  Status Leave(Status status) {
    if (status.ok()) return status;
    board_.Abort(status);
    while (shared_->abort.readers.load() != 0) std::this_thread::yield();
    return status;
  }

  void Meet(const void* data) {
    board_.at(rank()).address.store(reinterpret_cast<uintptr_t>(data));
    board_.Arrive();
  }
  std::byte* DataOf(int peer) const {
    return reinterpret_cast<std::byte*>(board_.at(peer).address.load());
  }

  bool PumpSend(const CommHeader& op, Transfer& t, Status* status);
  bool PumpReceive(const CommHeader& op, Transfer& t, Status* status);
  Status ReduceSegments(const CommHeader& op, std::byte* data);

  std::shared_ptr<ThreadGroup> shared_;
  Board board_;
};

// One part on its way.
struct ThreadTransport::Transfer {
  CommPart part;
  uint64_t letter = 0;  // the number of its letter + 1 once written
  bool done = false;
};

// A send is done when the receiver has read its letter.
bool ThreadTransport::PumpSend(const CommHeader& op, Transfer& t, Status* status) {
  Mailbox& box = shared_->box(rank(), t.part.rank);
  const uint64_t posted = board_.posted(t.part.rank);
  const bool closed = board_.at(t.part.rank).closed.load() != 0;
  const uint64_t read = box.read.load();
  if (t.letter == 0) {
    const uint64_t written = box.written.load(std::memory_order_relaxed);
    if (written - read < Mailbox::kSlots) {
      box.letters[written % Mailbox::kSlots] = {{op, t.part.bytes}, t.part.data};
      box.written.store(written + 1);
      t.letter = written + 1;
      board_.Wake(t.part.rank);
      return true;
    }
  } else if (read >= t.letter) {
    return t.done = true;
  }
  *status =
      closed ? board_.ClosedError(t.part.rank) : board_.CheckExchange(op, t.part.rank, posted);
  return !status->ok();
}

bool ThreadTransport::PumpReceive(const CommHeader& op, Transfer& t, Status* status) {
  Mailbox& box = shared_->box(t.part.rank, rank());
  const uint64_t posted = board_.posted(t.part.rank);
  const bool closed = board_.at(t.part.rank).closed.load() != 0;
  const uint64_t read = box.read.load(std::memory_order_relaxed);
  if (box.written.load() == read) {
    *status =
        closed ? board_.ClosedError(t.part.rank) : board_.CheckExchange(op, t.part.rank, posted);
    return !status->ok();
  }
  const Mailbox::Letter letter = box.letters[read % Mailbox::kSlots];
  *status = CheckMessage(group(), rank(), op, t.part.bytes, t.part.rank, letter.header);
  if (!status->ok()) return true;
  const bool alive = UseBuffers([&] {
    if (t.part.bytes != 0) std::memcpy(t.part.data, letter.data, t.part.bytes);
  });
  if (!alive) {
    *status = board_.reason();
    return true;
  }
  box.read.store(read + 1);
  board_.Wake(t.part.rank);
  return t.done = true;
}

Status ThreadTransport::Exchange(const CommHeader& op, std::span<const CommPart> sends,
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
      // Of several receives from one rank only the first may look at the mailbox; the letters of
      // several sends to one rank are written in order.
      for (auto* transfers : {&out, &in}) {
        std::fill(blocked.begin(), blocked.end(), 0);
        for (Transfer& t : *transfers) {
          const auto peer = static_cast<size_t>(t.part.rank);
          if (t.done || blocked[peer] != 0 || !status.ok()) continue;
          const bool is_send = transfers == &out;
          progress |= is_send ? PumpSend(op, t, &status) : PumpReceive(op, t, &status);
          if (t.done) --left;
          else if (!is_send || t.letter == 0) blocked[peer] = 1;
        }
      }
      return progress;
    });
    if (status.ok() && !waited.ok()) {
      std::vector<int> awaited;
      for (const auto* transfers : {&out, &in})
        for (const Transfer& t : *transfers)
          if (!t.done) awaited.push_back(t.part.rank);
      status = board_.NameAwaited(std::move(waited), awaited);
    }
    if (!status.ok()) return Leave(std::move(status));
  }
  CountBytes(sent, received);
  return OkStatus();
}

// Every rank reduces one segment of all ranks' arrays and writes the result to all of them.
Status ThreadTransport::ReduceSegments(const CommHeader& op, std::byte* data) {
  Meet(data);
  MSRT_RETURN_IF_ERROR(board_.AwaitStep());
  const auto [first, last] = SegmentOfRank(op.count, rank(), size());
  const size_t element = CommTypeBytes(op.type), bytes = (last - first) * element;
  const bool alive = UseBuffers([&, begin = first, count = last - first] {
    // Blocks that stay in the cache between the reduction and the copies.
    const size_t block = 16384 / element;
    std::vector<const void*> parts(static_cast<size_t>(size()));
    for (size_t i = 0; i < count; i += block) {
      const size_t offset = (begin + i) * element, n = std::min(block, count - i);
      for (int r = 0; r < size(); ++r) parts[static_cast<size_t>(r)] = DataOf(r) + offset;
      TreeReduce(parts, data + offset, n, op.type, op.reduce);
      for (int r = 0; r < size(); ++r)
        if (r != rank()) std::memcpy(DataOf(r) + offset, data + offset, n * element);
    }
  });
  if (!alive) return board_.reason();
  // It read its segment of every peer's array and wrote the result to every peer.
  const auto peers = static_cast<uint64_t>(size() - 1);
  CountBytes((op.count * element - bytes) + peers * bytes,
             peers * bytes + (op.count * element - bytes));
  board_.Arrive();
  return board_.AwaitStep();
}

std::optional<Status> ThreadTransport::AllReduce(const CommHeader& op, std::byte* data) {
  return Leave(ReduceSegments(op, data));
}

std::optional<Status> ThreadTransport::ReduceScatter(const CommHeader& op, const std::byte* send,
                                                     std::byte* receive,
                                                     std::span<const size_t> counts) {
  Meet(send);
  Status status = board_.AwaitStep();
  if (!status.ok()) return Leave(std::move(status));
  const size_t element = CommTypeBytes(op.type);
  size_t offset = 0;
  for (int r = 0; r < rank(); ++r) offset += counts[static_cast<size_t>(r)] * element;
  const size_t own = counts[static_cast<size_t>(rank())];
  const bool alive = UseBuffers([&] {
    std::vector<const void*> parts;
    for (int r = 0; r < size(); ++r) parts.push_back(DataOf(r) + offset);
    if (own != 0) TreeReduce(parts, receive, own, op.type, op.reduce);
  });
  if (!alive) return Leave(board_.reason());
  CountBytes((op.count - own) * element, own * element * static_cast<uint64_t>(size() - 1));
  board_.Arrive();
  return Leave(board_.AwaitStep());
}

std::optional<Status> ThreadTransport::Barrier(const CommHeader&) {
  board_.Arrive();
  return board_.AwaitStep();
}

Result<std::unique_ptr<CommTransport>> ThreadTransport::Split(const CommSubgroup& subgroup) {
  std::shared_ptr<ThreadGroup> joined;
  const int members = static_cast<int>(subgroup.members.size());
  {
    const std::lock_guard lock(shared_->mutex);
    const auto [it, is_new] = shared_->subgroups.try_emplace({subgroup.number, subgroup.color});
    if (is_new) it->second.second = std::make_shared<ThreadGroup>(members);
    joined = it->second.second;
    if (++it->second.first == members) shared_->subgroups.erase(it);
  }
  return std::unique_ptr<CommTransport>(
      new ThreadTransport(std::move(joined), subgroup.rank, subgroup.name));
}

}  // namespace

Result<std::vector<std::unique_ptr<Communicator>>> MakeThreadCommunicators(
    int size, const std::string& group, std::chrono::milliseconds stall_limit) {
  if (size < 1 || size > 1024)
    return InvalidArgument("group '", group, "': ", size, " ranks, must be from 1 to 1024");
  const auto shared = std::make_shared<ThreadGroup>(size);
  std::vector<std::unique_ptr<Communicator>> all;
  for (int rank = 0; rank < size; ++rank) {
    auto transport = std::make_unique<ThreadTransport>(shared, rank, group);
    transport->set_stall_limit(stall_limit);
    all.push_back(MakeQueuedCommunicator(std::move(transport)));
  }
  return all;
}

}  // namespace msrt

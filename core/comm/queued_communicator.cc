#include "core/comm/queued_communicator.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/comm/collectives.h"
#include "core/comm/combine.h"
#include "core/comm/comm_queue.h"
#include "core/comm/job_abort.h"

namespace msrt {
namespace {

// On which all ranks agree: the control connection compares it.
uint64_t BytesOf(const CommHeader& op) {
  const bool reduces = op.kind == CommKind::kAllReduce || op.kind == CommKind::kReduceScatter;
  return reduces ? op.count * CommTypeBytes(op.type) : op.count;
}

// What a communicator does, and those that were split from it.
class CommActivity {
 public:
  explicit CommActivity(std::shared_ptr<const ProgressSlot> slot) : slot_(std::move(slot)) {}

  void Add(std::weak_ptr<const CommActivity> split) {
    const std::lock_guard lock(mutex_);
    std::erase_if(splits_, [](const auto& other) { return other.expired(); });
    splits_.push_back(std::move(split));
  }
  // The operation that runs, else the last one of the communicator itself.
  CommProgress Read() const {
    CommProgress own = slot_->Read();
    if (own.active) return own;
    const std::lock_guard lock(mutex_);
    for (const auto& weak : splits_) {
      const std::shared_ptr<const CommActivity> split = weak.lock();
      if (split == nullptr) continue;
      CommProgress other = split->Read();
      if (other.active) return other;
    }
    return own;
  }

 private:
  const std::shared_ptr<const ProgressSlot> slot_;
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<const CommActivity>> splits_;
};

// Shared by a communicator and its operations, which may outlive it.
struct CommCore {
  CommCore(std::unique_ptr<CommTransport> t, std::shared_ptr<JobAbort> j, uint64_t id)
      : transport(std::move(t)), job(std::move(j)), group_id(id) {
    job->Add(transport.get());
    Control* const control = job->control();
    progress = control != nullptr ? control->progress().Open(transport->group(), group_id)
                                  : std::make_shared<ProgressSlot>(transport->group(), group_id);
    activity = std::make_shared<CommActivity>(progress);
  }
  ~CommCore() {
    queue.reset();  // ends the operations
    job->Remove(transport.get());
  }

  // Runs on the queue.
  template <typename F>
  Status Run(const CommHeader& op, F&& body) {
    Status status = job->aborted() ? job->reason() : OkStatus();
    progress->Enter(op.kind, op.sequence, BytesOf(op));
    if (status.ok() && op.kind != CommKind::kExchange) status = transport->Enter(op);
    if (status.ok()) status = body();
    if (!status.ok()) job->Fail(status);
    progress->Leave();
    if (status.ok()) return status;
    return std::move(job->reason()).Within(Context(op));
  }
  std::string Context(const CommHeader& op) const {
    return StrCat("rank ", transport->rank(), " in group '", transport->group(), "', ",
                  Describe(op));
  }

  std::unique_ptr<CommTransport> transport;
  std::shared_ptr<JobAbort> job;
  const uint64_t group_id;
  std::shared_ptr<ProgressSlot> progress;
  std::shared_ptr<CommActivity> activity;
  std::unique_ptr<CommQueue> queue = std::make_unique<CommQueue>();
};

class QueuedWork final : public CommWork {
 public:
  QueuedWork(std::shared_ptr<CommCore> core, const CommHeader& op, std::shared_ptr<CommTask> task)
      : core_(std::move(core)), op_(op), task_(std::move(task)) {}
  ~QueuedWork() override { (void)core_->queue->Wait(*task_, {}); }
  bool done() const override { return task_->done(); }
  Status Wait(const WaitLimit& limit) override {
    Status status = core_->queue->Wait(*task_, limit);
    if (task_->done() || status.ok()) return status;
    const bool cancelled = status.code() == Code::kCancelled;
    return MakeStatus(status.code(), core_->Context(op_),
                      cancelled ? ": the wait was cancelled" : ": the deadline passed",
                      "; the operation goes on, abort the communicator to end it");
  }

 private:
  std::shared_ptr<CommCore> core_;
  CommHeader op_;
  std::shared_ptr<CommTask> task_;
};

// The color, key and note of one rank in a split.
struct SplitEntry {
  int32_t color;
  int32_t key;
  uint32_t note_bytes;
  std::byte note[CommTransport::kMaxSplitNote];
};

class QueuedCommunicator final : public Communicator {
 public:
  explicit QueuedCommunicator(std::shared_ptr<CommCore> core) : core_(std::move(core)) {}

  int rank() const override { return transport().rank(); }
  int size() const override { return transport().size(); }
  const std::string& group() const override { return transport().group(); }
  const std::string& engine() const override { return transport().engine(); }
  CommCounters counters() const override { return transport().counters(); }
  bool active() const override { return core_->activity->Read().active; }
  std::string doing() const override {
    const CommProgress last = core_->activity->Read();
    return last.sequence == 0 ? DoingText({}) : DoingText({last});
  }
  void Abort(const Status& reason) override { core_->job->Abort(reason); }

  Result<CommWorkPtr> Exchange(std::span<const CommPart> sends,
                               std::span<const CommPart> receives) override;
  Result<CommWorkPtr> AllReduce(void* data, size_t count, CommType type, CommReduce reduce,
                                CommOrder order) override;
  Result<CommWorkPtr> ReduceScatter(const void* send, void* receive, std::span<const size_t> counts,
                                    CommType type, CommReduce reduce, CommOrder order) override;
  Result<CommWorkPtr> AllGather(const void* send, void* receive,
                                std::span<const size_t> bytes) override;
  Result<CommWorkPtr> AllToAll(std::span<const CommPart> sends,
                               std::span<const CommPart> receives) override;
  Result<CommWorkPtr> Broadcast(void* data, size_t bytes, int root) override;
  Result<CommWorkPtr> Barrier() override;
  Result<std::unique_ptr<Communicator>> Split(int color, int key,
                                              const std::string& group) override;
  Result<std::vector<std::unique_ptr<Communicator>>> SplitPairs(const std::string& group) override;

 private:
  CommTransport& transport() const { return *core_->transport; }
  size_t ranks() const { return static_cast<size_t>(size()); }

  // The header of the next operation. Only operations that start take a number, so that a refused
  // call does not put the ranks out of step.
  CommHeader Header(CommKind kind) const {
    CommHeader op;
    op.kind = kind;
    op.sequence = (kind == CommKind::kExchange ? exchanges_ : collectives_) + 1;
    return op;
  }
  template <typename F>
  Result<CommWorkPtr> Start(const CommHeader& op, F body) {
    if (core_->job->aborted()) return std::move(core_->job->reason()).Within(core_->Context(op));
    ++(op.kind == CommKind::kExchange ? exchanges_ : collectives_);
    CommCore* core = core_.get();  // the work keeps it alive
    auto task = core->queue->Push(
        [core, op, run = std::move(body)] { return core->Run(op, [&] { return run(*core); }); });
    return CommWorkPtr(new QueuedWork(core_, op, std::move(task)));
  }

  Status Refuse(const CommHeader& op, std::string_view problem) const {
    return InvalidArgument(core_->Context(op), ": ", problem);
  }
  Status CheckParts(const CommHeader& op, std::span<const CommPart> sends,
                    std::span<const CommPart> receives) const;
  Status CheckCounts(const CommHeader& op, std::span<const size_t> counts, size_t element_bytes,
                     size_t* total) const;
  Status ExchangeSplitEntries(const CommHeader& op, const SplitEntry& mine,
                              std::vector<SplitEntry>* all) const;
  Result<std::unique_ptr<CommTransport>> RunSplit(const CommHeader& op, int color, int key,
                                                  const std::string& group) const;
  Result<std::unique_ptr<CommTransport>> ConnectPair(const CommHeader& op, int other,
                                                     const std::string& group) const;
  std::unique_ptr<QueuedCommunicator> Child(std::unique_ptr<CommTransport> child,
                                            const CommHeader& op, int color) const;

  std::shared_ptr<CommCore> core_;
  uint64_t collectives_ = 0;
  uint64_t exchanges_ = 0;
};

Status QueuedCommunicator::CheckParts(const CommHeader& op, std::span<const CommPart> sends,
                                      std::span<const CommPart> receives) const {
  std::vector<size_t> own;
  for (const auto parts : {sends, receives}) {
    for (const CommPart& part : parts) {
      if (part.rank < 0 || part.rank >= size())
        return Refuse(op, StrCat("a part names rank ", part.rank, "; the group has ", size()));
      if (part.bytes != 0 && part.data == nullptr)
        return Refuse(op, StrCat("a part of rank ", part.rank, " has no data"));
    }
  }
  const auto is_own = [&](const CommPart& part) { return part.rank == rank(); };
  for (const CommPart& part : sends)
    if (is_own(part)) own.push_back(part.bytes);
  size_t next = 0;
  for (const CommPart& part : receives)
    if (is_own(part) && (next >= own.size() || own[next++] != part.bytes)) next = SIZE_MAX - 1;
  if (next != own.size())
    return Refuse(op, "the parts that this rank sends to itself differ from those it receives");
  return OkStatus();
}

Status QueuedCommunicator::CheckCounts(const CommHeader& op, std::span<const size_t> counts,
                                       size_t element_bytes, size_t* total) const {
  if (counts.size() != ranks())
    return Refuse(
        op, StrCat("got ", counts.size(), " counts, needs one for each of ", size(), " ranks"));
  *total = 0;
  size_t bytes = 0;
  for (size_t count : counts) {
    if (!CheckedAdd(*total, count, total) || !CheckedMul(*total, element_bytes, &bytes))
      return Refuse(op, "the counts are too large");
  }
  return OkStatus();
}

Result<CommWorkPtr> QueuedCommunicator::Exchange(std::span<const CommPart> sends,
                                                 std::span<const CommPart> receives) {
  const CommHeader op = Header(CommKind::kExchange);
  MSRT_RETURN_IF_ERROR(CheckParts(op, sends, receives));
  std::vector<CommPart> out(sends.begin(), sends.end()), in(receives.begin(), receives.end());
  return Start(op, [op, out = std::move(out), in = std::move(in)](CommCore& core) {
    return RunExchange(*core.transport, op, out, in);
  });
}

Result<CommWorkPtr> QueuedCommunicator::AllReduce(void* data, size_t count, CommType type,
                                                  CommReduce reduce, CommOrder order) {
  CommHeader op = Header(CommKind::kAllReduce);
  op.count = count, op.type = type, op.reduce = reduce, op.order = order;
  size_t bytes = 0;
  if (!CheckedMul(count, CommTypeBytes(type), &bytes)) return Refuse(op, "the count is too large");
  if (count != 0 && data == nullptr) return Refuse(op, "data is null");
  return Start(op, [op, data](CommCore& core) {
    return RunAllReduce(*core.transport, op, static_cast<std::byte*>(data));
  });
}

Result<CommWorkPtr> QueuedCommunicator::ReduceScatter(const void* send, void* receive,
                                                      std::span<const size_t> counts, CommType type,
                                                      CommReduce reduce, CommOrder order) {
  CommHeader op = Header(CommKind::kReduceScatter);
  op.type = type, op.reduce = reduce, op.order = order;
  size_t total = 0;
  MSRT_RETURN_IF_ERROR(CheckCounts(op, counts, CommTypeBytes(type), &total));
  op.count = total;
  op.detail = HashCounts(counts);
  const size_t own = counts[static_cast<size_t>(rank())];
  if ((total != 0 && send == nullptr) || (own != 0 && receive == nullptr))
    return Refuse(op, "send or receive is null");
  return Start(op, [op, send, receive,
                    all = std::vector<size_t>(counts.begin(), counts.end())](CommCore& core) {
    return RunReduceScatter(*core.transport, op, static_cast<const std::byte*>(send),
                            static_cast<std::byte*>(receive), all);
  });
}

Result<CommWorkPtr> QueuedCommunicator::AllGather(const void* send, void* receive,
                                                  std::span<const size_t> bytes) {
  CommHeader op = Header(CommKind::kAllGather);
  size_t total = 0;
  MSRT_RETURN_IF_ERROR(CheckCounts(op, bytes, 1, &total));
  op.count = total;
  op.detail = HashCounts(bytes);
  const size_t own = bytes[static_cast<size_t>(rank())];
  if ((own != 0 && send == nullptr) || (total != 0 && receive == nullptr))
    return Refuse(op, "send or receive is null");
  return Start(op, [op, send, receive,
                    all = std::vector<size_t>(bytes.begin(), bytes.end())](CommCore& core) {
    return RunAllGather(*core.transport, op, static_cast<const std::byte*>(send),
                        static_cast<std::byte*>(receive), all);
  });
}

Result<CommWorkPtr> QueuedCommunicator::AllToAll(std::span<const CommPart> sends,
                                                 std::span<const CommPart> receives) {
  const CommHeader op = Header(CommKind::kAllToAll);
  for (const auto parts : {sends, receives}) {
    bool in_order = parts.size() == ranks();
    for (size_t i = 0; in_order && i < parts.size(); ++i)
      in_order = parts[i].rank == static_cast<int>(i);
    if (!in_order)
      return Refuse(op, StrCat("needs one part for each of ", size(), " ranks, in order"));
  }
  MSRT_RETURN_IF_ERROR(CheckParts(op, sends, receives));
  std::vector<CommPart> out(sends.begin(), sends.end()), in(receives.begin(), receives.end());
  return Start(op, [op, out = std::move(out), in = std::move(in)](CommCore& core) {
    return RunExchange(*core.transport, op, out, in);
  });
}

Result<CommWorkPtr> QueuedCommunicator::Broadcast(void* data, size_t bytes, int root) {
  CommHeader op = Header(CommKind::kBroadcast);
  op.count = bytes;
  op.detail = static_cast<uint32_t>(root);
  if (root < 0 || root >= size())
    return Refuse(op, StrCat("the root is rank ", root, "; the group has ", size()));
  if (bytes != 0 && data == nullptr) return Refuse(op, "data is null");
  return Start(op, [op, data](CommCore& core) {
    return RunBroadcast(*core.transport, op, static_cast<std::byte*>(data));
  });
}

Result<CommWorkPtr> QueuedCommunicator::Barrier() {
  const CommHeader op = Header(CommKind::kBarrier);
  return Start(op, [op](CommCore& core) { return RunBarrier(*core.transport, op); });
}

Status QueuedCommunicator::ExchangeSplitEntries(const CommHeader& op, const SplitEntry& mine,
                                                std::vector<SplitEntry>* all) const {
  all->assign(ranks(), SplitEntry{});
  const std::vector<size_t> bytes(ranks(), sizeof(SplitEntry));
  return RunAllGather(transport(), op, reinterpret_cast<const std::byte*>(&mine),
                      reinterpret_cast<std::byte*>(all->data()), bytes);
}

// Two rounds: colors and keys first, which tell the leaders, then the leaders' notes.
Result<std::unique_ptr<CommTransport>> QueuedCommunicator::RunSplit(
    const CommHeader& op, int color, int key, const std::string& group) const {
  SplitEntry mine{};
  mine.color = color, mine.key = key;
  std::vector<SplitEntry> all;
  MSRT_RETURN_IF_ERROR(ExchangeSplitEntries(op, mine, &all));
  CommSubgroup subgroup{{}, 0, group, op.sequence, color, {}};
  for (int r = 0; r < size(); ++r)
    if (color >= 0 && all[static_cast<size_t>(r)].color == color) subgroup.members.push_back(r);
  std::stable_sort(subgroup.members.begin(), subgroup.members.end(), [&](int a, int b) {
    return all[static_cast<size_t>(a)].key < all[static_cast<size_t>(b)].key;
  });
  const auto here = std::find(subgroup.members.begin(), subgroup.members.end(), rank());
  subgroup.rank = static_cast<int>(here - subgroup.members.begin());
  if (color >= 0) {
    MSRT_ASSIGN_OR_RETURN(
        const auto note,
        transport().SplitNote(subgroup.rank == 0, static_cast<int>(subgroup.members.size())));
    mine.note_bytes = static_cast<uint32_t>(std::min(note.size(), sizeof(mine.note)));
    if (!note.empty()) std::memcpy(mine.note, note.data(), mine.note_bytes);
  }
  MSRT_RETURN_IF_ERROR(ExchangeSplitEntries(op, mine, &all));
  if (color < 0) return std::unique_ptr<CommTransport>();
  const SplitEntry& leader = all[static_cast<size_t>(subgroup.members[0])];
  if (leader.note_bytes > sizeof(leader.note)) return InternalError("a split note is too long");
  subgroup.leader_note.assign(leader.note, leader.note + leader.note_bytes);
  return transport().Split(subgroup);
}

Result<std::unique_ptr<Communicator>> QueuedCommunicator::Split(int color, int key,
                                                                const std::string& group) {
  const CommHeader op = Header(CommKind::kSplit);
  std::unique_ptr<CommTransport> child;
  MSRT_ASSIGN_OR_RETURN(const CommWorkPtr work, Start(op, [&](CommCore&) -> Status {
                          MSRT_ASSIGN_OR_RETURN(child, RunSplit(op, color, key, group));
                          return OkStatus();
                        }));
  MSRT_RETURN_IF_ERROR(work->Wait({}));
  if (child == nullptr) return std::unique_ptr<Communicator>();
  std::unique_ptr<QueuedCommunicator> made = Child(std::move(child), op, color);
  core_->activity->Add(made->core_->activity);
  return std::unique_ptr<Communicator>(std::move(made));
}

std::unique_ptr<QueuedCommunicator> QueuedCommunicator::Child(std::unique_ptr<CommTransport> child,
                                                              const CommHeader& op,
                                                              int color) const {
  child->set_stall_limit(transport().stall_limit());
  const size_t id[] = {core_->group_id, op.sequence, static_cast<size_t>(color)};
  auto core = std::make_shared<CommCore>(std::move(child), core_->job, HashNumbers(id));
  return std::make_unique<QueuedCommunicator>(std::move(core));
}

// Rank 0 leads the pair.
Result<std::unique_ptr<CommTransport>> QueuedCommunicator::ConnectPair(
    const CommHeader& op, int other, const std::string& group) const {
  struct Note {
    uint32_t bytes = 0;
    std::byte data[CommTransport::kMaxSplitNote] = {};
  } note;
  const bool leads = rank() == 0;
  CommSubgroup pair{{0, other}, leads ? 0 : 1, StrCat(group, " ", other), op.sequence, other, {}};
  MSRT_ASSIGN_OR_RETURN(const std::vector<std::byte> mine, transport().SplitNote(leads, 2));
  note.bytes = static_cast<uint32_t>(std::min(mine.size(), sizeof note.data));
  if (!mine.empty()) std::memcpy(note.data, mine.data(), note.bytes);
  const CommPart part{leads ? other : 0, reinterpret_cast<std::byte*>(&note), sizeof note};
  const std::span<const CommPart> one(&part, 1), none;
  MSRT_RETURN_IF_ERROR(transport().Exchange(op, leads ? one : none, leads ? none : one));
  if (note.bytes > sizeof note.data) return InternalError("a split note is too long");
  pair.leader_note.assign(note.data, note.data + note.bytes);
  return transport().Split(pair);
}

// Rank 0 connects with one rank after the other.
Result<std::vector<std::unique_ptr<Communicator>>> QueuedCommunicator::SplitPairs(
    const std::string& group) {
  CommHeader op = Header(CommKind::kSplit);
  op.detail = kSplitPairs;
  std::vector<std::unique_ptr<Communicator>> pairs;
  MSRT_ASSIGN_OR_RETURN(const CommWorkPtr work, Start(op, [&](CommCore&) -> Status {
                          for (int other = 1; other < size(); ++other) {
                            if (rank() != 0 && rank() != other) continue;
                            MSRT_ASSIGN_OR_RETURN(auto child, ConnectPair(op, other, group));
                            pairs.push_back(Child(std::move(child), op, other));
                          }
                          return OkStatus();
                        }));
  MSRT_RETURN_IF_ERROR(work->Wait({}));
  return pairs;
}

}  // namespace

std::unique_ptr<Communicator> MakeQueuedCommunicator(std::unique_ptr<CommTransport> transport,
                                                     Control* control, uint64_t group_id) {
  auto job = std::make_shared<JobAbort>(control);
  auto core = std::make_shared<CommCore>(std::move(transport), std::move(job), group_id);
  return std::make_unique<QueuedCommunicator>(std::move(core));
}

}  // namespace msrt

#include "core/run/collective.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "core/comm/combine.h"
#include "core/comm/reduce_shards.h"
#include "core/comm/tree_reduce.h"
#include "core/run/collective_parts.h"
#include "core/run/collective_scatter.h"

namespace msrt {
namespace {

// One collective on one rank.
class CollectiveRun {
 public:
  CollectiveRun(const CollectivePlan& plan, std::span<const TensorView> inputs,
                std::span<const TensorView> outputs, Communicator* comm, const WaitLimit& limit,
                Allocator* allocator)
      : plan_(plan),
        inputs_(inputs),
        outputs_(outputs),
        comm_(comm),
        limit_(limit),
        allocator_(allocator),
        ranks_(comm == nullptr ? 1 : comm->size()),
        rank_(comm == nullptr ? 0 : comm->rank()) {}

  Status Run() {
    MSRT_RETURN_IF_ERROR(CheckGroup());
    switch (plan_.kind) {
      case CollectiveKind::kAllReduce:
        return AllReduce();
      case CollectiveKind::kAllGather:
        return AllGather();
      case CollectiveKind::kReduceScatter:
        return ReduceScatter();
      case CollectiveKind::kAllToAll:
        return AllToAll();
      case CollectiveKind::kBroadcast:
        return Broadcast();
      case CollectiveKind::kReduce:
        return Reduce();
      case CollectiveKind::kSend:
      case CollectiveKind::kReceive:
        return SendOrReceive();
      case CollectiveKind::kGroupRank:
        return Number(rank_);
      case CollectiveKind::kGroupSize:
        return Number(ranks_);
      case CollectiveKind::kAllScatterAdd:
        return RunAllScatterAdd(inputs_, outputs_[0], comm_, limit_, allocator_);
    }
    return OkStatus();
  }

 private:
  Status CheckGroup() const {
    if (plan_.ranks != 0 && plan_.ranks != ranks_)
      return InvalidArgument(plan_.name, " of the model is for ", plan_.ranks,
                             " ranks, but there are ", ranks_, "; start as many");
    const bool of_two =
        plan_.kind == CollectiveKind::kSend || plan_.kind == CollectiveKind::kReceive;
    if (plan_.peer >= ranks_)
      return InvalidArgument(plan_.name, " of the model is with rank ", plan_.peer,
                             ", but there are ", ranks_, " ranks; start more");
    if (of_two && plan_.peer == rank_)
      return InvalidArgument(plan_.name, " of the model is with rank ", plan_.peer,
                             ", which is this rank; use another model on this rank");
    return OkStatus();
  }

  static size_t BytesOfView(const TensorView& t) { return BytesOf(t.dtype, t.dims.elements()); }
  static void Copy(void* to, const void* from, size_t bytes) {
    if (to != from && bytes != 0) std::memcpy(to, from, bytes);
  }
  Status Await(Result<CommWorkPtr> work) const {
    if (!work.ok()) return std::move(work).status();
    return (*work)->Wait(limit_);
  }
  Result<Block> Message(size_t bytes) const {
    return Block::Make(allocator_, std::max<size_t>(bytes, 1), "a message between ranks");
  }

  // ---- reductions -------------------------------------------------------------------------------

  // Where the tree above the shards of each rank is that of the ranks.
  bool ShardsFormSubtrees() const {
    return ranks_ <= kVirtualShards && std::has_single_bit(static_cast<unsigned>(ranks_));
  }

  Status AllReduce() {
    const std::optional<CommType> type = CommTypeOf(plan_.dtype);
    MSRT_CHECK(type.has_value());  // validated
    const size_t shards = inputs_.size() / outputs_.size(), width = CommTypeBytes(*type);
    if (plan_.by_shards && comm_ == nullptr && shards != static_cast<size_t>(kVirtualShards))
      return InvalidArgument("a single rank has all ", kVirtualShards, " shards, AllReduce got ",
                             shards);
    if (plan_.by_shards && !ShardsFormSubtrees()) return ReduceUnevenShards(shards, *type);
    // The shards of a rank are one subtree: they need no message.
    const auto [first, last] = ShardsOfRank(rank_, ranks_);
    if (plan_.by_shards && shards != static_cast<size_t>(last - first))
      return InvalidArgument("AllReduce got ", shards, " shards, rank ", rank_, " of ", ranks_,
                             " has ", last - first);
    size_t bytes = 0;
    for (const TensorView& out : outputs_) bytes += BytesOfView(out);
    const bool direct = comm_ == nullptr || outputs_.size() == 1;
    Block block;
    if (!direct) {
      MSRT_ASSIGN_OR_RETURN(block, Message(bytes));
    }
    std::byte* to = block.data();
    for (size_t t = 0; t < outputs_.size(); ++t) {
      std::vector<const void*> parts;
      for (size_t s = 0; s < shards; ++s) parts.push_back(inputs_[t * shards + s].data);
      const size_t size = BytesOfView(outputs_[t]);
      TreeReduce(parts, direct ? outputs_[t].data : to, size / width, *type, plan_.reduce);
      if (!direct) to += size;
    }
    if (comm_ == nullptr) return OkStatus();
    void* const message = direct ? outputs_[0].data : block.data();
    MSRT_RETURN_IF_ERROR(
        Await(comm_->AllReduce(message, bytes / width, *type, plan_.reduce, plan_.order)));
    if (!direct) SplitMessage(block.data());
    return OkStatus();
  }

  // All shards of a rank are in the message.
  Status ReduceUnevenShards(size_t shards, CommType type) {
    size_t bytes = 0;
    for (const TensorView& out : outputs_) bytes += BytesOfView(out);
    std::vector<const void*> parts;
    if (outputs_.size() == 1) {
      for (size_t s = 0; s < shards; ++s) parts.push_back(inputs_[s].data);
      return ReduceShards(*comm_, parts, outputs_[0].data, bytes / CommTypeBytes(type), type,
                          plan_.reduce, limit_);
    }
    MSRT_ASSIGN_OR_RETURN(const Block block, Message(std::max<size_t>(shards, 1) * bytes));
    std::byte* to = block.data();
    for (size_t s = 0; s < shards; ++s) {
      parts.push_back(to);
      for (size_t t = 0; t < outputs_.size(); ++t) {
        Copy(to, inputs_[t * shards + s].data, BytesOfView(outputs_[t]));
        to += BytesOfView(outputs_[t]);
      }
    }
    MSRT_RETURN_IF_ERROR(ReduceShards(*comm_, parts, block.data(), bytes / CommTypeBytes(type),
                                      type, plan_.reduce, limit_));
    SplitMessage(block.data());
    return OkStatus();
  }

  void SplitMessage(const std::byte* message) {
    for (const TensorView& out : outputs_) {
      Copy(out.data, message, BytesOfView(out));
      message += BytesOfView(out);
    }
  }

  Status Reduce() {
    const size_t bytes = BytesOfView(outputs_[0]);
    Copy(outputs_[0].data, inputs_[0].data, bytes);
    if (comm_ == nullptr) return OkStatus();
    const CommType type = *CommTypeOf(plan_.dtype);
    MSRT_RETURN_IF_ERROR(Await(comm_->AllReduce(outputs_[0].data, bytes / CommTypeBytes(type), type,
                                                plan_.reduce, plan_.order)));
    if (rank_ != plan_.peer && bytes != 0) std::memset(outputs_[0].data, 0, bytes);
    return OkStatus();
  }

  Status ReduceScatter() {
    const AxisParts parts(inputs_[0].dims, plan_.axis, ranks_, BytesOf(plan_.dtype, 1));
    if (comm_ == nullptr) return CopyAlone();
    const CommType type = *CommTypeOf(plan_.dtype);
    Block packed;
    const void* send = inputs_[0].data;
    if (!parts.is_message()) {
      MSRT_ASSIGN_OR_RETURN(packed, Message(BytesOfView(inputs_[0])));
      parts.Pack(send, packed.data());
      send = packed.data();
    }
    const std::vector<size_t> counts(static_cast<size_t>(ranks_),
                                     parts.part_bytes() / CommTypeBytes(type));
    return Await(
        comm_->ReduceScatter(send, outputs_[0].data, counts, type, plan_.reduce, plan_.order));
  }

  // ---- others -----------------------------------------------------------------------------------

  Status CopyAlone() {
    Copy(outputs_[0].data, inputs_[0].data, BytesOfView(outputs_[0]));
    return OkStatus();
  }

  Status AllGather() {
    if (comm_ == nullptr) return CopyAlone();
    const AxisParts parts(outputs_[0].dims, plan_.axis, ranks_, BytesOf(plan_.dtype, 1));
    const std::vector<size_t> bytes(static_cast<size_t>(ranks_), parts.part_bytes());
    if (parts.is_message())
      return Await(comm_->AllGather(inputs_[0].data, outputs_[0].data, bytes));
    MSRT_ASSIGN_OR_RETURN(const Block message, Message(BytesOfView(outputs_[0])));
    MSRT_RETURN_IF_ERROR(Await(comm_->AllGather(inputs_[0].data, message.data(), bytes)));
    parts.Unpack(message.data(), outputs_[0].data);
    return OkStatus();
  }

  Status AllToAll() {
    if (comm_ == nullptr) return CopyAlone();
    const size_t width = BytesOf(plan_.dtype, 1);
    const AxisParts from(inputs_[0].dims, plan_.axis, ranks_, width),
        to(outputs_[0].dims, plan_.concat_axis, ranks_, width);
    MSRT_ASSIGN_OR_RETURN(const Block sent, Message(BytesOfView(inputs_[0])));
    MSRT_ASSIGN_OR_RETURN(const Block received, Message(BytesOfView(outputs_[0])));
    from.Pack(inputs_[0].data, sent.data());
    const size_t bytes = from.part_bytes();
    std::vector<CommPart> sends, receives;
    for (int r = 0; r < ranks_; ++r) {
      const size_t offset = static_cast<size_t>(r) * bytes;
      sends.push_back({r, sent.data() + offset, bytes});
      receives.push_back({r, received.data() + offset, bytes});
    }
    MSRT_RETURN_IF_ERROR(Await(comm_->AllToAll(sends, receives)));
    to.Unpack(received.data(), outputs_[0].data);
    return OkStatus();
  }

  Status Broadcast() {
    const size_t bytes = BytesOfView(outputs_[0]);
    if (rank_ == plan_.peer) Copy(outputs_[0].data, inputs_[0].data, bytes);
    if (comm_ == nullptr) return OkStatus();
    return Await(comm_->Broadcast(outputs_[0].data, bytes, plan_.peer));
  }

  Status SendOrReceive() {
    if (plan_.kind == CollectiveKind::kReceive) {
      const CommPart part{plan_.peer, static_cast<std::byte*>(outputs_[0].data),
                          BytesOfView(outputs_[0])};
      return Await(comm_->Exchange({}, {&part, 1}));
    }
    std::memset(outputs_[0].data, 0, BytesOfView(outputs_[0]));  // the token
    const CommPart part{plan_.peer, static_cast<std::byte*>(inputs_[0].data),
                        BytesOfView(inputs_[0])};
    return Await(comm_->Exchange({&part, 1}, {}));
  }

  Status Number(int64_t number) {
    *outputs_[0].As<int64_t>() = number;
    return OkStatus();
  }

  const CollectivePlan& plan_;
  const std::span<const TensorView> inputs_, outputs_;
  Communicator* const comm_;
  const WaitLimit& limit_;
  Allocator* const allocator_;
  const int ranks_, rank_;
};

bool Communicates(CollectiveKind kind) {
  return kind != CollectiveKind::kGroupRank && kind != CollectiveKind::kGroupSize;
}

}  // namespace

Status RunCollective(const CollectivePlan& plan, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs, Communicator* comm,
                     const WaitLimit& limit, Allocator* allocator, ExchangeTotals* totals) {
  const int64_t begin = MonotonicNanos();
  const CommCounters before = comm == nullptr ? CommCounters{} : comm->counters();
  Status status = CollectiveRun(plan, inputs, outputs, comm, limit, allocator).Run();
  if (!status.ok()) {
    if (comm != nullptr) comm->Abort(status);
    return status;
  }
  if (comm == nullptr || !Communicates(plan.kind)) return status;
  const CommCounters after = comm->counters();
  ++totals->exchanges;
  totals->bytes_sent += static_cast<int64_t>(after.sent_bytes - before.sent_bytes);
  totals->bytes_received += static_cast<int64_t>(after.received_bytes - before.received_bytes);
  totals->nanos += MonotonicNanos() - begin;
  return status;
}

}  // namespace msrt

#include "core/run/collective.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/comm/combine.h"
#include "core/comm/reduce_shards.h"
#include "core/comm/tree_reduce.h"

namespace msrt {
namespace {

size_t ElementCount(std::span<const TensorView> tensors) {
  int64_t elements = 0;
  for (const TensorView& t : tensors) elements += t.dims.elements();
  return static_cast<size_t>(elements);
}

// One rank owns all shards of the job.
Status ReduceAlone(const CollectivePlan& plan, std::span<const void* const> parts, void* out,
                   size_t count, CommType type) {
  if (plan.by_shards && parts.size() != static_cast<size_t>(kVirtualShards))
    return InvalidArgument("a single rank has all ", kVirtualShards, " shards, AllReduce got ",
                           parts.size());
  TreeReduce(parts, out, count, type, plan.reduce);
  return OkStatus();
}

// `parts` are arrays of the elements of all tensors.
Status Reduce(const CollectivePlan& plan, std::span<const void* const> parts, void* out,
              size_t count, CommType type, Communicator* comm, const WaitLimit& limit) {
  if (comm == nullptr) return ReduceAlone(plan, parts, out, count, type);
  if (plan.by_shards) return ReduceShards(*comm, parts, out, count, type, plan.reduce, limit);
  if (out != parts[0] && count != 0) std::memcpy(out, parts[0], count * CommTypeBytes(type));
  MSRT_ASSIGN_OR_RETURN(const CommWorkPtr work,
                        comm->AllReduce(out, count, type, plan.reduce, plan.order));
  return work->Wait(limit);
}

Status RunAllReduce(const CollectivePlan& plan, std::span<const TensorView> inputs,
                    std::span<const TensorView> outputs, Communicator* comm, const WaitLimit& limit,
                    Allocator* allocator) {
  const std::optional<CommType> type = CommTypeOf(plan.dtype);
  MSRT_CHECK(type.has_value());  // validated
  const size_t shards = inputs.size() / outputs.size(), count = ElementCount(outputs),
               width = CommTypeBytes(*type);
  std::vector<const void*> parts(shards);
  if (outputs.size() == 1) {
    for (size_t s = 0; s < shards; ++s) parts[s] = inputs[s].data;
    return Reduce(plan, parts, outputs[0].data, count, *type, comm, limit);
  }
  MSRT_ASSIGN_OR_RETURN(
      const Block block,
      Block::Make(allocator, std::max<size_t>(shards * count * width, 1), "a reduced message"));
  auto* const bytes = static_cast<std::byte*>(static_cast<void*>(block.data()));
  for (size_t s = 0; s < shards; ++s) {
    std::byte* to = bytes + s * count * width;
    parts[s] = to;
    for (size_t t = 0; t < outputs.size(); ++t) {
      const size_t size = static_cast<size_t>(outputs[t].dims.elements()) * width;
      if (size != 0) std::memcpy(to, inputs[t * shards + s].data, size);
      to += size;
    }
  }
  MSRT_RETURN_IF_ERROR(Reduce(plan, parts, bytes, count, *type, comm, limit));
  const std::byte* from = bytes;
  for (const TensorView& out : outputs) {
    const size_t size = static_cast<size_t>(out.dims.elements()) * width;
    if (size != 0) std::memcpy(out.data, from, size);
    from += size;
  }
  return OkStatus();
}

}  // namespace

Status RunCollective(const CollectivePlan& plan, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs, Communicator* comm,
                     const WaitLimit& limit, Allocator* allocator, ExchangeTotals* totals) {
  const int64_t begin = MonotonicNanos();
  const CommCounters before = comm == nullptr ? CommCounters{} : comm->counters();
  Status status = RunAllReduce(plan, inputs, outputs, comm, limit, allocator);
  if (!status.ok()) {
    if (comm != nullptr) comm->Abort(status);
    return status;
  }
  if (comm == nullptr) return status;
  const CommCounters after = comm->counters();
  ++totals->exchanges;
  totals->bytes_sent += static_cast<int64_t>(after.sent_bytes - before.sent_bytes);
  totals->bytes_received += static_cast<int64_t>(after.received_bytes - before.received_bytes);
  totals->nanos += MonotonicNanos() - begin;
  return status;
}

}  // namespace msrt

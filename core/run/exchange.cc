#include "core/run/exchange.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace msrt {
namespace {

// The parts for one rank are one message.
struct Message {
  size_t bytes = 0;
  std::vector<const Box*> boxes;
  std::vector<size_t> offsets;
  std::byte* data = nullptr;
};
using Messages = std::map<int, Message>;  // by rank

Messages MessagesOf(std::span<const PeerBox> parts, DType dtype) {
  Messages messages;
  for (const PeerBox& part : parts) {
    Message& m = messages[part.rank];
    m.boxes.push_back(&part.box);
    m.offsets.push_back(m.bytes);
    m.bytes += BytesOf(dtype, part.box.volume());
  }
  return messages;
}

TensorView ViewOf(const Message& m, size_t part, DType dtype) {
  return {dtype, m.boxes[part]->dims(), Layout::kPlain, m.data + m.offsets[part]};
}

// In elements, by logical dim.
Dims StridesOf(const TensorView& view) {
  if (view.layout == Layout::kPlain || view.dims.rank() < 3) return RowMajorStrides(view.dims);
  Dims strides = view.dims;
  int64_t step = view.dims[1];
  for (int d = view.dims.rank() - 1; d >= 2; --d) {
    strides[d] = step;
    step *= view.dims[d];
  }
  strides[1] = 1;
  strides[0] = step;
  return strides;
}

struct CopyLoop {
  int64_t extent, from, to;  // steps in elements
};

void CopyDims(const std::byte* from, std::byte* to, std::span<const CopyLoop> loops, size_t width) {
  if (loops.size() > 1) {
    for (int64_t i = 0; i < loops[0].extent; ++i) {
      CopyDims(from, to, loops.subspan(1), width);
      from += loops[0].from * static_cast<int64_t>(width);
      to += loops[0].to * static_cast<int64_t>(width);
    }
    return;
  }
  if (loops[0].from == 1 && loops[0].to == 1) {
    std::memcpy(to, from, static_cast<size_t>(loops[0].extent) * width);
    return;
  }
  for (int64_t i = 0; i < loops[0].extent; ++i) {
    std::memcpy(to, from, width);
    from += loops[0].from * static_cast<int64_t>(width);
    to += loops[0].to * static_cast<int64_t>(width);
  }
}

Status Aborted(Communicator* comm, Status status) {
  comm->Abort(status);
  return status;
}

}  // namespace

void CopyCommon(const TensorView& from, const Box& from_box, const TensorView& to,
                const Box& to_box) {
  const Box common = Intersect(from_box, to_box);
  if (common.empty()) return;
  const Dims from_strides = StridesOf(from), to_strides = StridesOf(to);
  const size_t width = BytesOf(from.dtype, 1);
  int64_t from_first = 0, to_first = 0;
  std::vector<CopyLoop> loops;
  for (int d = 0; d < common.rank(); ++d) {
    from_first += (common[d].begin - from_box[d].begin) * from_strides[d];
    to_first += (common[d].begin - to_box[d].begin) * to_strides[d];
    if (common[d].size() > 1) loops.push_back({common[d].size(), from_strides[d], to_strides[d]});
  }
  std::sort(loops.begin(), loops.end(),
            [](const CopyLoop& a, const CopyLoop& b) { return a.to > b.to; });
  // Joins loops whose elements follow each other on both sides.
  for (size_t i = loops.size(); i-- > 1;) {
    CopyLoop &outer = loops[i - 1], &inner = loops[i];
    if (outer.from != inner.from * inner.extent || outer.to != inner.to * inner.extent) continue;
    outer = {outer.extent * inner.extent, inner.from, inner.to};
    loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (loops.empty()) loops.push_back({1, 1, 1});
  CopyDims(from.As<std::byte>() + from_first * static_cast<int64_t>(width),
           to.As<std::byte>() + to_first * static_cast<int64_t>(width), loops, width);
}

Status RunExchange(const ExchangePlan& plan, std::span<const TensorView> inputs,
                   std::span<const TensorView> outputs, Communicator* comm, const WaitLimit& limit,
                   Allocator* allocator, ExchangeTotals* totals) {
  const int64_t begin = MonotonicNanos();
  Messages sends = MessagesOf(plan.sends, plan.dtype),
           receives = MessagesOf(plan.receives, plan.dtype);
  size_t sent = 0, received = 0;
  for (const auto& [rank, m] : sends) sent += m.bytes;
  for (const auto& [rank, m] : receives) received += m.bytes;
  auto block =
      Block::Make(allocator, std::max<size_t>(sent + received, 1), "messages to other ranks");
  if (!block.ok()) return Aborted(comm, std::move(block).status());
  auto* next = static_cast<std::byte*>(static_cast<void*>(block->data()));
  std::vector<CommPart> out, in;
  for (auto& [rank, m] : sends) {
    m.data = next;
    for (size_t p = 0; p < m.boxes.size(); ++p)
      CopyCommon(inputs[0], plan.own, ViewOf(m, p, plan.dtype), *m.boxes[p]);
    out.push_back({rank, m.data, m.bytes});
    next += m.bytes;
  }
  for (auto& [rank, m] : receives) {
    m.data = next;
    in.push_back({rank, m.data, m.bytes});
    next += m.bytes;
  }
  auto work = comm->Exchange(out, in);
  if (!work.ok()) return Aborted(comm, std::move(work).status());
  // Its own part is copied meanwhile.
  for (size_t o = 0; o < outputs.size() && !inputs.empty() && inputs[0].present(); ++o)
    CopyCommon(inputs[0], plan.own, outputs[o], plan.required[o]);
  if (Status status = (*work)->Wait(limit); !status.ok()) {
    comm->Abort(status);
    work->reset();  // ends the operation, before its buffers
    return status;
  }
  for (const auto& [rank, m] : receives) {
    for (size_t p = 0; p < m.boxes.size(); ++p) {
      for (size_t o = 0; o < outputs.size(); ++o)
        CopyCommon(ViewOf(m, p, plan.dtype), *m.boxes[p], outputs[o], plan.required[o]);
    }
  }
  ++totals->exchanges;
  totals->messages_sent += static_cast<int64_t>(sends.size());
  totals->bytes_sent += static_cast<int64_t>(sent);
  totals->bytes_received += static_cast<int64_t>(received);
  totals->nanos += MonotonicNanos() - begin;
  return OkStatus();
}

}  // namespace msrt

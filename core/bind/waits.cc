#include "core/bind/waits.h"

#include <algorithm>
#include <map>

namespace msrt {
namespace {

// Memory that a step reads or writes.
struct Access {
  Location place;
  size_t bytes;
  uint16_t memory;
  bool writes;
};

bool Overlap(const Access& a, const Access& b) {
  const Location &x = a.place, &y = b.place;
  if (a.memory != b.memory || x.kind != y.kind || x.index != y.index) return false;
  // The values of a slot before and in the run may share memory.
  if (x.kind != Location::kArena && x.kind != Location::kEarlier) return true;
  return x.offset < y.offset + b.bytes && y.offset < x.offset + a.bytes;
}

// The bytes from the first to the last element.
size_t ExtentOf(const TensorView& v) {
  if (v.strides == nullptr) return BytesIn(v.layout, v.dtype, v.dims);
  int64_t last = BlockOf(v.layout);
  for (int d = 0; d < v.dims.rank(); ++d) last += (v.dims[d] - 1) * v.strides[d];
  return BytesOf(v.dtype, last);
}

class WaitPlanner {
 public:
  WaitPlanner(const Program& program, Binding* binding)
      : program_(program),
        out_(*binding),
        queues_(program.queue_count()),
        known_(queues_, std::vector<size_t>(queues_)) {
    out_.event_counts.assign(queues_, 0);
    FindSharedMemories();
  }

  void Run() {
    for (size_t s = 0; s < out_.steps.size(); ++s) {
      FindAccesses(s);
      AddWaits(s);
      for (const Access& a : accesses_) Remember(s, a);
    }
    AddEndWaits();
    FindCapturedQueue();
  }

 private:
  struct Pending {
    size_t step;
    QueueId queue;
    Access access;
  };

  const BoundStep& step(size_t s) const { return out_.steps[s]; }

  void FindSharedMemories() {
    shared_.assign(queues_, false);
    shared_[0] = true;
    for (const BoundStep& bound : out_.steps) {
      for (const Location& place : bound.locations) {
        if (place.device == 0 || place.device == bound.queue) continue;
        shared_[place.device] = true;
        out_.joins_queues = true;
      }
    }
  }

  // Finds the accesses that can conflict with those of other queues. Constants and inputs are never
  // written within a binding, so reading them needs no wait, except at its end.
  void FindAccesses(size_t s) {
    accesses_.clear();
    BoundStep& bound = out_.steps[s];
    for (size_t i = 0; i < bound.views.size(); ++i) {
      const Location& place = bound.locations[i];
      if (place.kind == Location::kNowhere || place.kind == Location::kConstant) continue;
      const bool writes = i >= bound.input_count;
      if (shared_[place.device])
        accesses_.push_back({place, ExtentOf(bound.views[i]), place.device, writes});
    }
    // The session keeps the new value of a slot where reads after it find it.
    if (bound.kind == StepKind::kStateWrite && !bound.views.empty())
      accesses_.push_back({{Location::kState, 0, bound.slot, 1, nullptr}, 0, 0, true});
    if (bound.kind == StepKind::kCopyToDevice) Stage(&bound);
  }

  // A small source is copied when the copy is enqueued, unless another queue still writes it.
  void Stage(BoundStep* bound) {
    const auto source = std::find_if(accesses_.begin(), accesses_.end(),
                                     [](const Access& a) { return a.memory == 0; });
    if (source == accesses_.end() || source->bytes > kMaxStagedBytes) return;
    const Access read = *source;
    if (std::any_of(pending_.begin(), pending_.end(), [&](const Pending& p) {
          return p.access.writes && p.step >= known_[kHostQueue][p.queue] &&
                 Overlap(p.access, read);
        }))
      return;
    bound->staged = true;
    accesses_.erase(source);
  }

  // The host is done with a step at once.
  void Remember(size_t s, const Access& a) {
    const QueueId queue = step(s).queue;
    if (queue == kHostQueue) return;
    pending_.push_back({s, queue, a});
  }

  bool Conflicts(const Pending& p, const Access& a) const {
    return (a.writes || p.access.writes) && Overlap(p.access, a);
  }

  void AddWaits(size_t s) {
    const QueueId queue = step(s).queue;
    latest_.assign(queues_, 0);
    for (const Pending& p : pending_) {
      if (p.queue == queue || p.step < known_[queue][p.queue] || p.step < latest_[p.queue])
        continue;
      if (std::any_of(accesses_.begin(), accesses_.end(),
                      [&](const Access& a) { return Conflicts(p, a); }))
        latest_[p.queue] = p.step + 1;
    }
    for (QueueId q = 1; q < queues_; ++q) {
      if (latest_[q] == 0) continue;
      out_.steps[s].waits.push_back(EventAfter(latest_[q] - 1));
      Know(queue, q, latest_[q]);
    }
  }

  EventId EventAfter(size_t s) {
    BoundStep& awaited = out_.steps[s];
    if (awaited.event < 0) awaited.event = static_cast<int32_t>(out_.event_counts[awaited.queue]++);
    return {awaited.queue, static_cast<uint32_t>(awaited.event)};
  }

  // Steps of `queue` from now on begin after those of `awaited` before `end`. If the host waited,
  // this holds for all that it enqueues.
  void Know(QueueId queue, QueueId awaited, size_t end) {
    for (QueueId q = 0; q < queues_; ++q) {
      if (q == queue || queue == kHostQueue) known_[q][awaited] = std::max(known_[q][awaited], end);
    }
    std::erase_if(pending_, [&](const Pending& p) {
      for (QueueId q = 0; q < queues_; ++q) {
        if (q != p.queue && known_[q][p.queue] <= p.step) return false;
      }
      return true;
    });
  }

  void AddEndWaits() {
    std::vector<size_t> end(queues_);
    std::map<std::pair<QueueId, uint32_t>, size_t> inputs;  // by queue and input
    for (const Pending& p : pending_) {
      if (p.access.memory != 0 || p.step < known_[kHostQueue][p.queue]) continue;
      const Location& place = p.access.place;
      if (place.kind == Location::kInput) inputs[{p.queue, place.index}] = p.step + 1;
      else end[p.queue] = p.step + 1;
    }
    for (QueueId q = 1; q < queues_; ++q) {
      if (end[q] != 0) out_.end_waits.push_back(EventAfter(end[q] - 1));
    }
    for (const auto& [queue_and_input, step] : inputs) {
      if (step > end[queue_and_input.first])
        out_.input_waits.push_back({EventAfter(step - 1), queue_and_input.second});
    }
  }

  // The slot's memory may be made when the step begins, so its address may change; and copies of
  // slots to the device must not be moved across the step.
  static bool UpdatesState(const BoundStep& bound) {
    return bound.kind == StepKind::kStateWrite ||
           (!bound.is_kept && std::any_of(bound.locations.begin() + bound.input_count,
                                          bound.locations.end(), IsOfSlot));
  }

  // Copies of slots that the device keeps run before the recorded steps.
  void FindCapturedQueue() {
    QueueId queue = kHostQueue;
    if (out_.joins_queues) return;
    bool any = false;
    for (const BoundStep& bound : out_.steps) {
      if (UpdatesState(bound)) return;
      if (bound.queue == kHostQueue) continue;
      const bool fits = (queue == kHostQueue || queue == bound.queue) && bound.waits.empty();
      const bool records = bound.event < 0 && bound.kind != StepKind::kCopyToDevice &&
                           bound.kind != StepKind::kCopyToHost;
      if (!fits || !(records || bound.is_kept)) return;
      queue = bound.queue;
      any = any || !bound.is_kept;
    }
    if (!any) return;
    if (IsOnDevice(queue) && program_.devices[queue]->captures()) out_.captured_queue = queue;
  }

  const Program& program_;
  Binding& out_;
  const size_t queues_;
  std::vector<bool> shared_;  // by memory: several queues may touch it
  // By queue, then by awaited queue: all its steps before this one are done before what the first
  // queue does next.
  std::vector<std::vector<size_t>> known_;
  std::vector<Pending> pending_;
  std::vector<Access> accesses_;  // of the step in progress
  std::vector<size_t> latest_;    // by queue: 1 + the last step to wait for
};

}  // namespace

void AddWaits(const Program& program, Binding* binding) { WaitPlanner(program, binding).Run(); }

}  // namespace msrt

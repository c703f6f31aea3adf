#include "core/bind/waits.h"

#include <algorithm>

namespace msrt {
namespace {

// Host memory that a step reads or writes.
struct Access {
  Location place;
  size_t bytes;
  bool writes;
};

struct PendingCopy {
  size_t step;
  uint16_t device;
  Access access;
};

bool Overlap(const Access& a, const Access& b) {
  const Location &x = a.place, &y = b.place;
  if (x.kind != y.kind || x.index != y.index) return false;
  if (x.kind != Location::kArena && x.kind != Location::kEarlier)
    return x.kind != Location::kState || x.offset == y.offset;
  return x.offset < y.offset + b.bytes && y.offset < x.offset + a.bytes;
}

// The bytes from the first to the last element.
size_t ExtentOf(const TensorView& v) {
  if (v.strides == nullptr) return BytesIn(v.layout, v.dtype, v.dims);
  int64_t last = v.layout == Layout::kBlocked8 ? 8 : 1;
  for (int d = 0; d < v.dims.rank(); ++d) last += (v.dims[d] - 1) * v.strides[d];
  return BytesOf(v.dtype, last);
}

Access AccessTo(const BoundStep& step, size_t i, bool writes) {
  const bool present = step.locations[i].kind != Location::kNowhere;
  return {step.locations[i], present ? ExtentOf(step.views[i]) : 0, writes};
}

// Finds the accesses that can conflict. Constants and inputs are never written, so reading them
// needs no wait.
void FindAccesses(const BoundStep& step, std::vector<Access>* out) {
  out->clear();
  const auto add = [&](size_t i, bool writes) {
    const Location::Kind kind = step.locations[i].kind;
    if (kind != Location::kNowhere && kind != Location::kConstant && kind != Location::kInput)
      out->push_back(AccessTo(step, i, writes));
  };
  switch (step.kind) {
    case StepKind::kCopyToDevice:
      return add(0, false);
    case StepKind::kCopyToHost:
      return add(1, true);
    case StepKind::kView:
      return;
    default:
      break;
  }
  if (step.device != 0) return;  // a device's kernel touches its own memory only
  for (size_t i = 0; i < step.views.size(); ++i) add(i, i >= step.input_count);
  // The session keeps the new value of a slot where reads after it find it.
  if (step.kind == StepKind::kStateWrite)
    out->push_back({{Location::kState, 0, step.slot, 1, nullptr}, 0, true});
}

}  // namespace

void AddWaits(size_t device_count, Binding* binding) {
  binding->event_counts.assign(device_count, 0);
  std::vector<PendingCopy> pending;
  std::vector<Access> accesses;
  // By device: 1 + the last copy that the step must wait for.
  std::vector<size_t> latest(device_count);
  for (size_t s = 0; s < binding->steps.size(); ++s) {
    BoundStep& step = binding->steps[s];
    FindAccesses(step, &accesses);
    std::fill(latest.begin(), latest.end(), 0);
    for (const PendingCopy& p : pending) {
      if (p.device == step.device) continue;
      const bool conflict = std::any_of(accesses.begin(), accesses.end(), [&](const Access& a) {
        return (a.writes || p.access.writes) && Overlap(a, p.access);
      });
      if (conflict) latest[p.device] = std::max(latest[p.device], p.step + 1);
    }
    for (uint16_t device = 1; device < device_count; ++device) {
      if (latest[device] == 0) continue;
      BoundStep& copy = binding->steps[latest[device] - 1];
      if (copy.event < 0) copy.event = static_cast<int32_t>(binding->event_counts[device]++);
      step.waits.push_back({device, static_cast<uint32_t>(copy.event)});
      std::erase_if(pending, [&](const PendingCopy& p) {
        return p.device == device && p.step < latest[device];
      });
    }
    const bool copies = step.kind == StepKind::kCopyToDevice || step.kind == StepKind::kCopyToHost;
    if (copies && !accesses.empty()) pending.push_back({s, step.device, accesses[0]});
  }
}

}  // namespace msrt

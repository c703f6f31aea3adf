#include "core/run/profile.h"

namespace msrt {

std::vector<int64_t> SelfNanos(const RunProfile& profile) {
  const std::vector<StepTime>& steps = profile.steps;
  std::vector<int64_t> self;
  std::vector<size_t> open;  // steps that contain the next one
  self.reserve(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    while (!open.empty() && steps[open.back()].end_nanos <= steps[i].begin_nanos) open.pop_back();
    self.push_back(steps[i].nanos());
    if (!open.empty()) self[open.back()] -= steps[i].nanos();
    if (steps[i].binding == nullptr) open.push_back(i);
  }
  return self;
}

const TensorView* MainTensor(const BoundStep& step) {
  const size_t i = step.views.size() > step.input_count ? step.input_count : 0;
  return i < step.views.size() && step.views[i].dtype != DType::kNone ? &step.views[i] : nullptr;
}

double MovedBytes(const BoundStep& step) {
  double bytes = 0;
  for (const TensorView& v : step.views) {
    if (v.dtype != DType::kNone) bytes += static_cast<double>(BytesIn(v.layout, v.dtype, v.dims));
  }
  return bytes;
}

}  // namespace msrt

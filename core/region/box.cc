#include "core/region/box.h"

#include "core/base/checked_math.h"

namespace msrt {
namespace {

Interval Clip(Interval i, int64_t extent) {
  const Interval c = Intersect(i, {0, extent});
  return c.empty() ? Interval{0, 0} : c;
}

}  // namespace

Box Intersect(const Box& a, const Box& b) {
  MSRT_CHECK(a.rank() == b.rank());
  Box r = a;
  for (int i = 0; i < a.rank(); ++i) r[i] = Intersect(a[i], b[i]);
  return r;
}

Box Hull(const Box& a, const Box& b) {
  MSRT_CHECK(a.rank() == b.rank());
  if (a.empty()) return b;
  if (b.empty()) return a;
  Box r = a;
  for (int i = 0; i < a.rank(); ++i) r[i] = Hull(a[i], b[i]);
  return r;
}

bool Contains(const Box& outer, const Box& inner) {
  MSRT_CHECK(outer.rank() == inner.rank());
  if (inner.empty()) return true;
  for (int i = 0; i < outer.rank(); ++i) {
    if (!outer[i].Contains(inner[i])) return false;
  }
  return true;
}

Interval WindowNeeds(Interval out, int64_t stride, int64_t dilation, int64_t kernel, int64_t pad,
                     int64_t extent) {
  if (out.empty()) return {0, 0};
  return Clip(
      {stride * out.begin - pad, stride * (out.end - 1) + dilation * (kernel - 1) - pad + 1},
      extent);
}

Interval TransposedWindowNeeds(Interval out, int64_t stride, int64_t dilation, int64_t kernel,
                               int64_t pad, int64_t extent) {
  if (out.empty()) return {0, 0};
  return Clip({CeilDiv(out.begin + pad - dilation * (kernel - 1), stride),
               FloorDiv(out.end - 1 + pad, stride) + 1},
              extent);
}

Interval AffineNeeds(Interval out, int64_t offset, int64_t step, int64_t extent) {
  if (out.empty()) return {0, 0};
  const int64_t a = offset + step * out.begin, b = offset + step * (out.end - 1);
  return Clip({std::min(a, b), std::max(a, b) + 1}, extent);
}

Box BroadcastNeeds(const Box& out, const Dims& dims) {
  MSRT_CHECK(out.rank() >= dims.rank());
  Box needs;
  for (int i = 0; i < dims.rank(); ++i)
    needs.push_back(dims[i] == 1 ? Interval{0, 1} : out[out.rank() - dims.rank() + i]);
  return needs;
}

}  // namespace msrt

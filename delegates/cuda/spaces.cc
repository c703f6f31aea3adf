#include "delegates/cuda/spaces.h"

namespace msrt::cuda {

Division DivisionBy(int64_t divisor) {
  const auto d = static_cast<uint64_t>(divisor);
  uint32_t shift = 0;
  while ((uint64_t{1} << shift) < d) ++shift;
  const uint64_t multiplier = ((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d)) / d + 1;
  return {static_cast<uint32_t>(d), static_cast<uint32_t>(multiplier), shift};
}

Dims Merge(const Dims& dims, std::span<Dims* const> strides) {
  Dims merged;
  std::vector<Dims> out(strides.size());
  for (int i = 0; i < dims.rank(); ++i) {
    if (dims[i] == 1) continue;
    bool follows = !merged.empty();
    for (size_t s = 0; s < strides.size() && follows; ++s)
      follows = out[s].back() == (*strides[s])[i] * dims[i];
    if (follows) {
      merged[merged.rank() - 1] *= dims[i];
      for (size_t s = 0; s < strides.size(); ++s) out[s][out[s].rank() - 1] = (*strides[s])[i];
    } else {
      merged.push_back(dims[i]);
      for (size_t s = 0; s < strides.size(); ++s) out[s].push_back((*strides[s])[i]);
    }
  }
  for (size_t s = 0; s < strides.size(); ++s) *strides[s] = out[s];
  return merged;
}

Space SpaceOf(const Dims& dims) {
  Space space;
  space.rank = dims.rank();
  space.elements = static_cast<uint32_t>(dims.elements());
  for (int i = 0; i < dims.rank(); ++i) space.dims[i] = DivisionBy(dims[i]);
  return space;
}

Dims BroadcastStrides(const Dims& from, const Dims& to) {
  const Dims own = RowMajorStrides(from);
  Dims strides = Dims::Filled(to.rank(), 0);
  const int lead = to.rank() - from.rank();
  for (int i = 0; i < from.rank(); ++i) strides[lead + i] = from[i] == 1 ? 0 : own[i];
  return strides;
}

}  // namespace msrt::cuda

#include "delegates/cpu/geometry.h"

#include "delegates/cpu/loops.h"

namespace msrt::cpu {

std::span<const Layout> OfferedLayouts() {
  static const Layout kLayouts[] = {
      Layout::kPlain, Layout::kChannelsLast,
      LoopsHere().name == std::string_view("avx512") ? Layout::kBlocked16 : Layout::kBlocked8};
  return kLayouts;
}

bool Admits(const Type& type, Layout layout) {
  if (layout == Layout::kPlain) return true;
  if (type.rank() < 3 || type.rank() > 5) return false;
  return layout == Layout::kChannelsLast ||
         (IsKnown(type.dims[1]) && type.dims[1] > 0 && type.dims[1] % BlockOf(layout) == 0);
}

Dims InMemory(const Dims& dims, Layout layout) {
  if (layout == Layout::kPlain) return dims;
  const int64_t block = BlockOf(layout);
  const bool full = dims[1] % block == 0;
  Dims order{dims[0]};
  if (block > 1) order.push_back(full ? dims[1] / block : dims[1]);
  for (int i = 2; i < dims.rank(); ++i) order.push_back(dims[i]);
  order.push_back(block == 1 ? dims[1] : full ? block : 1);
  return order;
}

Dims Extended(Dims dims, int rank) {
  while (dims.rank() < rank) dims.insert(0, 1);
  return dims;
}

bool IsSameInPlain(const Dims& dims, int rank, Layout layout) {
  const Dims d = Extended(dims, rank);
  if (layout == Layout::kPlain || d.elements() == 1) return true;
  if (d.elements() == d[1]) return d[1] % BlockOf(layout) == 0;
  return d[1] == 1;
}

}  // namespace msrt::cpu

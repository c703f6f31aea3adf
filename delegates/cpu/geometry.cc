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

Dims StepsInMemory(const TensorView& t) {
  const Dims strides =
      t.strides != nullptr ? Dims({t.strides, t.dims.size()}) : DenseStrides(t.layout, t.dims);
  if (t.layout == Layout::kPlain) return strides;
  const bool blocked = BlockOf(t.layout) > 1;
  Dims steps{strides[0]};
  if (blocked) steps.push_back(strides[1]);
  for (int i = 2; i < t.dims.rank(); ++i) steps.push_back(strides[i]);
  steps.push_back(1);
  return steps;
}

Lines::Lines(const Dims& given, std::span<const Dims> given_steps) {
  steps.resize(given_steps.size());
  for (int i = 0; i < given.rank(); ++i) {
    if (given[i] == 1) continue;
    bool merged = !dims.empty();
    for (size_t t = 0; t < steps.size() && merged; ++t)
      merged = steps[t].back() == given_steps[t][i] * given[i];
    if (merged) dims[dims.rank() - 1] *= given[i];
    else dims.push_back(given[i]);
    for (size_t t = 0; t < steps.size(); ++t) {
      if (merged) steps[t].erase(steps[t].rank() - 1);
      steps[t].push_back(given_steps[t][i]);
    }
  }
  // The last dim is the line if every tensor is contiguous or constant along it.
  column_steps.assign(steps.size(), 1);
  for (const Dims& s : steps) {
    if (dims.empty() || s.back() > 1) return;
  }
  columns = dims.back();
  dims.erase(dims.rank() - 1);
  for (size_t t = 0; t < steps.size(); ++t) {
    column_steps[t] = steps[t].back();
    steps[t].erase(steps[t].rank() - 1);
  }
}

int64_t Lines::Offset(size_t tensor, int64_t line) const {
  int64_t offset = 0;
  for (int i = dims.rank() - 1; i >= 0; --i) {
    offset += line % dims[i] * steps[tensor][i];
    line /= dims[i];
  }
  return offset;
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

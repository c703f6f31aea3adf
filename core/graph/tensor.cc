#include "core/graph/tensor.h"

#include <cstring>

#include "core/abi/msrt_plugin.h"
#include "core/base/checked_math.h"

namespace msrt {

static_assert(kLayoutCount == MSRT_LAYOUT_BLOCKED16 + 1);

size_t BytesIn(Layout layout, DType dtype, const Dims& dims) {
  const auto block = static_cast<size_t>(BlockOf(layout));
  if (block == 1) return BytesOf(dtype, dims.elements());
  Dims padded = dims;
  padded[1] = static_cast<int64_t>(AlignUp(static_cast<size_t>(dims[1]), block));
  return BytesOf(dtype, padded.elements());
}

Dims DenseStrides(Layout layout, const Dims& dims) {
  if (layout == Layout::kPlain) return RowMajorStrides(dims);
  const int64_t block = BlockOf(layout);
  const int rank = dims.rank();
  Dims strides = dims;
  int64_t step = layout == Layout::kChannelsLast ? std::max<int64_t>(dims[1], 1) : block;
  for (int d = rank - 1; d >= 2; --d) {
    strides[d] = step;
    step *= std::max<int64_t>(dims[d], 1);
  }
  strides[1] = layout == Layout::kChannelsLast ? 1 : step;
  if (block > 1) step *= CeilDiv(std::max<int64_t>(dims[1], 1), block);
  strides[0] = step;
  return strides;
}

ConstTensor ConstTensor::Copy(DType dtype, Dims dims, std::span<const std::byte> bytes) {
  // operator new[] aligns to 16 bytes; kernels read constants with vector instructions, so this
  // aligns like every other tensor.
  const size_t size = AlignUp(bytes.empty() ? 1 : bytes.size(), kTensorAlignment);
  std::shared_ptr<std::byte> owner(
      static_cast<std::byte*>(::operator new (size, std::align_val_t{kTensorAlignment})),
      [](std::byte* p) { ::operator delete (p, std::align_val_t{kTensorAlignment}); });
  if (!bytes.empty()) std::memcpy(owner.get(), bytes.data(), bytes.size());
  ConstTensor t;
  t.dtype = dtype;
  t.dims = dims;
  t.bytes = {owner.get(), bytes.size()};
  t.owner = std::move(owner);
  return t;
}

std::vector<int64_t> IntValues(DType dtype, const void* data, int64_t elements) {
  if (dtype == DType::kI64) {
    const auto* p = static_cast<const int64_t*>(data);
    return {p, p + elements};
  }
  MSRT_CHECK(dtype == DType::kI32);
  const auto* p = static_cast<const int32_t*>(data);
  return {p, p + elements};
}

}  // namespace msrt

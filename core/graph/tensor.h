// Tensors with data: immutable ones that belong to a graph (weights, folded values), and views that
// kernels work on.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "core/base/allocator.h"
#include "core/graph/type.h"

namespace msrt {

// The order of the elements of a tensor of rank 3 to 5 in memory; all other tensors are plain. Dims
// are always in logical order (batch, channels, space...); only the address of an element differs.
enum class Layout : uint8_t {
  kPlain = 0,         // row-major in the order of dims
  kChannelsLast = 1,  // batch, space..., channels
  // batch, channels/8, space..., 8 channels; channels padded with zeros to a multiple of 8.
  kBlocked8 = 2,
  kBlocked16 = 3,  // the same with blocks of 16 channels
};
// All that distinguishes one layout with blocks from another. By Layout.
struct LayoutInfo {
  std::string_view name;
  int64_t block;  // channels that are adjacent in memory, and of which there is a multiple
};
inline constexpr LayoutInfo kLayoutTable[] = {
    {"plain", 1}, {"channels-last", 1}, {"blocked-8", 8}, {"blocked-16", 16}};
inline constexpr uint32_t kLayoutCount = std::size(kLayoutTable);

inline constexpr bool IsLayout(int64_t number) { return number >= 0 && number < kLayoutCount; }
// Channels in a block; 1 for layouts without blocks.
inline constexpr int64_t BlockOf(Layout layout) {
  return kLayoutTable[static_cast<size_t>(layout)].block;
}
inline constexpr std::string_view LayoutName(Layout layout) {
  return IsLayout(static_cast<int64_t>(layout)) ? kLayoutTable[static_cast<size_t>(layout)].name
                                                : "invalid";
}
inline void AppendTo(std::string* out, Layout layout) { out->append(LayoutName(layout)); }

// Bytes of a tensor in a layout. Requires known dims.
size_t BytesIn(Layout layout, DType dtype, const Dims& dims);
// Elements between neighbours along each dim of a dense tensor; for dim 1 of a blocked one, between
// blocks of channels. Requires known dims.
Dims DenseStrides(Layout layout, const Dims& dims);

// Immutable data with an owner that keeps it alive: a mapped file, a block, a vector. Copying
// shares.
struct ConstTensor {
  DType dtype = DType::kNone;
  Dims dims;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;

  Type type() const { return Type::Tensor(dtype, dims); }
  template <typename T>
  std::span<const T> As() const {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  // A tensor that owns a copy of `bytes`. Requires bytes.size() == BytesOf(dtype, dims.elements()).
  static ConstTensor Copy(DType dtype, Dims dims, std::span<const std::byte> bytes);
  template <typename T>
  static ConstTensor Of(DType dtype, Dims dims, std::span<const T> values) {
    return Copy(dtype, dims, std::as_bytes(values));
  }
  static ConstTensor Int64s(std::span<const int64_t> values) {  // rank 1
    return Of<int64_t>(DType::kI64, {static_cast<int64_t>(values.size())}, values);
  }
  static ConstTensor Floats(Dims dims, std::span<const float> values) {
    return Of<float>(DType::kF32, dims, values);
  }
};

// The elements of an i32 or i64 tensor as int64. Requires one of those types.
std::vector<int64_t> IntValues(DType dtype, const void* data, int64_t elements);
inline std::vector<int64_t> IntValues(const ConstTensor& t) {
  return IntValues(t.dtype, t.bytes.data(), t.dims.elements());
}

// A tensor that a kernel reads or writes. Does not own its data, which is null only for an omitted
// optional input.
struct TensorView {
  DType dtype = DType::kNone;
  Dims dims;
  Layout layout = Layout::kPlain;
  void* data = nullptr;
  // Elements between neighbours along each dim, if the tensor is a part of a larger one in memory;
  // null: dense. Only kernels whose candidates accept strides get them. See msrt_strides.
  const int64_t* strides = nullptr;

  bool present() const { return data != nullptr; }
  int64_t elements() const { return dims.elements(); }
  template <typename T>
  T* As() const {
    return static_cast<T*>(data);
  }
};

}  // namespace msrt

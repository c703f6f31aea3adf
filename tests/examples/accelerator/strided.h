// A tensor of a piece that is a part of a larger one in device memory: kernels compute on dense
// copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/abi/msrt_plugin.h"
#include "delegates/sdk/graph_image.h"

namespace accelerator {

class StridedTensor {
 public:
  StridedTensor() = default;
  // `strides` may be NULL or all 0: dense.
  StridedTensor(const msrt_shape& shape, const msrt_strides* strides) {
    if (shape.dtype == 0) return;
    const msrt::Type type = msrt::sdk::TypeOf(shape);
    dense_bytes_ = extent_bytes_ = type.bytes();
    if (strides == nullptr) return;
    for (int32_t d = 0; d < shape.rank; ++d) strided_ = strided_ || strides->dims[d] != 0;
    if (!strided_) return;
    width_ = msrt::BytesOf(type.dtype, 1);
    int64_t last = 0;
    for (int32_t d = 0; d < shape.rank; ++d) {
      dims_.push_back(shape.dims[d]);
      strides_.push_back(strides->dims[d]);
      last += (shape.dims[d] - 1) * strides->dims[d];
    }
    if (dense_bytes_ > 0) extent_bytes_ = static_cast<size_t>(last + 1) * width_;
  }

  bool is_strided() const { return strided_; }
  size_t dense_bytes() const { return dense_bytes_; }
  size_t extent_bytes() const { return extent_bytes_; }  // from the first to the last element

  void Gather(const std::byte* from, std::byte* to) const {
    ForEach([&](size_t dense, size_t strided) { std::memcpy(to + dense, from + strided, width_); });
  }
  void Scatter(const std::byte* from, std::byte* to) const {
    ForEach([&](size_t dense, size_t strided) { std::memcpy(to + strided, from + dense, width_); });
  }

 private:
  template <typename F>
  void ForEach(const F& copy) const {
    for (size_t i = 0; i < dense_bytes_ / width_; ++i) {
      int64_t at = 0;
      auto rest = static_cast<int64_t>(i);
      for (size_t d = dims_.size(); d-- > 0;) {
        at += rest % dims_[d] * strides_[d];
        rest /= dims_[d];
      }
      copy(i * width_, static_cast<size_t>(at) * width_);
    }
  }

  bool strided_ = false;
  size_t dense_bytes_ = 0, extent_bytes_ = 0, width_ = 1;
  std::vector<int64_t> dims_, strides_;
};

}  // namespace accelerator

#include "tools/msconvert/quantize.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "core/base/checked_math.h"
#include "core/base/half.h"
#include "core/graph/constants.h"

namespace msrt {
namespace {

constexpr float kLargestHalf = 65504;

// Returns the largest magnitude; not finite if any element is not.
float LargestOf(std::span<const float> values) {
  float largest = 0;
  bool finite = true;
  for (float v : values) {
    const float magnitude = std::abs(v);
    finite &= magnitude <= FLT_MAX;
    largest = std::max(largest, magnitude);
  }
  return finite ? largest : INFINITY;
}

double Relative(float error, float largest) {
  return largest == 0 ? 0 : static_cast<double>(error) / static_cast<double>(largest);
}

template <typename Small>
Result<SmallTensor> Rounded(const ConstTensor& tensor, DType dtype, float largest) {
  const std::span<const float> values = tensor.As<float>();
  MSRT_ASSIGN_OR_RETURN(const NewConstant made, MakeConstant(dtype, tensor.dims));
  auto* small = reinterpret_cast<Small*>(made.bytes.data());
  float error = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    small[i] = Small(values[i]);
    error = std::max(error, std::abs(static_cast<float>(small[i]) - values[i]));
  }
  return SmallTensor{made.tensor, std::nullopt, Relative(error, largest)};
}

// Maps the elements of a tensor to groups that share a scale.
class Groups {
 public:
  Groups(const Dims& dims, const Grouping& g)
      : outer_(dims.product(0, g.axis)),
        extent_(dims[g.axis]),
        inner_(dims.product(g.axis + 1, dims.rank())),
        block_(g.block) {
    if (block_ == 0) {
      scale_dims_ = {extent_};
      return;
    }
    scale_dims_ = dims;
    scale_dims_[g.axis] = CeilDiv(extent_, block_);
  }
  const Dims& scale_dims() const { return scale_dims_; }

  // Calls f(first element, count, first group, step) for runs of neighbours: all of one group
  // (step 0), or each of the next group (step 1).
  template <typename F>
  void ForEachRun(F f) const {
    for (int64_t o = 0; o < outer_; ++o) {
      const int64_t line = o * extent_ * inner_;
      if (inner_ == 1 && block_ == 0) {
        f(line, extent_, int64_t{0}, 1);
      } else if (inner_ == 1) {
        for (int64_t a = 0; a < extent_; a += block_)
          f(line + a, std::min(block_, extent_ - a), o * CeilDiv(extent_, block_) + a / block_, 0);
      } else {
        for (int64_t a = 0; a < extent_; ++a) {
          if (block_ == 0) f(line + a * inner_, inner_, a, 0);
          else
            f(line + a * inner_, inner_, (o * CeilDiv(extent_, block_) + a / block_) * inner_, 1);
        }
      }
    }
  }

 private:
  int64_t outer_, extent_, inner_, block_;
  Dims scale_dims_;
};

// Finds the least scales for which every element fits: the integers reach one step further below
// zero than above.
void FindScales(const float* values, const Groups& groups, int bits, std::span<float> scales) {
  const float max_integer = static_cast<float>((1 << (bits - 1)) - 1);
  std::fill(scales.begin(), scales.end(), FLT_MIN);
  groups.ForEachRun([&](int64_t first, int64_t count, int64_t group, int step) {
    const float* v = values + first;
    float* s = scales.data() + group;
    if (step == 1) {
      for (int64_t i = 0; i < count; ++i)
        s[i] = std::max(s[i], std::max(v[i] / max_integer, -v[i] / (max_integer + 1)));
      return;
    }
    float low = 0, high = 0;
    for (int64_t i = 0; i < count; ++i) {
      low = std::min(low, v[i]);
      high = std::max(high, v[i]);
    }
    *s = std::max(*s, std::max(high / max_integer, -low / (max_integer + 1)));
  });
}

// Calls store(element, integer) for every element. Returns the largest error.
template <typename Store>
float Quantize(const float* values, const Groups& groups, int bits, std::span<const float> scales,
               Store store) {
  const int max_integer = (1 << (bits - 1)) - 1;
  float error = 0;
  const auto one = [&](int64_t at, float scale) {
    const auto level = std::clamp(static_cast<int>(std::lrintf(values[at] / scale)),
                                  -max_integer - 1, max_integer);
    store(at, level);
    error = std::max(error, std::abs(static_cast<float>(level) * scale - values[at]));
  };
  groups.ForEachRun([&](int64_t first, int64_t count, int64_t group, int step) {
    const float* s = scales.data() + group;
    if (step == 0) {
      for (int64_t i = 0; i < count; ++i) one(first + i, *s);
    } else {
      for (int64_t i = 0; i < count; ++i) one(first + i, s[i]);
    }
  });
  return error;
}

Result<SmallTensor> Quantized(const ConstTensor& tensor, DType dtype, const Grouping& grouping,
                              float largest) {
  const Groups groups(tensor.dims, grouping);
  const float* values = tensor.As<float>().data();
  const int bits = BitsOf(dtype);
  MSRT_ASSIGN_OR_RETURN(const NewConstant scale, MakeConstant(DType::kF32, groups.scale_dims()));
  const std::span<float> scales(reinterpret_cast<float*>(scale.bytes.data()),
                                scale.bytes.size() / sizeof(float));
  FindScales(values, groups, bits, scales);
  MSRT_ASSIGN_OR_RETURN(const NewConstant made, MakeConstant(dtype, tensor.dims));
  float error = 0;
  if (bits == 8) {
    auto* out = reinterpret_cast<int8_t*>(made.bytes.data());
    error = Quantize(values, groups, bits, scales,
                     [=](int64_t at, int level) { out[at] = static_cast<int8_t>(level); });
  } else {
    // Two elements per byte, the first in the low half.
    auto* out = reinterpret_cast<uint8_t*>(made.bytes.data());
    std::fill(made.bytes.begin(), made.bytes.end(), std::byte{0});
    error = Quantize(values, groups, bits, scales, [=](int64_t at, int level) {
      out[at / 2] |= static_cast<uint8_t>((level & 15) << (at % 2 * 4));
    });
  }
  return SmallTensor{made.tensor, scale.tensor, Relative(error, largest)};
}

}  // namespace

Result<SmallTensor> StoreSmall(const ConstTensor& tensor, DType dtype, const Grouping& grouping) {
  MSRT_CHECK(tensor.dtype == DType::kF32);
  const float largest = LargestOf(tensor.As<float>());
  if (!std::isfinite(largest)) return Unsupported("it has elements that are not finite");
  switch (dtype) {
    case DType::kF16:
      if (largest > kLargestHalf)
        return Unsupported("it has elements beyond ", kLargestHalf, ", the largest of f16");
      return Rounded<Half>(tensor, dtype, largest);
    case DType::kBF16:
      return Rounded<BFloat16>(tensor, dtype, largest);
    case DType::kI8:
    case DType::kI4:
      return Quantized(tensor, dtype, grouping, largest);
    default:
      return InvalidArgument("weights are not stored as ", dtype);
  }
}

}  // namespace msrt

// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear. Operations whose precision ONNX
// defines (the division of a quantization) are rounded to it; everything else is computed in double
// and rounded once.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/half.h"
#include "core/base/small_float.h"
#include "delegates/reference/activation.h"
#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

constexpr size_t kX = 0, kScale = 1, kZeroPoint = 2;

// Maps an element of x to its element of the scale (and of the zero point).
class ScaleIndex {
 public:
  ScaleIndex(const OpView& op, const Dims& x, const Dims& scale) {
    const bool blocked = op.Int("block_size") > 0 && scale.rank() == x.rank() && x.rank() > 0;
    if (!blocked && scale.elements() == 1) return;
    const int64_t given = op.Int("axis");
    const int axis = x.rank() == 1 ? 0 : static_cast<int>(given < 0 ? given + x.rank() : given);
    inner_ = x.product(axis + 1, x.rank());
    extent_ = x[axis];
    if (!blocked) return;
    block_ = op.Int("block_size");
    offset_ = op.Int("block_offset");
    blocks_ = scale[axis];
  }
  // Calls f(first, count, index, step) for runs of the elements [first, first + count): those of a
  // run have the same scale (step 0) or each the next one (step 1), from `index` on.
  template <typename F>
  void ForEachRun(int64_t first, int64_t count, F f) const {
    const int64_t end = first + count;
    while (first < end) {
      int64_t length = end - first;
      const int64_t position = extent_ == 0 ? 0 : first / inner_ % extent_;
      if (inner_ > 1) length = std::min(length, inner_ - first % inner_);
      else if (extent_ != 0) length = std::min(length, extent_ - position);
      if (inner_ == 1 && block_ != 0)
        length = std::min(length, block_ - (position + offset_) % block_);
      f(first, length, IndexOf(first), extent_ != 0 && (inner_ == 1) == (block_ == 0) ? 1 : 0);
      first += length;
    }
  }

 private:
  int64_t IndexOf(int64_t element) const {
    if (extent_ == 0) return 0;
    const int64_t outer = element / inner_, position = outer % extent_;
    if (block_ == 0) return position;
    return (outer / extent_ * blocks_ + (position + offset_) / block_) * inner_ + element % inner_;
  }

  int64_t inner_ = 1, extent_ = 0;               // of x along the axis; extent 0: one scale for all
  int64_t block_ = 0, offset_ = 0, blocks_ = 0;  // block 0: one scale for each index of the axis
};

// Returns the zero point for each element of the scale.
std::vector<double> ZeroPoints(const KernelArgs& args, size_t count) {
  return args.has_input(kZeroPoint) ? Doubles(args.inputs[kZeroPoint])
                                    : std::vector<double>(count, 0.0);
}

double RoundedTo(DType precision, double value) {
  switch (precision) {
    case DType::kF32:
      return static_cast<float>(value);
    case DType::kF16:
      return Half(RoundToOdd(value));
    case DType::kBF16:
      return BFloat16(RoundToOdd(value));
    default:
      return value;
  }
}

// Calls f(value of x, index of its scale) for every element and stores what it returns.
template <typename F>
Status MapWithScale(const KernelArgs& args, bool saturate, F f) {
  const TensorView &x = args.inputs[kX], &y = args.outputs[0];
  const ScaleIndex scale_of(args.op, x.dims, args.inputs[kScale].dims);
  return ForEachBlock(args.parallel, x.elements(), [&](int64_t first, int64_t count) {
    double values[kBlockElements];
    LoadElements(x.dtype, x.data, first, 1, count, values);
    scale_of.ForEachRun(first, count, [&](int64_t run, int64_t length, int64_t index, int step) {
      double* v = values + (run - first);
      // Two loops, so that the compiler sees that the scale is the same for all.
      if (step == 0) {
        for (int64_t i = 0; i < length; ++i) v[i] = f(v[i], static_cast<size_t>(index));
      } else {
        for (int64_t i = 0; i < length; ++i) v[i] = f(v[i], static_cast<size_t>(index + i));
      }
    });
    StoreElements(y.dtype, y.data, first, count, values, saturate);
  });
}

Status Quantize(const KernelArgs& args) {
  const DType given = args.op.Dtype("precision"),
              precision = given == DType::kNone ? args.inputs[kScale].dtype : given;
  std::vector<double> scale = Doubles(args.inputs[kScale]);
  for (double& s : scale) s = RoundedTo(precision, s);
  const std::vector<double> zero = ZeroPoints(args, scale.size());
  // Integers are centred on the zero point; small floats are rounded when they are stored.
  const bool to_integer = WideTypeOf(args.outputs[0].dtype) != WideType::kDouble;
  return MapWithScale(args, args.op.Int("saturate") != 0, [&](double x, size_t i) {
    const double quotient = RoundedTo(precision, RoundedTo(precision, x) / scale[i]);
    return (to_integer ? std::nearbyint(quotient) : quotient) + zero[i];
  });
}

Status Dequantize(const KernelArgs& args) {
  const std::vector<double> scales = Doubles(args.inputs[kScale]),
                            zeros = ZeroPoints(args, scales.size());
  const double *scale = scales.data(), *zero = zeros.data();
  return MapWithScale(args, true, [=](double x, size_t i) { return (x - zero[i]) * scale[i]; });
}

// Computes in single precision step by step, as ONNX defines the op by others. A tensor of zeros
// has the scale 1, which avoids a division of zero by zero.
Status DynamicQuantize(const KernelArgs& args) {
  const float* x = args.inputs[kX].As<float>();
  const int64_t elements = args.inputs[kX].elements();
  float least = 0, greatest = 0;
  for (int64_t i = 0; i < elements; ++i) {
    least = std::min(least, x[i]);
    greatest = std::max(greatest, x[i]);
  }
  const float range = (greatest - least) / 255.0f;
  const float scale = range == 0 ? 1.0f : range;
  const float zero = std::nearbyint(std::clamp(0.0f - least / scale, 0.0f, 255.0f));
  uint8_t* y = args.outputs[0].As<uint8_t>();
  *args.outputs[1].As<float>() = scale;
  *args.outputs[2].As<uint8_t>() = SaturateTo<uint8_t>(zero);
  return ForEachBlock(args.parallel, elements, [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i)
      y[i] = SaturateTo<uint8_t>(std::nearbyint(x[i] / scale) + zero);
  });
}

Status QuantizedAdd(const KernelArgs& args) {
  const auto number = [&](size_t input) { return Doubles(args.inputs[input])[0]; };
  const double a_scale = number(1), a_zero = number(2), b_scale = number(4), b_zero = number(5),
               y_scale = number(6), y_zero = number(7);
  const Activation activation(args.op);
  const TensorView &a = args.inputs[0], &b = args.inputs[3], &y = args.outputs[0];
  return ForEachBlock(args.parallel, y.elements(), [&](int64_t first, int64_t count) {
    double left[kBlockElements], right[kBlockElements];
    LoadElements(a.dtype, a.data, first, 1, count, left);
    LoadElements(b.dtype, b.data, first, 1, count, right);
    for (int64_t i = 0; i < count; ++i) {
      const double sum = activation((left[i] - a_zero) * a_scale + (right[i] - b_zero) * b_scale);
      left[i] = std::nearbyint(sum / y_scale) + y_zero;
    }
    StoreElements(y.dtype, y.data, first, count, left);
  });
}

constexpr KernelDef kQuantizationKernels[] = {
    {"", "QuantizeLinear", Quantize},
    {"", "DequantizeLinear", Dequantize},
    {"", "DynamicQuantizeLinear", DynamicQuantize},
    {"msrt", "QuantizedAdd", QuantizedAdd},
};

}  // namespace

std::span<const KernelDef> QuantizationKernels() { return kQuantizationKernels; }

}  // namespace msrt::reference

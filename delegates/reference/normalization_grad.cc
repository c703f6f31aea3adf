// BatchNormTraining, ChannelSums and the gradients of normalizations. Statistics and sums are taken
// in double in ascending order; a result is rounded once.
#include <algorithm>
#include <cmath>
#include <vector>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

void StoreNumber(const TensorView& tensor, int64_t i, double value) {
  if (!tensor.present()) return;
  const Status status = DispatchFloat(tensor.dtype, [&]<typename T>() -> Status {
    tensor.As<T>()[i] = static_cast<T>(value);
    return OkStatus();
  });
  MSRT_CHECK(status.ok());
}

// The elements of channel c of [batch, channels, space...], in row-major order.
struct ChannelView {
  int64_t batch, channels, plane;
  explicit ChannelView(const Dims& x)
      : batch(x[0]), channels(x[1]), plane(x.product(2, x.rank())) {}
  double count() const { return static_cast<double>(batch * plane); }
  template <typename Visit>
  void ForEach(int64_t c, Visit visit) const {
    for (int64_t n = 0; n < batch; ++n) {
      const int64_t first = (n * channels + c) * plane;
      for (int64_t i = first; i < first + plane; ++i) visit(i);
    }
  }
};

const TensorView& OutputOrNone(const KernelArgs& args, size_t o) {
  static const TensorView kNone;
  return args.has_output(o) ? args.outputs[o] : kNone;
}

Status RunBatchNormTraining(const KernelArgs& args) {
  const ChannelView view(args.inputs[0].dims);
  const auto scale = Doubles(args.inputs[1]), bias = Doubles(args.inputs[2]);
  const double epsilon = args.op.Float("epsilon");
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const T* x = args.inputs[0].As<T>();
    T* y = args.outputs[0].As<T>();
    const auto channel = [&](int64_t c) {
      double sum = 0, squares = 0;
      view.ForEach(c, [&](int64_t i) { sum += static_cast<double>(x[i]); });
      const double mean = sum / view.count();
      view.ForEach(c, [&](int64_t i) {
        const double centred = static_cast<double>(x[i]) - mean;
        squares += centred * centred;
      });
      const double variance = squares / view.count(), deviation = std::sqrt(variance + epsilon);
      const auto at = static_cast<size_t>(c);
      view.ForEach(c, [&](int64_t i) {
        const double centred = static_cast<double>(x[i]) - mean;
        y[i] = static_cast<T>(centred / deviation * scale[at] + bias[at]);
      });
      StoreNumber(OutputOrNone(args, 1), c, mean);
      StoreNumber(OutputOrNone(args, 2), c, variance);
    };
    return ParallelRanges(args.parallel, view.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) channel(c);
    });
  });
}

Status RunChannelSums(const KernelArgs& args) {
  const ChannelView view(args.inputs[0].dims);
  const bool gradient = args.inputs.size() > 1 && args.inputs[1].present();
  const auto mean = gradient ? Doubles(args.inputs[2]) : std::vector<double>();
  double* const sums = args.outputs[0].As<double>();
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const T *x = args.inputs[0].As<T>(), *grad = gradient ? args.inputs[1].As<T>() : nullptr;
    for (int64_t c = 0; c < view.channels; ++c) {
      double sum = 0, products = 0;
      view.ForEach(c, [&](int64_t i) {
        const auto number = static_cast<double>(x[i]);
        const double factor = gradient ? static_cast<double>(grad[i]) : number;
        sum += factor;
        products += factor * (gradient ? number - mean[static_cast<size_t>(c)] : number);
      });
      sums[c] = sum;
      sums[view.channels + c] = products;
    }
    return OkStatus();
  });
}

// The formulas are in ops/normalization_grad.cc.
Status RunBatchNormTrainingGrad(const KernelArgs& args) {
  const ChannelView view(args.inputs[1].dims);
  const auto scale = Doubles(args.inputs[2]), mean = Doubles(args.inputs[3]),
             variance = Doubles(args.inputs[4]);
  const double epsilon = args.op.Float("epsilon");
  return DispatchFloat(args.inputs[1].dtype, [&]<typename T>() -> Status {
    const T *grad = args.inputs[0].As<T>(), *x = args.inputs[1].As<T>();
    T* out = args.outputs[0].As<T>();
    const auto channel = [&](int64_t c) {
      const auto at = static_cast<size_t>(c);
      const double inverse = 1 / std::sqrt(variance[at] + epsilon);
      const auto normalized = [&](int64_t i) {
        return (static_cast<double>(x[i]) - mean[at]) * inverse;
      };
      double sum = 0, products = 0;
      view.ForEach(c, [&](int64_t i) {
        sum += static_cast<double>(grad[i]);
        products += static_cast<double>(grad[i]) * normalized(i);
      });
      view.ForEach(c, [&](int64_t i) {
        const double rest = static_cast<double>(grad[i]) - sum / view.count() -
                            normalized(i) * products / view.count();
        out[i] = static_cast<T>(scale[at] * inverse * rest);
      });
      StoreNumber(OutputOrNone(args, 1), c, products);
      StoreNumber(OutputOrNone(args, 2), c, sum);
    };
    return ParallelRanges(args.parallel, view.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) channel(c);
    });
  });
}

Status RunLayerNormGrad(const KernelArgs& args) {
  const Dims& dims = args.inputs[1].dims;
  const int64_t given = args.op.Int("axis");
  const int axis = static_cast<int>(given < 0 ? given + dims.rank() : given);
  const int64_t rows = dims.product(0, axis), columns = dims.product(axis, dims.rank());
  const auto scale = Doubles(args.inputs[2]);
  const double epsilon = args.op.Float("epsilon"), count = static_cast<double>(columns);
  std::vector<double> scale_sums(static_cast<size_t>(columns)), sums(scale_sums.size());
  return DispatchFloat(args.inputs[1].dtype, [&]<typename T>() -> Status {
    for (int64_t row = 0; row < rows; ++row) {
      const T *grad = args.inputs[0].As<T>() + row * columns,
              *x = args.inputs[1].As<T>() + row * columns;
      T* out = args.outputs[0].As<T>() + row * columns;
      double total = 0, squares = 0;
      for (int64_t i = 0; i < columns; ++i) total += static_cast<double>(x[i]);
      const double mean = total / count;
      for (int64_t i = 0; i < columns; ++i) {
        const double centred = static_cast<double>(x[i]) - mean;
        squares += centred * centred;
      }
      const double inverse = 1 / std::sqrt(squares / count + epsilon);
      const auto normalized = [&](int64_t i) {
        return (static_cast<double>(x[i]) - mean) * inverse;
      };
      const auto weighted = [&](int64_t i) {
        return static_cast<double>(grad[i]) * scale[static_cast<size_t>(i)];
      };
      double sum = 0, products = 0;
      for (int64_t i = 0; i < columns; ++i) {
        sum += weighted(i);
        products += weighted(i) * normalized(i);
        scale_sums[static_cast<size_t>(i)] += static_cast<double>(grad[i]) * normalized(i);
        sums[static_cast<size_t>(i)] += static_cast<double>(grad[i]);
      }
      for (int64_t i = 0; i < columns; ++i) {
        out[i] = static_cast<T>(inverse *
                                (weighted(i) - sum / count - normalized(i) * products / count));
      }
    }
    for (int64_t i = 0; i < columns; ++i) {
      StoreNumber(OutputOrNone(args, 1), i, scale_sums[static_cast<size_t>(i)]);
      StoreNumber(OutputOrNone(args, 2), i, sums[static_cast<size_t>(i)]);
    }
    return OkStatus();
  });
}

constexpr KernelDef kNormalizationGradKernels[] = {
    {"msrt", "ChannelSums", RunChannelSums},
    {"msrt", "BatchNormTraining", RunBatchNormTraining},
    {"msrt", "BatchNormTrainingGrad", RunBatchNormTrainingGrad},
    {"msrt", "LayerNormGrad", RunLayerNormGrad},
};

}  // namespace

std::span<const KernelDef> NormalizationGradKernels() { return kNormalizationGradKernels; }

}  // namespace msrt::reference

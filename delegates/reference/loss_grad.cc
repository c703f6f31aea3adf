// SoftmaxCrossEntropyGrad in double, one sample at a time.
#include <cmath>
#include <limits>
#include <vector>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/lines.h"
#include "delegates/reference/number.h"

namespace msrt::reference {
namespace {

// Returns the label of each sample; -1 if the sample is ignored.
Result<std::vector<int64_t>> LabelsOf(const KernelArgs& args, int64_t class_count) {
  const TensorView& labels = args.inputs[2];
  std::vector<int64_t> classes = IntValues(labels.dtype, labels.data, labels.elements());
  const bool ignores = args.op.Has("ignore_index");
  const int64_t ignored = args.op.Int("ignore_index");
  for (size_t i = 0; i < classes.size(); ++i) {
    if (ignores && classes[i] == ignored) classes[i] = -1;
    else if (classes[i] < 0 || classes[i] >= class_count) {
      return InvalidArgument("element ", i, " of the labels is class ", classes[i],
                             ", must be in [0, ", class_count - 1, "]",
                             ignores ? " or ignore_index" : "");
    }
  }
  return classes;
}

// out = (softmax(x) - 1 at the label) * factor
template <typename T>
void SampleGrad(const T* x, T* out, int64_t count, int64_t step, int64_t label, double factor) {
  double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < count; ++i)
    maximum = GreaterOf(maximum, static_cast<double>(x[i * step]));
  for (int64_t i = 0; i < count; ++i) sum += std::exp(static_cast<double>(x[i * step]) - maximum);
  for (int64_t i = 0; i < count; ++i) {
    const double probability = std::exp(static_cast<double>(x[i * step]) - maximum) / sum;
    out[i * step] = FromWide<T>(factor * (i == label ? probability - 1 : probability));
  }
}

Status SoftmaxCrossEntropyGrad(const KernelArgs& args) {
  const TensorView &loss = args.inputs[0], &scores = args.inputs[1], &out = args.outputs[0];
  if (out.elements() == 0) return OkStatus();
  const Lines along(scores.dims, 1);
  MSRT_ASSIGN_OR_RETURN(const auto labels, LabelsOf(args, along.count));
  const std::string_view reduction = args.op.String("reduction");
  return DispatchFloat(scores.dtype, [&]<typename T>() -> Status {
    const T* class_weights = args.has_input(3) ? args.inputs[3].As<T>() : nullptr;
    const auto weight = [&](int64_t label) {
      return class_weights == nullptr ? 1.0 : static_cast<double>(class_weights[label]);
    };
    double divisor = 1;
    if (reduction == "mean") {
      divisor = 0;
      for (int64_t label : labels) divisor += label < 0 ? 0 : weight(label);
    }
    return ParallelRanges(args.parallel, along.lines(), 64, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t first = along.First(line), label = labels[static_cast<size_t>(line)];
        const T* x = scores.As<T>() + first;
        T* to = out.As<T>() + first;
        if (label < 0) {
          for (int64_t i = 0; i < along.count; ++i) to[i * along.inner] = FromWide<T>(0.0);
          continue;
        }
        const auto d = static_cast<double>(loss.As<T>()[reduction == "none" ? line : 0]);
        SampleGrad(x, to, along.count, along.inner, label, d * weight(label) / divisor);
      }
    });
  });
}

constexpr KernelDef kLossGradKernels[] = {
    {"msrt", "SoftmaxCrossEntropyGrad", SoftmaxCrossEntropyGrad}};

}  // namespace

std::span<const KernelDef> LossGradKernels() { return kLossGradKernels; }

}  // namespace msrt::reference

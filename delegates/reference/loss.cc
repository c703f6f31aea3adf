// Losses over classes: one loss per sample, then their sum or weighted mean in double, in the order
// of the samples.
#include <cmath>
#include <limits>
#include <vector>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/lines.h"
#include "delegates/reference/number.h"

namespace msrt::reference {
namespace {

// Returns the target class of each sample; -1 if the sample is ignored.
Result<std::vector<int64_t>> ClassesOf(const KernelArgs& args, int64_t class_count) {
  const TensorView& target = args.inputs[1];
  std::vector<int64_t> classes = IntValues(target.dtype, target.data, target.elements());
  const bool ignores = args.op.Has("ignore_index");
  const int64_t ignored = args.op.Int("ignore_index");
  for (size_t i = 0; i < classes.size(); ++i) {
    if (ignores && classes[i] == ignored) classes[i] = -1;
    else if (classes[i] < 0 || classes[i] >= class_count) {
      return InvalidArgument("element ", i, " of the target is class ", classes[i],
                             ", must be in [0, ", class_count - 1, "]",
                             ignores ? " or ignore_index" : "");
    }
  }
  return classes;
}

// Reduces -log_probability[i] * weight over the samples; `log_probability(i)` is that of the right
// class.
template <typename T, typename LogProbability>
Status ReduceLoss(const KernelArgs& args, const std::vector<int64_t>& classes,
                  LogProbability log_probability) {
  const T* weights = args.has_input(2) ? args.inputs[2].As<T>() : nullptr;
  const TensorView& out = args.outputs[0];
  const std::string_view reduction = args.op.String("reduction");
  double sum = 0, weight_sum = 0;
  for (size_t i = 0; i < classes.size(); ++i) {
    double loss = 0;
    if (classes[i] >= 0) {
      const double weight = weights == nullptr ? 1.0 : static_cast<double>(weights[classes[i]]);
      loss = -log_probability(static_cast<int64_t>(i)) * weight;
      weight_sum += weight;
    }
    if (reduction == "none") out.As<T>()[i] = FromWide<T>(loss);
    sum += loss;
  }
  if (reduction == "sum") *out.As<T>() = FromWide<T>(sum);
  if (reduction == "mean") *out.As<T>() = FromWide<T>(sum / weight_sum);
  return OkStatus();
}

Status NegativeLogLikelihood(const KernelArgs& args) {
  const TensorView& scores = args.inputs[0];
  const Lines along(scores.dims, 1);
  MSRT_ASSIGN_OR_RETURN(const auto classes, ClassesOf(args, along.count));
  return DispatchFloat(scores.dtype, [&]<typename T>() -> Status {
    return ReduceLoss<T>(args, classes, [&](int64_t i) {
      return static_cast<double>(
          scores.As<T>()[along.First(i) + classes[static_cast<size_t>(i)] * along.inner]);
    });
  });
}

// log(sum(exp(x))) of a line, without overflow.
template <typename T>
double LogOfSummedExp(const T* line, int64_t count, int64_t step) {
  double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < count; ++i)
    maximum = GreaterOf(maximum, static_cast<double>(line[i * step]));
  if (std::isinf(maximum)) return maximum;
  for (int64_t i = 0; i < count; ++i)
    sum += std::exp(static_cast<double>(line[i * step]) - maximum);
  return maximum + std::log(sum);
}

Status SoftmaxCrossEntropy(const KernelArgs& args) {
  const TensorView& scores = args.inputs[0];
  const Lines along(scores.dims, 1);
  MSRT_ASSIGN_OR_RETURN(const auto classes, ClassesOf(args, along.count));
  return DispatchFloat(scores.dtype, [&]<typename T>() -> Status {
    std::vector<double> log_sums(classes.size());
    MSRT_RETURN_IF_ERROR(
        ParallelRanges(args.parallel, along.lines(), 64, [&](int64_t begin, int64_t end) {
          for (int64_t line = begin; line < end; ++line) {
            const int64_t first = along.First(line);
            const double log_sum = LogOfSummedExp(scores.As<T>() + first, along.count, along.inner);
            log_sums[static_cast<size_t>(line)] = log_sum;
            if (!args.has_output(1)) continue;
            for (int64_t at = first; at < first + along.count * along.inner; at += along.inner) {
              args.outputs[1].As<T>()[at] =
                  FromWide<T>(static_cast<double>(scores.As<T>()[at]) - log_sum);
            }
          }
        }));
    return ReduceLoss<T>(args, classes, [&](int64_t i) {
      const double score =
          scores.As<T>()[along.First(i) + classes[static_cast<size_t>(i)] * along.inner];
      return score - log_sums[static_cast<size_t>(i)];
    });
  });
}

constexpr KernelDef kLossKernels[] = {
    {"", "NegativeLogLikelihoodLoss", NegativeLogLikelihood},
    {"", "SoftmaxCrossEntropyLoss", SoftmaxCrossEntropy},
};

}  // namespace

std::span<const KernelDef> LossKernels() { return kLossKernels; }

}  // namespace msrt::reference

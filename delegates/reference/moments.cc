// Moments and Normalize, in double; a result is rounded once.
#include <array>
#include <cmath>

#include "delegates/reference/broadcast.h"
#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

void Store(const TensorView& out, int64_t index, double value) {
  StoreElements(out.dtype, out.data, index, 1, &value);
}

// The elements of a slice are visited in row-major order, twice: for the mean, then for the squared
// deviations from it.
Status RunMoments(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &mean = args.outputs[0], &variance = args.outputs[1];
  const int rank = x.dims.rank();
  const Dims strides = RowMajorStrides(x.dims);
  std::array<bool, kMaxRank> reduced{};
  for (int64_t a : args.op.Ints("axes")) reduced[static_cast<size_t>(a < 0 ? a + rank : a)] = true;
  Dims inner, inner_strides, outer_strides = strides;
  for (int d = 0; d < rank; ++d) {
    if (!reduced[static_cast<size_t>(d)]) continue;
    inner.push_back(x.dims[d]);
    inner_strides.push_back(strides[d]);
    outer_strides[d] = 0;
  }
  const std::vector<double> values = Doubles(x);
  const int64_t count = inner.elements();
  return ParallelRanges(args.parallel, mean.elements(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = OffsetOf(i, mean.dims, outer_strides);
      const auto at = [&](int64_t j) {
        return values[static_cast<size_t>(first + OffsetOf(j, inner, inner_strides))];
      };
      double sum = 0, squares = 0;
      for (int64_t j = 0; j < count; ++j) sum += at(j);
      const double center = sum / static_cast<double>(count);
      for (int64_t j = 0; j < count; ++j) squares += (at(j) - center) * (at(j) - center);
      Store(mean, i, center);
      Store(variance, i, squares / static_cast<double>(count));
    }
  });
}

// An input that broadcasts to the output.
class Parameter {
 public:
  Parameter(const KernelArgs& args, size_t input) : dims_(args.outputs[0].dims) {
    if (!args.has_input(input)) return;
    values_ = Doubles(args.inputs[input]);
    strides_ = BroadcastStrides(args.inputs[input].dims, dims_);
  }
  double At(int64_t index, double absent) const {
    return values_.empty() ? absent
                           : values_[static_cast<size_t>(OffsetOf(index, dims_, strides_))];
  }

 private:
  Dims dims_, strides_;
  std::vector<double> values_;
};

Status RunNormalize(const KernelArgs& args) {
  const Parameter x(args, 0), mean(args, 1), variance(args, 2), scale(args, 3), bias(args, 4);
  const double epsilon = args.op.Float("epsilon");
  return ParallelRanges(
      args.parallel, args.outputs[0].elements(), 1024, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const double deviation = std::sqrt(variance.At(i, 0) + epsilon);
          Store(args.outputs[0], i,
                (x.At(i, 0) - mean.At(i, 0)) / deviation * scale.At(i, 1) + bias.At(i, 0));
        }
      });
}

constexpr KernelDef kKernels[] = {{"msrt", "Moments", RunMoments},
                                  {"msrt", "Normalize", RunNormalize}};

}  // namespace

std::span<const KernelDef> MomentsKernels() { return kKernels; }

}  // namespace msrt::reference

// msrt.ChannelSums: two sums of each channel, in double. Eight partial sums of every plane are
// added in order, then the planes of a channel in the order of the batch, so that neither threads
// nor pieces change a bit.
#include <algorithm>
#include <array>

#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

constexpr size_t kSumsX = 0, kSumsGrad = 1, kSumsMean = 2;
constexpr int64_t kSumLanes = 8;

std::string QueryChannelSums(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (op.has_input(i) && op.input(i).dtype != DType::kF32)
      return StrCat("elements of type ", op.input(i).dtype);
  }
  const auto elements = static_cast<double>(node.typical->input(kSumsX).elements());
  Candidate c = PlainCandidate(node, PassSeconds(node, elements, 0.3, node.bytes), "vectorised");
  c.arithmetic = StrCat(ArithmeticOfLoops(), " channel sums");
  candidates->push_back(std::move(c));
  return {};
}

struct TwoSums {
  double sum = 0, products = 0;
};

// The factor of each element is that of `grad`, or the element itself if `grad` is null.
template <bool kHasGrad>
TwoSums SumsOfPlane(const float* x, const float* grad, double center, int64_t count) {
  std::array<double, kSumLanes> sums{}, products{};
  const auto add = [&](int64_t i, size_t lane) {
    const auto number = static_cast<double>(x[i]);
    const double factor = kHasGrad ? static_cast<double>(grad[i]) : number;
    sums[lane] += factor;
    products[lane] += factor * (number - center);
  };
  int64_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes) {
    for (size_t lane = 0; lane < kSumLanes; ++lane) add(i + static_cast<int64_t>(lane), lane);
  }
  for (size_t lane = 0; i < count; ++i, ++lane) add(i, lane);
  TwoSums total;
  for (size_t lane = 0; lane < kSumLanes; ++lane) {
    total.sum += sums[lane];
    total.products += products[lane];
  }
  return total;
}

class BoundChannelSums final : public BoundKernel {
 public:
  explicit BoundChannelSums(const OpView& op)
      : samples_(op.input(kSumsX).dims[0]),
        channels_(op.input(kSumsX).dims[1]),
        plane_(op.input(kSumsX).dims.product(2, op.input(kSumsX).rank())),
        has_grad_(op.has_input(kSumsGrad)) {}

  Status Run(const RunArgs& args) override {
    const float* x = args.inputs[kSumsX].As<float>();
    const float* grad = has_grad_ ? args.inputs[kSumsGrad].As<float>() : nullptr;
    const float* mean = has_grad_ ? args.inputs[kSumsMean].As<float>() : nullptr;
    double* const y = args.outputs[0].As<double>();
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, samples_ * plane_));
    return ParallelRanges(args.parallel, channels_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        TwoSums total;
        for (int64_t n = 0; n < samples_; ++n) {
          const int64_t at = (n * channels_ + c) * plane_;
          const TwoSums of_plane =
              has_grad_ ? SumsOfPlane<true>(x + at, grad + at, static_cast<double>(mean[c]), plane_)
                        : SumsOfPlane<false>(x + at, nullptr, 0, plane_);
          total.sum += of_plane.sum;
          total.products += of_plane.products;
        }
        y[c] = total.sum;
        y[channels_ + c] = total.products;
      }
    });
  }

 private:
  const int64_t samples_, channels_, plane_;
  const bool has_grad_;
};

Result<std::unique_ptr<BoundKernel>> BindChannelSums(const OpView& op, const Candidate&) {
  return std::unique_ptr<BoundKernel>(std::make_unique<BoundChannelSums>(op));
}

constexpr Rule kChannelSumsRules[] = {{"msrt", "ChannelSums", QueryChannelSums, BindChannelSums}};

}  // namespace

std::span<const Rule> ChannelSumsRules() { return kChannelSumsRules; }

}  // namespace msrt::cpu

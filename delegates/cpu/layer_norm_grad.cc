// msrt.LayerNormGrad: each row is read from memory once. The sums over rows are of parts of so many
// rows, whatever the number of threads, and added in order.
#include <algorithm>
#include <cmath>
#include <vector>

#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

constexpr size_t kGrad = 0, kX = 1, kScale = 2;
constexpr int64_t kRowsOfPart = 32;

std::string QueryLayerNormGrad(const NodeInfo& node, std::vector<Candidate>* candidates) {
  if (node.op->input(kX).dtype != DType::kF32)
    return StrCat("elements of type ", node.op->input(kX).dtype);
  candidates->push_back(PlainCandidate(
      node,
      PassSeconds(node, static_cast<double>(node.typical->input(kX).elements()), 0.4, node.bytes),
      "vectorised"));
  return {};
}

class BoundLayerNormGrad final : public BoundKernel {
 public:
  explicit BoundLayerNormGrad(const OpView& op) : epsilon_(op.Float("epsilon")) {
    const Dims& x = op.input(kX).dims;
    const auto given = static_cast<int>(op.Int("axis"));
    const int axis = given < 0 ? given + x.rank() : given;
    rows_ = x.product(0, axis);
    columns_ = x.product(axis, x.rank());
  }

  Status Run(const RunArgs& args) override {
    const float *grad = args.inputs[kGrad].As<float>(), *x = args.inputs[kX].As<float>(),
                *scale = args.inputs[kScale].As<float>();
    float* y = args.outputs[0].As<float>();
    const int64_t parts = columns_ == 0 ? 0 : (rows_ + kRowsOfPart - 1) / kRowsOfPart;
    const auto width = static_cast<size_t>(columns_);
    std::vector<float> partial(static_cast<size_t>(parts) * width * 2);
    const Loops& loops = LoopsHere();
    MSRT_RETURN_IF_ERROR(ParallelRanges(args.parallel, parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        float* sums = partial.data() + static_cast<size_t>(p) * width * 2;
        for (int64_t r = p * kRowsOfPart; r < std::min(rows_, (p + 1) * kRowsOfPart); ++r) {
          const int64_t at = r * columns_;
          const auto [mean, variance] = loops.moments(x + at, columns_);
          loops.layer_gradient({grad + at, x + at, scale, static_cast<float>(mean),
                                static_cast<float>(1 / std::sqrt(variance + epsilon_)), columns_,
                                y + at, sums, sums + width});
        }
      }
    }));
    const auto total = [&](size_t output, size_t first) {
      if (output >= args.outputs.size() || !args.outputs[output].present()) return;
      std::vector<double> sums(width);
      for (int64_t p = 0; p < parts; ++p) {
        const float* part = partial.data() + static_cast<size_t>(p) * width * 2 + first;
        for (size_t c = 0; c < width; ++c) sums[c] += static_cast<double>(part[c]);
      }
      std::transform(sums.begin(), sums.end(), args.outputs[output].As<float>(),
                     [](double v) { return static_cast<float>(v); });
    };
    total(1, 0);
    total(2, width);
    return OkStatus();
  }

 private:
  const double epsilon_;
  int64_t rows_ = 0, columns_ = 0;
};

Result<std::unique_ptr<BoundKernel>> BindLayerNormGrad(const OpView& op, const Candidate&) {
  return std::unique_ptr<BoundKernel>(std::make_unique<BoundLayerNormGrad>(op));
}

constexpr Rule kLayerNormGradRules[] = {
    {"msrt", "LayerNormGrad", QueryLayerNormGrad, BindLayerNormGrad}};

}  // namespace

std::span<const Rule> LayerNormGradRules() { return kLayerNormGradRules; }

}  // namespace msrt::cpu

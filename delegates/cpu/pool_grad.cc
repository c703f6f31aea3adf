// msrt.MaxPoolGrad. Where channels lie together, an output pixel is a vector of channels whose taps
// are other vectors; in plain tensors each channel is a plane.
#include "ops/pool_grad.h"

#include <algorithm>
#include <array>
#include <vector>

#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

constexpr size_t kGrad = 0, kX = 1;

std::string QueryMaxPoolGrad(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.input(kX).dtype != DType::kF32) return StrCat("elements of type ", op.input(kX).dtype);
  double taps = 1;
  for (const int64_t k : op.Ints("kernel_shape")) taps *= static_cast<double>(k);
  const double outputs = static_cast<double>(node.typical->input(kGrad).elements());
  for (const Layout layout : OfferedLayouts()) {
    const bool constant = op.constant(kX) != nullptr || op.constant(kGrad) != nullptr;
    if (!Admits(op.input(kX), layout) || !Admits(op.input(kGrad), layout) ||
        (layout != Layout::kPlain && constant))
      continue;
    const double nanoseconds = layout == Layout::kPlain ? 1.0 : 0.15;
    Candidate c = PlainCandidate(node, PassSeconds(node, outputs * taps, nanoseconds, node.bytes),
                                 "vectorised");
    c.input_layouts[kGrad] = c.input_layouts[kX] = c.output_layouts[0] = layout;
    candidates->push_back(std::move(c));
  }
  return {};
}

class BoundMaxPoolGrad final : public BoundKernel {
 public:
  BoundMaxPoolGrad(const Dims& x, const PoolGradShape& shape, Layout layout) {
    for (size_t i = 0; i < kMaxSpace; ++i) axes_[i] = shape.axis[i].window;
    // Channels of a plane, and how many of them one pixel has in memory. Threads share an image's
    // channels where they lie together.
    pixel_ = layout == Layout::kPlain ? 1 : layout == Layout::kChannelsLast ? x[1] : BlockOf(layout);
    constexpr int64_t kChannelsAtOnce = 64;
    width_ = layout == Layout::kChannelsLast ? std::min(pixel_, kChannelsAtOnce) : pixel_;
    slices_ = pixel_ == 0 ? 0 : (pixel_ + width_ - 1) / width_;
    planes_ = pixel_ == 0 ? 0 : x[0] * x[1] / pixel_;
  }

  Status Run(const RunArgs& args) override {
    const float *grad = args.inputs[kGrad].As<float>(), *x = args.inputs[kX].As<float>();
    float* y = args.outputs[0].As<float>();
    const int64_t inputs = axes_[0].in * axes_[1].in * axes_[2].in;
    const int64_t outputs = axes_[0].out * axes_[1].out * axes_[2].out;
    return ParallelRanges(args.parallel, planes_ * slices_, 1, [&](int64_t begin, int64_t end) {
      Window window;
      for (int64_t s = begin; s < end; ++s) {
        const int64_t plane = s / slices_, first = s % slices_ * width_;
        const int64_t width = std::min(width_, pixel_ - first);
        const int64_t at = plane * inputs * pixel_ + first;
        for (int64_t i = 0; i < inputs; ++i) std::fill_n(y + at + i * pixel_, width, 0.0f);
        const float* value = grad + plane * outputs * pixel_ + first;
        for (int64_t d = 0; d < axes_[0].out; ++d) {
          for (int64_t h = 0; h < axes_[1].out; ++h) {
            for (int64_t w = 0; w < axes_[2].out; ++w, value += pixel_)
              AddOutput({d, h, w}, x + at, y + at, value, width, &window);
          }
        }
      }
    });
  }

 private:
  struct Window {
    std::vector<const float*> taps;
    std::vector<float*> results;
  };

  void AddOutput(const std::array<int64_t, kMaxSpace>& at, const float* x, float* y,
                 const float* grad, int64_t width, Window* window) const {
    std::array<Interval, kMaxSpace> taps;
    for (size_t i = 0; i < kMaxSpace; ++i) taps[i] = axes_[i].TapsInside(at[i]);
    const auto place = [&](size_t axis, int64_t tap) {
      return axes_[axis].start(at[axis]) + tap * axes_[axis].dilation;
    };
    window->taps.clear(), window->results.clear();
    int64_t greatest = -1;  // where pixels are single elements
    for (int64_t i = taps[0].begin; i < taps[0].end; ++i) {
      for (int64_t j = taps[1].begin; j < taps[1].end; ++j) {
        const int64_t row = (place(0, i) * axes_[1].in + place(1, j)) * axes_[2].in;
        for (int64_t k = taps[2].begin; k < taps[2].end; ++k) {
          const int64_t offset = (row + place(2, k)) * pixel_;
          if (pixel_ == 1) {
            if (greatest < 0 || Exceeds(x[offset], x[greatest])) greatest = offset;
            continue;
          }
          window->taps.push_back(x + offset);
          window->results.push_back(y + offset);
        }
      }
    }
    if (pixel_ != 1) {
      LoopsHere().add_to_greatest(window->taps.data(), window->results.data(),
                                  static_cast<int64_t>(window->taps.size()), grad, width);
    } else if (greatest >= 0) {
      y[greatest] += *grad;
    }
  }
  // A NaN is greater than everything; of equal elements the first counts.
  static bool Exceeds(float value, float best) {
    return value > best || (value != value && best == best);
  }

  std::array<WindowAxis, kMaxSpace> axes_;
  int64_t pixel_ = 1, width_ = 1, slices_ = 1, planes_ = 0;
};

Result<std::unique_ptr<BoundKernel>> BindMaxPoolGrad(const OpView& op, const Candidate& candidate) {
  MSRT_ASSIGN_OR_RETURN(const PoolGradShape shape, PoolGradShapeOf(op));
  return std::unique_ptr<BoundKernel>(std::make_unique<BoundMaxPoolGrad>(
      op.input(kX).dims, shape, candidate.input_layouts[kX]));
}

constexpr Rule kPoolGradRules[] = {{"msrt", "MaxPoolGrad", QueryMaxPoolGrad, BindMaxPoolGrad}};

}  // namespace

std::span<const Rule> PoolGradRules() { return kPoolGradRules; }

}  // namespace msrt::cpu

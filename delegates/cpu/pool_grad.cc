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
  BoundMaxPoolGrad(const Dims& x, const PoolGradShape& shape, Layout layout) : shape_(shape) {
    pixel_ = layout == Layout::kPlain          ? 1
             : layout == Layout::kChannelsLast ? x[1]
                                               : BlockOf(layout);
    // Threads share the channels of an image where they lie together.
    constexpr int64_t kChannelsAtOnce = 64;
    width_ = layout == Layout::kChannelsLast ? std::min(pixel_, kChannelsAtOnce) : pixel_;
    slices_ = pixel_ == 0 ? 0 : (pixel_ + width_ - 1) / width_;
    planes_ = pixel_ == 0 ? 0 : x[0] * x[1] / pixel_;
    input_taps_ = TapDistances(false), result_taps_ = TapDistances(true);
  }

  Status Run(const RunArgs& args) override {
    const float *grad = args.inputs[kGrad].As<float>(), *x = args.inputs[kX].As<float>();
    float* y = args.outputs[0].As<float>();
    const int64_t inputs = shape_.input_plane(), outputs = shape_.grad_plane(),
                  results = shape_.result_plane();
    return ParallelRanges(args.parallel, planes_ * slices_, 1, [&](int64_t begin, int64_t end) {
      Window window;
      window.outside.resize(static_cast<size_t>(width_));
      for (int64_t s = begin; s < end; ++s) {
        const int64_t plane = s / slices_, first = s % slices_ * width_;
        const int64_t width = std::min(width_, pixel_ - first);
        float* result = y + plane * results * pixel_ + first;
        for (int64_t i = 0; i < results; ++i) std::fill_n(result + i * pixel_, width, 0.0f);
        RunPlane(x + plane * inputs * pixel_ + first, grad + plane * outputs * pixel_ + first,
                 width, result, &window);
      }
    });
  }

 private:
  struct Window {
    std::vector<const float*> taps;
    std::vector<float*> results;
    std::vector<float> outside;  // takes what belongs to other pieces
  };
  using Position = std::array<int64_t, kMaxSpace>;

  // Windows that are whole in X and in the result have their taps at the same distances.
  static bool IsWhole(const PoolGradAxis& axis, int64_t output) {
    const int64_t first = axis.window.start(output), end = first + axis.window.span();
    return first >= std::max(axis.input.begin, axis.result.begin) && first >= 0 &&
           end <= std::min(axis.input.begin + axis.input.extent,
                           axis.result.begin + axis.result.extent) &&
           end <= axis.window.in;
  }
  // The distances of the taps of a whole window from its first, in pixels.
  std::vector<int64_t> TapDistances(bool in_result) const {
    std::vector<int64_t> distances;
    const auto part = [&](size_t axis) {
      return in_result ? shape_.axis[axis].result.extent : shape_.axis[axis].input.extent;
    };
    const auto& [d, h, w] = shape_.axis;
    for (int64_t i = 0; i < d.window.kernel; ++i) {
      for (int64_t j = 0; j < h.window.kernel; ++j) {
        for (int64_t k = 0; k < w.window.kernel; ++k) {
          distances.push_back((i * d.window.dilation * part(1) + j * h.window.dilation) * part(2) +
                              k * w.window.dilation);
        }
      }
    }
    return distances;
  }
  // The first tap of a whole window, in pixels.
  int64_t FirstTap(const Position& at, bool in_result) const {
    int64_t first = 0;
    for (size_t i = 0; i < kMaxSpace; ++i) {
      const PoolGradAxis& axis = shape_.axis[i];
      const PoolGradAxis::Part& part = in_result ? axis.result : axis.input;
      first = first * part.extent + axis.window.start(at[i]) - part.begin;
    }
    return first;
  }

  void AddWhole(const Position& at, const float* x, const float* grad, int64_t width, float* result,
                Window* window) const {
    const float* const from = x + FirstTap(at, false) * pixel_;
    float* const to = result + FirstTap(at, true) * pixel_;
    const size_t taps = input_taps_.size();
    if (pixel_ == 1) {
      size_t where = 0;
      float greatest = from[input_taps_[0]];
      for (size_t t = 1; t < taps; ++t) {
        const float value = from[input_taps_[t]];
        if (value > greatest || (value != value && greatest == greatest))
          greatest = value, where = t;
      }
      to[result_taps_[where]] += *grad;
      return;
    }
    window->taps.resize(taps), window->results.resize(taps);
    for (size_t t = 0; t < taps; ++t) {
      window->taps[t] = from + input_taps_[t] * pixel_;
      window->results[t] = to + result_taps_[t] * pixel_;
    }
    LoopsHere().add_to_greatest(window->taps.data(), window->results.data(),
                                static_cast<int64_t>(taps), grad, width);
  }

  void RunPlane(const float* x, const float* grad, int64_t width, float* result,
                Window* window) const {
    const auto& [d, h, w] = shape_.axis;
    for (int64_t i = 0; i < d.grad.extent; ++i) {
      for (int64_t j = 0; j < h.grad.extent; ++j) {
        const bool whole = IsWhole(d, d.grad.begin + i) && IsWhole(h, h.grad.begin + j);
        for (int64_t k = 0; k < w.grad.extent; ++k, grad += pixel_) {
          const Position at{d.grad.begin + i, h.grad.begin + j, w.grad.begin + k};
          if (whole && IsWhole(w, at[2])) {
            AddWhole(at, x, grad, width, result, window);
            continue;
          }
          if (pixel_ == 1) AddElement(at, x, *grad, result);
          else AddPixel(at, x, grad, width, result, window);
        }
      }
    }
  }

  // Calls visit(element of X, element of the result or -1) for each tap of an output, in units of
  // pixels.
  template <typename Visit>
  void ForEachTap(const Position& at, Visit visit) const {
    std::array<Interval, kMaxSpace> taps;
    for (size_t i = 0; i < kMaxSpace; ++i) taps[i] = shape_.axis[i].window.TapsInside(at[i]);
    const auto& [d, h, w] = shape_.axis;
    const auto place = [&](size_t axis, int64_t tap) {
      return shape_.axis[axis].window.start(at[axis]) + tap * shape_.axis[axis].window.dilation;
    };
    const auto in = [](const PoolGradAxis::Part& part, int64_t p) {
      return p >= part.begin && p < part.begin + part.extent;
    };
    for (int64_t i = taps[0].begin; i < taps[0].end; ++i) {
      const int64_t z = place(0, i);
      for (int64_t j = taps[1].begin; j < taps[1].end; ++j) {
        const int64_t y = place(1, j);
        if (!in(d.input, z) || !in(h.input, y)) continue;
        const bool row_in_result = in(d.result, z) && in(h.result, y);
        const int64_t row =
            ((z - d.input.begin) * h.input.extent + y - h.input.begin) * w.input.extent;
        const int64_t result_row =
            ((z - d.result.begin) * h.result.extent + y - h.result.begin) * w.result.extent;
        for (int64_t k = taps[2].begin; k < taps[2].end; ++k) {
          const int64_t c = place(2, k);
          if (!in(w.input, c)) continue;
          visit(row + c - w.input.begin,
                row_in_result && in(w.result, c) ? result_row + c - w.result.begin : -1);
        }
      }
    }
  }

  void AddPixel(const Position& at, const float* x, const float* grad, int64_t width, float* result,
                Window* window) const {
    window->taps.clear(), window->results.clear();
    ForEachTap(at, [&](int64_t tap, int64_t target) {
      window->taps.push_back(x + tap * pixel_);
      window->results.push_back(target < 0 ? window->outside.data() : result + target * pixel_);
    });
    LoopsHere().add_to_greatest(window->taps.data(), window->results.data(),
                                static_cast<int64_t>(window->taps.size()), grad, width);
  }

  // A NaN is greater than everything; of equal elements the first counts.
  void AddElement(const Position& at, const float* x, float grad, float* result) const {
    const float* greatest = nullptr;
    int64_t where = -1;
    ForEachTap(at, [&](int64_t tap, int64_t target) {
      const float value = x[tap];
      if (greatest != nullptr && !(value > *greatest || (value != value && *greatest == *greatest)))
        return;
      greatest = x + tap;
      where = target;
    });
    if (where >= 0) result[where] += grad;
  }

  const PoolGradShape shape_;
  std::vector<int64_t> input_taps_, result_taps_;  // of a whole window
  int64_t pixel_ = 1, width_ = 1, slices_ = 1, planes_ = 0;
};

Result<std::unique_ptr<BoundKernel>> BindMaxPoolGrad(const OpView& op, const Candidate& candidate) {
  MSRT_ASSIGN_OR_RETURN(const PoolGradShape shape, PoolGradShapeOf(op));
  return std::unique_ptr<BoundKernel>(
      std::make_unique<BoundMaxPoolGrad>(op.input(kX).dims, shape, candidate.input_layouts[kX]));
}

constexpr Rule kPoolGradRules[] = {{.domain = "msrt",
                                    .op = "MaxPoolGrad",
                                    .query = QueryMaxPoolGrad,
                                    .bind = BindMaxPoolGrad,
                                    .takes_pieces = true}};

}  // namespace

std::span<const Rule> PoolGradRules() { return kPoolGradRules; }

}  // namespace msrt::cpu

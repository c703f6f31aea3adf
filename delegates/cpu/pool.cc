// MaxPool and AveragePool. Where channels lie together, an output pixel is a vector of channels and
// its taps are other vectors; in plain tensors rows are folded over the window's height first, as
// vectors along the width, and then along the width.
#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "core/abi/msrt_plugin.h"
#include "delegates/cpu/rule.h"
#include "ops/window.h"

namespace msrt::cpu {
namespace {

bool IsByte(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kI8;
}  // MaxPool alone takes them
bool IsMax(const OpView& op) { return op.op() == "MaxPool"; }

std::string QueryPool(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.input(0).dtype != DType::kF32 && !IsByte(op.input(0).dtype))
    return StrCat("elements of type ", op.input(0).dtype);
  if (op.has_output(1)) return "the indices of a MaxPool";
  double taps = 1;
  for (const int64_t k : op.Ints("kernel_shape")) taps *= static_cast<double>(k);
  const double outputs = static_cast<double>(node.typical->output(0).elements());
  for (const Layout layout : OfferedLayouts()) {
    if (!Admits(op.input(0), layout) || (layout != Layout::kPlain && op.constant(0) != nullptr))
      continue;
    const double nanoseconds = layout == Layout::kPlain ? 0.5 : 0.04;
    Candidate c = PlainCandidate(node, PassSeconds(node, outputs * taps, nanoseconds, node.bytes),
                                 "vectorised");
    c.input_layouts[0] = c.output_layouts[0] = layout;
    c.strided_inputs = c.strided_outputs = 1;
    // Taps are folded row by row; in plain, column by column first.
    if (layout != Layout::kPlain)
      c.arithmetic = op.op() == "MaxPool" ? MSRT_ARITHMETIC_ROUNDED : "cpu taps";
    candidates->push_back(std::move(c));
  }
  return {};
}

using Axes = std::array<WindowAxis, kMaxSpace>;

// The largest of several vectors.
void MaxOf(const float* const* taps, int64_t count, float* y, int64_t columns) {
  LoopsHere().max_of(taps, count, y, columns);
}
template <typename Byte>
void MaxOf(const Byte* const* taps, int64_t count, Byte* y, int64_t columns) {
  LoopsHere().max_of_bytes[std::is_signed_v<Byte>](reinterpret_cast<const void* const*>(taps),
                                                   count, y, columns);
}
void ScaledSumOf(const float* const* taps, int64_t count, float factor, float* y, int64_t columns) {
  LoopsHere().scaled_sum_of(taps, count, factor, y, columns);
}
// Never called: bytes have no average.
template <typename Byte>
void ScaledSumOf(const Byte* const*, int64_t, float, Byte*, int64_t) {}

template <typename T>
class BoundPool final : public BoundKernel {
 public:
  BoundPool(const OpView& op, const Axes& axes, Layout layout)
      : max_(IsMax(op)),
        include_pad_(!max_ && op.Int("count_include_pad") != 0),
        plain_(layout == Layout::kPlain),
        axes_(axes) {
    const Dims& x = op.input(0).dims;
    // A plane is what one window moves over: pixels of `width_` elements each.
    width_ = plain_ ? 1 : layout == Layout::kChannelsLast ? x[1] : BlockOf(layout);
    planes_ = x[0] * x[1] / std::max<int64_t>(1, width_);
    batch_planes_ = planes_ / std::max<int64_t>(1, x[0]);
    out_row_ = axes_[2].out * width_;
    rows_ = axes_[0].out * axes_[1].out;
    taps_ = axes_[0].kernel * axes_[1].kernel * axes_[2].kernel;
  }

  Status Run(const RunArgs& args) override {
    const T* x = args.inputs[0].As<T>();
    T* y = args.outputs[0].As<T>();
    if (args.outputs[0].elements() == 0) return OkStatus();
    const Steps in(args.inputs[0]), out(args.outputs[0]);
    const int64_t grain = std::max<int64_t>(
        1, kGrain / std::max<int64_t>(1, out_row_ * std::min<int64_t>(taps_, 64)));
    return ParallelRanges(args.parallel, planes_ * rows_, grain, [&](int64_t begin, int64_t end) {
      std::vector<const T*> taps;
      std::vector<T> folded(plain_ ? static_cast<size_t>(axes_[2].in) : 0);
      for (int64_t row = begin; row < end; ++row) {
        const int64_t n = row / rows_ / batch_planes_, plane = row / rows_ % batch_planes_;
        const int64_t at = row % rows_, z = at / axes_[1].out, h = at % axes_[1].out;
        const T* from = x + n * in.batch + plane * in.plane;
        T* to = y + n * out.batch + plane * out.plane + z * out.depth + h * out.row;
        if (plain_) PlainRow(from, in, at, to, &taps, folded.data());
        else VectorRow(from, in, out, at, to, &taps);
      }
    });
  }

 private:
  // Elements between images, planes, their slices and rows, and pixels.
  struct Steps {
    int64_t batch, plane, depth = 0, row = 0, pixel;
    explicit Steps(const TensorView& t) {
      const Dims s = StepsInMemory(t);
      const int space = t.dims.rank() - 2, first = t.layout == Layout::kChannelsLast ? 1 : 2;
      batch = s[0];
      plane = t.layout == Layout::kChannelsLast ? 0 : s[1];
      pixel = s[first + space - 1];
      if (space > 1) row = s[first + space - 2];
      if (space > 2) depth = s[first];
    }
  };

  // Where the rows of the window of output row `at` begin in a plane.
  void RowTaps(const T* plane, const Steps& in, int64_t at, std::vector<const T*>* taps) const {
    taps->clear();
    const int64_t z = at / axes_[1].out, y = at % axes_[1].out;
    const Interval depth = axes_[0].TapsInside(z), height = axes_[1].TapsInside(y);
    for (int64_t i = depth.begin; i < depth.end; ++i) {
      for (int64_t j = height.begin; j < height.end; ++j) {
        taps->push_back(plane + (axes_[0].start(z) + i * axes_[0].dilation) * in.depth +
                        (axes_[1].start(y) + j * axes_[1].dilation) * in.row);
      }
    }
  }
  int64_t Count(const WindowAxis& axis, int64_t at) const {
    return (include_pad_ ? axis.Taps(at, -axis.pad_begin, axis.in + axis.pad_end)
                         : axis.TapsInside(at))
        .size();
  }
  // Returns the divisor of the average of one output.
  float Factor(int64_t row, int64_t column) const {
    const int64_t count = Count(axes_[0], row / axes_[1].out) *
                          Count(axes_[1], row % axes_[1].out) * Count(axes_[2], column);
    return count <= 0 ? 0.0f : 1.0f / static_cast<float>(count);
  }

  void VectorRow(const T* plane, const Steps& in, const Steps& out, int64_t row, T* y,
                 std::vector<const T*>* taps) const {
    RowTaps(plane, in, row, taps);
    if constexpr (std::is_same_v<T, float>) {
      // Its loop writes pixels that follow each other.
      const Interval inside = out.pixel == width_ ? Inside(axes_[2]) : Interval{0, 0};
      Columns(row, in, out, 0, inside.begin, y, taps);
      if (inside.size() > 0) InsideColumns(row, in, inside, y, *taps);
      Columns(row, in, out, inside.end, axes_[2].out, y, taps);
    } else {
      Columns(row, in, out, 0, axes_[2].out, y, taps);
    }
  }

  // The outputs whose windows are inside the input.
  static Interval Inside(const WindowAxis& axis) {
    Interval inside{0, axis.out};
    while (inside.begin < inside.end && axis.TapsInside(inside.begin).size() < axis.kernel) {
      ++inside.begin;
    }
    while (inside.end > inside.begin && axis.TapsInside(inside.end - 1).size() < axis.kernel) {
      --inside.end;
    }
    return inside;
  }

  void InsideColumns(int64_t row, const Steps& in, Interval inside, float* y,
                     const std::vector<const float*>& row_taps) const {
    const WindowAxis& axis = axes_[2];
    std::vector<const float*> rows;
    for (const float* tap : row_taps) rows.push_back(tap + axis.start(inside.begin) * in.pixel);
    const WindowRow windows{.rows = rows.data(),
                            .row_count = static_cast<int64_t>(rows.size()),
                            .taps = axis.kernel,
                            .tap_step = axis.dilation * in.pixel,
                            .step = axis.stride * in.pixel,
                            .width = width_,
                            .y = y + inside.begin * width_,
                            .outputs = inside.size(),
                            .factor = max_ ? 1 : Factor(row, inside.begin)};
    (max_ ? LoopsHere().max_of_windows : LoopsHere().scaled_sum_of_windows)(windows);
  }

  void Columns(int64_t row, const Steps& in, const Steps& out, int64_t begin, int64_t end, T* y_row,
               std::vector<const T*>* taps) const {
    const size_t rows = taps->size();
    T* y = y_row + begin * out.pixel;
    for (int64_t column = begin; column < end; ++column, y += out.pixel) {
      const Interval inside = axes_[2].TapsInside(column);
      for (size_t r = 0; r < rows; ++r) {
        for (int64_t k = inside.begin; k < inside.end; ++k) {
          taps->push_back((*taps)[r] + (axes_[2].start(column) + k * axes_[2].dilation) * in.pixel);
        }
      }
      const auto count = static_cast<int64_t>(taps->size() - rows);
      if (max_) MaxOf(taps->data() + rows, count, y, width_);
      else ScaledSumOf(taps->data() + rows, count, Factor(row, column), y, width_);
      taps->resize(rows);
    }
  }

  void PlainRow(const T* plane, const Steps& in, int64_t row, T* y, std::vector<const T*>* taps,
                T* folded) const {
    RowTaps(plane, in, row, taps);
    const auto rows = static_cast<int64_t>(taps->size());
    if (max_) MaxOf(taps->data(), rows, folded, axes_[2].in);
    else ScaledSumOf(taps->data(), rows, 1.0f, folded, axes_[2].in);
    for (int64_t column = 0; column < axes_[2].out; ++column) {
      const Interval inside = axes_[2].TapsInside(column);
      const int64_t start = axes_[2].start(column);
      using Limits = std::numeric_limits<T>;
      T value = !max_ ? T{} : Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
      for (int64_t k = inside.begin; k < inside.end; ++k) {
        const T tap = folded[start + k * axes_[2].dilation];
        if (max_) value = tap > value || tap != tap ? tap : value;
        else value = static_cast<T>(value + tap);
      }
      y[column] = max_ ? value : static_cast<T>(static_cast<float>(value) * Factor(row, column));
    }
  }

  const bool max_, include_pad_, plain_;
  const Axes axes_;
  int64_t width_, planes_, batch_planes_, out_row_, rows_, taps_;
};

Result<std::unique_ptr<BoundKernel>> BindPool(const OpView& op, const Candidate& candidate) {
  MSRT_ASSIGN_OR_RETURN(
      const Windows windows,
      WindowsOf(op, op.input(0).dims, op.Ints("kernel_shape"), op.Int("ceil_mode") != 0));
  // The last axis of three is the width, however many the pool has.
  Axes axes;
  for (int i = 0; i < windows.rank; ++i)
    axes[static_cast<size_t>(kMaxSpace - windows.rank + i)] = windows.axis[static_cast<size_t>(i)];
  const auto make = [&]<typename T>() -> std::unique_ptr<BoundKernel> {
    return std::make_unique<BoundPool<T>>(op, axes, candidate.input_layouts[0]);
  };
  if (op.input(0).dtype == DType::kU8) return make.operator()<uint8_t>();
  if (op.input(0).dtype == DType::kI8) return make.operator()<int8_t>();
  return make.operator()<float>();
}

constexpr Rule kPoolRules[] = {{"", "MaxPool", QueryPool, BindPool},
                               {"", "AveragePool", QueryPool, BindPool}};

}  // namespace

std::span<const Rule> PoolRules() { return kPoolRules; }

}  // namespace msrt::cpu

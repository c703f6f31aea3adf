// Fourier transforms in double precision: split in halves while the length is even, computed by
// definition when it is odd.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/lines.h"
#include "delegates/reference/number.h"

namespace msrt::reference {
namespace {

using Complex = std::complex<double>;

// Transforms of one length and direction.
class Fourier {
 public:
  Fourier(int64_t length, bool inverse) : roots_(static_cast<size_t>(length)) {
    const double turn = (inverse ? 2 : -2) * std::numbers::pi;
    for (int64_t k = 0; k < length; ++k) {
      roots_[static_cast<size_t>(k)] =
          std::polar(1.0, turn * static_cast<double>(k) / static_cast<double>(length));
    }
  }

  // out[k] = sum over j of x[j] * root^(j*k), not divided by the length.
  void Transform(const Complex* x, Complex* out) const {
    Step(x, 1, static_cast<int64_t>(roots_.size()), out);
  }

 private:
  // The transform of every `step`-th element of x, `count` of them.
  void Step(const Complex* x, int64_t step, int64_t count, Complex* out) const {
    if (count % 2 != 0) {
      for (int64_t k = 0; k < count; ++k) {
        out[k] = 0;
        for (int64_t j = 0; j < count; ++j) out[k] += x[j * step] * Root(j * k % count * step);
      }
      return;
    }
    const int64_t half = count / 2;
    if (half == 0) return;
    Step(x, 2 * step, half, out);
    Step(x + step, 2 * step, half, out + half);
    for (int64_t k = 0; k < half; ++k) {
      const Complex even = out[k], odd = out[half + k] * Root(k * step);
      out[k] = even + odd;
      out[half + k] = even - odd;
    }
  }
  // step * count is the whole length, so that step-th powers of its roots are those of the shorter
  // transform.
  const Complex& Root(int64_t power) const { return roots_[static_cast<size_t>(power)]; }

  std::vector<Complex> roots_;
};

// The scalar of an optional input.
int64_t ScalarOf(const TensorView& t) { return IntValues(t.dtype, t.data, 1)[0]; }

// Returns number `i` of a signal whose numbers are `step` apart and have `parts` elements each.
template <typename T>
Complex NumberAt(const T* signal, int64_t i, int64_t step, int64_t parts) {
  const T* at = signal + i * step;
  return {static_cast<double>(at[0]), parts == 2 ? static_cast<double>(at[1]) : 0.0};
}

// Fills in the other half of the spectrum of a real signal.
void MirrorSpectrum(std::vector<Complex>* spectrum) {
  const size_t length = spectrum->size();
  for (size_t k = length / 2 + 1; k < length; ++k)
    (*spectrum)[k] = std::conj((*spectrum)[length - k]);
}

Status Dft(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &out = args.outputs[0];
  const int last = x.dims.rank() - 1;
  const int64_t given = args.has_input(2) ? ScalarOf(args.inputs[2]) : args.op.Int("axis");
  MSRT_ASSIGN_OR_RETURN(const int axis, CheckedAxis(given, x.dims.rank()));
  if (axis == last)
    return InvalidArgument("axis = ", given, " is the axis of the real and imaginary parts");
  const bool inverse = args.op.Int("inverse") != 0, onesided = args.op.Int("onesided") != 0;
  int64_t length = onesided && inverse ? 2 * (x.dims[axis] - 1) : x.dims[axis];
  if (args.op.Has("dft_length")) length = args.op.Int("dft_length");
  if (args.has_input(1)) length = ScalarOf(args.inputs[1]);
  if (out.elements() == 0) return OkStatus();  // the length may be too great for a table of roots
  const int64_t parts = x.dims[last], out_parts = out.dims[last], bins = out.dims[axis];
  const int64_t inner = x.dims.product(axis + 1, last), outer = x.dims.product(0, axis);
  const int64_t used = std::min(x.dims[axis], onesided && inverse ? length / 2 + 1 : length);
  const Fourier fourier(length, inverse);
  return DispatchFloat(x.dtype, [&]<typename T>() -> Status {
    return ParallelRanges(args.parallel, outer * inner, 1, [&](int64_t begin, int64_t end) {
      std::vector<Complex> signal(static_cast<size_t>(length)), result(signal.size());
      for (int64_t line = begin; line < end; ++line) {
        const T* from = x.As<T>() + (line / inner * x.dims[axis] * inner + line % inner) * parts;
        std::fill(signal.begin(), signal.end(), Complex());
        for (int64_t i = 0; i < used; ++i)
          signal[static_cast<size_t>(i)] = NumberAt(from, i, inner * parts, parts);
        if (onesided && inverse) MirrorSpectrum(&signal);
        fourier.Transform(signal.data(), result.data());
        T* to = out.As<T>() + (line / inner * bins * inner + line % inner) * out_parts;
        for (int64_t k = 0; k < bins; ++k, to += inner * out_parts) {
          const Complex value = inverse
                                    ? result[static_cast<size_t>(k)] / static_cast<double>(length)
                                    : result[static_cast<size_t>(k)];
          to[0] = FromWide<T>(value.real());
          if (out_parts == 2) to[1] = FromWide<T>(value.imag());
        }
      }
    });
  });
}

Status Stft(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &out = args.outputs[0];
  const int64_t step = args.has_input(1) ? ScalarOf(args.inputs[1]) : args.op.Int("frame_step");
  int64_t length = args.has_input(2) ? args.inputs[2].dims[0] : x.dims[1];
  if (args.op.Has("frame_length")) length = args.op.Int("frame_length");
  if (args.has_input(3)) length = ScalarOf(args.inputs[3]);
  if (out.elements() == 0) return OkStatus();
  const int64_t frames = out.dims[1], bins = out.dims[2], parts = x.dims[2];
  const Fourier fourier(length, false);
  return DispatchFloat(x.dtype, [&]<typename T>() -> Status {
    const T* window = args.has_input(2) ? args.inputs[2].As<T>() : nullptr;
    return ParallelRanges(args.parallel, x.dims[0] * frames, 1, [&](int64_t begin, int64_t end) {
      std::vector<Complex> signal(static_cast<size_t>(length)), result(signal.size());
      for (int64_t frame = begin; frame < end; ++frame) {
        const T* from = x.As<T>() + (frame / frames * x.dims[1] + frame % frames * step) * parts;
        for (int64_t i = 0; i < length; ++i) {
          const double weight = window == nullptr ? 1.0 : static_cast<double>(window[i]);
          signal[static_cast<size_t>(i)] = NumberAt(from, i, parts, parts) * weight;
        }
        fourier.Transform(signal.data(), result.data());
        T* to = out.As<T>() + frame * bins * 2;
        for (int64_t k = 0; k < bins; ++k) {
          to[2 * k] = FromWide<T>(result[static_cast<size_t>(k)].real());
          to[2 * k + 1] = FromWide<T>(result[static_cast<size_t>(k)].imag());
        }
      }
    });
  });
}

constexpr KernelDef kSignalKernels[] = {{"", "DFT", Dft}, {"", "STFT", Stft}};

}  // namespace

std::span<const KernelDef> SignalKernels() { return kSignalKernels; }

}  // namespace msrt::reference

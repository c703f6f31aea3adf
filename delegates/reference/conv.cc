// Convolutions of floats, plain and fused.
#include "delegates/reference/conv.h"

#include "delegates/reference/activation.h"
#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

constexpr size_t kX = 0, kW = 1, kB = 2, kZ = 3;

Status RunConvolution(const KernelArgs& args, bool transposed) {
  MSRT_ASSIGN_OR_RETURN(const ConvShape s, ConvShapeOf(args.op, args.inputs[kX].dims,
                                                       args.inputs[kW].dims, transposed));
  const Activation activation(args.op);
  const bool first_part = args.op.Int("partial") == 0;
  return DispatchFloat(args.inputs[kX].dtype, [&]<typename T>() -> Status {
    const T *x = args.inputs[kX].As<T>(), *w = args.inputs[kW].As<T>();
    const T* bias = first_part && args.has_input(kB) ? args.inputs[kB].As<T>() : nullptr;
    const T* residual = first_part && args.has_input(kZ) ? args.inputs[kZ].As<T>() : nullptr;
    T* out = args.outputs[0].As<T>();
    const int64_t planes = args.inputs[kX].dims[0] * s.channels.outputs;
    return ParallelRanges(args.parallel, planes, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t n = p / s.channels.outputs, m = p % s.channels.outputs;
        ConvPlane(s, transposed, x, w, n, m, [&](double sum, int64_t i) {
          if (bias != nullptr) sum += static_cast<double>(bias[m]);
          if (residual != nullptr) sum += static_cast<double>(residual[i]);
          out[i] = static_cast<T>(activation(sum));
        });
      }
    });
  });
}

Status RunConv(const KernelArgs& args) { return RunConvolution(args, false); }
Status RunConvTranspose(const KernelArgs& args) { return RunConvolution(args, true); }

constexpr KernelDef kConvKernels[] = {
    {"", "Conv", RunConv}, {"", "ConvTranspose", RunConvTranspose}, {"msrt", "FusedConv", RunConv}};

}  // namespace

std::span<const KernelDef> ConvKernels() { return kConvKernels; }

}  // namespace msrt::reference

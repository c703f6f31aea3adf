// LRN in double precision. Every sum is computed anew: with a running sum an element's bits would
// depend on the first channel of the piece.
#include <algorithm>
#include <cmath>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/lines.h"
#include "delegates/reference/number.h"

namespace msrt::reference {
namespace {

Status Lrn(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &out = args.outputs[0];
  const Lines along(x.dims, 1);
  const int64_t size = args.op.Int("size"), before = (size - 1) / 2, after = size / 2;
  const double alpha = args.op.Float("alpha") / static_cast<double>(size),
               beta = args.op.Float("beta"), bias = args.op.Float("bias");
  return DispatchFloat(x.dtype, [&]<typename T>() -> Status {
    return ParallelRanges(args.parallel, along.lines(), 16, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t first = along.First(line);
        const auto at = [&](int64_t channel) {
          return static_cast<double>(x.As<T>()[first + channel * along.inner]);
        };
        for (int64_t c = 0; c < along.count; ++c) {
          double squares = 0;
          for (int64_t i = std::max<int64_t>(c - before, 0);
               i <= std::min(c + after, along.count - 1); ++i)
            squares += at(i) * at(i);
          out.As<T>()[first + c * along.inner] =
              FromWide<T>(at(c) / std::pow(bias + alpha * squares, beta));
        }
      }
    });
  });
}

constexpr KernelDef kLocalResponseKernels[] = {{"", "LRN", Lrn}};

}  // namespace

std::span<const KernelDef> LocalResponseKernels() { return kLocalResponseKernels; }

}  // namespace msrt::reference

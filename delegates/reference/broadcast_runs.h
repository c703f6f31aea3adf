// Walks an output together with the inputs that broadcast to it, row by row along the last axis.
#pragma once

#include <span>
#include <vector>

#include "core/base/checked_math.h"
#include "delegates/reference/broadcast.h"
#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {

// The axes of an output and the strides of each input along them. Neighbouring axes are joined if
// every input steps through both as through one: tensors of the same shape become one long row.
struct JoinedAxes {
  Dims dims;
  std::vector<Dims> strides;  // one for each input
};
inline JoinedAxes JoinAxes(const KernelArgs& args) {
  const Dims& dims = args.outputs[0].dims;
  JoinedAxes joined{dims, {}};
  for (const TensorView& in : args.inputs)
    joined.strides.push_back(BroadcastStrides(in.dims, dims));
  for (int d = dims.rank() - 2; d >= 0; --d) {
    bool join = true;
    for (const Dims& s : joined.strides) join = join && s[d] == s[d + 1] * joined.dims[d + 1];
    if (!join) continue;
    joined.dims[d + 1] *= joined.dims[d];
    joined.dims.erase(d);
    for (Dims& s : joined.strides) s.erase(d);
  }
  if (dims.empty()) {
    joined.dims.push_back(1);
    for (Dims& s : joined.strides) s.push_back(0);
  }
  return joined;
}

// Calls body(first, count, begins, steps) for runs of at most kBlockElements output elements:
// element first + i of the output belongs to element begins[k] + i * steps[k] of input k. Runs may
// be visited at once on several threads.
template <typename Body>
Status ForEachRun(const KernelArgs& args, Body&& body) {
  if (args.outputs[0].elements() == 0) return OkStatus();
  const size_t inputs = args.inputs.size();
  constexpr int64_t kZeros[8] = {};
  if (args.outputs[0].elements() == 1 &&
      inputs <= std::size(kZeros)) {  // scalars, such as loop counters and conditions
    const std::span<const int64_t> zeros(kZeros, inputs);
    body(0, 1, zeros, zeros);
    return OkStatus();
  }
  const JoinedAxes axes = JoinAxes(args);
  const int last = axes.dims.rank() - 1;
  const int64_t width = axes.dims[last], rows = axes.dims.product(0, last),
                runs = CeilDiv(width, kBlockElements);
  std::vector<int64_t> steps;
  for (const Dims& s : axes.strides) steps.push_back(s[last]);
  return ParallelRanges(args.parallel, rows * runs, 8, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> begins(inputs);
    for (int64_t run = begin; run < end; ++run) {
      const int64_t row = run / runs, x = run % runs * kBlockElements;
      const int64_t first = row * width + x;
      for (size_t k = 0; k < inputs; ++k) begins[k] = OffsetOf(first, axes.dims, axes.strides[k]);
      body(first, std::min(kBlockElements, width - x), std::span<const int64_t>(begins),
           std::span<const int64_t>(steps));
    }
  });
}

}  // namespace msrt::reference

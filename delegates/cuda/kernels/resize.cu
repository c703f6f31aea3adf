// Resize: each output is a weighted sum of input elements, with indices and weights of each axis
// from tables that the delegate made (core's ResizeTable). Sums are in double, in the order of the
// axes, last axis fastest.
#include "delegates/cuda/kernels/elements.h"
#include "delegates/cuda/kernels/index.h"

namespace msrt::cuda {
namespace {

struct Corner {
  int64_t first;                    // offset of the copied axes
  uint32_t entry[kMaxResizedAxes];  // first table entry of the output on each axis
  int64_t stride[kMaxResizedAxes];
  bool outside;
};

DEVICE bool IsFloatNumber(int32_t type) { return type >= kTypeF64 && type <= kTypeBF16; }

DEVICE Corner CornerOf(const ResizeArgs& args, uint32_t i) {
  Corner c;
  c.first = 0;
  c.outside = false;
  for (int d = args.space.rank - 1; d >= 0; --d) {
    const uint32_t x = d > 0 ? Split(&i, args.space.dims[d]) : i;
    const int32_t a = args.axis_of_dim[d];
    if (a < 0) {
      c.first += x * args.in_strides[d];
      continue;
    }
    c.entry[a] = args.first_entry[a] + x * args.taps[a];
    c.stride[a] = args.in_strides[d];
    c.outside = c.outside || args.outside[args.first_outside[a] + x] != 0;
  }
  return c;
}

}  // namespace

BOUNDED_KERNEL(256, resize_weighted, ResizeArgs args) {
  for (uint32_t i = FirstElement(); i < args.space.elements; i += ElementStep()) {
    const Corner c = CornerOf(args, i);
    if (c.outside) {
      Store<double>(args.type, args.out, i, args.extrapolation);
      continue;
    }
    int32_t total = 1;
    for (int a = 0; a < args.axes; ++a) total *= args.taps[a];
    double sum = 0;
    for (int32_t t = 0; t < total; ++t) {
      int32_t rest = t;
      int64_t offset = c.first;
      double weight = 1;
      for (int a = args.axes - 1; a >= 0; --a) {
        const uint32_t entry = c.entry[a] + static_cast<uint32_t>(rest % args.taps[a]);
        rest /= args.taps[a];
        offset += args.index[entry] * c.stride[a];
        weight *= args.weight[entry];
      }
      // An element without weight may be infinite.
      if (weight != 0) sum += weight * Load<double>(args.type, args.in, offset);
    }
    Store<double>(args.type, args.out, i, IsFloatNumber(args.type) ? sum : rint(sum));
  }
}

// One tap on each axis: elements move unchanged.
BOUNDED_KERNEL(256, resize_nearest, ResizeArgs args) {
  for (uint32_t i = FirstElement(); i < args.space.elements; i += ElementStep()) {
    const Corner c = CornerOf(args, i);
    int64_t offset = c.first;
    for (int a = 0; a < args.axes; ++a) offset += args.index[c.entry[a]] * c.stride[a];
    if (IsFloatNumber(args.type))
      Store<double>(args.type, args.out, i,
                    c.outside ? args.extrapolation : Load<double>(args.type, args.in, offset));
    else
      Store<int64_t>(args.type, args.out, i,
                     c.outside ? static_cast<int64_t>(args.extrapolation)
                               : Load<int64_t>(args.type, args.in, offset));
  }
}

}  // namespace msrt::cuda

// Pools over up to three spatial axes: a thread for each output walks its window in row-major
// order. Sums are in double.
#include "delegates/cuda/kernels/elements.h"
#include "delegates/cuda/kernels/index.h"

namespace msrt::cuda {
namespace {

struct Taps {
  int32_t start, begin, end;  // of the window; taps inside the input
};

// Taps of output y that read [begin, end) of the axis.
DEVICE Taps TapsOf(const PoolAxis& axis, int32_t y, int32_t begin, int32_t end) {
  Taps t;
  t.start = axis.stride * y - axis.pad_begin;
  t.begin = t.start >= begin ? 0 : (begin - t.start + axis.dilation - 1) / axis.dilation;
  // The division rounds up also for what is not positive.
  const int32_t room = end - t.start;
  t.end = room <= 0 ? 0 : (room + axis.dilation - 1) / axis.dilation;
  t.end = t.end < axis.kernel ? t.end : axis.kernel;
  return t;
}

struct Window {
  uint32_t plane;
  int32_t out[3];
  Taps taps[3];
};

DEVICE Window WindowOf(const PoolArgs& args, uint32_t i) {
  Window w;
  uint32_t rest = i;
  const uint32_t in_plane = Split(&rest, args.out_plane);
  w.plane = rest;
  uint32_t position = in_plane;
  w.out[2] = static_cast<int32_t>(Split(&position, args.out_columns));
  w.out[1] = static_cast<int32_t>(Split(&position, args.out_rows));
  w.out[0] = static_cast<int32_t>(position);
  for (int a = 0; a < 3; ++a) w.taps[a] = TapsOf(args.axis[a], w.out[a], 0, args.axis[a].in);
  return w;
}

// Calls visit(z, y, x, offset) for each element of the window that is inside the input.
template <typename Visit>
DEVICE void ForEachTap(const PoolArgs& args, const Window& w, Visit visit) {
  const int64_t plane = int64_t{w.plane} * args.axis[0].in;
  for (int32_t i = w.taps[0].begin; i < w.taps[0].end; ++i) {
    const int32_t z = w.taps[0].start + i * args.axis[0].dilation;
    for (int32_t j = w.taps[1].begin; j < w.taps[1].end; ++j) {
      const int32_t y = w.taps[1].start + j * args.axis[1].dilation;
      for (int32_t k = w.taps[2].begin; k < w.taps[2].end; ++k) {
        const int32_t x = w.taps[2].start + k * args.axis[2].dilation;
        visit(z, y, x, ((plane + z) * args.axis[1].in + y) * args.axis[2].in + x);
      }
    }
  }
}

DEVICE int64_t IndexInWhole(const PoolArgs& args, uint32_t plane, const int32_t* at) {
  int64_t index = (plane / args.channels + args.origin[0]) * args.whole[1] + plane % args.channels +
                  args.origin[1];
  index *= args.whole[2] * args.whole[3] * args.whole[4];
  const int64_t z = at[0] + args.origin[2], y = at[1] + args.origin[3], x = at[2] + args.origin[4];
  return index + (args.column_major != 0 ? z + args.whole[2] * (y + args.whole[3] * x)
                                         : (z * args.whole[3] + y) * args.whole[4] + x);
}

template <typename W>
DEVICE void MaxPool(const PoolArgs& args, W least) {
  for (uint32_t i = FirstElement(); i < args.elements; i += ElementStep()) {
    const Window w = WindowOf(args, i);
    W best = least;
    bool found = false;
    int32_t where[3] = {0, 0, 0};
    ForEachTap(args, w, [&](int32_t z, int32_t y, int32_t x, int64_t offset) {
      const W value = Load<W>(args.type, args.in, offset);
      if (found && !(value > best || (value != value && best == best))) return;
      best = value, found = true;
      where[0] = z, where[1] = y, where[2] = x;
    });
    Store<W>(args.type, args.out, i, best);
    if (args.indices != nullptr) args.indices[i] = found ? IndexInWhole(args, w.plane, where) : -1;
  }
}

DEVICE double DivisorOf(const PoolArgs& args, const Window& w) {
  double count = 1;
  for (int a = 0; a < 3; ++a) {
    Taps t = w.taps[a];
    if (args.op == kPoolAverageWithPads) {
      const PoolAxis& axis = args.axis[a];
      t = TapsOf(axis, w.out[a], -axis.pad_begin, axis.in + axis.pad_end);
    }
    count *= t.end > t.begin ? t.end - t.begin : 0;
  }
  return count;
}

// A window over padding only is an average of zeros.
DEVICE double AverageOf(double sum, double divisor) { return divisor == 0 ? 0.0 : sum / divisor; }

DEVICE double PowerOf(double x, int32_t p) {
  double result = 1;
  for (int32_t k = 0; k < p; ++k) result *= x;
  return result;
}

DEVICE void SumPool(const PoolArgs& args) {
  for (uint32_t i = FirstElement(); i < args.elements; i += ElementStep()) {
    const Window w = WindowOf(args, i);
    double sum = 0;
    ForEachTap(args, w, [&](int32_t, int32_t, int32_t, int64_t offset) {
      const double x = Load<double>(args.type, args.in, offset);
      sum += args.op == kPoolLp ? PowerOf(fabs(x), args.power) : x;
    });
    if (args.op == kPoolLp)
      sum = args.power == 1 ? sum : args.power == 2 ? sqrt(sum) : pow(sum, 1.0 / args.power);
    else sum = AverageOf(sum, DivisorOf(args, w));
    Store<double>(args.type, args.out, i, sum);
  }
}

}  // namespace

BOUNDED_KERNEL(256, max_pool_float, PoolArgs args) {
  if (args.type == kTypeF64) MaxPool<double>(args, -static_cast<double>(INFINITY));
  else MaxPool<float>(args, -INFINITY);
}
BOUNDED_KERNEL(256, max_pool_int, PoolArgs args) {
  MaxPool<int32_t>(args, args.type == kTypeI8 ? -128 : 0);
}
BOUNDED_KERNEL(256, sum_pool, PoolArgs args) { SumPool(args); }

}  // namespace msrt::cuda

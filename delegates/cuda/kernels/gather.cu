// Gathers. An index outside its axis is reported through the fault word of the stream; the element
// becomes zero.
#include "delegates/cuda/kernels/elements.h"
#include "delegates/cuda/kernels/index.h"

namespace msrt::cuda {
namespace {

DEVICE int64_t IndexAt(int32_t type, const void* indices, int64_t i) {
  return type == kTypeI64 ? static_cast<const int64_t*>(indices)[i]
                          : static_cast<const int32_t*>(indices)[i];
}

// Index i as a position on an axis; -1 where it is outside.
DEVICE int64_t Checked(int32_t type, const void* indices, int64_t i, int64_t extent,
                       uint64_t* fault) {
  const int64_t index = IndexAt(type, indices, i);
  if (index >= -extent && index < extent) return index < 0 ? index + extent : index;
  ReportFault(fault, kFaultIndex, static_cast<uint64_t>(i));
  return -1;
}

template <typename T>
DEVICE void Gather(const GatherArgs& args) {
  for (uint32_t i = FirstElement(); i < args.elements; i += ElementStep()) {
    uint32_t outer = i;
    const uint32_t inner = Split(&outer, args.inner), number = Split(&outer, args.count);
    const int64_t row = Checked(args.index_type, args.indices, number, args.extent, args.fault);
    T value{};
    if (row >= 0)
      value =
          static_cast<const T*>(args.in)[(outer * args.extent + row) * args.inner.divisor + inner];
    static_cast<T*>(args.out)[i] = value;
  }
}

template <typename T>
DEVICE void GatherElements(const GatherElementsArgs& args) {
  for (uint32_t i = FirstElement(); i < args.space.elements; i += ElementStep()) {
    const int64_t row = Checked(args.index_type, args.indices, i, args.extent, args.fault);
    uint32_t rest = i;
    int64_t from = 0;
    for (int d = args.space.rank - 1; d >= 0; --d) {
      const uint32_t x = d > 0 ? Split(&rest, args.space.dims[d]) : rest;
      from += (d == args.axis ? row : int64_t{x}) * args.in_strides[d];
    }
    T value{};
    if (row >= 0) value = static_cast<const T*>(args.in)[from];
    static_cast<T*>(args.out)[i] = value;
  }
}

template <typename T>
DEVICE void GatherNd(const GatherNdArgs& args) {
  for (uint32_t i = FirstElement(); i < args.elements; i += ElementStep()) {
    uint32_t tuple = i;
    const uint32_t inner = Split(&tuple, args.slice);
    int64_t from = Quotient(tuple, args.tuples_in_batch) * args.batch_elements + inner;
    bool inside = true;
    for (int k = 0; k < args.tuple; ++k) {
      const int64_t at = Checked(args.index_type, args.indices, int64_t{tuple} * args.tuple + k,
                                 args.extent[k], args.fault);
      inside = inside && at >= 0;
      from += at * args.strides[k];
    }
    T value{};
    if (inside) value = static_cast<const T*>(args.in)[from];
    static_cast<T*>(args.out)[i] = value;
  }
}

}  // namespace

#define MSRT_WIDTHS(function, kernel, Args)                                 \
  BOUNDED_KERNEL(256, kernel##_8, Args args) { function<uint8_t>(args); }   \
  BOUNDED_KERNEL(256, kernel##_16, Args args) { function<uint16_t>(args); } \
  BOUNDED_KERNEL(256, kernel##_32, Args args) { function<uint32_t>(args); } \
  BOUNDED_KERNEL(256, kernel##_64, Args args) { function<uint64_t>(args); }
MSRT_WIDTHS(Gather, gather, GatherArgs)
MSRT_WIDTHS(GatherElements, gather_elements, GatherElementsArgs)
MSRT_WIDTHS(GatherNd, gather_nd, GatherNdArgs)

}  // namespace msrt::cuda

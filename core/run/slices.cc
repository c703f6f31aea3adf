#include "core/run/slices.h"

#include <cstring>

#include "core/run/results.h"

namespace msrt {
namespace {

// Grows the memory of a result whose number of slices is not known.
Status GrowWhole(size_t bytes, size_t used_bytes, ScannedResult* result, Budget* budget) {
  std::shared_ptr<Block> larger;
  MSRT_RETURN_IF_ERROR(budget->Ensure(&larger, 2 * bytes, "a scanned result"));
  std::memcpy(larger->data(), result->whole.block->data(), used_bytes);
  std::swap(result->whole.block, larger);
  budget->Release(&larger);
  return OkStatus();
}

}  // namespace

Result<SliceGeometry> SliceAlong(DType dtype, const Dims& dims, int64_t axis) {
  if (BitsOf(dtype) < 8)
    return Unsupported("elements of ", dtype,
                       " are packed within bytes and cannot be scanned; cast them first");
  const int rank = dims.rank();
  if (axis < -rank || axis >= rank)
    return InvalidArgument("axis ", axis, " of a tensor of shape ", dims, " cannot be scanned");
  const int a = static_cast<int>(axis < 0 ? axis + rank : axis);
  return SliceGeometry{dims.product(0, a), dims[a], BytesOf(dtype, dims.product(a + 1, rank))};
}

void CopySlices(std::byte* to, size_t to_stride, const std::byte* from, size_t from_stride,
                const SliceGeometry& s) {
  for (int64_t o = 0; o < s.outer; ++o) {
    if (s.inner_bytes != 0)
      std::memcpy(to + static_cast<size_t>(o) * to_stride,
                  from + static_cast<size_t>(o) * from_stride, s.inner_bytes);
  }
}

Status StackSlice(const Stacking& stacking, size_t number, ScannedResult* result, Budget* budget) {
  if (result->slice.value.kind != TypeKind::kTensor)
    return InvalidArgument("scanned result ", number, " is not a tensor");
  const TensorView slice = result->slice.value.tensor;
  const int64_t axis = stacking.axis;
  const int rank = slice.dims.rank() + 1;
  if (rank > kMaxRank || axis < -rank || axis >= rank)
    return InvalidArgument("scanned result ", number, " of shape ", slice.dims,
                           " cannot be stacked along axis ", axis);
  const int a = static_cast<int>(axis < 0 ? axis + rank : axis);
  if (result->filled != 0) {
    Dims before = result->whole.value.tensor.dims;
    before.erase(a);
    if (!(before == slice.dims)) {
      return InvalidArgument("scanned result ", number, " has shape ", slice.dims, " in iteration ",
                             result->filled, ", before it was ", before);
    }
  }
  Dims dims = slice.dims;
  const bool counted = stacking.trips >= 0;
  dims.insert(a, counted ? stacking.trips : result->filled + 1);
  MSRT_ASSIGN_OR_RETURN(const SliceGeometry s, SliceAlong(slice.dtype, dims, a));
  const size_t bytes = BytesOf(slice.dtype, dims.elements());
  if (!counted && result->filled != 0 && result->whole.block->bytes() < bytes)
    MSRT_RETURN_IF_ERROR(
        GrowWhole(bytes, static_cast<size_t>(result->filled) * s.inner_bytes, result, budget));
  MSRT_ASSIGN_OR_RETURN(
      const TensorView whole,
      AllocateResult(&result->whole, Type::Tensor(slice.dtype, dims), "a scanned result", budget));
  const int64_t at = stacking.backwards ? s.length - 1 - result->filled : result->filled;
  CopySlices(whole.As<std::byte>() + static_cast<size_t>(at) * s.inner_bytes,
             static_cast<size_t>(s.length) * s.inner_bytes, slice.As<std::byte>(), s.inner_bytes,
             s);
  ++result->filled;
  return OkStatus();
}

}  // namespace msrt

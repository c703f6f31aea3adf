#include "core/run/results.h"

#include <cstring>

namespace msrt {

Status CheckBound(const ResultCell& cell, const Type& type, std::string_view name) {
  if (!cell.bound.present() || (cell.bound.dtype == type.dtype && cell.bound.dims == type.dims))
    return OkStatus();
  return InvalidArgument("output '", name, "' is ", type, ", but memory for ", cell.bound.dtype,
                         cell.bound.dims, " is bound to it");
}

Result<TensorView> AllocateResult(ResultCell* cell, const Type& type, std::string_view name,
                                  Budget* budget) {
  const TensorView& last = cell->value.tensor;
  const bool there = cell->block != nullptr && last.data == cell->block->data() &&
                     last.dtype == type.dtype && last.dims == type.dims;
  if (there && !cell->bound.present() && cell->value.kind == TypeKind::kTensor &&
      cell->value.device == nullptr)
    return last;
  TensorView view{type.dtype, type.dims, Layout::kPlain, nullptr};
  MSRT_RETURN_IF_ERROR(CheckBound(*cell, type, name));
  if (cell->bound.present() && cell->bound_device == nullptr) {
    view.data = cell->bound.data;
    cell->value = RunValue::Of(view, cell->bound_owner);
    return view;
  }
  if (cell->block == nullptr || cell->block->bytes() < type.bytes()) {
    MSRT_RETURN_IF_ERROR(budget->Ensure(&cell->block, type.bytes(), StrCat("output '", name, "'")));
  }
  view.data = cell->block->data();
  cell->value = RunValue::Of(view, cell->block);
  return view;
}

Status Deliver(ResultCell* cell, const RunValue& value, ResultCell* source, std::string_view name,
               Budget* budget) {
  if (value.kind != TypeKind::kTensor || (value.lasting && !cell->bound.present())) {
    cell->value = value;
    return OkStatus();
  }
  const TensorView from = value.tensor;  // `value` may be that of either cell
  if (source != nullptr && !cell->bound.present()) {
    std::swap(cell->block, source->block);
    source->value = {};
    cell->value = RunValue::Of(from, cell->block);
    // Another owner of this memory may pass it back as an input.
    if (source->block.use_count() > 1) budget->Release(&source->block);
    return OkStatus();
  }
  const Type type = Type::Tensor(from.dtype, from.dims);
  MSRT_ASSIGN_OR_RETURN(const TensorView to, AllocateResult(cell, type, name, budget));
  if (type.bytes() != 0) std::memmove(to.data, from.data, type.bytes());
  return OkStatus();
}

Result<RunValue> LastingCopy(const RunValue& value, Budget* budget) {
  if (value.kind != TypeKind::kTensor || value.lasting || !value.present()) return value;
  const TensorView& from = value.tensor;
  const size_t bytes = BytesOf(from.dtype, from.elements());
  MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<Block> block,
                        budget->Make(bytes, "an element of a list"));
  if (bytes != 0) std::memcpy(block->data(), from.data, bytes);
  RunValue copy = RunValue::Of({from.dtype, from.dims, Layout::kPlain, block->data()}, block);
  copy.lasting = true;
  return copy;
}

}  // namespace msrt

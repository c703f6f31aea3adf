#include "delegates/sdk/packed_form.h"

namespace msrt::sdk {

Result<PackedForm> PackedForm::Make(const CompileContext& context, const void* constant,
                                    const Packing& packing, size_t bytes,
                                    FunctionRef<Status(std::byte*)> pack) {
  PackedForm form;
  const bool named = context.forms != nullptr && !packing.kernel.empty();
  if (named)
    form.data_ = static_cast<const std::byte*>(context.forms->Find(constant, packing, bytes));
  if (form.data_ != nullptr) return form;
  MSRT_ASSIGN_OR_RETURN(form.own_, Block::Make(context.allocator, bytes, "packed weights"));
  MSRT_RETURN_IF_ERROR(pack(form.own_.data()));
  if (context.forms != nullptr)  // counts forms without a name too
    MSRT_RETURN_IF_ERROR(context.forms->Keep(constant, packing, {form.own_.data(), bytes}));
  form.data_ = form.own_.data();
  return form;
}

}  // namespace msrt::sdk

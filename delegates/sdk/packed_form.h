// A constant in the form that a kernel computes with: where the model's file has it, or packed into
// memory of its own.
#pragma once

#include "delegates/sdk/delegate.h"

namespace msrt::sdk {

class PackedForm {
 public:
  PackedForm() = default;
  // `constant` is where the constant's bytes begin, as the host gave them. `pack` writes all of the
  // `bytes` bytes. A packing without a name for its kernel is one that files cannot tell from
  // others: it is always packed.
  static Result<PackedForm> Make(const CompileContext& context, const void* constant,
                                 const Packing& packing, size_t bytes,
                                 FunctionRef<Status(std::byte*)> pack);

  // Aligned to kTensorAlignment.
  const std::byte* data() const { return data_; }
  // Of memory of its own.
  size_t own_bytes() const { return own_.bytes(); }

 private:
  const std::byte* data_ = nullptr;
  Block own_;
};

}  // namespace msrt::sdk

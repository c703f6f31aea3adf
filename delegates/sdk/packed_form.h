// A constant in the form that a kernel computes with: mapped from the model's file, or packed into
// its own memory.
#pragma once

#include "delegates/sdk/delegate.h"

namespace msrt::sdk {

class PackedForm {
 public:
  PackedForm() = default;
  // `constant` points to the constant's bytes, as the host passed them. `pack` writes all of the
  // `bytes` bytes. A packing whose kernel has no name cannot be looked up in a file, so it is
  // always packed anew.
  static Result<PackedForm> Make(const CompileContext& context, const void* constant,
                                 const Packing& packing, size_t bytes,
                                 FunctionRef<Status(std::byte*)> pack);

  // Aligned to kTensorAlignment.
  const std::byte* data() const { return data_; }
  // Bytes of its own memory; 0 if the form is in the model's file.
  size_t own_bytes() const { return own_.bytes(); }

 private:
  const std::byte* data_ = nullptr;
  Block own_;
};

}  // namespace msrt::sdk

#include "core/run/packed_inputs.h"

#include "core/base/copy_known_fields.h"
#include "core/delegate/boundary.h"

namespace msrt {

void PackedInputs::AddTo(msrt_run_args* args) {
  args->packed_context = this;
  args->packed_input = [](void* context, size_t input, const msrt_packing* packing, size_t bytes,
                          msrt_status (*pack)(void*, void*), void* user, const void** out) {
    return ToStatusCode([&]() -> Status {
      if (packing == nullptr) return InvalidArgument("packed_input: packing is NULL");
      const auto call = [&](std::byte* to) { return CallCallback([&] { return pack(user, to); }); };
      MSRT_ASSIGN_OR_RETURN(*out, static_cast<PackedInputs*>(context)->Get(
                                      input, CopyKnownFields(*packing), bytes, call));
      return OkStatus();
    });
  };
}

}  // namespace msrt

#include "core/run/state_inputs.h"

#include "core/base/copy_known_fields.h"
#include "core/delegate/boundary.h"

namespace msrt {

void StateInputs::ReadVersions() {
  versions_.resize(step_.input_count);
  for (size_t i = 0; i < versions_.size(); ++i) {
    const Location& l = step_.locations[i];
    if (l.kind == Location::kState || l.kind == Location::kStateCopy)
      versions_[i] = states_.Version(l.index, l.offset % 2 != 0);
  }
}

void StateInputs::AddTo(msrt_run_args* args) const {
  args->input_versions = versions_.empty() ? nullptr : versions_.data();
  args->packed_context = const_cast<StateInputs*>(this);
  args->packed_input = [](void* context, size_t input, const msrt_packing* packing, size_t bytes,
                          msrt_status (*pack)(void*, void*), void* user, const void** out) {
    return ToStatusCode([&]() -> Status {
      const auto call = [&](std::byte* to) { return CallCallback([&] { return pack(user, to); }); };
      MSRT_ASSIGN_OR_RETURN(
          *out, static_cast<const StateInputs*>(context)->Packed(input, packing, bytes, call));
      return OkStatus();
    });
  };
}

Result<const void*> StateInputs::Packed(size_t input, const msrt_packing* packing, size_t bytes,
                                        FunctionRef<Status(std::byte*)> pack) const {
  if (input >= step_.input_count || packing == nullptr)
    return InvalidArgument("packed_input: there is no input ", input, ", or packing is NULL");
  const Location& l = step_.locations[input];
  if (l.kind != Location::kState) return states_.PackedCopy(bytes, pack);
  return states_.Packed(l.index, l.offset != 0, CopyKnownFields(*packing), bytes, pack);
}

}  // namespace msrt

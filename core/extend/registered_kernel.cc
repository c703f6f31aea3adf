#include "core/extend/registered_kernel.h"

#include <algorithm>
#include <cstring>

#include "core/base/copy_known_fields.h"
#include "core/delegate/arithmetic.h"
#include "core/extend/custom_entry.h"
#include "core/graph/dtype.h"

namespace msrt {
namespace {

constexpr size_t kMaxNameBytes = 128, kMaxPairs = 1024;

// Names are printable and short enough for a message. Only display names may contain spaces.
Status CheckName(const char* name, std::string_view field, bool spaces) {
  if (name == nullptr || *name == '\0') return InvalidArgument("kernel.", field, " is empty");
  const size_t length = strnlen(name, kMaxNameBytes + 1);
  if (length > kMaxNameBytes)
    return InvalidArgument("kernel.", field, " is longer than ", kMaxNameBytes, " bytes");
  for (size_t i = 0; i < length; ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (c < ' ' || c == 0x7f || (c == ' ' && !spaces)) {
      return InvalidArgument("kernel.", field, " '", name, "' has a ",
                             c == ' ' ? "space" : "control character");
    }
  }
  return OkStatus();
}

Status CheckNames(const msrt_kernel_desc& d) {
  MSRT_RETURN_IF_ERROR(CheckName(d.op, "op", false));
  if (d.domain != nullptr && *d.domain != '\0')
    MSRT_RETURN_IF_ERROR(CheckName(d.domain, "domain", false));
  return CheckName(d.name, "name", true);
}

Status CheckFields(const msrt_kernel_desc& d) {
  if (d.run == nullptr) return InvalidArgument("kernel.run is null");
  MSRT_RETURN_IF_ERROR(CheckArithmetic(d.arithmetic));
  if (d.version < 0)
    return InvalidArgument("kernel.version is ", d.version, ", must be at least 0");
  constexpr uint32_t kAllTypeBits = MSRT_BIT(kDTypeCount) - 2,
                     kAllLayoutBits = MSRT_BIT(kLayoutCount) - 1;
  if ((d.types & ~kAllTypeBits) != 0)
    return InvalidArgument("kernel.types is ", d.types,
                           ", which has bits that are no element type");
  if ((d.layouts & ~kAllLayoutBits) != 0)
    return InvalidArgument("kernel.layouts is ", d.layouts, ", which has bits that are no layout");
  if (d.in_place_count > kMaxPairs)
    return InvalidArgument("kernel.in_place_count is ", d.in_place_count, ", must be at most ",
                           kMaxPairs);
  if (d.in_place_count != 0 && d.in_place == nullptr)
    return InvalidArgument("kernel.in_place is null, but in_place_count ", d.in_place_count);
  if ((d.pack == nullptr) != (d.packed_destroy == nullptr)) {
    return InvalidArgument(
        "kernel.pack and kernel.packed_destroy belong together: give both or none");
  }
  return OkStatus();
}

Status AddMeaning(const msrt_op_desc& desc, const CallbackServices& services,
                  RegisteredKernel* kernel) {
  if (kernel->domain == "msrt")
    return InvalidArgument("meaning: domain msrt is the library's own; define ops in another");
  const int32_t version = std::max(kernel->desc.version, 1);
  MSRT_ASSIGN_OR_RETURN(kernel->meaning,
                        MakeCustomEntry({kernel->domain, kernel->op, kernel->name, version, &desc,
                                         kernel->desc.user, kernel->owner, services}));
  return OkStatus();
}

}  // namespace

Result<RegisteredKernel> RegisteredKernel::Make(const msrt_kernel_desc& given,
                                                std::shared_ptr<const void> library,
                                                const CallbackServices& services) {
  // run is the last field of the first version of the struct.
  if (given.struct_size < offsetof(msrt_kernel_desc, run) + sizeof given.run) {
    return InvalidArgument("kernel.struct_size is ", given.struct_size, "; set it with MSRT_INIT");
  }
  msrt_kernel_desc d = CopyKnownFields(given);
  if (d.plugin_abi != MSRT_PLUGIN_ABI) {
    return Unsupported("kernel.plugin_abi is ", d.plugin_abi, ", this library has ",
                       MSRT_PLUGIN_ABI, "; build the kernel with this library's msrt_plugin.h");
  }
  MSRT_RETURN_IF_ERROR(CheckNames(d));
  RegisteredKernel kernel;
  kernel.name = d.name;
  const auto within = [&](Status status) {
    return std::move(status).Within(StrCat("kernel '", kernel.name, "'"));
  };
  MSRT_RETURN_IF_ERROR(within(CheckFields(d)));
  kernel.domain = d.domain == nullptr ? "" : d.domain;
  kernel.op = d.op;
  kernel.arithmetic = d.arithmetic == nullptr ? "" : d.arithmetic;
  kernel.in_place.assign(d.in_place, d.in_place + d.in_place_count);
  kernel.owner = std::make_shared<UserOwner>(d.user, d.destroy, std::move(library));
  kernel.desc = d;
  kernel.desc.domain = kernel.desc.op = kernel.desc.name = nullptr;
  kernel.desc.arithmetic = nullptr;
  kernel.desc.in_place = nullptr;
  kernel.desc.meaning = nullptr;
  if (d.meaning != nullptr) MSRT_RETURN_IF_ERROR(within(AddMeaning(*d.meaning, services, &kernel)));
  return kernel;
}

}  // namespace msrt

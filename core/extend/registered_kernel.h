// A kernel that an application registered: a checked copy of its msrt_kernel_desc, and the owner of
// the code behind it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/abi/msrt_plugin.h"
#include "core/base/status.h"
#include "core/delegate/callback_services.h"
#include "core/extend/user_owner.h"

namespace msrt {

struct OpDef;  // ops/op_def.h

// Copies share the owner.
struct RegisteredKernel {
  std::string domain, op, name;
  std::string arithmetic;  // empty: no promise
  std::vector<msrt_in_place> in_place;
  // Its strings, in_place and meaning are null: the caller may have freed them.
  msrt_kernel_desc desc;
  std::shared_ptr<UserOwner> owner;
  std::shared_ptr<const OpDef> meaning;  // the op that the kernel defines; null: none

  // Checks and copies. `library` (may be null) stays loaded as long as the kernel lives. The kernel
  // does not own its user pointer yet.
  static Result<RegisteredKernel> Make(const msrt_kernel_desc& desc,
                                       std::shared_ptr<const void> library,
                                       const CallbackServices& services = {});
  // "com.example.Blur", "Relu".
  std::string OpName() const { return domain.empty() ? op : domain + "." + op; }
};

}  // namespace msrt

// A CustomOp that calls the application's callbacks.
#pragma once

#include <memory>
#include <string>

#include "core/abi/msrt_plugin.h"
#include "core/delegate/callback_services.h"
#include "ops/custom_op.h"

namespace msrt {

struct CallbackOwner {
  void* user;
  std::shared_ptr<const void> owner;  // owns `user` and keeps the code of the callbacks loaded
  std::string kernel;                 // for messages
  int32_t version;
  CallbackServices services;
};

// Requires a complete `desc`: infer is set, and either none or all of axes, operands and results.
std::unique_ptr<const CustomOp> MakeCallbackOp(const msrt_op_desc& desc, CallbackOwner owner);

}  // namespace msrt

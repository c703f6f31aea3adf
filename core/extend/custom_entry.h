// The registry entry of a user-defined op: an OpDef made from msrt_op_desc. The results of its
// callbacks are checked in callback_op.cc.
#pragma once

#include <memory>
#include <string>

#include "core/abi/msrt_plugin.h"
#include "core/delegate/callback_services.h"
#include "ops/op_def.h"

namespace msrt {

struct CustomEntryArgs {
  std::string domain, op;
  std::string kernel;  // the kernel that defines it, for messages
  int32_t version = 1;
  const msrt_op_desc* desc = nullptr;  // copied
  void* user = nullptr;
  std::shared_ptr<const void> owner;  // owns `user` and keeps the code of the callbacks loaded
  CallbackServices services = {};
};

Result<std::shared_ptr<const OpDef>> MakeCustomEntry(const CustomEntryArgs& args);

}  // namespace msrt

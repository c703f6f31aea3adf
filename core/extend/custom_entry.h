// The entry of an op that an application defines: msrt_op_desc of msrt_plugin.h as an OpDef. What
// the callbacks answer is checked here.
#pragma once

#include <memory>
#include <string>

#include "core/abi/msrt_plugin.h"
#include "core/delegate/callback_services.h"
#include "ops/op_def.h"

namespace msrt {

struct CustomEntryArgs {
  std::string domain, op;
  std::string kernel;  // that brings it; for messages
  int32_t version = 1;
  const msrt_op_desc* desc = nullptr;  // copied
  void* user = nullptr;
  std::shared_ptr<const void> owner;  // of user and of the code behind the callbacks
  CallbackServices services = {};
};

Result<std::shared_ptr<const OpDef>> MakeCustomEntry(const CustomEntryArgs& args);

}  // namespace msrt

// The boundary to plugin code, in both directions. Calls into delegates and callbacks turn returned
// codes and exceptions into a Status; functions that plugins call turn a Status into a code.
#pragma once

#include <string>
#include <string_view>

#include "core/abi/msrt_plugin.h"
#include "core/base/catch_as_status.h"

namespace msrt {

// Stores the reason why this thread's call in progress fails. Implements msrt_host_api.fail.
void SetFailureText(const char* message) noexcept;

namespace boundary_internal {

extern constinit thread_local bool has_failure_text;
Status FailureOfDelegate(msrt_status code, std::string_view kind, std::string_view name);
Status FailureOfCallback(msrt_status code);

// Discards the text of an earlier call first: it does not belong to this call.
template <typename Call>
Status CallAndCatch(msrt_status* code, Call&& call) {
  has_failure_text = false;
  return CatchAsStatus([&] { *code = call(); });
}

}  // namespace boundary_internal

// Calls a function of a delegate or device. msrt_plugin.h defines its codes: all but a few become
// kDelegate. The message is the text that the callee set; without one it names the callee. `kind`
// is "delegate" or "device".
template <typename Call>
Status CallDelegate(std::string_view kind, std::string_view name, Call&& call) {
  msrt_status code = MSRT_OK;
  Status thrown = boundary_internal::CallAndCatch(&code, call);
  if (!thrown.ok()) return std::move(thrown).Within(StrCat(kind, " ", name));
  return code == MSRT_OK ? OkStatus() : boundary_internal::FailureOfDelegate(code, kind, name);
}

// Calls a function that does not belong to a delegate, so no delegate can be left out: a callback
// of an op, a pass, an importer, a plugin's entry. The caller adds its name to the error.
template <typename Call>
Status CallCallback(Call&& call) {
  msrt_status code = MSRT_OK;
  Status thrown = boundary_internal::CallAndCatch(&code, call);
  if (!thrown.ok()) return thrown;
  return code == MSRT_OK ? OkStatus() : boundary_internal::FailureOfCallback(code);
}

// Runs a function that plugins call: nothing may unwind into their code. Stores the text of an
// error, so that the plugin can pass the code on.
template <typename Body>
msrt_status ToStatusCode(const Body& body) noexcept {
  try {
    Status status;
    Status thrown = CatchAsStatus([&] { status = body(); });
    if (!thrown.ok()) status = std::move(thrown);
    if (!status.ok()) SetFailureText(status.message().c_str());
    return static_cast<msrt_status>(status.code());
  } catch (...) {  // no memory even for the error
    return MSRT_OUT_OF_MEMORY;
  }
}

}  // namespace msrt

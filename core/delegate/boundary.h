// The door of msrt_plugin.h, both ways: calls into delegates and callbacks, whatever they return or
// throw as a Status, and answers to what they call of ours.
#pragma once

#include <string>
#include <string_view>

#include "core/abi/msrt_plugin.h"
#include "core/base/catch_as_status.h"

namespace msrt {

// Keeps why the call in progress in this thread fails: what msrt_host_api.fail does.
void KeepFailure(const char* message) noexcept;

namespace door_internal {

extern constinit thread_local bool failure_kept;
Status FailureOfDelegate(msrt_status code, std::string_view delegate);
Status FailureOfRule(msrt_status code);

// The text of an earlier call, which succeeded after all or whose error nobody asked about, is none
// of this one.
template <typename Call>
Status Called(msrt_status* code, Call&& call) {
  failure_kept = false;
  return CatchAsStatus([&] { *code = call(); });
}

}  // namespace door_internal

// A function of a delegate. What its codes mean stands in msrt_plugin.h: all but a few come back as
// kDelegate. The message is the text that it gave; without one it names the delegate.
template <typename Call>
Status CallDelegate(std::string_view delegate, Call&& call) {
  msrt_status code = MSRT_OK;
  Status thrown = door_internal::Called(&code, call);
  if (!thrown.ok()) return std::move(thrown).Within(StrCat("delegate ", delegate));
  return code == MSRT_OK ? OkStatus() : door_internal::FailureOfDelegate(code, delegate);
}

// A function that is no delegate's, so that there is nobody to leave out: the meaning of an op, a
// pass, an importer, a plugin's entry. The caller names it.
template <typename Call>
Status CallCallback(Call&& call) {
  msrt_status code = MSRT_OK;
  Status thrown = door_internal::Called(&code, call);
  if (!thrown.ok()) return thrown;
  return code == MSRT_OK ? OkStatus() : door_internal::FailureOfRule(code);
}

// A function of ours that they call: nothing may unwind into their code. The text of an error is
// kept, for them to pass the code on.
template <typename Body>
msrt_status ToStatusCode(const Body& body) noexcept {
  try {
    Status status;
    Status thrown = CatchAsStatus([&] { status = body(); });
    if (!thrown.ok()) status = std::move(thrown);
    if (!status.ok()) KeepFailure(status.message().c_str());
    return static_cast<msrt_status>(status.code());
  } catch (...) {  // no memory even for the error
    return MSRT_OUT_OF_MEMORY;
  }
}

}  // namespace msrt

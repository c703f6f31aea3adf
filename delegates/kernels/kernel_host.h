// The host's table of functions as a registered kernel gets it. It forwards every call to the host
// and adds the kernel's name to the text of errors.
#pragma once

#include <string>

#include "core/abi/msrt_plugin.h"
#include "core/base/catch_as_status.h"

namespace msrt {

class KernelHost {
 public:
  // `host` and `kernel` must outlive this object, and this object the table that kernels get.
  KernelHost(const msrt_host_api* host, const std::string& kernel);
  KernelHost(const KernelHost&) = delete;
  KernelHost& operator=(const KernelHost&) = delete;

  // Calls `callback` with the table. Supplies a text for errors without one and for exceptions.
  template <typename Callback>
  msrt_status Call(const Callback& callback) const {
    reported_ = false;
    msrt_status code = MSRT_OK;
    if (const Status thrown = CatchAsStatus([&] { code = callback(&api_); }); !thrown.ok()) {
      Report(thrown.message().c_str());
      return static_cast<msrt_status>(thrown.code());
    }
    if (code != MSRT_OK && !reported_) ReportWithoutText(code);
    return code;
  }

 private:
  void Report(const char* message) const noexcept;
  void ReportWithoutText(msrt_status code) const noexcept;

  static thread_local bool reported_;  // the callback on this thread has reported a text
  const msrt_host_api* host_;
  const std::string& kernel_;
  msrt_host_api api_;
};

}  // namespace msrt

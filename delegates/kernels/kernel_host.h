// The host's table as a kernel gets it: the same, but the text of an error names the kernel.
#pragma once

#include <string>

#include "core/abi/msrt_plugin.h"
#include "core/base/catch_as_status.h"

namespace msrt {

class KernelHost {
 public:
  // `host` and `kernel` must outlive this object, which is what the table points to.
  KernelHost(const msrt_host_api* host, const std::string& kernel);
  KernelHost(const KernelHost&) = delete;
  KernelHost& operator=(const KernelHost&) = delete;

  // Runs a callback with the table. An error without a text gets one, and so does what it throws.
  template <typename Callback>
  msrt_status Call(const Callback& callback) const {
    said_ = false;
    msrt_status code = MSRT_OK;
    if (const Status thrown = CatchAsStatus([&] { code = callback(&api_); }); !thrown.ok()) {
      Say(thrown.message().c_str());
      return static_cast<msrt_status>(thrown.code());
    }
    if (code != MSRT_OK && !said_) SayWithoutWords(code);
    return code;
  }

 private:
  void Say(const char* message) const noexcept;
  void SayWithoutWords(msrt_status code) const noexcept;

  static thread_local bool said_;  // the callback that runs in this thread gave a text
  const msrt_host_api* host_;
  const std::string& kernel_;
  msrt_host_api api_;
};

}  // namespace msrt

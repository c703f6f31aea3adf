#include "delegates/kernels/kernel_host.h"

#include <new>

#include "core/base/str_cat.h"

namespace msrt {

thread_local bool KernelHost::reported_ = false;

KernelHost::KernelHost(const msrt_host_api* host, const std::string& kernel)
    : host_(host), kernel_(kernel), api_(*host) {
  api_.host = this;
  api_.fail = [](void* self, const char* message) {
    static_cast<const KernelHost*>(self)->Report(message);
  };
  api_.log = [](void* self, int32_t level, const char* line) {
    const msrt_host_api& h = *static_cast<const KernelHost*>(self)->host_;
    h.log(h.host, level, line);
  };
  api_.allocate = [](void* self, size_t bytes, size_t alignment) {
    const msrt_host_api& h = *static_cast<const KernelHost*>(self)->host_;
    return h.allocate(h.host, bytes, alignment);
  };
  api_.deallocate = [](void* self, void* pointer, size_t bytes, size_t alignment) {
    const msrt_host_api& h = *static_cast<const KernelHost*>(self)->host_;
    h.deallocate(h.host, pointer, bytes, alignment);
  };
  api_.parallel_for = [](void* self, int64_t count, void (*task)(void*, int64_t), void* context) {
    const msrt_host_api& h = *static_cast<const KernelHost*>(self)->host_;
    const msrt_status code = h.parallel_for(h.host, count, task, context);
    if (code != MSRT_OK) reported_ = true;  // the host has reported its own text
    return code;
  };
  if (host->find_packed == nullptr || host->keep_packed == nullptr) return;
  api_.find_packed = [](void* self, const void* constant, const msrt_packing* packing,
                        size_t bytes) {
    const msrt_host_api& h = *static_cast<const KernelHost*>(self)->host_;
    return h.find_packed(h.host, constant, packing, bytes);
  };
  api_.keep_packed = [](void* self, const void* constant, const msrt_packing* packing,
                        const void* data, size_t bytes) {
    const msrt_host_api& h = *static_cast<const KernelHost*>(self)->host_;
    return h.keep_packed(h.host, constant, packing, data, bytes);
  };
}

void KernelHost::Report(const char* message) const noexcept {
  reported_ = true;
  try {
    host_->fail(host_->host,
                StrCat("kernel '", kernel_, "': ", message == nullptr ? "" : message).c_str());
  } catch (const std::bad_alloc&) {
    host_->fail(host_->host, message);
  }
}

void KernelHost::ReportWithoutText(msrt_status code) const noexcept {
  try {
    Report(StrCat("failed without saying why (status ", code, ")").c_str());
  } catch (const std::bad_alloc&) {
    Report("failed without saying why");
  }
}

}  // namespace msrt

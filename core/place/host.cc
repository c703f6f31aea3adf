#include "core/place/host.h"

namespace msrt {
namespace {

thread_local std::string t_failure;

}  // namespace

Host::Host(Allocator* allocator, std::shared_ptr<ParallelFor> parallel, Log log, std::optional<Machine> machine,
           std::shared_ptr<PackedForms> forms)
    : allocator_(allocator),
      parallel_(std::move(parallel)),
      log_(std::move(log)),
      forms_(std::move(forms)),
      api_(MSRT_INIT(msrt_host_api)) {
  const Machine scale = machine.value_or(TypicalMachine(parallel_->threads()));
  api_.flops_per_second = scale.flops_per_second;
  api_.bytes_per_second = scale.bytes_per_second;
  api_.threads = parallel_->threads();
  api_.host = this;
  api_.fail = [](void*, const char* message) { KeepFailure(message); };
  api_.log = [](void* host, int32_t level, const char* line) {
    const int32_t known = std::clamp<int32_t>(level, MSRT_LOG_ERROR, MSRT_LOG_DEBUG);
    static_cast<Host*>(host)->log_(static_cast<LogLevel>(known), line);
  };
  api_.allocate = [](void* host, size_t bytes, size_t alignment) {
    return static_cast<Host*>(host)->allocator_->Allocate(bytes, alignment);
  };
  api_.deallocate = [](void* host, void* pointer, size_t bytes, size_t alignment) {
    static_cast<Host*>(host)->allocator_->Free(pointer, bytes, alignment);
  };
  api_.parallel_for = [](void* host, int64_t count, void (*task)(void*, int64_t), void* context) -> msrt_status {
    const Status status = static_cast<Host*>(host)->parallel_->Run(count, [&](int64_t i) { task(context, i); });
    if (!status.ok()) KeepFailure(status.message().c_str());
    return static_cast<msrt_status>(status.code());
  };
  if (forms_ == nullptr) return;
  api_.find_packed = [](void* host, const void* constant, const msrt_packing* packing, size_t bytes) -> const void* {
    try {
      return static_cast<Host*>(host)->forms_->Find(constant, *packing, bytes);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  };
  api_.keep_packed = [](void* host, const void* constant, const msrt_packing* packing, const void* data, size_t bytes) -> msrt_status {
    try {
      static_cast<Host*>(host)->forms_->Keep(constant, *packing, {static_cast<const std::byte*>(data), bytes});
      return MSRT_OK;
    } catch (const std::bad_alloc&) {
      return MSRT_OUT_OF_MEMORY;
    }
  };
}

void KeepFailure(const char* message) noexcept {
  try {
    t_failure = message == nullptr ? "" : message;
  } catch (const std::bad_alloc&) {
    t_failure.clear();
  }
}

std::string TakeFailureText() {
  std::string text = std::move(t_failure);
  t_failure.clear();
  return text;
}

Status TakeFailure(msrt_status code, std::string_view delegate) {
  if (code == MSRT_OK) return OkStatus();
  const std::string text = TakeFailureText();
  const bool known = code > 0 && code <= static_cast<msrt_status>(Code::kInternal);
  if (!text.empty()) return Status(known ? static_cast<Code>(code) : Code::kDelegate, text);
  if (code == MSRT_OUT_OF_MEMORY) return MakeStatus(Code::kOutOfMemory, "delegate ", delegate, ": out of memory");
  return MakeStatus(known ? static_cast<Code>(code) : Code::kDelegate, "delegate ", delegate, " failed without saying why (status ", code,
                    ")");
}

}  // namespace msrt

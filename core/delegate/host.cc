#include "core/delegate/host.h"

#include <atomic>
#include <bit>

#include "core/base/copy_known_fields.h"
#include "core/delegate/boundary.h"

namespace msrt {

void MappedConstants::Forget(const ConstTensor& constant) const {
  constexpr size_t kMinForgetBytes = 64 << 10;
  const std::byte *begin = constant.bytes.data(), *end = begin + constant.bytes.size();
  if (io == nullptr || constant.bytes.size() < kMinForgetBytes || begin < bytes.data() ||
      end > bytes.data() + bytes.size())
    return;
  io->Forget(constant.bytes);
}

Host::Host(Allocator* allocator, std::shared_ptr<ParallelFor> parallel, Log log,
           std::optional<Machine> machine, std::shared_ptr<PackedForms> forms,
           MappedConstants mapped, std::shared_ptr<PackCounts> packings)
    : allocator_(allocator),
      parallel_(std::move(parallel)),
      log_(std::move(log)),
      forms_(std::move(forms)),
      mapped_(mapped),
      packings_(std::move(packings)),
      api_(MSRT_INIT(msrt_host_api)) {
  const Machine scale = machine.value_or(TypicalMachine(parallel_->threads()));
  api_.flops_per_second = scale.flops_per_second;
  api_.bytes_per_second = scale.bytes_per_second;
  api_.threads = parallel_->threads();
  api_.host = this;
  api_.fail = [](void*, const char* message) { SetFailureText(message); };
  api_.log = [](void* host, int32_t level, const char* line) {
    if (line == nullptr) return;
    const int32_t known = std::clamp<int32_t>(level, MSRT_LOG_ERROR, MSRT_LOG_DEBUG);
    try {
      static_cast<Host*>(host)->log_(static_cast<LogLevel>(known), line);
    } catch (...) {  // no memory for the line
    }
  };
  api_.allocate = [](void* host, size_t bytes, size_t alignment) -> void* {
    return std::has_single_bit(alignment)
               ? static_cast<Host*>(host)->allocator_->Allocate(bytes, alignment)
               : nullptr;
  };
  api_.deallocate = [](void* host, void* pointer, size_t bytes, size_t alignment) {
    if (pointer != nullptr) static_cast<Host*>(host)->allocator_->Free(pointer, bytes, alignment);
  };
  api_.parallel_for = [](void* host, int64_t count, void (*task)(void*, int64_t), void* context) {
    return ToStatusCode([&] { return static_cast<Host*>(host)->RunTasks(count, task, context); });
  };
  api_.keep_packed = [](void* host, const void* constant, const msrt_packing* packing,
                        const void* data, size_t bytes) {
    return ToStatusCode([&]() -> Status {
      if (packing == nullptr || (data == nullptr && bytes != 0))
        return InvalidArgument("keep_packed: packing or data is NULL");
      const Host& self = *static_cast<Host*>(host);
      const char* const kernel = CopyKnownFields(*packing).kernel;
      if (self.packings_ != nullptr) self.packings_->Add(kernel, &PackCount::constants, bytes);
      const bool named = kernel != nullptr && kernel[0] != '\0';
      if (self.forms_ == nullptr || !named) return OkStatus();
      self.forms_->Keep(constant, *packing, {static_cast<const std::byte*>(data), bytes});
      return OkStatus();
    });
  };
  if (forms_ == nullptr) return;
  api_.find_packed = [](void* host, const void* constant, const msrt_packing* packing,
                        size_t bytes) -> const void* {
    try {
      return packing == nullptr ? nullptr
                                : static_cast<Host*>(host)->forms_->Find(constant, *packing, bytes);
    } catch (...) {  // no memory for the name: the caller packs the constant itself
      return nullptr;
    }
  };
}

Status Host::RunTasks(int64_t count, void (*task)(void*, int64_t), void* context) const {
  if (task == nullptr) return InvalidArgument("parallel_for: task is NULL");
  // An exception that leaves a worker thread would end the process.
  std::atomic<bool> failed{false};
  Status thrown;
  MSRT_RETURN_IF_ERROR(parallel_->Run(count, [&](int64_t i) {
    if (failed.load(std::memory_order_relaxed)) return;
    Status status = CatchAsStatus([&] { task(context, i); });
    if (!status.ok() && !failed.exchange(true)) thrown = std::move(status);
  }));
  return std::move(thrown).Within("a task of parallel_for");
}

}  // namespace msrt

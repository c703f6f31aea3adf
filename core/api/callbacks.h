// Adapters from the callbacks in msrt_runtime_config to the interfaces of core/base: allocator,
// threads, log.
#pragma once

#include <memory>

#include "core/abi/msrt.h"
#include "core/base/allocator.h"
#include "core/base/log.h"
#include "core/base/parallel_for.h"

namespace msrt {

// The application's allocator. Requires both functions in `config`.
class CallbackAllocator final : public Allocator {
 public:
  explicit CallbackAllocator(const msrt_runtime_config& config) : config_(config) {}
  void* Allocate(size_t bytes, size_t alignment) noexcept override {
    return config_.allocate(config_.allocator_user, bytes, alignment);
  }
  void Free(void* pointer, size_t bytes, size_t alignment) noexcept override {
    config_.deallocate(config_.allocator_user, pointer, bytes, alignment);
  }

 private:
  const msrt_runtime_config config_;
};

// The application's threads. Requires config.parallel_for.
std::unique_ptr<ParallelFor> MakeCallbackParallel(const msrt_runtime_config& config, int threads);

// The application's log; without config.log it discards everything.
Log MakeCallbackLog(const msrt_runtime_config& config);

}  // namespace msrt

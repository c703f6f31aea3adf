// Host services for delegates: memory, threads, the log, packed forms of constants, and a place for
// the text of an error (boundary.h).
#pragma once

#include <optional>

#include "core/abi/msrt_plugin.h"
#include "core/base/allocator.h"
#include "core/base/io.h"
#include "core/base/log.h"
#include "core/base/machine.h"
#include "core/base/parallel_for.h"
#include "core/delegate/callback_services.h"
#include "core/delegate/pack_counts.h"
#include "core/delegate/packed_forms.h"

namespace msrt {

// The mapped file that contains a model's constants. After a kernel has packed a constant, its
// pages are released; they are read from the file again if a run needs them. Without this, a model
// whose weights are all packed would hold them twice.
struct MappedConstants {
  Io* io = nullptr;
  std::span<const std::byte> bytes;

  void Forget(const ConstTensor& constant) const;
};

// Outlives every kernel that was given its table.
class Host {
 public:
  // Without a machine, uses a typical one with the team's number of threads. Without forms, none
  // are found and none kept. `packings` (may be null) counts the forms that are made.
  Host(Allocator* allocator, std::shared_ptr<ParallelFor> parallel, Log log,
       std::optional<Machine> machine = std::nullopt, std::shared_ptr<PackedForms> forms = nullptr,
       MappedConstants mapped = {}, std::shared_ptr<PackCounts> packings = nullptr);
  // For callbacks: parallel_for runs its tasks one after the other.
  explicit Host(const CallbackServices& services)
      : Host(services.allocator, MakeSerial(), services.log) {}
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  const msrt_host_api* api() const { return &api_; }
  ParallelFor& parallel() const { return *parallel_; }
  const MappedConstants& mapped() const { return mapped_; }
  Machine machine() const { return {api_.flops_per_second, api_.bytes_per_second}; }

 private:
  Status RunTasks(int64_t count, void (*task)(void*, int64_t), void* context) const;

  Allocator* allocator_;
  std::shared_ptr<ParallelFor> parallel_;
  Log log_;
  std::shared_ptr<PackedForms> forms_;
  MappedConstants mapped_;
  std::shared_ptr<PackCounts> packings_;
  msrt_host_api api_;
};

}  // namespace msrt

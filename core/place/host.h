// What the runtime lends to delegates: memory, threads, the log, packed forms of constants, and a place for the text of an error.
#pragma once

#include <optional>

#include "core/api/msrt_plugin.h"
#include "core/base/allocator.h"
#include "core/base/log.h"
#include "core/base/machine.h"
#include "core/base/parallel_for.h"
#include "core/place/packed_forms.h"

namespace msrt {

// Outlives every kernel that was shown its table.
class Host {
 public:
  // Without a machine: what is typical of one with the team's threads. Without forms: none are found and none kept.
  Host(Allocator* allocator, std::shared_ptr<ParallelFor> parallel, Log log, std::optional<Machine> machine = std::nullopt,
       std::shared_ptr<PackedForms> forms = nullptr);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  const msrt_host_api* api() const { return &api_; }
  ParallelFor& parallel() const { return *parallel_; }
  Machine machine() const { return {api_.flops_per_second, api_.bytes_per_second}; }

 private:
  Allocator* allocator_;
  std::shared_ptr<ParallelFor> parallel_;
  Log log_;
  std::shared_ptr<PackedForms> forms_;
  msrt_host_api api_;
};

// Keeps the text for TakeFailure of the same thread: what msrt_host_api.fail does.
void KeepFailure(const char* message) noexcept;
// That text, once; empty where there is none.
std::string TakeFailureText();
// The status behind a code that a delegate's function returned, with the text that it gave. OK for 0; a number that is no code is
// kDelegate.
Status TakeFailure(msrt_status code, std::string_view delegate);

}  // namespace msrt

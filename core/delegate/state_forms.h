// State slots in the forms that kernels pack them into. A form belongs to one version of a slot's
// value and lives as long as a session holds that version.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/abi/msrt_plugin.h"
#include "core/base/allocator.h"
#include "core/base/parallel_for.h"

namespace msrt {

// A packed form with its identity; see msrt_packing.
struct StateForm {
  std::string kernel, isa;
  uint32_t block, version;
  Block data;
  static StateForm Make(const msrt_packing& packing, Block data);
  bool Is(const msrt_packing& packing, size_t bytes) const;
};

// The forms that the sessions of a model hold. Sessions with the same version of a value, shared or
// initial, get the same form. Thread-safe.
class StateForms {
 public:
  // Returns the form of a version of a slot; `pack` writes its bytes if no session holds it. Two
  // threads that miss at the same time both pack, and one form is kept.
  Result<std::shared_ptr<const StateForm>> Get(Allocator* allocator, size_t slot, uint64_t version,
                                               const msrt_packing& packing, size_t bytes,
                                               FunctionRef<Status(std::byte*)> pack);

 private:
  struct Key {
    size_t slot;
    uint64_t version;
    auto operator<=>(const Key&) const = default;
  };
  std::shared_ptr<const StateForm> Find(const Key& key, const msrt_packing& packing,
                                        size_t bytes) const;

  std::mutex mutex_;
  std::multimap<Key, std::weak_ptr<const StateForm>> forms_;
};

}  // namespace msrt

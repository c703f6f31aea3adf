// An LRU cache of bindings, bounded in bytes. Shared by all sessions of a program.
#pragma once

#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/bind/binding.h"

namespace msrt {

// Thread-safe. A binding that was evicted lives on while a session runs it.
class BindingCache {
 public:
  explicit BindingCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns the binding for these shapes; calls `make` if it is not cached. Two threads that miss
  // at the same time both make one, of which one is kept.
  Result<std::shared_ptr<const Binding>> Get(
      const BindRequest& request, FunctionRef<Result<std::shared_ptr<const Binding>>()> make);

  size_t bytes() const;
  size_t count() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Binding> binding;
  };
  const size_t max_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recent first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
  size_t bytes_ = 0;
};

}  // namespace msrt

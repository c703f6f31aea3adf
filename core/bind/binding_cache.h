// Bindings that were made before, bounded in bytes: the least recently used go first. Shared by all
// sessions of a program.
#pragma once

#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/bind/binding.h"

namespace msrt {

// Thread-safe. A binding that is dropped lives on while a session runs it.
class BindingCache {
 public:
  explicit BindingCache(size_t most_bytes) : most_bytes_(most_bytes) {}

  // The binding for these shapes, made by `make` if it is not here. Two threads that miss at once
  // both make one; one is kept.
  Result<std::shared_ptr<const Binding>> Get(
      const BindRequest& request, FunctionRef<Result<std::shared_ptr<const Binding>>()> make);

  size_t bytes() const;
  size_t count() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Binding> binding;
  };
  const size_t most_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recent first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
  size_t bytes_ = 0;
};

}  // namespace msrt

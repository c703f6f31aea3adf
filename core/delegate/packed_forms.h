// Constants in the forms that kernels pack them into. A file made for this kind of machine contains
// them, so that a load packs nothing; a compilation for such a file keeps what its kernels pack.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/abi/msrt_plugin.h"
#include "core/base/log.h"
#include "core/graph/graph.h"
#include "core/model/format.h"

namespace msrt {

// Constants are identified by the address of their bytes. Thread-safe.
class PackedForms {
 public:
  // Holds the forms of a file; their bytes are not copied.
  PackedForms(std::vector<PackedWeight> from_file, Log log);
  // Returns an object that collects the forms that kernels pack.
  static std::shared_ptr<PackedForms> ForKeeping();
  PackedForms(const PackedForms&) = delete;
  PackedForms& operator=(const PackedForms&) = delete;

  // Null if there is no such form of exactly so many bytes. The contents are not checked.
  const std::byte* Find(const void* constant, const msrt_packing& packing, size_t bytes);
  // Copies the form if this object collects forms and does not have it yet.
  void Keep(const void* constant, const msrt_packing& packing, std::span<const std::byte> data);

  // Returns the collected forms of the constants of `module`, each once. Constants that passes made
  // during compilation are not in the module and left out.
  std::vector<PackedWeight> KeptForms(const Module& module) const;
  // The bytes that Find returned in all; a form found twice counts twice.
  size_t found_bytes() const { return found_bytes_; }

 private:
  struct Form {
    const void* constant;
    PackingId id;
    Bytes data;
  };
  // If two forms have the same name, the first is kept.
  void Add(Form form);

  const Log log_;
  bool keeps_ = false;
  mutable std::mutex
      mutex_;  // guards the forms of an object that collects; those of a file do not change
  std::vector<Form> forms_;
  std::unordered_map<std::string, size_t>
      by_name_;  // by constant and packing: a file may contain many forms of one constant
  std::atomic<size_t> found_bytes_{0};
};

}  // namespace msrt

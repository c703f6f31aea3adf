// Constants in the forms that kernels pack them into. A file made for this kind of machine brings
// them along, so that a load packs nothing; a compilation for such a file keeps what its kernels
// pack.
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

// Constants are known by the address of their bytes. Thread-safe.
class PackedForms {
 public:
  // What a file brings; its bytes are used where they lie.
  PackedForms(std::vector<PackedWeight> brought, Log log);
  // For what is going to be packed.
  static std::shared_ptr<PackedForms> ForKeeping();
  PackedForms(const PackedForms&) = delete;
  PackedForms& operator=(const PackedForms&) = delete;

  // Null where there is no such form of exactly so many bytes. What the bytes say is the file's
  // affair.
  const std::byte* Find(const void* constant, const msrt_packing& packing, size_t bytes);
  // Copies the form if this object is for keeping and has not got it yet.
  void Keep(const void* constant, const msrt_packing& packing, std::span<const std::byte> data);

  // What was kept of the constants of `module`, each once. What passes made in a compilation and
  // the module does not have is left out.
  std::vector<PackedWeight> Kept(const Module& module) const;
  // Of the forms that somebody found, each as often as it was found.
  size_t found_bytes() const { return found_bytes_; }

 private:
  struct Form {
    const void* constant;
    PackingId id;
    Bytes data;
  };
  // The first of two with the same name stays.
  void Add(Form form);

  const Log log_;
  bool keeps_ = false;
  mutable std::mutex
      mutex_;  // guards the forms of an object that keeps; those of others do not change
  std::vector<Form> forms_;
  std::unordered_map<std::string, size_t>
      by_name_;  // of constant and packing together: a file may bring many forms of one constant
  std::atomic<size_t> found_bytes_{0};
};

}  // namespace msrt

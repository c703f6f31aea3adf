// Counts the packed forms that kernels make, by packing. A constant is packed once, when the model
// is compiled, and a parameter once for each version; the counts show it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace msrt {

struct PackCount {
  size_t constants = 0;   // forms of constants
  size_t parameters = 0;  // forms of versions of state slots
  size_t copies = 0;      // forms that lasted for one run of a kernel
  size_t bytes = 0;       // of all of them
};

// Thread-safe.
class PackCounts {
 public:
  // `kernel`: msrt_packing.kernel; `kind`: the field to increment.
  void Add(const char* kernel, size_t PackCount::*kind, size_t bytes) {
    const std::lock_guard lock(mutex_);
    PackCount& count = counts_[kernel == nullptr ? "" : kernel];
    ++(count.*kind);
    count.bytes += bytes;
  }
  std::map<std::string, PackCount> ByKernel() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  PackCount Total() const {
    PackCount total;
    for (const auto& [kernel, count] : ByKernel()) {
      total.constants += count.constants;
      total.parameters += count.parameters;
      total.copies += count.copies;
      total.bytes += count.bytes;
    }
    return total;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, PackCount> counts_;
};

}  // namespace msrt

// A small table of texts that the ranks of a job share while they find each other: addresses, names
// of shared memory, ids. Never on the path of data.
#pragma once

#include <string>
#include <string_view>

#include "core/base/parallel_for.h"
#include "core/base/status.h"

namespace msrt {

// Thread-safe. A key is written once.
class Store {
 public:
  virtual ~Store() = default;
  // kInvalidArgument if the key exists. kDeadlineExceeded or kCancelled if the limit expires first;
  // the key may exist later.
  virtual Status Set(std::string_view key, std::string_view value, const WaitLimit& limit) = 0;
  Status Set(std::string_view key, std::string_view value) { return Set(key, value, {}); }
  // Waits until the key exists. kDeadlineExceeded or kCancelled, naming the key, if the limit
  // expires first.
  virtual Result<std::string> Get(std::string_view key, const WaitLimit& limit) = 0;
};

}  // namespace msrt

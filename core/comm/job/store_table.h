// The contents of a store on its server: keys that are written once, and who waits for which. No
// sockets, no threads; the server's loop drives it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace msrt {

inline constexpr size_t kMaxKeyBytes = 1024;
inline constexpr size_t kMaxValueBytes = size_t{1} << 20;
inline constexpr size_t kMaxStoreBytes = size_t{256} << 20;

class StoreTable {
 public:
  // Returns the connections that waited for the key. kInvalidArgument if it exists,
  // kLimitExceeded if the key, the value or the store would be too large.
  Result<std::vector<uint64_t>> Set(std::string_view key, std::string_view value);
  // The value, or null; then `connection` waits for the key.
  const std::string* Get(std::string_view key, uint64_t connection);
  void Forget(uint64_t connection);
  // Everyone who waits; afterwards nobody does.
  std::vector<uint64_t> TakeWaiting();

 private:
  std::map<std::string, std::string, std::less<>> values_;
  std::map<uint64_t, std::string> waiting_;  // connection -> key
  size_t bytes_ = 0;
};

}  // namespace msrt

#include "core/comm/job/store_table.h"

#include "core/base/utf8.h"

namespace msrt {

Result<std::vector<uint64_t>> StoreTable::Set(std::string_view key, std::string_view value) {
  if (key.empty() || key.size() > kMaxKeyBytes)
    return LimitExceeded("store: a key has 1 to ", kMaxKeyBytes, " bytes, not ", key.size());
  if (value.size() > kMaxValueBytes) {
    return LimitExceeded("store: the value of '", Printable(key), "' has ", value.size(),
                         " bytes; at most ", kMaxValueBytes, " are stored");
  }
  const size_t bytes = key.size() + value.size();
  if (bytes > kMaxStoreBytes - bytes_) {
    return LimitExceeded("store: no room for '", Printable(key),
                         "': all keys and values have at most ", kMaxStoreBytes, " bytes");
  }
  if (!values_.emplace(key, value).second) {
    return InvalidArgument("store: key '", Printable(key),
                           "' exists; a key is written once, so use another name");
  }
  bytes_ += bytes;
  std::vector<uint64_t> waiters;
  for (const auto& [connection, awaited] : waiting_)
    if (awaited == key) waiters.push_back(connection);
  for (const uint64_t connection : waiters) waiting_.erase(connection);
  return waiters;
}

const std::string* StoreTable::Get(std::string_view key, uint64_t connection) {
  const auto found = values_.find(key);
  if (found != values_.end()) return &found->second;
  waiting_[connection] = key;
  return nullptr;
}

void StoreTable::Forget(uint64_t connection) { waiting_.erase(connection); }

std::vector<uint64_t> StoreTable::TakeWaiting() {
  std::vector<uint64_t> connections;
  for (const auto& [connection, key] : waiting_) connections.push_back(connection);
  waiting_.clear();
  return connections;
}

}  // namespace msrt

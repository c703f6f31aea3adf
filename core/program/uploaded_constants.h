// The constants of a model that are in the memory of devices: one copy for each device, whichever
// graphs use it, as long as a program does.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "core/delegate/device.h"

namespace msrt {

// May be used from any thread.
class UploadedConstants {
 public:
  // Returns null if these bytes are not on that device.
  std::shared_ptr<const DeviceBlock> Find(const Device& device,
                                          std::span<const std::byte> constant) const;
  // The copy is complete. If there is one already, it stays.
  void Add(std::span<const std::byte> constant, const std::shared_ptr<const DeviceBlock>& copy);

 private:
  using Key = std::pair<const Device*, std::pair<const std::byte*, size_t>>;
  mutable std::mutex mutex_;
  std::map<Key, std::weak_ptr<const DeviceBlock>> copies_;
};

}  // namespace msrt

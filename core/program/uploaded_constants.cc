#include "core/program/uploaded_constants.h"

namespace msrt {

std::shared_ptr<const DeviceBlock> UploadedConstants::Find(
    const Device& device, std::span<const std::byte> constant) const {
  std::lock_guard lock(mutex_);
  const auto found = copies_.find({&device, {constant.data(), constant.size()}});
  return found == copies_.end() ? nullptr : found->second.lock();
}

void UploadedConstants::Add(std::span<const std::byte> constant,
                            const std::shared_ptr<const DeviceBlock>& copy) {
  std::lock_guard lock(mutex_);
  std::weak_ptr<const DeviceBlock>& there =
      copies_[{copy->device(), {constant.data(), constant.size()}}];
  if (there.expired()) there = copy;
}

}  // namespace msrt

// The memory of the emulated devices. A device pointer is an address in a window that the host
// cannot touch; its bytes are at a fixed distance, where only kernels and copies find them. Each
// block is followed by an inaccessible page and ends as near to it as its alignment allows; the
// bytes between are checked. Addresses are not used again as long as the window has new ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace msrt::cuda::emulated {

struct Pool;

struct Block {
  uint64_t id = 0;  // never used again
  uint64_t address = 0;
  size_t bytes = 0;
  int device = 0;
  Pool* pool = nullptr;  // null: cuMemAlloc
};

class DeviceMemory {
 public:
  DeviceMemory(int devices, size_t bytes_of_device);
  ~DeviceMemory();

  // A new block, of which only Map makes the bytes accessible. An id of 0: no address is free.
  Block Add(int device, size_t bytes, Pool* pool);
  // The bytes of a new block are undefined: all bits are set, so that floats are NaN.
  static constexpr unsigned char kUndefined = 0xff;
  void Map(const Block& block);
  void Fill(const Block& block);
  // The block that begins there; an id of 0: none does. It is no longer living.
  Block Remove(uint64_t address);
  // Makes the bytes of a removed block inaccessible. Returns an error if bytes around it were
  // written.
  std::string Unmap(const Block& block);

  bool InWindow(uint64_t address) const {
    return address - base_ < window_bytes_ * static_cast<uint64_t>(devices_);
  }
  // The living block that contains [address, address + bytes), its end included; an id of 0: none.
  Block Find(uint64_t address, size_t bytes = 0) const;
  bool IsLiving(const Block& block) const;
  void* ToHost(uint64_t address) const {
    return reinterpret_cast<void*>(address + window_bytes_ * static_cast<uint64_t>(devices_));
  }
  std::vector<Block> Living() const;

 private:
  uint64_t FirstPage(const Block& block) const;

  const int devices_;
  size_t window_bytes_;
  uint64_t base_ = 0;
  mutable std::mutex mutex_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, Block> living_;  // by address
  std::map<uint64_t, size_t> taken_;  // pages of blocks that are mapped, by address
  std::vector<uint64_t> cursor_;      // of each device: where the next block is sought
};

}  // namespace msrt::cuda::emulated

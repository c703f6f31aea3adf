#include "tests/cuda/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/cuda/sanitizers.h"

namespace msrt::cuda::emulated {
namespace {

constexpr size_t kPage = 4096, kAlignment = 256;
constexpr unsigned char kPad = 0xa5;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

DeviceMemory::DeviceMemory(int devices, size_t bytes_of_device)
    : devices_(devices),
      window_bytes_(std::max(size_t{4} << 30, RoundUp(bytes_of_device, kPage) * 4)) {
  void* base = mmap(nullptr, window_bytes_ * static_cast<size_t>(devices) * 2, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) abort();
  base_ = reinterpret_cast<uint64_t>(base);
  for (int d = 0; d < devices; ++d) {
    cursor_.push_back(base_ + static_cast<uint64_t>(d) * window_bytes_ + kPage);
  }
}

DeviceMemory::~DeviceMemory() {
  for (const auto& [address, block] : living_) Unmap(block);
  munmap(reinterpret_cast<void*>(base_), window_bytes_ * static_cast<size_t>(devices_) * 2);
}

uint64_t DeviceMemory::FirstPage(const Block& block) const { return block.address / kPage * kPage; }

Block DeviceMemory::Add(int device, size_t bytes, Pool* pool) {
  const std::lock_guard lock(mutex_);
  const size_t aligned = RoundUp(std::max(bytes, size_t{1}), kAlignment);
  const size_t mapped = RoundUp(aligned, kPage), needed = mapped + kPage;
  const uint64_t window = base_ + static_cast<uint64_t>(device) * window_bytes_;
  uint64_t start = cursor_[static_cast<size_t>(device)];
  for (int round = 0;; start = window + kPage) {
    // Blocks in the way push the search on; at the end of the window it begins anew, once.
    auto next = taken_.upper_bound(start);
    if (next != taken_.begin()) {
      const auto before = std::prev(next);
      start = std::max(start, before->first + before->second);
    }
    while (next != taken_.end() && next->first < start + needed) {
      start = next->first + next->second;
      ++next;
    }
    if (start + needed <= window + window_bytes_) break;
    if (round++ == 1) return {};
  }
  taken_[start] = needed;
  cursor_[static_cast<size_t>(device)] = start + needed;
  Block block{++last_id_, start + mapped - aligned, bytes, device, pool};
  living_[block.address] = block;
  return block;
}

void DeviceMemory::Map(const Block& block) {
  const uint64_t first = FirstPage(block);
  const size_t aligned = RoundUp(std::max(block.bytes, size_t{1}), kAlignment);
  const size_t mapped = block.address + aligned - first;
  char* pages = static_cast<char*>(ToHost(first));
  if (mprotect(pages, mapped, PROT_READ | PROT_WRITE) != 0) abort();
  char* start = static_cast<char*>(ToHost(block.address));
  memset(pages, kPad, static_cast<size_t>(start - pages));
  memset(start + block.bytes, kPad, aligned - block.bytes);
  PoisonMemory(pages, static_cast<size_t>(start - pages));
  PoisonMemory(start + block.bytes, aligned - block.bytes);
}

void DeviceMemory::Fill(const Block& block) {
  memset(ToHost(block.address), kUndefined, block.bytes);
}

Block DeviceMemory::Remove(uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = living_.find(address);
  if (found == living_.end()) return {};
  const Block block = found->second;
  living_.erase(found);
  return block;
}

std::string DeviceMemory::Unmap(const Block& block) {
  const uint64_t first = FirstPage(block);
  const size_t aligned = RoundUp(std::max(block.bytes, size_t{1}), kAlignment);
  unsigned char* pages = static_cast<unsigned char*>(ToHost(first));
  unsigned char* start = static_cast<unsigned char*>(ToHost(block.address));
  const size_t mapped = static_cast<size_t>(start + aligned - pages);
  UnpoisonMemory(pages, mapped);
  const auto is_pad = [](unsigned char byte) { return byte == kPad; };
  std::string error;
  if (!std::all_of(pages, start, is_pad)) error = "written before its first byte";
  if (!std::all_of(start + block.bytes, start + aligned, is_pad)) {
    error = "written beyond its last byte";
  }
  if (!error.empty()) {
    error = "a block of " + std::to_string(block.bytes) + " bytes on device " +
            std::to_string(block.device) + " was " + error;
  }
  // The physical pages go back to the system, and the next access faults.
  if (mmap(pages, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
           0) == MAP_FAILED) {
    abort();
  }
  const std::lock_guard lock(mutex_);
  taken_.erase(first);
  return error;
}

Block DeviceMemory::Find(uint64_t address, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto next = living_.upper_bound(address);
  if (next == living_.begin()) return {};
  const Block& block = std::prev(next)->second;
  const uint64_t offset = address - block.address;
  return offset <= block.bytes && bytes <= block.bytes - offset ? block : Block{};
}

bool DeviceMemory::IsLiving(const Block& block) const {
  const std::lock_guard lock(mutex_);
  const auto found = living_.find(block.address);
  return found != living_.end() && found->second.id == block.id;
}

std::vector<Block> DeviceMemory::Living() const {
  const std::lock_guard lock(mutex_);
  std::vector<Block> blocks;
  for (const auto& [address, block] : living_) blocks.push_back(block);
  return blocks;
}

}  // namespace msrt::cuda::emulated

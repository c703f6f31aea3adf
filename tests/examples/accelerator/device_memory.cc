#include "tests/examples/accelerator/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "tests/examples/accelerator/misuse.h"

namespace accelerator {
namespace {

constexpr size_t kAddressBytes = size_t{1} << 38;
constexpr size_t kAlignment = 64;
// A gap between blocks: an access beyond the end of one never reaches the next.
constexpr size_t kGapBytes = 4096;

std::string Text(const void* pointer, size_t bytes) {
  return std::to_string(bytes) + " bytes at " +
         std::to_string(reinterpret_cast<uintptr_t>(pointer));
}

}  // namespace

DeviceMemory::Block::Block(size_t size)
    : bytes(size),
      data(static_cast<std::byte*>(::operator new(size, std::align_val_t(kAlignment)))) {
  std::memset(data, 0xa5, size);  // unwritten memory must not look like a result
}

DeviceMemory::Block::~Block() { ::operator delete(data, std::align_val_t(kAlignment)); }

DeviceMemory::DeviceMemory(size_t capacity, bool reuse_addresses)
    : capacity_(capacity), reuse_addresses_(reuse_addresses) {
  void* mapping =
      mmap(nullptr, kAddressBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping != MAP_FAILED) addresses_ = static_cast<std::byte*>(mapping);
}

DeviceMemory::~DeviceMemory() {
  if (!blocks_.empty())
    CountMisuse("the device ends while " + std::to_string(blocks_.size()) +
                " blocks of its memory are allocated");
  if (addresses_ != nullptr) munmap(addresses_, kAddressBytes);
}

Failure DeviceMemory::Allocate(size_t bytes, void** out) {
  std::lock_guard lock(mutex_);
  if (bytes > capacity_ - used_bytes_) {
    return {MSRT_OUT_OF_MEMORY, "the accelerator has " + std::to_string(capacity_ - used_bytes_) +
                                    " of " + std::to_string(capacity_) + " bytes left, not " +
                                    std::to_string(bytes)};
  }
  std::byte* address = nullptr;
  if (Failure failure = NewAddress(bytes, &address); !failure.ok()) return failure;
  blocks_.emplace(reinterpret_cast<uintptr_t>(address), std::make_shared<Block>(bytes));
  used_bytes_ += bytes;
  *out = address;
  return {};
}

Failure DeviceMemory::NewAddress(size_t bytes, std::byte** out) {
  if (const auto freed = freed_.find(bytes); freed != freed_.end()) {
    *out = freed->second;
    freed_.erase(freed);
    return {};
  }
  const size_t room = (bytes + kGapBytes + kAlignment - 1) / kAlignment * kAlignment;
  if (addresses_ == nullptr || room > kAddressBytes - next_address_)
    return {MSRT_OUT_OF_MEMORY, "the accelerator is out of addresses"};
  *out = addresses_ + next_address_;
  next_address_ += room;
  return {};
}

void DeviceMemory::Free(void* pointer, size_t bytes) {
  std::lock_guard lock(mutex_);
  const auto it = blocks_.find(reinterpret_cast<uintptr_t>(pointer));
  if (it == blocks_.end())
    return CountMisuse("freed what is not allocated: " + Text(pointer, bytes));
  const Block& block = *it->second;
  if (block.bytes != bytes)
    CountMisuse("freed with a wrong size: " + Text(pointer, bytes) + ", allocated " +
                std::to_string(block.bytes));
  const bool in_use =
      block.uses != 0 || !std::all_of(block.accesses.begin(), block.accesses.end(),
                                      [](auto& a) { return TheOrder().HostKnows(a.piece); });
  if (in_use) CountMisuse("freed while queued work uses it: " + Text(pointer, bytes));
  used_bytes_ -= block.bytes;
  if (reuse_addresses_) freed_.emplace(block.bytes, static_cast<std::byte*>(pointer));
  blocks_.erase(it);
}

size_t DeviceMemory::free_bytes() const {
  std::lock_guard lock(mutex_);
  return capacity_ == SIZE_MAX ? SIZE_MAX : capacity_ - used_bytes_;
}

Failure DeviceMemory::Find(const void* pointer, size_t bytes, const char* what, Use* out) const {
  if (pointer == nullptr) return {};
  std::lock_guard lock(mutex_);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto it = blocks_.upper_bound(address);
  const bool known = it != blocks_.begin() && address - (--it)->first <= it->second->bytes;
  if (!known || bytes > it->second->bytes - (address - it->first)) {
    const std::string wrong =
        std::string(what) + " of " + Text(pointer, bytes) +
        (known ? " runs over the end of its block" : " is in no living block");
    CountMisuse(wrong);
    return Failed(wrong);
  }
  *out = Use(it->second, it->second->data + (address - it->first));
  return {};
}

void DeviceMemory::Touch(const Use& use, size_t bytes, const Piece& piece, bool writes) const {
  if (use.block_ == nullptr || bytes == 0) return;
  std::lock_guard lock(mutex_);
  Block& block = *use.block_;
  const auto begin = static_cast<size_t>(use.data_ - block.data), end = begin + bytes;
  bool noted = false;
  for (Block::Access& a : block.accesses) {
    if (a.end <= begin || end <= a.begin) continue;
    if ((writes || a.writes) && !TheOrder().Precedes(a.piece, piece)) {
      CountMisuse(std::string(writes ? "a write of " : "a read of ") + std::to_string(bytes) +
                  " bytes does not wait for a " + (a.writes ? "write" : "read") +
                  " in another stream");
    }
    if (a.begin != begin || a.end != end || a.piece.stream != piece.stream || a.writes != writes)
      continue;
    a.piece = piece;
    noted = true;
  }
  constexpr size_t kManyAccesses = 64;
  if (block.accesses.size() > kManyAccesses)
    std::erase_if(block.accesses, [](auto& a) { return TheOrder().HostKnows(a.piece); });
  if (!noted) block.accesses.push_back({begin, end, piece, writes});
}

}  // namespace accelerator

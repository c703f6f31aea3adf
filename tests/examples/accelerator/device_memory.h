// Memory of the emulated device. The addresses that the host gets are in a mapping without access
// rights, so that dereferencing one faults; the bytes are elsewhere, and only the device knows
// where. Unless told otherwise, addresses are never issued twice: a stale one is always noticed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/examples/accelerator/failure.h"
#include "tests/examples/accelerator/order.h"

namespace accelerator {

class DeviceMemory {
  struct Block {
    explicit Block(size_t size);
    ~Block();
    const size_t bytes;
    std::byte* const data;
    std::atomic<int> uses{0};
    struct Access {
      size_t begin, end;
      Piece piece;
      bool writes;
    };
    std::vector<Access> accesses;  // those that later work may have to wait for
  };

 public:
  // Part of a block, held for queued work: freeing the block meanwhile is misuse by the host.
  class Use {
   public:
    Use() = default;
    Use(std::shared_ptr<Block> block, std::byte* data) : block_(std::move(block)), data_(data) {
      ++block_->uses;
    }
    Use(Use&& other) noexcept { *this = std::move(other); }
    Use& operator=(Use&& other) noexcept {
      std::swap(block_, other.block_);
      std::swap(data_, other.data_);
      return *this;
    }
    ~Use() {
      if (block_ != nullptr) --block_->uses;
    }
    std::byte* data() const {
      return data_;
    }  // the actual address of the bytes; null if there is no tensor

   private:
    friend class DeviceMemory;
    std::shared_ptr<Block> block_;
    std::byte* data_ = nullptr;
  };

  explicit DeviceMemory(size_t capacity, bool reuse_addresses = false);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  Failure Allocate(size_t bytes, void** out);
  void Free(void* pointer, size_t bytes);
  size_t free_bytes() const;
  // Checks that `bytes` from `pointer` on are in one live block. Returns an empty use for a null
  // pointer.
  Failure Find(const void* pointer, size_t bytes, const char* what, Use* out) const;
  // Notes that a piece of work reads or writes these bytes. Counts as misuse what is not ordered
  // after the work that they conflict with.
  void Touch(const Use& use, size_t bytes, const Piece& piece, bool writes) const;

 private:
  Failure NewAddress(size_t bytes, std::byte** out);

  const size_t capacity_;
  const bool reuse_addresses_;
  std::multimap<size_t, std::byte*> freed_;  // addresses by size, if they are issued again
  std::byte* addresses_ = nullptr;
  mutable std::mutex mutex_;
  size_t next_address_ = 0, used_bytes_ = 0;
  std::map<uintptr_t, std::shared_ptr<Block>> blocks_;  // by address
};

// Memory for the accelerator's own use: for one run inside the stream, or for the lifetime of a
// kernel.
class Temporary {
 public:
  explicit Temporary(DeviceMemory* memory) : memory_(memory) {}
  Temporary(Temporary&& other) noexcept
      : memory_(other.memory_),
        pointer_(std::exchange(other.pointer_, nullptr)),
        bytes_(other.bytes_),
        use_(std::move(other.use_)) {}
  ~Temporary() {
    use_ = {};
    if (pointer_ != nullptr) memory_->Free(pointer_, bytes_);
  }
  Failure Allocate(size_t bytes) {
    bytes_ = bytes;
    const Failure failure = memory_->Allocate(bytes, &pointer_);
    return failure.ok() ? memory_->Find(pointer_, bytes, "a temporary", &use_) : failure;
  }
  std::byte* data() const { return use_.data(); }

 private:
  DeviceMemory* memory_;
  void* pointer_ = nullptr;
  size_t bytes_ = 0;
  DeviceMemory::Use use_;
};

}  // namespace accelerator

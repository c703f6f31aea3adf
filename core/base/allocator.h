// The source of tensor memory: arenas, packed weights, outputs, state. An interface, so that an
// application can provide its own and tests can make the n-th allocation fail. Small bookkeeping
// uses the ordinary heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "core/base/status.h"

namespace msrt {

inline constexpr size_t kTensorAlignment = 64;

// Thread-safe: any thread may call at any time.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // Returns null when there is no memory. `alignment` is a power of two. The bytes are not
  // initialised.
  virtual void* Allocate(size_t bytes, size_t alignment) noexcept = 0;
  virtual void Free(void* pointer, size_t bytes, size_t alignment) noexcept = 0;
};

// The process heap; large blocks request huge pages.
Allocator* DefaultAllocator();

// Owns one block. Empty blocks (0 bytes) have a non-null pointer too, so an empty tensor is not a
// null tensor.
class Block {
 public:
  Block() = default;
  static Result<Block> Make(Allocator* allocator, size_t bytes, std::string_view what);
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  ~Block() { Reset(); }

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  void Reset();

 private:
  Allocator* allocator_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace msrt

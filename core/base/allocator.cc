#include "core/base/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/checked_math.h"

namespace msrt {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

class HeapAllocator final : public Allocator {
 public:
  void* Allocate(size_t bytes, size_t alignment) noexcept override {
    // Weights and arenas are read end to end: with 4 KiB pages a large convolution spends its time
    // in the TLB.
    const bool large = bytes >= 4 * kHugePage;
    if (large) alignment = std::max(alignment, kHugePage);
    if (bytes > SIZE_MAX - alignment) return nullptr;
    void* p = std::aligned_alloc(alignment, AlignUp(std::max<size_t>(bytes, 1), alignment));
    if (p != nullptr && large) madvise(p, bytes & ~(kHugePage - 1), MADV_HUGEPAGE);
    return p;
  }
  void Free(void* pointer, size_t, size_t) noexcept override { std::free(pointer); }
};

}  // namespace

Allocator* DefaultAllocator() {
  static HeapAllocator heap;
  return &heap;
}

Result<Block> Block::Make(Allocator* allocator, size_t bytes, std::string_view what) {
  Block block;
  block.allocator_ = allocator;
  block.data_ =
      static_cast<std::byte*>(allocator->Allocate(std::max<size_t>(bytes, 1), kTensorAlignment));
  if (block.data_ == nullptr) return OutOfMemory(bytes, what);
  block.bytes_ = bytes;
  return block;
}

Block::Block(Block&& other) noexcept
    : allocator_(other.allocator_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Block& Block::operator=(Block&& other) noexcept {
  if (this != &other) {
    Reset();
    allocator_ = other.allocator_;
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Block::Reset() {
  if (data_ != nullptr) allocator_->Free(data_, std::max<size_t>(bytes_, 1), kTensorAlignment);
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace msrt

// Memory of a session: blocks that grow on demand and count against one cap.
#pragma once

#include <atomic>
#include <memory>

#include "core/base/allocator.h"

namespace msrt {

class Budget {
 public:
  Budget(Allocator* allocator, size_t cap) : allocator_(allocator), cap_(cap) {}

  // Grows `block` to at least `bytes`; its contents are lost if it grows.
  Status Ensure(Block* block, size_t bytes, std::string_view what);
  void Release(Block* block);

  // Counts memory that is not in blocks.
  Status Reserve(size_t bytes, std::string_view what);
  void Release(size_t bytes) { *used_ -= bytes; }

  // The same as Ensure and Release, for a shared block: it is replaced, never freed under a reader.
  Status Ensure(std::shared_ptr<Block>* block, size_t bytes, std::string_view what);
  void Release(std::shared_ptr<Block>* block);
  // Returns a block that counts until its last owner releases it, even beyond the session.
  Result<std::shared_ptr<Block>> Make(size_t bytes, std::string_view what);

 private:
  Status Check(size_t bytes, size_t others, std::string_view what) const;

  Allocator* allocator_;
  size_t cap_;
  std::shared_ptr<std::atomic<size_t>> used_ = std::make_shared<std::atomic<size_t>>(0);
};

// Scratch memory for kernels while they run. Delegates get a null pointer if there is none;
// failure() has the reason.
class SessionScratch {
 public:
  explicit SessionScratch(Budget* budget) : budget_(budget) {}
  void* Get(size_t bytes) {
    failure_ = budget_->Ensure(&block_, bytes, "scratch memory");
    return failure_.ok() ? block_.data() : nullptr;
  }
  const Status& failure() const { return failure_; }
  void ForgetFailure() { failure_ = OkStatus(); }
  void Release() { budget_->Release(&block_); }
  size_t bytes() const { return block_.bytes(); }

 private:
  Budget* budget_;
  Block block_;
  Status failure_;
};

}  // namespace msrt

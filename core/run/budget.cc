#include "core/run/budget.h"

namespace msrt {

Status Budget::Check(size_t bytes, size_t others, std::string_view what) const {
  if (cap_ == 0 || (bytes <= cap_ && others <= cap_ - bytes)) return OkStatus();
  return LimitExceeded(what, " needs ", bytes, " bytes; with ", others,
                       " bytes in use the session's cap of ", cap_, " bytes would be exceeded");
}

Status Budget::Ensure(Block* block, size_t bytes, std::string_view what) {
  if (block->data() != nullptr && block->bytes() >= bytes) return OkStatus();
  MSRT_RETURN_IF_ERROR(Check(bytes, *used_ - block->bytes(), what));
  Release(block);
  MSRT_ASSIGN_OR_RETURN(*block, Block::Make(allocator_, bytes, what));
  *used_ += block->bytes();
  return OkStatus();
}

void Budget::Release(Block* block) {
  *used_ -= block->bytes();
  block->Reset();
}

Status Budget::Reserve(size_t bytes, std::string_view what) {
  MSRT_RETURN_IF_ERROR(Check(bytes, *used_, what));
  *used_ += bytes;
  return OkStatus();
}

Status Budget::Ensure(std::shared_ptr<Block>* block, size_t bytes, std::string_view what) {
  if (*block != nullptr && (*block)->bytes() >= bytes) return OkStatus();
  Release(block);
  auto fresh = std::make_shared<Block>();
  MSRT_RETURN_IF_ERROR(Ensure(fresh.get(), bytes, what));
  *block = std::move(fresh);
  return OkStatus();
}

void Budget::Release(std::shared_ptr<Block>* block) {
  if (*block != nullptr) *used_ -= (*block)->bytes();
  block->reset();
}

Result<std::shared_ptr<Block>> Budget::Make(size_t bytes, std::string_view what) {
  MSRT_RETURN_IF_ERROR(Check(bytes, *used_, what));
  MSRT_ASSIGN_OR_RETURN(Block block, Block::Make(allocator_, bytes, what));
  *used_ += block.bytes();
  struct CountedBlock {
    CountedBlock(Block b, std::shared_ptr<std::atomic<size_t>> u)
        : block(std::move(b)), used(std::move(u)) {}
    Block block;
    std::shared_ptr<std::atomic<size_t>> used;
    ~CountedBlock() { *used -= block.bytes(); }
  };
  auto counted = std::make_shared<CountedBlock>(std::move(block), used_);
  return std::shared_ptr<Block>(counted, &counted->block);
}

}  // namespace msrt

#include "delegates/cuda/stream.h"

namespace msrt::cuda {

Result<std::shared_ptr<FaultWord>> FaultWord::Make(std::shared_ptr<Gpu> gpu) {
  void* memory = nullptr;
  {
    const Gpu::Scope scope(*gpu);
    MSRT_RETURN_IF_ERROR(gpu->Check(
        gpu->driver().cuMemHostAlloc(&memory, sizeof(uint64_t),
                                     CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
        "cuMemHostAlloc"));
  }
  auto* word = static_cast<uint64_t*>(memory);
  *word = 0;
  return std::shared_ptr<FaultWord>(new FaultWord(std::move(gpu), word));
}

FaultWord::~FaultWord() {
  if (gpu_->lost()) return;
  const Gpu::Scope scope(*gpu_);
  (void)gpu_->driver().cuMemFreeHost(word_);
}

Status FaultWord::Take() const {
  const uint64_t found = __atomic_exchange_n(word_, 0, __ATOMIC_ACQUIRE);
  if (found == 0) return OkStatus();
  const uint64_t element = found & ((uint64_t{1} << 56) - 1);
  switch (static_cast<FaultKind>(found >> 56)) {
    case FaultKind::kIndexOutOfRange:
      return InvalidArgument(gpu_->name(), ": element ", element,
                             " of the indices is outside the axis of the data");
    case FaultKind::kDivisionByZero:
      return InvalidArgument(gpu_->name(), ": element ", element,
                             " is divided by zero, which integers cannot be");
    default:
      return InternalError(gpu_->name(), ": a kernel reported fault ", found);
  }
}

Status Stream::TakeFaults() {
  Status status = fault->Take();
  for (const auto& other : replayed) {
    Status next = other->Take();
    if (status.ok()) status = std::move(next);
  }
  replayed.clear();
  return status;
}

}  // namespace msrt::cuda

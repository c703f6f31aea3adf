// A stream of a GPU, and the fault word by which its kernels report bad data: a kernel cannot
// return an error, and an assertion on the GPU would end its context.
#pragma once

#include <memory>
#include <vector>

#include "delegates/cuda/gpu.h"

namespace msrt::cuda {

// What a kernel found wrong in the data of a run. The numbers are those that kernels write.
enum class FaultKind : uint32_t {
  kNone = 0,
  kIndexOutOfRange = 1,  // a gather or scatter beyond the axis
  kDivisionByZero = 2,   // of integers
};

// A word in pinned host memory that the GPU writes and the host reads after waiting:
// kind << 56 | element. Shared by a stream, its events and its recordings.
class FaultWord {
 public:
  static Result<std::shared_ptr<FaultWord>> Make(std::shared_ptr<Gpu> gpu);
  ~FaultWord();
  FaultWord(const FaultWord&) = delete;
  FaultWord& operator=(const FaultWord&) = delete;
  uint64_t* word() const { return word_; }
  // Returns the fault as an error and forgets it.
  Status Take() const;

 private:
  FaultWord(std::shared_ptr<Gpu> gpu, uint64_t* word) : gpu_(std::move(gpu)), word_(word) {}
  const std::shared_ptr<Gpu> gpu_;
  uint64_t* const word_;
};

struct Stream {
  std::shared_ptr<Gpu> gpu;
  CUstream handle = nullptr;
  std::shared_ptr<FaultWord> fault;
  // Of recordings that were made on other streams and ran on this one since it was last waited for.
  std::vector<std::shared_ptr<FaultWord>> replayed;

  // The first fault since the last call. The host has waited for the stream.
  Status TakeFaults();
};

}  // namespace msrt::cuda

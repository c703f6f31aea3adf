// Data for training and evaluation: batches in an order that follows from the seed and the epoch
// alone, so that a run resumes at the exact batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/comm/communicator.h"
#include "core/graph/tensor.h"

namespace msrt {

// The first sample of a virtual shard of a batch (core/comm/tree_reduce.h).
inline int64_t FirstSampleOfShard(int64_t samples, int shard) {
  return samples * shard / kVirtualShards;
}

// One batch of one rank.
struct Batch {
  // In the order of the inputs of the entry "train": the inputs of the model, then the target. The
  // learning rate is not among them. The first dim of each is the number of samples.
  std::vector<ConstTensor> tensors;
  int64_t samples = 0;         // of this rank; may differ from rank to rank, and be 0
  int64_t global_samples = 0;  // of all ranks together
};

// The next batch that a run has not used yet. Part of a checkpoint.
struct DataPosition {
  int64_t epoch = 0, batch = 0;

  bool operator==(const DataPosition&) const = default;
};

// One pass over the data. Used by one thread at a time.
class BatchReader {
 public:
  virtual ~BatchReader() = default;
  // Returns the next batch, or nothing after the last.
  virtual Result<std::optional<Batch>> Next() = 0;
};

// Thread-safe, except that readers are used by one thread each.
class Dataset {
 public:
  virtual ~Dataset() = default;
  // The types of Batch::tensors, whose first dim is unknown.
  virtual std::vector<Type> types() const = 0;
  virtual int64_t samples() const = 0;            // in an epoch, of all ranks together
  virtual int64_t batches_per_epoch() const = 0;  // the same on all ranks
  // Returns the batches of an epoch, beginning with number `first`. Equal numbers give equal bytes,
  // in whatever order they are asked for. The dataset must outlive the reader.
  virtual Result<std::unique_ptr<BatchReader>> Batches(int64_t epoch, int64_t first = 0) const = 0;
};

}  // namespace msrt

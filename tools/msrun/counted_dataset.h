// Counts the batches that are read, as a sign that a rank works.
#pragma once

#include <atomic>

#include "core/train/dataset.h"

namespace msrt {

// Passes everything on to another dataset, which outlives it.
class CountedDataset final : public Dataset {
 public:
  CountedDataset(const Dataset& inner, std::shared_ptr<std::atomic<uint64_t>> work)
      : inner_(inner), work_(std::move(work)) {}

  std::vector<Type> types() const override { return inner_.types(); }
  int64_t samples() const override { return inner_.samples(); }
  int64_t batches_per_epoch() const override { return inner_.batches_per_epoch(); }
  Result<std::unique_ptr<BatchReader>> Batches(int64_t epoch, int64_t first) const override {
    MSRT_ASSIGN_OR_RETURN(std::unique_ptr<BatchReader> reader, inner_.Batches(epoch, first));
    return std::unique_ptr<BatchReader>(new Reader(std::move(reader), work_));
  }

 private:
  class Reader final : public BatchReader {
   public:
    Reader(std::unique_ptr<BatchReader> inner, std::shared_ptr<std::atomic<uint64_t>> work)
        : inner_(std::move(inner)), work_(std::move(work)) {}
    Result<std::optional<Batch>> Next() override {
      Result<std::optional<Batch>> batch = inner_->Next();
      work_->fetch_add(1, std::memory_order_relaxed);
      return batch;
    }

   private:
    const std::unique_ptr<BatchReader> inner_;
    const std::shared_ptr<std::atomic<uint64_t>> work_;
  };

  const Dataset& inner_;
  const std::shared_ptr<std::atomic<uint64_t>> work_;
};

}  // namespace msrt

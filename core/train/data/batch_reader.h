// The batches of one epoch, prepared ahead by threads of the reader. A unit of work is a sample;
// workers take units in order, so that the first batch is ready first.
#pragma once

#include <condition_variable>
#include <deque>
#include <thread>

#include "core/train/data/data_loader.h"

namespace msrt {

class LoaderReader final : public BatchReader {
 public:
  LoaderReader(const DataLoader* loader, int64_t epoch, int64_t first);
  ~LoaderReader() override;
  LoaderReader(const LoaderReader&) = delete;
  LoaderReader& operator=(const LoaderReader&) = delete;

  Result<std::optional<Batch>> Next() override;

 private:
  // A batch in preparation. Units write to their own part of the buffers.
  struct Slot {
    int64_t begin = 0;                                   // position of the batch in the epoch
    int64_t global_samples = 0, samples = 0, first = 0;  // `first` of this rank, in the batch
    int64_t units = 0;                                   // the samples, and one more for mixing
    int64_t next = 0, done = 0;                          // units that were taken, and finished
    int64_t failed = 0;  // the first unit that failed, if `status` is an error
    Status status = {};
    std::shared_ptr<std::vector<float>> values = {};
    std::vector<int64_t> labels = {};  // of samples, or of all their pixels
  };

  std::shared_ptr<Slot> MakeSlot();
  // Takes a unit and works on it. Returns false if there is none now. `lock` is held by the caller
  // and released for the work.
  bool WorkOnce(std::unique_lock<std::mutex>* lock, Picture* scratch);
  Status LoadUnit(Slot* slot, int64_t unit, Picture* scratch) const;
  void Work();
  Batch Finish(Slot* slot) const;
  float Mix(Slot* slot, int64_t sample) const;
  ConstTensor DenseTargets(Slot* slot) const;

  const DataLoader* const loader_;
  const int64_t epoch_;
  std::vector<int64_t> order_;

  std::mutex mutex_;
  std::condition_variable work_, ready_;
  std::deque<std::shared_ptr<Slot>> slots_;  // in the order of batches
  int64_t next_batch_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace msrt

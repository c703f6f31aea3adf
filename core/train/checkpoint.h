// A checkpoint: everything that a training run needs to continue with the same bits. One file,
// which is written beside the old one, synced and renamed (Io::WriteFile), with a checksum for each
// tensor and one for everything else. It contains whole tensors, so that any number of ranks can
// load it.
//
// File: "MSRTCKPT", u32 version, u32 zero, u64 bytes of the table, xxh64 of all that and the table;
// the table (names, types, offsets, checksums); zeros to a multiple of 64; the tensors, each at a
// multiple of 64. All numbers are little-endian.
#pragma once

#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/io.h"
#include "core/base/log.h"
#include "core/graph/graph.h"
#include "core/train/dataset.h"
#include "core/train/schedule.h"

namespace msrt {

struct CheckpointTensor {
  std::string name;  // of the slot
  StateRole role = StateRole::kParameter;
  ConstTensor data;
};

struct Checkpoint {
  std::string model;          // the name of the model, before it was made a training module
  int64_t steps = 0;          // updates
  int64_t micro_batches = 0;  // that were accumulated since the last update
  DataPosition position;
  Schedule schedule;
  double metric = 0;  // of the last evaluation
  bool has_metric = false;
  std::vector<std::pair<std::string, std::string>> notes;  // of the application
  std::vector<CheckpointTensor> tensors;
};

Status WriteCheckpoint(const Checkpoint& checkpoint, const std::string& path, Io* io);
// Checks all checksums. An error names the file, and the tensor that is damaged.
Result<Checkpoint> ReadCheckpoint(const std::string& path, Io* io,
                                  Allocator* allocator = DefaultAllocator());

// The checkpoints of a run in a folder: "step-000000120.ckpt", the last ones and the best. Used by
// one thread at a time.
class CheckpointFolder {
 public:
  struct Options {
    size_t keep_last = 5;   // at least 1
    bool keep_best = true;  // as "best.ckpt", by Checkpoint::metric
    bool higher_is_better = true;
  };
  // Makes the folder if it does not exist, and removes what a killed run left half written.
  static Result<CheckpointFolder> Open(std::string folder, const Options& options,
                                       Io* io = DefaultIo());

  // Writes the checkpoint, then removes the oldest of those that are too many. Files of later
  // steps, which are of another run, neither count nor are touched.
  Status Save(const Checkpoint& checkpoint);
  // Returns the newest checkpoint that can be read, or the best if no other can; damaged ones are
  // logged. kNotFound: there is none.
  Result<Checkpoint> LoadNewest(const Log& log) const;
  // The same for a run that continues: damaged files after it are renamed to *.unreadable, so that
  // those that the run writes are the newest again.
  Result<Checkpoint> Resume(const Log& log);
  Result<Checkpoint> LoadBest() const;
  // Whether there is a checkpoint, readable or not.
  Result<bool> HasCheckpoints() const;
  // The paths of the checkpoints, oldest first.
  Result<std::vector<std::string>> List() const;
  const std::string& folder() const { return folder_; }

 private:
  CheckpointFolder(std::string folder, const Options& options, Io* io)
      : folder_(std::move(folder)), options_(options), io_(io) {}
  std::string BestPath() const { return folder_ + "/best.ckpt"; }
  Status SaveBest(const Checkpoint& checkpoint);
  // `damaged` (may be null) receives the files that cannot be read.
  Result<Checkpoint> Newest(const Log& log, std::vector<std::string>* damaged) const;

  std::string folder_;
  Options options_;
  Io* io_;
  bool has_best_ = false;
  double best_ = 0;
};

// Writes checkpoints of a folder in a thread of its own, one at a time. Used by one thread at a
// time.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(CheckpointFolder* folder) : folder_(folder) {}
  ~CheckpointWriter() { (void)Wait(); }  // an error that nobody waited for is lost
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Waits for the checkpoint before, and returns its error if it was not written. Begins to write
  // this one otherwise.
  Status Save(Checkpoint checkpoint);
  // Returns the error of the checkpoint that was being written.
  Status Wait();

 private:
  CheckpointFolder* const folder_;
  std::thread thread_;
  Status status_;  // written by the thread, read after it has ended
};

}  // namespace msrt

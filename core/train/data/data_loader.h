// Batches from a source of samples: shuffled by the seed, augmented, divided among ranks, decoded
// in background threads. A batch depends on the seed, the epoch and its number only; ranks and
// threads divide the work, never change it.
#pragma once

#include <mutex>
#include <set>

#include "core/base/log.h"
#include "core/image/jobs/image_normalize.h"
#include "core/train/data/augment.h"
#include "core/train/data/sample.h"
#include "core/train/dataset.h"

namespace msrt {

// What happens if a sample cannot be read.
enum class BadSamples {
  kRefuse,  // the batch fails; the error names the sample
  // The sample is named in the log once. In shuffled data the next readable one takes its place; in
  // data for evaluation it is all zeros with an ignored label.
  kSkip,
};

struct LoaderOptions {
  int64_t batch = 32;  // of all ranks together
  uint64_t seed = 0;
  bool shuffle = false;    // training data: a new order in each epoch
  bool drop_last = false;  // leaves out a last batch that is not full
  Augmentation augmentation = {};
  Normalization normalization = {};  // after augmentation
  bool dense_targets = false;        // probabilities of the classes; always so with mixup
  BadSamples bad_samples = BadSamples::kRefuse;
  int rank = 0, ranks = 1;
  int threads = 2;   // that read and augment; 0: the thread that asks for a batch
  int prefetch = 3;  // the number of batches that are prepared ahead
  Log log = {};
};

// The samples [first, last) of a batch of `samples` that belong to a rank. The borders are those of
// the virtual shards (core/comm/tree_reduce.h), so that sums over shards are the same for any
// number of ranks; more ranks than shards divide the batch evenly.
struct SampleRange {
  int64_t first = 0, last = 0;
};
SampleRange SamplesOfRank(int64_t samples, int rank, int ranks);

// The order of the samples in an epoch.
std::vector<int64_t> ShuffledOrder(int64_t samples, uint64_t seed, int64_t epoch);

class DataLoader final : public Dataset {
 public:
  // Reads the first sample, to know the dims of a batch.
  static Result<std::unique_ptr<DataLoader>> Make(std::shared_ptr<const SampleSource> source,
                                                  LoaderOptions options);

  // Values, f32, batch x the dims of a sample. Targets: i64 labels of samples or pixels, or f32
  // probabilities of the classes.
  std::vector<Type> types() const override;
  int64_t samples() const override;
  int64_t batches_per_epoch() const override;
  Result<std::unique_ptr<BatchReader>> Batches(int64_t epoch, int64_t first = 0) const override;

  const SampleSource& source() const { return *source_; }
  const LoaderOptions& options() const { return options_; }
  const Dims& sample_dims() const { return sample_dims_; }
  // The names of samples that could not be read so far.
  std::vector<std::string> SkippedSamples() const;

 private:
  friend class LoaderReader;
  DataLoader(std::shared_ptr<const SampleSource> source, LoaderOptions options)
      : source_(std::move(source)), options_(std::move(options)) {}

  int64_t classes() const { return NumClasses(*source_); }
  bool mixes() const { return options_.augmentation.mixup > 0; }
  bool has_dense_targets() const { return mixes() || options_.dense_targets; }
  // Reads and augments the sample at a position of the epoch's order.
  Status Load(const std::vector<int64_t>& order, int64_t epoch, int64_t position,
              Picture* out) const;
  Status ReadReadable(int64_t index, const SampleRandom& random, Picture* out) const;
  bool NoteSkipped(int64_t index, const Status& reason) const;
  Status CheckPicture(int64_t index, const Picture& picture) const;

  const std::shared_ptr<const SampleSource> source_;
  const LoaderOptions options_;
  Dims sample_dims_;
  int64_t picture_rows_ = 0, picture_cols_ = 0;
  mutable std::mutex skipped_mutex_;
  mutable std::set<int64_t> skipped_;
};

}  // namespace msrt

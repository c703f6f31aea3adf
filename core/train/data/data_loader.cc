#include "core/train/data/data_loader.h"

#include <algorithm>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/comm/tree_reduce.h"
#include "core/train/data/batch_reader.h"
#include "core/train/data/picture_ops.h"

namespace msrt {
namespace {

// Streams of a sample's random numbers that are not a step of the augmentation.
constexpr uint64_t kSourceStream = uint64_t{1} << 32;

Status CheckOptions(const SampleSource& source, const LoaderOptions& options) {
  if (options.batch < 1) return InvalidArgument("a batch of ", options.batch, " samples");
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks)
    return InvalidArgument("rank ", options.rank, " of ", options.ranks);
  if (options.threads < 0 || options.prefetch < 1)
    return InvalidArgument("a loader with ", options.threads, " threads that prepares ",
                           options.prefetch, " batches");
  if (options.drop_last && source.samples() < options.batch)
    return InvalidArgument("there is no full batch of ", options.batch, " in ", source.samples(),
                           " samples; use smaller batches");
  const Augmentation& augmentation = options.augmentation;
  if (!source.sample_dims().empty() && !augmentation.steps.empty())
    return InvalidArgument("samples of dims ", source.sample_dims(),
                           " are no pictures, so they cannot be cropped, resized or flipped");
  const bool dense = augmentation.mixup > 0 || options.dense_targets;
  if (dense && (source.has_label_maps() || NumClasses(source) < 1))
    return InvalidArgument("mixup and probabilities as targets need one label per sample and a ",
                           "known number of classes");
  return OkStatus();
}

}  // namespace

SampleRange SamplesOfRank(int64_t samples, int rank, int ranks) {
  if (ranks > kVirtualShards) return {samples * rank / ranks, samples * (rank + 1) / ranks};
  const auto [first, last] = ShardsOfRank(rank, ranks);
  return {FirstSampleOfShard(samples, first), FirstSampleOfShard(samples, last)};
}

std::vector<int64_t> ShuffledOrder(int64_t samples, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  // No sample has this position.
  SampleRandom random(seed, epoch, -1);
  for (int64_t i = samples - 1; i > 0; --i)
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(random.Below(i + 1))]);
  return order;
}

Result<std::unique_ptr<DataLoader>> DataLoader::Make(std::shared_ptr<const SampleSource> source,
                                                     LoaderOptions options) {
  MSRT_RETURN_IF_ERROR(CheckOptions(*source, options));
  std::unique_ptr<DataLoader> loader(new DataLoader(std::move(source), std::move(options)));
  Picture first;
  const SampleRandom random(loader->options_.seed, 0, 0);
  // Also where bad samples are skipped, the first one that can be read shows the size.
  int64_t index = 0;
  Status status;
  for (; index < loader->samples(); ++index) {
    status = loader->source_->Read(index, random.Fork(kSourceStream), &first);
    if (status.ok() || loader->options_.bad_samples == BadSamples::kRefuse) break;
    loader->NoteSkipped(index, status);
  }
  if (status.ok()) status = Augment(loader->options_.augmentation.steps, random, &first);
  if (!status.ok())
    return std::move(status).Within(
        loader->source_->NameOf(std::min(index, loader->samples() - 1)));
  MSRT_RETURN_IF_ERROR(loader->options_.normalization.Check(first.channels));
  loader->sample_dims_ = loader->source_->sample_dims();
  if (loader->sample_dims_.empty()) loader->sample_dims_ = {first.channels, first.rows, first.cols};
  loader->picture_rows_ = first.rows, loader->picture_cols_ = first.cols;
  return loader;
}

std::vector<Type> DataLoader::types() const {
  Dims values{kUnknownDim}, targets{kUnknownDim};
  for (const int64_t dim : sample_dims_) values.push_back(dim);
  if (source_->has_label_maps()) {
    targets.push_back(picture_rows_);
    targets.push_back(picture_cols_);
  } else if (has_dense_targets()) {
    targets.push_back(classes());
  }
  return {Type::Tensor(DType::kF32, values),
          Type::Tensor(has_dense_targets() ? DType::kF32 : DType::kI64, targets)};
}

int64_t DataLoader::samples() const { return source_->samples(); }

int64_t DataLoader::batches_per_epoch() const {
  return options_.drop_last ? samples() / options_.batch : CeilDiv(samples(), options_.batch);
}

Result<std::unique_ptr<BatchReader>> DataLoader::Batches(int64_t epoch, int64_t first) const {
  if (epoch < 0 || first < 0 || first > batches_per_epoch())
    return InvalidArgument("batch ", first, " of epoch ", epoch, ": an epoch has ",
                           batches_per_epoch(), " batches");
  return std::unique_ptr<BatchReader>(std::make_unique<LoaderReader>(this, epoch, first));
}

std::vector<std::string> DataLoader::SkippedSamples() const {
  const std::lock_guard lock(skipped_mutex_);
  std::vector<std::string> names;
  for (const int64_t index : skipped_) names.push_back(source_->NameOf(index));
  return names;
}

// Returns whether the sample is noted for the first time.
bool DataLoader::NoteSkipped(int64_t index, const Status& reason) const {
  {
    const std::lock_guard lock(skipped_mutex_);
    if (!skipped_.insert(index).second) return false;
  }
  options_.log(LogLevel::kWarning, source_->NameOf(index), " is skipped: ", reason.message());
  return true;
}

// Reads the sample, or the next one in the source that can be read.
Status DataLoader::ReadReadable(int64_t index, const SampleRandom& random, Picture* out) const {
  Status first_problem;
  for (int64_t tries = 0; tries < samples(); ++tries) {
    const int64_t candidate = (index + tries) % samples();
    Status status = source_->Read(candidate, random.Fork(kSourceStream), out);
    if (status.ok() || status.code() == Code::kOutOfMemory) return status;
    if (options_.bad_samples == BadSamples::kRefuse)
      return std::move(status).Within(source_->NameOf(candidate));
    NoteSkipped(candidate, status);
    if (!options_.shuffle) {
      const Dims& dims = sample_dims_;
      out->Resize(dims.rank() == 3 ? dims[0] : dims.elements(), picture_rows_, picture_cols_);
      std::fill(out->pixels.begin(), out->pixels.end(), 0.0F);
      out->label = kIgnoredLabel;
      out->label_map.assign(
          source_->has_label_maps() ? static_cast<size_t>(picture_rows_ * picture_cols_) : 0,
          static_cast<int32_t>(kIgnoredLabel));
      return OkStatus();
    }
    if (tries == 0) first_problem = std::move(status);
  }
  return std::move(first_problem)
      .Within(StrCat("none of ", samples(), " samples can be read; ", source_->NameOf(index)));
}

Status DataLoader::CheckPicture(int64_t index, const Picture& picture) const {
  const auto elements = static_cast<size_t>(sample_dims_.elements());
  const bool same_rows = picture.rows == picture_rows_ && picture.cols == picture_cols_;
  if (picture.pixels.size() != elements || !same_rows)
    return InvalidArgument(source_->NameOf(index), " has dims [", picture.channels, ", ",
                           picture.rows, ", ", picture.cols, "], others have ", sample_dims_,
                           "; resize all to one size");
  const auto map_size =
      source_->has_label_maps() ? static_cast<size_t>(picture_rows_ * picture_cols_) : 0;
  if (picture.label_map.size() != map_size)
    return InvalidArgument(source_->NameOf(index), " has ", picture.label_map.size(),
                           " labels of pixels, not ", map_size);
  if (map_size == 0 && classes() > 0 &&
      (picture.label < kIgnoredLabel || picture.label >= classes()))
    return InvalidArgument(source_->NameOf(index), " has label ", picture.label, " of ", classes(),
                           " classes");
  return OkStatus();
}

Status DataLoader::Load(const std::vector<int64_t>& order, int64_t epoch, int64_t position,
                        Picture* out) const {
  const SampleRandom random(options_.seed, epoch, position);
  const int64_t index = order.empty() ? position : order[static_cast<size_t>(position)];
  MSRT_RETURN_IF_ERROR(ReadReadable(index, random, out));
  Status status = Augment(options_.augmentation.steps, random, out);
  if (!status.ok()) return std::move(status).Within(source_->NameOf(index));
  MSRT_RETURN_IF_ERROR(CheckPicture(index, *out));
  const auto plane = static_cast<size_t>(out->rows * out->cols);
  if (!options_.normalization.empty()) {
    for (int64_t c = 0; c < out->channels; ++c)
      options_.normalization.Apply(c, std::span(out->Plane(c), plane));
  }
  return OkStatus();
}

}  // namespace msrt

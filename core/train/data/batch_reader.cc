#include "core/train/data/batch_reader.h"

#include <algorithm>

#include "core/base/catch_as_status.h"

namespace msrt {
namespace {

constexpr uint64_t kMixStream = uint64_t{1} << 33;

template <typename T>
ConstTensor Own(DType dtype, Dims dims, std::shared_ptr<std::vector<T>> values) {
  ConstTensor tensor;
  tensor.dtype = dtype;
  tensor.dims = dims;
  tensor.bytes = std::as_bytes(std::span(*values)).first(BytesOf(dtype, dims.elements()));
  tensor.owner = std::move(values);
  return tensor;
}

}  // namespace

LoaderReader::LoaderReader(const DataLoader* loader, int64_t epoch, int64_t first)
    : loader_(loader), epoch_(epoch), next_batch_(first) {
  const LoaderOptions& options = loader_->options();
  if (options.shuffle) order_ = ShuffledOrder(loader_->samples(), options.seed, epoch);
  for (int i = 0; i < options.threads; ++i) workers_.emplace_back([this] { Work(); });
}

LoaderReader::~LoaderReader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

std::shared_ptr<LoaderReader::Slot> LoaderReader::MakeSlot() {
  const LoaderOptions& options = loader_->options();
  auto slot = std::make_shared<Slot>();
  slot->begin = next_batch_++ * options.batch;
  slot->global_samples = std::min(options.batch, loader_->samples() - slot->begin);
  const SampleRange range = SamplesOfRank(slot->global_samples, options.rank, options.ranks);
  slot->first = range.first;
  slot->samples = range.last - range.first;
  slot->units = slot->samples + (loader_->mixes() && slot->samples > 0 ? 1 : 0);
  const auto elements = static_cast<size_t>(loader_->sample_dims().elements());
  slot->values = std::make_shared<std::vector<float>>(static_cast<size_t>(slot->units) * elements);
  const int64_t labels =
      loader_->source().has_label_maps() ? loader_->picture_rows_ * loader_->picture_cols_ : 1;
  slot->labels.resize(static_cast<size_t>(slot->units * labels));
  return slot;
}

Status LoaderReader::LoadUnit(Slot* slot, int64_t unit, Picture* scratch) const {
  // The unit after this rank's last sample is the one that the last sample is mixed with.
  const int64_t position = slot->begin + (slot->first + unit) % slot->global_samples;
  MSRT_RETURN_IF_ERROR(loader_->Load(order_, epoch_, position, scratch));
  std::copy(scratch->pixels.begin(), scratch->pixels.end(),
            slot->values->data() + static_cast<size_t>(unit) * scratch->pixels.size());
  if (scratch->label_map.empty()) {
    slot->labels[static_cast<size_t>(unit)] = scratch->label;
  } else {
    std::copy(scratch->label_map.begin(), scratch->label_map.end(),
              slot->labels.data() + static_cast<size_t>(unit) * scratch->label_map.size());
  }
  return OkStatus();
}

bool LoaderReader::WorkOnce(std::unique_lock<std::mutex>* lock, Picture* scratch) {
  std::shared_ptr<Slot> slot;
  for (const auto& candidate : slots_) {
    if (candidate->next < candidate->units) {
      slot = candidate;
      break;
    }
  }
  if (slot == nullptr) {
    if (next_batch_ >= loader_->batches_per_epoch() ||
        static_cast<int>(slots_.size()) >= loader_->options().prefetch)
      return false;
    slot = MakeSlot();
    slots_.push_back(slot);
    if (slot->units == 0) {  // a rank without samples in a short batch
      ready_.notify_all();
      return true;
    }
  }
  const int64_t unit = slot->next++;
  lock->unlock();
  Status status;
  const Status thrown = CatchAsStatus([&] { status = LoadUnit(slot.get(), unit, scratch); });
  if (!thrown.ok()) status = thrown;
  lock->lock();
  if (!status.ok() && (slot->status.ok() || unit < slot->failed)) {
    slot->status = std::move(status);
    slot->failed = unit;
  }
  if (++slot->done == slot->units) ready_.notify_all();
  return true;
}

void LoaderReader::Work() {
  Picture scratch;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    // Memory for a batch may run out; the reader that waits for the batch reports it.
    bool worked = false;
    const Status status = CatchAsStatus([&] { worked = WorkOnce(&lock, &scratch); });
    if (!status.ok()) {
      auto failed = std::make_shared<Slot>();
      failed->status = status;
      slots_.push_back(std::move(failed));
      next_batch_ = loader_->batches_per_epoch();
      ready_.notify_all();
      return;
    }
    if (!worked) work_.wait(lock);
  }
}

Result<std::optional<Batch>> LoaderReader::Next() {
  std::shared_ptr<Slot> slot;
  {
    std::unique_lock lock(mutex_);
    if (slots_.empty() && next_batch_ >= loader_->batches_per_epoch())
      return std::optional<Batch>();
    if (workers_.empty()) {
      Picture scratch;
      while (slots_.empty() || slots_.front()->done < slots_.front()->units)
        WorkOnce(&lock, &scratch);
    } else {
      ready_.wait(lock,
                  [&] { return !slots_.empty() && slots_.front()->done == slots_.front()->units; });
    }
    slot = std::move(slots_.front());
    slots_.pop_front();
  }
  work_.notify_all();
  if (!slot->status.ok()) return slot->status;
  return std::optional<Batch>(Finish(slot.get()));
}

// Mixes a sample with the next one of the global batch, in place, and returns the ratio.
float LoaderReader::Mix(Slot* slot, int64_t sample) const {
  const LoaderOptions& options = loader_->options();
  const SampleRandom random(options.seed, epoch_, slot->begin + slot->first + sample);
  const auto ratio =
      static_cast<float>(DrawMixRatio(options.augmentation.mixup, random.Fork(kMixStream)));
  const int64_t elements = loader_->sample_dims().elements();
  float* const own = slot->values->data() + sample * elements;
  for (int64_t e = 0; e < elements; ++e) own[e] = ratio * own[e] + (1 - ratio) * own[elements + e];
  return ratio;
}

// Returns probabilities of the classes.
ConstTensor LoaderReader::DenseTargets(Slot* slot) const {
  const int64_t classes = loader_->classes();
  auto targets = std::make_shared<std::vector<float>>(static_cast<size_t>(slot->samples * classes));
  for (int64_t i = 0; i < slot->samples; ++i) {
    const auto add = [&](int64_t label, float share) {
      if (label >= 0) (*targets)[static_cast<size_t>(i * classes + label)] += share;
    };
    const float ratio = loader_->mixes() ? Mix(slot, i) : 1;
    add(slot->labels[static_cast<size_t>(i)], ratio);
    if (loader_->mixes()) add(slot->labels[static_cast<size_t>(i + 1)], 1 - ratio);
  }
  return Own(DType::kF32, {slot->samples, classes}, std::move(targets));
}

Batch LoaderReader::Finish(Slot* slot) const {
  Batch batch;
  batch.samples = slot->samples;
  batch.global_samples = slot->global_samples;
  std::vector<Type> types = loader_->types();
  for (Type& type : types) type.dims[0] = slot->samples;
  ConstTensor targets;
  if (loader_->has_dense_targets()) {
    targets = DenseTargets(slot);
  } else {
    targets = Own(DType::kI64, types[1].dims,
                  std::make_shared<std::vector<int64_t>>(std::move(slot->labels)));
  }
  batch.tensors.push_back(Own(DType::kF32, types[0].dims, slot->values));
  batch.tensors.push_back(std::move(targets));
  return batch;
}

}  // namespace msrt

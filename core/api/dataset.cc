#include "core/api/dataset.h"

#include "core/abi/msrt_train.h"
#include "core/api/arguments.h"
#include "core/api/errors.h"
#include "core/api/json_writer.h"
#include "core/api/runtime.h"
#include "core/api/tensor.h"
#include "core/train/data/open_samples.h"

namespace msrt {
namespace {

// Batches that a function of the application returns.
class CallbackBatches final : public Dataset {
 public:
  explicit CallbackBatches(const msrt_dataset_config& config)
      : read_(config.read),
        user_(config.read_user),
        batches_(config.batch_count),
        inputs_(config.input_count == 0 ? 1 : config.input_count) {}

  // Known when a batch is read.
  std::vector<Type> types() const override { return {}; }
  int64_t samples() const override { return 0; }
  int64_t batches_per_epoch() const override { return batches_; }
  Result<std::unique_ptr<BatchReader>> Batches(int64_t epoch, int64_t first) const override {
    return std::unique_ptr<BatchReader>(std::make_unique<Reader>(this, epoch, first));
  }

 private:
  class Reader final : public BatchReader {
   public:
    Reader(const CallbackBatches* batches, int64_t epoch, int64_t first)
        : batches_(batches), epoch_(epoch), next_(first) {}
    Result<std::optional<Batch>> Next() override {
      if (next_ >= batches_->batches_) return std::optional<Batch>();
      MSRT_ASSIGN_OR_RETURN(Batch batch, batches_->Read(epoch_, next_));
      ++next_;
      return std::optional<Batch>(std::move(batch));
    }

   private:
    const CallbackBatches* const batches_;
    const int64_t epoch_;
    int64_t next_;
  };

  Result<Batch> Read(int64_t epoch, int64_t number) const {
    std::vector<msrt_tensor*> tensors(inputs_ + 1);
    const msrt_status status = read_(user_, epoch, number, tensors.data(), &tensors[inputs_]);
    const std::string what = StrCat("dataset.read for batch ", number, " of epoch ", epoch);
    if (status != MSRT_OK) {
      const bool known = status > MSRT_OK && status < MSRT_INTERNAL;
      return Status(known ? static_cast<Code>(status) : Code::kInvalidArgument,
                    StrCat(what, " returned ", status, " (", msrt_status_string(status), ")"));
    }
    Batch batch;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string name = i == inputs_ ? "the target" : StrCat("inputs[", i, "]");
      if (tensors[i] == nullptr) return InvalidArgument(what, " did not set ", name);
      MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<TensorObject> tensor,
                            HostTensor(tensors[i], StrCat(what, ": ", name)));
      batch.tensors.push_back(ConstantOver(tensor));
    }
    const Dims& dims = batch.tensors[0].dims;
    batch.samples = batch.global_samples = dims.rank() > 0 ? dims[0] : 1;
    return batch;
  }

  const msrt_read_batch read_;
  void* const user_;
  const int64_t batches_;
  const size_t inputs_;
};

Status CheckNumbers(const msrt_dataset_config& config) {
  for (const auto& [name, value] : {std::pair{"batch", config.batch},
                                    {"channels", config.channels},
                                    {"rows", config.rows},
                                    {"columns", config.columns}}) {
    if (value < 0) return InvalidArgument("config.", name, " is ", value, ", must be at least 0");
  }
  if ((config.rows == 0) != (config.columns == 0))
    return InvalidArgument("config.rows is ", config.rows, " and config.columns is ",
                           config.columns, "; set both or neither");
  return OkStatus();
}

Result<OpenSamplesOptions> OpenOptionsOf(const msrt_dataset_config& config) {
  OpenSamplesOptions open;
  if (config.test != 0) open.split = DataSplit::kTest;
  if (config.channels != 0) open.folder.channels = config.channels;
  if (config.classes_of == nullptr) return open;
  MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<DatasetObject> other,
                        ObjectOf<DatasetObject>(config.classes_of, "config.classes_of"));
  if (other->loader == nullptr)
    return InvalidArgument(
        "config.classes_of has batches of the application, which name no "
        "classes; use a dataset with a path");
  open.folder.class_names = other->loader->source().class_names();
  return open;
}

Result<LoaderOptions> LoaderOptionsOf(const msrt_dataset_config& config, const Log& log) {
  constexpr int kThreads = 2;
  LoaderOptions options;
  if (config.batch != 0) options.batch = config.batch;
  options.seed = config.seed;
  options.shuffle = config.shuffle != 0;
  options.dense_targets = config.dense_targets != 0;
  options.bad_samples = config.skip_unreadable != 0 ? BadSamples::kSkip : BadSamples::kRefuse;
  options.threads =
      std::max(config.background_threads == 0 ? kThreads : config.background_threads, 0);
  options.log = log;
  if (config.augment != nullptr) {
    MSRT_ASSIGN_OR_RETURN(options.augmentation, ParseAugmentation(config.augment));
  }
  if (config.rows != 0) {
    AugmentStep resize;
    resize.rows = config.rows, resize.cols = config.columns;
    options.augmentation.steps.push_back(resize);
  }
  if (config.normalize != nullptr) {
    MSRT_ASSIGN_OR_RETURN(options.normalization, ParseNormalization(config.normalize));
  }
  return options;
}

Status OpenFiles(const msrt_dataset_config& config, DatasetObject* dataset) {
  if (config.read != nullptr)
    return InvalidArgument("config.path and config.read are both set; set one of them");
  MSRT_ASSIGN_OR_RETURN(const OpenSamplesOptions open, OpenOptionsOf(config));
  MSRT_ASSIGN_OR_RETURN(LoaderOptions options, LoaderOptionsOf(config, dataset->environment->log));
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<SampleSource> source, OpenSamples(config.path, open));
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<DataLoader> loader,
                        DataLoader::Make(std::move(source), std::move(options)));
  dataset->loader = loader.get();
  dataset->data = std::move(loader);
  return OkStatus();
}

std::string InfoOf(const DatasetObject& dataset) {
  JsonWriter json;
  json.BeginObject();
  json.Field("batches", dataset.data->batches_per_epoch());
  if (dataset.loader != nullptr) {
    json.Field("samples", dataset.loader->samples());
    json.Key("classes");
    json.BeginArray();
    for (const std::string& name : dataset.loader->source().class_names()) json.Value(name);
    json.EndArray();
    json.Key("dims");
    json.BeginArray();
    for (const int64_t dim : dataset.loader->sample_dims()) json.Value(dim);
    json.EndArray();
    json.Key("skipped");
    json.BeginArray();
    for (const std::string& name : dataset.loader->SkippedSamples()) json.Value(name);
    json.EndArray();
  }
  json.EndObject();
  return json.Take();
}

}  // namespace

std::vector<std::pair<std::string, std::string>> IdentityOf(const DatasetObject& dataset) {
  if (dataset.loader == nullptr) return {{"batches", StrCat(dataset.data->batches_per_epoch())}};
  return {{"batch", StrCat(dataset.loader->options().batch)},
          {"seed", StrCat(dataset.loader->options().seed)},
          {"data", StrCat(dataset.loader->source().fingerprint())}};
}

}  // namespace msrt

using namespace msrt;

msrt_status msrt_dataset_create(msrt_runtime* runtime, const msrt_dataset_config* config,
                                msrt_dataset** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<RuntimeObject> owner,
                          ObjectOf<RuntimeObject>(runtime, "runtime"));
    MSRT_RETURN_IF_ERROR(CheckStructSize(config, "config"));
    MSRT_ASSIGN_OR_RETURN(const msrt_dataset_config given, ConfigArgument(config, "config"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    MSRT_RETURN_IF_ERROR(CheckNumbers(given));
    auto dataset = std::make_shared<DatasetObject>();
    dataset->environment = owner->environment();
    if (given.path != nullptr) {
      MSRT_RETURN_IF_ERROR(OpenFiles(given, dataset.get()));
    } else {
      if (given.read == nullptr)
        return InvalidArgument("config.path and config.read are both NULL; set one of them");
      if (given.batch_count < 1)
        return InvalidArgument("config.batch_count is ", given.batch_count,
                               ", must be at least 1 with config.read");
      dataset->data = std::make_unique<CallbackBatches>(given);
    }
    *out = NewHandle(std::move(dataset));
    return OkStatus();
  });
}

msrt_status msrt_dataset_info_json(msrt_dataset* dataset, const char** out) {
  return Guarded(__func__, [&]() -> Status {
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<DatasetObject> object,
                          ObjectOf<DatasetObject>(dataset, "dataset"));
    MSRT_RETURN_IF_ERROR(NotNull(out, "out"));
    std::lock_guard lock(object->mutex);
    object->info = InfoOf(*object);
    *out = object->info.c_str();
    return OkStatus();
  });
}

void msrt_dataset_destroy(msrt_dataset* dataset) { DestroyHandle<DatasetObject>(dataset); }

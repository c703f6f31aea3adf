#include "tools/msrun/train_arguments.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "core/train/schedule.h"
#include "tools/msrun/image_arguments.h"
#include "tools/msrun/model_source.h"

namespace msrt {
namespace {

constexpr const char* kTrainFooter =
    R"(Data:
  a folder of folders with .jpg, .png, .tif    one class per folder
  CIFAR-10 and CIFAR-100 (binary version), MNIST (idx files), unpacked
  images.npy, labels.npy; or X.npy,Y.npy       N x C x H x W or N x H x W, and N class numbers
  windows:FOLDER                               large images in FOLDER/images, labels in FOLDER/labels

Augmentation: steps in quotes, separated by spaces
  crop:SIZE[:PADDING]  center-crop:SIZE  resize:SIZE  zoom:SIZE[:AREA]  hflip[:P]  vflip[:P]  turn
  rotate:DEGREES  color:BRIGHTNESS[,CONTRAST[,SATURATION]]  mixup:ALPHA

Example:
  msrun train --model zoo:resnet50 --data fruits/Training --eval fruits/Test --epochs 10 --size 100
    --augment 'crop:32:4 hflip' --optimizer momentum:0.9 --lr 0.01 --output run1

--output receives model.msrt, history.csv, report.html and the folder checkpoints.)";

// The options as text, before they are checked.
struct TrainTexts {
  std::string size, optimizer = "momentum:0.9", loss = "cross-entropy", loss_scale = "1", augment;
  std::string corrupt = "refuse", window;
};

void AddModelOptions(CLI::App* app, TrainArguments* a, TrainTexts* t) {
  app->add_option("--model", a->common.model, "zoo:NAME, or a .msrt file")->required();
  app->add_option("--optimizer", t->optimizer,
                  "sgd, momentum:0.9, nesterov:0.9, rmsprop, adagrad, adam, adamw, lamb, lars");
  app->add_option("--lr", a->rate, "learning rate")->check(CLI::PositiveNumber);
  app->add_option("--schedule", a->schedule,
                  "constant, step:SIZE[:FACTOR], cosine[:FINAL], polynomial[:POWER[:FINAL]], "
                  "onecycle; each with +warmup:STEPS");
  app->add_option("--weight-decay", a->spec.optimizer.weight_decay, "of the optimizer")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--loss", t->loss, "of the model's first output")
      ->check(CLI::IsMember({"cross-entropy", "mse", "l1", "huber", "bce"}));
  app->add_option("--label-smoothing", a->spec.loss.label_smoothing,
                  "cross-entropy: the part of a target that is spread over all classes")
      ->check(CLI::Range(0.0, 1.0));
  app->add_option("--class-weights", a->spec.class_weights,
                  "cross-entropy: one number for each class, comma-separated")
      ->delimiter(',')
      ->take_all();
  app->add_option("--loss-scale", t->loss_scale, "a number, or dynamic");
  app->add_option("--clip-norm", a->spec.clip_norm, "limit of the norm of all gradients together")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--clip-value", a->spec.clip_value, "limit of each element of a gradient")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--accumulate", a->spec.accumulation, "batches that make one update")
      ->check(CLI::PositiveNumber);
  app->add_option("--average", a->spec.average_decay,
                  "decay of the moving average of weights, which is evaluated; 0: none")
      ->check(CLI::Range(0.0, 1.0));
  app->add_option("--freeze", a->spec.frozen,
                  "parameters that stay as they are; * is any text (several times)")
      ->take_all();
}

void AddDataOptions(CLI::App* app, TrainArguments* a, TrainTexts* t) {
  app->add_option("--data", a->data, "training data, see below")->required();
  app->add_option("--eval", a->eval, "data that the model is evaluated with after each epoch");
  app->add_option("--epochs", a->epochs, "passes over the training data")
      ->check(CLI::Range(1, 1000000));
  app->add_option("--batch", a->batch, "samples of a step, over all ranks")
      ->check(CLI::Range(1, 1 << 20));
  app->add_option("--size", t->size, "N or RxC: the size of pictures, after augmentation");
  app->add_option("--augment", t->augment, "changes of training pictures, see below");
  app->add_option("--normalize", a->normalize_text,
                  "'mean=123.7,116.3,103.5 std=58.4,57.1,57.4', 'scale=1/255' or none");
  app->add_option("--corrupt", t->corrupt, "pictures that cannot be read: refuse, or skip them")
      ->check(CLI::IsMember({"refuse", "skip"}));
  app->add_option("--data-threads", a->data_threads, "that read and augment; 0: the main thread")
      ->check(CLI::Range(0, 256));
  app->add_option("--window", t->window, "N or RxC: windows of large images");
  app->add_option("--windows", a->windows.windows, "random windows of large images in an epoch")
      ->check(CLI::PositiveNumber);
  app->add_option("--seed", a->seed, "of a zoo model's weights, the order and augmentation")
      ->check(CLI::NonNegativeNumber);
}

void AddRunOptions(CLI::App* app, TrainArguments* a) {
  app->add_option("--output", a->output, "folder of all results")->required();
  app->add_flag("--resume", a->resume, "continue from the newest checkpoint");
  app->add_option("--checkpoint-every", a->checkpoint_every,
                  "steps between checkpoints; 0: one after each epoch")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--keep", a->keep, "the number of last checkpoints that stay")
      ->check(CLI::Range(1, 1000000));
  app->add_option("--early-stop", a->early_stop,
                  "end after so many epochs without a better evaluation; 0: never")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--threads", a->common.threads, "0: one for each core")
      ->check(CLI::Range(0, 4096));
  app->add_option("--delegate", a->common.delegates, "allow only these, comma-separated");
  app->add_option("--accuracy", a->common.accuracy,
                  "exact: the same bits however work is divided; fast: products in bf16")
      ->check(CLI::IsMember({"exact", "default", "fast"}));
  app->add_option(
         "--sums", a->sums,
         "sums over a batch: fixed (the default with several ranks): the same bits for any "
         "number of ranks, up to 8, and threads, by --accuracy exact; any: in any order")
      ->check(CLI::IsMember({"fixed", "any"}));
  AddSpeedOptions(app, &a->common.speed, nullptr);
  app->add_option("--plugin", a->common.plugins,
                  "PATH[:OPTIONS]: a shared library with delegates, kernels and ops")
      ->take_all();
  app->add_option("--json", a->common.json, "write the results as JSON; - is standard output");
  auto* quiet = app->add_flag("--quiet", a->common.quiet, "print errors only");
  app->add_flag("--verbose", a->common.verbose, "print what the runtime logs")->excludes(quiet);
}

// Parses "100" or "100x80".
Status ParseSize(std::string_view option, const std::string& text, int64_t* rows, int64_t* cols) {
  if (text.empty()) return OkStatus();
  const std::string both = text.find('x') == std::string::npos ? text + "x" + text : text;
  auto size = ParsePair(option, both);
  if (!size.ok()) return InvalidArgument(option, " '", text, "' must look like 100 or 100x80");
  *rows = size->first, *cols = size->second;
  return OkStatus();
}

Status ReadTexts(const TrainTexts& t, TrainArguments* a) {
  MSRT_RETURN_IF_ERROR(ParseSize("--size", t.size, &a->rows, &a->cols));
  MSRT_RETURN_IF_ERROR(ParseSize("--window", t.window, &a->windows.rows, &a->windows.cols));
  const double weight_decay = a->spec.optimizer.weight_decay;
  MSRT_ASSIGN_OR_RETURN(a->spec.optimizer, ParseOptimizer(t.optimizer));
  a->spec.optimizer.weight_decay = weight_decay;
  a->spec.loss.kind = t.loss == "mse"     ? LossKind::kMeanSquares
                      : t.loss == "l1"    ? LossKind::kMeanAbsolute
                      : t.loss == "huber" ? LossKind::kHuber
                      : t.loss == "bce"   ? LossKind::kBinaryCrossEntropyWithLogits
                                          : LossKind::kCrossEntropy;
  if (t.loss_scale == "dynamic") {
    constexpr double kFirstScale = 65536;
    a->spec.loss_scale.dynamic = true;
    a->spec.loss_scale.initial = kFirstScale;
  } else {
    char* end = nullptr;
    a->spec.loss_scale.initial = std::strtod(t.loss_scale.c_str(), &end);
    if (*end != '\0' || !(a->spec.loss_scale.initial > 0))
      return InvalidArgument("--loss-scale '", t.loss_scale, "' must be a number like 1024, or ",
                             "dynamic");
  }
  MSRT_ASSIGN_OR_RETURN(a->augmentation, ParseAugmentation(t.augment));
  if (a->normalize_text == "none") a->normalize_text.clear();
  MSRT_ASSIGN_OR_RETURN(a->normalization, ParseNormalization(a->normalize_text));
  // Labels that are ignored come from label images, and from pixels that a rotation moves in.
  a->spec.target_is_distribution = a->augmentation.mixup > 0;
  if (a->has_class_targets()) a->spec.loss.ignore_index = kIgnoredLabel;
  a->bad_samples = t.corrupt == "skip" ? BadSamples::kSkip : BadSamples::kRefuse;
  if (a->sums == "fixed" && a->common.accuracy == "fast")
    return InvalidArgument("--sums fixed needs --accuracy exact, which it sets; leave out ",
                           "--accuracy fast, or use --sums any");
  MSRT_RETURN_IF_ERROR(CheckSpeedOptions(a->common.speed));
  // The steps are known when the data is open; everything else is checked now.
  return ParseSchedule(a->schedule, a->rate, int64_t{1} << 40).status();
}

Status CheckTrainFiles(const TrainArguments& a) {
  namespace fs = std::filesystem;
  if (!IsZooName(a.common.model) && !fs::is_regular_file(a.common.model))
    return NotFound("model '", a.common.model,
                    "': there is no such file; networks that are built in are zoo:NAME");
  FilesRead read = FilesReadBy(a.common);
  if (!a.common.json.empty())
    MSRT_RETURN_IF_ERROR(CheckOutputFile("--json", a.common.json, kJsonFile, read));
  MSRT_RETURN_IF_ERROR(read.Refuse("--output", a.output + "/model.msrt"));
  std::error_code error;
  fs::create_directories(a.output, error);
  if (error) return IoError("--output '", a.output, "': ", error.message());
  const bool has_run = fs::exists(a.checkpoint_folder()) && !fs::is_empty(a.checkpoint_folder());
  if (has_run && !a.resume)
    return InvalidArgument("--output '", a.output,
                           "' has the checkpoints of another run; continue "
                           "it with --resume, or choose another folder");
  return OkStatus();
}

}  // namespace

bool ParseTrainArguments(int argc, char** argv, TrainArguments* a, int* exit_code) {
  CLI::App app{"Trains a model on images or arrays.", "msrun train"};
  TrainTexts texts;
  app.footer(kTrainFooter);
  app.option_defaults()->take_last();
  app.set_config("--config", "", "a file with options, one NAME = VALUE per line");
  AddModelOptions(&app, a, &texts);
  AddDataOptions(&app, a, &texts);
  AddRunOptions(&app, a);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    *exit_code = app.exit(e) == 0 ? kDone : kWrongCommandLine;
    return false;
  }
  Status status = ReadTexts(texts, a);
  if (status.ok()) status = CheckTrainFiles(*a);
  if (status.ok()) return true;
  std::cerr << "msrun: " << status.message() << "\n";
  *exit_code = kWrongCommandLine;
  return false;
}

}  // namespace msrt

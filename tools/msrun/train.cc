#include "tools/msrun/train.h"

#include <signal.h>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/base/units.h"
#include "core/comm/job/counted_parallel.h"
#include "core/model/write.h"
#include "core/run/run_context.h"
#include "core/train/train_loop.h"
#include "core/train/training_module.h"
#include "tools/msrun/counted_dataset.h"
#include "tools/msrun/duration.h"
#include "tools/msrun/progress_line.h"
#include "tools/msrun/rank_job.h"
#include "tools/msrun/train_model.h"
#include "tools/msrun/train_report.h"
#include "tools/msrun/workload.h"

namespace msrt {
namespace {

// Set by the first interrupt: the run stops after a step and a checkpoint. A second one ends the
// process.
std::atomic<bool> stop_requested{false};

extern "C" void RequestStop(int) { stop_requested.store(true); }

void CatchInterrupts() {
  struct sigaction action {};
  action.sa_handler = RequestStop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

LoaderOptions LoaderOptionsOf(const TrainArguments& a, const TrainRanks& ranks, const Log& log) {
  LoaderOptions options;
  options.rank = ranks.rank(), options.ranks = ranks.size();
  options.batch = a.batch;
  options.seed = a.seed;
  options.normalization = a.normalization;
  options.bad_samples = a.bad_samples;
  options.threads = a.data_threads;
  options.log = log;
  return options;
}

// Pictures get the size of --size after all other steps.
void AddSize(const TrainArguments& a, Augmentation* augmentation) {
  if (a.rows == 0) return;
  AugmentStep resize;
  resize.rows = a.rows, resize.cols = a.cols;
  augmentation->steps.push_back(resize);
}

Result<std::unique_ptr<DataLoader>> TrainingData(const TrainArguments& a, int64_t channels,
                                                 const TrainRanks& ranks, const Log& log) {
  OpenSamplesOptions open;
  open.folder.channels = channels;
  open.windows = a.windows;
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<SampleSource> source, OpenSamples(a.data, open));
  LoaderOptions options = LoaderOptionsOf(a, ranks, log);
  options.shuffle = true;
  options.dense_targets = !a.has_class_targets();
  options.augmentation = a.augmentation;
  AddSize(a, &options.augmentation);
  return DataLoader::Make(std::move(source), std::move(options));
}

Result<std::unique_ptr<DataLoader>> EvaluationData(const TrainArguments& a, int64_t channels,
                                                   const DataLoader& data, const TrainRanks& ranks,
                                                   const Log& log) {
  OpenSamplesOptions open;
  open.split = DataSplit::kTest;
  open.folder.channels = channels;
  open.folder.class_names = data.source().class_names();
  open.windows = a.windows;
  open.windows.windows = 0;
  open.windows.classes = NumClasses(data.source());
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<SampleSource> source, OpenSamples(a.eval, open));
  if (NumClasses(*source) > NumClasses(data.source()))
    return InvalidArgument("--eval '", a.eval, "' has ", NumClasses(*source),
                           " classes, the training data has ", NumClasses(data.source()));
  LoaderOptions options = LoaderOptionsOf(a, ranks, log);
  // Without --size the pictures of an evaluation get the size of those for training.
  AddSize(a, &options.augmentation);
  const Dims& dims = data.sample_dims();
  if (a.rows == 0 && dims.rank() == 3 && source->sample_dims().empty()) {
    AugmentStep resize;
    resize.rows = dims[1], resize.cols = dims[2];
    options.augmentation.steps.push_back(resize);
  }
  return DataLoader::Make(std::move(source), std::move(options));
}

struct TrainRun {
  std::shared_ptr<const Environment> environment;
  std::unique_ptr<DataLoader> data, eval;
  std::unique_ptr<Trainer> trainer;
  ClassLoss class_loss;   // of evaluations
  size_t parameters = 0;  // numbers in all parameters
};

// The loss that the model is trained with, so that both have one curve; cross-entropy without
// weights and smoothing.
ClassLoss ClassLossOf(const LossSpec& spec, bool probabilities) {
  using Kind = ClassLoss::Kind;
  switch (spec.kind) {
    case LossKind::kMeanSquares:
      return {Kind::kMeanSquares};
    case LossKind::kMeanAbsolute:
      return {Kind::kMeanAbsolute};
    case LossKind::kHuber:
      return {Kind::kHuber, spec.delta};
    case LossKind::kBinaryCrossEntropyWithLogits:
      return {Kind::kBinaryCrossEntropyWithLogits};
    default:
      return {probabilities ? Kind::kCrossEntropyOfProbabilities : Kind::kCrossEntropy};
  }
}

// Ranks that were started with different options or files would compute different steps.
Status CheckSameRun(const TrainArguments& a, const TrainRun& run, const TrainRanks& ranks) {
  const auto text_of = [](const DataLoader* data) {
    return data == nullptr ? std::string("none")
                           : StrCat(data->source().fingerprint(), " ", data->samples(), " ",
                                    data->sample_dims());
  };
  MSRT_RETURN_IF_ERROR(ranks.CheckSame("training data", text_of(run.data.get()),
                                       "give all ranks the same files for --data"));
  MSRT_RETURN_IF_ERROR(ranks.CheckSame("evaluation data", text_of(run.eval.get()),
                                       "give all ranks the same files for --eval"));
  // All that changes batches, steps or where the run ends.
  const std::string options =
      StrCat(a.batch, " ", a.epochs, " ", a.seed, " ", a.rate, " ", a.schedule, " ", a.rows, "x",
             a.cols, " ", a.augment_text, " ", a.normalize_text, " ", a.windows.rows, "x",
             a.windows.cols, " ", a.windows.windows, " ", static_cast<int>(a.bad_samples), " ",
             a.checkpoint_every, " ", a.keep, " ", a.early_stop, " ", a.resume, " ",
             a.has_fixed_sums(ranks.size()), " ", a.common.accuracy, " ", a.common.delegates);
  return ranks.CheckSame("command line", options, "start all ranks with the same options");
}

Result<TrainRun> PrepareTraining(const TrainArguments& a, const TrainRanks& ranks,
                                 const RankJob& job) {
  TrainRun run;
  MSRT_ASSIGN_OR_RETURN(run.environment, MakeEnvironment(a.common));
  if (job.watch) {
    auto counted = std::make_shared<Environment>(*run.environment);
    counted->parallel = std::make_shared<CountedParallel>(run.environment->parallel, job.work);
    run.environment = std::move(counted);
  }
  MSRT_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(a));
  MSRT_ASSIGN_OR_RETURN(run.data, TrainingData(a, channels, ranks, run.environment->log));
  if (!a.eval.empty()) {
    MSRT_ASSIGN_OR_RETURN(run.eval,
                          EvaluationData(a, channels, *run.data, ranks, run.environment->log));
  }
  MSRT_RETURN_IF_ERROR(CheckSameRun(a, run, ranks));
  MSRT_ASSIGN_OR_RETURN(Module model, ModelFor(a, *run.data));
  WarnAboutInferenceForm(model, a.common.model, run.environment->log);
  run.class_loss = ClassLossOf(a.spec.loss, HasProbabilities(model.main()));
  model.metadata.emplace_back("normalize", a.normalize_text);
  std::string classes;
  for (const std::string& name : run.data->source().class_names())
    StrAppend(&classes, classes.empty() ? "" : "\n", name);
  model.metadata.emplace_back("classes", classes);
  MSRT_ASSIGN_OR_RETURN(Module training,
                        MakeTrainingModule(std::move(model), a.spec, run.environment->ops.get()));
  for (const StateSlot& slot : training.states) {
    if (slot.role == StateRole::kParameter)
      run.parameters += static_cast<size_t>(slot.initial.dims.elements());
  }
  TrainerOptions options;
  const int64_t updates = a.epochs * run.data->batches_per_epoch() / a.spec.accumulation;
  MSRT_ASSIGN_OR_RETURN(options.schedule, ParseSchedule(a.schedule, a.rate, updates));
  MSRT_ASSIGN_OR_RETURN(options.compile, CompileOptionsFor(a.common, *run.environment));
  options.session.communicator = ranks.communicator();
  options.sums = a.has_fixed_sums(ranks.size()) ? BatchSums::kFixed : BatchSums::kAny;
  // Placement is for batches of this size.
  MSRT_ASSIGN_OR_RETURN(const size_t entry, FindEntry(training, kTrainEntry));
  const Graph& graph = training.graphs[training.entries[entry]];
  const std::vector<Type> types = run.data->types();
  for (size_t i = 0; i < types.size(); ++i) {
    Dims dims = types[i].dims;
    dims[0] = a.batch;
    options.compile.typical.emplace_back(graph.value(graph.inputs[i]).name, dims);
  }
  MSRT_ASSIGN_OR_RETURN(run.trainer,
                        Trainer::Create(run.environment, std::move(training), options));
  return run;
}

std::vector<std::pair<std::string, std::string>> FactsOf(const TrainArguments& a,
                                                         const TrainRun& run,
                                                         const TrainOutcome& outcome) {
  std::vector<std::pair<std::string, std::string>> facts{
      {"model", a.common.model},
      {"parameters", StrCat(run.parameters)},
      {"data", StrCat(a.data, ": ", run.data->samples(), " samples, ",
                      NumClasses(run.data->source()), " classes")},
      {"samples", StrCat(run.data->sample_dims())},
      {"batch", StrCat(a.batch)},
      {"optimizer", std::string(OptimizerName(a.spec.optimizer.kind))},
      {"learning rate", StrCat(a.rate, ", ", a.schedule)},
      {"seed", StrCat(a.seed)},
      {"steps", StrCat(run.trainer->steps())}};
  if (run.eval != nullptr)
    facts.emplace_back("evaluation", StrCat(a.eval, ": ", run.eval->samples(), " samples"));
  if (outcome.evaluation.has_value())
    facts.emplace_back("accuracy", StrCat(Accuracy(outcome.evaluation->confusion)));
  return facts;
}

Status WriteWhole(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::cout << text << "\n";
    return OkStatus();
  }
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(text))};
  return DefaultIo()->WriteFile(path, pieces);
}

// NaN is not JSON.
nlohmann::json JsonNumber(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

nlohmann::json ResultJson(const TrainArguments& a, const TrainRun& run,
                          const TrainOutcome& outcome) {
  nlohmann::json json;
  const EpochRow last = outcome.rows.empty() ? EpochRow{} : outcome.rows.back();
  json["model"] = a.common.model;
  json["parameters"] = run.parameters;
  json["samples"] = run.data->samples();
  json["classes"] = run.data->source().class_names();
  json["epochs"] = outcome.rows.size();
  json["steps"] = run.trainer->steps();
  json["loss"] = JsonNumber(last.loss);
  json["train_accuracy"] = JsonNumber(last.accuracy);
  json["accuracy"] = JsonNumber(run.eval != nullptr ? last.eval_accuracy : last.accuracy);
  json["step_ms"] = JsonNumber(outcome.step_millis);
  const auto rss = PeakResidentBytes();
  json["peak_rss_bytes"] = rss.ok() ? *rss : 0;
  double seconds = 0;
  for (const EpochRow& row : outcome.rows) seconds += row.seconds;
  json["seconds"] = seconds;
  std::vector<std::string> skipped = run.data->SkippedSamples();
  if (run.eval != nullptr) {
    for (std::string& name : run.eval->SkippedSamples()) skipped.push_back(std::move(name));
    json["eval_loss"] = JsonNumber(last.eval_loss);
    json["top5"] = JsonNumber(last.eval_top5);
    if (run.eval->source().has_label_maps()) json["iou"] = JsonNumber(last.eval_iou);
  }
  json["skipped"] = skipped;
  if (run.trainer->bucket_bytes() > 0 && outcome.steps_timed > 0) {
    const ExchangeTotals& totals = outcome.exchanges;
    json["communication"] = {{"steps", outcome.steps_timed},
                             {"exchanges", totals.exchanges},
                             {"bytes_sent", totals.bytes_sent},
                             {"bytes_received", totals.bytes_received},
                             {"ms", static_cast<double>(totals.nanos) * 1e-6},
                             {"exposed_ms", static_cast<double>(totals.exposed_nanos) * 1e-6},
                             {"hidden", totals.hidden()},
                             {"bucket_bytes", run.trainer->bucket_bytes()}};
  }
  if (outcome.evaluation.has_value()) {
    const ConfusionMatrix& matrix = outcome.evaluation->confusion;
    for (const double accuracy : ClassAccuracies(matrix))
      json["class_accuracy"].push_back(JsonNumber(accuracy));
    for (int64_t label = 0; label < matrix.classes(); ++label) {
      std::vector<int64_t> row;
      for (int64_t p = 0; p < matrix.classes(); ++p) row.push_back(matrix.at(label, p));
      json["confusion"].push_back(row);
    }
  }
  return json;
}

Status WriteResults(const TrainArguments& a, const TrainRun& run, const TrainOutcome& outcome) {
  TrainingReport report;
  report.title = StrCat("Training of ", a.common.model);
  report.facts = FactsOf(a, run, outcome);
  report.rows = outcome.rows;
  report.class_names = run.data->source().class_names();
  if (outcome.evaluation.has_value()) report.confusion = &outcome.evaluation->confusion;
  MSRT_RETURN_IF_ERROR(WriteWhole(a.output + "/report.html", ReportHtml(report)));
  MSRT_ASSIGN_OR_RETURN(const Module trained, run.trainer->Export());
  MSRT_RETURN_IF_ERROR(WriteModel(trained, a.output + "/model.msrt", DefaultIo()));
  if (a.common.json.empty()) return OkStatus();
  return WriteWhole(a.common.json, ResultJson(a, run, outcome).dump(2));
}

void PrintStart(const TrainArguments& a, const TrainRun& run, const TrainRanks& ranks) {
  std::printf("model      %s: %zu parameters\n", a.common.model.c_str(), run.parameters);
  std::printf("data       %s\n",
              StrCat(run.data->samples(), " samples of ", run.data->sample_dims(), ", ",
                     NumClasses(run.data->source()), " classes")
                  .c_str());
  if (run.eval != nullptr)
    std::printf("evaluation %lld samples\n", static_cast<long long>(run.eval->samples()));
  if (ranks.size() > 1)
    std::printf("ranks      %d, sums %s, communication by %s\n", ranks.size(),
                a.has_fixed_sums(ranks.size()) ? "fixed" : "in any order",
                ranks.communicator()->engine().c_str());
  std::fflush(stdout);
}

// The lines of a run: one that is replaced on a terminal, elsewhere one from time to time; and one
// for each epoch.
class TrainLines {
 public:
  explicit TrainLines(const TrainArguments& arguments)
      : a_(arguments), line_(!arguments.common.quiet, arguments.progress_seconds) {}

  void ShowStep(const TrainProgress& p) {
    if (!line_.due()) return;
    char text[200];
    std::snprintf(text, sizeof text,
                  "epoch %lld/%lld  step %lld/%lld  loss %.4f  %.1f samples/s  %s left",
                  static_cast<long long>(p.position.epoch + 1), static_cast<long long>(p.epochs),
                  static_cast<long long>(p.position.batch), static_cast<long long>(p.batches),
                  p.step.loss, p.samples_per_second, DurationText(p.seconds_left).c_str());
    line_.Show(text);
  }

  void PrintEpoch(const EpochRow& row) {
    line_.Clear();
    if (!a_.common.prints()) return;
    std::printf("epoch %-4lld loss %.4f", static_cast<long long>(row.epoch), row.loss);
    if (!std::isnan(row.accuracy)) std::printf("   accuracy %.4f", row.accuracy);
    if (!std::isnan(row.eval_loss)) std::printf("   eval loss %.4f", row.eval_loss);
    if (!std::isnan(row.eval_accuracy)) std::printf("   accuracy %.4f", row.eval_accuracy);
    if (!std::isnan(row.eval_iou)) std::printf("   IoU %.4f", row.eval_iou);
    std::printf("   %.1f samples/s   %s\n", row.samples_per_second,
                DurationText(row.seconds).c_str());
    std::fflush(stdout);
  }

 private:
  const TrainArguments& a_;
  ProgressLine line_;
};

TrainLoopOptions LoopOptionsOf(const TrainArguments& a, const DataLoader& data) {
  TrainLoopOptions options;
  options.epochs = a.epochs;
  options.output = a.output;
  options.resume = a.resume;
  options.checkpoint_every = a.checkpoint_every;
  options.keep = a.keep;
  options.early_stop = a.early_stop;
  options.identity = {{"batch", StrCat(a.batch)},
                      {"seed", StrCat(a.seed)},
                      {"data", StrCat(data.source().fingerprint())}};
  return options;
}

// The mean of the timed steps, on this rank.
void PrintCommunication(const TrainRun& run, const TrainOutcome& outcome, const TrainRanks& ranks) {
  if (ranks.size() == 1 || outcome.steps_timed == 0) return;
  const ExchangeTotals& totals = outcome.exchanges;
  const auto steps = static_cast<double>(outcome.steps_timed);
  std::printf(
      "exchanges  %.0f in a step, %s sent, %.2f ms, of which %.0f %% hidden; buckets of %s\n",
      static_cast<double>(totals.exchanges) / steps,
      BytesText(static_cast<double>(totals.bytes_sent) / steps).c_str(),
      static_cast<double>(totals.nanos) / steps * 1e-6, totals.hidden() * 100,
      BytesText(static_cast<double>(run.trainer->bucket_bytes())).c_str());
}

Status RunRank(const TrainArguments& a, const TrainRanks& ranks, const RankJob& job) {
  MSRT_ASSIGN_OR_RETURN(const TrainRun run, PrepareTraining(a, ranks, job));
  const bool prints = a.common.prints() && ranks.is_first();
  if (prints) PrintStart(a, run, ranks);
  TrainSetup setup;
  setup.options = LoopOptionsOf(a, *run.data);
  const CountedDataset data(*run.data, job.work);
  std::optional<CountedDataset> eval;
  setup.data = &data;
  if (run.eval != nullptr) {
    setup.eval = &eval.emplace(*run.eval, job.work);
    setup.classes = NumClasses(run.eval->source());
    setup.label_maps = run.eval->source().has_label_maps();
  }
  setup.trainer = run.trainer.get();
  setup.ranks = ranks;
  setup.fixed_sums = a.has_fixed_sums(ranks.size());
  setup.class_loss = run.class_loss;
  setup.stop = &stop_requested;
  setup.environment = run.environment;
  TrainLines lines(a);
  setup.on_step = [&](const TrainProgress& progress) { lines.ShowStep(progress); };
  setup.on_epoch = [&](const EpochRow& row) { lines.PrintEpoch(row); };
  setup.on_resume = [&](const DataPosition& position) {
    if (!prints) return;
    std::printf("resumed    at step %lld, batch %lld of epoch %lld\n",
                static_cast<long long>(run.trainer->steps()),
                static_cast<long long>(position.batch), static_cast<long long>(position.epoch + 1));
    std::fflush(stdout);
  };
  CatchInterrupts();
  MSRT_ASSIGN_OR_RETURN(const TrainOutcome outcome, Train(setup));
  job.StopWatch();
  if (outcome.stopped)
    return MakeStatus(Code::kCancelled, "stopped after step ", run.trainer->steps(),
                      "; a checkpoint is in '", a.checkpoint_folder(), "': continue with --resume");
  if (ranks.is_first()) MSRT_RETURN_IF_ERROR(WriteResults(a, run, outcome));
  if (!prints) return OkStatus();
  const auto rss = PeakResidentBytes();
  std::printf("done       %lld steps, %.2f ms each, peak memory %s\n",
              static_cast<long long>(run.trainer->steps()), outcome.step_millis,
              BytesText(rss.ok() ? *rss : 0).c_str());
  PrintCommunication(run, outcome, ranks);
  std::printf("results    %s/model.msrt, history.csv, report.html\n", a.output.c_str());
  return OkStatus();
}

Status RunTraining(TrainArguments& a) {
  MSRT_ASSIGN_OR_RETURN(const RankJob job, JoinRanks(&a.common, &a.limits));
  if (job.rank() != 0) a.common.quiet = true, a.common.json.clear();
  const TrainRanks ranks(job.communicator.get());
  Status status = RunRank(a, ranks, job);
  if (status.ok()) return status;
  ranks.Fail(status);
  job.StopWatch();
  return ranks.size() == 1 ? status : std::move(status).Within(StrCat("rank ", ranks.rank()));
}

}  // namespace

int RunTrain(int argc, char** argv) {
  TrainArguments arguments;
  int exit_code = kDone;
  if (!ParseTrainArguments(argc, argv, &arguments, &exit_code)) return exit_code;
  const Status status = RunTraining(arguments);
  if (status.ok()) return kDone;
  std::cerr << "msrun: " << status.message() << "\n";
  return kFailed;
}

}  // namespace msrt

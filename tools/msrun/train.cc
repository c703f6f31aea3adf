#include "tools/msrun/train.h"

#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/base/units.h"
#include "core/model/write.h"
#include "core/run/run_context.h"
#include "core/train/train_loop.h"
#include "core/train/training_module.h"
#include "tools/msrun/duration.h"
#include "tools/msrun/train_job.h"
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
  bool probabilities = false;
  size_t parameters = 0;  // numbers in all parameters
  double rate = 0;
  std::vector<std::pair<std::string, std::string>> changes;  // ListChanges
  std::optional<ActivationMemory> activations;               // if it is limited
};

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
  const std::string options =
      StrCat(a.batch, " ", a.epochs, " ", a.seed, " ", a.rate, " ", a.schedule, " ",
             a.normalize_text, " ", a.checkpoint_every, " ", a.early_stop, " ", a.resume, " ",
             a.has_fixed_sums(ranks.size()), " ", a.common.speed.activation_memory, " ",
             a.common.speed.precision, " ", a.common.speed.boost);
  return ranks.CheckSame("command line", options, "start all ranks with the same options");
}

// Placement and memory are planned for batches of this size.
std::vector<std::pair<std::string, Dims>> TypicalDims(const TrainArguments& a, const Graph& model,
                                                      const DataLoader& data) {
  std::vector<std::pair<std::string, Dims>> typical;
  const std::vector<Type> types = data.types();
  for (size_t i = 0; i < types.size(); ++i) {
    Dims dims = types[i].dims;
    dims[0] = a.batch;
    const bool is_input = i < model.inputs.size();
    typical.emplace_back(is_input ? model.value(model.inputs[i]).name : "target", dims);
  }
  return typical;
}

Result<TrainRun> PrepareTraining(const TrainArguments& a, const TrainRanks& ranks) {
  TrainRun run;
  MSRT_ASSIGN_OR_RETURN(run.environment, MakeEnvironment(a.common));
  MSRT_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(a));
  MSRT_ASSIGN_OR_RETURN(run.data, TrainingData(a, channels, ranks, run.environment->log));
  if (!a.eval.empty()) {
    MSRT_ASSIGN_OR_RETURN(run.eval,
                          EvaluationData(a, channels, *run.data, ranks, run.environment->log));
  }
  MSRT_RETURN_IF_ERROR(CheckSameRun(a, run, ranks));
  MSRT_ASSIGN_OR_RETURN(Module model, ModelFor(a, *run.data));
  run.probabilities = HasProbabilities(model.main());
  model.metadata.emplace_back("normalize", a.normalize_text);
  std::string classes;
  for (const std::string& name : run.data->source().class_names())
    StrAppend(&classes, classes.empty() ? "" : "\n", name);
  model.metadata.emplace_back("classes", classes);
  TrainerOptions options;
  MSRT_ASSIGN_OR_RETURN(options.compile, CompileOptionsFor(a.common, *run.environment));
  options.compile.typical = TypicalDims(a, model.main(), *run.data);
  options.session.communicator = ranks.communicator();
  options.sums = a.has_fixed_sums(ranks.size()) ? BatchSums::kFixed : BatchSums::kAny;
  TrainingSpec spec = a.spec;
  run.rate = a.rate;
  const TrainingSettings settings{&spec, &options.compile, &run.rate,
                                  options.sums == BatchSums::kFixed};
  MSRT_ASSIGN_OR_RETURN(const Boost boost,
                        ApplySpeedOptions(a.common.speed, run.environment->evaluator, settings));
  // Each rank keeps what its part of the batch needs.
  for (auto& [name, dims] : spec.activations.typical) {
    if (!dims.empty()) dims[0] = std::max<int64_t>(1, dims[0] / ranks.size());
  }
  SpecReport report;
  MSRT_ASSIGN_OR_RETURN(Module training, MakeTrainingModule(std::move(model), spec,
                                                            run.environment->ops.get(), &report));
  run.changes = ListChanges(boost, settings, report);
  if (spec.activations.is_set()) run.activations = report.activations;
  for (const StateSlot& slot : training.states) {
    if (slot.role == StateRole::kParameter)
      run.parameters += static_cast<size_t>(slot.initial.dims.elements());
  }
  const int64_t updates = a.epochs * run.data->batches_per_epoch() / spec.accumulation;
  MSRT_ASSIGN_OR_RETURN(options.schedule, ParseSchedule(a.schedule, run.rate, updates));
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
      {"learning rate", StrCat(run.rate, ", ", a.schedule)},
      {"boost", a.common.speed.boost},
      {"seed", StrCat(a.seed)},
      {"steps", StrCat(run.trainer->steps())}};
  for (const auto& change : run.changes) facts.push_back(change);
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
  json["boost"] = a.common.speed.boost;
  json["changes"] = nlohmann::json::array();
  for (const auto& [name, effect] : run.changes)
    json["changes"].push_back({{"name", name}, {"effect", effect}});
  if (run.activations) {
    json["activations"] = {{"kept_bytes", run.activations->kept_bytes},
                           {"planned_bytes", run.activations->planned_bytes},
                           {"recomputed", run.activations->recomputed}};
  }
  std::vector<std::string> skipped = run.data->SkippedSamples();
  if (run.eval != nullptr) {
    for (std::string& name : run.eval->SkippedSamples()) skipped.push_back(std::move(name));
    json["eval_loss"] = JsonNumber(last.eval_loss);
    json["top5"] = JsonNumber(last.eval_top5);
    if (run.eval->source().has_label_maps()) json["iou"] = JsonNumber(last.eval_iou);
  }
  json["skipped"] = skipped;
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
  PrintChanges(run.changes);
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
  explicit TrainLines(const TrainArguments& arguments) : a_(arguments) {}

  void ShowStep(const TrainProgress& p) {
    const bool terminal = isatty(STDERR_FILENO) != 0;
    const double interval = terminal ? 200 : 10000;
    if (a_.common.quiet || watch_.Millis() < interval) return;
    watch_ = StopWatch();
    std::fprintf(stderr, "%sepoch %lld/%lld  step %lld/%lld  loss %.4f  %.1f samples/s  %s left%s",
                 terminal ? "\r\033[K" : "", static_cast<long long>(p.position.epoch + 1),
                 static_cast<long long>(p.epochs), static_cast<long long>(p.position.batch),
                 static_cast<long long>(p.batches), p.step.loss, p.samples_per_second,
                 DurationText(p.seconds_left).c_str(), terminal ? "" : "\n");
    std::fflush(stderr);
    drawn_ = terminal;
  }

  void PrintEpoch(const EpochRow& row) {
    if (drawn_) std::fprintf(stderr, "\r\033[K");
    drawn_ = false;
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
  StopWatch watch_;
  bool drawn_ = false;
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

// Of the last step, on this rank.
void PrintCommunication(const TrainRun& run, const TrainRanks& ranks) {
  if (ranks.size() == 1) return;
  const ExchangeTotals& totals = run.trainer->exchanges();
  const auto nanos = static_cast<double>(std::max<int64_t>(totals.nanos, 1));
  const double exposed = std::min(nanos, static_cast<double>(totals.exposed_nanos));
  std::printf("exchanges  %lld in the last step, %s sent, %.2f ms, of which %.0f %% hidden\n",
              static_cast<long long>(totals.exchanges),
              BytesText(static_cast<double>(totals.bytes_sent)).c_str(), nanos * 1e-6,
              (1 - exposed / nanos) * 100);
}

Status RunRank(const TrainArguments& a, const TrainRanks& ranks) {
  MSRT_ASSIGN_OR_RETURN(const TrainRun run, PrepareTraining(a, ranks));
  const bool prints = a.common.prints() && ranks.is_first();
  if (prints) PrintStart(a, run, ranks);
  TrainSetup setup;
  setup.options = LoopOptionsOf(a, *run.data);
  setup.data = run.data.get();
  if (run.eval != nullptr) {
    setup.eval = run.eval.get();
    setup.classes = NumClasses(run.eval->source());
    setup.label_maps = run.eval->source().has_label_maps();
  }
  setup.trainer = run.trainer.get();
  setup.ranks = ranks;
  setup.fixed_sums = a.has_fixed_sums(ranks.size());
  setup.probabilities = run.probabilities;
  setup.stop = &stop_requested;
  setup.environment = run.environment;
  TrainLines lines(a);
  setup.on_step = [&](const TrainProgress& progress) { lines.ShowStep(progress); };
  setup.on_epoch = [&](const EpochRow& row) { lines.PrintEpoch(row); };
  setup.on_resume = [&](const DataPosition& position) {
    if (prints)
      std::printf("resumed    at step %lld, batch %lld of epoch %lld\n",
                  static_cast<long long>(run.trainer->steps()),
                  static_cast<long long>(position.batch),
                  static_cast<long long>(position.epoch + 1));
  };
  CatchInterrupts();
  MSRT_ASSIGN_OR_RETURN(const TrainOutcome outcome, Train(setup));
  if (outcome.stopped)
    return MakeStatus(Code::kCancelled, "stopped after step ", run.trainer->steps(),
                      "; a checkpoint is in '", a.checkpoint_folder(), "': continue with --resume");
  if (ranks.is_first()) MSRT_RETURN_IF_ERROR(WriteResults(a, run, outcome));
  if (!prints) return OkStatus();
  const auto rss = PeakResidentBytes();
  std::printf("done       %lld steps, %.2f ms each, peak memory %s\n",
              static_cast<long long>(run.trainer->steps()), outcome.step_millis,
              BytesText(rss.ok() ? *rss : 0).c_str());
  PrintCommunication(run, ranks);
  std::printf("results    %s/model.msrt, history.csv, report.html\n", a.output.c_str());
  return OkStatus();
}

Status RunTraining(TrainArguments& a) {
  MSRT_ASSIGN_OR_RETURN(const TrainJob job, JoinTrainJob(&a));
  const TrainRanks ranks(job.communicator.get());
  Status status = RunRank(a, ranks);
  if (status.ok()) return status;
  ranks.Fail(status);
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

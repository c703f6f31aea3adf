#include "core/train/train_loop.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/clock.h"
#include "core/train/non_finite.h"
#include "core/train/training_module.h"

namespace msrt {
namespace {

// Sums over the steps of an epoch. Part of checkpoints, so that a resumed epoch has the same row.
struct EpochSums {
  double loss = 0, seconds = 0;
  int64_t correct = 0, samples = 0, targets = 0;
};

std::string_view NoteOf(const Checkpoint& checkpoint, std::string_view name) {
  for (const auto& [note, value] : checkpoint.notes) {
    if (note == name) return value;
  }
  return {};
}

double NumberNote(const Checkpoint& checkpoint, std::string_view name) {
  return std::strtod(std::string(NoteOf(checkpoint, name)).c_str(), nullptr);
}

int64_t CountNote(const Checkpoint& checkpoint, std::string_view name) {
  return std::strtoll(std::string(NoteOf(checkpoint, name)).c_str(), nullptr, 10);
}

class Loop {
 public:
  explicit Loop(const TrainSetup& setup)
      : s_(setup),
        a_(setup.options),
        ignored_(IgnoredClass(setup.trainer->module())),
        updates_before_(setup.trainer->steps()) {}

  Status OpenFolder();

  // Collectives, as Run is.
  Status Resume();
  Status SetSchedule();
  Result<TrainOutcome> Run();

 private:
  Status ResumeFirst();
  std::string ResumedText(const Status& status) const;
  Status ReadResumed(const std::string& text);
  Status RunEpoch();
  Status FinishEpoch();
  Status Evaluate(EpochRow* row);
  bool IsStopped(const Status& evaluated) const;
  Status AgreeOnTargets();
  Status ReadHistory();
  Result<std::string> FirstNonFinite(const Batch& batch);
  Status StepError(Status status, const Batch& batch);
  Status Save();
  Status WriteHistory() const;
  void Report(const StepResult& result) const;
  bool StopsEarly() const;
  bool stopping() const { return s_.stop != nullptr && s_.stop->load(); }
  std::vector<std::pair<std::string, std::string>> Notes() const;

  const TrainSetup& s_;
  const TrainLoopOptions& a_;
  const std::optional<int64_t> ignored_;  // class of targets
  // On rank 0, if the run has a folder.
  std::optional<CheckpointFolder> folder_;
  std::unique_ptr<CheckpointWriter> writer_;
  DataPosition position_;
  EpochSums sums_;
  int64_t own_targets_ = 0;  // of this rank, which sums_ does not have yet
  int64_t updates_before_;   // the run's first step
  StopWatch epoch_watch_;
  int64_t first_step_ = 0;  // of this process
  TrainOutcome outcome_;
};

std::string HexText(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

// Facts that must be equal when a run continues, then the sums.
std::vector<std::pair<std::string, std::string>> Loop::Notes() const {
  std::vector<std::pair<std::string, std::string>> notes = a_.identity;
  notes.emplace_back("loss_sum", HexText(sums_.loss));
  notes.emplace_back("correct", StrCat(sums_.correct));
  notes.emplace_back("samples", StrCat(sums_.samples));
  notes.emplace_back("targets", StrCat(sums_.targets));
  notes.emplace_back("updates_before", StrCat(updates_before_));
  notes.emplace_back("seconds", HexText(sums_.seconds + epoch_watch_.Millis() / 1e3));
  return notes;
}

Status Loop::OpenFolder() {
  if (!s_.ranks.is_first() || a_.output.empty()) return OkStatus();
  CheckpointFolder::Options options;
  options.keep_last = static_cast<size_t>(a_.keep);
  MSRT_ASSIGN_OR_RETURN(CheckpointFolder folder,
                        CheckpointFolder::Open(a_.checkpoint_folder(), options));
  MSRT_ASSIGN_OR_RETURN(const bool has_run, folder.HasCheckpoints());
  if (has_run && !a_.resume)
    return InvalidArgument("output '", a_.output, "' has the checkpoints of another run; continue ",
                           "it with resume, or choose another folder");
  folder_ = std::move(folder);
  writer_ = std::make_unique<CheckpointWriter>(&*folder_);
  return OkStatus();
}

// Returns the text by which rank 0 tells the others its error, or where the run continues and its
// history.
std::string Loop::ResumedText(const Status& status) const {
  if (!status.ok()) return StrCat("error ", status.message());
  return StrCat("at ", position_.epoch, " ", position_.batch, " ", HexText(sums_.loss), " ",
                HexText(sums_.seconds), " ", sums_.correct, " ", sums_.samples, " ", sums_.targets,
                " ", updates_before_, "\n", HistoryCsv(outcome_.rows));
}

Status Loop::ReadResumed(const std::string& text) {
  constexpr std::string_view kError = "error ";
  if (text.starts_with(kError)) return InvalidArgument("rank 0: ", text.substr(kError.size()));
  std::istringstream in(text);
  std::string at, loss, seconds;
  in >> at >> position_.epoch >> position_.batch >> loss >> seconds >> sums_.correct >>
      sums_.samples >> sums_.targets >> updates_before_;
  sums_.loss = std::strtod(loss.c_str(), nullptr);
  sums_.seconds = std::strtod(seconds.c_str(), nullptr);
  MSRT_ASSIGN_OR_RETURN(outcome_.rows, ParseHistoryCsv(text.substr(text.find('\n') + 1)));
  return OkStatus();
}

Status Loop::Resume() {
  Status status;
  if (s_.ranks.is_first()) status = ResumeFirst();
  // A run that ended before its first checkpoint begins again.
  if (status.code() == Code::kNotFound) status = OkStatus();
  MSRT_ASSIGN_OR_RETURN(const std::string text, s_.ranks.TextOfFirst(ResumedText(status)));
  if (!status.ok()) return status;
  if (!s_.ranks.is_first()) MSRT_RETURN_IF_ERROR(ReadResumed(text));
  return s_.trainer->TakeOverFromFirstRank();
}

Status Loop::ResumeFirst() {
  MSRT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, folder_->Resume(s_.environment->log));
  for (const auto& [name, value] : a_.identity) {
    const std::string_view before = NoteOf(checkpoint, name);
    if (before != value)
      return InvalidArgument("resume: the run in '", a_.output, "' had ", name, " ", before,
                             ", now it is ", value, "; continue with the same");
  }
  sums_.loss = NumberNote(checkpoint, "loss_sum");
  sums_.seconds = NumberNote(checkpoint, "seconds");
  sums_.correct = CountNote(checkpoint, "correct");
  sums_.samples = CountNote(checkpoint, "samples");
  sums_.targets = CountNote(checkpoint, "targets");
  updates_before_ = CountNote(checkpoint, "updates_before");
  // The schedule may have changed: more epochs, another rate.
  const Schedule schedule = s_.trainer->schedule();
  MSRT_RETURN_IF_ERROR(s_.trainer->Restore(checkpoint));
  s_.trainer->set_schedule(schedule);
  position_ = checkpoint.position;
  MSRT_RETURN_IF_ERROR(ReadHistory());
  if (s_.on_resume) s_.on_resume(position_);
  return OkStatus();
}

Status Loop::ReadHistory() {
  std::ifstream in(a_.output + "/history.csv", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  MSRT_ASSIGN_OR_RETURN(outcome_.rows, ParseHistoryCsv(text));
  std::erase_if(outcome_.rows, [&](const EpochRow& row) { return row.epoch > position_.epoch; });
  return OkStatus();
}

// A collective.
Status Loop::AgreeOnTargets() {
  MSRT_ASSIGN_OR_RETURN(const int64_t targets, s_.ranks.Sum(own_targets_));
  sums_.targets += targets;
  own_targets_ = 0;
  return OkStatus();
}

// A collective.
Status Loop::Save() {
  MSRT_RETURN_IF_ERROR(AgreeOnTargets());
  if (writer_ == nullptr) return OkStatus();
  MSRT_ASSIGN_OR_RETURN(Checkpoint checkpoint, s_.trainer->MakeCheckpoint());
  // The loss of the last step was computed before its update.
  const std::string damaged = NonFiniteParameter(checkpoint);
  if (!damaged.empty())
    return InvalidArgument("step ", checkpoint.steps, ": parameter '", damaged,
                           "' has a value that is not finite, so no checkpoint is written; reduce ",
                           "the learning rate or limit the gradients, and resume from the one ",
                           "before");
  checkpoint.position = position_;
  checkpoint.notes = Notes();
  if (!outcome_.rows.empty() && position_.batch == 0) {
    const double metric = outcome_.rows.back().eval_accuracy;
    checkpoint.has_metric = !std::isnan(metric);
    checkpoint.metric = checkpoint.has_metric ? metric : 0;
  }
  return writer_->Save(std::move(checkpoint));
}

Status Loop::WriteHistory() const {
  if (!folder_.has_value()) return OkStatus();
  const std::string text = HistoryCsv(outcome_.rows);
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(text))};
  return DefaultIo()->WriteFile(a_.output + "/history.csv", pieces);
}

void Loop::Report(const StepResult& result) const {
  if (!s_.on_step) return;
  TrainProgress progress;
  progress.step = result;
  progress.position = position_;
  progress.epochs = a_.epochs, progress.batches = s_.data->batches_per_epoch();
  const int64_t done = position_.epoch * progress.batches + position_.batch;
  const double step_seconds = outcome_.step_millis * 1e-3;
  if (step_seconds > 0) {
    const double samples = static_cast<double>(sums_.samples) /
                           static_cast<double>(std::max<int64_t>(position_.batch, 1));
    progress.samples_per_second = samples / step_seconds;
    progress.seconds_left = step_seconds * static_cast<double>(a_.epochs * progress.batches - done);
  }
  s_.on_step(progress);
}

Status Loop::Evaluate(EpochRow* row) {
  if (s_.classes == 0) {
    // Other ranks would wait for one that stops here.
    const auto check = [&](const Batch&, const std::vector<TensorView>&) {
      return stopping() && s_.ranks.size() == 1
                 ? MakeStatus(Code::kCancelled, "the evaluation was stopped")
                 : OkStatus();
    };
    MSRT_ASSIGN_OR_RETURN(const Evaluation evaluation, s_.trainer->Evaluate(*s_.eval, check));
    row->eval_loss = evaluation.loss;
    return OkStatus();
  }
  const ClassEvaluation options{s_.classes, s_.class_loss, s_.stop, s_.ranks, s_.fixed_sums};
  MSRT_ASSIGN_OR_RETURN(MetricSums sums, EvaluateClasses(s_.trainer, *s_.eval, options));
  row->eval_loss = sums.loss();
  row->eval_accuracy = Accuracy(sums.confusion);
  row->eval_top5 = sums.top5();
  if (s_.label_maps) row->eval_iou = MeanOfKnown(IntersectionOverUnion(sums.confusion));
  outcome_.evaluation = std::move(sums);
  return OkStatus();
}

bool Loop::IsStopped(const Status& evaluated) const {
  return evaluated.code() == Code::kCancelled && stopping();
}

Status Loop::FinishEpoch() {
  MSRT_RETURN_IF_ERROR(AgreeOnTargets());
  EpochRow row;
  row.epoch = position_.epoch + 1;
  row.step = s_.trainer->steps();
  row.seconds = sums_.seconds + epoch_watch_.Millis() / 1e3;
  if (sums_.samples > 0) {
    row.loss = sums_.loss / static_cast<double>(sums_.samples);
    row.samples_per_second = static_cast<double>(sums_.samples) / std::max(row.seconds, 1e-9);
    if (sums_.correct >= 0 && sums_.targets > 0)
      row.accuracy = static_cast<double>(sums_.correct) / static_cast<double>(sums_.targets);
  }
  row.rate = s_.trainer->rate();
  if (s_.eval != nullptr) {
    const Status evaluated = Evaluate(&row);
    // A run that is resumed after the last batch of an epoch evaluates first.
    if (IsStopped(evaluated)) {
      outcome_.stopped = true;
      return Save();
    }
    MSRT_RETURN_IF_ERROR(evaluated);
  }
  outcome_.rows.push_back(row);
  if (s_.on_epoch) s_.on_epoch(row);
  position_ = {position_.epoch + 1, 0};
  sums_ = {};
  epoch_watch_ = StopWatch();
  MSRT_RETURN_IF_ERROR(WriteHistory());
  return Save();
}

// Adds the batch, and the value that is the reason of a loss that is not finite.
Status Loop::StepError(Status status, const Batch& batch) {
  const std::string where = StrCat("batch ", position_.batch, " of epoch ", position_.epoch + 1);
  status = std::move(status).Within(where);
  if (status.code() != Code::kInvalidArgument || !folder_.has_value() || a_.safe_steps ||
      s_.ranks.size() > 1)
    return status;
  Result<std::string> first = FirstNonFinite(batch);
  if (!first.ok() || first->empty()) return status;
  return MakeStatus(status.code(), status.message(), "; the first value that is not finite is ",
                    *first);
}

Status Loop::RunEpoch() {
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<BatchReader> reader,
                        s_.data->Batches(position_.epoch, position_.batch));
  epoch_watch_ = StopWatch();
  while (true) {
    MSRT_ASSIGN_OR_RETURN(const std::optional<Batch> batch, reader->Next());
    if (!batch.has_value()) return FinishEpoch();
    const StopWatch watch;
    Result<StepResult> result =
        a_.safe_steps ? SafeStep(s_.trainer, s_.environment, *batch) : s_.trainer->Step(*batch);
    if (!result.ok()) return StepError(std::move(result).status(), *batch);
    if (first_step_++ > 0) {
      const auto count = static_cast<double>(++outcome_.steps_timed);
      outcome_.step_millis += (watch.Millis() - outcome_.step_millis) / count;
      outcome_.exchanges.Add(s_.trainer->exchanges());
    }
    ++position_.batch;
    if (std::isfinite(result->loss)) {  // else the loss scale was reduced, and nothing else done
      sums_.loss += result->loss * static_cast<double>(batch->global_samples);
      sums_.samples += batch->global_samples;
      own_targets_ += CountTargets(*batch, ignored_);
      sums_.correct = result->correct < 0 ? -1 : sums_.correct + result->correct;
    }
    Report(*result);
    const bool due = a_.checkpoint_every > 0 && result->updated &&
                     s_.trainer->steps() % a_.checkpoint_every == 0;
    MSRT_ASSIGN_OR_RETURN(const bool stops, s_.ranks.AnySays(stopping()));
    if (due || stops) MSRT_RETURN_IF_ERROR(Save());
    if (stops) {
      outcome_.stopped = true;
      return OkStatus();
    }
  }
}

// The parameters of the failed step are lost, so the steps since the last checkpoint are repeated.
Result<std::string> Loop::FirstNonFinite(const Batch& batch) {
  MSRT_RETURN_IF_ERROR(writer_->Wait());
  Result<Checkpoint> newest = folder_->LoadNewest(s_.environment->log);
  Checkpoint start;
  if (newest.ok()) {
    start = *std::move(newest);
  } else {
    MSRT_ASSIGN_OR_RETURN(start, s_.trainer->MakeCheckpoint());
    start.steps = start.micro_batches = 0;
    for (CheckpointTensor& tensor : start.tensors) {
      for (const StateSlot& slot : s_.trainer->module().states) {
        if (slot.name == tensor.name) tensor.data = slot.initial;
      }
    }
  }
  if (start.position.epoch != position_.epoch) return std::string();
  const Schedule schedule = s_.trainer->schedule();
  MSRT_RETURN_IF_ERROR(s_.trainer->Restore(start));
  s_.trainer->set_schedule(schedule);
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<BatchReader> reader,
                        s_.data->Batches(position_.epoch, start.position.batch));
  for (int64_t i = start.position.batch; i < position_.batch; ++i) {
    MSRT_ASSIGN_OR_RETURN(const std::optional<Batch> repeated, reader->Next());
    if (!repeated.has_value()) return std::string();
    MSRT_RETURN_IF_ERROR(s_.trainer->Step(*repeated).status());
  }
  MSRT_ASSIGN_OR_RETURN(const Checkpoint before, s_.trainer->MakeCheckpoint());
  return FindNonFinite(s_.environment, s_.trainer->module(), before, batch, s_.trainer->rate());
}

bool Loop::StopsEarly() const {
  if (a_.early_stop == 0 || s_.eval == nullptr || outcome_.rows.empty()) return false;
  // By accuracy; by loss where the targets are no classes.
  const auto quality = [](const EpochRow& row) {
    return std::isnan(row.eval_accuracy) ? -row.eval_loss : row.eval_accuracy;
  };
  size_t best = 0;
  for (size_t i = 1; i < outcome_.rows.size(); ++i) {
    if (quality(outcome_.rows[i]) > quality(outcome_.rows[best])) best = i;
  }
  return static_cast<int64_t>(outcome_.rows.size() - 1 - best) >= a_.early_stop;
}

Status Loop::SetSchedule() {
  if (s_.schedule == nullptr) return OkStatus();
  MSRT_ASSIGN_OR_RETURN(Schedule schedule, s_.schedule(updates_before_));
  s_.trainer->set_schedule(std::move(schedule));
  return OkStatus();
}

Result<TrainOutcome> Loop::Run() {
  while (position_.epoch < a_.epochs && !outcome_.stopped && !StopsEarly())
    MSRT_RETURN_IF_ERROR(RunEpoch());
  if (writer_ != nullptr) MSRT_RETURN_IF_ERROR(writer_->Wait());
  // A finished run that is resumed is evaluated again, for its reports.
  if (s_.eval != nullptr && !outcome_.evaluation.has_value() && !outcome_.stopped) {
    EpochRow row;
    const Status evaluated = Evaluate(&row);
    outcome_.stopped = IsStopped(evaluated);
    if (!outcome_.stopped) MSRT_RETURN_IF_ERROR(evaluated);
  }
  return std::move(outcome_);
}

}  // namespace

Result<TrainOutcome> Train(const TrainSetup& setup) {
  if (setup.options.output.empty() && setup.options.resume)
    return InvalidArgument("resume needs a folder with checkpoints; set output");
  Loop loop(setup);
  MSRT_RETURN_IF_ERROR(loop.OpenFolder());
  if (setup.options.resume) MSRT_RETURN_IF_ERROR(loop.Resume());
  MSRT_RETURN_IF_ERROR(loop.SetSchedule());
  return loop.Run();
}

Result<MetricSums> EvaluateClasses(Trainer* trainer, const Dataset& data,
                                   const ClassEvaluation& options) {
  const size_t output = LossOutput(trainer->module());
  const std::optional<int64_t> ignored = IgnoredClass(trainer->module());
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<BatchReader> reader, data.Batches(0));
  RankMetrics metrics(options.ranks, options.fixed_sums,
                      std::max(options.classes, OutputClasses(trainer->module())));
  while (true) {
    // Other ranks would wait for one that stops here.
    if (options.stop != nullptr && options.stop->load() && options.ranks.size() == 1)
      return MakeStatus(Code::kCancelled, "the evaluation was stopped");
    MSRT_ASSIGN_OR_RETURN(const std::optional<Batch> batch, reader->Next());
    if (!batch.has_value()) return metrics.Combine();
    if (batch->samples == 0) continue;
    std::vector<ConstTensor> inputs(batch->tensors.begin(), batch->tensors.end() - 1);
    const ConstTensor& target = batch->tensors.back();
    if (target.dtype != DType::kI64)
      return InvalidArgument("the target of an evaluation is ", target.type(),
                             "; classes must be i64");
    MSRT_ASSIGN_OR_RETURN(const std::vector<TensorView> outputs, trainer->Predict(inputs));
    const TensorView& scores = outputs[output];
    if (scores.dtype != DType::kF32 || scores.dims.rank() < 2 || scores.dims[1] < metrics.classes())
      return Unsupported("the model's output ", Type::Tensor(scores.dtype, scores.dims),
                         " cannot be evaluated; it must be f32 scores of ", metrics.classes(),
                         " classes");
    if (scores.dims[1] > metrics.classes()) metrics.Reset(scores.dims[1]);
    std::vector<int64_t> labels(target.As<int64_t>().begin(), target.As<int64_t>().end());
    if (ignored.has_value()) std::replace(labels.begin(), labels.end(), *ignored, int64_t{-1});
    MSRT_RETURN_IF_ERROR(metrics.Add({scores.As<float>(), static_cast<size_t>(scores.elements())},
                                     labels, *batch, options.loss));
  }
}

}  // namespace msrt

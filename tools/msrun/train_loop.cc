#include "tools/msrun/train_loop.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/clock.h"
#include "core/train/non_finite.h"
#include "core/train/training_module.h"
#include "tools/msrun/duration.h"

namespace msrt {
namespace {

// Sums over the steps of an epoch. Part of checkpoints, so that a resumed epoch has the same row.
struct EpochSums {
  double loss = 0, seconds = 0;
  int64_t correct = 0, samples = 0;
};

class Loop {
 public:
  explicit Loop(const TrainSetup& setup) : s_(setup), a_(*setup.arguments) {}

  Status OpenFolder();

  // A collective, as Run is.
  Status Resume();
  Result<TrainOutcome> Run();

 private:
  Status ResumeFirst();
  std::string ResumedText(const Status& status) const;
  Status ReadResumed(const std::string& text);
  Status RunEpoch();
  Status FinishEpoch();
  int64_t EvaluatedClasses() const;
  Result<MetricSums> Evaluate();
  Result<std::string> FirstNonFinite(const Batch& batch);
  Status StepError(Status status, const Batch& batch);
  Status Save();
  Status WriteHistory() const;
  void ShowProgress(const StepResult& result);
  void PrintRow(const EpochRow& row);
  bool StopsEarly() const;
  bool stopping() const { return s_.stop != nullptr && s_.stop->load(); }
  std::vector<std::pair<std::string, std::string>> Notes() const;

  const TrainSetup& s_;
  const TrainArguments& a_;
  // Rank 0 has them.
  std::optional<CheckpointFolder> folder_;
  std::unique_ptr<CheckpointWriter> writer_;
  DataPosition position_;
  EpochSums sums_;
  StopWatch epoch_watch_, line_watch_;
  bool line_drawn_ = false;
  int64_t first_step_ = 0;  // of this process
  TrainOutcome outcome_;
};

std::string HexText(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

// What must be equal when a run continues, then the sums.
std::vector<std::pair<std::string, std::string>> Loop::Notes() const {
  return {{"batch", StrCat(a_.batch)},
          {"seed", StrCat(a_.seed)},
          {"data", StrCat(s_.data->source().fingerprint())},
          {"loss_sum", HexText(sums_.loss)},
          {"correct", StrCat(sums_.correct)},
          {"samples", StrCat(sums_.samples)},
          {"seconds", HexText(sums_.seconds + epoch_watch_.Millis() / 1e3)}};
}

Status Loop::OpenFolder() {
  if (!s_.ranks->is_first()) return OkStatus();
  CheckpointFolder::Options options;
  options.keep_last = static_cast<size_t>(a_.keep);
  MSRT_ASSIGN_OR_RETURN(CheckpointFolder folder,
                        CheckpointFolder::Open(a_.checkpoint_folder(), options));
  folder_ = std::move(folder);
  writer_ = std::make_unique<CheckpointWriter>(&*folder_);
  return OkStatus();
}

// What rank 0 found, for the others: an error, or where the run continues and its history.
std::string Loop::ResumedText(const Status& status) const {
  if (!status.ok()) return StrCat("error ", status.message());
  return StrCat("at ", position_.epoch, " ", position_.batch, " ", HexText(sums_.loss), " ",
                HexText(sums_.seconds), " ", sums_.correct, " ", sums_.samples, "\n",
                HistoryCsv(outcome_.rows));
}

Status Loop::ReadResumed(const std::string& text) {
  constexpr std::string_view kError = "error ";
  if (text.starts_with(kError)) return InvalidArgument("rank 0: ", text.substr(kError.size()));
  std::istringstream in(text);
  std::string at, loss, seconds;
  in >> at >> position_.epoch >> position_.batch >> loss >> seconds >> sums_.correct >>
      sums_.samples;
  sums_.loss = std::strtod(loss.c_str(), nullptr);
  sums_.seconds = std::strtod(seconds.c_str(), nullptr);
  MSRT_ASSIGN_OR_RETURN(outcome_.rows, ParseHistoryCsv(text.substr(text.find('\n') + 1)));
  return OkStatus();
}

Status Loop::Resume() {
  Status status;
  if (s_.ranks->is_first()) status = ResumeFirst();
  // A run that ended before its first checkpoint begins again.
  if (status.code() == Code::kNotFound) status = OkStatus();
  MSRT_ASSIGN_OR_RETURN(const std::string text, s_.ranks->TextOfFirst(ResumedText(status)));
  if (!status.ok()) return status;
  if (!s_.ranks->is_first()) MSRT_RETURN_IF_ERROR(ReadResumed(text));
  return s_.trainer->TakeOverFromFirstRank();
}

Status Loop::ResumeFirst() {
  MSRT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, folder_->LoadNewest(s_.environment->log));
  const std::vector<std::pair<std::string, std::string>> now = Notes();
  for (const auto& [name, value] : checkpoint.notes) {
    for (const auto& [other, current] : now) {
      const bool must_agree = name == "batch" || name == "seed" || name == "data";
      if (name == other && must_agree && value != current)
        return InvalidArgument("--resume: the run in '", a_.output, "' had ", name, " ", value,
                               ", now it is ", current, "; continue with the same");
    }
    if (name == "loss_sum") sums_.loss = std::strtod(value.c_str(), nullptr);
    if (name == "seconds") sums_.seconds = std::strtod(value.c_str(), nullptr);
    if (name == "correct") sums_.correct = std::strtoll(value.c_str(), nullptr, 10);
    if (name == "samples") sums_.samples = std::strtoll(value.c_str(), nullptr, 10);
  }
  // The schedule may have changed: more epochs, another rate.
  const Schedule schedule = s_.trainer->schedule();
  MSRT_RETURN_IF_ERROR(s_.trainer->Restore(checkpoint));
  s_.trainer->set_schedule(schedule);
  position_ = checkpoint.position;
  std::ifstream in(a_.output + "/history.csv", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  MSRT_ASSIGN_OR_RETURN(outcome_.rows, ParseHistoryCsv(text));
  std::erase_if(outcome_.rows, [&](const EpochRow& row) { return row.epoch > position_.epoch; });
  if (!a_.common.quiet && a_.common.json != "-")
    std::printf("resumed    at step %lld, batch %lld of epoch %lld\n",
                static_cast<long long>(s_.trainer->steps()),
                static_cast<long long>(position_.batch),
                static_cast<long long>(position_.epoch + 1));
  return OkStatus();
}

Status Loop::Save() {
  if (writer_ == nullptr) return OkStatus();
  MSRT_ASSIGN_OR_RETURN(Checkpoint checkpoint, s_.trainer->MakeCheckpoint());
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
  if (!s_.ranks->is_first()) return OkStatus();
  const std::string text = HistoryCsv(outcome_.rows);
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(text))};
  return DefaultIo()->WriteFile(a_.output + "/history.csv", pieces);
}

void Loop::ShowProgress(const StepResult& result) {
  // A line that is replaced on a terminal; elsewhere a line from time to time.
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const double interval = terminal ? 200 : 10000;
  if (a_.common.quiet || line_watch_.Millis() < interval) return;
  line_watch_ = StopWatch();
  const int64_t batches = s_.data->batches_per_epoch();
  const int64_t done = position_.epoch * batches + position_.batch, all = a_.epochs * batches;
  const double left = outcome_.step_millis * 1e-3 * static_cast<double>(all - done);
  const double rate = static_cast<double>(a_.batch) / std::max(outcome_.step_millis * 1e-3, 1e-9);
  std::fprintf(stderr, "%sepoch %lld/%lld  step %lld/%lld  loss %.4f  %.1f samples/s  %s left%s",
               terminal ? "\r\033[K" : "", static_cast<long long>(position_.epoch + 1),
               static_cast<long long>(a_.epochs), static_cast<long long>(position_.batch),
               static_cast<long long>(batches), result.loss, rate, DurationText(left).c_str(),
               terminal ? "" : "\n");
  std::fflush(stderr);
  line_drawn_ = terminal;
}

void Loop::PrintRow(const EpochRow& row) {
  if (line_drawn_) std::fprintf(stderr, "\r\033[K");
  line_drawn_ = false;
  if (a_.common.quiet || a_.common.json == "-") return;
  std::printf("epoch %-4lld loss %.4f", static_cast<long long>(row.epoch), row.loss);
  if (!std::isnan(row.accuracy)) std::printf("   accuracy %.4f", row.accuracy);
  if (!std::isnan(row.eval_loss)) std::printf("   eval loss %.4f", row.eval_loss);
  if (!std::isnan(row.eval_accuracy)) std::printf("   accuracy %.4f", row.eval_accuracy);
  if (!std::isnan(row.eval_iou)) std::printf("   IoU %.4f", row.eval_iou);
  std::printf("   %.1f samples/s   %s\n", row.samples_per_second,
              DurationText(row.seconds).c_str());
  std::fflush(stdout);
}

// The classes of the model, which may have more than the data.
int64_t Loop::EvaluatedClasses() const {
  int64_t classes = NumClasses(s_.eval->source());
  for (const Graph& graph : s_.trainer->module().graphs) {
    if (graph.name != kEvalEntry) continue;
    const Type& output = graph.value(graph.outputs[0]).type;
    if (output.rank_known && output.rank() >= 2 && IsKnown(output.dims[1]))
      classes = std::max(classes, output.dims[1]);
  }
  return classes;
}

Result<MetricSums> Loop::Evaluate() {
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<BatchReader> reader, s_.eval->Batches(0));
  RankMetrics metrics(*s_.ranks, s_.fixed_sums, EvaluatedClasses());
  while (true) {
    MSRT_ASSIGN_OR_RETURN(const std::optional<Batch> batch, reader->Next());
    if (!batch.has_value()) return metrics.Combine();
    if (batch->samples == 0) continue;
    MSRT_ASSIGN_OR_RETURN(const std::vector<TensorView> outputs,
                          s_.trainer->Predict({batch->tensors[0]}));
    const TensorView& scores = outputs[0];
    if (scores.dtype != DType::kF32 || scores.dims.rank() < 2 || scores.dims[1] < metrics.classes())
      return Unsupported("the model's output ", Type::Tensor(scores.dtype, scores.dims),
                         " cannot be evaluated; it must be f32 scores of ", metrics.classes(),
                         " classes");
    if (scores.dims[1] > metrics.classes()) metrics.Reset(scores.dims[1]);
    MSRT_RETURN_IF_ERROR(metrics.Add({scores.As<float>(), static_cast<size_t>(scores.elements())},
                                     batch->tensors[1].As<int64_t>(), *batch, s_.probabilities));
  }
}

Status Loop::FinishEpoch() {
  EpochRow row;
  row.epoch = position_.epoch + 1;
  row.step = s_.trainer->steps();
  row.seconds = sums_.seconds + epoch_watch_.Millis() / 1e3;
  if (sums_.samples > 0) {
    row.loss = sums_.loss / static_cast<double>(sums_.samples);
    row.samples_per_second = static_cast<double>(sums_.samples) / std::max(row.seconds, 1e-9);
    int64_t targets = 1;  // of a sample
    const Dims dims = s_.data->types()[1].dims;
    if (s_.data->source().has_label_maps()) targets = dims[1] * dims[2];
    if (sums_.correct >= 0)
      row.accuracy =
          static_cast<double>(sums_.correct) / static_cast<double>(sums_.samples * targets);
  }
  row.rate = s_.trainer->rate();
  if (s_.eval != nullptr) {
    MSRT_ASSIGN_OR_RETURN(MetricSums sums, Evaluate());
    row.eval_loss = sums.loss();
    row.eval_accuracy = Accuracy(sums.confusion);
    row.eval_top5 = sums.top5();
    if (s_.eval->source().has_label_maps())
      row.eval_iou = MeanOfKnown(IntersectionOverUnion(sums.confusion));
    outcome_.evaluation = std::move(sums);
  }
  outcome_.rows.push_back(row);
  PrintRow(row);
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
  if (status.code() != Code::kInvalidArgument || s_.ranks->size() > 1) return status;
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
    Result<StepResult> result = s_.trainer->Step(*batch);
    if (!result.ok()) return StepError(std::move(result).status(), *batch);
    if (first_step_++ > 0) {
      const auto count = static_cast<double>(++outcome_.steps_timed);
      outcome_.step_millis += (watch.Millis() - outcome_.step_millis) / count;
    }
    sums_.loss += result->loss * static_cast<double>(batch->global_samples);
    sums_.samples += batch->global_samples;
    sums_.correct = result->correct < 0 ? -1 : sums_.correct + result->correct;
    ++position_.batch;
    ShowProgress(*result);
    const bool due = a_.checkpoint_every > 0 && result->updated &&
                     s_.trainer->steps() % a_.checkpoint_every == 0;
    MSRT_ASSIGN_OR_RETURN(const bool stops, s_.ranks->AnySays(stopping()));
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
  size_t best = 0;
  for (size_t i = 1; i < outcome_.rows.size(); ++i) {
    if (outcome_.rows[i].eval_accuracy > outcome_.rows[best].eval_accuracy) best = i;
  }
  return static_cast<int64_t>(outcome_.rows.size() - 1 - best) >= a_.early_stop;
}

Result<TrainOutcome> Loop::Run() {
  while (position_.epoch < a_.epochs && !outcome_.stopped && !StopsEarly())
    MSRT_RETURN_IF_ERROR(RunEpoch());
  if (writer_ != nullptr) MSRT_RETURN_IF_ERROR(writer_->Wait());
  // A finished run that is resumed is evaluated again, for its reports.
  if (s_.eval != nullptr && !outcome_.evaluation.has_value() && !outcome_.stopped) {
    MSRT_ASSIGN_OR_RETURN(MetricSums sums, Evaluate());
    outcome_.evaluation = std::move(sums);
  }
  return std::move(outcome_);
}

}  // namespace

Result<TrainOutcome> Train(const TrainSetup& setup) {
  Loop loop(setup);
  MSRT_RETURN_IF_ERROR(loop.OpenFolder());
  if (setup.arguments->resume) MSRT_RETURN_IF_ERROR(loop.Resume());
  return loop.Run();
}

}  // namespace msrt

// Runs a training module: steps over batches with a schedule, evaluation, checkpoints and the
// export of the trained model. All its sessions share the parameters.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/run/session.h"
#include "core/train/checkpoint.h"
#include "core/train/dataset.h"
#include "core/train/schedule.h"

namespace msrt {

// How the sums over a batch (gradients, statistics of batch normalisations, losses) are added.
enum class BatchSums : uint8_t {
  kAny,  // those of a rank at once, then over ranks in any order: the bits depend on the ranks
  // In the fixed tree over virtual shards (core/comm/tree_reduce.h), with kernels whose results
  // for a sample do not depend on the others (CompileOptions::place.exact, which is set). The bits
  // are the same for any number of ranks up to kVirtualShards, threads and batches of a rank.
  kFixed,
};

struct TrainerOptions {
  Schedule schedule;
  CompileOptions compile;  // `typical` has dims for all samples of a batch together
  // With a communicator, its ranks make each step together: every rank gets its part of the batch
  // (SamplesOfRank), and all have the same state after it. All ranks must call the same functions
  // in the same order; those that read or write state by name are local.
  SessionOptions session;
  BatchSums sums = BatchSums::kAny;
};

struct StepResult {
  double loss = 0;            // the mean over the batch
  int64_t correct = -1;       // targets that are the likeliest class; -1: the loss has no classes
  double rate = 0;            // the learning rate
  double gradient_norm = -1;  // before it is limited; -1: it is not computed
  bool updated = true;        // false: the gradients were accumulated, or the update was skipped
  bool skipped = false;       // a gradient was not finite, and the loss scale was reduced
};

struct Evaluation {
  double loss = 0;  // the mean over all samples
  int64_t correct = -1, samples = 0;
  double accuracy() const {
    return samples > 0 ? static_cast<double>(correct) / static_cast<double>(samples) : 0;
  }
};

// Used by one thread at a time, except Cancel.
class Trainer {
 public:
  // `module`: from MakeTrainingModule. With several ranks, checks that all have the same module,
  // and takes over the parameters of rank 0.
  static Result<std::unique_ptr<Trainer>> Create(std::shared_ptr<const Environment> environment,
                                                 Module module, const TrainerOptions& options);
  ~Trainer();

  // Makes one step with the tensors of the batch: an update, or one of the micro-batches of one.
  // The result is that of all ranks together. An error if the loss is not finite: the parameters
  // are then those from after the update, and the run continues only from a checkpoint.
  Result<StepResult> Step(const Batch& batch, const RunOptions& run = {});

  // Calls `visit` (may be null) for each batch with the outputs of the model, then returns the loss
  // over the dataset, of all ranks together.
  using VisitOutputs =
      std::function<Status(const Batch& batch, const std::vector<TensorView>& outputs)>;
  Result<Evaluation> Evaluate(const Dataset& data, const VisitOutputs& visit = nullptr);
  // The outputs of the model for one batch of inputs; valid until the next call.
  Result<std::vector<TensorView>> Predict(const std::vector<ConstTensor>& inputs);

  // Any thread. Stops the step or evaluation in progress.
  void Cancel();

  int64_t steps() const;  // updates so far
  // The stage of freezing that the next step belongs to, from its part of Schedule::total_steps; 0:
  // nothing is frozen.
  int freezing_stage() const;
  double rate() const;  // of the next step
  const Schedule& schedule() const;
  void set_schedule(Schedule schedule);
  const CompiledModel& model() const;
  const Module& module() const;  // as it was given, before passes
  // The slots of a role, or an error for an unknown name.
  Result<ConstTensor> State(const std::string& slot) const;
  Status SetState(const std::string& slot, const ConstTensor& value);

  // A copy of all state. The caller adds the position of its data, and a metric.
  Result<Checkpoint> MakeCheckpoint() const;
  // Continues from a checkpoint with the same bits. An error names the model or the slot that
  // differs; nothing is changed then.
  Status Restore(const Checkpoint& checkpoint);
  // A collective: all ranks take over the state and the step of rank 0.
  Status TakeOverFromFirstRank();
  const ExchangeTotals& exchanges() const;  // the communication of the last step

  // The model for inference with the current parameters, or their moving averages if there are.
  Result<Module> Export() const;

 private:
  struct Impl;
  explicit Trainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace msrt

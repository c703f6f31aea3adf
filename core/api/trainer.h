// A trainer of the C API: a core trainer, and how it was made.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/api/exclusive.h"
#include "core/compile/compile.h"
#include "core/train/boost.h"
#include "core/train/trainer.h"
#include "core/train/training_spec.h"

namespace msrt {

struct TrainerObject {
  // Destroyed last: constants come from its allocator.
  std::shared_ptr<const Environment> environment;
  std::unique_ptr<Trainer> trainer;
  std::string schedule;     // as text
  double rate = 0;          // its highest
  int64_t total_steps = 0;  // 0: those of a run
  int64_t accumulation = 1;
  bool safe_steps = false;
  bool has_classes = false;    // targets are numbers of classes
  bool probabilities = false;  // the model's first output
  std::atomic<bool> busy{false};
  std::atomic<bool> fitting{false}, stop{false};  // a run is in progress, and shall end
  Boost boost = Boost::kO1;
  std::vector<std::pair<std::string, std::string>> changes;  // ListChanges
  std::optional<ActivationMemory> activations;               // if it is limited
  std::string info;                                          // the last one returned

  // The graph of an entry, before passes.
  Result<const Graph*> Entry(std::string_view name) const;
};

inline Result<Exclusive<TrainerObject>> EnterTrainer(const msrt_trainer* trainer) {
  return Exclusive<TrainerObject>::Enter(trainer, "trainer");
}

// The steps of a schedule that ends with a run, before there is one.
inline constexpr int64_t kOpenSteps = int64_t{1} << 40;
// Whether the learning rate of a schedule depends on the number of all updates.
bool HasEnd(const Schedule& schedule);
// Makes the trainer that `config` describes.
Result<std::shared_ptr<TrainerObject>> MakeTrainer(std::shared_ptr<const Environment> environment,
                                                   const msrt_trainer_config& config);
// The batch of the tensors of a call. `target` may be null where there is none.
Result<Batch> BatchArgument(const msrt_tensor* const* inputs, size_t input_count,
                            const msrt_tensor* target, bool has_target);
// NaN: not known.
msrt_evaluation NewEvaluation();

}  // namespace msrt

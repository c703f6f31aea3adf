// The command line of msrun train. Options may also be in a file (--config).
#pragma once

#include "core/train/data/data_loader.h"
#include "core/train/data/open_samples.h"
#include "core/train/training_spec.h"
#include "tools/msrun/arguments.h"
#include "tools/msrun/rank_limits.h"

namespace msrt {

struct TrainArguments {
  Arguments common;  // model, threads, delegates, plugins, accuracy, json, quiet, verbose
  std::string data, eval, output;
  int64_t epochs = 10, batch = 32;
  int64_t rows = 0, cols = 0;  // of the pictures that the model gets; 0: as they are
  uint64_t seed = 1;           // of weights, order and augmentation
  TrainingSpec spec;
  double rate = 0.01;
  std::string schedule = "constant";  // ParseSchedule; its steps depend on the data
  std::string augment_text;
  Augmentation augmentation;
  std::string normalize_text = "scale=1/255";
  Normalization normalization;
  BadSamples bad_samples = BadSamples::kRefuse;
  int data_threads = 2;
  ImageWindowOptions windows;
  bool resume = false;
  int64_t checkpoint_every = 0;  // steps; 0: after each epoch
  int64_t keep = 5;              // the number of last checkpoints
  int64_t early_stop = 0;        // epochs without a better evaluation; 0: never
  RankLimits limits;
  double progress_seconds = 10;  // between lines where there is no terminal
  std::string sums;              // fixed or any; empty: as the number of ranks decides

  bool has_fixed_sums(int ranks) const { return sums.empty() ? ranks > 1 : sums == "fixed"; }

  // Whether targets are numbers of classes, not a value for each output.
  bool has_class_targets() const {
    return spec.loss.kind == LossKind::kCrossEntropy && !spec.target_is_distribution;
  }
  std::string checkpoint_folder() const { return output + "/checkpoints"; }
};

// Returns false if the process shall end with *exit_code; the reason has been printed.
bool ParseTrainArguments(int argc, char** argv, TrainArguments* arguments, int* exit_code);

}  // namespace msrt

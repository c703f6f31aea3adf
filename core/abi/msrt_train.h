/* Training interface of msrt: data, single steps, whole runs, checkpoints and the export of trained
 * models. Plain C99. The rules of msrt.h for handles, struct_size, errors and exceptions hold here
 * too.
 *
 *   msrt_trainer_config config = MSRT_INIT(msrt_trainer_config);
 *   config.model = "lenet.msrt";
 *   config.learning_rate = 0.05;
 *   msrt_trainer_create(runtime, &config, &trainer);
 *   msrt_trainer_step(trainer, &image, 1, label, &result);    (again and again)
 *   msrt_trainer_export(trainer, "trained.msrt");
 *
 * Threads: a dataset may be used from any thread. A trainer belongs to one thread at a time, except
 * for msrt_trainer_cancel; a second thread gets an error, and so does a callback that uses the
 * trainer that calls it. A trainer keeps everything alive that it needs, so handles may be
 * destroyed in any order. */
#ifndef MSRT_TRAIN_H
#define MSRT_TRAIN_H

#include "msrt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct msrt_dataset msrt_dataset;
typedef struct msrt_trainer msrt_trainer;

/* ---- dataset: batches in an order that follows from seed and epoch alone --------------------- */

/* Returns batch number `batch`, from 0, of epoch number `epoch`, from 0: writes a tensor to each of
 * inputs[0] to inputs[dataset.input_count - 1] and to *target. The first dim of each is the number
 * of samples. The handles stay the application's, which may destroy them at once or use them again
 * in the next call; until then, or until the function that trains returns, the data must not
 * change. Equal numbers must give equal tensors if a run shall be resumed. Called by the thread
 * that trains. An error (not MSRT_OK) ends the run. */
typedef msrt_status (*msrt_read_batch)(void* user, int64_t epoch, int64_t batch,
                                       msrt_tensor** inputs, msrt_tensor** target);

typedef struct msrt_dataset_config {
  uint32_t struct_size;
  int32_t shuffle; /* non-zero: a new order in each epoch, for training */
  /* What is read, by what there is: a folder with one folder of pictures (JPEG, PNG, TIFF) for each
   * class, a folder with CIFAR-10, CIFAR-100 or MNIST files, a folder with images.npy and
   * labels.npy, or "SAMPLES.npy,LABELS.npy". NULL: `read` returns the batches. */
  const char* path;
  int64_t batch;    /* samples; 0: 32. The last batch may have fewer */
  int64_t channels; /* of pictures from files; 0: 3 */
  int64_t rows;     /* pictures are resized to this, after `augment`; 0: as they are */
  int64_t columns;
  uint64_t seed; /* of order and augmentation */
  /* "crop:32:4 hflip resize:100 rotate:15 color:0.2,0.2,0.2": random changes, for training. NULL:
   * none. "mixup:0.2" makes the targets probabilities. */
  const char* augment;
  const char* normalize; /* "mean=123.7,116.3,103.5 std=58.4,57.1,57.4"; NULL: 0 to 255 stay */
  /* Another dataset whose classes these are, in its order: for evaluation. NULL: the folders are
   * the classes, by name. */
  msrt_dataset* classes_of;
  int32_t test;            /* non-zero: the test files of CIFAR, MNIST and .npy folders */
  int32_t skip_unreadable; /* non-zero: samples that cannot be read are logged and left out */
  int32_t dense_targets;   /* non-zero: f32 probabilities of the classes instead of i64 classes */
  int32_t background_threads; /* that read and augment; 0: 2; negative: none */
  /* The application's own batches. */
  msrt_read_batch read;
  void* read_user;
  int64_t batch_count; /* batches of an epoch, for `read` */
  size_t input_count;  /* inputs of the model, for `read`; 0: 1 */
} msrt_dataset_config;

/* Opens data. From a path, batches are prepared in background threads; a batch is f32 pictures
 * [samples, channels, rows, columns] and i64 classes [samples]. */
MSRT_API msrt_status msrt_dataset_create(msrt_runtime* runtime, const msrt_dataset_config* config,
                                         msrt_dataset** out);
/* {"batches" (of an epoch), "samples", "classes": [names], "dims" (of a sample), "skipped": [names
 * of samples that could not be read so far]}; the last four from files only. Valid until the next
 * call with this dataset. */
MSRT_API msrt_status msrt_dataset_info_json(msrt_dataset* dataset, const char** out);
MSRT_API void msrt_dataset_destroy(msrt_dataset* dataset);

/* ---- trainer: a model with parameters that change -------------------------------------------- */

/* Compares the model's output with a target, as PyTorch defines it; a batch has the mean. */
typedef int32_t msrt_loss;
enum {
  /* Scores [samples, classes, ...] and i64 classes [samples, ...], or a distribution. A Softmax at
   * the end of the model is left out while it trains, since the loss has its own. */
  MSRT_LOSS_CROSS_ENTROPY = 0,
  /* Output and target have one shape. */
  MSRT_LOSS_MEAN_SQUARES = 1,
  MSRT_LOSS_MEAN_ABSOLUTE = 2,
  MSRT_LOSS_HUBER = 3,
  MSRT_LOSS_BINARY_CROSS_ENTROPY = 4,             /* of probabilities */
  MSRT_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS = 5, /* of their logarithms of odds */
  MSRT_LOSS_KULLBACK_LEIBLER = 6,                 /* of log-probabilities */
  MSRT_LOSS_DICE = 7                              /* of probabilities [samples, classes, ...] */
};

/* Parameters whose whole name matches; '*' stands for any text, '?' for any character. */
typedef struct msrt_parameter_group {
  const char* pattern;
  double rate_factor; /* of the learning rate */
  /* Negative: that of the config. */
  double weight_decay;
} msrt_parameter_group;

typedef int32_t msrt_precision;
enum {
  MSRT_PRECISION_F32 = 0,
  /* Parameters, sums and the optimizer in f32; matrix products and convolutions of bf16 operands
   * where the processor has such instructions, and what gradients need of the forward pass is kept
   * in bf16. Not with MSRT_ACCURACY_EXACT. */
  MSRT_PRECISION_MIXED = 1
};

/* How far training may leave the plain computation to be faster. msrt_trainer_info_json lists what
 * a level changes. */
typedef int32_t msrt_boost;
enum {
  MSRT_BOOST_O1 = 0,  /* the default: fusion, layouts, fast kernels */
  MSRT_BOOST_OFF = 1, /* each node as the model has it, in plain order: for debugging */
  MSRT_BOOST_O2 = 2,  /* other rounding: MSRT_PRECISION_MIXED */
  MSRT_BOOST_O3 = 3   /* may change convergence: O2, centralised gradients, two batches for an
                         update at twice the rate, and first layers that freeze in the course of a
                         run (of `total_steps`) */
};

typedef struct msrt_trainer_config {
  uint32_t struct_size;
  msrt_loss loss;
  /* Exactly one of the two. A .msrt file; its parameters are the constants that differentiable
   * nodes use as weights. The batch must be an open dim. A file that is already a training module
   * keeps its loss, optimizer and everything else up to `learning_rate`. */
  const char* model;
  const msrt_graph* graph; /* any graph of a model under construction, which is copied */
  int64_t output;          /* the number of the model's output that the loss compares */
  /* Cross-entropy: non-zero: the target is a distribution over the classes, like the scores. */
  int32_t target_is_distribution;
  int32_t has_ignored_class; /* cross-entropy: non-zero: targets of `ignored_class` do not count */
  int64_t ignored_class;
  double label_smoothing;      /* cross-entropy: the part of a target spread over all classes */
  const double* class_weights; /* cross-entropy: one for each class; NULL: all are 1 */
  size_t class_weight_count;
  double huber_delta; /* 0: 1 */
  /* "sgd", "momentum[:M]", "nesterov[:M]", "rmsprop[:ALPHA]", "adagrad", "adam[:B1:B2]",
   * "adamw[:B1:B2]", "lamb[:B1:B2]" or "lars[:M]". NULL: "momentum:0.9". */
  const char* optimizer;
  double weight_decay;
  int32_t decay_vectors; /* non-zero: parameters of rank 0 and 1 (biases, norms) decay too */
  /* Non-zero: the loss scale halves when a gradient is not finite, in which case the update is
   * skipped, and doubles after 2,000 updates. */
  int32_t dynamic_loss_scale;
  double loss_scale; /* of gradients, so that small ones do not vanish; 0: 1, or 65536 if dynamic */
  double clip_value; /* limit of each element of a gradient; 0: none */
  double clip_norm;  /* limit of the norm of all gradients together; 0: none */
  int64_t accumulation; /* steps whose gradients make one update; 0: 1 */
  const char* frozen;   /* patterns of parameters that never change, comma-separated; NULL: none */
  const msrt_parameter_group* groups; /* the first that matches counts */
  size_t group_count;
  double average_decay; /* of a moving average of the parameters, which predictions, evaluations and
                           exports use; 0: none */
  double learning_rate; /* 0: 0.01 */
  /* "constant", "step:SIZE[:FACTOR]", "cosine[:FINAL]", "polynomial[:POWER[:FINAL]]" or
   * "onecycle[:RISING_PART]", each followed by "+warmup:STEPS" if there is one. NULL: "constant".
   */
  const char* schedule;
  /* Updates until the end of the schedule; 0: all updates of a run of msrt_trainer_fit. */
  int64_t total_steps;
  /* Non-zero: a step that fails leaves all state as it was before, and the error of a loss that is
   * not finite names the first such value of the step. Costs a copy of all state for each step. */
  int32_t safe_steps;
  int32_t reserved;        /* must be 0 */
  size_t memory_cap_bytes; /* of each of up to four sessions (train, accumulate, test, predict) */
  const msrt_model_config* model_config; /* NULL: the defaults */
  /* Limit of what a step keeps of the forward pass for gradients: "2GiB", "1500MB", or "40%" of
   * what it keeps otherwise; the rest is computed again. It is planned for the dims in
   * model_config->typical, where inputs have open ones. NULL: none. */
  const char* activation_memory;
  msrt_precision precision;
  msrt_boost boost;
} msrt_trainer_config;

/* Adds loss, gradients and optimizer to the model, and compiles it. */
MSRT_API msrt_status msrt_trainer_create(msrt_runtime* runtime, const msrt_trainer_config* config,
                                         msrt_trainer** out);
MSRT_API void msrt_trainer_destroy(msrt_trainer* trainer);
/* {"model", "steps" (updates so far), "learning_rate" (of the next step), "accumulation",
 * "parameters" (numbers in all of them), "inputs", "target", "outputs", "states": [{"name", "role",
 * "type", "dims"}], "boost", "changes": [{"name", "effect"}] (from the plain computation),
 * "activations": {"kept_bytes", "planned_bytes", "recomputed" (part of the forward pass)} (with
 * activation_memory)}. Valid until the next call of this function with this trainer. */
MSRT_API msrt_status msrt_trainer_info_json(msrt_trainer* trainer, const char** out);

typedef struct msrt_step_result {
  uint32_t struct_size;
  int32_t updated; /* 0: the gradients were only accumulated, or the update was skipped */
  int32_t skipped; /* non-zero: a gradient was not finite, and the loss scale was reduced */
  int32_t reserved;
  double loss;          /* the mean over the batch */
  int64_t correct;      /* targets that are the likeliest class; -1: the loss has no classes */
  double learning_rate; /* of this step */
  double gradient_norm; /* before it is limited; -1: not computed, for want of clip_norm */
  int64_t steps;        /* updates so far, this one included */
} msrt_step_result;

/* Makes one step with a batch: an update of the parameters, or one of the `accumulation` parts of
 * an update. `inputs` has the model's inputs in their order. Only an error of the arguments leaves
 * the state as before for sure. After an error in the update (a loss that is not finite, too), it
 * is a mixture: restore a checkpoint, or train with config.safe_steps. `result` may be NULL;
 * otherwise set its struct_size first. */
MSRT_API msrt_status msrt_trainer_step(msrt_trainer* trainer, const msrt_tensor* const* inputs,
                                       size_t input_count, const msrt_tensor* target,
                                       msrt_step_result* result);
/* Sets the learning rate of the steps from now on, instead of the schedule. */
MSRT_API msrt_status msrt_trainer_set_rate(msrt_trainer* trainer, double learning_rate);

/* Computes outputs of the model as it is now: the first `output_count` ones, from 1 on. The tensors
 * are copies, which the caller owns. */
MSRT_API msrt_status msrt_trainer_predict(msrt_trainer* trainer, const msrt_tensor* const* inputs,
                                          size_t input_count, msrt_tensor** outputs,
                                          size_t output_count);

/* NaN: not known. */
typedef struct msrt_evaluation {
  uint32_t struct_size;
  int32_t reserved;
  int64_t count;   /* targets that are classes and count; otherwise samples */
  double loss;     /* the mean over them */
  double accuracy; /* of targets that are classes */
  double top5;     /* the share of targets among the five likeliest classes; of a dataset only */
  double mean_iou; /* intersection over union, averaged over classes; of a dataset only */
} msrt_evaluation;

/* Evaluates one batch or a dataset; nothing changes. Set result->struct_size first. With a dataset
 * and classes as targets, the loss is the plain cross-entropy, without weights and smoothing, and
 * targets of -1 do not count. */
MSRT_API msrt_status msrt_trainer_evaluate_batch(msrt_trainer* trainer,
                                                 const msrt_tensor* const* inputs,
                                                 size_t input_count, const msrt_tensor* target,
                                                 msrt_evaluation* result);
MSRT_API msrt_status msrt_trainer_evaluate(msrt_trainer* trainer, msrt_dataset* dataset,
                                           msrt_evaluation* result);

/* ---- whole runs ------------------------------------------------------------------------------ */

typedef struct msrt_train_progress {
  int64_t epoch;  /* from 0, of the step that was made */
  int64_t epochs; /* of the run */
  int64_t batch;  /* steps of the epoch so far */
  int64_t batches;
  int64_t steps; /* updates so far */
  double loss;   /* of the step */
  double learning_rate;
  double samples_per_second; /* 0: not known yet, as is seconds_left */
  double seconds_left;
} msrt_train_progress;

/* A finished epoch. NaN: not measured. */
typedef struct msrt_train_epoch {
  uint32_t struct_size;
  int32_t reserved;
  int64_t epoch; /* finished epochs */
  int64_t steps; /* updates so far */
  double loss;   /* the mean over the epoch's samples, each when it was trained with */
  double accuracy;
  double learning_rate;
  double eval_loss;
  double eval_accuracy;
  double eval_top5;
  double eval_iou;
  double seconds;
  double samples_per_second;
} msrt_train_epoch;

typedef struct msrt_fit_config {
  uint32_t struct_size;
  int32_t resume; /* non-zero: continue from the newest checkpoint in `output`, if there is one */
  msrt_dataset* data;
  msrt_dataset* eval; /* evaluated after each epoch; NULL: none */
  int64_t epochs;     /* 0: 1 */
  /* A folder for history.csv and the folder checkpoints; it is made if there is none. NULL: nothing
   * is written. */
  const char* output;
  int64_t checkpoint_every; /* updates; 0: a checkpoint after each epoch */
  int64_t keep;             /* the number of last checkpoints that stay, beside the best; 0: 5 */
  int64_t early_stop;       /* end after so many epochs without a better evaluation; 0: never */
  /* Called by the thread that trains, after each step and after each epoch; may be NULL. They may
   * call msrt_trainer_cancel, and nothing else of this trainer. */
  void (*progress)(void* user, const msrt_train_progress* progress);
  void (*epoch_done)(void* user, const msrt_train_epoch* epoch);
  void* user;
} msrt_fit_config;

/* Trains for some epochs. `last` may be NULL; otherwise set its struct_size first: it receives the
 * last epoch. A run that continues with `resume` has the bits of one that was never stopped, if the
 * data is the same. The error of a loss that is not finite names batch and epoch, and with `output`
 * or config.safe_steps the first value that is not. */
MSRT_API msrt_status msrt_trainer_fit(msrt_trainer* trainer, const msrt_fit_config* config,
                                      msrt_train_epoch* last);
/* Stops what another thread, or a callback's caller, does with the trainer, which then returns
 * MSRT_CANCELLED; does nothing if that is nothing. msrt_trainer_fit ends after the step in
 * progress, with a checkpoint if it has a folder, and the trainer is ready for more. A single step
 * may be stopped in the middle; see msrt_trainer_step. May be called from any thread. */
MSRT_API msrt_status msrt_trainer_cancel(msrt_trainer* trainer);

/* ---- state: parameters, checkpoints, export -------------------------------------------------- */

/* Returns a copy of a state by its name: a parameter, what the optimizer keeps for it, a running
 * statistic. msrt_trainer_info_json lists them. */
MSRT_API msrt_status msrt_trainer_state_read(msrt_trainer* trainer, const char* name,
                                             msrt_tensor** out);
/* The value must have the state's type and dims. It is copied. */
MSRT_API msrt_status msrt_trainer_state_write(msrt_trainer* trainer, const char* name,
                                              const msrt_tensor* value);
/* Writes a checkpoint: all state, the number of steps and the schedule. The file is written beside
 * an old one, synced and renamed, so that there is always a whole one. */
MSRT_API msrt_status msrt_trainer_save(msrt_trainer* trainer, const char* path);
/* Continues from a checkpoint of the same model and optimizer, with the same bits. If it does not
 * fit, nothing changes. */
MSRT_API msrt_status msrt_trainer_restore(msrt_trainer* trainer, const char* path);
/* Writes the trained model for inference to a .msrt file. If it fails, an existing file stays as it
 * was. */
MSRT_API msrt_status msrt_trainer_export(msrt_trainer* trainer, const char* path);
/* Compiles the trained model for inference. `config` may be NULL. Later steps do not change it. */
MSRT_API msrt_status msrt_trainer_export_model(msrt_trainer* trainer,
                                               const msrt_model_config* config, msrt_model** out);

#ifdef __cplusplus
}
#endif

#endif /* MSRT_TRAIN_H */

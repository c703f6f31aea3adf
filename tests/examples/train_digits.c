/* Trains a network to read digits, in a few calls: the application draws the batches itself.
 *
 *   msconvert zoo:lenet lenet.msrt
 *   train_digits lenet.msrt digits.msrt
 *
 * The second file is the trained network. A folder of pictures would be a dataset by its path. */
#include <msrt_train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 32, SIDE = 28, TRAIN_BATCHES = 40, TEST_BATCHES = 8, EPOCHS = 3 };
static const int64_t kImageDims[] = {BATCH, 1, SIDE, SIDE}, kLabelDims[] = {BATCH};

/* 5 columns of 7 rows; bit 0 of a column is its top row. */
static const unsigned char kFont[10][5] = {
    {0x3E, 0x51, 0x49, 0x45, 0x3E}, {0x00, 0x42, 0x7F, 0x40, 0x00}, {0x42, 0x61, 0x51, 0x49, 0x46},
    {0x21, 0x41, 0x45, 0x4B, 0x31}, {0x18, 0x14, 0x12, 0x7F, 0x10}, {0x27, 0x45, 0x45, 0x45, 0x39},
    {0x3C, 0x4A, 0x49, 0x49, 0x30}, {0x01, 0x71, 0x09, 0x05, 0x03}, {0x36, 0x49, 0x49, 0x49, 0x36},
    {0x06, 0x49, 0x49, 0x29, 0x1E}};

static int Fail(const char* what) {
  fprintf(stderr, "train_digits: %s: %s\n", what, msrt_error_message());
  return 1;
}

/* A number in [0, 1) that depends on the state alone. */
static float Random(uint64_t* state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (float)(*state >> 40) / 16777216.0f;
}

/* Draws a digit three times as large, somewhere in the picture, with noise. */
static void Draw(int digit, uint64_t* state, float* pixels) {
  const int left = 1 + (int)(Random(state) * 11), top = 1 + (int)(Random(state) * 5);
  const float ink = 0.6f + 0.4f * Random(state);
  for (int i = 0; i < SIDE * SIDE; ++i) pixels[i] = 0.3f * Random(state);
  for (int row = 0; row < 21; ++row) {
    for (int column = 0; column < 15; ++column) {
      if (kFont[digit][column / 3] >> (row / 3) & 1)
        pixels[(top + row) * SIDE + left + column] += ink * (0.7f + 0.3f * Random(state));
    }
  }
}

/* Pictures and their labels, which every call fills again. */
typedef struct Digits {
  msrt_tensor* images;
  msrt_tensor* labels;
  uint64_t seed; /* other data for every epoch, and for the test */
} Digits;

static msrt_status ReadBatch(void* user, int64_t epoch, int64_t batch, msrt_tensor** inputs,
                             msrt_tensor** target) {
  const Digits* digits = user;
  uint64_t state = digits->seed + (uint64_t)epoch * 1000003 + (uint64_t)batch * 7919;
  void *pixels, *labels;
  msrt_status status = msrt_tensor_data(digits->images, &pixels);
  if (status == MSRT_OK) status = msrt_tensor_data(digits->labels, &labels);
  if (status != MSRT_OK) return status;
  for (int i = 0; i < 10; ++i) (void)Random(&state);
  for (int i = 0; i < BATCH; ++i) {
    const int digit = (int)(Random(&state) * 10);
    ((int64_t*)labels)[i] = digit;
    Draw(digit, &state, (float*)pixels + i * SIDE * SIDE);
  }
  inputs[0] = digits->images;
  *target = digits->labels;
  return MSRT_OK;
}

static void ShowEpoch(void* user, const msrt_train_epoch* epoch) {
  (void)user;
  printf("epoch %lld: loss %.4f, accuracy %.4f, test accuracy %.4f\n", (long long)epoch->epoch,
         epoch->loss, epoch->accuracy, epoch->eval_accuracy);
}

static int MakeDigits(msrt_runtime* runtime, uint64_t seed, int64_t batches, Digits* digits,
                      msrt_dataset** data) {
  msrt_dataset_config config = MSRT_INIT(msrt_dataset_config);
  digits->seed = seed;
  config.read = ReadBatch;
  config.read_user = digits;
  config.batch_count = batches;
  return msrt_tensor_create(runtime, MSRT_F32, 4, kImageDims, &digits->images) == MSRT_OK &&
         msrt_tensor_create(runtime, MSRT_I64, 1, kLabelDims, &digits->labels) == MSRT_OK &&
         msrt_dataset_create(runtime, &config, data) == MSRT_OK;
}

static void DestroyDigits(Digits* digits, msrt_dataset* data) {
  msrt_dataset_destroy(data);
  msrt_tensor_destroy(digits->images);
  msrt_tensor_destroy(digits->labels);
}

static int Train(msrt_trainer* trainer, msrt_dataset* data, msrt_dataset* test, const char* path) {
  msrt_evaluation before = MSRT_INIT(msrt_evaluation);
  msrt_fit_config fit = MSRT_INIT(msrt_fit_config);
  if (msrt_trainer_evaluate(trainer, test, &before) != MSRT_OK) return Fail("evaluation");
  printf("before: accuracy %.4f\n", before.accuracy);
  fit.data = data;
  fit.eval = test;
  fit.epochs = EPOCHS;
  fit.epoch_done = ShowEpoch;
  if (msrt_trainer_fit(trainer, &fit, NULL) != MSRT_OK) return Fail("training");
  if (msrt_trainer_export(trainer, path) != MSRT_OK) return Fail(path);
  return 0;
}

/* Reads test digits with the exported model, as any other application would. */
static int Check(msrt_runtime* runtime, const Digits* digits, const char* path) {
  msrt_model* model = NULL;
  msrt_session* session = NULL;
  msrt_tensor *inputs = NULL, *labels = NULL, *scores = NULL;
  void *result, *classes;
  int right = 0, failed = 1;

  if (msrt_model_load_file(runtime, path, NULL, &model) == MSRT_OK &&
      msrt_session_create(model, NULL, NULL, &session) == MSRT_OK &&
      ReadBatch((void*)digits, 0, TEST_BATCHES, &inputs, &labels) == MSRT_OK &&
      msrt_session_bind(session, MSRT_INPUT, 0, inputs) == MSRT_OK &&
      msrt_session_run(session, NULL) == MSRT_OK &&
      msrt_session_output(session, 0, &scores) == MSRT_OK &&
      msrt_tensor_data(scores, &result) == MSRT_OK &&
      msrt_tensor_data(labels, &classes) == MSRT_OK) {
    for (int i = 0; i < BATCH; ++i) {
      const float* row = (const float*)result + i * 10;
      int best = 0;
      for (int c = 1; c < 10; ++c) best = row[c] > row[best] ? c : best;
      right += best == (int)((const int64_t*)classes)[i];
    }
    printf("exported: %d of %d are right\n", right, BATCH);
    failed = 0;
  } else {
    Fail(path);
  }
  msrt_tensor_destroy(scores);
  msrt_session_destroy(session);
  msrt_model_destroy(model);
  return failed;
}

int main(int argc, char** argv) {
  msrt_runtime* runtime = NULL;
  msrt_trainer* trainer = NULL;
  msrt_dataset *data = NULL, *test = NULL;
  msrt_trainer_config config = MSRT_INIT(msrt_trainer_config);
  Digits train_digits, test_digits;
  int failed = 1;

  memset(&train_digits, 0, sizeof train_digits);
  memset(&test_digits, 0, sizeof test_digits);
  if (argc != 3) {
    fprintf(stderr, "usage: train_digits MODEL.msrt TRAINED.msrt\n");
    return 2;
  }
  config.model = argv[1];
  config.learning_rate = 0.02;
  config.schedule = "cosine";
  config.clip_norm = 5;
  if (msrt_runtime_create(NULL, &runtime) != MSRT_OK) return Fail("runtime");
  if (!MakeDigits(runtime, 1, TRAIN_BATCHES, &train_digits, &data) ||
      !MakeDigits(runtime, 99991, TEST_BATCHES, &test_digits, &test))
    Fail("data");
  else if (msrt_trainer_create(runtime, &config, &trainer) != MSRT_OK) Fail(argv[1]);
  else failed = Train(trainer, data, test, argv[2]) || Check(runtime, &test_digits, argv[2]);
  msrt_trainer_destroy(trainer);
  DestroyDigits(&train_digits, data);
  DestroyDigits(&test_digits, test);
  msrt_runtime_destroy(runtime);
  return failed;
}

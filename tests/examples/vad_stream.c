/* A stream through a model with state: detects speech, frame by frame.
 *
 *   msconvert silero_vad.onnx vad.msrt --state state=stateN \
 *       --shape state=2x1x128 --shape input=1x576
 *   vad_stream vad.msrt speech.raw
 *   arecord -t raw -f S16_LE -r 16000 | vad_stream vad.msrt -
 *
 * The audio is 16-bit PCM, one channel, 16 kHz. The input of the model is the last 64 samples of
 * the previous frame, then a frame of 512 samples; each frame prints one line with the second at
 * which it begins and the probability of speech. Two things pass from frame to frame: those 64
 * samples, which the application keeps, and the state of the model, which --state made a state slot
 * of the session. A second file is another stream, which begins with the state reset. */
#include <msrt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { RATE = 16000, FRAME = 512, CONTEXT = 64 };

#define TRY(call)                                                \
  do {                                                           \
    if ((call) != MSRT_OK) {                                     \
      fprintf(stderr, "vad_stream: %s\n", msrt_error_message()); \
      return 1;                                                  \
    }                                                            \
  } while (0)

typedef struct stream {
  msrt_session* session;
  float* samples; /* input of the session: CONTEXT previous samples, then FRAME new ones */
  long frames;
  double seconds; /* spent in runs */
} stream;

static double now(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sets an input of these dims and returns its memory. The session keeps the tensor, so its handle
 * is destroyed at once. */
static int make_input(msrt_session* session, const char* name, int32_t rank, const int64_t* dims,
                      void** data) {
  size_t index;
  msrt_tensor* tensor;
  TRY(msrt_session_io_find(session, MSRT_INPUT, name, &index));
  TRY(msrt_session_input(session, index, rank, dims, &tensor));
  TRY(msrt_tensor_data(tensor, data));
  msrt_tensor_destroy(tensor);
  return 0;
}

static int open_session(const char* path, msrt_session** session) {
  msrt_runtime_config config = MSRT_INIT(msrt_runtime_config);
  config.threads = 1; /* a frame is little work: other threads would only wake up and sleep */
  msrt_runtime* runtime;
  msrt_model* model;
  TRY(msrt_runtime_create(&config, &runtime));
  TRY(msrt_model_load_file(runtime, path, NULL, &model));
  TRY(msrt_session_create(model, NULL, NULL, session));
  msrt_model_destroy(model); /* the session keeps it alive */
  msrt_runtime_destroy(runtime);
  size_t states;
  TRY(msrt_session_state_count(*session, &states));
  if (states == 0) {
    fprintf(stderr, "vad_stream: %s has no state: convert it with msconvert --state INPUT=OUTPUT\n",
            path);
    return 1;
  }
  return 0;
}

/* Starts a new stream, without previous samples. */
static int begin(stream* s) {
  size_t states;
  TRY(msrt_session_state_count(s->session, &states));
  for (size_t i = 0; i < states; ++i) TRY(msrt_session_state_reset(s->session, i));
  memset(s->samples, 0, CONTEXT * sizeof(float));
  return 0;
}

static int push(stream* s, const int16_t* pcm, float* probability) {
  for (int i = 0; i < FRAME; ++i) s->samples[CONTEXT + i] = (float)pcm[i] / 32768.0f;
  const double start = now();
  msrt_tensor* output;
  void* data;
  TRY(msrt_session_run(s->session, NULL));
  TRY(msrt_session_output(s->session, 0, &output));
  TRY(msrt_tensor_data(output, &data));
  memcpy(probability, data, sizeof *probability);
  msrt_tensor_destroy(output);
  s->seconds += now() - start;
  memcpy(s->samples, s->samples + FRAME, CONTEXT * sizeof(float));
  ++s->frames;
  return 0;
}

static int hear(stream* s, FILE* audio) {
  int16_t pcm[FRAME];
  size_t got;
  if (begin(s) != 0) return 1;
  for (long frame = 0; (got = fread(pcm, sizeof *pcm, FRAME, audio)) != 0; ++frame) {
    float probability;
    memset(pcm + got, 0, (FRAME - got) * sizeof *pcm); /* the last frame may end in silence */
    if (push(s, pcm, &probability) != 0) return 1;
    printf("%.3f %.9g\n", (double)frame * FRAME / RATE, (double)probability);
  }
  if (ferror(audio)) {
    fprintf(stderr, "vad_stream: the audio cannot be read\n");
    return 1;
  }
  return 0;
}

static int hear_file(stream* s, const char* path) {
  if (strcmp(path, "-") == 0) return hear(s, stdin);
  FILE* audio = fopen(path, "rb");
  if (audio == NULL) {
    fprintf(stderr, "vad_stream: %s cannot be opened\n", path);
    return 1;
  }
  const int failed = hear(s, audio);
  fclose(audio);
  return failed;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: vad_stream MODEL.msrt AUDIO.raw...   (- is standard input)\n");
    return 2;
  }
  const int64_t dims[] = {1, CONTEXT + FRAME};
  const int64_t rate = RATE;
  stream s = {0};
  void *samples, *sr;
  int failed = open_session(argv[1], &s.session) != 0 ||
               make_input(s.session, "input", 2, dims, &samples) != 0 ||
               make_input(s.session, "sr", 0, NULL, &sr) != 0;
  if (!failed) {
    memcpy(sr, &rate, sizeof rate);
    s.samples = samples;
  }
  for (int i = 2; i < argc && !failed; ++i) failed = hear_file(&s, argv[i]);
  if (!failed && s.frames != 0)
    fprintf(stderr, "%ld frames, %.1f us each\n", s.frames, 1e6 * s.seconds / (double)s.frames);
  msrt_session_destroy(s.session);
  return failed;
}

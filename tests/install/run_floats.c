/* run_floats MODEL INPUT OUTPUT DIM...: runs a model with one f32 input and one f32 output; INPUT
 * and OUTPUT are files of plain floats. */
#include <msrt.h>
#include <stdio.h>
#include <stdlib.h>
#define TRY(call) \
  if ((call) != MSRT_OK) return fprintf(stderr, "%s\n", msrt_error_message()), 1

static int transfer(const char* path, const char* mode, void* data, size_t bytes) {
  FILE* file = fopen(path, mode);
  if (file == NULL) return perror(path), 1;
  const size_t done = mode[0] == 'r' ? fread(data, 1, bytes, file) : fwrite(data, 1, bytes, file);
  if (fclose(file) != 0 || done != bytes)
    return fprintf(stderr, "%s: %zu of %zu bytes\n", path, done, bytes), 1;
  return 0;
}

int main(int argc, char** argv) {
  msrt_runtime* runtime;
  msrt_model* model;
  msrt_session* session;
  msrt_tensor *input, *output;
  msrt_tensor_info info = MSRT_INIT(msrt_tensor_info);
  void* data;
  int64_t dims[MSRT_MAX_RANK];
  const int rank = argc - 4;
  if (rank < 0 || rank > MSRT_MAX_RANK)
    return fprintf(stderr, "usage: run_floats MODEL INPUT OUTPUT DIM...\n"), 2;
  for (int i = 0; i < rank; ++i) dims[i] = atoll(argv[4 + i]);
  TRY(msrt_runtime_create(NULL, &runtime));
  TRY(msrt_model_load_file(runtime, argv[1], NULL, &model));
  TRY(msrt_session_create(model, NULL, NULL, &session));
  TRY(msrt_session_input(session, 0, rank, dims, &input));
  TRY(msrt_tensor_get_info(input, &info));
  TRY(msrt_tensor_data(input, &data));
  if (transfer(argv[2], "rb", data, info.bytes) != 0) return 1;
  TRY(msrt_session_run(session, NULL));
  TRY(msrt_session_output(session, 0, &output));
  TRY(msrt_tensor_get_info(output, &info));
  TRY(msrt_tensor_data(output, &data));
  if (transfer(argv[3], "wb", data, info.bytes) != 0) return 1;
  msrt_tensor_destroy(output);
  msrt_tensor_destroy(input);
  msrt_session_destroy(session);
  msrt_model_destroy(model);
  msrt_runtime_destroy(runtime);
  return 0;
}

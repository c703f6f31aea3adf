/* Segments an image of any size: writes the class of each pixel, under a memory limit.
 *
 *   msconvert segmentation.onnx segmentation.msrt
 *   segment_image segmentation.msrt scene.tif classes.tif 2048
 *
 * The last argument is the limit in MiB. If the program is stopped, the same command continues
 * where it was: classes.tif exists only when it is complete. */
#include <msrt.h>
#include <stdio.h>
#include <stdlib.h>

static int Fail(const char* what) {
  fprintf(stderr, "segment_image: %s: %s\n", what, msrt_error_message());
  return 1;
}

static void ShowProgress(void* user, const msrt_image_progress* progress) {
  (void)user;
  fprintf(stderr, "\r%5.1f %%  %.2f Mpixel/s  %.0f s left ", progress->fraction * 100,
          progress->pixels_per_second / 1e6, progress->seconds_left);
}

static int Run(msrt_runtime* runtime, char** arguments) {
  msrt_image_output output = {0};
  msrt_image_config config = MSRT_INIT(msrt_image_config);
  msrt_image* image = NULL;
  msrt_image_info info = MSRT_INIT(msrt_image_info);
  int failed;

  output.path = arguments[3];
  output.class_bits = -1; /* as many as the classes need */
  config.model = arguments[1];
  config.image = arguments[2];
  config.outputs = &output;
  config.output_count = 1;
  config.memory_limit_bytes = (size_t)strtoull(arguments[4], NULL, 10) << 20;
  config.normalize = "scale=1/255";
  config.resume = 1;
  config.progress = ShowProgress;
  if (msrt_image_create(runtime, &config, &image) != MSRT_OK) return Fail(arguments[2]);
  failed = msrt_image_run(image) != MSRT_OK ? Fail(arguments[3]) : 0;
  if (!failed && msrt_image_get_info(image, MSRT_OUTPUT, 0, &info) == MSRT_OK)
    printf("%lld x %lld classes\n", (long long)info.rows, (long long)info.columns);
  msrt_image_destroy(image);
  return failed;
}

int main(int argc, char** argv) {
  msrt_runtime* runtime = NULL;
  int failed;

  if (argc != 5) {
    fprintf(stderr, "usage: segment_image MODEL.msrt IMAGE OUT.tif MEMORY_MIB\n");
    return 2;
  }
  if (msrt_runtime_create(NULL, &runtime) != MSRT_OK) return Fail("runtime");
  failed = Run(runtime, argv);
  msrt_runtime_destroy(runtime);
  return failed;
}

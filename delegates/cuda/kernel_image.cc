#include "delegates/cuda/kernel_image.h"

#include "delegates/cuda/kernel_files.h"  // generated: MSRT_CUDA_KERNEL_FILES(X), X(name) for each

// The assembler reads the files, which takes no time; as arrays they would take the compiler
// minutes. The build passes the folder of the files to the assembler.
#define MSRT_CUDA_EMBED(file)         \
  asm(".pushsection .rodata\n"        \
      ".balign 64\n"                  \
      ".local msrt_cuda_image_" #file \
      "\n"                            \
      "msrt_cuda_image_" #file        \
      ":\n"                           \
      ".incbin \"" #file              \
      ".fatbin\"\n"                   \
      ".popsection\n");               \
  extern "C" __attribute__((visibility("hidden"))) const char msrt_cuda_image_##file[];
MSRT_CUDA_KERNEL_FILES(MSRT_CUDA_EMBED)

namespace msrt::cuda {

const void* KernelImage(std::string_view file) {
#define MSRT_CUDA_FIND(name) \
  if (file == #name) return msrt_cuda_image_##name;
  MSRT_CUDA_KERNEL_FILES(MSRT_CUDA_FIND)
  return nullptr;
}

}  // namespace msrt::cuda

// Finding NVIDIA's libraries: what is missing is named, and every function of the tables exists in
// the libraries that are installed.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/base/str_cat.h"
#include "delegates/cuda/api.h"
#include "delegates/cuda/cuda.h"

namespace msrt::cuda {
namespace {

// A name where the loader finds none, although the library itself may be installed.
TEST(CudaLibrary, MissingDriverIsNamed) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver != nullptr) GTEST_SKIP() << "this machine has a driver";
  CudaApi api;
  const std::string missing = LoadCuda(&api);
  EXPECT_NE(missing.find("no NVIDIA driver: libcuda.so.1 not found"), std::string::npos) << missing;
  EXPECT_NE(missing.find("/usr/local/cuda/lib64/libcuda.so.1"), std::string::npos) << missing;
  EXPECT_EQ(api.driver.cuInit, nullptr);
  EXPECT_EQ(WhyNoCuda(), missing);
  EXPECT_EQ(MakeSystemCudaDelegate().status().code(), Code::kDelegate);
}

TEST(CudaLibrary, SearchedFoldersAreNamed) {
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr)
    GTEST_SKIP() << "this machine has a driver";
  ASSERT_EQ(setenv("MSRT_CUDA_PATH", "/nowhere/first:/nowhere/second", 1), 0);
  CudaApi api;
  const std::string missing = LoadCuda(&api);
  unsetenv("MSRT_CUDA_PATH");
  EXPECT_NE(missing.find("/nowhere/first/libcuda.so.1"), std::string::npos) << missing;
  EXPECT_NE(missing.find("/nowhere/second/libcuda.so.1"), std::string::npos) << missing;
}

// The first of the paths that can be opened; null if there is none.
void* Open(std::initializer_list<const char*> paths) {
  for (const char* path : paths) {
    if (void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
  }
  return nullptr;
}

#define MSRT_TEXT(f) #f
#define MSRT_EXPECT(f) EXPECT_NE(dlsym(library, MSRT_TEXT(f)), nullptr) << MSRT_TEXT(f);

TEST(CudaLibrary, DriverHasEveryFunction) {
  void* library = Open({"libcuda.so.1", MSRT_CUDA_LIBRARIES "/stubs/libcuda.so"});
  if (library == nullptr) GTEST_SKIP() << "neither a driver nor the toolkit's stub of one";
  MSRT_CUDA_DRIVER(MSRT_EXPECT)
}
TEST(CudaLibrary, CublasHasEveryFunction) {
  void* library = Open({"libcublasLt.so.13", MSRT_CUDA_LIBRARIES "/libcublasLt.so.13"});
  if (library == nullptr) GTEST_SKIP() << "no cuBLASLt";
  MSRT_CUBLASLT(MSRT_EXPECT)
}
TEST(CudaLibrary, CudnnHasEveryFunction) {
  void* library = Open({"libcudnn.so.9", MSRT_CUDA_LIBRARIES "/libcudnn.so.9"});
  if (library == nullptr) GTEST_SKIP() << "no cuDNN";
  MSRT_CUDNN(MSRT_EXPECT)
}
TEST(CudaLibrary, NcclHasEveryFunction) {
  void* library = Open({"libnccl.so.2", MSRT_CUDA_LIBRARIES "/libnccl.so.2"});
  if (library == nullptr) GTEST_SKIP() << "no NCCL";
  MSRT_NCCL(MSRT_EXPECT)
}

}  // namespace
}  // namespace msrt::cuda

// LoadCuda: NVIDIA's libraries by dlopen and dlsym. Everything that can be missing on a machine (a
// library, a symbol, a version) becomes a text, never a crash: most machines that run this code
// have no GPU.
#include <dlfcn.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/base/str_cat.h"
#include "delegates/cuda/api.h"

namespace msrt::cuda {
namespace {

// Oldest versions whose functions and behaviour this folder relies on. The kernels and cuBLASLt are
// built for CUDA 13, which drivers before it do not load; cuDNN 9.8 makes plans from properties.
constexpr int kMinDriver = CUDA_VERSION / 1000 * 1000;
constexpr size_t kMinCublas = 130000;
constexpr size_t kMinCudnn = 90800;
constexpr int kMinNccl = 22000;

// A library that stays loaded once everything in it was found: its code may be running until the
// process ends.
class Library {
 public:
  // Looks in the folders of MSRT_CUDA_PATH (separated by colons), then where the system looks, then
  // in the toolkit's usual folder.
  explicit Library(std::string name) : name_(std::move(name)) {
    std::vector<std::string> paths;
    if (const char* folders = std::getenv("MSRT_CUDA_PATH"); folders != nullptr) {
      std::string_view rest = folders;
      while (!rest.empty()) {
        const size_t end = std::min(rest.find(':'), rest.size());
        if (end != 0) paths.push_back(StrCat(rest.substr(0, end), "/", name_));
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    paths.push_back(name_);
    paths.push_back(StrCat("/usr/local/cuda/lib64/", name_));
    for (const std::string& path : paths) {
      handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_ != nullptr) return;
      // The loader's text already begins with the path.
      const char* text = dlerror();
      StrAppend(&missing_, missing_.empty() ? "" : "; ", text != nullptr ? text : path.c_str());
    }
    missing_ = StrCat(name_, " not found (", missing_, ")");
  }
  ~Library() {
    if (handle_ != nullptr && !missing_.empty()) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <typename F>
  void Find(const char* symbol, F* function) {
    if (!missing_.empty()) return;
    *function = reinterpret_cast<F>(dlsym(handle_, symbol));
    if (*function == nullptr) missing_ = StrCat(name_, " has no function ", symbol);
  }
  void Require(std::string_view what, size_t found, size_t least) {
    if (missing_.empty() && found < least)
      missing_ = StrCat(name_, ": ", what, " ", found, " is too old, needs ", least, " or newer");
  }
  const std::string& missing() const { return missing_; }

 private:
  const std::string name_;
  void* handle_ = nullptr;
  std::string missing_;  // empty: nothing
};

// The headers rename some functions (cuMemAlloc is cuMemAlloc_v2), so the name is expanded first.
#define MSRT_CUDA_TEXT(f) #f
#define MSRT_CUDA_FIND(f) library.Find(MSRT_CUDA_TEXT(f), &table->f);

std::string LoadDriver(CudaDriver* table) {
  Library library("libcuda.so.1");
  if (!library.missing().empty()) return StrCat("no NVIDIA driver: ", library.missing());
  MSRT_CUDA_DRIVER(MSRT_CUDA_FIND)
  int version = 0;
  if (library.missing().empty() && table->cuDriverGetVersion(&version) == CUDA_SUCCESS)
    library.Require("the driver's version of CUDA,", static_cast<size_t>(version), kMinDriver);
  return library.missing();
}

std::string LoadCublas(Cublas* table) {
  Library library("libcublasLt.so.13");
  MSRT_CUBLASLT(MSRT_CUDA_FIND)
  if (library.missing().empty())
    library.Require("version", table->cublasLtGetVersion(), kMinCublas);
  return library.missing();
}

std::string LoadCudnn(Cudnn* table) {
  Library library("libcudnn.so.9");
  MSRT_CUDNN(MSRT_CUDA_FIND)
  if (library.missing().empty()) library.Require("version", table->cudnnGetVersion(), kMinCudnn);
  return library.missing();
}

std::string LoadNccl(Nccl* table) {
  Library library("libnccl.so.2");
  MSRT_NCCL(MSRT_CUDA_FIND)
  int version = 0;
  if (library.missing().empty() && table->ncclGetVersion(&version) == ncclSuccess)
    library.Require("version", static_cast<size_t>(version), kMinNccl);
  return library.missing();
}

}  // namespace

std::string LoadCuda(CudaApi* api) {
  *api = {};
  // The driver first: without it the others, which are large, are not even opened.
  if (std::string missing = LoadDriver(&api->driver); !missing.empty()) return missing;
  // A table that is not complete is left empty, so that nobody calls half a library.
  if (api->blas_missing = LoadCublas(&api->blas); !api->blas_missing.empty()) api->blas = {};
  if (api->dnn_missing = LoadCudnn(&api->dnn); !api->dnn_missing.empty()) api->dnn = {};
  if (api->nccl_missing = LoadNccl(&api->nccl); !api->nccl_missing.empty()) api->nccl = {};
  return {};
}

}  // namespace msrt::cuda

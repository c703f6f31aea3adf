// Kernels by name and type of argument, and their launch.
#pragma once

#include <algorithm>

#include "delegates/cuda/kernels/arguments.h"
#include "delegates/cuda/rule.h"
#include "delegates/cuda/stream.h"

namespace msrt::cuda {

// A kernel of kernels/<file>.cu, which takes one struct of arguments.
template <typename Args>
struct KernelId {
  const char* file;
  const char* name;
};

struct Grid {
  uint32_t x = 1, y = 1, z = 1;
  uint32_t threads = 256;
  uint32_t shared_bytes = 0;

  // A thread for each element, up to what keeps every GPU busy; kernels loop over the rest.
  static Grid OfElements(int64_t elements) {
    return {static_cast<uint32_t>(std::clamp<int64_t>((elements + 255) / 256, 1, 1 << 16))};
  }
  // A block for each row of `length` elements.
  static Grid OfRows(int64_t rows, int64_t length) {
    Grid grid{static_cast<uint32_t>(std::clamp<int64_t>(rows, 1, 1 << 20))};
    grid.threads = length <= 64 ? 32 : length <= 512 ? 128 : 256;
    return grid;
  }
};

// Enqueues a launch; the arguments are copied.
Status Launch(const Stream& stream, CUfunction function, const char* name, const Grid& grid,
              const void* args);

// A step that is one launch: `fill` puts the addresses of a run into the arguments.
template <typename Args>
class BoundLaunch final : public BoundKernel {
 public:
  using Fill = void (*)(const RunArgs& run, const Stream& stream, Args* args);

  static Result<std::unique_ptr<BoundKernel>> Make(Gpu& gpu, KernelId<Args> kernel,
                                                   const Grid& grid, const Args& args, Fill fill) {
    MSRT_ASSIGN_OR_RETURN(CUfunction function, gpu.Function(kernel.file, kernel.name));
    return std::unique_ptr<BoundKernel>(
        std::make_unique<BoundLaunch>(kernel, function, grid, args, fill));
  }
  BoundLaunch(KernelId<Args> kernel, CUfunction function, const Grid& grid, const Args& args,
              Fill fill)
      : kernel_(kernel), function_(function), grid_(grid), args_(args), fill_(fill) {}

  Status Run(const RunArgs& run) override {
    const Stream& stream = *static_cast<const Stream*>(run.stream);
    Args args = args_;
    fill_(run, stream, &args);
    return Launch(stream, function_, kernel_.name, grid_, &args);
  }
  size_t bytes() const override { return sizeof(Args); }

 private:
  const KernelId<Args> kernel_;
  const CUfunction function_;
  const Grid grid_;
  const Args args_;
  const Fill fill_;
};

// Several steps one after another; none: nothing to do, as for an empty tensor.
class BoundSteps final : public BoundKernel {
 public:
  explicit BoundSteps(std::vector<std::unique_ptr<BoundKernel>> steps = {})
      : steps_(std::move(steps)) {}
  Status Prepare() override {
    for (const auto& step : steps_) MSRT_RETURN_IF_ERROR(step->Prepare());
    return OkStatus();
  }
  Status Run(const RunArgs& run) override {
    for (const auto& step : steps_) MSRT_RETURN_IF_ERROR(step->Run(run));
    return OkStatus();
  }
  size_t bytes() const override {
    size_t bytes = 0;
    for (const auto& step : steps_) bytes += step->bytes();
    return bytes;
  }

 private:
  const std::vector<std::unique_ptr<BoundKernel>> steps_;
};

inline std::unique_ptr<BoundKernel> BoundNothing() { return std::make_unique<BoundSteps>(); }

}  // namespace msrt::cuda

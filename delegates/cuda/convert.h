// Changes of layout on the GPU.
#pragma once

#include "core/abi/msrt_device.h"
#include "core/graph/tensor.h"
#include "delegates/cuda/stream.h"

namespace msrt::cuda {

Status EnqueueConversion(Stream& stream, const msrt_shape& shape, Layout from_layout,
                         const void* from, Layout to_layout, void* to);

}  // namespace msrt::cuda

// The one place that includes oneDNN, with our tensors in its words. Everything here is private to delegates/onednn.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "core/graph/op_view.h"

namespace msrt::onednn {

using dnnl::memory;

// The CPU. The first call also bounds the library's own caches.
const dnnl::engine& Engine();

inline memory::dims ToDnnl(std::span<const int64_t> dims) { return {dims.begin(), dims.end()}; }

// An f32 tensor in one of our layouts. A scalar becomes a vector of one element.
memory::desc Describe(const Dims& dims, Layout layout);
inline memory::desc DescribePlain(const Dims& dims) { return Describe(dims, Layout::kPlain); }
inline memory::desc Describe(const Type& type, Layout layout) { return Describe(type.dims, layout); }

// The library's loops of last resort, hundreds of times slower than its kernels and slower than our reference kernels.
inline bool IsNaive(const dnnl::primitive_desc& descriptor) {
  return std::string_view(descriptor.impl_info_str()).find("ref") != std::string_view::npos;
}

// Every primitive takes its scratchpad from the session's scratch memory.
dnnl::primitive_attr UserScratchpad(const dnnl::post_ops& post_ops = {});

// "Conv 'name' f32[1, 3, 8, 8], f32[...]: what": the op, its shapes and what the library said.
Status FromError(const dnnl::error& error, const OpView& op);

}  // namespace msrt::onednn

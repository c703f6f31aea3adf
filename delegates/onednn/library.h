// The one place that includes oneDNN, with our tensors in its words. Everything here is private to
// delegates/onednn.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "core/graph/op_view.h"

namespace msrt::onednn {

using dnnl::memory;

// The CPU. The first call also bounds the library's own caches.
const dnnl::engine& Engine();

inline memory::dims ToDnnl(std::span<const int64_t> dims) { return {dims.begin(), dims.end()}; }

// The element types that the library computes with here, beside f32.
inline constexpr DTypeSet kLibraryIntegers{DType::kU8, DType::kI8, DType::kI32};
// f32 for every type that is not among them.
memory::data_type ToDnnl(DType dtype);

// A tensor in one of our layouts. A scalar becomes a vector of one element.
memory::desc Describe(const Dims& dims, Layout layout,
                      memory::data_type elements = memory::data_type::f32);
inline memory::desc DescribePlain(const Dims& dims) { return Describe(dims, Layout::kPlain); }
inline memory::desc Describe(const Type& type, Layout layout) {
  return Describe(type.dims, layout, ToDnnl(type.dtype));
}

// Whether the library's kernels use vectors of 16 floats.
bool HasWideVectors();
// The layout with blocks that the library has its fastest kernels for. With wide vectors, blocks of
// 8 channels run kernels for AVX2, at half the speed of blocks of 16.
inline Layout BlockedLayout() { return HasWideVectors() ? Layout::kBlocked16 : Layout::kBlocked8; }

// The same with elements of bf16. For layouts without blocks.
memory::desc InBf16(const memory::desc& desc);
// Whether the library may use instructions that multiply numbers in bf16. Twice as fast as f32 with
// AVX512_BF16, and more with AMX; slower than f32 where conversions stand for them.
bool HasBf16();

// The library's loops of last resort, hundreds of times slower than its kernels and slower than our
// reference kernels.
inline bool IsNaive(const dnnl::primitive_desc& descriptor) {
  return std::string_view(descriptor.impl_info_str()).find("ref") != std::string_view::npos;
}

// Whether products of bytes are summed in 32 bits (VNNI, AMX). Older instructions add two products
// in 16 bits first, which saturates.
bool SumsBytesExactly();
// The same of the implementation that was chosen: with 256-bit VNNI the library still has some
// without it.
bool SumsBytesExactly(const dnnl::primitive_desc& descriptor);

// Every primitive takes its scratchpad from the session's scratch memory.
dnnl::primitive_attr UserScratchpad(const dnnl::post_ops& post_ops = {});

// "Conv 'name' f32[1, 3, 8, 8], f32[...]: what": the op, its shapes and what the library said.
Status FromError(const dnnl::error& error, const OpView& op);

}  // namespace msrt::onednn

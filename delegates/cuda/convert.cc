#include "delegates/cuda/convert.h"

#include "core/base/checked_math.h"
#include "delegates/cuda/launch.h"
#include "delegates/cuda/spaces.h"

namespace msrt::cuda {
namespace {

constexpr KernelId<LayoutArgs> kKernels[] = {{"copy", "change_layout_8"},
                                             {"copy", "change_layout_16"},
                                             {"copy", "change_layout_32"},
                                             {"copy", "change_layout_64"}};

// A tensor in memory: batch, blocks of channels, positions, channels of a block. Plain has all
// channels in blocks of one, channels-last one block of all.
struct InMemory {
  int64_t block, batch_stride, block_stride, position_stride, channel_stride;
};

InMemory OrderOf(Layout layout, int64_t channels, int64_t positions) {
  if (layout == Layout::kPlain) return {1, channels * positions, positions, 1, 1};
  const int64_t block = layout == Layout::kChannelsLast ? channels : BlockOf(layout);
  const int64_t blocks = CeilDiv(channels, block);
  return {block, blocks * positions * block, positions * block, block, 1};
}

}  // namespace

Status EnqueueConversion(Stream& stream, const msrt_shape& shape, Layout from_layout,
                         const void* from, Layout to_layout, void* to) {
  const Dims dims(std::span<const int64_t>(shape.dims, static_cast<size_t>(shape.rank)));
  const auto type = static_cast<DType>(shape.dtype);
  const int bits = BitsOf(type);
  if (bits < 8 || dims.rank() < 2)
    return Unsupported("a change of layout of ", type, dims, " on the GPU");
  const int64_t channels = dims[1], positions = dims.product(2, dims.rank());
  if (dims.elements() == 0) return OkStatus();
  const InMemory in = OrderOf(from_layout, channels, positions),
                 out = OrderOf(to_layout, channels, positions);
  const int64_t elements = dims[0] * out.batch_stride;
  if (elements > kMaxElementsOfKernel)
    return Unsupported("a change of layout of ", elements, " elements");
  LayoutArgs args;
  args.in = from;
  args.out = to;
  args.block = DivisionBy(out.block);
  args.positions = DivisionBy(positions);
  args.blocks = DivisionBy(CeilDiv(channels, out.block));
  args.elements = static_cast<uint32_t>(elements);
  args.channels = static_cast<uint32_t>(channels);
  args.batch_stride = in.batch_stride;
  args.block_stride = in.block_stride;
  args.position_stride = in.position_stride;
  args.channel_stride = in.channel_stride;
  args.in_block = static_cast<uint32_t>(in.block);
  const auto& kernel = kKernels[bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3];
  MSRT_ASSIGN_OR_RETURN(CUfunction function, stream.gpu->Function(kernel.file, kernel.name));
  return Launch(stream, function, kernel.name, Grid::OfElements(elements), &args);
}

}  // namespace msrt::cuda

#include "core/graph/constants.h"

#include <unordered_set>

namespace msrt {

size_t ConstantBytes(const Module& module) {
  size_t bytes = 0;
  std::unordered_set<const std::byte*> seen;
  for (const Graph& g : module.graphs) {
    for (uint32_t v = 0; v < g.value_count(); ++v) {
      const ConstTensor* constant = g.value(ValueId(v)).constant.get();
      if (constant != nullptr && seen.insert(constant->bytes.data()).second)
        bytes += constant->bytes.size();
    }
  }
  return bytes;
}

Result<NewConstant> MakeConstant(DType dtype, const Dims& dims) {
  const size_t bytes = BytesOf(dtype, dims.elements());
  MSRT_ASSIGN_OR_RETURN(Block block, Block::Make(DefaultAllocator(), bytes, "a constant"));
  const auto owner = std::make_shared<Block>(std::move(block));
  const std::span<std::byte> memory(owner->data(), bytes);
  return NewConstant{{dtype, dims, memory, owner}, memory};
}

}  // namespace msrt

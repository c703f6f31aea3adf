#include "core/graph/constants.h"

#include <cstdlib>
#include <memory>
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

Result<ConstTensor> MakeZeros(DType dtype, const Dims& dims) {
  constexpr size_t kAlignment = 64;
  const size_t bytes = BytesOf(dtype, dims.elements());
  // calloc does not touch pages that are new, which an allocation and a fill would do.
  std::shared_ptr<void> owner(std::calloc(1, bytes + kAlignment), std::free);
  if (owner == nullptr) return OutOfMemory(bytes, "a constant");
  void* aligned = owner.get();
  size_t space = bytes + kAlignment;
  std::align(kAlignment, bytes, aligned, space);
  return ConstTensor{dtype, dims, {static_cast<const std::byte*>(aligned), bytes}, owner};
}

}  // namespace msrt

// A value while a model runs: a tensor somewhere, a list, or a function with what it captured.
#pragma once

#include <memory>
#include <vector>

#include "core/delegate/device.h"

namespace msrt {

struct ListValue;
struct Closure;

// Copying shares. Lists and closures never change once they are made.
struct RunValue {
  TensorView tensor;
  std::shared_ptr<const void> owner;  // of the tensor's memory (null: it is there as long as
                                      // somebody else says), or the list or closure
  TypeKind kind = TypeKind::kTensor;
  bool lasting = false;  // the tensor's memory is held by `owner` and never changes: it may be
                         // shared instead of copied
  const Device* device =
      nullptr;  // whose memory the tensor is in, if not the host's: only of what a loop keeps there

  bool present() const { return kind == TypeKind::kTensor ? tensor.present() : owner != nullptr; }
  // Require that kind.
  const ListValue& list() const { return *static_cast<const ListValue*>(owner.get()); }
  const Closure& closure() const { return *static_cast<const Closure*>(owner.get()); }

  static RunValue Of(const TensorView& tensor, std::shared_ptr<const void> owner = nullptr) {
    return {tensor, std::move(owner)};
  }
  static RunValue Of(std::shared_ptr<const ListValue> list) {
    return {{}, std::move(list), TypeKind::kList};
  }
  static RunValue Of(std::shared_ptr<const Closure> closure) {
    return {{}, std::move(closure), TypeKind::kFunction};
  }
};

// Elements own their memory.
struct ListValue {
  std::vector<RunValue> elements;
};

// A graph of the module with its first inputs given.
struct Closure {
  uint32_t graph = 0;
  std::vector<RunValue> captured;
  // Closures that capture closures make chains of any length: they are taken apart one by one, not
  // by recursion.
  ~Closure();
};

// Where a result goes, and what it was last.
struct ResultCell {
  RunValue value;
  std::shared_ptr<Block> block;               // memory of its own, kept from run to run
  std::unique_ptr<DeviceBlock> device_block;  // the same on a device, for what a loop keeps there
  TensorView bound;  // memory that somebody else brought for it; null data: none
  std::shared_ptr<const void> bound_owner;
};

}  // namespace msrt

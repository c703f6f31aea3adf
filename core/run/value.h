// A value while a model runs: a tensor, a list, or a function with its captures.
#pragma once

#include <memory>
#include <vector>

#include "core/delegate/device.h"

namespace msrt {

struct ListValue;
struct Closure;

// Copies share the data. Lists and closures are immutable.
struct RunValue {
  TensorView tensor;
  // The list, the closure, or the owner of the tensor's memory (null: the memory is managed
  // elsewhere).
  std::shared_ptr<const void> owner;
  TypeKind kind = TypeKind::kTensor;
  // The tensor's memory is held by `owner` and never changes: it may be shared instead of copied.
  bool lasting = false;
  // The device whose memory the tensor is in; null: the host.
  const Device* device = nullptr;
  // The state slot whose current value it is, in place; -1: none.
  int64_t slot = -1;

  bool present() const { return kind == TypeKind::kTensor ? tensor.present() : owner != nullptr; }
  // Both require that kind.
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

// A graph of the module with its first inputs bound.
struct Closure {
  uint32_t graph = 0;
  std::vector<RunValue> captured;
  // Closures that capture closures form chains of any length: they are destroyed one by one, not by
  // recursion.
  ~Closure();
};

// The destination of a result, with its last value.
struct ResultCell {
  RunValue value;
  std::shared_ptr<Block> block;               // its own memory, reused from run to run
  std::shared_ptr<DeviceBlock> device_block;  // the same on a device
  TensorView bound;                           // memory that the caller provides; null data: none
  const Device* bound_device = nullptr;       // where it is; null: the host
  std::shared_ptr<const void> bound_owner;
};

}  // namespace msrt

// A value while a model runs: a tensor somewhere, a list, or a function with what it captured.
#pragma once

#include <memory>
#include <vector>

#include "core/graph/tensor.h"

namespace msrt {

struct ListValue;
struct Closure;

// Copying shares. Lists and closures never change once they are made.
struct RunValue {
  TypeKind kind = TypeKind::kTensor;
  TensorView tensor;
  std::shared_ptr<const ListValue> list;
  std::shared_ptr<const Closure> closure;
  std::shared_ptr<const void> owner;  // of the tensor's memory; null: it is there as long as somebody else says
  bool lasting = false;               // the memory is held by `owner` and never changes: it may be shared instead of copied

  bool present() const { return kind != TypeKind::kTensor ? list != nullptr || closure != nullptr : tensor.present(); }

  static RunValue Of(const TensorView& tensor, std::shared_ptr<const void> owner = nullptr) {
    RunValue v;
    v.tensor = tensor;
    v.owner = std::move(owner);
    return v;
  }
  static RunValue Of(std::shared_ptr<const ListValue> list) {
    RunValue v;
    v.kind = TypeKind::kList;
    v.list = std::move(list);
    return v;
  }
  static RunValue Of(std::shared_ptr<const Closure> closure) {
    RunValue v;
    v.kind = TypeKind::kFunction;
    v.closure = std::move(closure);
    return v;
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
  // Closures that capture closures make chains of any length: they are taken apart one by one, not by recursion.
  ~Closure();
};

// Where a result goes, and what it was last.
struct ResultCell {
  RunValue value;
  std::shared_ptr<Block> block;  // memory of its own, kept from run to run
  TensorView bound;              // memory that somebody else brought for it; null data: none
  std::shared_ptr<const void> bound_owner;
};

}  // namespace msrt

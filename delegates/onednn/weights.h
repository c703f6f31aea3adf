// Constant weights in the forms that primitives ask for.
#pragma once

#include <list>
#include <mutex>

#include "delegates/onednn/plan.h"

namespace msrt::onednn {

// The form chosen at Compile is packed then and used by all bindings. Where the library has no implementation for it at some other
// shape, a second form is packed on demand and kept: there are few of them, since they depend on the implementation and not on shapes.
class PackedWeights {
 public:
  // `data` outlives this object and is laid out as `desc`.
  PackedWeights(const void* data, memory::desc desc, Allocator* allocator) : data_(data), desc_(std::move(desc)), allocator_(allocator) {}

  // The weights in the form `wanted`; packs them if nobody asked for it before. Throws dnnl::error.
  Result<const void*> Get(const memory::desc& wanted);
  size_t bytes() const;

 private:
  struct Form {
    memory::desc desc;
    Block block;
  };
  const void* data_;
  memory::desc desc_;
  Allocator* allocator_;
  mutable std::mutex mutex_;
  std::list<Form> forms_;  // a list: pointers into it stay valid
};

// Where a primitive that wants its weights as `wanted` finds them: packed before, as they come, or converted in each run because they are
// not constant (`packed` is null then, and they arrive as `input` in the form `plain`). Throws dnnl::error.
Result<Place> PlaceWeights(PackedWeights* packed, size_t input, const memory::desc& plain, const memory::desc& wanted, Plan* plan);

// A primitive descriptor for weights in the packed form, or for the form that it would rather have where there is none or only a naive
// one for the packed form. `make(weights)` returns an empty descriptor where the library has none.
template <typename Make>
auto DescribeWithWeights(const Make& make, const memory::desc& packed, const memory::desc& any) -> decltype(make(any)) {
  if (packed.get_ndims() > 0) {
    auto descriptor = make(packed);
    if (descriptor.get(true) != nullptr && !IsNaive(descriptor)) return descriptor;
  }
  return make(any);
}

}  // namespace msrt::onednn

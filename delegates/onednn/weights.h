// Constant weights in the forms that primitives ask for.
#pragma once

#include <list>
#include <mutex>

#include "delegates/onednn/plan.h"
#include "delegates/sdk/packed_form.h"

namespace msrt::onednn {

// What u8 is more than s8: the library multiplies by s8 only.
inline constexpr int32_t kByteShift = 128;
// to[i] = from[i] - kByteShift.
void ShiftBytes(const uint8_t* from, int8_t* to, size_t count);

// The form chosen at Compile is packed then and used by all bindings. Where the library has no
// implementation for it at some other shape, a second form is packed on demand and kept: there are
// few of them, since they depend on the implementation and not on shapes.
class PackedWeights {
 public:
  // `data` is a constant of the model, laid out as `desc`; it and what `context` points to outlive
  // this object. `variant` tells forms apart whose descriptors read alike: sums for zero points
  // that the library keeps beside the weights.
  PackedWeights(const void* data, memory::desc desc, const sdk::CompileContext& context,
                std::string variant = {})
      : data_(data), desc_(std::move(desc)), context_(context), variant_(std::move(variant)) {}

  // The weights in the form `wanted`; packs them if neither the model's file has it nor anybody
  // asked for it before. Weights of u8 that are wanted as s8 are packed as differences from
  // kByteShift. Throws dnnl::error.
  Result<const void*> Get(const memory::desc& wanted);
  // What they take beside the model's file.
  size_t bytes() const;

 private:
  struct Form {
    memory::desc desc;
    sdk::PackedForm packed;
  };
  const void* data_;
  memory::desc desc_;
  const sdk::CompileContext context_;
  const std::string variant_;
  mutable std::mutex mutex_;
  std::list<Form> forms_;  // a list: pointers into it stay valid
};

// Where a primitive that wants its weights as `wanted` finds them: packed before, as they come, or
// converted in each run because they are not constant (`packed` is null then, and they arrive as
// `input` in the form `plain`). Throws dnnl::error.
Result<Place> PlaceWeights(PackedWeights* packed, size_t input, const memory::desc& plain,
                           const memory::desc& wanted, Plan* plan);

// A primitive descriptor for weights in the packed form, or for the form that it would rather have
// where there is none or only a naive one for the packed form. `make(weights)` returns an empty
// descriptor where the library has none.
template <typename Make>
auto DescribeWithWeights(const Make& make, const memory::desc& packed, const memory::desc& any)
    -> decltype(make(any)) {
  if (packed.get_ndims() > 0) {
    auto descriptor = make(packed);
    if (descriptor.get(true) != nullptr && !IsNaive(descriptor)) return descriptor;
  }
  return make(any);
}

}  // namespace msrt::onednn

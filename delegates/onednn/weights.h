// Weights that are constants or parameters, in the forms that primitives ask for.
#pragma once

#include <list>
#include <mutex>

#include "delegates/onednn/plan.h"
#include "delegates/onednn/recipe.h"
#include "delegates/sdk/packed_form.h"

namespace msrt::onednn {

// Difference between u8 and s8: the library multiplies by s8 only.
inline constexpr int32_t kByteShift = 128;
// to[i] = from[i] - kByteShift.
void ShiftBytes(const uint8_t* from, int8_t* to, size_t count);

// The form chosen at Compile is packed then and used by all bindings. Where there is no
// implementation for it at some other shape (see also panel_convolution.h), a second form is packed
// on demand and kept: there are few of them, since they depend on the implementation.
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
  // Memory of the forms that are not in the model's file.
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

// Weights in the forms that primitives ask for, wherever they come from. A constant is packed once,
// a parameter once for each of its versions, and computed weights in each run.
class Weights {
 public:
  // `plain`: how they are laid out as input `input` of the node.
  Weights(const NodeInfo& node, size_t input, const memory::desc& plain,
          const CompileContext& context);

  // A run does not pay for packing, so the best form may be chosen for them.
  bool packs() const { return constant_ != nullptr || parameter_; }
  // Packs a constant at once.
  Status Prepare(const memory::desc& wanted);
  // Where a primitive that wants them as `wanted` finds them; `plain` as above, at the shapes of
  // the plan. Throws dnnl::error.
  Result<Place> In(const memory::desc& plain, const memory::desc& wanted, Plan* plan) const;
  size_t bytes() const { return constant_ == nullptr ? 0 : constant_->bytes(); }

 private:
  const size_t input_;
  std::unique_ptr<PackedWeights> constant_;
  const bool parameter_;
};

// Whether an input is a constant, or a parameter of known dims: it is packed before runs need it.
inline bool IsPacked(const NodeInfo& node, size_t input) {
  return node.op->constant(input) != nullptr ||
         (node.parameters[input] != 0 && node.op->input(input).concrete());
}

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

// Elementwise functions in the library's words, alone and behind a convolution or product.
#pragma once

#include <optional>

#include "delegates/onednn/plan.h"

namespace msrt::onednn {

struct Eltwise {
  dnnl::algorithm algorithm;
  float alpha = 0, beta = 0;
};

// The unary op of that name with its parameters (ops/activation.h says what alpha and beta mean);
// nothing where the library has no such function or one that errs by more than 1e-5. Relu, Clip,
// HardSigmoid and Exp turn NaN into a number, also where they are fused; the others keep it.
std::optional<Eltwise> FindEltwise(std::string_view name, double alpha, double beta);

// Why the activation of a fused op cannot be done; empty if it can.
std::string ActivationRefusal(const OpView& op);

// The operations on a product before it is stored, in this order. Collects the arguments that the
// steps need.
class PostOps {
 public:
  void Linear(float factor) { ops_.append_eltwise(dnnl::algorithm::eltwise_linear, factor, 0); }
  // Adds a tensor that broadcasts to the result.
  void Add(Place place, const memory::desc& desc);
  // Adds what lies in the result's memory.
  void AddResult() { ops_.append_sum(1.0f); }
  // The activation that the attributes name; none for ops without one.
  void Activation(const OpView& op);

  const dnnl::post_ops& ops() const { return ops_; }
  void AppendArguments(std::vector<Argument>* arguments) const {
    arguments->insert(arguments->end(), arguments_.begin(), arguments_.end());
  }

 private:
  dnnl::post_ops ops_;
  std::vector<Argument> arguments_;
};

}  // namespace msrt::onednn

// Computes a single node immediately, on the host. Passes that fold constants and bindings that
// need the values of shapes receive one, so that core never includes a delegate.
#pragma once

#include <span>

#include "core/graph/op_view.h"
#include "core/graph/tensor.h"

namespace msrt {

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual bool Knows(const OpView& op) const = 0;
  // Requires concrete types and plain layouts. Thread-safe.
  virtual Status Evaluate(const OpView& op, std::span<const TensorView> inputs,
                          std::span<const TensorView> outputs) const = 0;
};

}  // namespace msrt

// The reference delegate: every op, every type, plain loops, plain layout. Always there; the last
// resort and the oracle.
#pragma once

#include <memory>

#include "delegates/sdk/delegate.h"
#include "ops/evaluator.h"

namespace msrt {

std::unique_ptr<sdk::Delegate> MakeReferenceDelegate();
const Evaluator& ReferenceEvaluator();

}  // namespace msrt

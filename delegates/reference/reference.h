// The reference delegate: every op, every type, plain loops, plain layout. It is always present, as
// the last resort of placement and the oracle of tests.
#pragma once

#include <memory>

#include "delegates/sdk/delegate.h"
#include "ops/evaluator.h"

namespace msrt {

std::unique_ptr<sdk::Delegate> MakeReferenceDelegate();
const Evaluator& ReferenceEvaluator();

}  // namespace msrt

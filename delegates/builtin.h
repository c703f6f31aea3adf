// The delegates that are built into the library: the one explicit list. Only what composes a runtime (core/api, tools, tests) includes
// this.
#pragma once

#include <memory>
#include <vector>

#include "core/place/delegate.h"
#include "ops/evaluator.h"

namespace msrt {

std::vector<std::shared_ptr<const Delegate>> BuiltinDelegates();
const Evaluator& BuiltinEvaluator();

}  // namespace msrt

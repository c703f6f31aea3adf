// From a trained module back to a model for inference: its entry "eval", with the parameters and
// statistics as constants.
#pragma once

#include <functional>

#include "core/graph/graph.h"

namespace msrt {

// `value_of` returns the current value of a slot of `training` by its name. Caches of the model
// stay slots.
Result<Module> MakeInferenceModule(
    const Module& training, const std::function<Result<ConstTensor>(const std::string&)>& value_of);

}  // namespace msrt

// The model that msrun train trains: one of the zoo, made for the data, or a .msrt file that fits
// it.
#pragma once

#include "core/graph/graph.h"
#include "tools/msrun/train_arguments.h"

namespace msrt {

// The number of channels that the model's pictures have.
Result<int64_t> ChannelsOf(const TrainArguments& arguments);

// The types of the dataset are those of one input and the target. Errors name what does not fit.
Result<Module> ModelFor(const TrainArguments& arguments, const DataLoader& data);

}  // namespace msrt

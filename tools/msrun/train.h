// msrun train: trains a model on a dataset and writes the trained model, checkpoints and reports.
#pragma once

namespace msrt {

// `argv[0]` is "train". Returns the exit code of the process.
int RunTrain(int argc, char** argv);

}  // namespace msrt

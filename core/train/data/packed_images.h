// Files with many small images of one size: CIFAR-10 and CIFAR-100 in their binary version, MNIST
// and its successors in idx files.
#pragma once

#include <span>

#include "core/train/data/sample.h"

namespace msrt {

enum class DataSplit { kTrain, kTest };

// A folder with data_batch_1.bin to data_batch_5.bin and test_batch.bin (CIFAR-10), or train.bin
// and test.bin (CIFAR-100, of which the fine labels are used).
Result<std::unique_ptr<SampleSource>> OpenCifar(const std::string& folder, DataSplit split);
bool IsCifarFolder(const std::string& folder);

// A folder with train-images-idx3-ubyte, train-labels-idx1-ubyte and the same for t10k.
Result<std::unique_ptr<SampleSource>> OpenMnist(const std::string& folder, DataSplit split);
bool IsMnistFolder(const std::string& folder);

}  // namespace msrt

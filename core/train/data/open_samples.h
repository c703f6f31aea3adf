// Opens training and evaluation data by what a path has:
//   a folder of folders          an image folder, one class per folder
//   data_batch_1.bin, train.bin  CIFAR-10, CIFAR-100
//   train-images-idx3-ubyte      MNIST
//   images.npy, labels.npy       arrays; also train_images.npy, test_images.npy, ...
//   SAMPLES.npy,LABELS.npy       arrays, by their paths
//   windows:FOLDER               windows of the images in FOLDER/images, labels in FOLDER/labels
#pragma once

#include "core/train/data/image_folder.h"
#include "core/train/data/image_windows.h"
#include "core/train/data/packed_images.h"

namespace msrt {

struct OpenSamplesOptions {
  DataSplit split = DataSplit::kTrain;  // of data that has both
  ImageFolderOptions folder = {};
  ImageWindowOptions windows = {};
};

Result<std::unique_ptr<SampleSource>> OpenSamples(const std::string& path,
                                                  const OpenSamplesOptions& options);

}  // namespace msrt

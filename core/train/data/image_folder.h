// An image folder: one class per folder, one sample per file. Classes are in the order of their
// names, samples in the order of classes and paths, by bytes.
#pragma once

#include "core/train/data/sample.h"

namespace msrt {

struct ImageFolderOptions {
  int64_t channels = 3;  // pictures are converted
  // The classes in the order of their labels; each folder must be one of them, but not each class
  // needs a folder. For evaluation data. Empty: the folders are the classes, none of them empty.
  std::vector<std::string> class_names = {};
};

// Errors name the folder.
Result<std::unique_ptr<SampleSource>> OpenImageFolder(const std::string& path,
                                                      const ImageFolderOptions& options);

// Reads one file as 0 to 255: 16-bit values are scaled, a palette becomes its colours.
Status ReadPicture(const std::string& path, int64_t channels, Picture* out);

}  // namespace msrt

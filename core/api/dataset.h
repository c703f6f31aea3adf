// A dataset of the C API: files that a data loader reads, or batches of the application.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "core/api/handles.h"
#include "core/compile/compile.h"
#include "core/train/data/data_loader.h"

namespace msrt {

struct DatasetObject {
  // Destroyed last: loaders log to it.
  std::shared_ptr<const Environment> environment;
  std::unique_ptr<const Dataset> data;
  const DataLoader* loader = nullptr;  // `data`, if it reads files; else null
  std::mutex mutex;
  std::string info;  // the last one returned; guarded by mutex
};

// Facts that a run that is resumed must share (TrainLoopOptions::identity).
std::vector<std::pair<std::string, std::string>> IdentityOf(const DatasetObject& dataset);

}  // namespace msrt

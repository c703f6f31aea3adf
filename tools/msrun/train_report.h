// The page of a training run, report.html: curves, the confusion matrix, accuracy per class. All in
// one file, without scripts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/train/metrics.h"
#include "core/train/train_history.h"

namespace msrt {

struct TrainingReport {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // model, data, optimizer, ...
  std::vector<EpochRow> rows;
  std::vector<std::string> class_names;
  const ConfusionMatrix* confusion = nullptr;  // of the last evaluation; null: there was none
};

std::string ReportHtml(const TrainingReport& report);

}  // namespace msrt

// The history of a training run: one row for each epoch, in history.csv.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace msrt {

// NaN: not measured.
struct EpochRow {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  int64_t epoch = 0, step = 0;  // finished epochs, updates so far
  double loss = kUnknown, accuracy = kUnknown, rate = kUnknown;
  double eval_loss = kUnknown, eval_accuracy = kUnknown, eval_top5 = kUnknown, eval_iou = kUnknown;
  double seconds = 0, samples_per_second = kUnknown;
};

std::string HistoryCsv(const std::vector<EpochRow>& rows);
// Reads what HistoryCsv wrote. Errors name the line.
Result<std::vector<EpochRow>> ParseHistoryCsv(const std::string& text);

}  // namespace msrt

#include "core/train/train_history.h"

#include <charconv>
#include <cmath>
#include <sstream>

namespace msrt {
namespace {

struct Column {
  const char* name;
  double EpochRow::*number;
};
constexpr Column kColumns[] = {
    {"loss", &EpochRow::loss},
    {"accuracy", &EpochRow::accuracy},
    {"learning_rate", &EpochRow::rate},
    {"eval_loss", &EpochRow::eval_loss},
    {"eval_accuracy", &EpochRow::eval_accuracy},
    {"eval_top5", &EpochRow::eval_top5},
    {"eval_iou", &EpochRow::eval_iou},
    {"seconds", &EpochRow::seconds},
    {"samples_per_second", &EpochRow::samples_per_second},
};

template <typename Number>
bool ParseField(const std::string& text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseRow(const std::string& line, EpochRow* row) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == ',') fields.emplace_back();
    else fields.back().push_back(c);
  }
  if (fields.size() != 2 + std::size(kColumns) || !ParseField(fields[0], &row->epoch) ||
      !ParseField(fields[1], &row->step))
    return false;
  for (size_t i = 0; i < std::size(kColumns); ++i) {
    double& number = row->*kColumns[i].number;
    if (fields[i + 2].empty()) number = EpochRow::kUnknown;
    else if (!ParseField(fields[i + 2], &number)) return false;
  }
  return true;
}

}  // namespace

std::string HistoryCsv(const std::vector<EpochRow>& rows) {
  std::string text = "epoch,step";
  for (const Column& column : kColumns) StrAppend(&text, ",", column.name);
  text += "\n";
  for (const EpochRow& row : rows) {
    StrAppend(&text, row.epoch, ",", row.step);
    for (const Column& column : kColumns) {
      text += ",";
      if (!std::isnan(row.*column.number)) StrAppend(&text, row.*column.number);
    }
    text += "\n";
  }
  return text;
}

Result<std::vector<EpochRow>> ParseHistoryCsv(const std::string& text) {
  std::istringstream in(text);
  std::vector<EpochRow> rows;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (number == 1) continue;
    EpochRow row;
    if (!ParseRow(line, &row))
      return InvalidArgument("history.csv: line ", number, " is not one of msrun train");
    rows.push_back(row);
  }
  return rows;
}

}  // namespace msrt

#include "tools/msrun/train_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace msrt {
namespace {

constexpr double kWidth = 640, kHeight = 260, kLeft = 60, kRight = 12, kTop = 14, kBottom = 34;
constexpr const char* kColors[] = {"#1f6fb4", "#d9622b"};

std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else out.push_back(c);
  }
  return out;
}

std::string Number(double value) {
  if (std::isnan(value)) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

struct Curve {
  std::string name;
  double EpochRow::*value;
};

struct Range {
  double low, high;
};

Range RangeOf(const std::vector<EpochRow>& rows, const std::vector<Curve>& curves) {
  Range range{INFINITY, -INFINITY};
  for (const EpochRow& row : rows) {
    for (const Curve& curve : curves) {
      const double value = row.*curve.value;
      if (!std::isfinite(value)) continue;
      range.low = std::min(range.low, value);
      range.high = std::max(range.high, value);
    }
  }
  if (!(range.low < range.high)) range = {range.low - 0.5, range.low + 0.5};
  return range;
}

std::string Text(double x, double y, const char* anchor, const std::string& text) {
  return StrCat("<text x=\"", Number(x), "\" y=\"", Number(y), "\" text-anchor=\"", anchor, "\">",
                Escape(text), "</text>\n");
}

// A picture of curves over epochs; nothing if no row has a value.
std::string CurvesSvg(const std::string& title, const std::vector<EpochRow>& rows,
                      const std::vector<Curve>& curves) {
  const Range y = RangeOf(rows, curves);
  if (rows.empty() || !std::isfinite(y.low)) return "";
  const auto first = static_cast<double>(rows.front().epoch),
             last = std::max(static_cast<double>(rows.back().epoch), first + 1);
  const auto x_of = [&](double epoch) {
    return kLeft + (epoch - first) / (last - first) * (kWidth - kLeft - kRight);
  };
  const auto y_of = [&](double value) {
    return kTop + (y.high - value) / (y.high - y.low) * (kHeight - kTop - kBottom);
  };
  std::string svg = StrCat("<h2>", Escape(title), "</h2>\n<svg viewBox=\"0 0 ", kWidth, " ",
                           kHeight, "\" width=\"", kWidth, "\">\n");
  constexpr int kLines = 4;
  for (int i = 0; i <= kLines; ++i) {
    const double value = y.low + (y.high - y.low) * i / kLines;
    StrAppend(&svg, "<line class=\"grid\" x1=\"", Number(kLeft), "\" x2=\"",
              Number(kWidth - kRight), "\" y1=\"", Number(y_of(value)), "\" y2=\"",
              Number(y_of(value)), "\"/>\n",
              Text(kLeft - 6, y_of(value) + 4, "end", Number(value)));
  }
  svg += Text(x_of(first), kHeight - 16, "middle", Number(first));
  svg += Text(x_of(last), kHeight - 16, "middle", Number(last));
  svg += Text(kWidth / 2, kHeight - 4, "middle", "epoch");
  for (size_t c = 0; c < curves.size(); ++c) {
    std::string points, dots;
    for (const EpochRow& row : rows) {
      const double value = row.*curves[c].value;
      if (!std::isfinite(value)) continue;
      const std::string x = Number(x_of(static_cast<double>(row.epoch))), at = Number(y_of(value));
      StrAppend(&points, x, ",", at, " ");
      StrAppend(&dots, "<circle cx=\"", x, "\" cy=\"", at, "\" r=\"2.5\" fill=\"", kColors[c],
                "\"><title>", curves[c].name, " ", Number(value), " after epoch ", row.epoch,
                "</title></circle>\n");
    }
    if (points.empty()) continue;
    StrAppend(&svg, "<polyline fill=\"none\" stroke-width=\"1.8\" stroke=\"", kColors[c],
              "\" points=\"", points, "\"/>\n", dots, "<text fill=\"", kColors[c], "\" x=\"",
              Number(kWidth - kRight), "\" y=\"", Number(kTop + 14 * static_cast<double>(c + 1)),
              "\" text-anchor=\"end\">", curves[c].name, "</text>\n");
  }
  return svg + "</svg>\n";
}

// Rows are classes of samples, columns what they were classified as.
std::string ConfusionSvg(const ConfusionMatrix& matrix, const std::vector<std::string>& names) {
  const int64_t classes = matrix.classes();
  constexpr int64_t kMaxDrawn = 400;
  if (classes > kMaxDrawn)
    return StrCat("<p>The confusion matrix of ", classes, " classes is not drawn.</p>\n");
  const double cell = std::clamp(640.0 / static_cast<double>(classes), 3.0, 26.0);
  const double margin = cell >= 10 ? 120 : 10;
  const double side = margin + cell * static_cast<double>(classes) + 10;
  std::string svg = StrCat("<svg viewBox=\"0 0 ", Number(side), " ", Number(side), "\" width=\"",
                           Number(side), "\">\n");
  const auto name = [&](int64_t c) {
    return c < static_cast<int64_t>(names.size()) ? names[static_cast<size_t>(c)] : StrCat(c);
  };
  for (int64_t label = 0; label < classes; ++label) {
    const double y = margin + cell * static_cast<double>(label);
    int64_t total = 0;
    for (int64_t p = 0; p < classes; ++p) total += matrix.at(label, p);
    if (cell >= 10) {
      svg += Text(margin - 4, y + cell * 0.7, "end", name(label));
      StrAppend(&svg, "<text transform=\"translate(", Number(y + cell * 0.7), ",",
                Number(margin - 4), ") rotate(-90)\">", Escape(name(label)), "</text>\n");
    }
    for (int64_t p = 0; p < classes; ++p) {
      const int64_t count = matrix.at(label, p);
      if (count == 0) continue;
      const double share = static_cast<double>(count) / static_cast<double>(total);
      StrAppend(&svg, "<rect x=\"", Number(margin + cell * static_cast<double>(p)), "\" y=\"",
                Number(y), "\" width=\"", Number(cell), "\" height=\"", Number(cell), "\" fill=\"",
                p == label ? kColors[0] : kColors[1], "\" fill-opacity=\"",
                Number(0.15 + 0.85 * share), "\"><title>", Escape(name(label)), " as ",
                Escape(name(p)), ": ", count, "</title></rect>\n");
    }
  }
  return svg + "</svg>\n";
}

std::string ClassTable(const ConfusionMatrix& matrix, const std::vector<std::string>& names) {
  const std::vector<double> recall = ClassAccuracies(matrix), precision = ClassPrecisions(matrix),
                            iou = IntersectionOverUnion(matrix);
  std::string table =
      "<h2>Classes</h2>\n<table><tr><th>class</th><th>accuracy</th><th>precision</th>"
      "<th>IoU</th></tr>\n";
  for (size_t c = 0; c < recall.size(); ++c)
    StrAppend(&table, "<tr><td>", c < names.size() ? Escape(names[c]) : StrCat(c), "</td><td>",
              Number(recall[c]), "</td><td>", Number(precision[c]), "</td><td>", Number(iou[c]),
              "</td></tr>\n");
  return table + "</table>\n";
}

}  // namespace

std::string ReportHtml(const TrainingReport& report) {
  std::string html = StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>",
      Escape(report.title),
      "</title><style>body{font:14px sans-serif;margin:2em;max-width:60em}svg text{font:11px "
      "sans-serif}.grid{stroke:#ddd}table{border-collapse:collapse}td,th{padding:2px "
      "10px;text-align:left;border-bottom:1px solid #eee}</style></head><body>\n<h1>",
      Escape(report.title), "</h1>\n<table>\n");
  for (const auto& [name, value] : report.facts)
    StrAppend(&html, "<tr><th>", Escape(name), "</th><td>", Escape(value), "</td></tr>\n");
  html += "</table>\n";
  html += CurvesSvg("Loss", report.rows,
                    {{"training", &EpochRow::loss}, {"evaluation", &EpochRow::eval_loss}});
  html += CurvesSvg("Accuracy", report.rows,
                    {{"training", &EpochRow::accuracy}, {"evaluation", &EpochRow::eval_accuracy}});
  html += CurvesSvg("Intersection over union", report.rows, {{"evaluation", &EpochRow::eval_iou}});
  html += CurvesSvg("Learning rate", report.rows, {{"learning rate", &EpochRow::rate}});
  if (report.confusion != nullptr) {
    html +=
        "<h2>Confusion matrix</h2>\n<p>Rows: the class of the samples. Columns: what they were "
        "classified as.</p>\n";
    html += ConfusionSvg(*report.confusion, report.class_names);
    html += ClassTable(*report.confusion, report.class_names);
  }
  return html + "</body></html>\n";
}

}  // namespace msrt

#include "tools/msrun/train_report.h"

#include <gtest/gtest.h>

#include <cmath>

namespace msrt::testing {
namespace {

std::vector<EpochRow> Rows() {
  std::vector<EpochRow> rows(3);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].epoch = static_cast<int64_t>(i + 1);
    rows[i].step = static_cast<int64_t>(10 * (i + 1));
    rows[i].loss = 1.0 / (3.0 + static_cast<double>(i));
    rows[i].rate = 0.01;
    rows[i].seconds = 2.5;
  }
  rows[2].eval_accuracy = 0.75;
  return rows;
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(TrainHistory, CsvReadsBackToTheSameBits) {
  const std::string text = HistoryCsv(Rows());
  EXPECT_TRUE(text.starts_with("epoch,step,loss,accuracy,learning_rate,eval_loss,eval_accuracy"));
  const auto rows = ParseHistoryCsv(text);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[1].loss, 1.0 / 4);
  EXPECT_EQ((*rows)[2].loss, 1.0 / 5);
  EXPECT_EQ((*rows)[2].step, 30);
  EXPECT_EQ((*rows)[2].eval_accuracy, 0.75);
  EXPECT_TRUE(std::isnan((*rows)[1].eval_accuracy));
  EXPECT_EQ(HistoryCsv(*rows), text);
}

TEST(TrainHistory, BadLinesAreNamed) {
  EXPECT_TRUE(ParseHistoryCsv("")->empty());
  const auto parsed = ParseHistoryCsv(HistoryCsv(Rows()) + "4,40,abc\n");
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.status().message().find("line 5"), std::string::npos);
}

TEST(TrainReport, HasCurvesAndEscapedNames) {
  TrainingReport report;
  report.title = "a < b";
  report.facts = {{"data", "x & y"}};
  report.rows = Rows();
  ConfusionMatrix matrix(2);
  matrix.Add(0, 0, 7);
  matrix.Add(1, 0, 2);
  report.confusion = &matrix;
  report.class_names = {"cat", "<dog>"};
  const std::string html = ReportHtml(report);
  EXPECT_NE(html.find("a &lt; b"), std::string::npos);
  EXPECT_NE(html.find("x &amp; y"), std::string::npos);
  EXPECT_NE(html.find("&lt;dog&gt; as cat: 2"), std::string::npos);
  EXPECT_EQ(html.find("<dog>"), std::string::npos);
  // Loss, accuracy (of one evaluation) and learning rate; the confusion matrix; no IoU.
  EXPECT_EQ(Count(html, "<svg"), 4u);
  EXPECT_EQ(Count(html, "</svg>"), 4u);
  EXPECT_EQ(Count(html, "<rect"), 2u);
  EXPECT_EQ(Count(html, "<script"), 0u);
  EXPECT_EQ(Count(html, "http"), 0u);
}

TEST(TrainReport, RunWithoutEpochsHasNoCurves) {
  TrainingReport report;
  report.title = "nothing";
  EXPECT_EQ(Count(ReportHtml(report), "<svg"), 0u);
}

TEST(TrainReport, CurvesLeaveOutValuesThatAreNotFinite) {
  TrainingReport report;
  report.rows = Rows();
  report.rows[1].loss = INFINITY;
  const std::string html = ReportHtml(report);
  EXPECT_EQ(html.find("inf"), std::string::npos);
  EXPECT_EQ(html.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace msrt::testing

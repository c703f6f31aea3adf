#include "core/run/measure.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/builder.h"
#include "tests/conformance/pipeline.h"

namespace msrt {
namespace {

using testing::TestEnvironment;

ValueId Must(Result<ValueId> v) {
  EXPECT_TRUE(v.ok()) << v.status().message();
  return v.ok() ? *v : kNoValue;
}

// Three equal convolutions, a softmax, and an op whose size depends on data.
Module SomeModule() {
  Module module;
  Graph& g = module.graphs.emplace_back();
  g.name = "main";
  module.entries = {0};
  GraphBuilder b(&g);
  ValueId v = g.AddInput("x", Type::Tensor(DType::kF32, {1, 8, 12, 12}));
  const ValueId w =
      g.AddConstant("w", ConstTensor::Floats({8, 8, 3, 3}, std::vector<float>(8 * 8 * 9, 0.01f)));
  AttrList pads;
  pads.Set("pads", std::vector<int64_t>{1, 1, 1, 1});
  for (int i = 0; i < 3; ++i) v = Must(b.Add("Conv", StrCat("conv", i), {v, w}, pads));
  v = Must(b.Add("Softmax", "softmax", {v}));
  const ValueId shape = g.AddInput("shape", Type::Tensor(DType::kI64, {4}));
  g.outputs = {v, Must(b.Add("Expand", "expand", {v, shape}))};
  return module;
}

std::shared_ptr<const CompiledModel> Compiled(const CompileOptions& options) {
  auto model = CompileModule(TestEnvironment(), SomeModule(), options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *std::move(model);
}

TEST(Measure, MeasuresEachCandidateOnce) {
  CompileOptions options;
  options.place.delegates = {"reference"};
  const auto model = Compiled(options);
  CostTable table;
  table.origin = CurrentOrigin(*model->environment, "1");
  const MeasureReport report = MeasureCosts(*model, {}, &table);
  EXPECT_EQ(report.measured, 2u);  // one of three equal convolutions; the softmax
  EXPECT_EQ(report.known, 2u);
  EXPECT_EQ(report.failed, 1u);  // the size of Expand's result depends on data
  EXPECT_EQ(report.nodes_left, 0u);
  EXPECT_EQ(table.size(), 2u);
  const auto read = CostTable::Parse(table.Print());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->Print(), table.Print());
  EXPECT_EQ(MeasureCosts(*model, {}, &table).measured, 0u);
}

TEST(Measure, ExplanationsTellMeasuredCosts) {
  const auto model = Compiled({});
  auto table = std::make_shared<CostTable>();
  table->origin = CurrentOrigin(*model->environment, "1");
  const MeasureReport report = MeasureCosts(*model, {}, table.get());
  EXPECT_GE(report.measured, 2u);
  CompileOptions options;
  options.place.costs = table;
  const auto again = Compiled(options);
  const Program& program = *again->entries[0]->current()->program;
  for (size_t n = 0; n < program.explanations.size(); ++n) {
    const NodeExplanation& why = program.explanations[n];
    EXPECT_EQ(why.measured, program.graph->nodes[n].op != "Expand") << n;
    EXPECT_GT(why.seconds, 0) << n;
    EXPECT_TRUE(std::isfinite(why.seconds)) << n;
  }
}

TEST(Measure, TimeIsLimited) {
  const auto model = Compiled({});
  CostTable table;
  size_t calls = 0;
  MeasureOptions options;
  options.budget_seconds = -1;
  options.progress = [&](size_t done, size_t all) {
    EXPECT_EQ(done, calls++);
    EXPECT_EQ(all, 5u);
  };
  const MeasureReport report = MeasureCosts(*model, options, &table);
  EXPECT_EQ(report.measured, 0u);
  EXPECT_EQ(report.nodes_left, 5u);
  EXPECT_EQ(calls, 5u);
}

TEST(Measure, MemoryIsLimited) {
  CompileOptions compile_options;
  compile_options.place.delegates = {"reference"};
  CostTable table;
  MeasureOptions options;
  options.max_bytes = 1000;
  EXPECT_EQ(MeasureCosts(*Compiled(compile_options), options, &table).measured, 0u);
}

}  // namespace
}  // namespace msrt

#include "core/run/piece_runner.h"

#include <gtest/gtest.h>

#include <random>

#include "ops/builder.h"
#include "tests/conformance/case_node.h"
#include "tests/conformance/pipeline.h"

namespace msrt {
namespace {

using testing::CutOut;

ConstTensor Random(const Dims& dims, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<size_t>(dims.elements()));
  for (float& v : values) v = uniform(random);
  return ConstTensor::Floats(dims, values);
}

TensorView ViewOf(const ConstTensor& t) {
  return {t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())};
}

ConstTensor Zeros(const Dims& dims) {
  return ConstTensor::Copy(DType::kF32, dims,
                           std::vector<std::byte>(BytesOf(DType::kF32, dims.elements())));
}

AttrList Same3x3() { return {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}; }

// A module under construction.
struct Net {
  Module module;
  GraphBuilder builder;
  uint32_t seed = 1;

  Net() : module(Empty()), builder(&module.graphs[0]) {}
  static Module Empty() {
    Module m;
    m.graphs.emplace_back().name = "main";
    m.entries = {0};
    return m;
  }
  ValueId Input(const Dims& dims) {
    return module.graphs[0].AddInput("x", Type::Tensor(DType::kF32, dims));
  }
  ValueId Op(const char* op, std::vector<ValueId> inputs, AttrList attrs = {}) {
    auto out = builder.Add(op, StrCat(op, seed++), std::move(inputs), std::move(attrs));
    EXPECT_TRUE(out.ok()) << out.status().message();
    return *out;
  }
  ValueId Weight(const Dims& dims) {
    return module.graphs[0].AddConstant(StrCat("w", seed), Random(dims, seed));
  }
  ValueId Conv(ValueId x, int64_t in, int64_t out) {
    return Op("Conv", {x, Weight({out, in, 3, 3})}, Same3x3());
  }
};

struct Compiled {
  std::shared_ptr<const CompiledModel> model;
  std::unique_ptr<PieceRunner> runner;
};
Compiled Compile(const Net& net, const Dims& input, size_t cache_bytes = size_t{64} << 20) {
  CompileOptions options;
  options.place.delegates = {"reference"};
  options.passes.disabled = {"all"};
  options.binding_cache_bytes = cache_bytes;
  auto model = CompileModule(testing::TestEnvironment(), net.module, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  auto runner = PieceRunner::Create(*model, 0, std::vector<Dims>{input}, {});
  EXPECT_TRUE(runner.ok()) << runner.status().message();
  return {*model, *std::move(runner)};
}

Box Rows(const Dims& dims, int64_t begin, int64_t end) {
  Box box = Box::Whole(dims);
  box[2] = {begin, end};
  return box;
}

ConstTensor WholeOutput(const Compiled& c, const ConstTensor& input) {
  auto session = Session::Create(c.model, 0, {});
  auto outputs = testing::RunSession(**session, {input});
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  return (*outputs)[0];
}

// Runs over the rows of an image, each value computed once: what the strip before has computed is
// the source of the next one.
TEST(PieceRunner, SourcesInTheMiddleComputeOnlyTheRest) {
  const Dims image{1, 2, 12, 7}, inner{1, 3, 12, 7};
  Net net;
  const ValueId x = net.Input(image), a = net.Op("Relu", {net.Conv(x, 2, 3)}),
                y = net.Conv(a, 3, 2);
  net.module.graphs[0].outputs = {y};
  const Compiled c = Compile(net, image);
  const ConstTensor input = Random(image, 9), whole = WholeOutput(c, input);
  ConstTensor kept = Zeros(inner);  // of `a`, filled row by row
  Interval have{0, 0};
  for (int64_t row = 0; row < 12; row += 3) {
    const Box wanted = Rows(image, row, row + 3);
    ConstTensor out = Zeros(wanted.dims());
    const Interval needed{std::max<int64_t>(row - 1, 0), std::min<int64_t>(row + 4, 12)};
    ConstTensor next = Zeros(Rows(inner, needed.begin, needed.end).dims());
    std::vector<PieceMemory> sources{{x, Box::Whole(image), ViewOf(input)}};
    const Box kept_box = Rows(inner, have.begin, have.end);
    TensorView kept_view = ViewOf(kept);
    const Dims strides = RowMajorStrides(inner);
    kept_view.dims = kept_box.dims();
    kept_view.strides = strides.begin();
    kept_view.data = kept_view.As<float>() + have.begin * 7;
    if (!have.empty()) sources.push_back({a, kept_box, kept_view});
    const std::vector<PieceMemory> targets{
        {y, wanted, ViewOf(out)}, {a, Rows(inner, needed.begin, needed.end), ViewOf(next)}};
    const Status status = c.runner->Run(sources, targets, {});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(testing::Difference(out, CutOut(whole, wanted), 0, 0), "") << row;
    for (const BoundStep& step : c.runner->binding()->steps) {
      const Node& node =
          c.runner->graph().nodes[c.model->entries[0]->current()->program->steps[step.step].node];
      if (step.kernel != nullptr && node.op == "Relu") {
        EXPECT_EQ(step.views[1].dims[2], needed.end - std::max(have.end, needed.begin));
      }
    }
    // The strip's rows of `a` become the next source.
    auto* to = const_cast<float*>(kept.As<float>().data());
    for (int64_t ch = 0; ch < 3; ++ch) {
      for (int64_t i = 0; i < needed.size() * 7; ++i)
        to[ch * 84 + needed.begin * 7 + i] =
            next.As<float>()[static_cast<size_t>(ch * needed.size() * 7 + i)];
    }
    have = needed;
  }
}

TEST(PieceRunner, ViewsAndOpsWithoutSpacesWorkOnPieces) {
  const Dims image{1, 4, 6, 5};
  Net net;
  const ValueId x = net.Input(image);
  const ValueId flat = net.Op("Flatten", {net.Op("Relu", {x})}, {{"axis", int64_t{2}}});
  const ValueId sums =
      net.Op("CumSum", {flat, net.module.graphs[0].AddConstant(
                                  "axis", ConstTensor::Int64s(std::vector<int64_t>{1}))});
  net.module.graphs[0].outputs = {
      net.Op("Reshape", {sums}, {{"shape", std::vector<int64_t>{1, 4, 6, 5}}})};
  const Compiled c = Compile(net, image);
  const ConstTensor input = Random(image, 4), whole = WholeOutput(c, input);
  for (int64_t channel = 0; channel < 4; ++channel) {
    Box box = Box::Whole(image);
    box[1] = {channel, channel + 1}, box[2] = {channel, channel + 2};
    ConstTensor out = Zeros(box.dims());
    const std::vector<PieceMemory> sources{
        {c.runner->graph().inputs[0], Box::Whole(image), ViewOf(input)}},
        targets{{c.runner->graph().outputs[0], box, ViewOf(out)}};
    const Status status = c.runner->Run(sources, targets, {});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(testing::Difference(out, CutOut(whole, box), 0, 0), "") << StrCat(box);
  }
}

TEST(PieceRunner, InteriorStripsShareBoundKernels) {
  const Dims image{1, 2, 64, 8};
  Net net;
  ValueId v = net.Input(image);
  for (int i = 0; i < 3; ++i) v = net.Conv(v, 2, 2);
  net.module.graphs[0].outputs = {v};
  for (const size_t bytes : {size_t{64} << 20, size_t{1}}) {
    const Compiled c = Compile(net, image, bytes);
    const ConstTensor input = Random(image, 4), whole = WholeOutput(c, input);
    for (int64_t row = 0; row < 64; row += 4) {
      const Box box = Rows(image, row, row + 4);
      ConstTensor out = Zeros(box.dims());
      const std::vector<PieceMemory> sources{
          {c.runner->graph().inputs[0], Box::Whole(image), ViewOf(input)}},
          targets{{v, box, ViewOf(out)}};
      ASSERT_TRUE(c.runner->Run(sources, targets, {}).ok());
      EXPECT_EQ(testing::Difference(out, CutOut(whole, box), 0, 0), "");
    }
    const PieceKernels::Counts counts = c.runner->kernel_counts();
    EXPECT_EQ(counts.hits + counts.misses, 16u * 3);
    if (bytes == 1) {
      EXPECT_EQ(counts.kernels, 1u);  // the last one stays, however large
    } else {
      EXPECT_LE(counts.misses, 3u * 3) << "first, interior and last strip";
      EXPECT_EQ(counts.kernels, counts.misses);
      EXPECT_GT(counts.bytes, 0u);
    }
  }
}

TEST(PieceRunner, RefusesWhatItCannotCompute) {
  const Dims image{1, 2, 12, 7};
  Net net;
  const ValueId x = net.Input(image), y = net.Conv(x, 2, 2);
  net.module.graphs[0].outputs = {y};
  const Compiled c = Compile(net, image);
  const ConstTensor input = Random(image, 1);
  ConstTensor out = Zeros(Rows(image, 0, 4).dims());
  const PieceMemory target{y, Rows(image, 4, 8), ViewOf(out)};
  const auto fails = [&](const std::vector<PieceMemory>& sources, const PieceMemory& wanted,
                         std::string_view text) {
    const Status status = c.runner->Run(sources, {&wanted, 1}, {});
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
  };
  const PieceMemory all{x, Box::Whole(image), ViewOf(input)};
  fails({}, target, "'x' is required, but not given");
  const ConstTensor part = CutOut(input, Rows(image, 4, 8));
  fails({{x, Rows(image, 4, 8), ViewOf(part)}}, target, "is required in");
  fails({all}, {y, Rows(image, 10, 14), ViewOf(out)}, "is not part of");
  fails({all}, {y, Rows(image, 0, 3), ViewOf(out)}, "its memory is for");
  fails({all}, {y, Rows(image, 0, 4), {DType::kI32, out.dims, Layout::kPlain, ViewOf(out).data}},
        "its memory is for");
  fails({all}, {ValueId(1000), Rows(image, 0, 4), ViewOf(out)}, "does not exist");
  const auto wrong = PieceRunner::Create(c.model, 0, std::vector<Dims>{Dims{1, 3, 12, 7}}, {});
  EXPECT_EQ(wrong.status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(c.runner->Run({&all, 1}, {&target, 1}, {}).ok());
}

}  // namespace
}  // namespace msrt

// Memory of images by rolling rows and tiles, and how a run over an image can end.
#include "core/image/executors/image_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/image/executors/image_coordinates.h"
#include "core/image/executors/phase_memory.h"
#include "core/image/executors/stream_model.h"
#include "core/image/executors/stream_rows.h"
#include "core/image/executors/stream_testing.h"
#include "core/image/executors/tile_schedule.h"
#include "ops/builder.h"

namespace msrt::testing {
namespace {

using Ints = std::vector<int64_t>;

class Layers {
 public:
  Layers() : builder_(nullptr) {
    module.graphs.emplace_back().name = "main";
    module.entries = {0};
    builder_ = GraphBuilder(&module.graphs[0]);
    x = graph().AddInput("image", Type::Tensor(DType::kF32, {1, 3, kUnknownDim, kUnknownDim}));
  }
  Graph& graph() { return module.graphs[0]; }
  Layers& Op(const char* op, std::vector<ValueId> more = {}, AttrList attrs = {}) {
    more.insert(more.begin(), x);
    auto out = builder_.Add(op, StrCat(op, graph().nodes.size()), more, std::move(attrs));
    EXPECT_TRUE(out.ok()) << out.status().message();
    x = *out;
    return *this;
  }
  Layers& Conv(int64_t in, int64_t out, int64_t stride, int64_t dilation) {
    const ConstTensor weight = RandomImage({out, in, 3, 3}, 3);
    const ValueId w = graph().AddConstant(StrCat("w", graph().value_count()), weight);
    return Op("Conv", {w},
              {{"strides", Ints{stride, stride}},
               {"dilations", Ints{dilation, dilation}},
               {"pads", Ints{dilation, dilation, dilation, dilation}}});
  }
  Module Finish() {
    graph().outputs = {x};
    return module;
  }

  Module module;
  ValueId x;

 private:
  GraphBuilder builder_;
};

Module Segmentation() {
  Layers net;
  net.Conv(3, 16, 2, 1).Op("Relu").Conv(16, 16, 1, 2).Conv(16, 16, 1, 1);
  net.Op("Resize", {},
         {{"mode", std::string("linear")}, {"scales", std::vector<double>{1, 1, 2, 2}}});
  return net.Conv(16, 2, 1, 1).Finish();
}

std::shared_ptr<const CompiledModel> Compiled(const Module& module, int64_t rows, int64_t columns) {
  auto model = CompileForImage(TestEnvironment(), module, {3, rows, columns}, {});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : nullptr;
}

ImageResult RunPlanned(const Module& module, int64_t rows, int64_t columns,
                       const ImagePlanOptions& options) {
  auto runner = ImageRunner::Create(Compiled(module, rows, columns), options);
  EXPECT_TRUE(runner.ok()) << runner.status().message();
  if (!runner.ok()) return {};
  ImageResult result = RunImage(**runner, RandomImage({1, 3, rows, columns}, 1));
  EXPECT_TRUE(result.status.ok()) << result.status.message();
  EXPECT_LE(result.report.peak_bytes, (*runner)->plan().peak_bytes);
  return result;
}

TEST(ImageMemory, DoesNotGrowWithTheHeight) {
  const ImagePlanOptions options{.executor = ImageExecutor::kStream, .strip_rows = 16};
  const size_t low = RunPlanned(Segmentation(), 160, 64, options).report.peak_bytes;
  const size_t high = RunPlanned(Segmentation(), 1600, 64, options).report.peak_bytes;
  EXPECT_GT(low, 0u);
  EXPECT_EQ(low, high);
}

TEST(ImageMemory, StreamingComputesEachRowOnce) {
  const ImageResult result =
      RunPlanned(Segmentation(), 161, 64, {.executor = ImageExecutor::kStream, .strip_rows = 7});
  ASSERT_EQ(result.report.phases.size(), 1u);
  EXPECT_EQ(result.report.recomputed_rows, 0);
  EXPECT_GE(result.report.phases[0].values.size(), 5u);
  for (const RowCount& count : result.report.phases[0].values) {
    EXPECT_EQ(count.computed, count.rows);
    EXPECT_EQ(count.recomputed, 0);
  }
  EXPECT_EQ(result.read, 3 * 161 * 64);
}

// Returns the number of bytes that the message asks for.
size_t AmountIn(const std::string& message) {
  const size_t at = message.find("set the limit to ");
  return at == std::string::npos ? 0 : std::strtoull(message.c_str() + at + 17, nullptr, 10);
}

TEST(ImageMemory, LimitIsKeptOrRefusedWithTheAmountThatSuffices) {
  const auto model = Compiled(Segmentation(), 128, 96);
  const ConstTensor image = RandomImage({1, 3, 128, 96}, 1);
  for (const ImageExecutor executor :
       {ImageExecutor::kAuto, ImageExecutor::kStream, ImageExecutor::kTiles}) {
    int planned = 0, refused = 0;
    for (size_t limit = size_t{64} << 10; limit <= size_t{16} << 20; limit *= 2) {
      ImagePlanOptions options{.memory_limit_bytes = limit, .executor = executor};
      auto runner = ImageRunner::Create(model, options);
      if (!runner.ok()) {
        ++refused;
        ASSERT_EQ(runner.status().code(), Code::kLimitExceeded) << runner.status().message();
        options.memory_limit_bytes = AmountIn(runner.status().message());
        ASSERT_GT(options.memory_limit_bytes, limit);
        runner = ImageRunner::Create(model, options);
        ASSERT_TRUE(runner.ok()) << runner.status().message();
      } else {
        ++planned;
      }
      const ImageResult result = RunImage(**runner, image);
      ASSERT_TRUE(result.status.ok()) << result.status.message();
      EXPECT_LE(result.report.peak_bytes, options.memory_limit_bytes) << (*runner)->Describe();
    }
    EXPECT_GT(planned, 0);
    EXPECT_GT(refused, 0);
  }
}

// A network whose pieces have many shapes: rows of the second stride begin at any place, and what
// is added at the end is retained for long.
Module UnevenNetwork() {
  Layers net;
  net.Conv(3, 8, 1, 1);
  const ValueId early = net.x;
  net.Conv(8, 16, 2, 1).Conv(16, 16, 2, 1).Conv(16, 16, 2, 3).Conv(16, 16, 1, 3);
  net.Op("Resize", {}, {{"mode", std::string("linear")}, {"sizes", Ints{1, 16, 301, 202}}});
  net.Conv(16, 8, 1, 1).Op("Add", {early});
  return net.Op("Resize", {}, {{"mode", std::string("linear")}, {"sizes", Ints{1, 8, 391, 263}}})
      .Finish();
}

// What the plan counts without its reserve for scratch memory, of which the kernels here need less.
size_t CountedBytes(const ImagePlan& plan) {
  constexpr size_t kScratch = 128 << 10;
  return plan.peak_bytes - KernelScratchBytes(plan.limit_bytes) + kScratch;
}

TEST(ImageMemory, PlanCoversARunThatBeginsAnywhere) {
  const auto model = Compiled(UnevenNetwork(), 301, 202);
  ASSERT_NE(model, nullptr);
  const ConstTensor image = RandomImage({1, 3, 301, 202}, 1);
  for (const int64_t rows : {17, 64}) {
    const ImagePlanOptions options{
        .executor = ImageExecutor::kStream, .strip_rows = rows, .skips = true};
    for (int64_t begin = 0; begin < 391; begin += rows) {
      for (const int64_t end : {begin + rows, begin + 2 * rows, int64_t{391}}) {
        if (end == 391 && begin % (rows * 7) != 0) continue;  // they take long
        auto runner = ImageRunner::Create(model, options);
        ASSERT_TRUE(runner.ok()) << runner.status().message();
        const auto result = RunImage(**runner, image, {}, [&](const Box& box) {
          return box[2].begin >= begin && box[2].begin < end;
        });
        ASSERT_TRUE(result.status.ok()) << result.status.message();
        EXPECT_LE(result.report.peak_bytes, CountedBytes((*runner)->plan()))
            << "strips of " << rows << ", rows " << begin << " to " << end;
      }
    }
  }
}

TEST(ImageMemory, PlanCoversEachTile) {
  const auto model = Compiled(UnevenNetwork(), 301, 202);
  ASSERT_NE(model, nullptr);
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{9, 11}, {30, 7}}) {
    const ImagePlanOptions options{
        .executor = ImageExecutor::kTiles, .tile_rows = rows, .tile_columns = columns};
    auto runner = ImageRunner::Create(model, options);
    ASSERT_TRUE(runner.ok()) << runner.status().message();
    const PieceRunner& pieces = (*runner)->pieces();
    const PhasePlan& plan = (*runner)->plan().phases.back();
    const TileSchedule schedule(pieces, plan.phase, rows, columns);
    const ValueId image = pieces.graph().inputs[0];
    size_t held = 0, arena = 0;
    for (int64_t t = 0; t < schedule.tile_count(); ++t) {
      const ValueBox target = schedule.targets(t)[0];
      const std::vector<PieceMemory> targets{
          {target.value, target.box, {DType::kF32, target.box.dims()}}};
      const auto required = pieces.Required({}, targets);
      ASSERT_TRUE(required.ok());
      const Box part = *required->values[IndexOf(image)];
      const auto binding =
          pieces.Bind(std::vector<PieceMemory>{{image, part, {DType::kF32, part.dims()}}}, targets);
      ASSERT_TRUE(binding.ok());
      held = std::max(
          held, BytesOfBox(pieces, image, part) + BytesOfBox(pieces, target.value, target.box));
      arena = std::max(arena, (*binding)->arena_bytes);
    }
    EXPECT_EQ(plan.piece_bytes, held + arena) << rows << " x " << columns;
  }
}

TEST(ImageMemory, StatisticsTakeAnExtraPassAndLittleMemory) {
  Layers net;
  net.Conv(3, 8, 1, 1);
  const ValueId before = net.x;
  net.Op("GlobalAveragePool").Op("Sigmoid").Op("Mul", {before});
  const ImagePlanOptions options{.executor = ImageExecutor::kStream, .strip_rows = 16};
  const ImageResult result = RunPlanned(net.Finish(), 800, 256, options);
  EXPECT_EQ(result.report.phases.size(), 2u);
  EXPECT_LT(result.report.peak_bytes, size_t{8} * 800 * 256 * 4 / 4);
}

std::unique_ptr<PieceRunner> Pieces(const Module& module, int64_t rows, int64_t columns) {
  const std::vector<Dims> image{{1, 3, rows, columns}};
  auto runner = PieceRunner::Create(Compiled(module, rows, columns), 0, image, {});
  EXPECT_TRUE(runner.ok()) << runner.status().message();
  return runner.ok() ? *std::move(runner) : nullptr;
}

// Strips along the rows would read the whole image for a value that is stored by columns.
TEST(ImageRows, StoredValuesAreCutAlongThem) {
  const Ints above{0, 0, 3, 0, 0, 0, 0, 0};
  for (const bool padded : {false, true}) {
    Layers net;
    // The first rows of a padded value need nothing of the image.
    if (padded) net.Op("Pad", {}, {{"mode", std::string("constant")}, {"pads", above}});
    else net.Op("Relu");
    net.Op("Resize", {},
           {{"mode", std::string("linear")}, {"scales", std::vector<double>{1, 1, 4, 4}}});
    const ValueId large = net.x;
    net.Op("GlobalAveragePool").Op("Sigmoid").Op("Mul", {large});
    // A row is larger than a column.
    const auto runner = Pieces(net.Finish(), 12, 40);
    ASSERT_NE(runner, nullptr);
    const ValueId small = runner->graph().nodes[0].outputs[0];
    const auto phases = FindPhases(*runner, {});
    ASSERT_TRUE(phases.ok()) << phases.status().message();
    const auto& targets = phases->front().targets;
    const auto stored = std::find_if(targets.begin(), targets.end(),
                                     [&](const StreamTarget& t) { return t.value == small; });
    ASSERT_NE(stored, targets.end());
    EXPECT_EQ(stored->dim, 2) << (padded ? "padded" : "");
  }
}

// The first strips read one column of a value after the other, the strips below the padding read
// rows. What is retained of the value has all rows and columns, so the schedule has to count the
// rows of the image that all of it needs.
TEST(ImageRows, NarrowStripsReadWhatTheyRetain) {
  Layers net;
  net.Op("Relu").Op("Pad", {},
                    {{"mode", std::string("constant")}, {"pads", Ints{0, 0, 4, 0, 0, 0, 0, 0}}});
  const auto runner = Pieces(net.Finish(), 19, 6);
  ASSERT_NE(runner, nullptr);
  const Graph& graph = runner->graph();
  StreamPhase phase;
  phase.targets = {{graph.nodes[0].outputs[0], 3}, {graph.outputs[0], 2}};
  const auto schedule = RowSchedule::Make(*runner, phase, 1);
  ASSERT_TRUE(schedule.ok()) << schedule.status().message();
  ASSERT_EQ(schedule->strip_count(), 23u);
  std::map<ValueId, Box> held;
  for (size_t s = 0; s < schedule->strip_count(); ++s) {
    const StreamStrip strip = schedule->strip(s);
    std::vector<PieceMemory> sources, targets;
    for (ValueId v : strip.reads) {
      if (held.contains(v)) sources.push_back({v, held[v], {}});
    }
    for (const ValueBox& t : strip.targets) targets.push_back({t.value, t.box, {}});
    for (const ValueBox& r : strip.retains) targets.push_back({r.value, r.box, {}});
    const auto required = runner->Required(sources, targets);
    ASSERT_TRUE(required.ok()) << required.status().message();
    if (const auto& image = required->values[IndexOf(graph.inputs[0])]; image) {
      ASSERT_TRUE(strip.image) << "strip " << s;
      EXPECT_TRUE(Contains(*strip.image, *image)) << "strip " << s;
    }
    for (const ValueBox& r : strip.retains) held[r.value] = r.box;
  }
  EXPECT_FALSE(held.empty());
}

// Where the rows of the output of a network on 149 x 83 pixels are.
AxisCoordinates RowsOf(Layers& net) {
  const auto runner = Pieces(net.Finish(), 149, 83);
  if (runner == nullptr) return {0, 0};
  return OutputCoordinates(*runner)[0].rows;
}

AttrList Kernel(int64_t size, int64_t stride) {
  return {{"kernel_shape", Ints{size, size}}, {"strides", Ints{stride, stride}}};
}

AttrList Scales(const char* mode, const char* coordinates, double scale) {
  return {{"mode", std::string(mode)},
          {"coordinate_transformation_mode", std::string(coordinates)},
          {"nearest_mode", std::string("floor")},
          {"scales", std::vector<double>{1, 1, scale, scale}}};
}

TEST(ImageCoordinates, FollowStridesAndPads) {
  const auto near = [](AxisCoordinates got, double scale, double offset) {
    EXPECT_NEAR(got.scale, scale, 1e-12);
    EXPECT_NEAR(got.offset, offset, 1e-9);
  };
  Layers same;
  near(RowsOf(same.Conv(3, 4, 1, 2)), 1, 0);
  Layers valid;
  near(RowsOf(valid.Op("MaxPool", {}, Kernel(5, 1)).Op("MaxPool", {}, Kernel(3, 1))), 1, 3);
  // 149 rows become 75 and 150, none of which is 149 / 2 or 149.
  Layers halved;
  near(RowsOf(halved.Conv(3, 4, 2, 1)), 2, 0);
  Layers resized;
  near(RowsOf(resized.Conv(3, 4, 2, 1).Op("Resize", {}, Scales("linear", "half_pixel", 2))), 1,
       -0.5);
  Layers pooled;
  near(RowsOf(pooled.Op("MaxPool", {}, Kernel(2, 2))
                  .Op("Resize", {}, Scales("nearest", "asymmetric", 2))),
       1, 0);
  Layers linear;
  near(RowsOf(linear.Op("MaxPool", {}, Kernel(2, 2))
                  .Op("Resize", {}, Scales("linear", "half_pixel", 2))),
       1, 0);
  Layers padded;
  near(RowsOf(padded.Op(
           "Pad", {}, {{"mode", std::string("reflect")}, {"pads", Ints{0, 0, 5, 0, 0, 0, 2, 0}}})),
       1, -5);
  Layers sliced;
  near(RowsOf(sliced.Op(
           "Slice", {},
           {{"starts", Ints{9}}, {"ends", Ints{100}}, {"axes", Ints{2}}, {"steps", Ints{3}}})),
       3, 9);
  Layers blocks;
  blocks.Conv(3, 8, 2, 1).Op("DepthToSpace", {}, {{"blocksize", int64_t{2}}});
  near(RowsOf(blocks), 1, -0.5);
}

TEST(ImageCoordinates, OfATransposedConvolutionAreThoseOfItsInverse) {
  Layers net;
  net.Op("MaxPool", {}, Kernel(2, 2));
  const ValueId weight = net.graph().AddConstant("w", RandomImage({3, 2, 2, 2}, 3));
  const AxisCoordinates rows = RowsOf(net.Op("ConvTranspose", {weight}, {{"strides", Ints{2, 2}}}));
  EXPECT_NEAR(rows.scale, 1, 1e-12);
  EXPECT_NEAR(rows.offset, 0, 1e-12);
  EXPECT_NEAR(rows.Begin(), 0, 1e-12);
}

// The skip connection of the full resolution says where the pixels are.
TEST(ImageCoordinates, OfTheFinestInputCount) {
  Layers net;
  net.Conv(3, 4, 1, 1);
  const ValueId fine = net.x;
  net.Op("GlobalAveragePool").Op("Mul", {fine});
  const AxisCoordinates rows = RowsOf(net);
  EXPECT_EQ(rows.scale, 1);
  EXPECT_EQ(rows.offset, 0);
}

TEST(ImageRuns, EndWithTheErrorsOfTheCaller) {
  auto runner = ImageRunner::Create(Compiled(Segmentation(), 64, 48), {.strip_rows = 8});
  ASSERT_TRUE(runner.ok());
  int reads = 0;
  ImageIo io;
  io.read = [&](const Box&, const TensorView&) {
    return ++reads < 3 ? OkStatus() : IoError("the file is truncated");
  };
  io.write = [](size_t, const Box&, const TensorView&) { return OkStatus(); };
  EXPECT_EQ((*runner)->Run(io, {}).status().message(), "the file is truncated");
  const std::atomic<bool> cancelled{true};
  ImageRunOptions options;
  options.cancelled = &cancelled;
  EXPECT_EQ((*runner)->Run(io, options).status().code(), Code::kCancelled);
}

TEST(ImageModels, MustFollowTheImage) {
  Layers classes;
  classes.Conv(3, 8, 1, 1).Op("GlobalAveragePool").Op("Flatten");
  const auto runner = ImageRunner::Create(Compiled(classes.Finish(), 64, 48), {});
  EXPECT_EQ(runner.status().code(), Code::kUnsupported);
  // A head of detections whose shape alone could be that of an image.
  Layers detections;
  detections.Conv(3, 8, 1, 1).Op("GlobalAveragePool").Op("Flatten");
  const ValueId weight =
      detections.graph().AddConstant("weight", RandomImage({8, int64_t{200} * 7}, 1));
  detections.Op("MatMul", {weight}).Op("Reshape", {}, {{"shape", Ints{1, 1, 200, 7}}});
  const auto boxes = ImageRunner::Create(Compiled(detections.Finish(), 64, 48), {});
  EXPECT_EQ(boxes.status().code(), Code::kUnsupported);
  EXPECT_NE(boxes.status().message().find("does not follow the rows and columns"),
            std::string::npos)
      << boxes.status().message();
  // One detection for each position.
  Layers anchors;
  anchors.Conv(3, 7, 1, 1).Op("Reshape", {}, {{"shape", Ints{1, 7, -1}}});
  anchors.Op("Transpose", {}, {{"perm", Ints{0, 2, 1}}});
  anchors.Op("Reshape", {}, {{"shape", Ints{1, 1, -1, 7}}});
  const auto lines = ImageRunner::Create(Compiled(anchors.Finish(), 64, 48), {});
  EXPECT_EQ(lines.status().code(), Code::kUnsupported);
  const auto bands = CompileForImage(TestEnvironment(), Segmentation(), {4, 64, 48}, {});
  EXPECT_EQ(bands.status().code(), Code::kUnsupported);
  const auto empty = CompileForImage(TestEnvironment(), Segmentation(), {3, 0, 48}, {});
  EXPECT_EQ(empty.status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace msrt::testing

// Pieces on the emulated accelerator: a plugin with its own memory gets localized attributes and
// strides. Its arithmetic is that of the reference delegate, so all bits must be equal.
#include <gtest/gtest.h>

#include "core/image/executors/stream_model.h"
#include "core/image/executors/stream_testing.h"
#include "tests/conformance/case_node.h"
#include "tests/conformance/load_accelerator.h"
#include "tests/conformance/piece_check.h"
#include "tools/msconvert/zoo.h"

namespace msrt::testing {
namespace {

std::shared_ptr<Environment> Accelerated() {
  static const std::shared_ptr<Environment> environment = AcceleratedEnvironment("");
  return environment;
}

PieceTotals& Totals() {
  static PieceTotals totals;
  return totals;
}

class AcceleratorPieces : public ::testing::TestWithParam<size_t> {};

TEST_P(AcceleratorPieces, EqualPartsOfTheWhole) {
  const CaseModule m = ModuleOf(AllOpCases()[GetParam()], /*open_dims=*/false);
  CompileOptions options;
  options.place.delegates = {"accelerator"};
  options.place.strict = true;
  options.passes.disabled = {"all"};
  auto model = CompileModule(Accelerated(), m.module, options);
  if (model.status().code() == Code::kUnsupported) return;
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto session = Session::Create(*model, 0, {});
  const auto whole = RunSession(**session, m.inputs);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  CheckPieces(m, *model, *whole, 0, 4, static_cast<uint32_t>(GetParam()), &Totals());
  EXPECT_EQ(NewMisuses(), "");
}

INSTANTIATE_TEST_SUITE_P(All, AcceleratorPieces, ::testing::Range(size_t{0}, AllOpCases().size()),
                         [](const auto& row) { return AllOpCases()[row.param].name; });

struct Device {
  const char* name;
  std::string options;
};
const Device kDevices[] = {
    {"strided", StrCat(kFastDevice, ",chain=1")},
    {"dense", StrCat(kFastDevice, ",chain=1,strides=0")},
    {"chains", kFastDevice},
    {"mixed", StrCat(kFastDevice, ",chain=1,unsupported=Relu+Add+Concat,delay_us=20")},
};

class AcceleratorNetworkPieces : public ::testing::TestWithParam<size_t> {};

// A network in which convolutions of several dilations read different parts of one value.
TEST_P(AcceleratorNetworkPieces, StripsEqualTheWhole) {
  const Dims dims{1, 4, 40, 24};
  auto module = zoo::Build("deeplab", {.batch = 1, .open_image = true, .width = 4});
  ASSERT_TRUE(module.ok());
  CompileOptions options;
  options.typical = {{"image", dims}};
  auto model =
      CompileModule(AcceleratedEnvironment(kDevices[GetParam()].options), *module, options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  std::vector<float> values(static_cast<size_t>(dims.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  const ConstTensor image = ConstTensor::Floats(dims, values);
  auto session = Session::Create(*model, 0, {});
  const auto whole = RunSession(**session, {image});
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  auto runner = PieceRunner::Create(*model, 0, std::vector<Dims>{dims}, {});
  ASSERT_TRUE(runner.ok()) << runner.status().message();
  const Graph& graph = (*runner)->graph();
  const TensorView view{image.dtype, image.dims, Layout::kPlain,
                        const_cast<std::byte*>(image.bytes.data())};
  const PieceMemory source{graph.inputs[0], Box::Whole(dims), view};
  int strided = 0;
  for (int64_t y = 0; y < 40; y += 7) {
    Box box = Box::Whole((*whole)[0].dims);
    box[2] = {y, std::min<int64_t>(y + 7, 40)};
    Embedded result(Type::Tensor(DType::kF32, box.dims()), 1);
    const PieceMemory target{graph.outputs[0], box, result.view()};
    const Status status = (*runner)->Run({&source, 1}, {&target, 1}, {});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(Difference(result.Get(), CutOut((*whole)[0], box), 0, 0), "") << StrCat(box);
    for (const BoundStep& step : (*runner)->binding()->steps) {
      for (const TensorView& v : step.views)
        strided += step.kernel != nullptr && IsOnDevice(step.queue) && v.strides != nullptr ? 1 : 0;
    }
  }
  EXPECT_EQ(strided > 0, kDevices[GetParam()].options.find("strides=0") == std::string::npos);
  EXPECT_EQ(NewMisuses(), "");
}

// Strips retain rows of values on the device, which the host joins with the rows that follow.
// Candidates of several nodes are not used, because strips need the values between them.
TEST_P(AcceleratorNetworkPieces, ImagesEqualTheWhole) {
  const Dims dims{1, 4, 40, 24};
  auto module = zoo::Build("deeplab", {.batch = 1, .open_image = true, .width = 4});
  ASSERT_TRUE(module.ok());
  auto model = CompileForImage(AcceleratedEnvironment(kDevices[GetParam()].options), *module,
                               {dims[1], dims[2], dims[3]}, {});
  ASSERT_TRUE(model.ok()) << model.status().message();
  const ConstTensor image = RandomImage(dims, 5);
  auto session = Session::Create(*model, 0, {});
  const auto whole = RunSession(**session, {image});
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  const uint64_t before = AcceleratorCount("kernels");
  for (const auto executor : {ImageExecutor::kStream, ImageExecutor::kTiles}) {
    auto runner = ImageRunner::Create(*model, {.memory_limit_bytes = size_t{1} << 30,
                                               .executor = executor,
                                               .strip_rows = 3,
                                               .tile_rows = 11,
                                               .tile_columns = 9});
    ASSERT_TRUE(runner.ok()) << runner.status().message();
    const ImageResult result = RunImage(**runner, image);
    ASSERT_TRUE(result.status.ok()) << result.status.message();
    EXPECT_EQ(Difference(result.outputs[0], (*whole)[0], 0, 0), "");
    EXPECT_EQ(result.report.recomputed_rows, 0);
  }
  EXPECT_GT(AcceleratorCount("kernels"), before);
  EXPECT_EQ(NewMisuses(), "");
}

INSTANTIATE_TEST_SUITE_P(All, AcceleratorNetworkPieces,
                         ::testing::Range(size_t{0}, std::size(kDevices)),
                         [](const auto& row) { return kDevices[row.param].name; });

}  // namespace
}  // namespace msrt::testing

// Loops whose bodies run on a device: carried values stay there from one iteration to the next, and
// the results are those of the host.
#include "tests/conformance/load_accelerator.h"
#include "tests/conformance/loop_models.h"
#include "tests/conformance/same_runs.h"

namespace msrt::testing {
namespace {

using Flow = ModuleBuilder;

class AcceleratorLoops : public ::testing::Test {
 protected:
  ~AcceleratorLoops() override { EXPECT_EQ(NewMisuses(), ""); }
};

// Pins these nodes to the device, all others to the host.
const std::vector<Pin> kOnDevice = {
    {"", "Mul", "accelerator", false}, {"", "Concat", "accelerator", false},
    {"", "Add", "reference", false},   {"", "Less", "reference", false},
    {"", "Sub", "reference", false},   {"", "ReduceMax", "reference", false}};

size_t CopiesIn(const CompiledModel& model, uint32_t graph) {
  const auto placed = model.graphs[graph]->current();
  return static_cast<size_t>(std::count_if(
      placed->program->steps.begin(), placed->program->steps.end(), [](const Step& s) {
        return s.kind == StepKind::kCopyToDevice || s.kind == StepKind::kCopyToHost;
      }));
}

// Compares runs with the pinned device against runs without it; with and without chains and delays.
void ExpectLikeReference(const Module& module, const std::vector<std::vector<ConstTensor>>& runs,
                         uint32_t body, size_t copies) {
  auto reference = CompileModule(AcceleratedEnvironment(""), module,
                                 OptionsWithPins({{"", "", "accelerator", true}}));
  ASSERT_TRUE(reference.ok()) << reference.status().message();
  for (const char* options : {"", "chain=1", "delay_us=200", "delay_us=200,chain=1,seed=3"}) {
    auto model = CompileModule(AcceleratedEnvironment(options), module,
                               OptionsWithPins(kOnDevice, /*strict=*/true));
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(CopiesIn(**model, body), copies)
        << Print(*(*model)->graphs[body]->current()->program);
    auto session = Session::Create(*model, 0, {}), expected = Session::Create(*reference, 0, {});
    ASSERT_TRUE(session.ok() && expected.ok());
    ExpectSameRuns(**session, **expected, runs, options);
    (*session)->Trim();
    EXPECT_EQ((*session)->memory().device_bytes, 0u);
  }
}

TEST_F(AcceleratorLoops, CarriedTensorsStayOnTheDevice) {
  ExpectLikeReference(Powers(), Trips({3, 0, 1, 2, 9, 3}, {64}), 2, 0);
}

// The host reads the carried value too: it gets a copy, and the value stays on the device.
TEST_F(AcceleratorLoops, BodyMayReadCarriedTensorsOnTheHost) {
  Module module = Powers();
  Graph& body = module.graphs[2];
  GraphBuilder builder(&body);
  const auto most = builder.Add("ReduceMax", "most", {body.inputs[1]}, {{"keepdims", int64_t{0}}});
  const auto shifted = builder.Add("Mul", "shifted", {body.outputs[1], *most});
  ASSERT_TRUE(most.ok() && shifted.ok());
  body.outputs[1] = *shifted;
  ExpectLikeReference(module, Trips({3, 0, 1, 6}, {64}), 2, 2);
}

// while (max(x) < limit) x = x * 1.5: the condition runs on the host, so x is copied to the host
// before each iteration.
TEST_F(AcceleratorLoops, ConditionMayReadCarriedTensors) {
  Flow f(3);
  const ValueId x = f.Input(0, kRow);
  f.Output(0, f.While(0, {x}, 1, 2, {kRow})[0]);
  f.Output(1, f.Op(1, "Less",
                   {f.Op(1, "ReduceMax", {f.Input(1, kRow)}, {{"keepdims", int64_t{0}}}),
                    f.Float(1, 50.f)}));
  f.Output(2, f.Op(2, "Mul", {f.Input(2, kRow), f.Float(2, 1.5f)}));
  auto reference = CompileModule(AcceleratedEnvironment(""), f.module,
                                 OptionsWithPins({{"", "", "accelerator", true}}));
  auto model = CompileModule(AcceleratedEnvironment("delay_us=100"), f.module,
                             OptionsWithPins(kOnDevice, true));
  ASSERT_TRUE(model.ok() && reference.ok()) << model.status().message();
  auto session = Session::Create(*model, 0, {}), expected = Session::Create(*reference, 0, {});
  for (uint32_t seed = 1; seed < 4; ++seed) {
    std::vector<float> values(64, 0.25f + static_cast<float>(seed));
    const auto got = RunSession(**session, {Floats({64}, values)}),
               want = RunSession(**expected, {Floats({64}, values)});
    ASSERT_TRUE(got.ok() && want.ok()) << got.status().message();
    ExpectSameBits(*got, *want);
  }
}

TEST_F(AcceleratorLoops, CarriedTensorsMayGrow) {
  ExpectLikeReference(GrowingPowers(), Trips({3, 0, 1, 5, 2}, {3}), 2, 0);
}

// (a, b) = (b, a * 1.5): only the host copies a value that is passed on unchanged.
TEST_F(AcceleratorLoops, CarriedTensorsMayBeSwapped) {
  Flow f(3);
  const ValueId n = f.Input(0, kNumber), x = f.Input(0, kRow);
  const auto results = f.While(0, {f.Number(0, 0), x, x, n}, 1, 2, {kNumber, kRow, kRow});
  for (ValueId r : results) f.Output(0, r);
  const ValueId i = f.Input(1, kNumber);
  f.Input(1, kRow);
  f.Input(1, kRow);
  f.Output(1, f.Op(1, "Less", {i, f.Input(1, kNumber)}));
  const ValueId j = f.Input(2, kNumber), a = f.Input(2, kRow), b = f.Input(2, kRow);
  f.Input(2, kNumber);
  f.Output(2, f.Op(2, "Add", {j, f.Number(2, 1)}));
  f.Output(2, b);
  f.Output(2, f.Op(2, "Mul", {a, f.Float(2, 1.5f)}));
  ExpectLikeReference(f.module, Trips({3, 0, 1, 4}, {64}), 2, 2);
}

// A Loop that returns x * 1.5 of every iteration as well as the last one.
TEST_F(AcceleratorLoops, ScannedResultsAreCopiedToTheHost) {
  Flow f(2);
  const ValueId n = f.Input(0, kNumber), x = f.Input(0, kRow);
  const auto results =
      f.Control(0, "", "Loop", {n, kNoValue, x}, {{"body", GraphRef{1}}, {"carried", int64_t{1}}},
                {kRow, Type::Tensor(DType::kF32, {Dims{kUnknownDim, 64}})});
  for (ValueId r : results) f.Output(0, r);
  f.Input(1, kNumber);
  const ValueId go_on = f.Input(1, kFlag), y = f.Input(1, kRow);
  const ValueId larger = f.Op(1, "Mul", {y, f.Float(1, 1.5f)});
  f.Output(1, go_on);
  f.Output(1, f.Op(1, "Mul", {larger, f.Float(1, 0.5f)}));
  f.Output(1, larger);
  ExpectLikeReference(f.module, Trips({3, 1, 0, 5}, {64}), 1, 1);
}

// After any failure at any time, the body is placed again without the device, and the results are
// right.
TEST_F(AcceleratorLoops, LoopSurvivesAFailingDevice) {
  const Module module = Powers();
  auto reference = CompileModule(AcceleratedEnvironment(""), module,
                                 OptionsWithPins({{"", "", "accelerator", true}}));
  auto expected = Session::Create(*reference, 0, {});
  int placed_again = 0;
  for (const char* kind : {"run_fails_at", "copy_fails_at", "allocate_fails_at", "dies_after"}) {
    for (int at = 0; at < 12; ++at) {
      for (const char* late : {"", ",fails_late=1"}) {
        const std::string options = StrCat(kind, "=", at, late);
        std::vector<Pin> pins = kOnDevice;
        pins.erase(pins.begin(),
                   pins.begin() + 2);  // not pinned, so that another delegate can take it
        std::string log;
        auto model = CompileModule(AcceleratedEnvironment(StrCat(kFastDevice, ",", options), &log),
                                   module, OptionsWithPins(pins));
        ASSERT_TRUE(model.ok()) << options << ": " << model.status().message();
        auto session = Session::Create(*model, 0, {});
        ExpectSameRuns(**session, **expected, Trips({5, 3}, {64}), options);
        placed_again += log.find("again without it") != std::string::npos;
      }
    }
  }
  EXPECT_GT(placed_again, 48);  // at least half of them met the failure
}

// Without pins: the device is much faster and copies are expensive, so that the device pays off
// only for a loop that keeps its tensors there.
TEST_F(AcceleratorLoops, PlacementAccountsForCarriedTensors) {
  auto model =
      CompileModule(AcceleratedEnvironment("speed=1e6,launch_us=0.001,copy_us=1,copy_gbs=1"),
                    Powers(), OptionsWithPins({}));
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Program& body = *(*model)->graphs[2]->current()->program;
  EXPECT_NE(body.buffers[body.input_buffers[1]].state.device, 0) << Print(body);
  EXPECT_EQ(body.buffers[body.input_buffers[0]].state.device, 0) << Print(body);
}

}  // namespace
}  // namespace msrt::testing

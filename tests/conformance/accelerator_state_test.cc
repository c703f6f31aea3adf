// State slots and devices: packed forms in replayed work, slots that live on a device.
#include <cstring>

#include "core/run/state_testing.h"
#include "tests/conformance/load_accelerator.h"
#include "tests/conformance/loop_models.h"
#include "tests/conformance/same_runs.h"

namespace msrt::testing {
namespace {

class AcceleratorState : public ::testing::Test {
 protected:
  ~AcceleratorState() override { EXPECT_EQ(NewMisuses(), ""); }
};

// The operations of one kind during a scope.
class CountedScope {
 public:
  explicit CountedScope(const char* kind) : kind_(kind), before_(AcceleratorCount(kind)) {}
  uint64_t count() const { return AcceleratorCount(kind_) - before_; }

 private:
  const char* kind_;
  uint64_t before_;
};

// Claimed costs, so that nothing is measured.
constexpr const char* kClaimed = "copy_us=1,copy_gbs=10";

using Homes = std::vector<std::pair<std::string, std::string>>;

std::shared_ptr<const CompiledModel> CompiledFor(const Module& module, const std::string& options,
                                                 std::vector<Pin> pins, const Homes& homes = {}) {
  CompileOptions compile = OptionsWithPins(std::move(pins), /*strict=*/true);
  compile.io_devices = homes;
  auto model =
      CompileModule(AcceleratedEnvironment(StrCat(kClaimed, ",", options)), module, compile);
  EXPECT_TRUE(model.ok()) << options << ": " << model.status().message();
  return model.ok() ? *model : nullptr;
}

ConstTensor ParameterOf(int64_t length, float first) { return RampTensor({length}, first); }

void WriteSlot(Session* session, size_t slot, const ConstTensor& value) {
  ASSERT_TRUE(session
                  ->WriteState(slot, {value.dtype, value.dims, Layout::kPlain,
                                      const_cast<std::byte*>(value.bytes.data())})
                  .ok());
}

// ---- replay -------------------------------------------------------------------------------------

// y = x * w * w on the device, where x and y are too: nothing is copied but w, so that the device
// can record the products.
Module Products() {
  Draft d;
  const int64_t w = d.AddState("w", StateRole::kParameter, ParameterOf(64, -2));
  Graph& g = d.module.graphs[d.AddGraph("main")];
  GraphBuilder b(&g);
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {64})), read = d.Read(&g, w, "w");
  const ValueId y =
      Must(b.Add("Mul", "d_second", {Must(b.Add("Mul", "d_first", {x, read})), read}));
  g.value(y).name = "y";
  g.outputs = {y};
  d.module.entries = {0};
  return std::move(d.module);
}

bool BindInputs(Session* session, const std::vector<ConstTensor>& inputs) {
  bool bound = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorView view{inputs[i].dtype, inputs[i].dims, Layout::kPlain,
                          const_cast<std::byte*>(inputs[i].bytes.data())};
    bound = session->SetInput(i, view, inputs[i].owner).ok() && bound;
  }
  return bound;
}

std::vector<float> Download(const RunValue& value) {
  std::vector<float> data(static_cast<size_t>(value.tensor.elements()));
  const Host host(DefaultAllocator(), MakeSerial(), {});
  auto stream = value.device->MakeStream(host);
  EXPECT_TRUE(stream.ok());
  EXPECT_TRUE((*stream)->CopyToHost(host, data.data(), value.tensor.data, 4 * data.size()).ok());
  EXPECT_TRUE((*stream)->Synchronize(host).ok());
  return data;
}

TEST_F(AcceleratorState, ReplayDoesNotUsePackedFormsOfOtherVersions) {
  auto model =
      CompiledFor(Products(), "forms=1,reuse_addresses=1,chain=1",
                  {{"d*", "", "accelerator", false}}, {{"x", "accelerator"}, {"y", "accelerator"}});
  ASSERT_NE(model, nullptr);
  const ConstTensor x = RampTensor({64}, 1);
  const Device& device = *model->environment->devices[0];
  const Host host(DefaultAllocator(), MakeSerial(), {});
  auto there = device.Allocate(host, x.bytes.size(), "test");
  auto stream = device.MakeStream(host);
  ASSERT_TRUE(there.ok() && stream.ok());
  ASSERT_TRUE((*stream)->CopyToDevice(host, there->data(), x.bytes.data(), x.bytes.size()).ok());
  ASSERT_TRUE((*stream)->Synchronize(host).ok());
  const auto session = Make(model);
  RunValue input = RunValue::Of({DType::kF32, {64}, Layout::kPlain, there->data()});
  input.device = &device;
  ASSERT_TRUE(session->SetInput(0, input).ok());
  const CountedScope replays("replays"), packings("packings");
  for (float first : {-2.f, 3.f, 5.f}) {
    const ConstTensor w = ParameterOf(64, first);
    WriteSlot(session.get(), 0, w);
    for (int run = 0; run < 4; ++run) {
      ASSERT_TRUE(session->Run({}).ok());
      const auto y = session->OutputValue(0);
      ASSERT_TRUE(y.ok() && y->device != nullptr);
      const std::vector<float> got = Download(*y);
      for (size_t i = 0; i < got.size(); ++i) {
        const float v = w.As<float>()[i];
        ASSERT_EQ(got[i], x.As<float>()[i] * v * v) << "w begins with " << first << ", run " << run;
      }
    }
  }
  EXPECT_EQ(replays.count(), 9u);   // of the second to fourth run of each version
  EXPECT_EQ(packings.count(), 6u);  // by two kernels, of three versions
}

// ---- slots on a device --------------------------------------------------------------------------

constexpr int64_t kLength = 4096;

// Entry 0: w, m, v = Adam(w, m, v, g), and -g. Entry 1: y = x * w.
Module AdamAndProduct() {
  const Dims dims{kLength};
  const Type row = Type::Tensor(DType::kF32, dims);
  Draft d;
  const int64_t w = d.AddState("w", StateRole::kParameter, RampTensor(dims, -1)),
                m = d.AddState("m", StateRole::kOptimizer, RampTensor(dims, 0, 0)),
                v = d.AddState("v", StateRole::kOptimizer, RampTensor(dims, 0, 0));
  const uint32_t train = d.AddGraph("train"), eval = d.AddGraph("eval");
  {
    Graph& g = d.module.graphs[train];
    GraphBuilder b(&g);
    const ValueId gradient = g.AddInput("g", row), rate = g.AddConstant("rate", Floats({}, {0.1f}));
    const ValueId count =
        g.AddConstant("count", ConstTensor::Of<int64_t>(DType::kI64, {}, std::vector<int64_t>{0}));
    const auto updated =
        b.Add("ai.onnx.preview.training", "Adam", "d_adam",
              {rate, count, d.Read(&g, w, "w"), gradient, d.Read(&g, m, "m"), d.Read(&g, v, "v")},
              {{"alpha", 0.5}, {"beta", 0.75}, {"epsilon", 1e-3}}, 3);
    EXPECT_TRUE(updated.ok()) << updated.status().message();
    d.Write(&g, w, (*updated)[0]);
    d.Write(&g, m, (*updated)[1]);
    d.Write(&g, v, (*updated)[2]);
    g.outputs = {Must(b.Add("Neg", "h_done", {gradient}))};
  }
  Graph& g = d.module.graphs[eval];
  const ValueId x = g.AddInput("x", row);
  g.outputs = {Must(GraphBuilder(&g).Add("Mul", "d_product", {x, d.Read(&g, w, "w")}))};
  d.module.entries = {train, eval};
  return std::move(d.module);
}

const std::vector<Pin> kDAndH = {{"d*", "", "accelerator", false}, {"h*", "", "reference", false}};
const std::vector<Pin> kNoDevice = {{"", "", "accelerator", true}};

// The copies to and from the device in a scope.
struct CopyCounts {
  CountedScope to{"copies_to_device"}, from{"copies_to_host"};
};

TEST_F(AcceleratorState, OptimizerStepOnTheDeviceCopiesNoParameters) {
  for (const char* options : {"", "delay_us=50", "chain=1,reuse_addresses=1,forms=1"}) {
    const auto model = CompiledFor(AdamAndProduct(), options, kDAndH),
               host = CompiledFor(AdamAndProduct(), "", kNoDevice);
    ASSERT_TRUE(model != nullptr && host != nullptr);
    const auto train = Make(model), eval = Make(model, 1, train.get());
    const auto trained = Make(host), expected = Make(host, 1, trained.get());
    EXPECT_EQ(train->program().state_updates.size(), 3u) << Print(train->program());
    const ConstTensor x = RampTensor({kLength}, 2);
    for (int step = 0; step < 6; ++step) {
      const ConstTensor gradient = RampTensor({kLength}, 0.25f * static_cast<float>(step));
      {
        const CopyCounts copies;
        RunOnce(train.get(), {gradient});
        EXPECT_EQ(copies.to.count(), step == 0 ? 4u : 1u) << options;  // the gradient; first: slots
        EXPECT_EQ(copies.from.count(), 0u) << options;
      }
      RunOnce(trained.get(), {gradient});
      if (step % 2 == 0) continue;
      const CopyCounts copies;
      EXPECT_EQ(RunOnce(eval.get(), {x}), RunOnce(expected.get(), {x})) << options;
      EXPECT_EQ(copies.to.count(), 1u) << options;    // x
      EXPECT_EQ(copies.from.count(), 1u) << options;  // y
    }
    for (size_t slot = 0; slot < 3; ++slot) {
      const CopyCounts copies;
      EXPECT_EQ(StateOf(*eval, slot), StateOf(*trained, slot)) << options;
      EXPECT_EQ(StateOf(*train, slot), StateOf(*trained, slot)) << options;
      EXPECT_EQ(copies.from.count(), 1u) << options;  // once, for all readers
    }
    // The device's value is still good.
    const CopyCounts copies;
    RunOnce(train.get(), {x});
    RunOnce(trained.get(), {x});
    EXPECT_EQ(copies.to.count(), 1u) << options;
    EXPECT_EQ(StateOf(*train, 0), StateOf(*trained, 0)) << options;
  }
}

TEST_F(AcceleratorState, WritesResetsAndClonesFollowTheDevicesValue) {
  const auto model = CompiledFor(AdamAndProduct(), "", kDAndH),
             host = CompiledFor(AdamAndProduct(), "", kNoDevice);
  ASSERT_TRUE(model != nullptr && host != nullptr);
  const auto train = Make(model), trained = Make(host);
  const ConstTensor gradient = RampTensor({kLength}, 1), written = RampTensor({kLength}, 7);
  const auto step = [&](Session* one, Session* other, const char* what) {
    RunOnce(one, {gradient});
    RunOnce(other, {gradient});
    for (size_t slot = 0; slot < 3; ++slot)
      EXPECT_EQ(StateOf(*one, slot), StateOf(*other, slot)) << what << ", slot " << slot;
  };
  step(train.get(), trained.get(), "first");
  RunOnce(train.get(), {gradient});  // the value is on the device only
  RunOnce(trained.get(), {gradient});
  auto clone = train->Clone();
  auto cloned = trained->Clone();
  ASSERT_TRUE(clone.ok() && cloned.ok());
  WriteSlot(train.get(), 0, written);
  WriteSlot(trained.get(), 0, written);
  step(train.get(), trained.get(), "after a write");
  step(clone->get(), cloned->get(), "clone");
  RunOnce(train.get(), {gradient});
  RunOnce(trained.get(), {gradient});
  for (size_t slot = 0; slot < 3; ++slot)
    ASSERT_TRUE(train->ResetState(slot).ok() && trained->ResetState(slot).ok());
  EXPECT_EQ(StateOf(*train, 0), StateOf(*trained, 0));
  step(train.get(), trained.get(), "after a reset");
}

// A run on the host reads and updates what a device updated before, and the other way round.
TEST_F(AcceleratorState, HostAndDeviceTakeTurnsOnASlot) {
  Draft d;
  const Type row = Type::Tensor(DType::kF32, {kLength});
  const int64_t w = d.AddState("w", StateRole::kParameter, RampTensor({kLength}, -1)),
                m = d.AddState("m", StateRole::kOptimizer, RampTensor({kLength}, 0, 0));
  for (const char* name : {"d_step", "h_step"}) {
    Graph& g = d.module.graphs[d.AddGraph(name)];
    GraphBuilder b(&g);
    const ValueId gradient = g.AddInput("g", row), rate = g.AddConstant("rate", Floats({}, {0.5f}));
    const ValueId count =
        g.AddConstant("count", ConstTensor::Of<int64_t>(DType::kI64, {}, std::vector<int64_t>{1}));
    const auto updated = b.Add("ai.onnx.preview.training", "Momentum", name,
                               {rate, count, d.Read(&g, w, "w"), gradient, d.Read(&g, m, "m")},
                               {{"alpha", 0.75},
                                {"beta", 1.0},
                                {"norm_coefficient", 0.0},
                                {"mode", std::string("standard")}},
                               2);
    ASSERT_TRUE(updated.ok()) << updated.status().message();
    d.Write(&g, w, (*updated)[0]);
    d.Write(&g, m, (*updated)[1]);
    g.outputs = {Must(b.Add("Neg", "h_done", {gradient}))};
  }
  d.module.entries = {0, 1};
  const auto model = CompiledFor(d.module, "delay_us=20", kDAndH),
             host = CompiledFor(d.module, "", kNoDevice);
  ASSERT_TRUE(model != nullptr && host != nullptr);
  const auto device_step = Make(model), host_step = Make(model, 1, device_step.get());
  const auto expected = Make(host);
  for (int step = 0; step < 9; ++step) {
    const ConstTensor gradient = RampTensor({kLength}, static_cast<float>(step));
    RunOnce((step % 3 == 1 ? host_step : device_step).get(), {gradient});
    RunOnce(expected.get(), {gradient});
    if (step % 4 == 3) {
      EXPECT_EQ(StateOf(*host_step, 0), StateOf(*expected, 0)) << step;
    }
  }
  for (size_t slot = 0; slot < 2; ++slot)
    EXPECT_EQ(StateOf(*device_step, slot), StateOf(*expected, slot));
}

// A value that only the lost device had is an error that names it, until it is written.
TEST_F(AcceleratorState, LostDeviceLosesTheSlotsThatItUpdated) {
  const auto model = CompiledFor(AdamAndProduct(), "dies_after=60", kDAndH);
  ASSERT_NE(model, nullptr);
  const auto train = Make(model), eval = Make(model, 1, train.get());
  const ConstTensor gradient = RampTensor({kLength}, 1);
  int steps = 0;
  Status status;
  for (; steps < 100 && status.ok(); ++steps) {
    ASSERT_TRUE(BindInputs(train.get(), {gradient}));
    status = train->Run({});
  }
  ASSERT_FALSE(status.ok());
  EXPECT_GT(steps, 2);
  const auto lost = eval->State(0);
  ASSERT_FALSE(lost.ok());
  EXPECT_NE(lost.status().message().find("state 'w', whose value is on accelerator"),
            std::string::npos)
      << lost.status().message();
  for (size_t slot = 0; slot < 3; ++slot) WriteSlot(train.get(), slot, RampTensor({kLength}, 1));
  EXPECT_EQ(StateOf(*eval, 0), ValuesOf(RampTensor({kLength}, 1)));
}

// ---- branches -----------------------------------------------------------------------------------

// Many Ifs in one run, with branches on the host, between products on the device: the products are
// enqueued across them, and the host waits for the last one only.
TEST_F(AcceleratorState, IfDoesNotWaitForTheDevice) {
  constexpr uint32_t kManyIfs = 64;
  const auto waits_of = [&](uint32_t count) {
    ModuleBuilder f(3);
    const ValueId yes = f.Input(0, kFlag), no = f.Input(0, kFlag);
    ValueId x = f.Input(0, kRow), z = f.Input(0, kRow);
    for (uint32_t i = 0; i < count; ++i) {
      x = f.Op(0, "Mul", {x, f.Float(0, 0.75f)});
      z = f.Control(0, "", "If", {i % 3 == 0 ? no : yes, z},
                    {{"then_branch", GraphRef{1}}, {"else_branch", GraphRef{2}}}, {kRow})[0];
    }
    f.Output(0, f.Op(0, "Mul", {x, f.Float(0, 3)}));
    f.Output(0, z);
    f.Output(1, f.Op(1, "Add", {f.Input(1, kRow), f.Float(1, 0.5f)}));
    f.Output(2, f.Op(2, "Sub", {f.Input(2, kRow), f.Float(2, 1.25f)}));
    const std::vector<Pin> pins = {{"", "Mul", "accelerator", false},
                                   {"", "Add", "reference", false},
                                   {"", "Sub", "reference", false}};
    const auto model = CompiledFor(f.module, "delay_us=20", pins),
               host = CompiledFor(f.module, "", kNoDevice);
    EXPECT_TRUE(model != nullptr && host != nullptr);
    if (model == nullptr || host == nullptr) return uint64_t{0};
    const auto session = Make(model), expected = Make(host);
    const auto flag = [](bool value) {
      return ConstTensor::Of<uint8_t>(DType::kBool, {}, std::vector<uint8_t>{value});
    };
    const std::vector<ConstTensor> inputs = {flag(true), flag(false), RandomFloats({64}, 5),
                                             RandomFloats({64}, 6)};
    const auto want = RunSession(*expected, inputs);
    const CountedScope waits("host_waits");
    const auto got = RunSession(*session, inputs);
    const uint64_t waited = waits.count();
    EXPECT_TRUE(got.ok() && want.ok()) << got.status().message();
    if (got.ok() && want.ok()) ExpectSameBits(*got, *want, StrCat(count, " Ifs"));
    return waited;
  };
  const uint64_t few = waits_of(1);
  EXPECT_EQ(waits_of(kManyIfs), few);
  EXPECT_LE(few, 3u);
}

}  // namespace
}  // namespace msrt::testing

// Devices that work beside the host: what the host waits for, copies between peers, conversions on
// the device, capture and replay. The results are those of the host, bit for bit.
#include <thread>

#include "core/run/state_testing.h"
#include "tests/conformance/load_accelerator.h"
#include "tests/conformance/loop_models.h"
#include "tests/conformance/same_runs.h"

namespace msrt::testing {
namespace {

using Flow = ModuleBuilder;

class AcceleratorDevices : public ::testing::Test {
 protected:
  ~AcceleratorDevices() override { EXPECT_EQ(NewMisuses(), ""); }
};

// The operations of one kind during a scope.
class Counted {
 public:
  explicit Counted(const char* kind) : kind_(kind), before_(AcceleratorCount(kind)) {}
  uint64_t count() const { return AcceleratorCount(kind_) - before_; }

 private:
  const char* kind_;
  uint64_t before_;
};

// Claimed costs, so that nothing is measured.
constexpr const char* kCosts = "copy_us=1,copy_gbs=10";

std::shared_ptr<const CompiledModel> Compiled(const Module& module, const std::string& options,
                                              std::vector<Pin> pins) {
  auto model = CompileModule(AcceleratedEnvironment(StrCat(kCosts, ",", options)), module,
                             OptionsWithPins(std::move(pins), /*strict=*/true));
  EXPECT_TRUE(model.ok()) << options << ": " << model.status().message();
  return model.ok() ? *model : nullptr;
}

std::shared_ptr<const CompiledModel> OnHost(const Module& module) {
  return Compiled(module, "", {{"", "", "accelerator", true}});
}

// x = x * 0.75 + i, `trips` times; the body reads the counter.
Module CountedLoop() {
  Flow f(2);
  const ValueId n = f.Input(0, kNumber), x = f.Input(0, kRow);
  f.Output(0, f.Control(0, "", "Loop", {n, kNoValue, x},
                        {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {kRow})[0]);
  const ValueId i = f.Input(1, kNumber), go_on = f.Input(1, kFlag), y = f.Input(1, kRow);
  const ValueId counter = f.Op(1, "Cast", {i}, {{"to", DType::kF32}});
  f.Output(1, go_on);
  f.Output(1, f.Op(1, "Add", {f.Op(1, "Mul", {y, f.Float(1, 0.75f)}), counter}));
  return f.module;
}

// The same without the counter: x = x * 0.75 + 0.5.
Module PlainLoop() {
  Flow f(2);
  const ValueId n = f.Input(0, kNumber), x = f.Input(0, kRow);
  f.Output(0, f.Control(0, "", "Loop", {n, kNoValue, x},
                        {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {kRow})[0]);
  f.Input(1, kNumber);
  const ValueId go_on = f.Input(1, kFlag), y = f.Input(1, kRow);
  f.Output(1, go_on);
  f.Output(1, f.Op(1, "Add", {f.Op(1, "Mul", {y, f.Float(1, 0.75f)}), f.Float(1, 0.5f)}));
  return f.module;
}

const std::vector<Pin> kAllOnDevice = {{"", "Mul", "accelerator", false},
                                       {"", "Add", "accelerator", false},
                                       {"", "Cast", "accelerator", false},
                                       {"", "Less", "accelerator", false},
                                       {"", "ReduceMax", "accelerator", false}};

uint64_t WaitsOf(Session& session, Session& expected, int64_t trips) {
  const std::vector<ConstTensor> inputs = {Number(trips), RandomFloats({64}, 5)};
  const Counted waits("host_waits");
  const auto got = RunSession(session, inputs);
  const uint64_t count = waits.count();
  const auto want = RunSession(expected, inputs);
  EXPECT_TRUE(got.ok() && want.ok()) << got.status().message();
  if (got.ok() && want.ok()) ExpectSameBits(*got, *want, StrCat(trips, " trips"));
  return count;
}

TEST_F(AcceleratorDevices, LoopOfAThousandIterationsDoesNotWaitInside) {
  auto reference = OnHost(CountedLoop());
  auto expected = Session::Create(reference, 0, {});
  for (const char* options : {"", "captures=0", "delay_us=20", "chain=1", "pinned=0"}) {
    auto model = Compiled(CountedLoop(), options, kAllOnDevice);
    ASSERT_NE(model, nullptr);
    auto session = Session::Create(model, 0, {});
    const uint64_t few = WaitsOf(**session, **expected, 1);
    EXPECT_EQ(WaitsOf(**session, **expected, 1000), few) << options;
    EXPECT_LE(few, 3u) << options;
  }
}

// The body reads a captured tensor that is too large to be staged.
TEST_F(AcceleratorDevices, CapturedTensorsAreNotWaitedForInside) {
  const Type large = Type::Tensor(DType::kF32, {Dims{4096}});
  Flow f(2);
  const ValueId n = f.Input(0, kNumber), x = f.Input(0, large);
  const ValueId captured = f.Op(0, "Neg", {x});
  f.Output(0, f.Control(0, "", "Loop", {n, kNoValue, x, captured},
                        {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {large})[0]);
  f.Input(1, kNumber);
  const ValueId go_on = f.Input(1, kFlag), y = f.Input(1, large);
  f.Output(1, go_on);
  f.Output(1, f.Op(1, "Add", {f.Op(1, "Mul", {y, f.Float(1, 0.75f)}), f.Input(1, large)}));
  auto reference = OnHost(f.module), model = Compiled(f.module, "delay_us=20", kAllOnDevice);
  ASSERT_TRUE(model != nullptr && reference != nullptr);
  auto session = Session::Create(model, 0, {}), expected = Session::Create(reference, 0, {});
  const auto waits_of = [&](int64_t trips) {
    const Counted waits("host_waits");
    ExpectSameRuns(**session, **expected, {{Number(trips), RandomFloats({4096}, 5)}}, "captured");
    return waits.count();
  };
  const uint64_t few = waits_of(1);
  EXPECT_EQ(waits_of(100), few);
}

// while (max(x) < limit) as the condition of a Loop that the body computes on the device.
TEST_F(AcceleratorDevices, DeviceConditionWaitsOncePerIteration) {
  Flow f(2);
  const ValueId n = f.Input(0, kNumber), x = f.Input(0, kRow);
  f.Output(0, f.Control(0, "", "Loop", {n, kNoValue, x},
                        {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {kRow})[0]);
  f.Input(1, kNumber);
  f.Input(1, kFlag);
  const ValueId y = f.Op(1, "Mul", {f.Input(1, kRow), f.Float(1, 0.99f)});
  const ValueId most = f.Op(1, "ReduceMax", {y}, {{"keepdims", int64_t{0}}});
  f.Output(1, f.Op(1, "Less", {most, f.Float(1, 1e6f)}));
  f.Output(1, y);
  auto reference = OnHost(f.module), model = Compiled(f.module, "", kAllOnDevice);
  ASSERT_TRUE(model != nullptr && reference != nullptr);
  auto session = Session::Create(model, 0, {}), expected = Session::Create(reference, 0, {});
  const uint64_t few = WaitsOf(**session, **expected, 10);
  EXPECT_EQ(WaitsOf(**session, **expected, 110), few + 100);
}

TEST_F(AcceleratorDevices, RepeatedSegmentsAreReplayed) {
  auto reference = OnHost(PlainLoop());
  auto expected = Session::Create(reference, 0, {});
  auto model = Compiled(PlainLoop(), "", kAllOnDevice);
  ASSERT_NE(model, nullptr);
  auto session = Session::Create(model, 0, {});
  for (int run = 0; run < 3; ++run) {
    const Counted replays("replays"), captures("captures");
    WaitsOf(**session, **expected, 200);
    EXPECT_GE(replays.count(), 190u);
    EXPECT_LE(captures.count(), 4u);
    // New memory means new addresses, which must be captured again.
    (*session)->Trim();
  }
  auto without = Compiled(PlainLoop(), "captures=0", kAllOnDevice);
  auto plain = Session::Create(without, 0, {});
  const Counted replays("replays");
  WaitsOf(**plain, **expected, 200);
  EXPECT_EQ(replays.count(), 0u);
}

// Shapes that change between runs change addresses and bindings.
TEST_F(AcceleratorDevices, ReplayFollowsShapes) {
  Module module = PlainLoop();
  OpenRows(&module);
  auto reference = OnHost(module), model = Compiled(module, "", kAllOnDevice);
  ASSERT_TRUE(model != nullptr && reference != nullptr);
  auto session = Session::Create(model, 0, {}), expected = Session::Create(reference, 0, {});
  for (int64_t length : {8, 64, 8, 512, 16, 2048, 8}) {
    ExpectSameRuns(**session, **expected, Trips({9, 7}, {length}), StrCat(length));
  }
}

// a = x * w1 on the first device, b = a + w2 on the second, c = b * a on the first.
Module PingPong() {
  SmallGraph g;
  const ValueId x = g.Input("x", DType::kF32, {64});
  const ValueId w = g.graph.AddConstant("w", RandomFloats({64}, 3));
  const ValueId a = g.Add("Mul", "a_first", {x, w});
  const ValueId b = g.Add("Add", "b_second", {a, w});
  const ValueId c = g.Add("Mul", "a_third", {b, a});
  g.graph.outputs = {g.Add("Exp", "b_last", {c})};
  return g.module;
}

const std::vector<Pin> kTwoDevices = {{"a*", "", "accelerator0", false},
                                      {"b*", "", "accelerator1", false},
                                      {"h*", "", "reference", false}};

TEST_F(AcceleratorDevices, PeersExchangeTensorsWithoutTheHost) {
  auto reference = OnHost(PingPong());
  auto expected = Session::Create(reference, 0, {});
  std::vector<std::vector<ConstTensor>> runs;
  for (uint32_t seed = 0; seed < 5; ++seed) runs.push_back({RandomFloats({64}, seed)});
  for (const std::string more : {"", ",delay_us=200", ",stream_waits=0,delay_us=100"}) {
    for (const bool peers : {true, false}) {
      const std::string options = StrCat("devices=2,chain=1,peers=", peers ? 1 : 0, more);
      auto model = Compiled(PingPong(), options, kTwoDevices);
      ASSERT_NE(model, nullptr);
      auto session = Session::Create(model, 0, {});
      const Counted copies("peer_copies"), home("copies_to_host"), streams("stream_waits");
      ExpectSameRuns(**session, **expected, runs, options);
      EXPECT_EQ(copies.count(), peers ? 3 * runs.size() : 0) << options;
      EXPECT_EQ(home.count(), (peers ? 1 : 4) * runs.size()) << options;
      const bool host_waits = more.find("stream_waits=0") != std::string::npos;
      EXPECT_EQ(streams.count() == 0, host_waits) << options;
    }
  }
}

// A network of unary and binary nodes, each on a random device or on the host.
Module RandomNetwork(uint32_t seed, std::vector<Pin>* pins) {
  std::mt19937 random(seed);
  SmallGraph g;
  std::vector<ValueId> values = {g.Input("x", DType::kF32, {16, 8}),
                                 g.Input("y", DType::kF32, {16, 8}),
                                 g.graph.AddConstant("w", RandomFloats({16, 8}, seed))};
  constexpr const char* kPlaces[] = {"a", "b", "h"};
  for (int n = 0; n < 24; ++n) {
    const auto any = [&] { return values[random() % values.size()]; };
    const std::string name = StrCat(kPlaces[random() % 3], n);
    switch (random() % 4) {
      case 0:
        values.push_back(g.Add("Tanh", name, {any()}));
        break;
      case 1:
        values.push_back(g.Add("Mul", name, {any(), any()}));
        break;
      case 2:
        values.push_back(g.Add("Add", name, {any(), any()}));
        break;
      default:
        values.push_back(g.Add("Neg", name, {any()}));
    }
    if (random() % 6 == 0) g.graph.outputs.push_back(values.back());
  }
  g.graph.outputs.push_back(values.back());
  *pins = kTwoDevices;
  return g.module;
}

TEST_F(AcceleratorDevices, RandomGraphsOverTwoDevicesEqualTheHost) {
  for (uint32_t seed = 0; seed < 24; ++seed) {
    std::vector<Pin> pins;
    const Module module = RandomNetwork(seed, &pins);
    auto reference = OnHost(module);
    const std::string options =
        StrCat("devices=2,delay_us=60,seed=", seed, seed % 3 == 1 ? ",peers=0" : "",
               seed % 4 == 2 ? ",stream_waits=0" : "", seed % 2 == 0 ? ",chain=1" : "");
    auto model = Compiled(module, options, pins);
    ASSERT_TRUE(model != nullptr && reference != nullptr);
    auto session = Session::Create(model, 0, {}), expected = Session::Create(reference, 0, {});
    std::vector<std::vector<ConstTensor>> runs;
    for (uint32_t r = 0; r < 3; ++r)
      runs.push_back({RandomFloats({16, 8}, seed * 7 + r), RandomFloats({16, 8}, r)});
    ExpectSameRuns(**session, **expected, runs, options);
  }
}

TEST_F(AcceleratorDevices, SessionsOfSeveralThreadsShareTwoDevices) {
  std::vector<Pin> pins;
  const Module module = RandomNetwork(77, &pins);
  auto reference = OnHost(module);
  auto model = Compiled(module, "devices=2,delay_us=30", pins);
  ASSERT_TRUE(model != nullptr && reference != nullptr);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      auto session = Session::Create(model, 0, {}), expected = Session::Create(reference, 0, {});
      for (uint32_t r = 0; r < 5; ++r) {
        ExpectSameRuns(**session, **expected,
                       {{RandomFloats({16, 8}, t * 31 + r), RandomFloats({16, 8}, r)}}, "threads");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(AcceleratorDevices, LayoutsAreChangedOnTheDevice) {
  SmallGraph g;
  const ValueId x = g.Input("x", DType::kF32, {1, 12, 5, 7});
  const ValueId a = g.Add("Tanh", "d_a", {x});
  const ValueId b = g.Add("Relu", "d_b", {a});  // channels last only
  g.graph.outputs = {g.Add("Mul", "d_c", {b, a})};
  auto reference = OnHost(g.module);
  auto expected = Session::Create(reference, 0, {});
  for (const bool converts : {true, false}) {
    const std::string options = StrCat("channels_last=1,chain=1,converts=", converts ? 1 : 0);
    auto model = Compiled(g.module, options, {{"d*", "", "accelerator", false}});
    ASSERT_NE(model, nullptr);
    auto session = Session::Create(model, 0, {});
    const Counted conversions("conversions"), home("copies_to_host");
    ExpectSameRuns(**session, **expected, {{RandomFloats({1, 12, 5, 7}, 1)}}, options);
    EXPECT_EQ(conversions.count(), converts ? 2u : 0u);
    EXPECT_EQ(home.count(), converts ? 1u : 3u);
  }
}

// Both branches use the same constants: they are uploaded once, with one wait.
TEST_F(AcceleratorDevices, ConstantsAreUploadedOnceWithOneWait) {
  const ConstTensor shared = RandomFloats({64}, 1), other = RandomFloats({64}, 2);
  Flow f(3);
  const ValueId condition = f.Input(0, kFlag), x = f.Input(0, kRow);
  f.Output(0, f.Control(0, "", "If", {condition, x},
                        {{"then_branch", GraphRef{1}}, {"else_branch", GraphRef{2}}}, {kRow})[0]);
  for (uint32_t g : {1u, 2u}) {
    const ValueId w = f.module.graphs[g].AddConstant("w", shared),
                  v = f.module.graphs[g].AddConstant("v", other);
    f.Output(g, f.Op(g, "Mul", {f.Op(g, "Add", {f.Input(g, kRow), w}), v}));
  }
  const Counted copies("copies_to_device"), waits("host_waits");
  auto model = Compiled(f.module, "", kAllOnDevice);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(copies.count(), 2u);
  EXPECT_EQ(waits.count(), 1u);
}

// A parameter that changes seldom is copied to the device once for each of its versions, for all
// sessions that share it.
TEST_F(AcceleratorDevices, ParametersStayOnTheDeviceUntilTheyChange) {
  constexpr int64_t kN = 64;
  const std::vector<Pin> on_device = {{"", "MatMul", "accelerator", false},
                                      {"", "Sub", "accelerator", true},
                                      {"", "Mul", "accelerator", true}};
  auto model = Compiled(TrainAndEval(kN), "", on_device), host = OnHost(TrainAndEval(kN));
  ASSERT_TRUE(model != nullptr && host != nullptr);
  // The copy costs the start of a copy (1 us), not 16 KB at 10 GB/s.
  const auto& steps = model->entries[0]->current()->program->steps;
  const auto kept =
      std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.is_kept; });
  ASSERT_NE(kept, steps.end());
  EXPECT_NEAR(kept->seconds, 1e-6, 1e-9);
  const auto eval = Make(model), train = Make(model, 1, eval.get()),
             other = Make(model, 0, eval.get());
  const auto expected = Make(host), trained = Make(host, 1, expected.get());
  const ConstTensor x = RampTensor({2, kN}, -1), gradient = RampTensor({1, kN}, 1);
  const auto copies_of = [&](Session* session, const char* what) {
    const Counted copies("copies_to_device");
    const std::vector<float> got = RunOnce(session, {x});
    const uint64_t count = copies.count();
    EXPECT_EQ(got, RunOnce(expected.get(), {x})) << what;
    return count;
  };
  EXPECT_EQ(copies_of(eval.get(), "first run"), 2u);  // x and w
  EXPECT_EQ(copies_of(eval.get(), "again"), 1u);
  EXPECT_EQ(copies_of(other.get(), "shared"), 1u);
  for (int step = 0; step < 3; ++step) {
    RunOnce(train.get(), {gradient});
    RunOnce(trained.get(), {gradient});
    EXPECT_EQ(copies_of(other.get(), "after an update"), 2u);
    EXPECT_EQ(copies_of(eval.get(), "again after an update"), 1u);
  }
  ASSERT_TRUE(eval->ResetState(0).ok() && expected->ResetState(0).ok());
  EXPECT_EQ(copies_of(eval.get(), "after a reset"), 2u);
  const ConstTensor written = RampTensor({kN, kN}, 3);
  for (Session* session : {eval.get(), expected.get()}) {
    ASSERT_TRUE(session
                    ->WriteState(0, {DType::kF32,
                                     {kN, kN},
                                     Layout::kPlain,
                                     const_cast<std::byte*>(written.bytes.data())})
                    .ok());
  }
  EXPECT_EQ(copies_of(eval.get(), "after a write"), 2u);
  EXPECT_EQ(copies_of(eval.get(), "again after a write"), 1u);
}

// A slot that is written in a run that also reads it on the device: each read sees its own value.
TEST_F(AcceleratorDevices, WritesWithinARunReachTheDevice) {
  for (const StateRole role : {StateRole::kParameter, StateRole::kStatistic, StateRole::kCache}) {
    Draft d;
    const int64_t w = d.AddState("w", role, RampTensor({64}, -2));
    const uint32_t main = d.AddGraph("main");
    Graph& g = d.module.graphs[main];
    GraphBuilder b(&g);
    const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {64}));
    const ValueId first = Must(b.Add("Mul", "first", {d.Read(&g, w, "before"), x}));
    d.Write(&g, w, Must(b.Add("Sub", "next", {first, x})));
    const ValueId second = Must(b.Add("Mul", "second", {d.Read(&g, w, "after"), x}));
    g.outputs = {Must(b.Add("Add", "y", {first, second}))};
    d.module.entries = {main};
    const std::vector<Pin> pins = {{"", "Mul", "accelerator", false},
                                   {"", "Sub", "accelerator", true},
                                   {"", "Add", "accelerator", false}};
    for (const char* options : {"", "delay_us=20"}) {
      auto model = Compiled(d.module, options, pins), host = OnHost(d.module);
      ASSERT_TRUE(model != nullptr && host != nullptr);
      const auto session = Make(model), expected = Make(host);
      for (int run = 0; run < 4; ++run) {
        const ConstTensor in = RampTensor({64}, 0.125f * static_cast<float>(run));
        EXPECT_EQ(RunOnce(session.get(), {in}), RunOnce(expected.get(), {in}))
            << StateRoleName(role) << " run " << run;
      }
      EXPECT_EQ(StateOf(*session, 0), StateOf(*expected, 0));
    }
  }
}

TEST_F(AcceleratorDevices, StreamsGetTheSessionsPriority) {
  auto model = Compiled(PingPong(), "devices=2", kTwoDevices);
  ASSERT_NE(model, nullptr);
  const Counted urgent("urgent_streams");
  auto session = Session::Create(model, 0, {.stream_priority = 1});
  ASSERT_TRUE(RunSession(**session, {RandomFloats({64}, 1)}).ok());
  EXPECT_EQ(urgent.count(), 2u);
}

// A device that fails is left out; the other one of the delegate still works.
TEST_F(AcceleratorDevices, FailureOfPeersKeepsTheResults) {
  auto reference = OnHost(PingPong());
  auto expected = Session::Create(reference, 0, {});
  for (const char* kind : {"run_fails_at", "copy_fails_at", "dies_after"}) {
    for (int at = 0; at < 10; ++at) {
      for (const char* late : {"", ",fails_late=1"}) {
        const std::string options = StrCat(kFastDevice, ",devices=2,chain=1,", kind, "=", at, late);
        auto model =
            CompileModule(AcceleratedEnvironment(options), PingPong(), OptionsWithPins({}));
        ASSERT_TRUE(model.ok()) << options << ": " << model.status().message();
        auto session = Session::Create(*model, 0, {});
        ExpectSameRuns(**session, **expected, {{RandomFloats({64}, 1)}, {RandomFloats({64}, 2)}},
                       options);
      }
    }
  }
}

TEST_F(AcceleratorDevices, CancelStopsALoopThatRunsAhead) {
  auto model = Compiled(PlainLoop(), "latency_us=100,captures=0", kAllOnDevice);
  ASSERT_NE(model, nullptr);
  auto session = Session::Create(model, 0, {});
  const ConstTensor trips = Number(1'000'000'000), row = RandomFloats({64}, 1);
  const auto bind = [&](size_t index, const ConstTensor& t) {
    const TensorView view{t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())};
    return (*session)->SetInput(index, view, nullptr).ok();
  };
  ASSERT_TRUE(bind(0, trips) && bind(1, row));
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    (*session)->Cancel();
  });
  EXPECT_EQ((*session)->Run({}).code(), Code::kCancelled);
  canceller.join();
}

// Checks that cannot fail would prove nothing.
TEST(AcceleratorOrder, NoticesWorkThatDoesNotWait) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "races on purpose";
#endif
  const auto env = AcceleratedEnvironment("devices=2");
  const Host host(env->allocator, env->parallel, {});
  const Device &first = *env->devices[0], &second = *env->devices[1];
  std::vector<std::byte> memory(64);
  auto one = first.MakeStream(host), two = second.MakeStream(host);
  auto event = first.MakeEvent(host);
  auto from = first.Allocate(host, 64, "test"), to = second.Allocate(host, 64, "test");
  ASSERT_TRUE(one.ok() && two.ok() && event.ok() && from.ok() && to.ok());
  const auto write = [&] {
    return (*one)->CopyToDevice(host, from->data(), memory.data(), 64).ok();
  };
  const auto read = [&] {
    return (*two)->CopyPeer(host, to->data(), first, from->data(), 64).ok();
  };
  ASSERT_TRUE(write() && read());
  EXPECT_NE(NewMisuses().find("a read of 64 bytes does not wait for a write"), std::string::npos);
  ASSERT_TRUE(write());
  EXPECT_NE(NewMisuses().find("a write of 64 bytes does not wait for a read"), std::string::npos);
  ASSERT_TRUE((*two)->Synchronize(host).ok() && write());
  ASSERT_TRUE((*event)->Record(host, **one).ok() && (*two)->Wait(host, **event).ok() && read());
  EXPECT_EQ(NewMisuses(), "");
  from->Reset();
  EXPECT_NE(NewMisuses().find("freed while queued work uses it"), std::string::npos);
  ASSERT_TRUE((*one)->Synchronize(host).ok() && (*two)->Synchronize(host).ok());
}

TEST(AcceleratorOrder, NoticesReplayWithStaleAddresses) {
  const auto env = AcceleratedEnvironment("");
  const Host host(env->allocator, env->parallel, {});
  const Device& device = *env->devices[0];
  auto stream = device.MakeStream(host);
  auto from = device.Allocate(host, 64, "test"), to = device.Allocate(host, 64, "test");
  ASSERT_TRUE(stream.ok() && from.ok() && to.ok());
  ASSERT_TRUE((*stream)->BeginCapture(host).ok());
  ASSERT_TRUE((*stream)->CopyPeer(host, to->data(), device, from->data(), 64).ok());
  auto recording = (*stream)->EndCapture(host);
  ASSERT_TRUE(recording.ok());
  EXPECT_TRUE((*stream)->Run(host, **recording).ok() && (*stream)->Synchronize(host).ok());
  EXPECT_EQ(NewMisuses(), "");
  from->Reset();
  EXPECT_FALSE((*stream)->Run(host, **recording).ok());
  EXPECT_NE(NewMisuses().find("is in no living block"), std::string::npos);
}

}  // namespace
}  // namespace msrt::testing

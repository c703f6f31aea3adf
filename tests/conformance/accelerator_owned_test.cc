// Control flow that a device takes whole: such a loop runs there from its first iteration to its
// last, without the host.
#include "core/program/explain.h"
#include "tests/conformance/load_accelerator.h"
#include "tests/conformance/loop_models.h"
#include "tests/conformance/same_runs.h"

namespace msrt::testing {
namespace {

using Flow = ModuleBuilder;
using Runs = std::vector<std::vector<ConstTensor>>;

const std::string kOwner = StrCat(kFastDevice, ",owns=If+Loop+While");

class AcceleratorOwned : public ::testing::Test {
 protected:
  ~AcceleratorOwned() override { EXPECT_EQ(NewMisuses(), ""); }
};

std::shared_ptr<const CompiledModel> Compile(const Module& module, const std::string& options,
                                             const CompileOptions& how = OptionsWithPins({}),
                                             std::string* log = nullptr) {
  auto model = CompileModule(AcceleratedEnvironment(options, log), module, how);
  EXPECT_TRUE(model.ok()) << options << ": " << model.status().message();
  return model.ok() ? *model : nullptr;
}

std::unique_ptr<Session> Reference(const Module& module) {
  return *Session::Create(Compile(module, "", OptionsWithPins({{"", "", "accelerator", true}})), 0,
                          {});
}

const Program& EntryOf(const CompiledModel& model) { return *model.entries[0]->current()->program; }

// Returns the number of control nodes of the entry that a delegate took.
size_t OwnedNodes(const CompiledModel& model) {
  size_t count = 0;
  for (const Step& step : EntryOf(model).steps)
    count += step.kind == StepKind::kKernel && IsControl(model.module.graphs[0].nodes[step.node]);
  return count;
}

size_t ProgramCount(const CompiledModel& model) {
  const auto programs = ProgramsOf(model);
  return static_cast<size_t>(
      std::count_if(programs.begin(), programs.end(), [](const auto& p) { return p != nullptr; }));
}

std::string Explained(const CompiledModel& model) {
  return PlacementText(MakePlacementReport(EntryOf(model)));
}

// Expects that the device takes the one control node of the entry with all that it calls, and that
// the results are those of the host.
void ExpectOwned(const Module& module, const Runs& runs) {
  const std::unique_ptr<Session> expected = Reference(module);
  for (const char* more : {"", ",chain=1", ",delay_us=200,seed=3"}) {
    const auto model = Compile(module, kOwner + more, OptionsWithPins({}, /*strict=*/true));
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(OwnedNodes(*model), 1u) << Explained(*model);
    EXPECT_EQ(ProgramCount(*model), 1u);
    auto session = Session::Create(model, 0, {});
    ASSERT_TRUE(session.ok());
    ExpectSameRuns(**session, *expected, runs, more);
    (*session)->Trim();
    EXPECT_EQ((*session)->memory().device_bytes, 0u);
  }
}

void ExpectRunByHost(const Module& module, const std::string& options, const CompileOptions& how,
                     std::string_view reason, const Runs& runs) {
  const auto model = Compile(module, options, how);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(OwnedNodes(*model), 0u);
  EXPECT_NE(Explained(*model).find(reason), std::string::npos) << Explained(*model);
  EXPECT_GT(ProgramCount(*model), 1u);
  auto session = Session::Create(model, 0, {});
  ASSERT_TRUE(session.ok());
  ExpectSameRuns(**session, *Reference(module), runs, options);
}

// for (i = 0; i < n && go_on; ++i) { x *= 1.5; go_on = max(x) < 50; s += x; }
Module EarlyExit() {
  Flow f(2);
  const ValueId n = f.Input(0), x = f.Input(0, kRow);
  const auto results = f.Control(0, "", "Loop", {n, kNoValue, x, x},
                                 {{"body", GraphRef{1}}, {"carried", int64_t{2}}}, {kRow, kRow});
  for (ValueId r : results) f.Output(0, r);
  f.Input(1);
  f.Input(1, kFlag);
  const ValueId y = f.Input(1, kRow), s = f.Input(1, kRow);
  const ValueId larger = f.Op(1, "Mul", {y, f.Float(1, 1.5f)});
  f.Output(1, f.Op(1, "Less",
                   {f.Op(1, "ReduceMax", {larger}, {{"keepdims", int64_t{0}}}), f.Float(1, 50.f)}));
  f.Output(1, larger);
  f.Output(1, f.Op(1, "Add", {s, larger}));
  return f.module;
}

std::vector<ValueId> If(Flow* f, uint32_t g, ValueId condition, std::vector<ValueId> captured,
                        uint32_t yes, uint32_t no, std::vector<Type> results) {
  captured.insert(captured.begin(), condition);
  return f->Control(g, "", "If", std::move(captured),
                    {{"then_branch", GraphRef{yes}}, {"else_branch", GraphRef{no}}},
                    std::move(results));
}

// n < 2 ? (x + y, y) : (x * y, x)
Module TwoBranches() {
  Flow f(3);
  const ValueId n = f.Input(0), x = f.Input(0, kRow), y = f.Op(0, "Neg", {x});
  const auto results = If(&f, 0, f.Op(0, "Less", {n, f.Number(0, 2)}), {x, y}, 1, 2, {kRow, kRow});
  for (ValueId r : results) f.Output(0, r);
  for (uint32_t g : {1u, 2u}) {
    const ValueId a = f.Input(g, kRow), b = f.Input(g, kRow);
    f.Output(g, f.Op(g, g == 1 ? "Add" : "Mul", {a, b}));
    f.Output(g, g == 1 ? b : a);  // passed on unchanged
  }
  return f.module;
}

// (i, a, b) = (0, x, -x); while (i < n) (i, a, b) = (i + 1, b, i < 2 ? a * 1.5 : a + b)
Module BranchesInALoop() {
  Flow f(5);
  const ValueId n = f.Input(0), x = f.Input(0, kRow);
  const auto results =
      f.While(0, {f.Number(0, 0), x, f.Op(0, "Neg", {x}), n}, 1, 2, {kNumber, kRow, kRow});
  for (ValueId r : results) f.Output(0, r);
  const ValueId i = f.Input(1);
  f.Input(1, kRow);
  f.Input(1, kRow);
  f.Output(1, f.Op(1, "Less", {i, f.Input(1)}));
  const ValueId j = f.Input(2), a = f.Input(2, kRow), b = f.Input(2, kRow);
  f.Input(2);
  f.Output(2, f.Op(2, "Add", {j, f.Number(2, 1)}));
  f.Output(2, b);
  f.Output(2, If(&f, 2, f.Op(2, "Less", {j, f.Number(2, 2)}), {a, b}, 3, 4, {kRow})[0]);
  for (uint32_t g : {3u, 4u}) {
    const ValueId c = f.Input(g, kRow), d = f.Input(g, kRow);
    f.Output(g, g == 3 ? f.Op(g, "Mul", {c, f.Float(g, 1.5f)}) : f.Op(g, "Add", {c, d}));
  }
  return f.module;
}

TEST_F(AcceleratorOwned, RunsAWhileLoop) { ExpectOwned(Powers(), Trips({3, 0, 1, 2, 9, 3}, {64})); }
TEST_F(AcceleratorOwned, RunsALoopThatEndsEarly) {
  ExpectOwned(EarlyExit(), Trips({3, 0, 1, 100, 2}, {64}));
}
TEST_F(AcceleratorOwned, RunsBothBranches) {
  ExpectOwned(TwoBranches(), Trips({0, 5, 1, 2}, {64}));
}
TEST_F(AcceleratorOwned, RunsBranchesInsideALoop) {
  ExpectOwned(BranchesInALoop(), Trips({5, 0, 1, 3, 12}, {64}));
}

// Nodes before and after the loop are on the device too, and one result of the loop is unused.
TEST_F(AcceleratorOwned, RunsALoopAmongOtherNodes) {
  Module module = Powers();
  Graph& graph = module.graphs[0];
  graph.outputs.erase(graph.outputs.begin());
  const auto after = GraphBuilder(&graph).Add("Neg", "after", {graph.outputs[0]});
  ASSERT_TRUE(after.ok());
  graph.outputs[0] = *after;
  graph.nodes[0].outputs[0] = kNoValue;
  ExpectOwned(module, Trips({3, 0, 1}, {64}));
}

// The host runs the same few steps for any number of iterations.
TEST_F(AcceleratorOwned, IterationsDoNotInvolveTheHost) {
  const auto model = Compile(Powers(), kOwner);
  auto session = Session::Create(model, 0, {});
  std::vector<size_t> steps;
  for (int64_t trips : {0, 1, 1000}) {
    RunOptions options;
    options.profile = true;
    ASSERT_TRUE(RunSession(**session, Trips({trips}, {64})[0], options).ok());
    size_t copies = 0;
    for (const StepTime& t : (*session)->profile().steps)
      copies += EntryOf(*model).steps[t.step].kind != StepKind::kKernel;
    EXPECT_EQ(copies, 4u);  // two inputs, two outputs
    steps.push_back((*session)->profile().steps.size());
  }
  EXPECT_EQ(steps, (std::vector<size_t>{5, 5, 5}));
}

TEST_F(AcceleratorOwned, ReportShowsTheOwner) {
  const std::string text = Explained(*Compile(Powers(), kOwner));
  EXPECT_NE(text.find("emulated whole"), std::string::npos) << text;
  EXPECT_NE(text.find("accelerator runs the graphs that it calls too"), std::string::npos) << text;
}

TEST_F(AcceleratorOwned, PlacementChoosesTheCheaperOwner) {
  ExpectRunByHost(Powers(), "speed=0.001,copy_us=1,copy_gbs=1,owns=While", OptionsWithPins({}),
                  "not accelerator: emulated whole", Trips({3, 1}, {64}));
  // Its kernels are no faster than the host's, but the host calls two graphs in every iteration.
  const auto model = Compile(Powers(), "speed=1,launch_us=0,copy_us=0,copy_gbs=1e4,owns=While");
  EXPECT_EQ(OwnedNodes(*model), 1u) << Explained(*model);
}

TEST_F(AcceleratorOwned, UnsupportedOpsInsideAreNotTaken) {
  ExpectRunByHost(Powers(), kOwner + ",unsupported=Mul", OptionsWithPins({}),
                  "not accelerator: the accelerator has no kernel for Mul", Trips({3, 1}, {64}));
  // It does not support the If inside.
  ExpectRunByHost(BranchesInALoop(), StrCat(kFastDevice, ",owns=While"), OptionsWithPins({}),
                  "the accelerator has no kernel for If", Trips({3}, {64}));
}

TEST_F(AcceleratorOwned, SizesThatDependOnDataAreNotTaken) {
  ExpectRunByHost(GrowingPowers(), kOwner, OptionsWithPins({}), "no fixed shape",
                  Trips({3, 0, 1}, {3}));
}

TEST_F(AcceleratorOwned, PinsDecideTheOwner) {
  const std::string slow = "speed=0.001,copy_us=1,copy_gbs=1,owns=While";
  const auto model =
      Compile(Powers(), slow, OptionsWithPins({{"", "msrt.While", "accelerator", false}}));
  EXPECT_EQ(OwnedNodes(*model), 1u) << Explained(*model);
  ExpectRunByHost(Powers(), kOwner, OptionsWithPins({{"", "msrt.While", "accelerator", true}}),
                  "pinned by the user: op:msrt.While!=accelerator", Trips({3}, {64}));
  // The nodes inside run there too, so their pins must allow it.
  ExpectRunByHost(Powers(), kOwner, OptionsWithPins({{"", "Less", "reference", false}}),
                  "pinned by the user: op:Less=reference", Trips({3}, {64}));
}

TEST_F(AcceleratorOwned, FailedCompilationFallsBackToTheHost) {
  ExpectRunByHost(Powers(), kOwner + ",compile_fails=1", OptionsWithPins({}), "failed to compile",
                  Trips({3, 1}, {64}));
  const auto strict = CompileModule(AcceleratedEnvironment(kOwner + ",compile_fails=1"), Powers(),
                                    OptionsWithPins({}, /*strict=*/true));
  ASSERT_FALSE(strict.ok());
  EXPECT_EQ(strict.status().code(), Code::kDelegate);
}

TEST_F(AcceleratorOwned, FailedDeviceFallsBackToTheHost) {
  for (const Module& module : {Powers(), EarlyExit(), BranchesInALoop()}) {
    const std::unique_ptr<Session> expected = Reference(module);
    int placed_again = 0;
    for (const char* kind : {"run_fails_at", "copy_fails_at", "allocate_fails_at", "dies_after"}) {
      for (int at = 0; at < 6; ++at) {
        for (const char* late : {"", ",fails_late=1"}) {
          const std::string options = StrCat(kOwner, ",", kind, "=", at, late);
          std::string log;
          const auto model = Compile(module, options, OptionsWithPins({}), &log);
          ASSERT_NE(model, nullptr);
          auto session = Session::Create(model, 0, {});
          ExpectSameRuns(**session, *expected, Trips({5, 3, 4}, {64}), options);
          if (log.find("again without it") == std::string::npos) continue;
          ++placed_again;
          EXPECT_EQ(OwnedNodes(*model), 0u) << options;
          EXPECT_GT(ProgramCount(*model), 1u) << options;
        }
      }
    }
    EXPECT_GT(placed_again, 20);
  }
}

TEST_F(AcceleratorOwned, StrictModelFailsWithItsDevice) {
  const auto model =
      Compile(Powers(), kOwner + ",run_fails_at=0", OptionsWithPins({}, /*strict=*/true));
  auto session = Session::Create(model, 0, {});
  const auto failed = RunSession(**session, Trips({3}, {64})[0]);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), Code::kDelegate);
  EXPECT_EQ(OwnedNodes(*model), 1u);
}

// Several sessions lose the device at once: the first new placement is used by all.
TEST_F(AcceleratorOwned, SessionsShareTheNewPlacementAfterAFailure) {
  const Module module = BranchesInALoop();
  const auto model = Compile(module, kOwner + ",dies_after=40,delay_us=50");
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      const std::unique_ptr<Session> expected = Reference(module);
      auto session = Session::Create(model, 0, {});
      for (int run = 0; run < 10; ++run)
        ExpectSameRuns(**session, *expected, Trips({5, 0, 3}, {64}), "");
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(ProgramCount(*model), module.graphs.size());
}

// The memory of the loop counts: it runs on the host if it does not fit the device.
TEST_F(AcceleratorOwned, LoopLargerThanTheDeviceRunsOnTheHost) {
  ExpectRunByHost(Powers(), kOwner + ",capacity=600", OptionsWithPins({}),
                  "not accelerator: emulated whole", Trips({3, 1}, {64}));
}

}  // namespace
}  // namespace msrt::testing

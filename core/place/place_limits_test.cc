// What keeps a placement from the fastest: compilers that fail, candidates that may not be used,
// pins, memory that a device does not have.
#include <gtest/gtest.h>

#include <random>

#include "core/bind/binding.h"
#include "core/delegate/fake_delegate.h"
#include "core/program/explain.h"
#include "delegates/builtin.h"
#include "ops/builder.h"

namespace msrt::testing {
namespace {

// A graph, what delegates offer for it, and the program that comes of both.
struct Placed {
  std::unique_ptr<Module> module = std::make_unique<Module>();
  Graph& graph = module->graphs.emplace_back();
  std::shared_ptr<const OfferedGraph> view;
  std::vector<FakeDelegate> fakes;
  std::vector<std::string> warnings;
  Result<std::unique_ptr<Program>> program = Status(Code::kInternal, "not made");

  ValueId Add(std::string_view op, std::string_view name, std::vector<ValueId> inputs) {
    const auto v = GraphBuilder(&graph).Add(op, name, std::move(inputs));
    EXPECT_TRUE(v.ok()) << v.status().message();
    return *v;
  }
  // The graph is whole: delegates can look at it.
  void Show() {
    module->entries = {0};
    auto placed = OfferedGraph::Make(graph, BuiltinEvaluator(), {});
    EXPECT_TRUE(placed.ok()) << placed.status().message();
    view = *std::move(placed);
  }
  void Offer(FakeDelegate* fake, std::vector<uint32_t> nodes, double seconds) {
    fake->offers.push_back(OfferFor(*view, std::move(nodes), seconds));
  }
  void Place(const PlaceOptions& options = {}) {
    std::vector<std::shared_ptr<const Delegate>> delegates;
    for (const FakeDelegate& fake : fakes) delegates.push_back(MakeFake(fake));
    const Log log([this](LogLevel, const std::string& line) { warnings.push_back(line); },
                  LogLevel::kWarning);
    double place_millis = 0;
    program = MakeProgram(view, TestHost(), delegates, options, log, &place_millis);
  }
  std::string Explained() const { return PlanText(PlanOf(**program)); }
  // What a run takes of the first device's memory for tensors.
  size_t ArenaBytes() const {
    BindRequest request;
    for (ValueId v : graph.inputs) request.inputs.push_back(graph.value(v).type);
    const auto binding = Bind(**program, *module, BuiltinEvaluator(), request);
    EXPECT_TRUE(binding.ok()) << binding.status().message();
    return (*binding)->device_arena_bytes.size() < 2 ? 0 : (*binding)->device_arena_bytes[1];
  }
};

// Nodes in a row.
Placed Chain(size_t length) {
  Placed out;
  ValueId v = out.graph.AddInput("x", Type::Tensor(DType::kF32, {1, 8, 6, 6}));
  for (size_t n = 0; n < length; ++n) v = out.Add("Relu", StrCat("n", n), {v});
  out.graph.outputs = {v};
  out.Show();
  return out;
}

// Three of them, on delegates that a test describes, each faster than the one before.
Placed PlaceChain(std::vector<FakeDelegate> fakes, const PlaceOptions& options,
                  bool offered = true) {
  Placed out = Chain(3);
  double seconds = 1e-3;
  for (FakeDelegate& fake : fakes) {
    for (uint32_t n = 0; n < 3 && offered; ++n) out.Offer(&fake, {n}, seconds);
    seconds /= 10;
  }
  out.fakes = std::move(fakes);
  out.Place(options);
  return out;
}

std::vector<std::string> DelegatesOf(const Program& program) {
  std::vector<std::string> names;
  for (const NodeExplanation& e : program.explanations) names.push_back(e.delegate);
  return names;
}

FakeDelegate Named(const char* name) {
  FakeDelegate fake;
  fake.name = name;
  return fake;
}

TEST(PlaceLimits, FailedCompilationsAreLeftOut) {
  FakeDelegate fast = Named("fast");
  fast.compile_failures = 2;
  const Placed placed = PlaceChain({Named("slow"), fast}, {});
  ASSERT_TRUE(placed.program.ok()) << placed.program.status().message();
  EXPECT_EQ(DelegatesOf(**placed.program), (std::vector<std::string>{"slow", "slow", "fast"}));
  EXPECT_NE(PlanText(PlanOf(**placed.program)).find("this one does not compile"),
            std::string::npos);
}

TEST(PlaceLimits, StrictForbidsThat) {
  FakeDelegate fast = Named("fast");
  fast.compile_failures = 1;
  PlaceOptions options;
  options.strict = true;
  const Placed placed = PlaceChain({Named("slow"), fast}, options);
  ASSERT_FALSE(placed.program.ok());
  EXPECT_EQ(placed.program.status().code(), Code::kDelegate);
  EXPECT_NE(placed.program.status().message().find("'n0'"), std::string::npos);
}

TEST(PlaceLimits, PinsAreKept) {
  PlaceOptions options;
  options.pins = {*ParsePin("node:n1*=slow"), *ParsePin("node:n2!=fast")};
  const Placed placed = PlaceChain({Named("slow"), Named("fast")}, options);
  ASSERT_TRUE(placed.program.ok()) << placed.program.status().message();
  EXPECT_EQ(DelegatesOf(**placed.program), (std::vector<std::string>{"fast", "slow", "slow"}));
  EXPECT_NE(PlanText(PlanOf(**placed.program)).find("node:n2!=fast"), std::string::npos);
}

TEST(PlaceLimits, CapacityIsKept) {
  FakeDelegate device = Named("device");
  device.has_device = true;
  device.capacity_bytes = 3000;  // one node's input and output: 2 x 1152 bytes
  const Placed placed = PlaceChain({Named("slow"), device}, {});
  ASSERT_TRUE(placed.program.ok()) << placed.program.status().message();
  const std::vector<std::string> names = DelegatesOf(**placed.program);
  EXPECT_EQ(std::count(names.begin(), names.end(), "device"), 1);
}

TEST(PlaceLimits, NobodyToRunANode) {
  const Placed placed = PlaceChain({Named("empty")}, {}, /*offered=*/false);
  ASSERT_FALSE(placed.program.ok());
  EXPECT_EQ(placed.program.status().code(), Code::kUnsupported);
  EXPECT_NE(placed.program.status().message().find("'n0'"), std::string::npos);
}

// 300 nodes with nine ways each: it is not asked for all of them.
TEST(PlaceLimits, ABrokenCompilerCostsItsDelegate) {
  Placed placed = Chain(300);
  FakeDelegate slow = Named("slow"), fast = Named("fast");
  fast.compile_failures = 1 << 30;
  for (uint32_t n = 0; n < 300; ++n) {
    placed.Offer(&slow, {n}, 1e-2);
    for (int way = 0; way < 9; ++way) {
      fast.offers.push_back(OfferFor(*placed.view, {n}, 1e-4, static_cast<Layout>(way / 3),
                                     static_cast<Layout>(way % 3)));
    }
  }
  placed.fakes = {slow, fast};
  placed.Place();
  ASSERT_TRUE(placed.program.ok()) << placed.program.status().message();
  ASSERT_EQ(placed.warnings.size(), 3u);
  EXPECT_EQ(placed.warnings[0],
            "node 0 'n0' (Relu): delegate fast failed to compile (this one does not compile); "
            "placing again without this candidate");
  EXPECT_EQ(placed.warnings[2],
            "delegate fast failed to compile 3 nodes, the last node 2 'n2' (Relu) (this one does "
            "not compile); "
            "placing again without it");
  const std::vector<std::string> names = DelegatesOf(**placed.program);
  EXPECT_EQ(std::count(names.begin(), names.end(), "slow"), 300);
  EXPECT_NE(placed.Explained().find("failed to compile 3 nodes"), std::string::npos);
}

// Bad luck with some nodes is no reason to do without the delegate for the others.
TEST(PlaceLimits, SomeFailedCompilationsDoNot) {
  Placed placed = Chain(300);
  FakeDelegate slow = Named("slow"), fast = Named("fast");
  fast.compile_fails_every = 20;
  for (uint32_t n = 0; n < 300; ++n) {
    placed.Offer(&slow, {n}, 1e-2);
    placed.Offer(&fast, {n}, 1e-4);
  }
  placed.fakes = {slow, fast};
  placed.Place();
  ASSERT_TRUE(placed.program.ok()) << placed.program.status().message();
  EXPECT_EQ(placed.warnings.size(), 15u);
  const std::vector<std::string> names = DelegatesOf(**placed.program);
  EXPECT_EQ(std::count(names.begin(), names.end(), "fast"), 285);
}

// The same compiler, but there is a node that nobody else can run.
TEST(PlaceLimits, ADelegateThatIsNeededStays) {
  Placed placed = Chain(5);
  FakeDelegate slow = Named("slow"), fast = Named("fast");
  fast.compile_failures = 3;
  for (uint32_t n = 0; n < 5; ++n) {
    if (n < 4) placed.Offer(&slow, {n}, 1e-2);
    placed.Offer(&fast, {n}, 1e-4);
  }
  placed.fakes = {slow, fast};
  placed.Place();
  ASSERT_TRUE(placed.program.ok()) << placed.program.status().message();
  EXPECT_EQ(DelegatesOf(**placed.program),
            (std::vector<std::string>{"slow", "slow", "slow", "fast", "fast"}));
}

// b reads what a makes, and a group of a and c would make it only when b has run.
Placed PlaceGroup(bool alone_too) {
  Placed placed;
  const ValueId x = placed.graph.AddInput("x", Type::Tensor(DType::kF32, {1, 8}));
  const ValueId a = placed.Add("Relu", "a", {x}), b = placed.Add("Relu", "b", {a});
  placed.graph.outputs = {placed.Add("Add", "c", {a, b})};
  placed.Show();
  FakeDelegate slow = Named("slow"), fuser = Named("fuser");
  for (uint32_t n = 0; n < 3; ++n) {
    if (alone_too || n == 1) placed.Offer(&slow, {n}, 1e-3);
  }
  placed.Offer(&fuser, {0, 2}, 1e-6);
  placed.fakes = {slow, fuser};
  placed.Place();
  return placed;
}

TEST(PlaceLimits, AGroupThatCannotBeSaysWhy) {
  const std::string why =
      "node 1 'b' (Relu) needs what node 0 'a' (Relu) makes before node 2 'c' (Add), the last of "
      "the group, has run";
  const Placed beside = PlaceGroup(true);
  ASSERT_TRUE(beside.program.ok()) << beside.program.status().message();
  const std::pair<std::string, std::string> expected{"fuser", StrCat("plain (2 nodes): ", why)};
  EXPECT_EQ((*beside.program)->explanations[0].others.at(0), expected);
  const Placed alone = PlaceGroup(false);
  ASSERT_FALSE(alone.program.ok());
  const std::string message = alone.program.status().message();
  EXPECT_NE(message.find(StrCat(
                "node 0 'a' (Relu) on (f32[1, 8]): no delegate can run it (fuser: ", why, ")")),
            std::string::npos)
      << message;
}

TEST(PlaceLimits, MemoryThatIsMissingIsThatOfADelegate) {
  FakeDelegate device = Named("gadget");
  device.has_device = true;
  device.capacity_bytes = 3000;
  const Placed placed = PlaceChain({device}, {});
  ASSERT_FALSE(placed.program.ok());
  EXPECT_EQ(placed.program.status().code(), Code::kLimitExceeded);
  const std::string message = placed.program.status().message();
  EXPECT_NE(message.find("(device 1 is that of delegate gadget with 3000 bytes free)"),
            std::string::npos)
      << message;
}

constexpr size_t kMiB = size_t{1} << 20;

// Branches in which the device makes something large, the host something small, and the device
// folds them.
Placed PlaceBranches(size_t capacity_bytes) {
  Placed placed;
  Graph& graph = placed.graph;
  const ValueId x = graph.AddInput("x", Type::Tensor(DType::kF32, {1, 1024}));
  const ValueId z = graph.AddInput("z", Type::Tensor(DType::kF32, {1024, 1}));
  for (int i = 0; i < 16; ++i) {
    const ValueId large = placed.Add("Add", StrCat("large", i), {x, z}),
                  small = placed.Add("Relu", StrCat("small", i), {z});
    graph.outputs.push_back(placed.Add("MatMul", StrCat("fold", i), {large, small}));
  }
  placed.Show();
  FakeDelegate host = Named("host"), device = Named("device");
  device.has_device = true;
  device.capacity_bytes = capacity_bytes;
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op == "Relu") placed.Offer(&host, {n}, 1e-6);
    else placed.Offer(&device, {n}, 1e-4);
  }
  placed.fakes = {host, device};
  placed.Place();
  EXPECT_TRUE(placed.program.ok()) << placed.program.status().message();
  return placed;
}

// How many large values the device has been asked for when the host begins.
size_t LargeBeforeTheHost(const Program& program) {
  size_t count = 0;
  for (const Step& step : program.steps) {
    if (step.delegate == "host") break;
    if (step.delegate == "device") ++count;
  }
  return count;
}

TEST(PlaceLimits, WhatADeviceBeginsEarlyFitsItsMemory) {
  const Placed unlimited = PlaceBranches(SIZE_MAX), roomy = PlaceBranches(80 * kMiB),
               tight = PlaceBranches(24 * kMiB);
  EXPECT_EQ(LargeBeforeTheHost(**unlimited.program), 16u);
  EXPECT_EQ(LargeBeforeTheHost(**roomy.program), 16u);
  EXPECT_GT(roomy.ArenaBytes(), 64 * kMiB);
  // Gaps are counted on, so half of the room is for what is live: the large value whose turn it is,
  // and one more.
  EXPECT_EQ(LargeBeforeTheHost(**tight.program), 2u);
  EXPECT_LE(tight.ArenaBytes(), 24 * kMiB);
}

// Branches that are added up. Whatever is placed where and in whichever order it runs, the device
// has the memory for it.
TEST(PlaceLimits, MemoryIsKeptInRandomGraphs) {
  constexpr size_t kTensorBytes = 8 * 6 * 6 * sizeof(float);
  size_t on_device = 0, reordered = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    Placed placed;
    const ValueId x = placed.graph.AddInput("x", Type::Tensor(DType::kF32, {1, 8, 6, 6}));
    ValueId sum = x;
    for (int branch = 0; branch < 48; ++branch) {
      std::vector<ValueId> values = {x};
      const auto pick = [&] { return values[random() % values.size()]; };
      for (int n = 0; n < 2; ++n) {
        if (random() % 3 == 0)
          values.push_back(placed.Add("Identity", "", {values.back()}));  // a view
        else values.push_back(placed.Add("Add", "", {values.back(), pick()}));
      }
      sum = placed.Add("Add", "", {sum, values.back()});
    }
    placed.graph.outputs = {sum};
    placed.Show();
    FakeDelegate host = Named("host"), device = Named("device");
    device.has_device = true;
    device.capacity_bytes = kTensorBytes * (3 + random() % 40);
    for (uint32_t n = 0; n < placed.graph.nodes.size(); ++n) {
      placed.Offer(&host, {n}, 1e-2);
      if (random() % 3 != 0) placed.Offer(&device, {n}, 1e-4);
    }
    placed.fakes = {host, device};
    placed.Place();
    ASSERT_TRUE(placed.program.ok()) << placed.program.status().message();
    EXPECT_LE(placed.ArenaBytes(), device.capacity_bytes) << "seed " << seed;
    uint32_t last = 0;
    bool in_order = true;
    for (const Step& step : (*placed.program)->steps) {
      if (step.kind != StepKind::kKernel) continue;
      in_order &= step.node >= last;
      last = step.node;
      on_device += step.device != 0;
    }
    reordered += !in_order;
  }
  std::printf("%zu nodes on the device, %zu graphs in another order\n", on_device, reordered);
  EXPECT_GT(on_device, 500u);
  EXPECT_GT(reordered, 30u);
}

}  // namespace
}  // namespace msrt::testing

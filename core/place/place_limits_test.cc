// Limits of placement: compilers that fail, candidates that may not be used, pins, missing device
// memory.
#include <gtest/gtest.h>

#include <random>

#include "core/bind/binding.h"
#include "core/delegate/fake_delegate.h"
#include "core/program/explain.h"
#include "delegates/builtin.h"
#include "ops/builder.h"

namespace msrt::testing {
namespace {

// A graph, the delegates' offers for it, and the resulting program.
struct PlacementCase {
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
  // Call when the graph is complete: makes the view that delegates see.
  void Show() {
    module->entries = {0};
    auto offered = OfferedGraph::Make(graph, BuiltinEvaluator(), {});
    EXPECT_TRUE(offered.ok()) << offered.status().message();
    view = *std::move(offered);
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
    UploadedConstants uploads;
    program = MakeProgram(view, TestHost(), delegates, options, log, &uploads, &place_millis);
  }
  std::string Explained() const { return PlacementText(MakePlacementReport(**program)); }
  // The tensor memory that a run uses on the first device.
  size_t ArenaBytes() const {
    BindRequest request;
    for (ValueId v : graph.inputs) request.inputs.push_back(graph.value(v).type);
    const auto binding = Bind(**program, *module, BuiltinEvaluator(), request);
    EXPECT_TRUE(binding.ok()) << binding.status().message();
    return (*binding)->device_arena_bytes.size() < 2 ? 0 : (*binding)->device_arena_bytes[1];
  }
};

// A chain of nodes.
PlacementCase Chain(size_t length) {
  PlacementCase out;
  ValueId v = out.graph.AddInput("x", Type::Tensor(DType::kF32, {1, 8, 6, 6}));
  for (size_t n = 0; n < length; ++n) v = out.Add("Relu", StrCat("n", n), {v});
  out.graph.outputs = {v};
  out.Show();
  return out;
}

// Three nodes in a chain, on the given delegates, each faster than the one before.
PlacementCase PlaceChain(std::vector<FakeDelegate> fakes, const PlaceOptions& options,
                         bool offered = true) {
  PlacementCase out = Chain(3);
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

TEST(PlaceLimits, FailedCandidateIsLeftOut) {
  FakeDelegate fast = Named("fast");
  fast.compile_failures = 2;
  const PlacementCase placed = PlaceChain({Named("slow"), fast}, {});
  ASSERT_TRUE(placed.program.ok()) << placed.program.status().message();
  EXPECT_EQ(DelegatesOf(**placed.program), (std::vector<std::string>{"slow", "slow", "fast"}));
  EXPECT_NE(PlacementText(MakePlacementReport(**placed.program)).find("this one does not compile"),
            std::string::npos);
}

TEST(PlaceLimits, StrictFailsOnCompileError) {
  FakeDelegate fast = Named("fast");
  fast.compile_failures = 1;
  PlaceOptions options;
  options.strict = true;
  const PlacementCase placed = PlaceChain({Named("slow"), fast}, options);
  ASSERT_FALSE(placed.program.ok());
  EXPECT_EQ(placed.program.status().code(), Code::kDelegate);
  EXPECT_NE(placed.program.status().message().find("'n0'"), std::string::npos);
}

TEST(PlaceLimits, PinsAreKept) {
  PlaceOptions options;
  options.pins = {*ParsePin("node:n1*=slow"), *ParsePin("node:n2!=fast")};
  const PlacementCase placed = PlaceChain({Named("slow"), Named("fast")}, options);
  ASSERT_TRUE(placed.program.ok()) << placed.program.status().message();
  EXPECT_EQ(DelegatesOf(**placed.program), (std::vector<std::string>{"fast", "slow", "slow"}));
  EXPECT_NE(PlacementText(MakePlacementReport(**placed.program)).find("node:n2!=fast"),
            std::string::npos);
}

TEST(PlaceLimits, DeviceCapacityIsKept) {
  FakeDelegate device = Named("device");
  device.has_device = true;
  device.capacity_bytes = 3000;  // one node's input and output: 2 x 1152 bytes
  const PlacementCase placed = PlaceChain({Named("slow"), device}, {});
  ASSERT_TRUE(placed.program.ok()) << placed.program.status().message();
  const std::vector<std::string> names = DelegatesOf(**placed.program);
  EXPECT_EQ(std::count(names.begin(), names.end(), "device"), 1);
}

TEST(PlaceLimits, UnsupportedNodeIsAnError) {
  const PlacementCase placed = PlaceChain({Named("empty")}, {}, /*offered=*/false);
  ASSERT_FALSE(placed.program.ok());
  EXPECT_EQ(placed.program.status().code(), Code::kUnsupported);
  EXPECT_NE(placed.program.status().message().find("'n0'"), std::string::npos);
}

// 300 nodes with nine candidates each: the delegate is not asked to compile all of them.
TEST(PlaceLimits, BrokenCompilerDisqualifiesDelegate) {
  PlacementCase placed = Chain(300);
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

// Failures of some nodes do not disqualify the delegate for the others.
TEST(PlaceLimits, OccasionalFailureKeepsDelegate) {
  PlacementCase placed = Chain(300);
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

// The same compiler, but no other delegate can run one of the nodes.
TEST(PlaceLimits, BrokenDelegateStaysIfNeeded) {
  PlacementCase placed = Chain(5);
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

// b reads the output of a, and a group of a and c would make it only after b has run.
PlacementCase PlaceGroup(bool alone_too) {
  PlacementCase placed;
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

TEST(PlaceLimits, ImpossibleGroupHasReason) {
  const std::string why =
      "node 1 'b' (Relu) needs what node 0 'a' (Relu) makes before node 2 'c' (Add), the last of "
      "the group, has run";
  const PlacementCase beside = PlaceGroup(true);
  ASSERT_TRUE(beside.program.ok()) << beside.program.status().message();
  const std::pair<std::string, std::string> expected{"fuser", StrCat("plain (2 nodes): ", why)};
  EXPECT_EQ((*beside.program)->explanations[0].others.at(0), expected);
  const PlacementCase alone = PlaceGroup(false);
  ASSERT_FALSE(alone.program.ok());
  const std::string message = alone.program.status().message();
  EXPECT_NE(message.find(StrCat(
                "node 0 'a' (Relu) on (f32[1, 8]): no delegate can run it (fuser: ", why, ")")),
            std::string::npos)
      << message;
}

TEST(PlaceLimits, MissingMemoryNamesDelegate) {
  FakeDelegate device = Named("gadget");
  device.has_device = true;
  device.capacity_bytes = 3000;
  const PlacementCase placed = PlaceChain({device}, {});
  ASSERT_FALSE(placed.program.ok());
  EXPECT_EQ(placed.program.status().code(), Code::kLimitExceeded);
  const std::string message = placed.program.status().message();
  EXPECT_NE(message.find("(device 1 is gadget with 3000 bytes free)"), std::string::npos)
      << message;
}

constexpr size_t kMiB = size_t{1} << 20;

// Branches in which the device makes something large, the host something small, and the device
// folds them.
PlacementCase PlaceBranches(size_t capacity_bytes) {
  PlacementCase placed;
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

// The number of large values that are issued to the device before the host begins.
size_t LargeBeforeTheHost(const Program& program) {
  size_t count = 0;
  for (const Step& step : program.steps) {
    if (step.delegate == "host") break;
    if (step.delegate == "device") ++count;
  }
  return count;
}

TEST(PlaceLimits, EarlyStepsFitDeviceMemory) {
  const PlacementCase unlimited = PlaceBranches(SIZE_MAX), roomy = PlaceBranches(80 * kMiB),
                      tight = PlaceBranches(24 * kMiB);
  EXPECT_EQ(LargeBeforeTheHost(**unlimited.program), 16u);
  EXPECT_EQ(LargeBeforeTheHost(**roomy.program), 16u);
  EXPECT_GT(roomy.ArenaBytes(), 64 * kMiB);
  // Half of the room is reserved for gaps, so the rest fits the large value whose turn it is and
  // one more.
  EXPECT_EQ(LargeBeforeTheHost(**tight.program), 2u);
  EXPECT_LE(tight.ArenaBytes(), 24 * kMiB);
}

// Branches that are added up. The device has enough memory for every placement and order of steps.
TEST(PlaceLimits, RandomGraphsFitDeviceMemory) {
  constexpr size_t kTensorBytes = 8 * 6 * 6 * sizeof(float);
  size_t on_device = 0, reordered = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    PlacementCase placed;
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
      on_device += step.queue != kHostQueue;
    }
    reordered += !in_order;
  }
  std::printf("%zu nodes on the device, %zu graphs in another order\n", on_device, reordered);
  EXPECT_GT(on_device, 500u);
  EXPECT_GT(reordered, 30u);
}

}  // namespace
}  // namespace msrt::testing

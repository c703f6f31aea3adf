// GPUs as devices, through the emulated driver: what the memory pool does at its limit, what errors
// say, that bad data and lost GPUs reach the caller, and that recordings change nothing.
#include <gtest/gtest.h>

#include "delegates/cuda/gpu.h"
#include "tests/conformance/loop_models.h"
#include "tests/cuda/cuda_environment.h"

namespace msrt::testing {
namespace {

using cuda::EmulatedCuda;
using cuda::Gpu;

std::shared_ptr<const cuda::CudaApi> TablesOf(const EmulatedCuda& emulation) {
  const auto api = std::make_shared<cuda::CudaApi>(emulation.api());
  EXPECT_EQ(api->driver.cuInit(0), CUDA_SUCCESS);
  return api;
}

// y = Softmax(Relu(x W + b)): a product, functions and a reduction.
Module SmallNetwork() {
  SmallGraph g;
  const ValueId x = g.Input("x", DType::kF32, {8, 32});
  const ValueId w = g.graph.AddConstant("w", RandomFloats({32, 16}, 1));
  const ValueId b = g.graph.AddConstant("b", RandomFloats({16}, 2));
  const ValueId product = g.Add("MatMul", "product", {x, w});
  const ValueId sum = g.Add("Add", "sum", {product, b});
  g.graph.outputs = {g.Add("Softmax", "y", {g.Add("Relu", "relu", {sum})})};
  return std::move(g.module);
}

Result<std::unique_ptr<Session>> SessionOn(const EmulatedEnvironment& e, const Module& module,
                                           bool strict) {
  CompileOptions options;
  options.place.delegates = {"cuda"};
  if (!strict) options.place.delegates.push_back("reference");
  options.place.strict = strict;
  options.passes.disabled = {"all"};
  MSRT_ASSIGN_OR_RETURN(auto model, CompileModule(e.environment(), module, options));
  return Session::Create(std::move(model), 0, {});
}

TEST(CudaDevice, LimitOfMemoryIsNamed) {
  EmulatedCuda emulation;
  auto gpu = Gpu::Open(TablesOf(emulation), 0, {.memory_limit = 1000, .keep_bytes = 0});
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  auto block = (*gpu)->Allocate(600);
  ASSERT_TRUE(block.ok()) << block.status().message();
  EXPECT_EQ(*(*gpu)->FreeBytes(), 400u);
  const auto more = (*gpu)->Allocate(500);
  EXPECT_EQ(more.status().code(), Code::kLimitExceeded);
  EXPECT_NE(more.status().message().find("limit of 1000"), std::string::npos);
  (*gpu)->Free(*block, 600);
  EXPECT_EQ(*(*gpu)->FreeBytes(), 1000u);
}

TEST(CudaDevice, FullGpuIsAnErrorThatNamesTheCall) {
  EmulatedCuda emulation({.memory_bytes = size_t{1} << 20});
  auto gpu = Gpu::Open(TablesOf(emulation), 0, {});
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  const auto block = (*gpu)->Allocate(size_t{1} << 30);
  EXPECT_EQ(block.status().code(), Code::kOutOfMemory);
  EXPECT_NE(block.status().message().find("cuMemAllocFromPoolAsync"), std::string::npos)
      << block.status().message();
  EXPECT_NE(block.status().message().find("cuda0"), std::string::npos);
}

TEST(CudaDevice, TrimmedPoolReturnsMemory) {
  EmulatedCuda emulation;
  auto gpu = Gpu::Open(TablesOf(emulation), 0, {});
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  auto block = (*gpu)->Allocate(size_t{1} << 20);
  ASSERT_TRUE(block.ok());
  EXPECT_GE((*gpu)->Report()->used, size_t{1} << 20);
  (*gpu)->Free(*block, size_t{1} << 20);
  ASSERT_TRUE((*gpu)->Trim(0).ok());
  EXPECT_EQ((*gpu)->Report()->used, 0u);
  EXPECT_EQ((*gpu)->Report()->reserved, 0u);
  EXPECT_GE((*gpu)->Report()->peak, size_t{1} << 20);
}

TEST(CudaDevice, NothingIsLeftBehind) {
  EmulatedCuda emulation;
  {
    auto gpu = Gpu::Open(TablesOf(emulation), 0, {});
    ASSERT_TRUE(gpu.ok()) << gpu.status().message();
    ASSERT_TRUE((*gpu)->Function("copy", "copy_32").ok());
  }
  EXPECT_EQ(emulation.LiveObjects(), "");
}

TEST(CudaDevice, RunsAreEqual) {
  EmulatedEnvironment e;
  const Module module = SmallNetwork();
  const ConstTensor x = RandomFloats({8, 32}, 3);
  const auto expected = RunModule(module, {x}, {"reference"});
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  auto session = SessionOn(e, module, true);
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<ConstTensor> first;
  for (int run = 0; run < 4; ++run) {
    const auto got = RunSession(**session, {x});
    ASSERT_TRUE(got.ok()) << got.status().message();
    if (run == 0) first = *got;
    ExpectSameBits(*got, first);
    EXPECT_EQ(Difference((*got)[0], (*expected)[0], 1e-5, 1e-6), "");
  }
  EXPECT_EQ(e.cuda().misuse(), "");
}

// x = x * 0.75 + 0.5, n times.
Module CountedLoop() {
  ModuleBuilder f(2);
  const ValueId n = f.Input(0, kNumber), x = f.Input(0, kRow);
  f.Output(0, f.Control(0, "", "Loop", {n, kNoValue, x},
                        {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {kRow})[0]);
  f.Input(1, kNumber);
  const ValueId go_on = f.Input(1, kFlag), y = f.Input(1, kRow);
  f.Output(1, go_on);
  f.Output(1, f.Op(1, "Add", {f.Op(1, "Mul", {y, f.Float(1, 0.75f)}), f.Float(1, 0.5f)}));
  return f.module;
}

TEST(CudaDevice, LoopsAreReplayedWithoutHostWaits) {
  EmulatedEnvironment e;
  const Module module = CountedLoop();
  const auto on = [&](std::vector<Pin> pins) {
    CompileOptions options = OptionsWithPins(std::move(pins));
    options.place.delegates = {"cuda", "reference"};
    return CompileModule(e.environment(), module, options);
  };
  auto model = on({{"", "Mul", "cuda", false}, {"", "Add", "cuda", false}});
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto session = Session::Create(*model, 0, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  int64_t waits_of_few = 0;
  for (const int64_t trips : {10, 1000}) {
    const std::vector<ConstTensor> inputs = {Number(trips), RandomFloats({64}, 5)};
    const auto expected = RunModule(module, inputs, {"reference"});
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    const auto before = e.cuda().counters();
    const auto got = RunSession(**session, inputs);
    const auto after = e.cuda().counters();
    ASSERT_TRUE(got.ok()) << got.status().message();
    ExpectSameBits(*got, *expected);
    const int64_t waits = after.host_waits - before.host_waits;
    if (trips == 10) waits_of_few = waits;
    else EXPECT_LE(waits, waits_of_few);
    if (trips == 1000) {
      EXPECT_GE(after.graph_launches - before.graph_launches, 990);
      EXPECT_EQ(after.allocations, before.allocations);
    }
  }
  EXPECT_EQ(e.cuda().misuse(), "");
}

TEST(CudaDevice, IndexOutOfRangeIsTheCallersError) {
  EmulatedEnvironment e;
  SmallGraph g;
  const ValueId data = g.Input("data", DType::kF32, {4, 3}),
                rows = g.Input("rows", DType::kI64, {2});
  g.graph.outputs = {g.Add("Gather", "gather", {data, rows})};
  auto session = SessionOn(e, g.module, true);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const ConstTensor x = RandomFloats({4, 3}, 1);
  const int64_t bad[] = {0, 4}, good[] = {0, -1};
  const auto failed = RunSession(**session, {x, ConstTensor::Int64s(bad)});
  EXPECT_EQ(failed.status().code(), Code::kInvalidArgument) << failed.status().message();
  EXPECT_NE(failed.status().message().find("element 1 of the indices"), std::string::npos)
      << failed.status().message();
  // The GPU is fine.
  const auto got = RunSession(**session, {x, ConstTensor::Int64s(good)});
  EXPECT_TRUE(got.ok()) << got.status().message();
}

TEST(CudaDevice, LostGpuIsLeftOut) {
  EmulatedEnvironment e;
  const Module module = SmallNetwork();
  const ConstTensor x = RandomFloats({8, 32}, 3);
  auto session = SessionOn(e, module, false);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const auto before = RunSession(**session, {x});
  ASSERT_TRUE(before.ok()) << before.status().message();
  e.cuda().LoseDevice(0);
  const auto after = RunSession(**session, {x});
  ASSERT_TRUE(after.ok()) << after.status().message();
  EXPECT_EQ(Difference((*after)[0], (*before)[0], 1e-5, 1e-6), "");
}

TEST(CudaDevice, StrictModelNamesTheLostGpu) {
  EmulatedEnvironment e;
  auto session = SessionOn(e, SmallNetwork(), true);
  ASSERT_TRUE(session.ok()) << session.status().message();
  e.cuda().LoseDevice(0);
  const auto got = RunSession(**session, {RandomFloats({8, 32}, 3)});
  EXPECT_EQ(got.status().code(), Code::kDelegate);
  EXPECT_NE(got.status().message().find("cuda0"), std::string::npos) << got.status().message();
}

}  // namespace
}  // namespace msrt::testing

// Whole networks: every delegate against reference, files against modules, open shapes, and the
// memory plan against its lower bound.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/model/write.h"
#include "ops/validate.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/zoo.h"

namespace msrt::testing {
namespace {

struct Network {
  const char* name;
  zoo::Options options;
  Dims input;  // of the first input; a second one (a mask) is all ones
};

// Small enough for plain loops; the same code builds the full size.
const Network kSmall[] = {
    {"lenet", {}, {2, 1, 28, 28}},
    {"resnet18", {.image = 64, .width = 16}, {1, 3, 64, 64}},
    {"resnet50", {.image = 64, .width = 16}, {1, 3, 64, 64}},
    {"mobilenetv2", {.image = 64}, {1, 3, 64, 64}},
    {"unet", {.image = 64, .width = 8}, {1, 4, 64, 64}},
    {"deeplab", {.image = 64, .width = 8}, {1, 4, 64, 64}},
    {"bert", {.width = 64, .classes = 200, .layers = 2, .heads = 4}, {2, 17}},
    {"gpt2", {.width = 64, .classes = 200, .layers = 2, .heads = 4}, {2, 17}},
};

ConstTensor RandomFloats(const Dims& dims, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(dims.elements()));
  for (float& v : values) v = normal(random);
  return ConstTensor::Floats(dims, values);
}

std::vector<ConstTensor> InputsFor(const Module& module, const Dims& dims, uint32_t seed = 1) {
  std::vector<ConstTensor> inputs;
  std::mt19937 random(seed);
  for (ValueId v : module.main().inputs) {
    if (module.main().value(v).type.dtype == DType::kF32) {
      inputs.push_back(RandomFloats(dims, seed));
      continue;
    }
    std::vector<int64_t> values(static_cast<size_t>(dims.elements()), 1);
    for (int64_t& x : values) x = inputs.empty() ? static_cast<int64_t>(random() % 100) : x;
    inputs.push_back(ConstTensor::Of<int64_t>(DType::kI64, dims, values));
  }
  return inputs;
}

// Returns the largest difference as a fraction of the expected range.
double RangeError(const ConstTensor& got, const ConstTensor& expected) {
  double low = INFINITY, high = -INFINITY, worst = 0;
  EXPECT_EQ(got.dims, expected.dims);
  for (size_t i = 0; i < expected.As<float>().size(); ++i) {
    const double e = expected.As<float>()[i], g = got.As<float>()[i];
    EXPECT_TRUE(std::isfinite(e));
    low = std::min(low, e);
    high = std::max(high, e);
    worst = std::max(worst, std::isfinite(g) ? std::abs(g - e) : INFINITY);
  }
  return worst / (high - low);
}

class Zoo : public ::testing::TestWithParam<Network> {};

TEST_P(Zoo, EveryDelegateAndEveryPassAgreesWithPlainLoops) {
  const Network& n = GetParam();
  auto module = zoo::Build(n.name, n.options);
  ASSERT_TRUE(module.ok()) << module.status().message();
  const auto inputs = InputsFor(*module, n.input);
  const auto expected = RunModule(*module, inputs, {"reference"}, {"all"});
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  const auto all = RunModule(*module, inputs);
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_LT(RangeError((*all)[0], (*expected)[0]), 1e-4);
  for (const PassInfo& pass : AllPasses()) {
    const auto got = RunModule(*module, inputs, {}, {std::string(pass.name)});
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_LT(RangeError((*got)[0], (*expected)[0]), 1e-4) << "without " << pass.name;
  }
}

// A file returns the same bits as the module it was written from, at several batch sizes, mapped or
// copied.
TEST_P(Zoo, FileEqualsModule) {
  const Network& n = GetParam();
  auto module = zoo::Build(n.name, n.options);
  ASSERT_TRUE(module.ok());
  const std::string path = ::testing::TempDir() + "/" + n.name + ".msrt";
  ASSERT_TRUE(WriteModel(*module, path, DefaultIo()).ok());
  auto built = CompileModule(TestEnvironment(), *module, {});
  ASSERT_TRUE(built.ok());
  auto session = Session::Create(*built, 0, {});
  for (bool copy : {false, true}) {
    CompileOptions options;
    options.load_by_copy = copy;
    auto model = CompileFile(TestEnvironment(), path, options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    auto loaded = Session::Create(*model, 0, {});
    for (int64_t batch : {1, 3}) {
      Dims dims = n.input;
      dims[0] = batch;
      const auto inputs = InputsFor(*module, dims, static_cast<uint32_t>(batch));
      const auto a = RunSession(**session, inputs), b = RunSession(**loaded, inputs);
      ASSERT_TRUE(a.ok() && b.ok()) << b.status().message();
      const auto x = (*a)[0].As<float>(), y = (*b)[0].As<float>();
      EXPECT_TRUE(std::equal(x.begin(), x.end(), y.begin(), y.end()));
    }
  }
  std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(All, Zoo, ::testing::ValuesIn(kSmall),
                         [](const auto& row) { return std::string(row.param.name); });

// Before placement a load neither reads nor copies weights: after all passes every large constant
// is still in the mapped file.
TEST(ZooLoad, WeightsStayInTheMappedFile) {
  auto module = zoo::Build("resnet18", {.image = 64});
  ASSERT_TRUE(module.ok());
  const PassContext context{.evaluator = TestEnvironment()->evaluator};
  ASSERT_TRUE(RunPasses(context, {}, &*module).ok());
  const std::string path = ::testing::TempDir() + "/mapped.msrt";
  ASSERT_TRUE(WriteModel(*module, path, DefaultIo()).ok());
  auto bytes = DefaultIo()->MapFile(path);
  ASSERT_TRUE(bytes.ok());
  auto loaded = Load(*bytes);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  ASSERT_TRUE(Validate(&*loaded).ok());
  ASSERT_TRUE(RunPasses(context, {}, &*loaded).ok());
  const std::byte* begin = bytes->data.data();
  int large = 0;
  for (uint32_t v = 0; v < loaded->main().value_count(); ++v) {
    const auto& constant = loaded->main().value(ValueId(v)).constant;
    if (constant == nullptr || constant->bytes.size() < 4096) continue;
    ++large;
    EXPECT_TRUE(constant->bytes.data() >= begin &&
                constant->bytes.data() < begin + bytes->data.size());
  }
  EXPECT_GE(large, 20);
  std::remove(path.c_str());
}

// One file with open height and width, at sizes that share no factor.
TEST(ZooShapes, OneModelRunsAtSeveralImageSizes) {
  auto module = zoo::Build("unet", {.open_image = true, .width = 4});
  ASSERT_TRUE(module.ok());
  auto model = CompileModule(TestEnvironment(), *module, {});
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto session = Session::Create(*model, 0, {});
  for (const Dims& dims : {Dims{1, 4, 32, 48}, Dims{2, 4, 16, 80}, Dims{1, 4, 64, 16}}) {
    const auto inputs = InputsFor(*module, dims);
    const auto got = RunSession(**session, inputs);
    ASSERT_TRUE(got.ok()) << got.status().message();
    const auto expected = RunModule(*module, inputs, {"reference"}, {"all"});
    ASSERT_TRUE(expected.ok());
    EXPECT_LT(RangeError((*got)[0], (*expected)[0]), 1e-4);
  }
  // 4 levels halve the image: 24 does not divide by 16, so the Concat of a skip and its upsampled
  // partner cannot work.
  const auto bad = RunSession(**session, InputsFor(*module, {1, 4, 24, 24}));
  EXPECT_FALSE(bad.ok());
  EXPECT_NE(bad.status().message().find("Concat"), std::string::npos) << bad.status().message();
}

// The memory plan at the networks' usual sizes; weights are small because only shapes matter here.
TEST(ZooMemory, ArenaStaysNearItsLowerBound) {
  const Network networks[] = {
      {"resnet50", {}, {1, 3, 224, 224}},
      {"mobilenetv2", {}, {1, 3, 224, 224}},
      {"unet", {.width = 16}, {1, 4, 256, 256}},
      {"bert", {.width = 128, .classes = 100, .layers = 4, .heads = 4}, {1, 128}},
  };
  for (const Network& n : networks) {
    auto module = zoo::Build(n.name, n.options);
    ASSERT_TRUE(module.ok());
    auto model = CompileModule(TestEnvironment(), *std::move(module), {});
    ASSERT_TRUE(model.ok()) << model.status().message();
    BindRequest request;
    const Graph& graph = (*model)->module.main();
    for (ValueId v : graph.inputs)
      request.inputs.push_back(Type::Tensor(graph.value(v).type.dtype, n.input));
    const auto binding = BindingFor(**model, *(*model)->entries[0]->current(), request);
    ASSERT_TRUE(binding.ok()) << binding.status().message();
    const double ratio = static_cast<double>((*binding)->arena_bytes) /
                         static_cast<double>((*binding)->lower_bound_bytes);
    std::printf("%-12s arena %8.3f MB, %.4f of its lower bound\n", n.name,
                static_cast<double>((*binding)->arena_bytes) * 1e-6, ratio);
    EXPECT_LE(ratio, 1.05) << n.name;
  }
}

}  // namespace
}  // namespace msrt::testing

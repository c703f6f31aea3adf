// Files with packed weights: a load on the machine they were made for packs nothing, any other
// machine packs, and the results are the same bits, also for files made elsewhere or damaged.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/model/write.h"
#include "delegates/builtin.h"
#include "ops/builder.h"
#include "tests/conformance/pipeline.h"
#include "tests/conformance/small_graph.h"
#include "tools/msconvert/zoo.h"

namespace msrt::testing {
namespace {

// Small enough that gates do not saturate.
ConstTensor SmallFloats(const Dims& dims, uint32_t seed) { return RandomFloats(dims, seed, 0.3f); }

Module OneInput(const Dims& dims) {
  Module module;
  module.entries = {0};
  module.graphs.emplace_back().AddInput("x", Type::Tensor(DType::kF32, dims));
  return module;
}

// Two directions, so that a form holds both.
Module Recurrent(const char* op, int64_t gates) {
  constexpr int64_t kInputs = 24, kHidden = 20;
  Module module = OneInput({7, kUnknownDim, kInputs});
  Graph& graph = module.main();
  GraphBuilder builder(&graph);
  const ValueId w = graph.AddConstant("w", SmallFloats({2, gates * kHidden, kInputs}, 1));
  const ValueId r = graph.AddConstant("r", SmallFloats({2, gates * kHidden, kHidden}, 2));
  const ValueId b = graph.AddConstant("b", SmallFloats({2, 2 * gates * kHidden}, 3));
  graph.outputs = {
      *builder.Add(op, "rnn", {graph.inputs[0], w, r, b},
                   {{"direction", std::string("bidirectional")}, {"hidden_size", kHidden}})};
  return module;
}

// One square matrix, plain and transposed: two packed forms of one constant.
Module Tied() {
  Module module = OneInput({kUnknownDim, 48});
  Graph& graph = module.main();
  GraphBuilder builder(&graph);
  const ValueId w = graph.AddConstant("w", SmallFloats({48, 48}, 1));
  const ValueId y = *builder.Add("Gemm", "straight", {graph.inputs[0], w}, {});
  graph.outputs = {*builder.Add("Gemm", "transposed", {y, w}, {{"transB", int64_t{1}}})};
  return module;
}

Module Upsampling() {
  Module module = OneInput({kUnknownDim, 64, 28, 28});
  Graph& graph = module.main();
  GraphBuilder builder(&graph);
  const ValueId w = graph.AddConstant("w", SmallFloats({64, 32, 2, 2}, 1));
  graph.outputs = {*builder.Add("ConvTranspose", "up", {graph.inputs[0], w},
                                {{"strides", std::vector<int64_t>{2, 2}}})};
  return module;
}

struct Example {
  const char* name;
  Module (*make)();
  Dims input;  // of every input
};
const Example kExamples[] = {
    {"lenet", [] { return *zoo::Build("lenet", {}); }, {1, 1, 28, 28}},
    {"resnet18",
     [] { return *zoo::Build("resnet18", {.image = 64, .width = 16}); },
     {1, 3, 64, 64}},
    {"mobilenetv2", [] { return *zoo::Build("mobilenetv2", {.image = 64}); }, {1, 3, 64, 64}},
    {"bert",
     [] { return *zoo::Build("bert", {.width = 64, .classes = 200, .layers = 2, .heads = 4}); },
     {1, 17}},
    {"lstm", [] { return Recurrent("LSTM", 4); }, {7, 1, 24}},
    {"gru", [] { return Recurrent("GRU", 3); }, {7, 1, 24}},
    {"tied", Tied, {1, 48}},
    {"upsampling", Upsampling, {1, 64, 28, 28}},
};

std::vector<ConstTensor> InputsFor(const Module& module, const Dims& dims) {
  std::vector<ConstTensor> inputs;
  for (ValueId v : module.main().inputs) {
    const bool tokens = module.main().value(v).type.dtype == DType::kI64;
    const std::vector<int64_t> ones(static_cast<size_t>(dims.elements()), 1);
    inputs.push_back(tokens ? ConstTensor::Of<int64_t>(DType::kI64, dims, ones)
                            : SmallFloats(dims, 7));
  }
  return inputs;
}

bool HasOneDnn() {
  const auto names = DelegateNames();
  return std::find(names.begin(), names.end(), "onednn") != names.end();
}

struct Loaded {
  std::shared_ptr<const CompiledModel> model;
  std::vector<ConstTensor> outputs;
  std::string log;
  size_t packed_bytes() const { return model->entries[0]->current()->program->packed_bytes; }
  size_t found_bytes() const { return model->forms == nullptr ? 0 : model->forms->found_bytes(); }
};

// Writes, loads and runs.
Loaded LoadAndRun(const Module& module, const ModelExtras& extras, const Dims& input) {
  Loaded loaded;
  auto file = SerializeModel(module, {.extras = &extras});
  EXPECT_TRUE(file.ok()) << file.status().message();
  auto owner = std::make_shared<std::vector<std::byte>>(*std::move(file));
  const std::span<const std::byte> bytes(*owner);
  auto environment = TestEnvironment();
  environment->log =
      Log([&](LogLevel, const std::string& line) { loaded.log += line; }, LogLevel::kWarning);
  auto model = CompileBytes(environment, {bytes, owner}, {});
  EXPECT_TRUE(model.ok()) << model.status().message();
  loaded.model = *model;
  auto session = Session::Create(loaded.model, 0, {});
  EXPECT_TRUE(session.ok()) << session.status().message();
  auto outputs = RunSession(**session, InputsFor(module, input));
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  loaded.outputs = *std::move(outputs);
  return loaded;
}

bool SameBits(const std::vector<ConstTensor>& a, const std::vector<ConstTensor>& b) {
  return std::ranges::equal(a, b, [](const ConstTensor& x, const ConstTensor& y) {
    return x.dims == y.dims && std::ranges::equal(x.bytes, y.bytes);
  });
}

// The same as msconvert --target native.
std::pair<Module, ModelExtras> Native(const Module& module) {
  CompileOptions options;
  options.keep_packed = true;
  const auto model = CompileModule(TestEnvironment(), module, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return {(*model)->module, NativeExtras(**model)};
}

class NativeFile : public ::testing::TestWithParam<Example> {
 protected:
  void SetUp() override {
    if (!HasOneDnn()) GTEST_SKIP() << "a build without a delegate that packs";
    const Module module = GetParam().make();
    portable_ = LoadAndRun(module, {}, GetParam().input);
    ASSERT_GT(portable_.packed_bytes(), 0u);
    EXPECT_EQ(portable_.model->forms, nullptr);
    std::tie(module_, extras_) = Native(module);
    ASSERT_FALSE(extras_.packed.empty());
  }
  // Changes every form, then loads and runs.
  Loaded Changed(const std::function<void(PackedWeight*)>& change) {
    ModelExtras changed = extras_;
    for (PackedWeight& packed : changed.packed) change(&packed);
    return LoadAndRun(module_, changed, GetParam().input);
  }
  void ExpectPackedAgain(const Loaded& loaded) const {
    EXPECT_EQ(loaded.packed_bytes(), portable_.packed_bytes());
    EXPECT_EQ(loaded.found_bytes(), 0u);
    EXPECT_TRUE(SameBits(loaded.outputs, portable_.outputs));
  }

  Loaded portable_;
  Module module_;
  ModelExtras extras_;
};
INSTANTIATE_TEST_SUITE_P(All, NativeFile, ::testing::ValuesIn(kExamples),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_P(NativeFile, PacksNothingAndReturnsTheSameBits) {
  const Loaded native = LoadAndRun(module_, extras_, GetParam().input);
  EXPECT_EQ(native.packed_bytes(), 0u);
  EXPECT_EQ(native.found_bytes(), portable_.packed_bytes());
  EXPECT_EQ(native.log, "");
  EXPECT_TRUE(SameBits(native.outputs, portable_.outputs));
}

TEST_P(NativeFile, IsPortableToOtherMachines) {
  ExpectPackedAgain(Changed([](PackedWeight* p) { p->id.isa = "avx9"; }));
  ExpectPackedAgain(Changed([](PackedWeight* p) { p->id.version += 1; }));
  ExpectPackedAgain(Changed([](PackedWeight* p) { p->id.block += 1; }));
  ExpectPackedAgain(Changed([](PackedWeight* p) { p->id.kernel += "?"; }));
}

TEST_P(NativeFile, FormsOfAWrongSizeAreNotRead) {
  const auto resized = [](PackedWeight* p, size_t bytes) {
    auto owner = std::make_shared<std::vector<std::byte>>(bytes);
    p->data = {std::span<const std::byte>(*owner), owner};
  };
  for (const int64_t change : {int64_t{-4}, int64_t{4}, INT64_MIN}) {
    const Loaded loaded = Changed([&](PackedWeight* p) {
      resized(p, change == INT64_MIN
                     ? 0
                     : static_cast<size_t>(static_cast<int64_t>(p->data.data.size()) + change));
    });
    ExpectPackedAgain(loaded);
    EXPECT_NE(loaded.log.find("it is packed again"), std::string::npos) << loaded.log;
  }
}

// The contents of packed forms are not checked: kernels use them only as numbers.
TEST_P(NativeFile, WrongContentsOnlyChangeTheResults) {
  const Loaded loaded = Changed([](PackedWeight* p) {
    auto owner =
        std::make_shared<std::vector<std::byte>>(p->data.data.size(), std::byte{0xFF});  // NaN
    p->data = {std::span<const std::byte>(*owner), owner};
  });
  EXPECT_EQ(loaded.packed_bytes(), 0u);
  EXPECT_FALSE(SameBits(loaded.outputs, portable_.outputs));
}

TEST(NativeFiles, TiedMatrixHasAFormForEachUse) {
  if (!HasOneDnn()) GTEST_SKIP() << "a build without a delegate that packs";
  const auto [module, extras] = Native(Tied());
  ASSERT_EQ(extras.packed.size(), 2u);
  EXPECT_EQ(extras.packed[0].weight.bytes.data(), extras.packed[1].weight.bytes.data());
  EXPECT_NE(extras.packed[0].id, extras.packed[1].id);
}

// Registered kernels have the same interface for packed forms.
struct PackingKernel {
  static inline int packed = 0, found = 0;
  static msrt_status Pack(void*, const msrt_host_api* host, const msrt_node_view* node,
                          void** out) {
    msrt_packing packing = MSRT_INIT(msrt_packing);
    packing.kernel = "doubled";
    packing.version = 3;
    const void* constant = node->inputs[1].constant;
    *out =
        const_cast<void*>(host->find_packed == nullptr
                              ? nullptr
                              : host->find_packed(host->host, constant, &packing, sizeof(float)));
    if (*out != nullptr) return ++found, MSRT_OK;
    static float doubled;
    doubled = 2 * *static_cast<const float*>(constant);
    *out = &doubled;
    ++packed;
    return host->keep_packed == nullptr
               ? MSRT_OK
               : host->keep_packed(host->host, constant, &packing, &doubled, sizeof doubled);
  }
  static msrt_status Run(void*, const void* packed_form, const msrt_kernel_args* args) {
    const auto* x = static_cast<const float*>(args->inputs[0]);
    for (int64_t i = 0; i < 4; ++i)
      static_cast<float*>(args->outputs[0])[i] = x[i] * *static_cast<const float*>(packed_form);
    return MSRT_OK;
  }
};

TEST(NativeFiles, RegisteredKernelsFindTheirPackedForms) {
  msrt_kernel_desc desc = MSRT_INIT(msrt_kernel_desc);
  desc.plugin_abi = MSRT_PLUGIN_ABI;
  desc.op = "Mul";
  desc.name = "packing mul";
  desc.seconds = [](void*, const msrt_host_api*, const msrt_node_view*) { return 0.0; };
  desc.pack = PackingKernel::Pack;
  desc.packed_destroy = [](void*, void*) {};
  desc.run = PackingKernel::Run;
  const auto kernel = RegisteredKernel::Make(desc, nullptr);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  auto environment = TestEnvironment();
  ASSERT_TRUE(Join({.kernels = {*kernel}}, environment.get()).ok());
  Module module = OneInput({4});
  GraphBuilder builder(&module.main());
  const ValueId factor =
      module.main().AddConstant("factor", ConstTensor::Floats({1}, std::vector<float>{3}));
  module.main().outputs = {*builder.Add("Mul", "mul", {module.main().inputs[0], factor}, {})};
  CompileOptions options;
  options.keep_packed = true;
  const auto made = CompileModule(environment, module, options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const ModelExtras extras = NativeExtras(**made);
  ASSERT_EQ(extras.packed.size(), 1u);
  EXPECT_EQ(PackingKernel::packed, 1);
  auto file = SerializeModel((*made)->module, {.extras = &extras});
  ASSERT_TRUE(file.ok());
  const auto owner = std::make_shared<std::vector<std::byte>>(*std::move(file));
  const auto loaded = CompileBytes(environment, {std::span<const std::byte>(*owner), owner}, {});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(PackingKernel::packed, 1);
  EXPECT_EQ(PackingKernel::found, 1);
  auto session = Session::Create(*loaded, 0, {});
  const auto outputs =
      RunSession(**session, {ConstTensor::Floats({4}, std::vector<float>{1, 2, 3, 4})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_EQ((*outputs)[0].As<float>()[3], 24);
}

}  // namespace
}  // namespace msrt::testing

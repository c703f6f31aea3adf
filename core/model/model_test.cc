// Round trips of modules through files: nothing is lost, weights are not copied, and old files stay
// readable.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "core/base/thread_clock.h"
#include "core/model/load.h"
#include "core/model/sample_models.h"
#include "core/model/write.h"
#include "ops/validate.h"

namespace msrt {
namespace {

std::string TestFile(const std::string& name) {
  return testing::TempDir() + "model_test_" + std::to_string(getpid()) + "_" + name;
}

void ExpectSameTensor(const ConstTensor& a, const ConstTensor& b) {
  EXPECT_EQ(StrCat(a.type()), StrCat(b.type()));
  EXPECT_TRUE(std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end()));
}

bool SameBits(double a, double b) {
  return std::signbit(a) == std::signbit(b) && (a == b || (std::isnan(a) && std::isnan(b)));
}

void ExpectSameAttr(const Attr& a, const Attr& b) {
  EXPECT_EQ(a.name, b.name);
  ASSERT_EQ(KindOf(a.value), KindOf(b.value)) << a.name;
  if (KindOf(a.value) == AttrKind::kTensor)
    return ExpectSameTensor(std::get<ConstTensor>(a.value), std::get<ConstTensor>(b.value));
  if (KindOf(a.value) == AttrKind::kFloat) {
    EXPECT_TRUE(SameBits(std::get<double>(a.value), std::get<double>(b.value))) << a.name;
  }
  EXPECT_EQ(StrCat(a.value), StrCat(b.value));
}

void ExpectSameNode(const Node& a, const Node& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.domain, b.domain);
  EXPECT_EQ(a.op, b.op);
  EXPECT_EQ(a.version, b.version);
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  ASSERT_EQ(a.attrs.size(), b.attrs.size());
  for (auto i = a.attrs.begin(), k = b.attrs.begin(); i != a.attrs.end(); ++i, ++k)
    ExpectSameAttr(*i, *k);
}

void ExpectSameGraph(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  ASSERT_EQ(a.value_count(), b.value_count());
  for (uint32_t v = 0; v < a.value_count(); ++v) {
    const Value &x = a.value(ValueId(v)), &y = b.value(ValueId(v));
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.type, y.type) << x.name;
    ASSERT_EQ(x.constant != nullptr, y.constant != nullptr) << x.name;
    if (x.constant != nullptr) ExpectSameTensor(*x.constant, *y.constant);
  }
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (size_t n = 0; n < a.nodes.size(); ++n) ExpectSameNode(a.nodes[n], b.nodes[n]);
}

void ExpectSameModule(const Module& a, const Module& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.producer, b.producer);
  EXPECT_EQ(a.metadata, b.metadata);
  EXPECT_EQ(a.symbols, b.symbols);
  EXPECT_EQ(a.entries, b.entries);
  ASSERT_EQ(a.states.size(), b.states.size());
  for (size_t i = 0; i < a.states.size(); ++i) {
    EXPECT_EQ(a.states[i].name, b.states[i].name);
    EXPECT_EQ(a.states[i].type, b.states[i].type);
    ExpectSameTensor(a.states[i].initial, b.states[i].initial);
  }
  ASSERT_EQ(a.graphs.size(), b.graphs.size());
  for (size_t g = 0; g < a.graphs.size(); ++g) ExpectSameGraph(a.graphs[g], b.graphs[g]);
}

class RoundTrip : public testing::TestWithParam<bool> {};

TEST_P(RoundTrip, KeepsEverything) {
  const std::string path = TestFile(GetParam() ? "copy" : "map");
  const Module module = EverythingModule();
  const ModelExtras extras = EverythingExtras();
  const Status written = WriteModel(module, path, DefaultIo(), {.extras = &extras});
  ASSERT_TRUE(written.ok()) << written.message();
  ModelExtras loaded_extras;
  auto loaded = LoadFile(DefaultIo(), path, {.by_copy = GetParam()}, &loaded_extras);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  ExpectSameModule(module, *loaded);
  ASSERT_EQ(loaded_extras.packed.size(), 1u);
  EXPECT_EQ(loaded_extras.packed[0].id, extras.packed[0].id);
  EXPECT_EQ(loaded_extras.packed[0].weight.bytes.data(),
            loaded->graphs[0].value(ValueId(3)).constant->bytes.data());
  EXPECT_TRUE(std::ranges::equal(loaded_extras.packed[0].data.data, extras.packed[0].data.data));
  ASSERT_EQ(loaded_extras.programs.size(), 1u);
  EXPECT_EQ(loaded_extras.programs[0].key, extras.programs[0].key);
  EXPECT_TRUE(
      std::ranges::equal(loaded_extras.programs[0].data.data, extras.programs[0].data.data));
  const Status valid = Validate(&*loaded);
  EXPECT_TRUE(valid.ok()) << valid.message();
  std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(ByMapAndByCopy, RoundTrip, testing::Bool());

TEST(Write, IsDeterministicAndStable) {
  const ModelExtras extras = EverythingExtras();
  auto first = SerializeModel(EverythingModule(), {.extras = &extras}),
       second = SerializeModel(EverythingModule(), {.extras = &extras});
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(*first, *second);
  ModelExtras loaded_extras;
  auto loaded = Load(AlignedCopy(*first), {}, &loaded_extras);
  ASSERT_TRUE(loaded.ok());
  auto again = SerializeModel(*loaded, {.extras = &loaded_extras});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*first, *again);
}

TEST(Write, FileAndBytesAgree) {
  const std::string path = TestFile("file");
  Module module = ChainModule(9);
  // Too large to be gathered, so that it becomes a separate piece.
  const std::vector<float> large(40000, 1.5f);
  module.graphs[0].AddConstant("large", ConstTensor::Floats({200, 200}, large));
  ASSERT_TRUE(WriteModel(module, path, DefaultIo()).ok());
  auto bytes = SerializeModel(module);
  auto file = DefaultIo()->ReadFile(path, DefaultAllocator());
  ASSERT_TRUE(bytes.ok() && file.ok());
  EXPECT_TRUE(std::ranges::equal(*bytes, file->data));
  std::remove(path.c_str());
}

TEST(Write, StoresIdenticalWeightsOnce) {
  auto file = SerializeModel(EverythingModule());
  ASSERT_TRUE(file.ok());
  auto module = Load(AlignedCopy(*file));
  ASSERT_TRUE(module.ok());
  const Graph& g = module->graphs[0];
  EXPECT_EQ(g.value(ValueId(3)).constant.get(),
            g.value(ValueId(4)).constant.get());  // same type, same bytes
  EXPECT_EQ(g.value(ValueId(3)).constant->bytes.data(),
            g.value(ValueId(5)).constant->bytes.data());  // other dims, same bytes
}

TEST(Write, RefusesModulesThatCouldNotBeRead) {
  Module no_entry = KnownOpsModule();
  no_entry.entries.clear();
  EXPECT_EQ(SerializeModel(no_entry).status().code(), Code::kInvalidModel);
  Module bad_order = KnownOpsModule();
  std::swap(bad_order.main().nodes[0], bad_order.main().nodes[1]);
  EXPECT_EQ(SerializeModel(bad_order).status().code(), Code::kInvalidModel);
  Module short_weight = KnownOpsModule();
  auto weight = *short_weight.main().value(ValueId(1)).constant;
  weight.bytes = weight.bytes.first(8);
  short_weight.main().value(ValueId(1)).constant = std::make_shared<const ConstTensor>(weight);
  EXPECT_NE(SerializeModel(short_weight).status().message().find("8 bytes of data"),
            std::string::npos);
  Limits tight;
  tight.max_nodes = 4;
  EXPECT_EQ(SerializeModel(KnownOpsModule(), {.limits = tight}).status().code(),
            Code::kLimitExceeded);
}

TEST(Write, StoresTheVersionOfKnownOps) {
  Module module = KnownOpsModule();
  ASSERT_TRUE(Validate(&module).ok());
  auto file = SerializeModel(module);
  ASSERT_TRUE(file.ok());
  auto loaded = Load(AlignedCopy(*file));
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->main().nodes[0].version, 23);
  EXPECT_EQ(loaded->main().nodes[3].version, 1);
}

void ExpectInside(std::span<const std::byte> part, const Bytes& whole) {
  EXPECT_NE(part.data(), nullptr);
  EXPECT_GE(part.data(), whole.data.data());
  EXPECT_LE(part.data() + part.size(), whole.data.data() + whole.data.size());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(part.data()) % kDataAlignment, 0u);
}

TEST(Load, DoesNotCopyWeights) {
  const std::string path = TestFile("weights");
  ASSERT_TRUE(WriteModel(EverythingModule(), path, DefaultIo()).ok());
  auto mapping = DefaultIo()->MapFile(path);
  ASSERT_TRUE(mapping.ok());
  Bytes bytes = *mapping;
  *mapping = {};  // from here on only `bytes` and the module keep the mapping alive
  auto module = Load(bytes);
  ASSERT_TRUE(module.ok());
  const std::weak_ptr<const void> owner = bytes.owner;
  for (const Graph& g : module->graphs) {
    for (uint32_t v = 0; v < g.value_count(); ++v) {
      if (const auto& constant = g.value(ValueId(v)).constant) ExpectInside(constant->bytes, bytes);
    }
  }
  for (const StateSlot& s : module->states) ExpectInside(s.initial.bytes, bytes);
  bytes = {};
  EXPECT_FALSE(owner.expired());
  *module = Module();
  EXPECT_TRUE(owner.expired());
  std::remove(path.c_str());
}

TEST(Load, AcceptsUnalignedBytes) {
  auto file = SerializeModel(KnownOpsModule());
  ASSERT_TRUE(file.ok());
  std::vector<std::byte> shifted(file->size() + 65);
  for (size_t shift : {1, 3, 8, 64, 65}) {
    std::copy(file->begin(), file->end(), shifted.begin() + static_cast<std::ptrdiff_t>(shift));
    auto module = Load({{shifted.data() + shift, file->size()}, nullptr});
    ASSERT_TRUE(module.ok()) << module.status().message();
    EXPECT_EQ(Print(*module), Print(KnownOpsModule()));
  }
}

TEST(Load, ErrorNamesTheFile) {
  const std::string path = TestFile("broken");
  std::ofstream(path)
      << "not a model, but long enough to have a header: ........................................";
  auto module = LoadFile(DefaultIo(), path);
  EXPECT_EQ(module.status().code(), Code::kInvalidModel);
  EXPECT_NE(module.status().message().find(path), std::string::npos);
  EXPECT_EQ(LoadFile(DefaultIo(), path + ".absent").status().code(), Code::kNotFound);
  std::ofstream(path).close();
  EXPECT_EQ(LoadFile(DefaultIo(), path).status().code(), Code::kInvalidModel);
  std::remove(path.c_str());
}

TEST(Load, DigestsFindDamagedWeights) {
  auto file = SerializeModel(EverythingModule());
  ASSERT_TRUE(file.ok());
  auto model = Verify(AlignedCopy(*file));
  ASSERT_TRUE(model.ok());
  EXPECT_TRUE(VerifyDigests(*model).ok());
  file->back() ^= std::byte{1};
  model = Verify(AlignedCopy(*file));
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(VerifyDigests(*model).code(), Code::kInvalidModel);
}

// Files of every released version. They must always load; those of the current minor version must
// also be written identically. MSRT_UPDATE_GOLDEN=1 creates missing files; existing ones are never
// changed.
class Golden : public testing::TestWithParam<const char*> {};

Module GoldenModule(const std::string& name) {
  return name == "v1.1-everything" ? EverythingModule()
         : name == "v1.1-known"    ? KnownOpsModule()
                                   : ChainModule(12);
}

TEST_P(Golden, StillLoads) {
  const std::string base = std::string(MSRT_TEST_DATA "/golden/") + GetParam();
  if (std::getenv("MSRT_UPDATE_GOLDEN") != nullptr && !std::ifstream(base + ".msrt").good()) {
    ASSERT_TRUE(WriteModel(GoldenModule(GetParam()), base + ".msrt", DefaultIo()).ok());
    std::ofstream(base + ".txt") << Print(GoldenModule(GetParam()));
  }
  auto bytes = DefaultIo()->MapFile(base + ".msrt");
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  auto module = Load(*bytes);
  ASSERT_TRUE(module.ok()) << module.status().message();
  std::stringstream text;
  text << std::ifstream(base + ".txt").rdbuf();
  EXPECT_EQ(Print(*module), text.str());
  auto again = SerializeModel(*module);
  ASSERT_TRUE(again.ok());
  const auto header = DecodeHeader(bytes->data);
  ASSERT_TRUE(header.ok());
  EXPECT_TRUE(header->minor != kFormatMinor || std::ranges::equal(*again, bytes->data));
  auto reloaded = Load(AlignedCopy(*again));
  ASSERT_TRUE(reloaded.ok()) << reloaded.status().message();
  EXPECT_EQ(Print(*reloaded), text.str());
  const Status valid = Validate(&*module);
  EXPECT_TRUE(valid.ok()) << valid.message();
}

INSTANTIATE_TEST_SUITE_P(Files, Golden,
                         testing::Values("v1.0-everything", "v1.0-known", "v1.0-chain",
                                         "v1.1-everything", "v1.1-known"));

// Version 1.0 had no roles.
TEST(Load, StatesOfOlderFilesAreCaches) {
  auto module = LoadFile(DefaultIo(), MSRT_TEST_DATA "/golden/v1.0-everything.msrt");
  ASSERT_TRUE(module.ok()) << module.status().message();
  ASSERT_EQ(module->states.size(), 2u);
  for (const StateSlot& s : module->states) EXPECT_EQ(s.role, StateRole::kCache) << s.name;
}

TEST(Load, RolesSurviveTheWriter) {
  auto file = SerializeModel(EverythingModule());
  ASSERT_TRUE(file.ok());
  auto module = Load(AlignedCopy(*file));
  ASSERT_TRUE(module.ok()) << module.status().message();
  std::vector<StateRole> roles;
  for (const StateSlot& s : module->states) roles.push_back(s.role);
  EXPECT_EQ(roles,
            (std::vector<StateRole>{StateRole::kCache, StateRole::kCache, StateRole::kParameter,
                                    StateRole::kOptimizer, StateRole::kStatistic}));
  EXPECT_NE(Print(*module).find("state 'momentum': f32[2] optimizer"), std::string::npos);
}

// The minimum of several runs: other load on the machine can only add time.
template <typename Work>
double LeastMilliseconds(const Work& work) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 9; ++i) {
    const double start = ThreadCpuMillis();
    work();
    least = std::min(least, ThreadCpuMillis() - start);
  }
  return least;
}

double LoadMilliseconds(const Bytes& file) {
  return LeastMilliseconds([&] {
    auto module = Load(file);
    MSRT_CHECK(module.ok());
    const Status valid = Validate(&*module);
    EXPECT_TRUE(valid.ok()) << valid.message();
  });
}

// Machines differ in speed, so the yardstick is a copy of the module, which allocates what loading
// allocates. Loading takes about four copies.
TEST(Load, IsLinearAndFast) {
  auto small = SerializeModel(ChainModule(1000)), large = SerializeModel(ChainModule(10000));
  ASSERT_TRUE(small.ok() && large.ok());
  const Bytes small_file = AlignedCopy(*small);
  auto module = Load(small_file);
  ASSERT_TRUE(module.ok()) << module.status().message();
  const double small_ms = LoadMilliseconds(small_file),
               large_ms = LoadMilliseconds(AlignedCopy(*large)),
               copy_ms = LeastMilliseconds([&] { Module copy = *module; });
  RecordProperty("ms_per_1000_nodes", std::to_string(large_ms / 10));
  std::printf("verify + load + validate: %.3f ms for 1,000 nodes (%.1f copies), %.3f for 10,000\n",
              small_ms, small_ms / copy_ms, large_ms);
  EXPECT_LT(large_ms, 25 * small_ms);
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(small_ms, 7 * copy_ms);
#endif
}

}  // namespace
}  // namespace msrt

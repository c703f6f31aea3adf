// Forms of a file are found only by constant and complete packing; forms that kernels pack are
// collected once, for constants of the module.
#include "core/delegate/packed_forms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/delegate/host.h"

namespace msrt {
namespace {

ConstTensor Numbers(size_t count, float first) {
  std::vector<float> values(count);
  for (float& v : values) v = first++;
  return ConstTensor::Floats({static_cast<int64_t>(count)}, values);
}

msrt_packing Packing(const char* kernel, const char* isa = "avx2", uint32_t version = 1,
                     uint32_t block = 8) {
  msrt_packing packing = MSRT_INIT(msrt_packing);
  packing.kernel = kernel;
  packing.isa = isa;
  packing.version = version;
  packing.block = block;
  return packing;
}

class PackedFormsTest : public ::testing::Test {
 protected:
  // Makes a host with the packed forms of a file.
  void Bring(std::vector<PackedWeight> from_file) {
    const Log log([this](LogLevel, const std::string& line) { lines_ += line; },
                  LogLevel::kWarning);
    Use(std::make_shared<PackedForms>(std::move(from_file), log));
  }
  void Use(std::shared_ptr<PackedForms> forms) {
    forms_ = forms;
    host_ = std::make_unique<Host>(DefaultAllocator(), MakeSerial(), Log(), std::nullopt,
                                   std::move(forms));
  }
  const void* Find(const ConstTensor& constant, const msrt_packing& packing, size_t bytes) const {
    return host_->api()->find_packed(host_->api()->host, constant.bytes.data(), &packing, bytes);
  }
  msrt_status Keep(const ConstTensor& constant, const msrt_packing& packing,
                   const ConstTensor& data) const {
    return host_->api()->keep_packed(host_->api()->host, constant.bytes.data(), &packing,
                                     data.bytes.data(), data.bytes.size());
  }

  std::shared_ptr<PackedForms> forms_;
  std::unique_ptr<Host> host_;
  std::string lines_;
};

TEST_F(PackedFormsTest, FindsOnlyExactName) {
  const ConstTensor weight = Numbers(4, 1), other = Numbers(4, 1), packed = Numbers(8, 10);
  Bring({{weight, {"gemm", "avx2", 8, 1}, {packed.bytes, packed.owner}}});
  EXPECT_EQ(Find(weight, Packing("gemm"), 32), packed.bytes.data());
  EXPECT_EQ(forms_->found_bytes(), 32u);
  EXPECT_EQ(Find(other, Packing("gemm"), 32), nullptr);
  EXPECT_EQ(Find(weight, Packing("gem"), 32), nullptr);
  EXPECT_EQ(Find(weight, Packing("gemm", "avx512_core"), 32), nullptr);
  EXPECT_EQ(Find(weight, Packing("gemm", nullptr), 32), nullptr);
  EXPECT_EQ(Find(weight, Packing("gemm", "avx2", 2), 32), nullptr);
  EXPECT_EQ(Find(weight, Packing("gemm", "avx2", 1, 16), 32), nullptr);
  EXPECT_EQ(lines_, "");
  EXPECT_EQ(forms_->found_bytes(), 32u);
}

TEST_F(PackedFormsTest, FormOfWrongSizeIsNotUsed) {
  const ConstTensor weight = Numbers(4, 1), packed = Numbers(8, 10);
  Bring({{weight, {"gemm", "avx2", 8, 1}, {packed.bytes, packed.owner}}});
  for (const size_t bytes : {size_t{0}, size_t{28}, size_t{36}, SIZE_MAX}) {
    lines_.clear();
    EXPECT_EQ(Find(weight, Packing("gemm"), bytes), nullptr);
    EXPECT_NE(lines_.find("has 32 bytes"), std::string::npos) << lines_;
  }
}

TEST_F(PackedFormsTest, FirstOfTwoEqualNamesIsUsed) {
  const ConstTensor weight = Numbers(4, 1), first = Numbers(8, 10), second = Numbers(8, 20);
  const PackingId id{"gemm", "avx2", 8, 1};
  Bring({{weight, id, {first.bytes, first.owner}}, {weight, id, {second.bytes, second.owner}}});
  EXPECT_EQ(Find(weight, Packing("gemm"), 32), first.bytes.data());
}

TEST_F(PackedFormsTest, CollectsEachFormOfModuleConstantsOnce) {
  Module module;
  module.entries = {0};
  Graph& graph = module.graphs.emplace_back();
  const ConstTensor weight = Numbers(4, 1), made_by_a_pass = Numbers(4, 2);
  graph.AddConstant("w", weight);
  Use(PackedForms::ForKeeping());
  ConstTensor packed = Numbers(8, 10);
  EXPECT_EQ(Keep(weight, Packing("gemm"), packed), MSRT_OK);
  EXPECT_EQ(Keep(weight, Packing("gemm"), Numbers(8, 30)), MSRT_OK);
  EXPECT_EQ(Keep(weight, Packing("conv", nullptr), packed), MSRT_OK);
  EXPECT_EQ(Keep(made_by_a_pass, Packing("gemm"), packed), MSRT_OK);
  EXPECT_EQ(Find(weight, Packing("gemm"), 32), nullptr)
      << "what is being collected is for the file alone";
  const ConstTensor wanted = Numbers(8, 10);
  packed = ConstTensor();  // the copy remains
  const std::vector<PackedWeight> kept = forms_->KeptForms(module);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].id, (PackingId{"gemm", "avx2", 8, 1}));
  EXPECT_EQ(kept[1].id, (PackingId{"conv", "", 8, 1}));
  for (const PackedWeight& k : kept) {
    EXPECT_EQ(k.weight.bytes.data(), weight.bytes.data());
    EXPECT_TRUE(std::ranges::equal(k.data.data, wanted.bytes));
  }
  const PackedSummary summary = Summarize(kept);
  EXPECT_EQ(summary.weights, 2u);
  EXPECT_EQ(summary.bytes, 64u);
  EXPECT_EQ(summary.isas, std::vector<std::string>{"avx2"});
}

TEST_F(PackedFormsTest, FormsOfFileCollectNothing) {
  Module module;
  module.entries = {0};
  const ConstTensor weight = Numbers(4, 1), packed = Numbers(8, 10);
  module.graphs.emplace_back().AddConstant("w", weight);
  Bring({});
  EXPECT_EQ(Keep(weight, Packing("gemm"), packed), MSRT_OK);
  EXPECT_TRUE(forms_->KeptForms(module).empty());
  EXPECT_EQ(Host(DefaultAllocator(), MakeSerial(), Log()).api()->find_packed, nullptr);
}

}  // namespace
}  // namespace msrt

// Every op row on the reference delegate: the result against its oracle, inference with unknown
// dims, pieces against the whole (iteration spaces), and bad attributes. The same rows on every
// other delegate are in delegate_cases_test.cc.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "delegates/reference/kernel.h"
#include "ops/infer.h"
#include "ops/registry.h"
#include "ops/resolve_space.h"
#include "tests/conformance/case_node.h"

namespace msrt::testing {
namespace {

// Runs one box of the node's space on only the inputs that it declares, and compares with the same
// part of the whole result.
void CheckPiece(CaseNode& node, const ResolvedSpace& space, const std::vector<ConstTensor>& whole,
                const Box& box) {
  SCOPED_TRACE(StrCat("box ", box));
  auto piece = CutPiece(node, space, box);
  ASSERT_TRUE(piece.ok()) << piece.status().message();
  auto got = piece->node.Run(2);
  ASSERT_TRUE(got.ok()) << got.status().message();
  for (size_t o = 0; o < whole.size(); ++o) {
    ASSERT_EQ(Difference((*got)[o], CutOut(whole[o], piece->outputs[o]), 0, 0), "")
        << "output " << o << " box " << StrCat(piece->outputs[o]);
  }
}

class OpCases : public ::testing::TestWithParam<size_t> {
 protected:
  const OpCase& c() const { return AllOpCases()[GetParam()]; }
};

TEST_P(OpCases, ReferenceAgreesWithOracle) {
  CaseNode node = NodeOf(c());
  ASSERT_NE(node.def, nullptr) << "op " << c().op << " has no entry";
  const Status status = node.Infer();
  ASSERT_TRUE(status.ok()) << status.message();
  auto got = node.Run(2);
  ASSERT_TRUE(got.ok()) << got.status().message();
  for (size_t o = 0; o < got->size(); ++o) {
    if (!c().expected[o]) continue;
    EXPECT_EQ(Difference((*got)[o], *c().expected[o], c().rtol, c().atol), "")
        << "output " << o << ", oracle " << c().oracle;
  }
}

// With any subset of dims unknown, inference must accept the node and never contradict the actual
// result.
TEST_P(OpCases, InferToleratesUnknownDims) {
  std::mt19937 random(7);
  for (int round = 0; round < 8; ++round) {
    CaseNode node = NodeOf(c());
    ASSERT_NE(node.def, nullptr);
    OpView view = node.View();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.present[i] || c().inputs[i].constant) continue;
      node.constants[i] = nullptr;
      for (int64_t& d : node.input_types[i].dims) {
        if (round == 0 || random() % 2 == 0)
          d = random() % 2 == 0 ? kUnknownDim : SymbolDim(random() % 3);
      }
      if (round == 7) node.input_types[i] = Type::UnrankedTensor(node.input_types[i].dtype);
    }
    const Status status = InferTypes(*node.def, view, node.output_types);
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t o = 0; o < c().expected.size(); ++o) {
      if (!c().expected[o]) continue;
      Type inferred = node.output_types[o];
      for (int64_t& d : inferred.dims) {
        if (IsSymbol(d)) d = kUnknownDim;
      }
      const auto merged = MergeTypes(inferred, c().expected[o]->type());
      EXPECT_TRUE(merged.ok()) << merged.status().message() << " in round " << round;
    }
  }
}

TEST_P(OpCases, PiecesEqualTheWhole) {
  CaseNode node = NodeOf(c());
  ASSERT_NE(node.def, nullptr);
  if (node.def->space == nullptr) return;
  ASSERT_TRUE(node.Infer().ok());
  auto whole = node.Run(2);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  const OpView view = node.View();
  const auto resolved = ResolveSpace(*node.def, view);
  if (resolved.status().code() == Code::kUnsupported)
    return;  // this form cannot be split; EveryOpIsCovered checks that another can
  ASSERT_TRUE(resolved.ok()) << resolved.status().message();
  const IterationSpace& space = resolved->axes;
  CheckPiece(node, *resolved, *whole, space.Whole());
  std::mt19937 random(static_cast<uint32_t>(GetParam()));
  for (int round = 0; round < 20 && !HasFatalFailure(); ++round) {
    Box box = space.Whole();
    for (int a = 0; a < space.rank(); ++a) {
      const bool cut = space[a].kind == AxisKind::kParallel || space[a].kind == AxisKind::kWindow;
      if (!cut || space[a].extent == 0) continue;
      const auto x = static_cast<int64_t>(random() % static_cast<uint64_t>(space[a].extent));
      const auto y = static_cast<int64_t>(random() % static_cast<uint64_t>(space[a].extent));
      box[a] = {std::min(x, y), std::max(x, y) + 1};
    }
    CheckPiece(node, *resolved, *whole, box);
  }
}

// Each attribute with a range, one step outside it, must be refused with a message that names the
// attribute.
TEST_P(OpCases, AttributesOutOfRangeAreRefused) {
  CaseNode base = NodeOf(c());
  ASSERT_NE(base.def, nullptr);
  for (const AttrDef& def : base.def->attrs) {
    AttrValue bad;
    if (def.kind == AttrKind::kInt && def.min_int != std::numeric_limits<int64_t>::min())
      bad = def.min_int - 1;
    else if (def.kind == AttrKind::kInts && def.min_int != std::numeric_limits<int64_t>::min())
      bad = std::vector<int64_t>{def.min_int - 1};
    else if (def.kind == AttrKind::kString && !def.choices.empty()) bad = std::string("nonsense");
    else if (def.kind == AttrKind::kFloat) bad = std::nan("");
    else
      bad = def.kind == AttrKind::kDType ? AttrValue(int64_t{1})
                                         : AttrValue(DType::kF32);  // wrong kind
    CaseNode node = NodeOf(c());
    node.attrs.Set(def.name, bad);
    const Status status = node.Infer();
    EXPECT_EQ(status.code(), Code::kInvalidModel) << def.name;
    EXPECT_NE(status.message().find(def.name), std::string::npos) << status.message();
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpCases, ::testing::Range(size_t{0}, AllOpCases().size()),
                         [](const auto& row) { return AllOpCases()[row.param].name; });

TEST(OpTable, EveryOpIsCovered) {
  std::map<const OpDef*, int> cases, cuttable;
  for (const OpCase& c : AllOpCases()) {
    CaseNode node = NodeOf(c);
    if (node.def == nullptr || !node.Infer().ok()) continue;
    ++cases[node.def];
    if (ResolveSpace(*node.def, node.View()).ok()) ++cuttable[node.def];
  }
  ForEachOp([&](const OpDef& def) {
    if (def.effect == Effect::kState || def.effect == Effect::kComm ||
        (def.traits & kRunByExecutor) != 0)
      return;  // run by core/run; tested there
    EXPECT_GT(cases[&def], 0) << def.name << " has no case";
    EXPECT_NE(reference::FindKernel(def.domain, def.name), nullptr)
        << def.name << " has no reference kernel";
    if (def.space != nullptr) {
      EXPECT_GT(cuttable[&def], 0) << def.name << " has an iteration space that no case cuts";
    }
  });
}

}  // namespace
}  // namespace msrt::testing

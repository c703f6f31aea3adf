// Every op row on the reference delegate: the result against its oracle, inference with unknown
// dims, pieces against the whole (iteration spaces), and bad attributes. The same rows on every
// other delegate are in delegate_cases_test.cc.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>

#include "core/base/parallel_for.h"
#include "delegates/reference/kernel.h"
#include "ops/infer.h"
#include "ops/registry.h"
#include "tests/conformance/op_case.h"

namespace msrt::testing {
namespace {

// A node with concrete inputs, ready to infer and run; owns the data of its OpView.
struct CaseNode {
  const OpDef* def;
  AttrList attrs;
  std::vector<ConstTensor> inputs;
  std::vector<bool> present;
  std::vector<Type> input_types, output_types;
  std::vector<const Type*> input_pointers, output_pointers;
  std::vector<const ConstTensor*> constants;

  OpView View() {
    input_pointers.clear(), output_pointers.clear(), constants.clear();
    for (size_t i = 0; i < inputs.size(); ++i) {
      input_pointers.push_back(present[i] ? &input_types[i] : nullptr);
      constants.push_back(present[i] ? &inputs[i] : nullptr);
    }
    for (const Type& t : output_types) output_pointers.push_back(&t);
    return OpView(def->domain, def->name, "case", &attrs, def->attrs, input_pointers,
                  output_pointers, constants);
  }
  Status Infer() {
    const OpView view = View();
    MSRT_RETURN_IF_ERROR(InferTypes(*def, view, output_types));
    return def->sizes == nullptr ? OkStatus() : SizeFromData(*def, view, output_types);
  }
  Result<std::vector<ConstTensor>> Run() {
    const OpView view = View();
    std::vector<TensorView> in, out;
    for (size_t i = 0; i < inputs.size(); ++i) {
      TensorView v;
      if (present[i])
        v = {inputs[i].dtype, inputs[i].dims, Layout::kPlain,
             const_cast<std::byte*>(inputs[i].bytes.data())};
      in.push_back(v);
    }
    // Outputs start as a pattern, which reveals elements that the kernel does not write.
    std::vector<ConstTensor> results;
    for (const Type& t : output_types) {
      results.push_back(
          ConstTensor::Copy(t.dtype, t.dims, std::vector<std::byte>(t.bytes(), std::byte{0xA5})));
      out.push_back(
          {t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(results.back().bytes.data())});
    }
    const auto kernel = reference::FindKernel(def->domain, def->name);
    if (kernel == nullptr) return NotFound("no reference kernel for ", def->name);
    auto parallel = MakeThreadPool(2);
    MSRT_RETURN_IF_ERROR(kernel({view, in, out, *parallel}));
    return results;
  }
};

CaseNode NodeOf(const OpCase& c) {
  CaseNode n;
  n.def = FindOp(c.domain, c.op);
  n.attrs = c.attrs;
  for (const CaseInput& i : c.inputs) {
    n.present.push_back(i.tensor.has_value());
    n.inputs.push_back(i.tensor.value_or(ConstTensor{}));
    n.input_types.push_back(n.inputs.back().type());
  }
  n.output_types.resize(c.expected.size());
  return n;
}

ConstTensor CutOut(const ConstTensor& t, const Box& box) {
  const Dims dims = box.dims();
  const size_t width = static_cast<size_t>(BitsOf(t.dtype)) / 8;
  std::vector<std::byte> bytes(BytesOf(t.dtype, dims.elements()));
  const Dims from = RowMajorStrides(t.dims), to = RowMajorStrides(dims);
  for (int64_t i = 0; i < dims.elements(); ++i) {
    int64_t source = 0, rest = i;
    for (int d = 0; d < dims.rank(); ++d) {
      source += (box[d].begin + rest / to[d]) * from[d];
      rest %= to[d];
    }
    std::memcpy(bytes.data() + static_cast<size_t>(i) * width,
                t.bytes.data() + static_cast<size_t>(source) * width, width);
  }
  return ConstTensor::Copy(t.dtype, dims, bytes);
}

// Runs one box of the node's space on only the inputs that it declares, and compares with the same
// part of the whole result.
void CheckPiece(CaseNode& node, const std::vector<ConstTensor>& whole, const Box& box) {
  SCOPED_TRACE(StrCat("box ", box));
  const OpView view = node.View();
  const SpaceDef& space = *node.def->space;
  std::vector<Box> in(node.inputs.size()), out(whole.size());
  Status status = space.operands(view, box, in);
  if (status.ok()) status = space.results(view, box, out);
  ASSERT_TRUE(status.ok()) << status.message();

  CaseNode piece;
  piece.def = node.def;
  piece.attrs = node.attrs;
  piece.present = node.present;
  for (size_t i = 0; i < in.size(); ++i) {
    ConstTensor t;
    if (node.present[i]) {
      ASSERT_EQ(in[i].rank(), node.inputs[i].dims.rank()) << "operand " << i;
      for (int d = 0; d < in[i].rank(); ++d) {
        ASSERT_TRUE((Interval{0, node.inputs[i].dims[d]}.Contains(in[i][d])))
            << "operand " << i << " box " << StrCat(in[i]);
      }
      t = CutOut(node.inputs[i], in[i]);
    }
    piece.inputs.push_back(t);
    piece.input_types.push_back(t.type());
  }
  piece.output_types.resize(whole.size());
  if (space.localize != nullptr) {
    status = space.localize(view, box, in, out, &piece.attrs);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  status = piece.Infer();
  ASSERT_TRUE(status.ok()) << status.message();
  auto got = piece.Run();
  ASSERT_TRUE(got.ok()) << got.status().message();
  for (size_t o = 0; o < whole.size(); ++o) {
    ASSERT_EQ(Difference((*got)[o], CutOut(whole[o], out[o]), 0, 0), "")
        << "output " << o << " box " << StrCat(out[o]);
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
  auto got = node.Run();
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
  auto whole = node.Run();
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  IterationSpace space;
  const Status status = node.def->space->axes(node.View(), &space);
  if (status.code() == Code::kUnsupported)
    return;  // this form cannot be split; EveryOpIsCovered checks that another can
  ASSERT_TRUE(status.ok()) << status.message();
  CheckPiece(node, *whole, space.Whole());
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
    CheckPiece(node, *whole, box);
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
    IterationSpace space;
    if (node.def->space != nullptr && node.def->space->axes(node.View(), &space).ok())
      ++cuttable[node.def];
  }
  ForEachOp([&](const OpDef& def) {
    if (def.effect == Effect::kState || (def.traits & kRunByExecutor) != 0)
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

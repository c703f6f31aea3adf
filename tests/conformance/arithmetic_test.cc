// The names of arithmetics are promises. Every op row, with its values and with others, is computed
// by every candidate of the built-in delegates that names its arithmetic, in every layout that it
// offers and on one to three threads; whole, and cut along the axes that may be cut, at multiples
// of its granule. Elements that were computed under one name must be equal bit for bit, also on
// lesser instruction sets.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "core/abi/msrt_plugin.h"
#include "delegates/cpu/cpu.h"
#include "delegates/reference/reference.h"
#include "ops/resolve_space.h"
#include "tests/conformance/case_node.h"
#include "tests/conformance/delegate_checks.h"
#include "tests/conformance/small_graph.h"
#if defined(MSRT_HAVE_ONEDNN)
#include "delegates/onednn/onednn.h"
#endif

namespace msrt::testing {
namespace {

using Delegates = std::vector<std::unique_ptr<sdk::Delegate>>;

Delegates BuiltIn() {
  Delegates delegates;
  delegates.push_back(MakeReferenceDelegate());
  delegates.push_back(MakeCpuDelegate());
#if defined(MSRT_HAVE_ONEDNN)
  delegates.push_back(MakeOneDnnDelegate(ReferenceEvaluator()));
#endif
  return delegates;
}

template <typename T>
bool AreSameFloats(const ConstTensor& a, const ConstTensor& b, size_t* where) {
  const auto x = a.As<T>(), y = b.As<T>();
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::memcmp(&x[i], &y[i], sizeof(T)) == 0) continue;
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    *where = i;
    return false;
  }
  return true;
}

// Describes the first element whose bits differ; empty: none. All NaNs are equal.
std::string BitDifference(const ConstTensor& a, const ConstTensor& b) {
  if (!(a.dims == b.dims)) return StrCat("dims ", a.dims, " and ", b.dims);
  size_t i = 0;
  if (a.dtype == DType::kF32) {
    if (AreSameFloats<float>(a, b, &i)) return {};
    return StrCat("element ", i, ": ", a.As<float>()[i], " and ", b.As<float>()[i]);
  }
  if (a.dtype == DType::kF64) {
    if (AreSameFloats<double>(a, b, &i)) return {};
    return StrCat("element ", i, ": ", a.As<double>()[i], " and ", b.As<double>()[i]);
  }
  return Difference(a, b, 0, 0);
}

// Other values of the same signs and about the same size, so that they remain valid for the op.
// Zeros of both signs and, with `special`, infinities and NaN are among them.
ConstTensor OtherValues(const ConstTensor& t, std::mt19937* random, bool special) {
  if (t.dtype != DType::kF32) return t;
  std::uniform_real_distribution<float> factor(0.6f, 1.4f);
  std::vector<float> values(t.As<float>().begin(), t.As<float>().end());
  for (float& v : values) {
    v *= factor(*random);
    if (!special) continue;
    const uint32_t draw = (*random)() % 16;
    if (draw < 2) v = draw == 0 ? 0.0f : -0.0f;
    if ((*random)() % 200 == 0) v = std::nanf("");
    if ((*random)() % 200 == 0) v = v < 0 ? -HUGE_VALF : HUGE_VALF;
  }
  return ConstTensor::Floats(t.dims, values);
}

using Results = std::vector<ConstTensor>;

// Runs every named candidate for a node; calls visit(candidate, who, results). With `threads` 0 on
// one, two and three threads, otherwise on so many.
template <typename Visit>
void ForEachPromise(const Delegates& delegates, const OneNode& node, int threads, Visit visit) {
  static const std::unique_ptr<ParallelFor> teams[] = {MakeSerial(), MakeThreadPool(2),
                                                       MakeThreadPool(3)};
  for (const auto& delegate : delegates) {
    sdk::QueryResult query;
    delegate->Query(node, &query);
    for (const sdk::Candidate& c : query.candidates) {
      if (c.arithmetic.empty()) continue;
      auto kernel = CompileNode(*delegate, node, c);
      ASSERT_TRUE(kernel.ok()) << kernel.status().message();
      auto bound = (*kernel)->Bind(node.op());
      ASSERT_TRUE(bound.ok()) << bound.status().message();
      for (const auto& team : teams) {
        if (threads != 0 && team->threads() != threads) continue;
        auto got = RunBound(**bound, node, c, std::nullopt, *team);
        if (!got.ok()) continue;  // the data is refused
        visit(c,
              StrCat(delegate->name(), " ", c.algorithm, " ", c.output_layouts[0], " on ",
                     team->threads(), " threads"),
              *got);
      }
    }
  }
}

struct Promise {
  std::string who;
  Results results;
  Dims granule;
};

class Checker {
 public:
  explicit Checker(Delegates delegates) : delegates_(std::move(delegates)) {}

  // Checks one set of values of a row, whole and in `cuts` pieces. `constant`: all inputs but the
  // first and residuals are constants.
  void Check(const OpCase& c, bool constant, bool special, int cuts, uint32_t seed) {
    std::mt19937 random(seed);
    CaseNode node = NodeOf(c);
    for (size_t i = 0; seed != 0 && i < node.inputs.size(); ++i) {
      // Parameters behind the first two inputs are scales, variances and the like.
      if (node.present[i]) node.inputs[i] = OtherValues(node.inputs[i], &random, special && i < 2);
    }
    constants_.clear();
    const size_t residual = c.domain == "msrt" ? 3 : SIZE_MAX;
    for (size_t i = 0; i < c.inputs.size(); ++i)
      constants_.push_back(c.inputs[i].constant || (constant && i != 0 && i != residual));
    if (!node.Infer().ok()) return;
    row_ = StrCat(c.name, constant ? " with constants" : "", special ? " and special values" : "",
                  ", seed ", seed);
    promises_.clear();
    const auto whole = OneNodeOf(node);
    if (!whole->ok()) return;
    ForEachPromise(delegates_, *whole, 0,
                   [&](const sdk::Candidate& a, const std::string& who, const Results& results) {
                     claims_[a.arithmetic].insert(c.op);
                     const auto [known, added] =
                         promises_.try_emplace(a.arithmetic, Promise{who, results, a.granule});
                     if (!added) Compare(known->second, who, results, nullptr);
                     if (!(known->second.granule == a.granule))
                       differences_.push_back(StrCat(row_, ": ", who, ": another granule"));
                   });
    std::vector<Dims> granules;
    for (const auto& [name, promise] : promises_) {
      if (std::find(granules.begin(), granules.end(), promise.granule) == granules.end())
        granules.push_back(promise.granule);
    }
    for (int i = 0; i < cuts; ++i) CheckPieces(node, granules, &random);
  }

  // The results of the last row by name.
  const std::map<std::string, Promise>& promises() const { return promises_; }
  const std::vector<std::string>& differences() const { return differences_; }
  // The ops of each name.
  const std::map<std::string, std::set<std::string>>& claims() const { return claims_; }
  // Pieces that some candidate computed under a name of the whole.
  int pieces() const { return pieces_; }
  int pieces_of(const std::string& name) const {
    const auto found = pieces_of_.find(name);
    return found == pieces_of_.end() ? 0 : found->second;
  }

 private:
  std::unique_ptr<OneNode> OneNodeOf(const CaseNode& node) const {
    std::vector<std::optional<ConstTensor>> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(node.present[i] ? std::optional(node.inputs[i]) : std::nullopt);
    return std::make_unique<OneNode>(node.def->domain, node.def->name, node.attrs,
                                     std::move(inputs), constants_, node.output_types.size());
  }

  // Checks a random piece, extended to each of the granules.
  void CheckPieces(CaseNode& node, const std::vector<Dims>& granules, std::mt19937* random) {
    const auto space = ResolveSpace(*node.def, node.View());
    if (!space.ok()) return;
    Box box = space->axes.Whole();
    for (int a = 0; a < box.rank(); ++a) {
      const Axis& axis = space->axes[a];
      const bool cut = axis.kind == AxisKind::kParallel || axis.kind == AxisKind::kWindow;
      if (!cut || axis.extent == 0) continue;
      const auto draw = [&] {
        return static_cast<int64_t>((*random)() % static_cast<uint64_t>(axis.extent));
      };
      const int64_t x = draw(), y = draw();
      box[a] = {std::min(x, y), std::max(x, y) + 1};
    }
    for (const Dims& granule : granules) {
      Box aligned = box;
      // Nodes with a granule have the axes of their output first.
      for (int d = 0; d < granule.rank() && d < box.rank(); ++d)
        aligned[d] = AlignOutward(box[d], granule[d], space->axes[d].extent);
      CheckPiece(node, *space, aligned, granule, random);
    }
  }

  void CheckPiece(CaseNode& node, const ResolvedSpace& space, const Box& box, const Dims& granule,
                  std::mt19937* random) {
    auto piece = CutPiece(node, space, box);
    ASSERT_TRUE(piece.ok()) << row_ << ": " << piece.status().message();
    const auto one = OneNodeOf(piece->node);
    if (!one->ok()) return;
    ForEachPromise(delegates_, *one, 1 + static_cast<int>((*random)() % 3),
                   [&](const sdk::Candidate& a, const std::string& who, const Results& results) {
                     const auto known = promises_.find(a.arithmetic);
                     if (known == promises_.end() || !(known->second.granule == granule)) return;
                     ++pieces_, ++pieces_of_[a.arithmetic];
                     Compare(known->second, StrCat(who, " in box ", box), results, &piece->outputs);
                   });
  }

  void Compare(const Promise& promise, const std::string& who, const Results& results,
               const std::vector<Box>* boxes) {
    for (size_t o = 0; o < results.size(); ++o) {
      const ConstTensor expected =
          boxes == nullptr ? promise.results[o] : CutOut(promise.results[o], (*boxes)[o]);
      const std::string difference = BitDifference(results[o], expected);
      if (difference.empty()) continue;
      differences_.push_back(
          StrCat(row_, ", output ", o, ": ", who, " and ", promise.who, ": ", difference));
    }
  }

  const Delegates delegates_;
  std::string row_;
  std::vector<bool> constants_;
  std::map<std::string, Promise> promises_;
  std::vector<std::string> differences_;
  std::map<std::string, std::set<std::string>> claims_;
  int pieces_ = 0;
  std::map<std::string, int> pieces_of_;
};

std::string Listed(const std::vector<std::string>& differences) {
  std::string text = StrCat(differences.size(), " differences\n");
  for (size_t i = 0; i < std::min<size_t>(differences.size(), 40); ++i)
    StrAppend(&text, differences[i], "\n");
  return text;
}

// Sub-byte elements cannot be cut out of a tensor by whole bytes.
bool IsCuttable(const OpCase& c) {
  const auto whole_bytes = [](const std::optional<ConstTensor>& t) {
    return !t || BitsOf(t->dtype) >= 8;
  };
  for (const CaseInput& input : c.inputs) {
    if (!whole_bytes(input.tensor)) return false;
  }
  return std::all_of(c.expected.begin(), c.expected.end(), whole_bytes);
}

// The rows of tests/data are small. These have bodies and remainders of every vector, several
// panels of output channels, and channels in blocks of 8.
std::vector<OpCase> LargerCases() {
  using Ints = std::vector<int64_t>;
  std::vector<OpCase> cases;
  const auto add = [&](std::string_view domain, std::string_view op, AttrList attrs,
                       const std::vector<Dims>& inputs) {
    OpCase c;
    c.name = StrCat("larger_", op, "_", cases.size());
    c.domain = domain, c.op = op, c.attrs = std::move(attrs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      ConstTensor t = RandomFloats(inputs[i], static_cast<uint32_t>(cases.size() * 10 + i));
      if (op == "BatchNormalization" && i == 4) {  // a variance
        std::vector<float> squares(t.As<float>().begin(), t.As<float>().end());
        for (float& v : squares) v = v * v + 0.1f;
        t = ConstTensor::Floats(inputs[i], squares);
      }
      c.inputs.push_back({std::move(t), false});
    }
    c.expected.resize(1);
    cases.push_back(std::move(c));
  };
  const Dims image{2, 24, 13, 19};
  for (const char* op : {"Relu", "Sigmoid", "Tanh", "Gelu", "Exp", "HardSwish", "Elu", "Mish",
                         "Sqrt", "Softplus", "Erf", "LeakyRelu", "Swish", "Round"})
    add("", op, {}, {image});
  add("", "Add", {}, {image, {24, 1, 1}});
  add("", "Max", {}, {image, image});
  add("", "BatchNormalization", {}, {image, {24}, {24}, {24}, {24}});
  add("", "MaxPool", {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}}, {image});
  add("", "AveragePool", {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 1}}}, {image});
  add("", "Softmax", {{"axis", int64_t{1}}}, {image});
  add("", "Softmax", {{"axis", int64_t{-1}}}, {{5, 9, 333}});
  add("", "LogSoftmax", {{"axis", int64_t{1}}}, {image});
  add("", "LayerNormalization", {{"axis", int64_t{-1}}}, {{7, 333}, {333}, {333}});
  add("", "GroupNormalization", {{"num_groups", int64_t{4}}}, {image, {24}, {24}});
  for (const char* op : {"ReduceMean", "ReduceMax", "ReduceL2", "ReduceL1"}) {
    add("", op, {{"axes", Ints{2, 3}}}, {image});
    add("", op, {{"axes", Ints{0, 2}}}, {image});
    add("", op, {{"axes", Ints{3}}}, {image});
  }
  add("", "GlobalAveragePool", {}, {image});
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    const std::vector<double> larger{1, 1, 2, 2}, other{1, 1, 0.6, 1.7};
    add("", "Resize", {{"mode", std::string(mode)}, {"scales", larger}}, {image});
    add("", "Resize", {{"mode", std::string(mode)}, {"scales", other}}, {image});
  }
  add("", "Conv", {{"pads", Ints{1, 1, 1, 1}}}, {image, {70, 24, 3, 3}, {70}});
  add("", "Conv", {{"pads", Ints{6, 6, 6, 6}}, {"dilations", Ints{6, 6}}}, {image, {40, 24, 3, 3}});
  // Winograd's, which has a granule.
  const Dims deep{2, 35, 21, 14};
  add("", "Conv", {{"pads", Ints{1, 1, 1, 1}}}, {deep, {70, 35, 3, 3}, {70}});
  add("", "Conv", {{"pads", Ints{0, 5, 2, 0}}}, {deep, {97, 35, 3, 3}});
  add("", "Conv", {{"auto_pad", std::string("SAME_LOWER")}},
      {{1, 64, 9, 33}, {65, 64, 3, 3}, {65}});
  add("msrt", "FusedConv", {{"activation", std::string("Relu")}, {"pads", Ints{1, 1, 1, 1}}},
      {deep, {80, 35, 3, 3}, {80}, {2, 80, 21, 14}});
  add("msrt", "FusedConv", {{"activation", std::string("Swish")}, {"pads", Ints{1, 1, 1, 1}}},
      {deep, {80, 35, 3, 3}, {80}});
  add("", "Conv", {{"strides", Ints{2, 2}}, {"group", int64_t{24}}}, {image, {24, 1, 3, 3}, {24}});
  add("", "Conv", {{"group", int64_t{3}}}, {image, {39, 8, 2, 3}});
  add("msrt", "FusedConv", {{"activation", std::string("Relu")}},
      {image, {40, 24, 1, 1}, {40}, {2, 40, 13, 19}});
  add("msrt", "FusedConv", {{"activation", std::string("Sigmoid")}}, {image, {40, 24, 3, 3}, {40}});
  add("", "ConvTranspose", {{"strides", Ints{2, 2}}}, {image, {24, 40, 3, 2}, {40}});
  add("", "MatMul", {}, {{3, 37, 150}, {150, 75}});
  add("", "Gemm", {{"transB", int64_t{1}}}, {{61, 1300}, {45, 1300}, {45}});
  add("msrt", "FusedMatMul", {{"activation", std::string("Relu")}, {"alpha", 0.3}},
      {{2, 37, 50}, {2, 50, 75}});
  return cases;
}

TEST(Arithmetic, EqualNamesMeanEqualBits) {
  Checker checker(BuiltIn());
  for (size_t i = 0; i < AllOpCases().size(); ++i) {
    const OpCase& c = AllOpCases()[i];
    const auto seed = static_cast<uint32_t>(1000 + 10 * i);
    for (const bool constant : {false, true}) {
      checker.Check(c, constant, false, IsCuttable(c) ? 3 : 0, 0);
      checker.Check(c, constant, false, IsCuttable(c) ? 2 : 0, seed);
      checker.Check(c, constant, true, IsCuttable(c) ? 2 : 0, seed + 1);
    }
  }
  for (const OpCase& c : LargerCases()) {
    for (const bool constant : {false, true}) {
      checker.Check(c, constant, false, 6, 1);
      checker.Check(c, constant, true, 4, 2);
    }
  }
  EXPECT_TRUE(checker.differences().empty()) << Listed(checker.differences());
  RecordProperty("pieces", checker.pieces());
  EXPECT_GT(checker.pieces(), 5000);
  for (const auto& [name, ops] : checker.claims()) {
    std::string list;
    for (const std::string& op : ops) StrAppend(&list, " ", op);
    std::printf("%-20s %zu ops:%s\n", name.c_str(), ops.size(), list.c_str());
  }
  const auto& fma = checker.claims().at(MSRT_ARITHMETIC_FMA);
  for (const char* op : {"Conv", "ConvTranspose", "FusedConv", "MatMul", "Gemm", "FusedMatMul"})
    EXPECT_TRUE(fma.contains(op)) << op;
  EXPECT_TRUE(checker.claims().at(MSRT_ARITHMETIC_WINOGRAD4).contains("Conv"));
  EXPECT_TRUE(checker.claims().at(MSRT_ARITHMETIC_WINOGRAD4).contains("FusedConv"));
  EXPECT_GT(checker.pieces_of(MSRT_ARITHMETIC_WINOGRAD4), 10);
  for (const char* op : {"Add", "Relu", "MaxPool", "Concat", "Transpose", "MatMulInteger"})
    EXPECT_TRUE(checker.claims().at(MSRT_ARITHMETIC_ROUNDED).contains(op)) << op;
}

// Claims one name for whatever the cpu delegate computes.
class Liar final : public sdk::Delegate {
 public:
  const char* name() const override { return "liar"; }
  void Query(const sdk::GraphView& graph, sdk::QueryResult* out) const override {
    truth_->Query(graph, out);
    for (sdk::Candidate& c : out->candidates) c.arithmetic = "lie";
  }
  Result<std::unique_ptr<sdk::Kernel>> Compile(const sdk::GraphView& graph,
                                               const sdk::Candidate& candidate,
                                               const sdk::CompileContext& context) const override {
    return truth_->Compile(graph, candidate, context);
  }

 private:
  const std::unique_ptr<sdk::Delegate> truth_ = MakeCpuDelegate();
};

TEST(Arithmetic, WrongClaimsAreFound) {
  const auto differences_of = [](std::string_view op) {
    Delegates liars;
    liars.push_back(std::make_unique<Liar>());
    Checker checker(std::move(liars));
    for (const OpCase& c : LargerCases()) {
      if (c.op == op) checker.Check(c, true, false, 4, 1);
    }
    EXPECT_GT(checker.pieces(), 0) << op;
    return checker.differences().size();
  };
  EXPECT_EQ(differences_of("Add"), 0u);
  EXPECT_GT(differences_of("Softmax"), 0u) << "rows and columns are summed in different orders";
  EXPECT_GT(differences_of("AveragePool"), 0u) << "plain tensors are summed column by column";
  EXPECT_GT(differences_of("ReduceMean"), 0u) << "layouts are summed in different orders";
}

// Does not say where pieces may be cut.
class Forgetful final : public sdk::Delegate {
 public:
  const char* name() const override { return "forgetful"; }
  void Query(const sdk::GraphView& graph, sdk::QueryResult* out) const override {
    inner_->Query(graph, out);
    for (sdk::Candidate& c : out->candidates) c.granule = {};
  }
  Result<std::unique_ptr<sdk::Kernel>> Compile(const sdk::GraphView& graph,
                                               const sdk::Candidate& candidate,
                                               const sdk::CompileContext& context) const override {
    return inner_->Compile(graph, candidate, context);
  }

 private:
  const std::unique_ptr<sdk::Delegate> inner_ = MakeCpuDelegate();
};

TEST(Arithmetic, PiecesOfWinogradNeedTheirGranule) {
  Delegates forgetful;
  forgetful.push_back(std::make_unique<Forgetful>());
  Checker checker(std::move(forgetful));
  for (const OpCase& c : LargerCases()) {
    if (c.op == "Conv") checker.Check(c, true, false, 12, 1);
  }
  EXPECT_GT(checker.pieces_of(MSRT_ARITHMETIC_WINOGRAD4), 0);
  EXPECT_FALSE(checker.differences().empty());
}

// ---- instruction sets ---------------------------------------------------------------------------

constexpr const char* kDigestsVariable = "MSRT_ARITHMETIC_DIGESTS";

uint64_t DigestOf(const Results& results) {
  uint64_t digest = 14695981039346656037u;
  const auto add = [&](const void* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
      digest = (digest ^ static_cast<const uint8_t*>(data)[i]) * 1099511628211u;
  };
  for (const ConstTensor& t : results) {
    if (t.dtype != DType::kF32) {
      add(t.bytes.data(), t.bytes.size());
      continue;
    }
    for (float v : t.As<float>()) {
      const float one_nan = std::isnan(v) ? std::nanf("") : v;
      add(&one_nan, sizeof one_nan);
    }
  }
  return digest;
}

// One for each row and name: "row|name".
std::map<std::string, uint64_t> Digests() {
  Checker checker(BuiltIn());
  std::map<std::string, uint64_t> digests;
  std::vector<OpCase> cases = LargerCases();
  cases.insert(cases.end(), AllOpCases().begin(), AllOpCases().end());
  for (size_t i = 0; i < cases.size(); ++i) {
    for (const bool special : {false, true}) {
      checker.Check(cases[i], true, special, 0, static_cast<uint32_t>(1 + i));
      for (const auto& [name, promise] : checker.promises()) {
        // Its functions are those of the C library, which has its own instruction sets.
        if (name == MSRT_ARITHMETIC_REFERENCE) continue;
        digests[StrCat(cases[i].name, special ? " special" : "", "|", name)] =
            DigestOf(promise.results);
      }
    }
  }
  return digests;
}

// The other tests run it with a cap on instructions.
TEST(Arithmetic, WritesDigests) {
  const char* path = std::getenv(kDigestsVariable);
  if (path == nullptr) GTEST_SKIP() << "only in a process of CapsDoNotChangeBits";
  std::ofstream out(path);
  for (const auto& [key, digest] : Digests()) out << digest << " " << key << "\n";
  ASSERT_TRUE(out.good());
}

TEST(Arithmetic, CapsDoNotChangeBits) {
  if (std::getenv(kDigestsVariable) != nullptr) return;
  const std::map<std::string, uint64_t> here = Digests();
  for (const char* cap : {"AVX2", "SSE41"}) {
    const std::string path = StrCat(::testing::TempDir(), "digests_", cap, "_", getpid());
    const std::string command =
        StrCat("ONEDNN_MAX_CPU_ISA=", cap, " ", kDigestsVariable, "='", path, "' /proc/", getpid(),
               "/exe --gtest_filter=Arithmetic.WritesDigests >/dev/null");
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream in(path);
    std::map<std::string, int> same;  // by name
    uint64_t digest;
    for (std::string key; in >> digest && std::getline(in >> std::ws, key);) {
      const auto known = here.find(key);
      if (known == here.end()) continue;
      EXPECT_EQ(known->second, digest) << key << " with " << cap;
      ++same[key.substr(key.rfind('|') + 1)];
    }
    EXPECT_GT(same[MSRT_ARITHMETIC_FMA], 100) << cap;
    EXPECT_GE(same[MSRT_ARITHMETIC_WINOGRAD4], 8) << cap;
    EXPECT_GT(same[MSRT_ARITHMETIC_ROUNDED], 100) << cap;
    std::remove(path.c_str());
  }
}

}  // namespace
}  // namespace msrt::testing

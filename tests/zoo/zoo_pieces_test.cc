// Whole networks by pieces: a network is placed and compiled once, then computed by strips and
// tiles of its outputs, which together must equal the whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "core/run/piece_runner.h"
#include "tests/conformance/case_node.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/zoo.h"

namespace msrt::testing {
namespace {

struct Network {
  const char* name;
  zoo::Options options;
  Dims input;
};

// Odd sizes where the network admits them: borders of strips fall on every phase of the strides.
const Network kNetworks[] = {
    {"unet", {.batch = 1, .image = 64, .width = 8}, {1, 4, 64, 64}},
    {"deeplab", {.batch = 1, .image = 72, .width = 8}, {1, 4, 72, 72}},
    {"resnet50", {.batch = 1, .image = 96, .width = 8, .classes = 10}, {1, 3, 96, 96}},
};
// Run by hand: --gtest_also_run_disabled_tests --gtest_filter='*FullSize*'.
const Network kFullSize[] = {
    {"unet", {.batch = 1, .image = 512, .width = 32}, {1, 4, 512, 512}},
    {"deeplab", {.batch = 1, .image = 520, .width = 32}, {1, 4, 520, 520}},
    {"resnet50", {.batch = 1, .image = 224, .width = 64, .classes = 1000}, {1, 3, 224, 224}},
};

ConstTensor RandomFloats(const Dims& dims) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(dims.elements()));
  for (float& v : values) v = normal(random);
  return ConstTensor::Floats(dims, values);
}

TensorView ViewOf(const ConstTensor& t) {
  return {t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())};
}

// The largest difference as a fraction of the range; 0 only if all bits are equal.
double RangeError(const ConstTensor& got, const ConstTensor& expected) {
  if (std::ranges::equal(got.bytes, expected.bytes)) return 0;
  double low = INFINITY, high = -INFINITY, worst = 1e-30;
  for (size_t i = 0; i < expected.As<float>().size(); ++i) {
    const double e = expected.As<float>()[i], g = got.As<float>()[i];
    low = std::min(low, e), high = std::max(high, e);
    worst = std::max(worst, std::isfinite(g) ? std::abs(g - e) : INFINITY);
  }
  return worst / (high - low);
}

// Cuts dims 2 and 3 at every multiple of `rows` and `columns`, the last piece being what remains.
std::vector<Box> Tiles(const Dims& dims, int64_t rows, int64_t columns) {
  std::vector<Box> tiles;
  for (int64_t y = 0; y < dims[2]; y += rows) {
    for (int64_t x = 0; x < dims[3]; x += columns) {
      Box box = Box::Whole(dims);
      box[2] = {y, std::min(y + rows, dims[2])};
      box[3] = {x, std::min(x + columns, dims[3])};
      tiles.push_back(box);
    }
  }
  return tiles;
}

// Random cuts of both dims.
std::vector<Box> UnevenTiles(const Dims& dims, uint32_t seed) {
  std::mt19937 random(seed);
  const auto cuts = [&](int64_t extent) {
    std::vector<int64_t> at{0};
    while (at.back() < extent)
      at.push_back(std::min(extent, at.back() + 1 + static_cast<int64_t>(random() % 31)));
    return at;
  };
  const std::vector<int64_t> ys = cuts(dims[2]), xs = cuts(dims[3]);
  std::vector<Box> tiles;
  for (size_t i = 0; i + 1 < ys.size(); ++i) {
    for (size_t j = 0; j + 1 < xs.size(); ++j) {
      Box box = Box::Whole(dims);
      box[2] = {ys[i], ys[i + 1]}, box[3] = {xs[j], xs[j + 1]};
      tiles.push_back(box);
    }
  }
  return tiles;
}

class Pieces {
 public:
  Pieces(const Network& n, std::vector<std::string> delegates, bool exact = false) {
    auto module = zoo::Build(n.name, n.options);
    CompileOptions options;
    options.place.delegates = std::move(delegates);
    options.place.exact = exact;
    auto model = CompileModule(TestEnvironment(), *std::move(module), options);
    EXPECT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
    input_ = RandomFloats(n.input);
    auto runner = PieceRunner::Create(model_, 0, std::vector<Dims>{n.input}, {});
    EXPECT_TRUE(runner.ok()) << runner.status().message();
    runner_ = *std::move(runner);
  }

  PieceRunner& runner() { return *runner_; }
  const ConstTensor& input() const { return input_; }
  ValueId output() const { return runner_->graph().outputs[0]; }
  size_t packed_bytes() const {
    size_t bytes = 0;
    for (const Step& step : model_->entries[0]->current()->program->steps) {
      if (step.kernel) bytes += step.kernel.packed_bytes();
    }
    return bytes;
  }

  PackCount packings() const { return model_->packings->Total(); }
  size_t kernels_with_weights() const {
    const std::vector<Step>& steps = model_->entries[0]->current()->program->steps;
    return static_cast<size_t>(std::count_if(steps.begin(), steps.end(), [](const Step& s) {
      return s.kernel && s.kernel.packed_bytes() > 0;
    }));
  }

  // The output of an ordinary run.
  ConstTensor Whole() {
    auto session = Session::Create(model_, 0, {});
    auto outputs = RunSession(**session, {input_});
    EXPECT_TRUE(outputs.ok()) << outputs.status().message();
    return (*outputs)[0];
  }

  // The output, computed from the whole of a value in between.
  ConstTensor OutputFrom(ValueId value, const ConstTensor& data) {
    const Type& type = runner_->type(output());
    ConstTensor out =
        ConstTensor::Copy(type.dtype, type.dims, std::vector<std::byte>(type.bytes()));
    const PieceMemory source{value, Box::Whole(data.dims), ViewOf(data)},
        target{output(), Box::Whole(type.dims), ViewOf(out)};
    const Status status = runner_->Run({&source, 1}, {&target, 1}, {});
    EXPECT_TRUE(status.ok()) << status.message();
    return out;
  }

  // Computes the value piece by piece. `in_place`: pieces are written into the result, with its
  // strides; otherwise each has its own memory, and gets only the part of the input that it needs.
  ConstTensor Assemble(ValueId value, const std::vector<Box>& tiles, bool in_place) {
    const Type& type = runner_->type(value);
    ConstTensor whole =
        ConstTensor::Copy(type.dtype, type.dims, std::vector<std::byte>(type.bytes()));
    const Dims strides = RowMajorStrides(type.dims);
    const ValueId image = runner_->graph().inputs[0];
    for (const Box& box : tiles) {
      ConstTensor piece = CutOut(whole, box), part;
      PieceMemory target{value, box, ViewOf(piece)};
      PieceMemory source{image, Box::Whole(input_.dims), ViewOf(input_)};
      if (in_place) {
        int64_t offset = 0;
        for (int d = 0; d < box.rank(); ++d) offset += box[d].begin * strides[d];
        target.memory.data = reinterpret_cast<float*>(ViewOf(whole).data) + offset;
        target.memory.strides = strides.begin();
      } else {
        const auto required = runner_->Required({}, {&target, 1});
        EXPECT_TRUE(required.ok()) << required.status().message();
        source.box = *required->values[IndexOf(image)];
        part = CutOut(input_, source.box);
        source.memory = ViewOf(part);
      }
      const Status status = runner_->Run({&source, 1}, {&target, 1}, {});
      EXPECT_TRUE(status.ok()) << status.message();
      if (!status.ok()) return whole;
      if (!in_place) Paste(piece, box, &whole);
    }
    return whole;
  }

 private:
  static void Paste(const ConstTensor& piece, const Box& box, ConstTensor* whole) {
    const Dims to = RowMajorStrides(whole->dims), from = RowMajorStrides(piece.dims);
    auto* out = reinterpret_cast<float*>(const_cast<std::byte*>(whole->bytes.data()));
    for (int64_t i = 0; i < piece.dims.elements(); ++i) {
      int64_t at = 0, rest = i;
      for (int d = 0; d < box.rank(); ++d) {
        at += (box[d].begin + rest / from[d]) * to[d];
        rest %= from[d];
      }
      out[at] = piece.As<float>()[static_cast<size_t>(i)];
    }
  }

  std::shared_ptr<const CompiledModel> model_;
  ConstTensor input_;
  std::unique_ptr<PieceRunner> runner_;
};

// The value that is cut: the output, or the last feature map of a classifier.
ValueId CutValue(const PieceRunner& runner) {
  const Graph& graph = runner.graph();
  if (runner.type(graph.outputs[0]).rank() == 4) return graph.outputs[0];
  for (const Node& node : graph.nodes) {
    // In exact mode a pass makes nested means of the pool.
    const bool pools = node.op == "GlobalAveragePool" || node.op == "ReduceMean";
    if (pools && runner.type(node.inputs[0]).rank() == 4) return node.inputs[0];
  }
  ADD_FAILURE() << "no feature map";
  return graph.outputs[0];
}

struct Backend {
  const char* name;
  std::vector<std::string> delegates;
  bool exact;
  double tolerance;  // 0: the same bits
};
const Backend kBackends[] = {
    {"reference", {"reference"}, false, 0},
    {"cpu", {"cpu", "reference"}, false, 2e-5},
    {"all", {}, false, 2e-5},
    {"exact", {}, true, 0},
    {"onednn", {"onednn", "reference"}, false, 2e-5},
};

// The last is there only if this build has oneDNN.
size_t BackendCount() {
  const auto environment = TestEnvironment();
  const bool has_onednn =
      std::any_of(environment->delegates.begin(), environment->delegates.end(),
                  [](const auto& delegate) { return delegate->name() == "onednn"; });
  return std::size(kBackends) - (has_onednn ? 0 : 1);
}

class ZooPieces : public ::testing::TestWithParam<std::tuple<Network, size_t>> {};

TEST_P(ZooPieces, StripsAndTilesEqualTheWhole) {
  const Network& n = std::get<0>(GetParam());
  const Backend& backend = kBackends[std::get<1>(GetParam())];
  Pieces pieces(n, backend.delegates, backend.exact);
  const size_t packings = pieces.packings().constants;
  EXPECT_EQ(packings, pieces.kernels_with_weights()) << "one form for each kernel";
  const ValueId value = CutValue(pieces.runner());
  const Dims dims = pieces.runner().type(value).dims;
  const ConstTensor whole = pieces.Assemble(value, {Box::Whole(dims)}, false);
  // The rest of a classifier is computed from the assembled map.
  const ConstTensor output = value == pieces.output() ? whole : pieces.OutputFrom(value, whole);
  EXPECT_LE(RangeError(output, pieces.Whole()), backend.tolerance) << "one piece";
  const auto check = [&](const std::vector<Box>& tiles, bool in_place, const char* what) {
    const ConstTensor got = pieces.Assemble(value, tiles, in_place);
    for (const Box& box : tiles) {
      EXPECT_LE(RangeError(CutOut(got, box), CutOut(whole, box)), backend.tolerance)
          << what << " " << StrCat(box);
    }
  };
  const int64_t strip = std::max<int64_t>(1, dims[2] / 4);
  const std::vector<Box> rows = Tiles(dims, 1, dims[3]);
  const size_t packed_for_whole = pieces.packed_bytes();
  for (const bool in_place : {false, true}) check(Tiles(dims, strip, dims[3]), in_place, "strips");
  EXPECT_EQ(pieces.packed_bytes(), packed_for_whole) << "strips";
  check(Tiles(dims, strip + 1, std::max<int64_t>(1, dims[3] / 3)), false, "tiles");
  check(UnevenTiles(dims, 5), true, "uneven tiles");
  check({rows[0], rows[rows.size() / 2], rows.back()}, false, "rows");
  // Every form of weights counts: they are packed once, for the whole and all pieces.
  std::printf("%zu forms packed by the compilation, %zu after all pieces: %zu bytes, then %zu\n",
              packings, pieces.packings().constants, packed_for_whole, pieces.packed_bytes());
  EXPECT_EQ(pieces.packed_bytes(), packed_for_whole);
  EXPECT_EQ(pieces.packings().constants, packings);
  EXPECT_EQ(pieces.packings().copies, 0u);
  // A second time, every kernel is found.
  const uint64_t bound = pieces.runner().kernel_counts().misses;
  check(Tiles(dims, strip, dims[3]), true, "strips");
  EXPECT_EQ(pieces.packed_bytes(), packed_for_whole);
  EXPECT_EQ(pieces.runner().kernel_counts().misses, bound);
}

// Exact mode is fast only if other delegates than reference, which has plain loops, claim names.
TEST(ZooPieces, ExactModeRunsOutsideReference) {
  for (const Network& n : kFullSize) {
    CompileOptions options;
    options.place.exact = true;
    auto model = CompileModule(TestEnvironment(), *zoo::Build(n.name, n.options), options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const Program& program = *(*model)->entries[0]->current()->program;
    double claimed = 0;
    for (const Step& step : program.steps) {
      if (!step.kernel) continue;
      EXPECT_NE(step.arithmetic, "") << n.name << ": " << step.algorithm;
      if (step.delegate == "reference" || step.arithmetic == MSRT_ARITHMETIC_REFERENCE) continue;
      for (const uint32_t node : step.nodes) claimed += program.offered->node(node).flops;
    }
    ASSERT_GT(program.flops, 0);
    std::printf("%s: %.4f of the FLOPs\n", n.name, claimed / program.flops);
    EXPECT_GE(claimed, 0.8 * program.flops) << n.name;
  }
}

std::string NameOf(const ::testing::TestParamInfo<std::tuple<Network, size_t>>& row) {
  return StrCat(std::get<0>(row.param).name, "_", kBackends[std::get<1>(row.param)].name);
}

INSTANTIATE_TEST_SUITE_P(All, ZooPieces,
                         ::testing::Combine(::testing::ValuesIn(kNetworks),
                                            ::testing::Range(size_t{0}, BackendCount())),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(DISABLED_FullSize, ZooPieces,
                         ::testing::Combine(::testing::ValuesIn(kFullSize),
                                            ::testing::Range(size_t{0}, BackendCount())),
                         NameOf);

}  // namespace
}  // namespace msrt::testing

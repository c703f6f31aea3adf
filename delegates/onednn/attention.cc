// Attention without a cache, for as many query heads as key heads: two products that read and write heads where they lie, packed or not,
// with softmax between them in scratch memory. The mask and the causal rule are a loop of ours over the scores, which also finds rows
// that may see no key: those are zero, where the library's softmax would make NaN of them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/checked_math.h"
#include "delegates/onednn/cost.h"
#include "delegates/onednn/plan.h"
#include "delegates/onednn/recipe.h"

namespace msrt::onednn {
namespace {

enum Input : size_t { kQuery, kKey, kValue, kMask, kPastKey };
using MatMul = dnnl::matmul;
using Softmax = dnnl::softmax_forward;

// Scores of so many bytes are computed at once, if they are of several heads: they stay in the caches, and scratch memory stays small.
constexpr int64_t kScoreBytes = 8 << 20;
constexpr int64_t kMaxChunks = 1024;

struct Sizes {
  bool packed = false;
  int64_t batch = 0, heads = 0, rows = 0, keys = 0, width = 0, value_width = 0;

  explicit Sizes(const OpView& op) {
    const Dims &q = op.input(kQuery).dims, &k = op.input(kKey).dims, &v = op.input(kValue).dims;
    packed = q.rank() == 3;
    batch = q[0];
    heads = packed ? op.Int("q_num_heads") : q[1];
    rows = q[packed ? 1 : 2], keys = k[packed ? 1 : 2];
    width = packed ? q[2] / heads : q[3];
    value_width = packed ? v[2] / heads : v[3];
  }
};

int64_t KeyHeads(const OpView& op) { return op.input(kQuery).rank() == 3 ? op.Int("kv_num_heads") : op.input(kKey).dims[1]; }
int64_t QueryHeads(const OpView& op) { return op.input(kQuery).rank() == 3 ? op.Int("q_num_heads") : op.input(kQuery).dims[1]; }

std::string QueryAttention(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.has_input(kPastKey)) return "a cache of keys";
  if (op.has_output(1) || op.has_output(2) || op.has_output(3)) return "outputs beside the first";
  if (op.Float("softcap") != 0) return "softcap";
  if (QueryHeads(*node.typical) != KeyHeads(*node.typical)) return "fewer key heads than query heads";
  const Sizes s(*node.typical);
  const auto scores = static_cast<double>(s.batch * s.heads * s.rows) * static_cast<double>(s.keys);
  const double seconds = Roofline(node.machine, 2 * scores * static_cast<double>(s.width + s.value_width), 0.6, node.bytes) +
                         PerElement(node.machine, scores, 1.2, 0);
  candidates->push_back(MakeCandidate(node, Layout::kPlain, Layout::kPlain, seconds, "gemm, softmax, gemm"));
  return {};
}

// ---- the loops --------------------------------------------------------------------------------------------------------------------

// Scores of some heads of some batches in scratch memory, and which elements of the mask belong to them.
struct ScoreRows {
  size_t scores = 0, dead = 0;   // offsets of f32 [heads..., rows, keys] and of one flag a row
  int64_t first = 0, count = 0;  // rows, counted over [batch, heads, rows] of the whole
  int64_t heads = 0, rows = 0, keys = 0;
  float scale = 1;
  bool causal = false;
  Dims mask_strides;  // of [batch, heads, rows, keys]; empty without a mask

  int64_t grain() const { return 1 + 16384 / std::max<int64_t>(keys, 1); }
};

// x * scale + mask; true if a key is left.
template <typename Added>
bool ScaleAndMask(float* x, int64_t count, float scale, Added added) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  int alive = 0;
  for (int64_t j = 0; j < count; ++j) {
    x[j] = x[j] * scale + added(j);
    alive |= int{!(x[j] == kMinusInfinity)};
  }
  return alive != 0;
}

bool MaskRow(const ScoreRows& r, const TensorView* mask, int64_t row, float* x) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  const int64_t at_row = row % r.rows;
  const int64_t seen = r.causal ? std::min(r.keys, at_row + 1) : r.keys;
  bool alive = false;
  if (mask == nullptr) {
    alive = ScaleAndMask(x, seen, r.scale, [](int64_t) { return 0.0f; });
  } else {
    const int64_t at =
        row / (r.heads * r.rows) * r.mask_strides[0] + row / r.rows % r.heads * r.mask_strides[1] + at_row * r.mask_strides[2];
    const int64_t step = r.mask_strides[3];
    if (mask->dtype == DType::kBool) {
      const bool* m = mask->As<bool>() + at;
      alive = ScaleAndMask(x, seen, r.scale, [&](int64_t j) { return m[j * step] ? 0.0f : kMinusInfinity; });
    } else if (const float* m = mask->As<float>() + at; step == 1) {
      alive = ScaleAndMask(x, seen, r.scale, [&](int64_t j) { return m[j]; });
    } else {
      alive = ScaleAndMask(x, seen, r.scale, [&](int64_t j) { return m[j * step]; });
    }
  }
  std::fill(x + seen, x + r.keys, kMinusInfinity);
  return alive;
}

Status MaskScores(const ScoreRows& r, const LoopArgs& args) {
  auto* scores = reinterpret_cast<float*>(args.scratch + r.scores);
  auto* dead = reinterpret_cast<bool*>(args.scratch + r.dead);
  const TensorView* mask = r.mask_strides.empty() ? nullptr : &args.inputs[kMask];
  return ParallelRanges(args.parallel, r.count, r.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* x = scores + i * r.keys;
      dead[i] = !MaskRow(r, mask, r.first + i, x);
      if (dead[i]) std::fill(x, x + r.keys, 0.0f);
    }
  });
}

Status ClearDeadRows(const ScoreRows& r, const LoopArgs& args) {
  auto* scores = reinterpret_cast<float*>(args.scratch + r.scores);
  const auto* dead = reinterpret_cast<const bool*>(args.scratch + r.dead);
  for (int64_t i = 0; i < r.count; ++i) {
    if (dead[i]) std::fill(scores + i * r.keys, scores + (i + 1) * r.keys, 0.0f);
  }
  return OkStatus();
}

// Zero where the mask is broadcast.
Dims MaskStrides(const OpView& op, const Sizes& s) {
  const Dims whole{s.batch, s.heads, s.rows, s.keys};
  const Dims& mask = op.input(kMask).dims;
  const Dims own = RowMajorStrides(mask);
  Dims strides = Dims::Filled(4, 0);
  for (int i = 0; i < mask.rank(); ++i) {
    const int at = 4 - mask.rank() + i;
    if (mask[i] != 1 || whole[at] == 1) strides[at] = own[i];
  }
  return strides;
}

// ---- recipe -----------------------------------------------------------------------------------------------------------------------

// Heads of a tensor, packed or not, as matrices [rows, width].
struct HeadMatrices {
  int64_t batch_stride, head_stride, row_stride, rows, width;

  HeadMatrices(const Sizes& s, int64_t row_count, int64_t columns)
      : batch_stride(s.heads * row_count * columns),
        head_stride(s.packed ? columns : row_count * columns),
        row_stride(s.packed ? s.heads * columns : columns),
        rows(row_count),
        width(columns) {}
  memory::desc desc(int64_t batches, int64_t heads, bool turned = false) const {
    memory::dims dims{batches, heads, rows, width}, strides{batch_stride, head_stride, row_stride, 1};
    if (turned) std::swap(dims[2], dims[3]), std::swap(strides[2], strides[3]);
    return memory::desc(dims, memory::data_type::f32, strides);
  }
  size_t offset(int64_t batch, int64_t head) const {
    return static_cast<size_t>(batch * batch_stride + head * head_stride) * sizeof(float);
  }
};

class AttentionRecipe final : public Recipe {
 public:
  using Recipe::Recipe;

  Status Build(const OpView& op, bool, Plan* plan) const override {
    if (QueryHeads(op) != KeyHeads(op)) return Unsupported("fewer key heads than query heads");
    const Sizes s(op);
    // All at once where the scores are few, else some heads of one batch at a time.
    int64_t batches = s.batch, heads = s.heads;
    const int64_t most = std::max<int64_t>(kScoreBytes / 4 / std::max<int64_t>(s.rows * s.keys, 1), 1);
    if (batches * heads > most) {
      batches = 1;
      while (heads > most || s.heads % heads != 0) --heads;
    }
    if (s.batch / batches * (s.heads / heads) > kMaxChunks) return Unsupported("too many pieces of scores");
    const Chunk chunk = Describe(op, s, batches, heads, plan);
    if (chunk.scores.get(true) == nullptr || chunk.result.get(true) == nullptr || IsNaive(chunk.scores) || IsNaive(chunk.result)) {
      return Unsupported("oneDNN has no product for these heads");
    }
    for (int64_t b = 0; b < s.batch; b += batches) {
      for (int64_t h = 0; h < s.heads; h += heads) Append(s, chunk, b, h, plan);
    }
    return OkStatus();
  }
  bool drops_nan() const override { return true; }

 private:
  struct Chunk {
    HeadMatrices query, key, value, out;
    memory::desc query_desc, key_desc, score_desc, value_desc, out_desc, softmax_desc;
    MatMul::primitive_desc scores, result;
    Softmax::primitive_desc softmax;
    ScoreRows rows;
  };

  static Chunk Describe(const OpView& op, const Sizes& s, int64_t batches, int64_t heads, Plan* plan) {
    Chunk c{{s, s.rows, s.width},
            {s, s.keys, s.width},
            {s, s.keys, s.value_width},
            {s, s.rows, s.value_width},
            {},
            {},
            {},
            {},
            {},
            {},
            {},
            {},
            {},
            {}};
    c.query_desc = c.query.desc(batches, heads);
    c.key_desc = c.key.desc(batches, heads, true);
    c.value_desc = c.value.desc(batches, heads);
    c.out_desc = c.out.desc(batches, heads);
    c.score_desc = DescribePlain({batches, heads, s.rows, s.keys});
    c.softmax_desc = DescribePlain({batches * heads * s.rows, s.keys});
    c.scores = MatMul::primitive_desc(Engine(), c.query_desc, c.key_desc, c.score_desc, UserScratchpad(), true);
    c.result = MatMul::primitive_desc(Engine(), c.score_desc, c.value_desc, c.out_desc, UserScratchpad(), true);
    c.softmax = Softmax::primitive_desc(Engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate, c.softmax_desc,
                                        c.softmax_desc, 1, UserScratchpad());
    ScoreRows& r = c.rows;
    r.count = batches * heads * s.rows;
    r.scores = plan->Reserve(static_cast<size_t>(r.count * s.keys) * sizeof(float));
    r.dead = plan->Reserve(static_cast<size_t>(r.count));
    r.heads = s.heads, r.rows = s.rows, r.keys = s.keys;
    r.scale = static_cast<float>(op.Has("scale") ? op.Float("scale") : 1 / std::sqrt(static_cast<double>(s.width)));
    r.causal = op.Int("is_causal") != 0;
    if (op.has_input(kMask)) r.mask_strides = MaskStrides(op, s);
    return c;
  }

  static void Append(const Sizes& s, const Chunk& c, int64_t batch, int64_t head, Plan* plan) {
    const Place scores = Place::Scratch(c.rows.scores);
    plan->Add<MatMul::primitive_desc, MatMul>(c.scores, {{DNNL_ARG_SRC, Place::Input(kQuery, c.query.offset(batch, head)), c.query_desc},
                                                         {DNNL_ARG_WEIGHTS, Place::Input(kKey, c.key.offset(batch, head)), c.key_desc},
                                                         {DNNL_ARG_DST, scores, c.score_desc}});
    ScoreRows rows = c.rows;
    rows.first = (batch * s.heads + head) * s.rows;
    plan->AddLoop([rows](const LoopArgs& args) { return MaskScores(rows, args); });
    plan->Add<Softmax::primitive_desc, Softmax>(c.softmax,
                                                {{DNNL_ARG_SRC, scores, c.softmax_desc}, {DNNL_ARG_DST, scores, c.softmax_desc}});
    plan->AddLoop([rows](const LoopArgs& args) { return ClearDeadRows(rows, args); });
    plan->Add<MatMul::primitive_desc, MatMul>(c.result,
                                              {{DNNL_ARG_SRC, scores, c.score_desc},
                                               {DNNL_ARG_WEIGHTS, Place::Input(kValue, c.value.offset(batch, head)), c.value_desc},
                                               {DNNL_ARG_DST, Place::Output(0, c.out.offset(batch, head)), c.out_desc}});
  }
};

constexpr Rule kAttentionRules[] = {{"", "Attention", QueryAttention, CompileAs<AttentionRecipe>}};

}  // namespace

std::span<const Rule> AttentionRules() { return kAttentionRules; }

}  // namespace msrt::onednn

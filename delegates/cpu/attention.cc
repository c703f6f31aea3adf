// Attention and msrt.FusedAttention: a few query rows of one head at a time, whose scores stay in
// the cache between the two products. Heads are read and written where they lie, packed or not;
// several query heads may share one of keys and values; keys and values of a cache come before the
// new ones without being copied, and are copied where the node returns them.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/checked_math.h"
#include "core/region/box.h"
#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

enum Input : size_t { kQuery, kKey, kValue, kMask, kPastKey, kPastValue };
enum Output : size_t { kResult, kPresentKey, kPresentValue, kScores };

constexpr int64_t kScoreBytes = 128 << 10;    // of the rows that are computed at once
constexpr int64_t kPackedBytes = 16 << 20;    // of keys that are packed at once
constexpr int64_t kTile = 12, kMaxRows = 96;  // at once: a multiple, and no more
constexpr int64_t kRowsWorthPacking = 6;      // by how many rows a packed key must be read

struct Sizes {
  bool packed = false;
  int64_t batch = 0, heads = 0, key_heads = 0, rows = 0, fresh = 0, past = 0, width = 0,
          value_width = 0;

  explicit Sizes(const OpView& op) {
    const Dims &q = op.input(kQuery).dims, &k = op.input(kKey).dims, &v = op.input(kValue).dims;
    packed = q.rank() == 3;
    batch = q[0];
    heads = packed ? op.Int("q_num_heads") : q[1];
    key_heads = packed ? op.Int("kv_num_heads") : k[1];
    rows = q[packed ? 1 : 2], fresh = k[packed ? 1 : 2];
    width = packed ? q[2] / heads : q[3];
    value_width = packed ? v[2] / key_heads : v[3];
    past = op.has_input(kPastKey) ? op.input(kPastKey).dims[2] : 0;
  }
  int64_t keys() const { return past + fresh; }
  int64_t group() const { return heads / std::max<int64_t>(key_heads, 1); }
};

// Heads of a tensor, [batch, heads, rows, width] or packed as [batch, rows, heads * width].
struct Heads {
  int64_t batch_step, head_step, row_step;

  Heads(bool packed, int64_t heads, int64_t rows, int64_t width)
      : batch_step(heads * rows * width),
        head_step(packed ? width : rows * width),
        row_step(packed ? heads * width : width) {}
  int64_t at(int64_t batch, int64_t head, int64_t row = 0) const {
    return batch * batch_step + head * head_step + row * row_step;
  }
};

std::string QueryAttention(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (op.has_input(i) && op.input(i).dtype != DType::kF32 &&
        (i != kMask || op.input(i).dtype != DType::kBool)) {
      return StrCat("elements of type ", op.input(i).dtype);
    }
  }
  if (op.has_output(kScores)) return "scores as an output";
  if (op.Float("softcap") != 0) return "softcap";
  const Sizes s(*node.typical);
  const auto scores =
      static_cast<double>(s.batch * s.heads * s.rows) * static_cast<double>(s.keys());
  // Measured with AVX-512: 75 GFLOP/s in the products, half a nanosecond for the softmax of a
  // score.
  const double nanoseconds = 0.5 + 2.0 * static_cast<double>(s.width + s.value_width) / 75;
  candidates->push_back(
      PlainCandidate(node, PassSeconds(node, scores, nanoseconds, node.bytes), "vectorised rows"));
  return {};
}

class BoundAttention final : public BoundKernel {
 public:
  explicit BoundAttention(const OpView& op)
      : s_(op),
        query_(s_.packed, s_.heads, s_.rows, s_.width),
        key_(s_.packed, s_.key_heads, s_.fresh, s_.width),
        value_(s_.packed, s_.key_heads, s_.fresh, s_.value_width),
        past_key_(false, s_.key_heads, s_.past, s_.width),
        past_value_(false, s_.key_heads, s_.past, s_.value_width),
        result_(s_.packed, s_.heads, s_.rows, s_.value_width),
        causal_(op.Int("is_causal") != 0),
        first_row_(op.Int("row_offset")),
        scale_(static_cast<float>(
            op.Has("scale") ? op.Float("scale")
                            : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(s_.width, 1))))),
        hidden_(op.domain() == "msrt" ? std::numeric_limits<float>::quiet_NaN() : 0) {
    const int64_t panel = LoopsHere().key_panel;
    padded_ = CeilDiv(s_.keys(), panel) * panel;
    packs_ = s_.rows * s_.group() >= kRowsWorthPacking;
    if (op.has_input(kMask)) SetMaskSteps(op.input(kMask).dims);
  }

  Status Run(const RunArgs& args) override {
    MSRT_RETURN_IF_ERROR(StorePresent(args, kPresentKey));
    MSRT_RETURN_IF_ERROR(StorePresent(args, kPresentValue));
    if (args.outputs[kResult].elements() == 0) return OkStatus();
    const int64_t key_heads = s_.batch * s_.key_heads, packed = packs_ ? padded_ * s_.width : 0;
    const int64_t at_once =
        packs_ ? std::clamp<int64_t>(kPackedBytes / 4 / std::max<int64_t>(packed, 1), 1, key_heads)
               : key_heads;
    const int tasks = args.parallel.threads();
    const int64_t rows_at_once = RowsAtOnce(tasks), rows_memory = rows_at_once * (padded_ + 1);
    MSRT_ASSIGN_OR_RETURN(
        void* memory,
        args.scratch.Get(static_cast<size_t>(at_once * (packed + 1) + tasks * rows_memory) *
                         sizeof(float)));
    float* const packed_keys = static_cast<float*>(memory);
    float* const finite =
        packed_keys + at_once * packed;  // one for each head of keys: not zero if all of it is
    float* const scores = finite + at_once;
    for (int64_t first = 0; first < key_heads; first += at_once) {
      const int64_t count = std::min(at_once, key_heads - first);
      MSRT_RETURN_IF_ERROR(args.parallel.Run(count, [&](int64_t i) {
        PackHead(args, first + i, packed_keys + i * packed, finite + i);
      }));
      const int64_t blocks = CeilDiv(s_.rows, rows_at_once), items = count * s_.group() * blocks;
      std::atomic<int64_t> next{0};
      MSRT_RETURN_IF_ERROR(args.parallel.Run(std::min<int64_t>(tasks, items), [&](int64_t task) {
        for (int64_t item = next++; item < items; item = next++) {
          const int64_t i = item / (s_.group() * blocks);
          const Interval rows{item % blocks * rows_at_once,
                              std::min(s_.rows, (item % blocks + 1) * rows_at_once)};
          Attend(args, first + i, item / blocks % s_.group(), rows, packed_keys + i * packed,
                 finite[i] != 0, scores + task * rows_memory);
        }
      }));
    }
    return OkStatus();
  }

 private:
  // Whole tiles of rows whose scores stay in the cache, and enough parts for all threads.
  int64_t RowsAtOnce(int threads) const {
    int64_t rows = std::clamp<int64_t>(
        kScoreBytes / 4 / std::max<int64_t>(padded_, 1) / kTile * kTile, kTile, kMaxRows);
    while (rows > kTile && s_.batch * s_.heads * CeilDiv(s_.rows, rows) < int64_t{2} * threads)
      rows -= kTile;
    return std::min(rows, s_.rows);
  }

  // Zero where the mask is broadcast.
  void SetMaskSteps(const Dims& mask) {
    const Dims whole{s_.batch, s_.heads, s_.rows, s_.keys()}, own = RowMajorStrides(mask);
    for (int i = 0; i < mask.rank(); ++i) {
      const int at = 4 - mask.rank() + i;
      if (mask[i] != 1 || whole[at] == 1) mask_steps_[at] = own[i];
    }
  }

  // The rows of a head of keys or values: those of the cache, then the new ones.
  void SetParts(const RunArgs& args, size_t input, size_t past_input, const Heads& fresh,
                const Heads& past, int64_t head, AttentionRows::Part* parts) const {
    const int64_t batch = head / s_.key_heads, at = head % s_.key_heads;
    if (s_.past > 0)
      *parts++ = {args.inputs[past_input].As<float>() + past.at(batch, at), past.row_step, s_.past};
    *parts = {args.inputs[input].As<float>() + fresh.at(batch, at), fresh.row_step, s_.fresh};
  }

  void PackHead(const RunArgs& args, int64_t head, float* packed, float* finite) const {
    AttentionRows::Part keys[2], values[2];
    SetParts(args, kKey, kPastKey, key_, past_key_, head, keys);
    SetParts(args, kValue, kPastValue, value_, past_value_, head, values);
    const Loops& loops = LoopsHere();
    if (packs_) loops.pack_keys(keys, s_.keys(), s_.width, packed);
    // Only the causal rule leaves keys and values out.
    bool all = true;
    const auto look = [&](const AttentionRows::Part& part, int64_t width) {
      for (int64_t i = 0; i < part.count && all && causal_; ++i)
        all = loops.all_finite(part.at + i * part.step, width);
    };
    for (const AttentionRows::Part& part : keys) look(part, s_.width);
    for (const AttentionRows::Part& part : values) look(part, s_.value_width);
    *finite = all ? 1.0f : 0.0f;
  }

  void Attend(const RunArgs& args, int64_t key_head, int64_t in_group, Interval rows,
              const float* packed, bool finite, float* scores) const {
    const int64_t batch = key_head / s_.key_heads,
                  head = key_head % s_.key_heads * s_.group() + in_group, row = rows.begin;
    AttentionRows r{};
    r.q = args.inputs[kQuery].As<float>() + query_.at(batch, head, row);
    r.q_step = query_.row_step;
    SetParts(args, kKey, kPastKey, key_, past_key_, key_head, r.keys);
    SetParts(args, kValue, kPastValue, value_, past_value_, key_head, r.values);
    r.packed_keys = packs_ ? packed : nullptr;
    r.y = args.outputs[kResult].As<float>() + result_.at(batch, head, row);
    r.y_step = result_.row_step;
    r.rows = rows.size();
    r.key_count = s_.keys(), r.width = s_.width, r.value_width = s_.value_width;
    r.first_seen = causal_ ? s_.past + first_row_ + row + 1 : s_.keys();
    r.finite = finite;
    const int64_t mask_at = batch * mask_steps_[0] + head * mask_steps_[1] + row * mask_steps_[2];
    const TensorView mask = args.inputs.size() > kMask ? args.inputs[kMask] : TensorView();
    if (mask.present() && mask.dtype == DType::kBool) r.choice = mask.As<uint8_t>() + mask_at;
    else if (mask.present()) r.mask = mask.As<float>() + mask_at;
    r.mask_row_step = mask_steps_[2], r.mask_step = mask_steps_[3];
    r.scale = scale_, r.hidden = hidden_;
    r.scores = scores, r.score_step = padded_;
    r.factors = scores + rows.size() * padded_;
    LoopsHere().attend(r);
  }

  // present = past followed by what is new, never packed.
  Status StorePresent(const RunArgs& args, size_t output) const {
    if (args.outputs.size() <= output || !args.outputs[output].present() ||
        args.outputs[output].elements() == 0)
      return OkStatus();
    const bool keys = output == kPresentKey;
    const int64_t width = keys ? s_.width : s_.value_width;
    float* const to = args.outputs[output].As<float>();
    return args.parallel.Run(s_.batch * s_.key_heads, [&](int64_t head) {
      AttentionRows::Part parts[2];
      if (keys) SetParts(args, kKey, kPastKey, key_, past_key_, head, parts);
      else SetParts(args, kValue, kPastValue, value_, past_value_, head, parts);
      float* row = to + head * s_.keys() * width;
      for (const AttentionRows::Part& part : parts) {
        for (int64_t i = 0; i < part.count; ++i, row += width)
          std::copy_n(part.at + i * part.step, width, row);
      }
    });
  }

  const Sizes s_;
  const Heads query_, key_, value_, past_key_, past_value_, result_;
  const bool causal_;
  const int64_t first_row_;
  const float scale_, hidden_;
  bool packs_ = false;
  int64_t padded_ = 0;
  int64_t mask_steps_[4] = {};
};

Result<std::unique_ptr<BoundKernel>> BindAttention(const OpView& op, const Candidate&) {
  return std::unique_ptr<BoundKernel>(std::make_unique<BoundAttention>(op));
}

constexpr Rule kAttentionRules[] = {{"", "Attention", QueryAttention, BindAttention},
                                    {"msrt", "FusedAttention", QueryAttention, BindAttention}};

}  // namespace

std::span<const Rule> AttentionRules() { return kAttentionRules; }

}  // namespace msrt::cpu

// Gradients of attention, by composition: two matrix products with a softmax between them.
#include <cmath>
#include <limits>

#include "ops/grad_positions.h"
#include "ops/gradients.h"

namespace msrt {
namespace {

constexpr size_t kQueryInput = 0, kKeyInput = 1, kValueInput = 2, kMaskInput = 3, kPastKeyInput = 4,
                 kPastValueInput = 5;
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// The nodes of one attention.
class AttentionBody {
 public:
  explicit AttentionBody(GradBuilder& g) : g_(g) {}

  Status Build() {
    for (size_t i : {kQueryInput, kKeyInput, kValueInput}) {
      if (!g_.op().input(i).rank_known)
        return Unsupported("the rank of input ", i, " is not known; declare it");
    }
    MSRT_RETURN_IF_ERROR(ReadHeads());
    const ValueId query = ByHead(g_.input(kQueryInput), query_heads_);
    key_ = WithPast(ByHead(g_.input(kKeyInput), key_heads_), kPastKeyInput);
    value_ = WithPast(ByHead(g_.input(kValueInput), key_heads_), kPastValueInput);
    if (!g_.ok()) return g_.status();
    MSRT_RETURN_IF_ERROR(AddScores(query));
    AddWeights();
    const ValueId values = g_.CastTo(value_, query);
    ValueId sums = Ungrouped(g_.Add("MatMul", {Grouped(weights_), values}));
    if (packed_) sums = Packed(sums);
    result_ = sums;
    return g_.status();
  }

  // The outputs of Attention, in their order.
  std::vector<ValueId> outputs() const { return {result_, key_, value_, stage_}; }
  ValueId result() const { return result_; }
  // The log-sum-exp of the scores of each query row.
  ValueId LogWeights() {
    ValueId sums = g_.Add("ReduceLogSumExp", {shown_},
                          {{"axes", std::vector<int64_t>{3}}, {"keepdims", int64_t{1}}});
    if (visible_ != kNoValue)
      sums = g_.Add("Where", {visible_, sums, g_.Scalar(kMinusInfinity, sums)});
    sums = g_.Add("Squeeze", {sums}, {{"axes", std::vector<int64_t>{3}}});
    return g_.CastTo(sums, g_.output(1));
  }

 private:
  Status ReadHeads() {
    const Dims q = g_.type(g_.input(kQueryInput)).dims, k = g_.type(g_.input(kKeyInput)).dims;
    packed_ = q.rank() == 3;
    query_heads_ = packed_ ? g_.op().Int("q_num_heads") : q[1];
    key_heads_ = packed_ ? g_.op().Int("kv_num_heads") : k[1];
    if (!IsKnown(query_heads_) || !IsKnown(key_heads_))
      return Unsupported("the number of heads is not known; declare dim 1 of Q and K");
    return OkStatus();
  }

  // [batch, heads, rows, width] of a tensor that may be packed.
  ValueId ByHead(ValueId v, int64_t heads) {
    if (!packed_) return v;
    const ValueId split = g_.Add("Reshape", {v, g_.Ints({0, 0, heads, -1})});
    return Permuted(g_, split, {0, 2, 1, 3});
  }
  ValueId Packed(ValueId v) {
    return g_.Add("Reshape", {Permuted(g_, v, {0, 2, 1, 3}), g_.Ints({0, 0, -1})});
  }
  ValueId WithPast(ValueId fresh, size_t past) {
    return g_.has_input(past) ? Joined(g_, {g_.input(past), fresh}, 2) : fresh;
  }
  // Query heads that share a key head become rows of one matrix, and back.
  ValueId Grouped(ValueId v) {
    return query_heads_ == key_heads_ ? v : g_.Add("Reshape", {v, g_.Ints({0, key_heads_, -1, 0})});
  }
  ValueId Ungrouped(ValueId v) {
    return query_heads_ == key_heads_ ? v
                                      : g_.Add("Reshape", {v, g_.Ints({0, query_heads_, -1, 0})});
  }

  Status AddScores(ValueId query) {
    double scale = g_.op().Float("scale");
    if (!g_.op().Has("scale")) {
      const int64_t width = g_.type(query).dims[3];
      if (!IsKnown(width)) return Unsupported("the size of a head is not known; declare it");
      scale = width > 0 ? 1 / std::sqrt(static_cast<double>(width)) : 1;
    }
    const ValueId product =
        g_.Add("MatMul", {Grouped(g_.Times(query, scale)), Permuted(g_, key_, {0, 1, 3, 2})});
    raw_ = scores_ = Ungrouped(product);
    if (const double cap = g_.op().Float("softcap"); cap > 0)
      scores_ = g_.Times(g_.Add("Tanh", {g_.Times(scores_, 1 / cap)}), cap);
    capped_ = scores_;
    if (g_.has_input(kMaskInput)) {
      const ValueId mask = g_.input(kMaskInput);
      scores_ = g_.type(mask).dtype == DType::kBool ? Masked(mask) : g_.Plus(scores_, mask);
    }
    if (g_.op().Int("is_causal") != 0) scores_ = Masked(CausalMask());
    return g_.status();
  }

  ValueId Masked(ValueId mask) {
    return g_.Add("Where", {mask, scores_, g_.Scalar(kMinusInfinity, scores_)});
  }
  // A query sees the keys of the past and those of the rows up to its own.
  ValueId CausalMask() {
    if (!g_.ok()) return kNoValue;
    ValueId last = CountAlong(g_, scores_, 2);
    if (g_.has_input(kPastKeyInput)) last = g_.Plus(last, DimOf(g_, g_.input(kPastKeyInput), 2));
    return g_.Add("LessOrEqual", {CountAlong(g_, scores_, 3), WithAxes(g_, last, {1})});
  }

  // Rows that see no key have weights of zero, except in FusedAttention.
  void AddWeights() {
    shown_ = scores_;
    const bool masked = g_.has_input(kMaskInput) || g_.op().Int("is_causal") != 0;
    if (masked && g_.op().op() != "FusedAttention") {
      const ValueId highest = g_.Add("ReduceMax", {scores_},
                                     {{"axes", std::vector<int64_t>{3}}, {"keepdims", int64_t{1}}});
      visible_ = g_.Add("Greater", {highest, g_.Scalar(kMinusInfinity, highest)});
      shown_ = g_.Add("Where", {visible_, scores_, g_.Scalar(0, scores_)});
    }
    weights_ = g_.Add("Softmax", {shown_}, {{"axis", int64_t{3}}});
    if (visible_ != kNoValue)
      weights_ = g_.Add("Where", {visible_, weights_, g_.Scalar(0, weights_)});
    const ValueId stages[] = {raw_, capped_, scores_, weights_};
    stage_ = stages[g_.op().Int("qk_matmul_output_mode")];
  }

  GradBuilder& g_;
  bool packed_ = false;
  int64_t query_heads_ = 0, key_heads_ = 0;
  ValueId key_ = kNoValue, value_ = kNoValue;
  ValueId raw_ = kNoValue, capped_ = kNoValue, scores_ = kNoValue;
  ValueId visible_ = kNoValue;  // whether a row sees a key; absent: all do
  ValueId shown_ = kNoValue, weights_ = kNoValue, stage_ = kNoValue, result_ = kNoValue;
};

}  // namespace

Status GradAttention(GradBuilder& g) {
  AttentionBody body(g);
  MSRT_RETURN_IF_ERROR(body.Build());
  std::vector<ValueId> outputs = body.outputs();
  outputs.resize(g.op().output_count());
  g.SetByComposition(outputs);
  return OkStatus();
}

Status GradAttentionPart(GradBuilder& g) {
  AttentionBody body(g);
  MSRT_RETURN_IF_ERROR(body.Build());
  g.SetByComposition({body.result(), body.LogWeights()});
  return OkStatus();
}

}  // namespace msrt

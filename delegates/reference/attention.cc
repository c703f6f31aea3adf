// Attention, one query row at a time: scores against every key, softmax, weighted sum of the
// values. All in double; keys are visited in ascending order, whichever query rows are computed.
#include "delegates/reference/broadcast.h"
#include "delegates/reference/dispatch.h"
#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace msrt::reference {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

struct Sizes {
  bool packed = false;
  int64_t batch = 0, query_heads = 0, key_heads = 0, query_rows = 0, key_rows = 0, past = 0,
          width = 0, value_width = 0;

  explicit Sizes(const KernelArgs& args) {
    const Dims &q = args.inputs[0].dims, &k = args.inputs[1].dims, &v = args.inputs[2].dims;
    packed = q.rank() == 3;
    batch = q[0];
    query_heads = packed ? args.op.Int("q_num_heads") : q[1];
    key_heads = packed ? args.op.Int("kv_num_heads") : k[1];
    query_rows = q[packed ? 1 : 2], key_rows = k[packed ? 1 : 2];
    width = packed ? q[2] / query_heads : q[3];
    value_width = packed ? v[2] / key_heads : v[3];
    past = args.has_input(4) ? args.inputs[4].dims[2] : 0;
  }
  int64_t total() const { return past + key_rows; }
};

// [batch, heads, rows, width], or packed as [batch, rows, heads * width].
template <typename T>
struct HeadRows {
  T* data = nullptr;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;

  HeadRows() = default;
  HeadRows(const TensorView& tensor, bool packed, int64_t heads, int64_t rows, int64_t width)
      : data(tensor.As<T>()),
        batch_stride(heads * rows * width),
        head_stride(packed ? width : rows * width),
        row_stride(packed ? heads * width : width) {}
  T* Row(int64_t batch, int64_t head, int64_t row) const {
    return data + batch * batch_stride + head * head_stride + row * row_stride;
  }
};

// The rows of the cache, then the new ones.
template <typename T>
struct CachedRows {
  HeadRows<const T> past, fresh;
  int64_t past_rows = 0;

  CachedRows(const KernelArgs& args, const Sizes& s, size_t input, size_t past_input, int64_t width)
      : fresh(args.inputs[input], s.packed, s.key_heads, s.key_rows, width), past_rows(s.past) {
    if (args.has_input(past_input))
      past = HeadRows<const T>(args.inputs[past_input], false, s.key_heads, s.past, width);
  }
  const T* Row(int64_t batch, int64_t head, int64_t row) const {
    return row < past_rows ? past.Row(batch, head, row) : fresh.Row(batch, head, row - past_rows);
  }
};

// The bias added to a score: the mask, and minus infinity for keys that come after the query.
template <typename T>
class Bias {
 public:
  Bias(const KernelArgs& args, const Sizes& s)
      : causal_(args.op.Int("is_causal") != 0),
        last_key_of_first_row_(args.op.Int("row_offset") + s.past) {
    if (!args.has_input(3)) return;
    mask_ = args.inputs[3];
    strides_ = BroadcastStrides(mask_.dims, {s.batch, s.query_heads, s.query_rows, s.total()});
  }
  double At(int64_t batch, int64_t head, int64_t row, int64_t key) const {
    if (causal_ && key > last_key_of_first_row_ + row) return kMinusInfinity;
    if (!mask_.present()) return 0;
    const int64_t at =
        batch * strides_[0] + head * strides_[1] + row * strides_[2] + key * strides_[3];
    if (mask_.dtype == DType::kBool) return mask_.As<bool>()[at] ? 0 : kMinusInfinity;
    return static_cast<double>(mask_.As<T>()[at]);
  }

 private:
  bool causal_;
  int64_t last_key_of_first_row_;
  TensorView mask_;
  Dims strides_;
};

// Turns scores into weights that sum to 1 and returns their log-sum-exp. If no key may be attended
// to, all weights are `hidden`, and the result is minus infinity.
double SoftmaxOfScores(std::vector<double>& scores, bool masked, double hidden) {
  double maximum = kMinusInfinity, sum = 0;
  for (double x : scores) maximum = x > maximum || std::isnan(x) ? x : maximum;
  if (masked || maximum == kMinusInfinity) {
    std::fill(scores.begin(), scores.end(), hidden);
    return kMinusInfinity;
  }
  for (double& x : scores) sum += x = std::exp(x - maximum);
  for (double& x : scores) x /= sum;
  return maximum + std::log(sum);
}

// Computes the scores of one query row against every key. Writes the stage that
// qk_matmul_output_mode asks for to `stage`, if any.
template <typename T>
class Scorer {
 public:
  Scorer(const KernelArgs& args, const Sizes& s)
      : sizes_(s),
        queries_(args.inputs[0], s.packed, s.query_heads, s.query_rows, s.width),
        keys_(args, s, 1, 4, s.width),
        bias_(args, s),
        softcap_(args.op.Float("softcap")),
        hidden_(args.op.op() == "FusedAttention" ? std::numeric_limits<double>::quiet_NaN() : 0),
        mode_(args.op.Int("qk_matmul_output_mode")) {
    if (args.op.Has("scale")) scale_ = args.op.Float("scale");
    else if (s.width > 0) scale_ = 1 / std::sqrt(static_cast<double>(s.width));
  }

  // Returns the log-sum-exp of the scores.
  double Weigh(int64_t batch, int64_t head, int64_t row, std::vector<double>& weights,
               T* stage) const {
    const int64_t key_head = head / (sizes_.query_heads / sizes_.key_heads);
    const T* query = queries_.Row(batch, head, row);
    bool masked = true;
    for (size_t j = 0; j < weights.size(); ++j) {
      const auto key_row = static_cast<int64_t>(j);
      const T* key = keys_.Row(batch, key_head, key_row);
      double dot = 0;
      for (int64_t d = 0; d < sizes_.width; ++d)
        dot += static_cast<double>(query[d]) * static_cast<double>(key[d]);
      const double raw = scale_ * dot,
                   capped = softcap_ > 0 ? softcap_ * std::tanh(raw / softcap_) : raw;
      const double bias = bias_.At(batch, head, row, key_row);
      masked = masked && bias == kMinusInfinity;
      weights[j] = capped + bias;
      if (stage != nullptr)
        stage[j] = static_cast<T>(mode_ == 0 ? raw : mode_ == 1 ? capped : weights[j]);
    }
    const double log_weight = SoftmaxOfScores(weights, masked, hidden_);
    if (stage == nullptr || mode_ != 3) return log_weight;
    for (size_t j = 0; j < weights.size(); ++j) stage[j] = static_cast<T>(weights[j]);
    return log_weight;
  }

 private:
  const Sizes& sizes_;
  HeadRows<const T> queries_;
  CachedRows<T> keys_;
  Bias<T> bias_;
  double scale_ = 1, softcap_;
  double hidden_;  // the weight of every key where all are hidden
  int64_t mode_;
};

template <typename T, typename V>
Status Attend(const KernelArgs& args, const Sizes& s) {
  const Scorer<T> scorer(args, s);
  const CachedRows<V> values(args, s, 2, 5, s.value_width);
  const HeadRows<T> results(args.outputs[0], s.packed, s.query_heads, s.query_rows, s.value_width);
  T* stages = args.has_output(3) ? args.outputs[3].As<T>() : nullptr;
  const bool part = args.op.op() == "AttentionPart";
  const int64_t rows = s.batch * s.query_heads * s.query_rows;
  const int64_t grain = 1 + 16384 / std::max<int64_t>(s.total() * (s.width + s.value_width), 1);
  return ParallelRanges(args.parallel, rows, grain, [&](int64_t begin, int64_t end) {
    std::vector<double> weights(static_cast<size_t>(s.total())),
        sums(static_cast<size_t>(s.value_width));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t batch = i / (s.query_heads * s.query_rows),
                    head = i / s.query_rows % s.query_heads, row = i % s.query_rows;
      const double log_weight = scorer.Weigh(batch, head, row, weights,
                                             stages != nullptr ? stages + i * s.total() : nullptr);
      if (part) StoreElements(args.outputs[1].dtype, args.outputs[1].data, i, 1, &log_weight);
      std::fill(sums.begin(), sums.end(), 0.0);
      for (size_t j = 0; j < weights.size(); ++j) {
        const V* value =
            values.Row(batch, head / (s.query_heads / s.key_heads), static_cast<int64_t>(j));
        for (size_t d = 0; d < sums.size(); ++d)
          sums[d] += weights[j] * static_cast<double>(value[d]);
      }
      std::transform(sums.begin(), sums.end(), results.Row(batch, head, row),
                     [](double x) { return static_cast<T>(x); });
    }
  });
}

// present = past followed by what is new, never packed.
Status StorePresent(const KernelArgs& args, const Sizes& s, size_t input, size_t past_input,
                    size_t output, int64_t width) {
  if (!args.has_output(output) || args.outputs[output].elements() == 0) return OkStatus();
  return DispatchWidth(args.inputs[input].dtype, [&]<typename T>() -> Status {
    const CachedRows<T> from(args, s, input, past_input, width);
    const HeadRows<T> to(args.outputs[output], false, s.key_heads, s.total(), width);
    return ParallelRanges(args.parallel, s.batch * s.key_heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t batch = i / s.key_heads, head = i % s.key_heads;
        for (int64_t row = 0; row < s.total(); ++row)
          std::copy_n(from.Row(batch, head, row), width, to.Row(batch, head, row));
      }
    });
  });
}

Status AttendAll(const KernelArgs& args, const Sizes& s) {
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    return DispatchFloat(args.inputs[2].dtype,
                         [&]<typename V>() -> Status { return Attend<T, V>(args, s); });
  });
}

Status RunAttention(const KernelArgs& args) {
  const Sizes s(args);
  MSRT_RETURN_IF_ERROR(StorePresent(args, s, 1, 4, 1, s.width));
  MSRT_RETURN_IF_ERROR(StorePresent(args, s, 2, 5, 2, s.value_width));
  // Nothing to compute, and the number of rows without elements may overflow.
  if (args.outputs[0].elements() == 0 && (!args.has_output(3) || args.outputs[3].elements() == 0))
    return OkStatus();
  return AttendAll(args, s);
}

Status RunAttentionPart(const KernelArgs& args) {
  if (args.outputs[1].elements() == 0) return OkStatus();
  return AttendAll(args, Sizes(args));
}

constexpr KernelDef kAttentionKernels[] = {{"", "Attention", RunAttention},
                                           {"msrt", "FusedAttention", RunAttention},
                                           {"msrt", "AttentionPart", RunAttentionPart}};

}  // namespace

std::span<const KernelDef> AttentionKernels() { return kAttentionKernels; }

}  // namespace msrt::reference

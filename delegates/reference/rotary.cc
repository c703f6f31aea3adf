// RotaryEmbedding: (a, b) -> (a cos - b sin, a sin + b cos) for each pair of a head.
#include <algorithm>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/number.h"

namespace msrt::reference {
namespace {

// Returns, for each token of each batch, the row of the caches that has its angles.
Result<std::vector<int64_t>> CacheRows(const KernelArgs& args, int64_t tokens) {
  std::vector<int64_t> rows(static_cast<size_t>(tokens));
  for (int64_t t = 0; t < tokens; ++t) rows[static_cast<size_t>(t)] = t;
  if (!args.has_input(3)) return rows;
  const int64_t positions = args.inputs[1].dims[0];
  rows = IntValues(args.inputs[3].dtype, args.inputs[3].data, tokens);
  for (size_t t = 0; t < rows.size(); ++t) {
    if (rows[t] >= 0 && rows[t] < positions) continue;
    return InvalidArgument("element ", t, " of position_ids is ", rows[t], ", must be in [0, ",
                           positions - 1, "]");
  }
  return rows;
}

template <typename T>
void TurnHead(const T* x, const T* cosines, const T* sines, int64_t pairs, int64_t head,
              bool interleaved, T* y) {
  const int64_t step = interleaved ? 2 : 1, apart = interleaved ? 1 : pairs;
  for (int64_t i = 0; i < pairs; ++i) {
    const double a = x[i * step], b = x[i * step + apart], c = cosines[i], s = sines[i];
    y[i * step] = FromWide<T>(a * c - b * s);
    y[i * step + apart] = FromWide<T>(a * s + b * c);
  }
  std::copy(x + 2 * pairs, x + head, y + 2 * pairs);
}

Status RotaryEmbedding(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &out = args.outputs[0];
  const bool by_head =
      x.dims.rank() == 4;  // [batch, heads, sequence, head], else [batch, sequence, heads * head]
  const int64_t sequence = x.dims[by_head ? 2 : 1],
                heads = by_head ? x.dims[1] : args.op.Int("num_heads");
  const int64_t head = by_head ? x.dims[3] : x.dims[2] / heads;
  const int64_t turned =
      args.op.Int("rotary_embedding_dim") != 0 ? args.op.Int("rotary_embedding_dim") : head;
  const int64_t pairs = turned / 2, width = args.inputs[1].dims.back();
  const bool interleaved = args.op.Int("interleaved") != 0;
  if (out.elements() == 0) return OkStatus();  // the number of heads and tokens may overflow
  MSRT_ASSIGN_OR_RETURN(const auto rows, CacheRows(args, x.dims[0] * sequence));
  return DispatchFloat(x.dtype, [&]<typename T>() -> Status {
    return ParallelRanges(
        args.parallel, x.dims[0] * sequence * heads, 16, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t batch = i / (heads * sequence), rest = i % (heads * sequence);
            const int64_t position = by_head ? rest % sequence : rest / heads;
            const int64_t row = rows[static_cast<size_t>(batch * sequence + position)];
            TurnHead(x.As<T>() + i * head, args.inputs[1].As<T>() + row * width,
                     args.inputs[2].As<T>() + row * width, pairs, head, interleaved,
                     out.As<T>() + i * head);
          }
        });
  });
}

constexpr KernelDef kRotaryKernels[] = {{"", "RotaryEmbedding", RotaryEmbedding}};

}  // namespace

std::span<const KernelDef> RotaryKernels() { return kRotaryKernels; }

}  // namespace msrt::reference

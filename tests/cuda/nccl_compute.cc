// The arithmetic of NCCL's collectives.
#include <cstring>
#include <type_traits>

#include "core/base/half.h"
#include "tests/cuda/nccl.h"

namespace msrt::cuda::emulated {
namespace {

template <typename T>
T Combine(T a, T b, ncclRedOp_t op) {
  const auto x = static_cast<std::conditional_t<std::is_arithmetic_v<T>, T, float>>(a);
  const auto y = static_cast<std::conditional_t<std::is_arithmetic_v<T>, T, float>>(b);
  switch (op) {
    case ncclProd:
      return static_cast<T>(x * y);
    case ncclMax:
      return x < y ? b : a;
    case ncclMin:
      return y < x ? b : a;
    default:
      return static_cast<T>(x + y);
  }
}

template <typename T>
T Average(T sum, size_t ranks) {
  if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(sum / static_cast<T>(ranks));
  if constexpr (!std::is_arithmetic_v<T>) {
    return static_cast<T>(static_cast<float>(sum) / static_cast<float>(ranks));
  }
}

// NCCL promises no order of a sum: each operation takes another.
template <typename T>
void Reduce(const std::vector<Communication>& parts, size_t first, size_t count) {
  const size_t ranks = parts.size();
  const ncclRedOp_t op = parts[0].op;
  std::vector<T> result(count);
  for (size_t i = 0; i < count; ++i) {
    T value = static_cast<const T*>(parts[first].send)[i];
    for (size_t r = 1; r < ranks; ++r) {
      value = Combine(value, static_cast<const T*>(parts[(first + r) % ranks].send)[i], op);
    }
    result[i] = op == ncclAvg ? Average(value, ranks) : value;
  }
  for (size_t r = 0; r < ranks; ++r) {
    const bool scatter = parts[0].kind == Collective::kReduceScatter;
    const T* from = result.data() + (scatter ? r * parts[0].count : 0);
    memcpy(parts[r].receive, from, parts[0].count * sizeof(T));
  }
}

void ReduceAny(const std::vector<Communication>& parts, size_t first, size_t count) {
  switch (parts[0].type) {
    case ncclInt8:
      return Reduce<int8_t>(parts, first, count);
    case ncclUint8:
      return Reduce<uint8_t>(parts, first, count);
    case ncclInt32:
      return Reduce<int32_t>(parts, first, count);
    case ncclUint32:
      return Reduce<uint32_t>(parts, first, count);
    case ncclInt64:
      return Reduce<int64_t>(parts, first, count);
    case ncclUint64:
      return Reduce<uint64_t>(parts, first, count);
    case ncclFloat16:
      return Reduce<msrt::Half>(parts, first, count);
    case ncclBfloat16:
      return Reduce<msrt::BFloat16>(parts, first, count);
    case ncclFloat32:
      return Reduce<float>(parts, first, count);
    case ncclFloat64:
      return Reduce<double>(parts, first, count);
    default:
      return;
  }
}

}  // namespace

size_t BytesOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

void Compute(const std::vector<Communication>& parts, int first) {
  const size_t ranks = parts.size(), bytes = parts[0].count * BytesOf(parts[0].type);
  switch (parts[0].kind) {
    case Collective::kAllReduce:
      ReduceAny(parts, static_cast<size_t>(first), parts[0].count);
      break;
    case Collective::kReduceScatter:
      ReduceAny(parts, static_cast<size_t>(first), parts[0].count * ranks);
      break;
    case Collective::kAllGather: {
      std::vector<char> all(bytes * ranks);
      for (size_t r = 0; r < ranks; ++r) memcpy(all.data() + r * bytes, parts[r].send, bytes);
      for (size_t r = 0; r < ranks; ++r) memcpy(parts[r].receive, all.data(), all.size());
      break;
    }
    default: {
      const char* from = static_cast<const char*>(parts[static_cast<size_t>(parts[0].peer)].send);
      const std::vector<char> data(from, from + bytes);
      for (size_t r = 0; r < ranks; ++r) memcpy(parts[r].receive, data.data(), bytes);
    }
  }
}

}  // namespace msrt::cuda::emulated

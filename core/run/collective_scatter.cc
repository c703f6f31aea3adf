#include "core/run/collective_scatter.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/base/half.h"

namespace msrt {
namespace {

// The updates of all ranks.
struct AllUpdates {
  const std::byte* indices = nullptr;  // i64, tuples; not aligned
  const std::byte* updates = nullptr;
  size_t count = 0;  // of tuples
};

Status AwaitWork(Result<CommWorkPtr> work, const WaitLimit& limit) {
  if (!work.ok()) return std::move(work).status();
  return (*work)->Wait(limit);
}

// Gathers what has `bytes_each` for each tuple.
Result<Block> GatherUpdates(const void* own, std::span<const int64_t> counts, size_t bytes_each,
                            Communicator& comm, const WaitLimit& limit, Allocator* allocator) {
  std::vector<size_t> bytes;
  for (const int64_t n : counts) bytes.push_back(static_cast<size_t>(n) * bytes_each);
  const size_t all = std::accumulate(bytes.begin(), bytes.end(), size_t{0});
  MSRT_ASSIGN_OR_RETURN(
      Block block, Block::Make(allocator, std::max<size_t>(all, 1), "the updates of all ranks"));
  MSRT_RETURN_IF_ERROR(AwaitWork(comm.AllGather(own, block.data(), bytes), limit));
  return block;
}

// The rows of the data that tuples refer to. A row is what a tuple leaves of the dims.
Result<std::vector<int64_t>> RowsOf(const AllUpdates& all, const Dims& data, int tuple) {
  std::vector<int64_t> rows(all.count);
  for (size_t i = 0; i < all.count; ++i) {
    int64_t row = 0;
    for (int d = 0; d < tuple; ++d) {
      int64_t index;
      std::memcpy(&index,
                  all.indices + (i * static_cast<size_t>(tuple) + static_cast<size_t>(d)) * 8, 8);
      if (index < -data[d] || index >= data[d])
        return InvalidArgument("index ", index, " of update ", i, " of all ranks, must be in [",
                               -data[d], ", ", data[d] - 1, "] for axis ", d, " of data");
      row = row * data[d] + (index < 0 ? index + data[d] : index);
    }
    rows[i] = row;
  }
  return rows;
}

template <typename T>
void AddRows(const AllUpdates& all, std::span<const int64_t> rows, size_t width, T* y) {
  constexpr size_t kTile = 256;
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rows[a] < rows[b]; });
  const T* const updates = static_cast<const T*>(static_cast<const void*>(all.updates));
  double sums[kTile];
  for (size_t first = 0; first < order.size();) {
    const int64_t row = rows[order[first]];
    size_t last = first;
    while (last < order.size() && rows[order[last]] == row) ++last;
    T* const to = y + static_cast<size_t>(row) * width;
    for (size_t c = 0; c < width; c += kTile) {
      const size_t columns = std::min(kTile, width - c);
      for (size_t k = 0; k < columns; ++k) sums[k] = static_cast<double>(to[c + k]);
      for (size_t i = first; i < last; ++i) {
        const T* update = updates + order[i] * width + c;
        for (size_t k = 0; k < columns; ++k) sums[k] += static_cast<double>(update[k]);
      }
      if constexpr (sizeof(T) == 2) {
        for (size_t k = 0; k < columns; ++k) to[c + k] = T(static_cast<float>(sums[k]));
      } else {
        for (size_t k = 0; k < columns; ++k) to[c + k] = static_cast<T>(sums[k]);
      }
    }
    first = last;
  }
}

}  // namespace

Status RunAllScatterAdd(std::span<const TensorView> inputs, const TensorView& out,
                        Communicator* comm, const WaitLimit& limit, Allocator* allocator) {
  const TensorView &data = inputs[0], &indices = inputs[1], &updates = inputs[2];
  const auto tuple = static_cast<int>(indices.dims.back());
  const auto width = static_cast<size_t>(data.dims.product(tuple, data.dims.rank()));
  int64_t count = indices.dims.product(0, indices.dims.rank() - 1);
  const size_t element = BytesOf(data.dtype, 1);
  AllUpdates all{static_cast<const std::byte*>(indices.data),
                 static_cast<const std::byte*>(updates.data), static_cast<size_t>(count)};
  Block gathered_indices, gathered_updates;
  if (comm != nullptr && comm->size() > 1) {
    std::vector<int64_t> counts(static_cast<size_t>(comm->size()));
    const std::vector<size_t> one(counts.size(), sizeof count);
    MSRT_RETURN_IF_ERROR(AwaitWork(comm->AllGather(&count, counts.data(), one), limit));
    MSRT_ASSIGN_OR_RETURN(gathered_indices,
                          GatherUpdates(indices.data, counts, static_cast<size_t>(tuple) * 8, *comm,
                                        limit, allocator));
    MSRT_ASSIGN_OR_RETURN(gathered_updates, GatherUpdates(updates.data, counts, width * element,
                                                          *comm, limit, allocator));
    all = {gathered_indices.data(), gathered_updates.data(),
           static_cast<size_t>(std::accumulate(counts.begin(), counts.end(), int64_t{0}))};
  }
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> rows, RowsOf(all, data.dims, tuple));
  const size_t bytes = BytesOf(data.dtype, data.dims.elements());
  if (bytes != 0 && out.data != data.data) std::memcpy(out.data, data.data, bytes);
  switch (data.dtype) {
    case DType::kF64:
      AddRows(all, rows, width, static_cast<double*>(out.data));
      break;
    case DType::kF16:
      AddRows(all, rows, width, static_cast<Half*>(out.data));
      break;
    case DType::kBF16:
      AddRows(all, rows, width, static_cast<BFloat16*>(out.data));
      break;
    default:
      AddRows(all, rows, width, static_cast<float*>(out.data));
  }
  return OkStatus();
}

}  // namespace msrt

#include "core/image/jobs/band_reader.h"

#include <algorithm>

namespace msrt {
namespace {

// A large window is read in bands of rows of about so many bytes, each a sign of work.
constexpr int64_t kReadBytes = int64_t{32} << 20;

}  // namespace

Status BandReader::Read(const Box& box, const TensorView& memory) {
  const Dims strides =
      memory.strides != nullptr ? Dims({memory.strides, 4}) : RowMajorStrides(memory.dims);
  const Interval rows = box[2], columns = box[3];
  const int64_t row_bytes =
      std::max<int64_t>(1, box[1].size() * columns.size()) * static_cast<int64_t>(sizeof(float));
  const int64_t step = std::max<int64_t>(1, kReadBytes / row_bytes);
  const int64_t block = Consecutive(box[1]) ? 0 : source_->block_rows();
  for (int64_t row = rows.begin, end; row < rows.end; row = end) {
    end = std::min(rows.end, row + step);
    // Bands that are read one by one need the same blocks, of which the source keeps few rows.
    if (block > 0) end = std::min(end, (row / block + 1) * block);
    Box part = box;
    part[2] = {row, end};
    MSRT_RETURN_IF_ERROR(
        ReadRows(part, memory.As<float>() + (row - rows.begin) * strides[2], strides));
    work_->fetch_add(1, std::memory_order_relaxed);
  }
  return OkStatus();
}

// Bands that follow each other are read at once, so that each block is decoded once for all of
// them.
Status BandReader::ReadRows(const Box& box, float* data, const Dims& strides) {
  const Interval rows = box[2], columns = box[3];
  for (int64_t begin = box[1].begin, end; begin < box[1].end; begin = end) {
    end = begin + 1;
    while (end < box[1].end &&
           bands_[static_cast<size_t>(end)] == bands_[static_cast<size_t>(end - 1)] + 1)
      ++end;
    float* const planes = data + (begin - box[1].begin) * strides[1];
    MSRT_RETURN_IF_ERROR(source_->Read({rows.begin, columns.begin, rows.size(), columns.size(),
                                        bands_[static_cast<size_t>(begin)], end - begin},
                                       {planes, DType::kF32, strides[1], strides[2]}));
    if (normalization_.empty()) continue;
    for (int64_t b = begin; b < end; ++b) {
      float* const plane = planes + (b - begin) * strides[1];
      for (int64_t r = 0; r < rows.size(); ++r)
        normalization_.Apply(b, {plane + r * strides[2], static_cast<size_t>(columns.size())});
    }
  }
  return OkStatus();
}

bool BandReader::Consecutive(Interval bands) const {
  for (int64_t b = bands.begin + 1; b < bands.end; ++b) {
    if (bands_[static_cast<size_t>(b)] != bands_[static_cast<size_t>(b - 1)] + 1) return false;
  }
  return true;
}

void BandReader::ReadAhead(const Box& box) {
  const auto [first, last] = std::minmax_element(bands_.begin(), bands_.end());
  source_->ReadAhead(
      {box[2].begin, box[3].begin, box[2].size(), box[3].size(), *first, *last - *first + 1});
}

}  // namespace msrt

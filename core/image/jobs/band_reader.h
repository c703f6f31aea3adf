// Fills the input of a model with windows of an image: the chosen bands, as f32, normalized.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/graph/tensor.h"
#include "core/image/files/image_source.h"
#include "core/image/jobs/image_normalize.h"
#include "core/region/box.h"

namespace msrt {

// Used by one thread.
class BandReader {
 public:
  // Channel b of the input is band `bands[b]` of the image. `work` grows while windows are read.
  BandReader(std::shared_ptr<ImageSource> source, std::vector<int64_t> bands,
             const Normalization& normalization, std::shared_ptr<std::atomic<uint64_t>> work)
      : source_(std::move(source)),
        bands_(std::move(bands)),
        normalization_(normalization),
        work_(std::move(work)) {}

  // Fills the memory with a box of the input, [1, bands, rows, columns].
  Status Read(const Box& box, const TensorView& memory);
  // Decodes a box in the background.
  void ReadAhead(const Box& box);

 private:
  // Whether these channels of the input are bands that follow each other.
  bool Consecutive(Interval bands) const;
  Status ReadRows(const Box& box, float* data, const Dims& strides);

  const std::shared_ptr<ImageSource> source_;
  const std::vector<int64_t> bands_;
  const Normalization& normalization_;
  const std::shared_ptr<std::atomic<uint64_t>> work_;
};

}  // namespace msrt

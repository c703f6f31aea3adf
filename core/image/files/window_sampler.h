// Random windows of an image for training, with flips, quarter turns and a normalisation per band.
// Only the windows are read. Sample i depends on the seed and on i alone, so any thread or rank can
// make it, in any order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/image/files/image_source.h"

namespace msrt {

struct SamplerOptions {
  int64_t rows = 256, cols = 256;  // of a sample
  uint64_t seed = 0;
  bool flips = false;          // half of the samples are mirrored left to right
  bool quarter_turns = false;  // each of the four turns is equally likely
  // A sample is (pixel - mean) / deviation, per channel; empty: pixels as they are.
  std::vector<float> mean = {}, deviation = {};
};

struct SampleWindow {
  ImageWindow window = {};  // in the image; transposed sizes for odd numbers of turns
  int quarter_turns = 0;    // counter-clockwise, after the flip
  bool flip = false;
};

// Thread-safe.
class WindowSampler {
 public:
  // `source` must outlive the sampler.
  static Result<WindowSampler> Make(ImageSource* source, SamplerOptions options);

  SampleWindow Choose(uint64_t index) const;
  // Writes channels x rows x cols values. `out` must have that many.
  Status Read(uint64_t index, std::span<float> out) const;

 private:
  WindowSampler(ImageSource* source, SamplerOptions options)
      : source_(source), options_(std::move(options)) {}

  ImageSource* source_;
  SamplerOptions options_;
};

}  // namespace msrt

#include "core/image/files/window_sampler.h"

#include <algorithm>
#include <cmath>

#include "core/base/checked_math.h"

namespace msrt {
namespace {

// SplitMix64: a well mixed number for each (seed, index, draw).
uint64_t Draw(uint64_t seed, uint64_t index, uint64_t draw) {
  uint64_t z = seed + 0x9e3779b97f4a7c15u * (index * 4 + draw + 1);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// A number in [0, limit), of which none is noticeably preferred.
int64_t Below(uint64_t random, int64_t limit) {
  return static_cast<int64_t>(
      static_cast<unsigned __int128>(random) * static_cast<uint64_t>(limit) >> 64);
}

// The pixel of an h x w window that comes to (row, col) after the flip and the turns.
struct Place {
  int64_t row, col;
};
Place SourceOf(const SampleWindow& sample, int64_t row, int64_t col) {
  const int64_t h = sample.window.rows, w = sample.window.cols;
  Place place{row, col};
  switch (sample.quarter_turns) {
    case 1:
      place = {col, w - 1 - row};
      break;
    case 2:
      place = {h - 1 - row, w - 1 - col};
      break;
    case 3:
      place = {h - 1 - col, row};
      break;
    default:
      break;
  }
  if (sample.flip) place.col = w - 1 - place.col;
  return place;
}

}  // namespace

Result<WindowSampler> WindowSampler::Make(ImageSource* source, SamplerOptions options) {
  const ImageInfo& info = source->info();
  const int64_t longest = std::max(options.rows, options.cols);
  const int64_t height = options.quarter_turns ? longest : options.rows;
  const int64_t width = options.quarter_turns ? longest : options.cols;
  if (options.rows < 1 || options.cols < 1 || height > info.height || width > info.width)
    return InvalidArgument("samples of ", options.rows, " x ", options.cols,
                           " do not fit in an image of ", info.height, " x ", info.width,
                           options.quarter_turns ? " in every turn" : "");
  const auto channels = static_cast<size_t>(info.channels);
  if ((!options.mean.empty() && options.mean.size() != channels) ||
      (!options.deviation.empty() && options.deviation.size() != channels))
    return InvalidArgument("a normalisation of ", options.mean.size(), " means and ",
                           options.deviation.size(), " deviations for ", channels, " channels");
  for (const float deviation : options.deviation) {
    if (!(deviation > 0) || !std::isfinite(deviation))
      return InvalidArgument("a deviation of ", deviation, ": it must be positive");
  }
  return WindowSampler(source, std::move(options));
}

SampleWindow WindowSampler::Choose(uint64_t index) const {
  const uint64_t kind = Draw(options_.seed, index, 0);
  SampleWindow sample;
  sample.quarter_turns = options_.quarter_turns ? static_cast<int>(kind & 3) : 0;
  sample.flip = options_.flips && (kind & 4) != 0;
  sample.window.rows = sample.quarter_turns % 2 == 0 ? options_.rows : options_.cols;
  sample.window.cols = sample.quarter_turns % 2 == 0 ? options_.cols : options_.rows;
  const ImageInfo& info = source_->info();
  sample.window.row = Below(Draw(options_.seed, index, 1), info.height - sample.window.rows + 1);
  sample.window.col = Below(Draw(options_.seed, index, 2), info.width - sample.window.cols + 1);
  sample.window.channels = info.channels;
  return sample;
}

Status WindowSampler::Read(uint64_t index, std::span<float> out) const {
  const SampleWindow sample = Choose(index);
  const int64_t channels = source_->info().channels, pixels = options_.rows * options_.cols;
  if (out.size() != static_cast<size_t>(channels * pixels))
    return InvalidArgument("a sample has ", channels * pixels, " values, not ", out.size());
  std::vector<float> window(out.size());
  MSRT_RETURN_IF_ERROR(
      source_->Read(sample.window, {window.data(), DType::kF32, pixels, sample.window.cols}));
  for (int64_t channel = 0; channel < channels; ++channel) {
    const auto c = static_cast<size_t>(channel);
    const float mean = options_.mean.empty() ? 0 : options_.mean[c];
    const float deviation = options_.deviation.empty() ? 1 : options_.deviation[c];
    for (int64_t row = 0; row < options_.rows; ++row) {
      for (int64_t col = 0; col < options_.cols; ++col) {
        const Place from = SourceOf(sample, row, col);
        const int64_t source = channel * pixels + from.row * sample.window.cols + from.col;
        out[static_cast<size_t>(channel * pixels + row * options_.cols + col)] =
            (window[static_cast<size_t>(source)] - mean) / deviation;
      }
    }
  }
  return OkStatus();
}

}  // namespace msrt

// Helpers of tests of training data: numbered pictures, sources in memory, files byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <numeric>

#include "core/image/files/image_testing.h"
#include "core/train/data/data_loader.h"

namespace msrt::testing {

// Pixel i has the value i; its label is its number in the plane.
inline Picture NumberedPicture(int64_t channels, int64_t rows, int64_t cols) {
  Picture picture;
  picture.Resize(channels, rows, cols);
  std::iota(picture.pixels.begin(), picture.pixels.end(), 0.0F);
  picture.label_map.resize(static_cast<size_t>(rows * cols));
  std::iota(picture.label_map.begin(), picture.label_map.end(), 0);
  return picture;
}

// Sample i has 2 x 3 pixels of value 10 * i + pixel and label i % classes. Sample `bad` fails.
inline std::shared_ptr<const SampleSource> NumberedSamples(int64_t samples, int64_t classes = 4,
                                                           int64_t bad = -1) {
  CallbackSamples callback;
  callback.samples = samples;
  for (int64_t c = 0; c < classes; ++c) callback.class_names.push_back(StrCat("class ", c));
  callback.read = [=](int64_t index, Picture* out) -> Status {
    if (index == bad) return InvalidArgument("damaged");
    out->Resize(1, 2, 3);
    for (size_t i = 0; i < 6; ++i)
      out->pixels[i] = static_cast<float>(10 * index) + static_cast<float>(i);
    out->label = index % classes;
    return OkStatus();
  };
  return std::shared_ptr<const SampleSource>(*MakeCallbackSamples(std::move(callback)));
}

inline void WriteText(const std::string& path, const std::string& text) {
  WriteBytes(path, std::as_bytes(std::span(text)));
}

}  // namespace msrt::testing

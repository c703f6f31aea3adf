// A sample, and the interface of what samples are read from: an image folder, packed files, .npy
// arrays, windows of large images, the application.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/dims.h"
#include "core/train/data/sample_random.h"

namespace msrt {

// The label of samples and pixels that neither losses nor metrics count.
inline constexpr int64_t kIgnoredLabel = -1;

// Values of one picture, channel after channel, with its label.
struct Picture {
  int64_t channels = 0, rows = 0, cols = 0;
  std::vector<float> pixels = {};
  int64_t label = 0;
  // A label for each pixel, rows x cols, instead of `label`. Empty: the picture has one label.
  std::vector<int32_t> label_map = {};

  // Sets sizes and room for the pixels, whose values are unspecified.
  void Resize(int64_t new_channels, int64_t new_rows, int64_t new_cols) {
    channels = new_channels, rows = new_rows, cols = new_cols;
    pixels.resize(static_cast<size_t>(channels * rows * cols));
  }
  float* Plane(int64_t channel) { return pixels.data() + channel * rows * cols; }
  const float* Plane(int64_t channel) const { return pixels.data() + channel * rows * cols; }
};

// Thread-safe.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual int64_t samples() const = 0;
  // Empty where the source does not know them.
  virtual const std::vector<std::string>& class_names() const = 0;
  // The dims of a sample without the batch. Empty: a picture of channels x rows x columns, whose
  // size may differ from sample to sample.
  virtual Dims sample_dims() const { return {}; }
  virtual bool has_label_maps() const { return false; }
  // Names a sample in messages: its file, or its number in a file.
  virtual std::string NameOf(int64_t index) const = 0;
  // Reads the sample with values as they are stored. An error means that this sample is unreadable;
  // others may be fine. `random` is for sources that choose.
  virtual Status Read(int64_t index, SampleRandom random, Picture* out) const = 0;
  // Differs for different data, as far as names, labels and sizes tell: ranks compare it.
  virtual uint64_t fingerprint() const = 0;
};

// The number of classes, from names or labels of a source. A source with neither has 0.
inline int64_t NumClasses(const SampleSource& source) {
  return static_cast<int64_t>(source.class_names().size());
}

// Samples that a function reads. It may be called from several threads at once.
using ReadSample = std::function<Status(int64_t index, Picture* out)>;
struct CallbackSamples {
  int64_t samples = 0;
  std::vector<std::string> class_names = {};
  Dims sample_dims = {};
  bool has_label_maps = false;
  ReadSample read = nullptr;
};
Result<std::unique_ptr<SampleSource>> MakeCallbackSamples(CallbackSamples callback);

// FNV-1a, for fingerprints.
class Fingerprint {
 public:
  void Add(std::string_view bytes) {
    for (const char c : bytes) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash_ = (hash_ ^ 0xff) * 0x100000001b3u;
  }
  void Add(int64_t number) {
    Add(std::string_view(reinterpret_cast<const char*>(&number), sizeof(number)));
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace msrt

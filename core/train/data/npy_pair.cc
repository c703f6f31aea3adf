#include "core/train/data/npy_pair.h"

#include <algorithm>
#include <cmath>

#include "core/base/io.h"
#include "core/image/files/npy_header.h"
#include "core/image/files/pixel_convert.h"

namespace msrt {
namespace {

struct MappedArray {
  Bytes file;
  NpyArray array;

  const std::byte* At(int64_t element) const {
    return file.data.data() + array.data_offset + element * ElementBytes(array.dtype);
  }
  // The product of all dims after the first.
  int64_t PerSample() const {
    int64_t elements = 1;
    for (size_t d = 1; d < array.shape.size(); ++d) elements *= array.shape[d];
    return elements;
  }
};

Result<MappedArray> MapArray(const std::string& path) {
  MappedArray mapped;
  MSRT_ASSIGN_OR_RETURN(mapped.file, DefaultIo()->MapFile(path));
  const auto bytes = static_cast<int64_t>(mapped.file.data.size());
  Result<NpyArray> array = ParseNpyArray(
      mapped.file.data.first(std::min<size_t>(mapped.file.data.size(), kMaxNpyHeaderBytes)), bytes);
  if (!array.ok()) return std::move(array).status().Within(path);
  mapped.array = *std::move(array);
  if (mapped.array.swapped)
    return Unsupported(path,
                       ": elements in the byte order of other machines; convert the array "
                       "with numpy's newbyteorder and save it again");
  if (mapped.array.shape.empty() || mapped.array.shape[0] < 1 || mapped.PerSample() < 1)
    return InvalidArgument(path, ": an array of shape ",
                           std::span<const int64_t>(mapped.array.shape), " has no samples");
  return mapped;
}

int64_t LabelValue(const MappedArray& labels, int64_t element) {
  const std::byte* const at = labels.At(element);
  const auto read = [&]<typename T>(T value) {
    std::copy_n(at, sizeof(T), reinterpret_cast<std::byte*>(&value));
    return static_cast<int64_t>(value);
  };
  switch (labels.array.dtype) {
    case DType::kU8:
      return read(uint8_t{});
    case DType::kI8:
      return read(int8_t{});
    case DType::kU16:
      return read(uint16_t{});
    case DType::kI16:
      return read(int16_t{});
    case DType::kU32:
      return read(uint32_t{});
    case DType::kI32:
      return read(int32_t{});
    default:
      return read(int64_t{});
  }
}

class NpyPair final : public SampleSource {
 public:
  NpyPair(std::string path, MappedArray samples, MappedArray labels, int64_t classes)
      : path_(std::move(path)), samples_(std::move(samples)), labels_(std::move(labels)) {
    for (int64_t c = 0; c < classes; ++c) class_names_.push_back(StrCat(c));
    hash_.Add(this->samples());
    for (int64_t i = 0; i < this->samples(); ++i) hash_.Add(LabelValue(labels_, i));
  }

  int64_t samples() const override { return samples_.array.shape[0]; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  Dims sample_dims() const override {
    const std::vector<int64_t>& shape = samples_.array.shape;
    if (shape.size() == 3 || shape.size() == 4) return {};
    return Dims(std::span(shape).subspan(1));
  }
  bool has_label_maps() const override { return labels_.array.shape.size() == 3; }
  std::string NameOf(int64_t index) const override {
    return StrCat("sample ", index, " of ", path_);
  }

  Status Read(int64_t index, SampleRandom, Picture* out) const override {
    const std::vector<int64_t>& shape = samples_.array.shape;
    const int64_t elements = samples_.PerSample();
    if (shape.size() == 4) {
      out->Resize(shape[1], shape[2], shape[3]);
    } else if (shape.size() == 3) {
      out->Resize(1, shape[1], shape[2]);
    } else {
      out->Resize(elements, 1, 1);
    }
    ConvertPixels(samples_.At(index * elements), samples_.array.dtype, 1,
                  reinterpret_cast<std::byte*>(out->pixels.data()), DType::kF32, elements);
    out->label_map.clear();
    out->label = kIgnoredLabel;
    if (!has_label_maps()) {
      out->label = LabelValue(labels_, index);
      return OkStatus();
    }
    const int64_t pixels = labels_.PerSample();
    for (int64_t i = 0; i < pixels; ++i)
      out->label_map.push_back(static_cast<int32_t>(LabelValue(labels_, index * pixels + i)));
    return OkStatus();
  }
  uint64_t fingerprint() const override { return hash_.value(); }

 private:
  const std::string path_;
  const MappedArray samples_, labels_;
  std::vector<std::string> class_names_;
  Fingerprint hash_;
};

// Returns the number of classes. Label -1 is ignored.
Result<int64_t> CheckLabels(const std::string& path, const MappedArray& labels) {
  constexpr int64_t kMaxClasses = 1 << 20;
  int64_t max = -1;
  const int64_t elements = labels.array.shape[0] * labels.PerSample();
  for (int64_t i = 0; i < elements; ++i) {
    const int64_t label = LabelValue(labels, i);
    if (label < kIgnoredLabel || label >= kMaxClasses)
      return InvalidArgument(path, ": label ", label, " at ", i, " is not in -1 to ",
                             kMaxClasses - 1);
    max = std::max(max, label);
  }
  return max + 1;
}

}  // namespace

Result<std::unique_ptr<SampleSource>> OpenNpyPair(const std::string& samples,
                                                  const std::string& labels) {
  MSRT_ASSIGN_OR_RETURN(MappedArray values, MapArray(samples));
  MSRT_ASSIGN_OR_RETURN(MappedArray targets, MapArray(labels));
  const std::vector<int64_t>&shape = values.array.shape, &label_shape = targets.array.shape;
  if (!kImageTypes.Has(values.array.dtype))
    return Unsupported(samples, ": samples of ", values.array.dtype,
                       "; save them with numpy's astype('<f4')");
  if (kFloatTypes.Has(targets.array.dtype))
    return InvalidArgument(labels, ": labels of ", targets.array.dtype,
                           ": they are numbers of classes; save them with astype('<i8')");
  const bool maps = label_shape.size() == 3 && shape.size() >= 3 &&
                    label_shape[1] == shape[shape.size() - 2] && label_shape[2] == shape.back();
  if (shape.size() < 2 || shape.size() > kMaxRank || label_shape[0] != shape[0] ||
      (label_shape.size() != 1 && !maps))
    return InvalidArgument(labels, ": labels of shape ", std::span<const int64_t>(label_shape),
                           " do not fit samples of shape ", std::span<const int64_t>(shape), " in ",
                           samples, ": one label per sample, or one per pixel");
  MSRT_ASSIGN_OR_RETURN(const int64_t classes, CheckLabels(labels, targets));
  return std::unique_ptr<SampleSource>(
      std::make_unique<NpyPair>(samples, std::move(values), std::move(targets), classes));
}

}  // namespace msrt

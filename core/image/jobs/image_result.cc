#include "core/image/jobs/image_result.h"

#include <cmath>
#include <limits>

#include "core/image/files/pixel_convert.h"

namespace msrt {
namespace {

// The box as channels x rows x columns. Strides are in elements.
struct Planes {
  const void* data;
  DType dtype;
  int64_t channels, rows, columns;
  int64_t channel_stride, row_stride, column_stride;
};

Planes PlanesOf(const TensorView& box) {
  const int rank = box.dims.rank();
  int64_t strides[kMaxRank];
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    strides[d] = box.strides != nullptr ? box.strides[d] : stride;
    stride *= box.dims[d];
  }
  const bool bands = rank == 4;
  return {box.data,           box.dtype,          bands ? box.dims[1] : 1,
          box.dims[rank - 2], box.dims[rank - 1], bands ? strides[1] : 0,
          strides[rank - 2],  strides[rank - 1]};
}

// Calls body(T()) for the element types that outputs of models have.
template <typename Body>
Status ForType(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32:
      return body(float());
    case DType::kF64:
      return body(double());
    case DType::kI64:
      return body(int64_t());
    case DType::kI32:
      return body(int32_t());
    case DType::kI16:
      return body(int16_t());
    case DType::kI8:
      return body(int8_t());
    case DType::kU8:
    case DType::kBool:
      return body(uint8_t());
    case DType::kU16:
      return body(uint16_t());
    case DType::kU32:
      return body(uint32_t());
    default:
      return Unsupported("an output of ", dtype,
                         " cannot be written as an image; convert the output to f32 in the model");
  }
}

template <typename T>
void ConvertToFloat(const Planes& p, float* out) {
  const T* const from = static_cast<const T*>(p.data);
  for (int64_t c = 0; c < p.channels; ++c) {
    for (int64_t r = 0; r < p.rows; ++r) {
      const T* const row = from + c * p.channel_stride + r * p.row_stride;
      for (int64_t x = 0; x < p.columns; ++x) *out++ = static_cast<float>(row[x * p.column_stride]);
    }
  }
}

// Arg-max over the channels. A NaN is never the largest.
template <typename T, typename Class>
void ArgMaxClasses(const Planes& p, Class* out) {
  std::vector<T> best(static_cast<size_t>(p.columns));
  for (int64_t r = 0; r < p.rows; ++r, out += p.columns) {
    const T* row = static_cast<const T*>(p.data) + r * p.row_stride;
    for (int64_t x = 0; x < p.columns; ++x) {
      const T first = row[x * p.column_stride];
      // Only NaN differs from itself.
      best[static_cast<size_t>(x)] = first == first ? first : std::numeric_limits<T>::lowest();
      out[x] = 0;
    }
    for (int64_t c = 1; c < p.channels; ++c) {
      row += p.channel_stride;
      for (int64_t x = 0; x < p.columns; ++x) {
        const T value = row[x * p.column_stride];
        if (value > best[static_cast<size_t>(x)]) {
          best[static_cast<size_t>(x)] = value;
          out[x] = static_cast<Class>(c);
        }
      }
    }
  }
}

// The model has computed the class already.
template <typename T, typename Class>
Status CopyClasses(const Planes& p, Class* out) {
  constexpr auto kEnd = std::numeric_limits<Class>::max();  // stands for pixels without content
  for (int64_t r = 0; r < p.rows; ++r) {
    const T* const row = static_cast<const T*>(p.data) + r * p.row_stride;
    for (int64_t x = 0; x < p.columns; ++x) {
      const T value = row[x * p.column_stride];
      if (!(value >= 0 && static_cast<double>(value) < static_cast<double>(kEnd)))
        return InvalidArgument("the model has found class ", static_cast<double>(value),
                               ", but the class map holds 0 to ", kEnd - 1,
                               sizeof(Class) == 1 ? "; write 16-bit classes" : "");
      *out++ = static_cast<Class>(value);
    }
  }
  return OkStatus();
}

template <typename T, typename Class>
Status WriteClasses(const Planes& p, Class* out) {
  if (p.channels == 1) return CopyClasses<T>(p, out);
  ArgMaxClasses<T>(p, out);
  return OkStatus();
}

void FillEmptyPixels(std::span<const uint8_t> content, const ImageInfo& result, double fill,
                     std::vector<std::byte>* pixels) {
  const auto bytes = static_cast<size_t>(ElementBytes(result.dtype));
  std::vector<std::byte> value(bytes);
  FillPixels(fill, result.dtype, value.data(), 1);
  for (size_t i = 0; i < content.size(); ++i) {
    if (content[i] != 0) continue;
    for (size_t c = 0; c < static_cast<size_t>(result.channels); ++c)
      std::copy(value.begin(), value.end(),
                pixels->begin() + static_cast<ptrdiff_t>((c * content.size() + i) * bytes));
  }
}

}  // namespace

Result<ImageInfo> ResultInfo(const Type& output, ClassMap classes) {
  MSRT_RETURN_IF_ERROR(ForType(output.dtype, [](auto) { return OkStatus(); }));
  const int rank = output.rank();
  ImageInfo info;
  info.channels = rank == 4 ? output.dims[1] : 1;
  info.height = output.dims[rank - 2];
  info.width = output.dims[rank - 1];
  info.dtype = DType::kF32;
  if (classes == ClassMap::kNone) return info;
  if (info.channels == 1 && IsFloat(output.dtype))
    return InvalidArgument("the output has one channel of ", output.dtype,
                           "; a class map needs one channel for each class, or whole numbers");
  constexpr int64_t kMax8 = 255, kMax16 = 65535;
  const bool wide =
      classes == ClassMap::k16 || (classes == ClassMap::kAuto && info.channels > kMax8);
  if (info.channels > (wide ? kMax16 : kMax8))
    return InvalidArgument("the output has ", info.channels, " classes; a class map of ",
                           wide ? 16 : 8, " bits holds ", wide ? kMax16 : kMax8);
  info.dtype = wide ? DType::kU16 : DType::kU8;
  info.palette = ClassPalette(wide ? kMax16 + 1 : kMax8 + 1);
  info.channels = 1;
  return info;
}

double FillValue(const ImageInfo& result) {
  if (result.dtype == DType::kU8) return 255;
  if (result.dtype == DType::kU16) return 65535;
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<PaletteEntry> ClassPalette(size_t count) {
  std::vector<PaletteEntry> palette(count);
  for (size_t i = 1; i < count; ++i) {  // class 0 is black: usually the background
    // Hues by the golden ratio differ for neighbours; three levels of brightness.
    const double hue = std::fmod(static_cast<double>(i) * 0.6180339887498949, 1.0) * 6;
    const double value = i % 3 == 0 ? 0.65 : i % 3 == 1 ? 1.0 : 0.82;
    const double saturation = i % 2 == 0 ? 0.55 : 0.85;
    const auto level = [&](double shift) {
      const double k = std::fmod(shift + hue, 6.0);
      const double part = std::clamp(std::min(k, 4 - k), 0.0, 1.0);
      // A viewer keeps the upper 8 bits.
      return static_cast<uint16_t>(
          static_cast<int>((value - value * saturation * part) * 255 + 0.5) * 257);
    };
    palette[i] = {level(5), level(3), level(1)};
  }
  return palette;
}

Status ConvertResult(const TensorView& box, const ImageInfo& result,
                     std::span<const uint8_t> content, double fill,
                     std::vector<std::byte>* pixels) {
  const Planes planes = PlanesOf(box);
  pixels->resize(static_cast<size_t>(result.channels * planes.rows * planes.columns *
                                     ElementBytes(result.dtype)));
  MSRT_RETURN_IF_ERROR(ForType(box.dtype, [&](auto type) -> Status {
    using T = decltype(type);
    void* const out = pixels->data();
    if (result.dtype == DType::kU8) return WriteClasses<T>(planes, static_cast<uint8_t*>(out));
    if (result.dtype == DType::kU16) return WriteClasses<T>(planes, static_cast<uint16_t*>(out));
    ConvertToFloat<T>(planes, static_cast<float*>(out));
    return OkStatus();
  }));
  FillEmptyPixels(content, result, fill, pixels);
  return OkStatus();
}

}  // namespace msrt

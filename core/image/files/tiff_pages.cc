#include "core/image/files/tiff_pages.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/image/files/tiff_container.h"

namespace msrt {
namespace {

constexpr int kMaxLevels = 32;
constexpr size_t kMaxTagValues = 1 << 20;

// Compressions that are decoded. Others are rare, and old or exotic codecs of libtiff have a
// history of defects.
constexpr uint16_t kCompressions[] = {
    COMPRESSION_NONE, COMPRESSION_CCITTRLE, COMPRESSION_CCITTFAX3, COMPRESSION_CCITTFAX4,
    COMPRESSION_LZW,  COMPRESSION_JPEG,     COMPRESSION_PACKBITS,  COMPRESSION_ADOBE_DEFLATE,
    COMPRESSION_LERC, COMPRESSION_DEFLATE,  COMPRESSION_LZMA,      COMPRESSION_ZSTD,
    COMPRESSION_WEBP};

template <typename T>
T Defaulted(TIFF* tiff, uint32_t tag, T otherwise) {
  T value = otherwise;
  return TIFFGetFieldDefaulted(tiff, tag, &value) != 0 ? value : otherwise;
}

Result<DType> ElementType(int bits, uint16_t sample_format) {
  switch (sample_format) {
    case SAMPLEFORMAT_UINT:
    case SAMPLEFORMAT_VOID:
      if (bits <= 8 && (bits & (bits - 1)) == 0 && bits > 0) return DType::kU8;
      if (bits == 16) return DType::kU16;
      if (bits == 32) return DType::kU32;
      break;
    case SAMPLEFORMAT_INT:
      if (bits == 8) return DType::kI8;
      if (bits == 16) return DType::kI16;
      if (bits == 32) return DType::kI32;
      break;
    case SAMPLEFORMAT_IEEEFP:
      if (bits == 32) return DType::kF32;
      if (bits == 64) return DType::kF64;
      break;
    default:
      break;
  }
  return Unsupported("samples of ", bits, " bits with sample format ", sample_format,
                     ": convert them to integers of 8, 16 or 32 bits or to floats of 32 or 64 "
                     "bits, for example with gdal_translate -ot");
}

Status CheckCompression(const TiffFormat& format) {
  if (std::find(std::begin(kCompressions), std::end(kCompressions), format.compression) ==
          std::end(kCompressions) ||
      TIFFIsCODECConfigured(format.compression) == 0)
    return Unsupported("TIFF compression ", format.compression,
                       ": convert it to Deflate, for example with tiffcp -c zip");
  const bool is_jpeg = format.compression == COMPRESSION_JPEG;
  if (is_jpeg && format.bits != 8)
    return Unsupported("JPEG compression of ", format.bits, " bits: only 8 are supported");
  if (format.photometric == PHOTOMETRIC_YCBCR && !is_jpeg)
    return Unsupported("YCbCr colours without JPEG compression: convert them to RGB");
  return OkStatus();
}

// Reads an array tag of element type `type`. libtiff does not know these tags by itself, but
// another user of libtiff in the process (GDAL) may have taught it to, with counts of 16 or 32 bits
// or none.
template <typename T>
std::vector<T> ReadArray(TIFF* tiff, TiffTag tag, TIFFDataType type) {
  const auto number = static_cast<uint32_t>(tag);
  const TIFFField* field = TIFFFindField(tiff, number, TIFF_ANY);
  if (field == nullptr || TIFFFieldDataType(field) != type) return {};
  size_t count = 0;
  const void* data = nullptr;
  int found = 0;
  if (TIFFFieldPassCount(field) == 0) {
    found = type == TIFF_ASCII ? TIFFGetField(tiff, number, &data) : 0;
    if (found != 0 && data != nullptr) count = std::strlen(static_cast<const char*>(data));
  } else if (TIFFFieldReadCount(field) == TIFF_VARIABLE2) {
    uint32_t wide = 0;
    found = TIFFGetField(tiff, number, &wide, &data);
    count = wide;
  } else if (TIFFFieldReadCount(field) == TIFF_VARIABLE) {
    uint16_t narrow = 0;
    found = TIFFGetField(tiff, number, &narrow, &data);
    count = narrow;
  }
  if (found == 0 || data == nullptr || count > kMaxTagValues) return {};
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), data, count * sizeof(T));
  return values;
}

std::string ReadText(TIFF* tiff, TiffTag tag) {
  const std::vector<char> text = ReadArray<char>(tiff, tag, TIFF_ASCII);
  return {text.begin(), std::find(text.begin(), text.end(), '\0')};
}

struct LevelPlace {
  bool is_sub = false;
  uint64_t offset = 0;   // of a sub-directory
  tdir_t directory = 0;  // of a page
  int64_t height = 0, width = 0;
};

Status Go(TiffHandle* handle, const LevelPlace& place) {
  const int ok = place.is_sub ? TIFFSetSubDirectory(handle->tiff(), place.offset)
                              : TIFFSetDirectory(handle->tiff(), place.directory);
  if (ok != 0) return OkStatus();
  return InvalidArgument("damaged directory: ", handle->TakeError("cannot be read"));
}

// Adds the current directory if it is a reduced form of `base`. Returns whether it was.
bool AddIfReduced(TiffHandle* handle, const TiffFormat& base, LevelPlace place,
                  std::vector<LevelPlace>* places) {
  uint32_t kind = 0;
  (void)TIFFGetField(handle->tiff(), TIFFTAG_SUBFILETYPE, &kind);
  if ((kind & FILETYPE_REDUCEDIMAGE) == 0 && !place.is_sub) return false;
  const Result<TiffFormat> format = ReadTiffFormat(handle);
  (void)handle->TakeError("");
  const bool is_mask = (kind & FILETYPE_MASK) != 0;
  if (is_mask || !format.ok() || format->channels != base.channels || format->dtype != base.dtype ||
      format->width >= base.width + 1 || format->height >= base.height + 1)
    return true;
  place.height = format->height;
  place.width = format->width;
  places->push_back(place);
  return true;
}

// Finds the levels of the page, whose directory is current; the largest first.
std::vector<LevelPlace> FindLevels(TiffHandle* handle, int page, const TiffFormat& base) {
  TIFF* tiff = handle->tiff();
  std::vector<LevelPlace> places{{false, 0, static_cast<tdir_t>(page), base.height, base.width}};
  std::vector<uint64_t> sub_directories;
  uint16_t count = 0;
  const uint64_t* offsets = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_SUBIFD, &count, &offsets) != 0 && offsets != nullptr)
    sub_directories.assign(offsets, offsets + std::min<int>(count, kMaxLevels));
  for (const uint64_t offset : sub_directories) {
    if (TIFFSetSubDirectory(tiff, offset) != 0)
      (void)AddIfReduced(handle, base, {true, offset, 0, 0, 0}, &places);
  }
  for (int i = 1; i <= 2 * kMaxLevels && places.size() < kMaxLevels; ++i) {
    const auto directory = static_cast<tdir_t>(page + i);
    if (TIFFSetDirectory(tiff, directory) == 0 ||
        !AddIfReduced(handle, base, {false, 0, directory, 0, 0}, &places))
      break;
  }
  (void)handle->TakeError("");
  std::stable_sort(places.begin() + 1, places.end(),
                   [](const auto& a, const auto& b) { return a.width > b.width; });
  return places;
}

}  // namespace

Result<TiffFormat> ReadTiffFormat(TiffHandle* handle) {
  TIFF* tiff = handle->tiff();
  uint32_t width = 0, height = 0;
  if (TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width) == 0 ||
      TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height) == 0 || width == 0 || height == 0)
    return InvalidArgument("a TIFF directory without width or height");
  if (width > INT32_MAX || height > INT32_MAX)
    return LimitExceeded("an image of ", height, " x ", width,
                         " pixels: at most 2147483647 rows and columns are supported");
  TiffFormat format;
  format.width = width;
  format.height = height;
  format.channels = Defaulted<uint16_t>(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
  format.bits = Defaulted<uint16_t>(tiff, TIFFTAG_BITSPERSAMPLE, 1);
  format.compression = Defaulted<uint16_t>(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  format.photometric = Defaulted<uint16_t>(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  format.planar =
      format.channels > 1 &&
      Defaulted<uint16_t>(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) == PLANARCONFIG_SEPARATE;
  format.tiled = TIFFIsTiled(tiff) != 0;
  if (format.channels == 0) return InvalidArgument("a TIFF directory without samples");
  MSRT_ASSIGN_OR_RETURN(
      format.dtype,
      ElementType(format.bits, Defaulted<uint16_t>(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT)));
  MSRT_RETURN_IF_ERROR(CheckCompression(format));
  return format;
}

Result<TiffFormat> SelectTiffLevel(TiffHandle* handle, int page, int level, TiffFormat* base,
                                   int* levels) {
  if (page < 0 || page > UINT16_MAX ||
      TIFFSetDirectory(handle->tiff(), static_cast<tdir_t>(page)) == 0)
    return NotFound("there is no page ", page, ": ", handle->TakeError("the file has fewer"));
  MSRT_ASSIGN_OR_RETURN(*base, ReadTiffFormat(handle));
  const std::vector<LevelPlace> places = FindLevels(handle, page, *base);
  *levels = static_cast<int>(places.size());
  if (level < 0 || level >= *levels)
    return NotFound("there is no level ", level, ": the pyramid has levels 0 to ", *levels - 1);
  MSRT_RETURN_IF_ERROR(Go(handle, places[static_cast<size_t>(level)]));
  return ReadTiffFormat(handle);
}

void ReadTiffMetadata(TIFF* tiff, ImageInfo* info) {
  GeoReference& geo = info->geo;
  geo.keys = ReadArray<uint16_t>(tiff, TiffTag::kGeoKeyDirectory, TIFF_SHORT);
  geo.doubles = ReadArray<double>(tiff, TiffTag::kGeoDoubleParams, TIFF_DOUBLE);
  geo.ascii = ReadText(tiff, TiffTag::kGeoAsciiParams);
  SetFromTags({ReadArray<double>(tiff, TiffTag::kModelPixelScale, TIFF_DOUBLE),
               ReadArray<double>(tiff, TiffTag::kModelTiepoint, TIFF_DOUBLE),
               ReadArray<double>(tiff, TiffTag::kModelTransformation, TIFF_DOUBLE)},
              &geo);
  const std::string no_data = ReadText(tiff, TiffTag::kGdalNoData);
  const size_t begin = no_data.find_first_not_of(' ');
  double value = 0;
  if (begin != std::string::npos &&
      std::from_chars(no_data.data() + begin, no_data.data() + no_data.size(), value).ec ==
          std::errc())
    info->no_data = value;
  uint16_t bits = 0, *red = nullptr, *green = nullptr, *blue = nullptr;
  if (Defaulted<uint16_t>(tiff, TIFFTAG_PHOTOMETRIC, 1) != PHOTOMETRIC_PALETTE) return;
  bits = Defaulted<uint16_t>(tiff, TIFFTAG_BITSPERSAMPLE, 1);
  if (bits > 16 || TIFFGetField(tiff, TIFFTAG_COLORMAP, &red, &green, &blue) == 0) return;
  for (size_t i = 0; i < size_t{1} << bits; ++i)
    info->palette.push_back({red[i], green[i], blue[i]});
}

}  // namespace msrt

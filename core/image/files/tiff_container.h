// The directories of a TIFF or BigTIFF file that is written: tags and their values. The pixels are
// written apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace msrt {

// Numbers of tags, TIFF 6.0 unless said otherwise.
enum class TiffTag : uint16_t {
  kSubfileType = 254,
  kImageWidth = 256,
  kImageLength = 257,
  kBitsPerSample = 258,
  kCompression = 259,
  kPhotometric = 262,
  kStripOffsets = 273,
  kSamplesPerPixel = 277,
  kRowsPerStrip = 278,
  kStripByteCounts = 279,
  kPlanarConfig = 284,
  kPredictor = 317,
  kColorMap = 320,
  kTileWidth = 322,
  kTileLength = 323,
  kTileOffsets = 324,
  kTileByteCounts = 325,
  kExtraSamples = 338,
  kSampleFormat = 339,
  kModelPixelScale = 33550,      // GeoTIFF
  kModelTiepoint = 33922,        // GeoTIFF
  kModelTransformation = 34264,  // GeoTIFF
  kGeoKeyDirectory = 34735,      // GeoTIFF
  kGeoDoubleParams = 34736,      // GeoTIFF
  kGeoAsciiParams = 34737,       // GeoTIFF
  kGdalNoData = 42113,           // GDAL
};

class TiffDirectory {
 public:
  explicit TiffDirectory(bool big) : big_(big) {}
  void AddShorts(TiffTag tag, std::span<const uint16_t> values);
  void AddShort(TiffTag tag, uint16_t value) { AddShorts(tag, {&value, 1}); }
  void AddLong(TiffTag tag, uint32_t value);
  // Offsets and byte counts, 64 bits wide in BigTIFF. In TIFF they must be below 2^32.
  void AddOffsets(TiffTag tag, std::span<const uint64_t> values);
  void AddDoubles(TiffTag tag, std::span<const double> values);
  void AddAscii(TiffTag tag, std::string_view text);

  // Appends the directory, which begins at `offset` of the file, and its values. The last field,
  // the offset of the next directory, is where the next one would begin, or 0 if `last`.
  void Serialize(uint64_t offset, bool last, std::vector<std::byte>* out) const;

 private:
  struct Entry {
    uint16_t type;
    uint64_t count;
    std::vector<std::byte> bytes;
  };
  void Add(TiffTag tag, uint16_t type, uint64_t count, std::span<const std::byte> bytes);

  bool big_;
  std::map<uint16_t, Entry> entries_;  // the format requires ascending tags
};

// The header, which names the first directory.
std::vector<std::byte> TiffHeader(bool big, uint64_t first_directory);

}  // namespace msrt

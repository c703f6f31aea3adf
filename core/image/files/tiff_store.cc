#include "core/image/files/tiff_store.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "core/image/files/image_file.h"
#include "core/image/files/image_module.h"
#include "core/image/files/pixel_convert.h"
#include "core/image/files/tiff_container.h"

namespace msrt {
namespace {

constexpr int64_t kMaxBlocks = int64_t{1} << 28;  // their offsets are kept in memory
constexpr int64_t kMaxTiffBytes = UINT32_MAX;
constexpr size_t kTiffHeaderBytes = 16;  // of BigTIFF, and room for one of TIFF

struct TiffCoding {
  uint16_t compression = 1, predictor = 1;
};

uint16_t CompressionNumber(Compression compression) {
  switch (compression) {
    case Compression::kLzw:
      return 5;
    case Compression::kDeflate:
      return 8;
    case Compression::kPackBits:
      return 32773;
    case Compression::kZstd:
      return 50000;
    default:
      return 1;
  }
}

// Chooses numbers of TIFF. Indices of colours are not predictable from their neighbours.
TiffCoding CodingOf(const ImageInfo& info, Compression compression) {
  TiffCoding coding{CompressionNumber(compression), 1};
  if (info.palette.empty() && coding.compression != 1 && compression != Compression::kPackBits)
    coding.predictor = IsFloat(info.dtype) ? 3 : 2;
  return coding;
}

std::vector<StoreLevel> MakeLevels(const ImageInfo& info, const CreateOptions& options) {
  StoreLevel level{info.height, info.width, options.tile, options.tile};
  if (options.tile == 0) {
    const int64_t row_bytes =
        info.width * ElementBytes(info.dtype) * (options.planar ? 1 : info.channels);
    level.block_rows = std::clamp<int64_t>(kStripBytes / row_bytes, 1, info.height);
    level.block_cols = info.width;
  }
  std::vector<StoreLevel> levels{level};
  while (options.overviews && std::max(level.height, level.width) > options.tile) {
    level.height = CeilDiv(level.height, 2);
    level.width = CeilDiv(level.width, 2);
    levels.push_back(level);
  }
  return levels;
}

// An upper limit of the file's bytes if compression does not enlarge it much.
int64_t ExpectedBytes(const ImageInfo& info, std::span<const StoreLevel> levels) {
  double bytes = 1 << 20;
  for (const StoreLevel& level : levels) {
    const double blocks = static_cast<double>(level.across() * level.down());
    bytes += blocks *
                 static_cast<double>(level.block_rows * level.block_cols * info.channels *
                                     ElementBytes(info.dtype)) *
                 1.02 +
             blocks * 8 * static_cast<double>(info.channels);
  }
  return bytes < 9e18 ? static_cast<int64_t>(bytes) : INT64_MAX;
}

class TiffStore final : public BlockStore {
 public:
  TiffStore(ImageFile file, const ImageInfo& info, const CreateOptions& options, TiffCoding coding)
      : file_(std::move(file)),
        info_(info),
        coding_(coding),
        tiled_(options.tile > 0),
        planar_(options.planar),
        levels_(MakeLevels(info, options)),
        big_(options.big_tiff == BigTiff::kYes ||
             (options.big_tiff == BigTiff::kAuto && ExpectedBytes(info, levels_) > kMaxTiffBytes)) {
    for (const StoreLevel& level : levels_) {
      const auto blocks = static_cast<size_t>(level.across() * level.down() * planes());
      offsets_.emplace_back(blocks);
      byte_counts_.emplace_back(blocks);
    }
  }

  std::span<const StoreLevel> levels() const override { return levels_; }

  Status Begin() const {
    MSRT_RETURN_IF_ERROR(file_.Truncate(0));
    std::vector<std::byte> header = TiffHeader(big_, 0);
    header.resize(kTiffHeaderBytes);
    return file_.Write(0, header);
  }

  Result<std::vector<FileExtent>> WriteBlock(int level, int64_t block,
                                             std::span<const std::byte> pixels) override {
    std::vector<FileExtent> extents;
    for (int64_t plane = 0; plane < planes(); ++plane) {
      MSRT_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                            Encode(level, block, plane, pixels));
      MSRT_ASSIGN_OR_RETURN(const FileExtent extent, Append(bytes));
      extents.push_back(extent);
    }
    const std::lock_guard lock(mutex_);
    SetExtents(level, block, extents);
    return extents;
  }

  Status Restore(std::span<const StoredBlock> blocks) override {
    MSRT_ASSIGN_OR_RETURN(const int64_t file_bytes, file_.Bytes());
    for (const StoredBlock& stored : blocks) {
      bool valid = stored.extents.size() == static_cast<size_t>(planes());
      for (const FileExtent& extent : stored.extents) {
        valid = valid && extent.offset >= static_cast<int64_t>(kTiffHeaderBytes) &&
                extent.bytes > 0 && extent.offset <= file_bytes &&
                extent.bytes <= file_bytes - extent.offset;
      }
      if (!valid)
        return InvalidArgument("its journal does not fit the file; start without resuming");
      SetExtents(stored.level, stored.block, stored.extents);
      for (const FileExtent& extent : stored.extents)
        end_ = std::max(end_, extent.offset + extent.bytes);
    }
    return file_.Truncate(end_);
  }

  Result<std::unique_ptr<ImageSource>> OpenWritten(int level) override {
    MSRT_RETURN_IF_ERROR(WriteDirectories());
    OpenOptions options;
    options.level = level;
    options.use_installed_readers = false;
    return OpenImage(file_.path(), options);
  }

  Status CloseWritten() override {
    MSRT_RETURN_IF_ERROR(file_.Write(0, TiffHeader(big_, 0)));
    return file_.Truncate(end_);
  }

  Status Sync() override { return file_.Sync(); }
  Status Complete() override { return WriteDirectories(); }

 private:
  int64_t planes() const { return planar_ ? info_.channels : 1; }

  void SetExtents(int level, int64_t block, std::span<const FileExtent> extents) {
    const StoreLevel& shape = levels_[static_cast<size_t>(level)];
    for (size_t plane = 0; plane < extents.size(); ++plane) {
      const auto at =
          static_cast<size_t>(static_cast<int64_t>(plane) * shape.across() * shape.down() + block);
      offsets_[static_cast<size_t>(level)][at] = static_cast<uint64_t>(extents[plane].offset);
      byte_counts_[static_cast<size_t>(level)][at] = static_cast<uint64_t>(extents[plane].bytes);
    }
  }

  // The bytes of a tile or strip: interleaved or one channel, compressed. The last strip has only
  // the rows that exist.
  Result<std::vector<std::byte>> Encode(int level, int64_t block, int64_t plane,
                                        std::span<const std::byte> pixels) const {
    const StoreLevel& shape = levels_[static_cast<size_t>(level)];
    const int64_t row = block / shape.across() * shape.block_rows;
    const int64_t rows = tiled_ ? shape.block_rows : std::min(shape.block_rows, shape.height - row);
    const int64_t channels = planar_ ? 1 : info_.channels, bytes = ElementBytes(info_.dtype);
    const int64_t count = rows * shape.block_cols;
    std::vector<std::byte> block_bytes(static_cast<size_t>(count * channels * bytes));
    for (int64_t channel = 0; channel < channels; ++channel) {
      const int64_t from = (plane + channel) * shape.block_rows * shape.block_cols * bytes;
      ScatterPixels(pixels.data() + from, block_bytes.data() + channel * bytes, channels, bytes,
                    count);
    }
    if (coding_.compression == 1) return block_bytes;
    MSRT_ASSIGN_OR_RETURN(const ImageCodecs* codecs, LoadImageCodecs());
    const TiffBlockFormat format{rows,        shape.block_cols,    channels,
                                 info_.dtype, coding_.compression, coding_.predictor};
    std::vector<std::byte> encoded;
    MSRT_RETURN_IF_ERROR(codecs->encode_tiff_block(format, block_bytes, &encoded));
    return encoded;
  }

  Result<FileExtent> Append(std::span<const std::byte> bytes) {
    FileExtent extent{0, static_cast<int64_t>(bytes.size())};
    {
      const std::lock_guard lock(mutex_);
      extent.offset = end_;
      end_ += extent.bytes + extent.bytes % 2;  // readers expect even offsets
      if (!big_ && end_ > kMaxTiffBytes)
        return LimitExceeded("the result exceeds the 4 GiB of a TIFF: create a BigTIFF");
    }
    MSRT_RETURN_IF_ERROR(file_.Write(extent.offset, bytes));
    return extent;
  }

  void AddFormat(TiffDirectory* directory) const {
    const auto channels = static_cast<size_t>(info_.channels);
    const auto bits = static_cast<uint16_t>(BitsOf(info_.dtype));
    const bool is_unsigned = kUnsignedTypes.Has(info_.dtype);
    const uint16_t format = IsFloat(info_.dtype) ? 3 : is_unsigned ? 1 : 2;
    const bool is_rgb =
        (channels == 3 || channels == 4) && is_unsigned && BitsOf(info_.dtype) <= 16;
    const uint16_t photometric = !info_.palette.empty() ? 3 : is_rgb ? 2 : 1;
    const size_t colors = is_rgb ? 3 : 1;
    directory->AddShorts(TiffTag::kBitsPerSample, std::vector<uint16_t>(channels, bits));
    directory->AddShorts(TiffTag::kSampleFormat, std::vector<uint16_t>(channels, format));
    directory->AddShort(TiffTag::kSamplesPerPixel, static_cast<uint16_t>(channels));
    directory->AddShort(TiffTag::kPhotometric, photometric);
    directory->AddShort(TiffTag::kPlanarConfig, planar_ ? 2 : 1);
    directory->AddShort(TiffTag::kCompression, coding_.compression);
    if (coding_.predictor != 1) directory->AddShort(TiffTag::kPredictor, coding_.predictor);
    if (channels > colors)
      directory->AddShorts(TiffTag::kExtraSamples, std::vector<uint16_t>(channels - colors, 0));
    if (info_.palette.empty()) return;
    const size_t entries = size_t{1} << bits;
    std::vector<uint16_t> colormap(3 * entries);
    for (size_t i = 0; i < std::min(info_.palette.size(), entries); ++i) {
      colormap[i] = info_.palette[i].red;
      colormap[entries + i] = info_.palette[i].green;
      colormap[2 * entries + i] = info_.palette[i].blue;
    }
    directory->AddShorts(TiffTag::kColorMap, colormap);
  }

  void AddGeo(TiffDirectory* directory) const {
    const GeoTags tags = ToTags(info_.geo);
    directory->AddDoubles(TiffTag::kModelPixelScale, tags.scale);
    directory->AddDoubles(TiffTag::kModelTiepoint, tags.tiepoints);
    directory->AddDoubles(TiffTag::kModelTransformation, tags.matrix);
    if (!info_.geo.keys.empty()) directory->AddShorts(TiffTag::kGeoKeyDirectory, info_.geo.keys);
    directory->AddDoubles(TiffTag::kGeoDoubleParams, info_.geo.doubles);
    directory->AddAscii(TiffTag::kGeoAsciiParams, info_.geo.ascii);
  }

  TiffDirectory MakeDirectory(size_t level) const {
    const StoreLevel& shape = levels_[level];
    TiffDirectory directory(big_);
    directory.AddLong(TiffTag::kSubfileType, level > 0 ? 1 : 0);
    directory.AddLong(TiffTag::kImageWidth, static_cast<uint32_t>(shape.width));
    directory.AddLong(TiffTag::kImageLength, static_cast<uint32_t>(shape.height));
    AddFormat(&directory);
    if (tiled_) {
      directory.AddLong(TiffTag::kTileWidth, static_cast<uint32_t>(shape.block_cols));
      directory.AddLong(TiffTag::kTileLength, static_cast<uint32_t>(shape.block_rows));
    } else {
      directory.AddLong(TiffTag::kRowsPerStrip, static_cast<uint32_t>(shape.block_rows));
    }
    directory.AddOffsets(tiled_ ? TiffTag::kTileOffsets : TiffTag::kStripOffsets, offsets_[level]);
    directory.AddOffsets(tiled_ ? TiffTag::kTileByteCounts : TiffTag::kStripByteCounts,
                         byte_counts_[level]);
    if (level == 0) AddGeo(&directory);
    if (info_.no_data.has_value()) directory.AddAscii(TiffTag::kGdalNoData, StrCat(*info_.no_data));
    return directory;
  }

  // Writes the directories behind the blocks, then the header that names the first.
  Status WriteDirectories() const {
    const uint64_t begin = AlignUp(static_cast<size_t>(end_), 8);
    std::vector<std::byte> bytes;
    for (size_t level = 0; level < levels_.size(); ++level)
      MakeDirectory(level).Serialize(begin + bytes.size(), level + 1 == levels_.size(), &bytes);
    if (!big_ && begin + bytes.size() > static_cast<uint64_t>(kMaxTiffBytes))
      return LimitExceeded("the result exceeds the 4 GiB of a TIFF: create a BigTIFF");
    MSRT_RETURN_IF_ERROR(file_.Write(static_cast<int64_t>(begin), bytes));
    return file_.Write(0, TiffHeader(big_, begin));
  }

  const ImageFile file_;
  const ImageInfo info_;
  const TiffCoding coding_;
  const bool tiled_, planar_;
  const std::vector<StoreLevel> levels_;
  const bool big_;

  std::mutex mutex_;  // protects everything below
  int64_t end_ = kTiffHeaderBytes;
  std::vector<std::vector<uint64_t>> offsets_, byte_counts_;  // per level
};

}  // namespace

Status CheckTiffOptions(const ImageInfo& info, const CreateOptions& options) {
  if (info.height > INT32_MAX || info.width > INT32_MAX || info.channels > UINT16_MAX)
    return Unsupported("a TIFF of ", info.channels, " x ", info.height, " x ", info.width,
                       ": at most 65535 channels and 2147483647 rows and columns; use .npy");
  if (options.tile < 0 || options.tile % 16 != 0 || options.tile > 65536)
    return InvalidArgument("tiles of ", options.tile,
                           " pixels: use a multiple of 16 up to 65536, or 0 for strips");
  if (options.overviews && options.tile == 0)
    return InvalidArgument("overviews need tiles: set their size, for example 256");
  if (!info.palette.empty() &&
      (info.channels != 1 || (info.dtype != DType::kU8 && info.dtype != DType::kU16)))
    return InvalidArgument("a palette needs one channel of u8 or u16, not ", info.channels, " of ",
                           info.dtype);
  const StoreLevel base = MakeLevels(info, options)[0];
  int64_t bytes = base.block_rows * base.block_cols;
  if (!CheckedMul(bytes, info.channels * ElementBytes(info.dtype) + 1, &bytes) ||
      bytes > options.max_pending_bytes)
    return LimitExceeded("one tile of ", info.channels, " x ", base.block_rows, " x ",
                         base.block_cols, " exceeds the limit of ", options.max_pending_bytes,
                         " bytes for incomplete tiles: use smaller tiles");
  const int64_t planes = options.planar ? info.channels : 1;
  if (base.across() * base.down() > kMaxBlocks / planes)
    return LimitExceeded("the result would have more than ", kMaxBlocks,
                         " tiles: use larger tiles");
  return OkStatus();
}

Result<Compression> ChooseCompression(const ImageInfo& info, Compression compression) {
  const bool is_auto = compression == Compression::kAuto;
  if (is_auto) compression = info.palette.empty() ? Compression::kNone : Compression::kDeflate;
  if (compression == Compression::kNone) return compression;
  Result<const ImageCodecs*> codecs = LoadImageCodecs();
  const bool possible = codecs.ok() && (*codecs)->encode_tiff_block != nullptr &&
                        (*codecs)->has_tiff_compression(CompressionNumber(compression));
  if (possible) return compression;
  if (is_auto) return Compression::kNone;
  if (!codecs.ok()) return std::move(codecs).status();
  return Unsupported("this libtiff lacks the chosen compression: write without compression");
}

Result<std::unique_ptr<BlockStore>> OpenTiffStore(const std::string& part, const ImageInfo& info,
                                                  const CreateOptions& options, bool has_blocks) {
  MSRT_ASSIGN_OR_RETURN(ImageFile file, ImageFile::OpenForWriting(part));
  auto store = std::make_unique<TiffStore>(std::move(file), info, options,
                                           CodingOf(info, options.compression));
  if (!has_blocks) MSRT_RETURN_IF_ERROR(store->Begin());
  return std::unique_ptr<BlockStore>(std::move(store));
}

}  // namespace msrt

#include "core/image/files/gdal_reader.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "core/base/checked_math.h"
#include "core/base/utf8.h"
#include "core/image/files/installed_library.h"
#include "core/image/files/projection_keys.h"

namespace msrt {
namespace {

constexpr unsigned kOpenRasterReadOnly = 0x02, kOpenVerboseError = 0x40;
constexpr int kReadFlag = 0, kNoError = 0;
constexpr int64_t kMinBlock = 256, kMaxBlock = 2048;

using Handle = void*;

// The functions of GDAL's C interface that are used; they are the same from GDAL 2 on.
struct Gdal {
  void (*register_all)();
  Handle (*open)(const char*, unsigned, const char* const*, const char* const*, const char* const*);
  // Returns nothing before GDAL 3.7; the result is not used.
  void (*close)(Handle);
  int (*width)(Handle);
  int (*height)(Handle);
  int (*bands)(Handle);
  Handle (*band)(Handle, int);
  int (*type)(Handle);
  void (*block_size)(Handle, int*, int*);
  int (*overviews)(Handle);
  double (*no_data)(Handle, int*);
  int (*transform)(Handle, double*);
  const char* (*projection)(Handle);
  int (*read)(Handle, int, int, int, int, int, void*, int, int, int, int, int);
  const char* (*last_error)();
  void (*reset_error)();
  void (*push_handler)(void (*)(int, int, const char*));
  void (*pop_handler)();
  int64_t (*get_cache_max)();
  void (*set_cache_max)(int64_t);
  bool ok = false;
};

Gdal LoadGdal() {
  Gdal gdal;
  InstalledLibrary library{"libgdal.so.39", "libgdal.so.38", "libgdal.so.37", "libgdal.so.36",
                           "libgdal.so.35", "libgdal.so.34", "libgdal.so.33", "libgdal.so.32",
                           "libgdal.so.31", "libgdal.so.30", "libgdal.so.29", "libgdal.so.28",
                           "libgdal.so"};
  library.Find("GDALAllRegister", &gdal.register_all);
  library.Find("GDALOpenEx", &gdal.open);
  library.Find("GDALClose", &gdal.close);
  library.Find("GDALGetRasterXSize", &gdal.width);
  library.Find("GDALGetRasterYSize", &gdal.height);
  library.Find("GDALGetRasterCount", &gdal.bands);
  library.Find("GDALGetRasterBand", &gdal.band);
  library.Find("GDALGetRasterDataType", &gdal.type);
  library.Find("GDALGetBlockSize", &gdal.block_size);
  library.Find("GDALGetOverviewCount", &gdal.overviews);
  library.Find("GDALGetRasterNoDataValue", &gdal.no_data);
  library.Find("GDALGetGeoTransform", &gdal.transform);
  library.Find("GDALGetProjectionRef", &gdal.projection);
  library.Find("GDALRasterIO", &gdal.read);
  library.Find("CPLGetLastErrorMsg", &gdal.last_error);
  library.Find("CPLErrorReset", &gdal.reset_error);
  library.Find("CPLPushErrorHandler", &gdal.push_handler);
  library.Find("CPLPopErrorHandler", &gdal.pop_handler);
  library.Find("GDALGetCacheMax64", &gdal.get_cache_max);
  library.Find("GDALSetCacheMax64", &gdal.set_cache_max);
  gdal.ok = library.ok();
  if (gdal.ok) gdal.register_all();
  return gdal;
}

const Gdal& GetGdal() {
  static const Gdal gdal = LoadGdal();
  return gdal;
}

// Keeps GDAL's messages of this thread from being printed.
class QuietErrors {
 public:
  QuietErrors() {
    GetGdal().push_handler([](int, int, const char*) {});
    GetGdal().reset_error();
  }
  ~QuietErrors() { GetGdal().pop_handler(); }
  std::string message() const {
    const char* text = GetGdal().last_error();
    return text == nullptr || *text == '\0' ? "no reason given" : Printable(text);
  }
};

// GDAL has one cache of decoded blocks for the process, by default of 5 % of the machine's memory.
// While readers are open, it is limited to what they have counted.
class CacheLimit {
 public:
  static void Add(int64_t bytes) {
    const Gdal& gdal = GetGdal();
    static std::mutex mutex;
    static int64_t total = 0, before = 0;
    const std::lock_guard lock(mutex);
    if (total == 0) before = gdal.get_cache_max();
    total += bytes;
    gdal.set_cache_max(total == 0 ? before : total);
  }
};

// Other types (complex numbers, 64-bit integers) are not images for a network.
DType FromGdalType(int type) {
  switch (type) {
    case 1:
      return DType::kU8;
    case 2:
      return DType::kU16;
    case 3:
      return DType::kI16;
    case 4:
      return DType::kU32;
    case 5:
      return DType::kI32;
    case 6:
      return DType::kF32;
    case 7:
      return DType::kF64;
    case 14:
      return DType::kI8;
    default:
      return DType::kNone;
  }
}

class GdalBlockReader final : public BlockReader {
 public:
  ~GdalBlockReader() override {
    if (dataset_ != nullptr) GetGdal().close(dataset_);
    if (cache_bytes_ > 0) CacheLimit::Add(-cache_bytes_);
  }

  const ImageInfo& info() const override { return info_; }
  int64_t cache_bytes() const override { return cache_bytes_; }
  const BlockLayout& layout() const override { return layout_; }

  Status Open(const std::string& path, const CodecOptions& options) {
    const Gdal& gdal = GetGdal();
    const QuietErrors errors;
    if (options.page != 0)
      return Unsupported("there is no page ", options.page,
                         ": through GDAL a file has page 0 alone; ",
                         "write the page to a TIFF of its own ('gdal_translate')");
    const std::string level = StrCat("OVERVIEW_LEVEL=", options.level - 1);
    const char* const open_options[] = {options.level > 0 ? level.c_str() : nullptr, nullptr};
    const unsigned flags = kOpenRasterReadOnly | kOpenVerboseError;
    dataset_ = gdal.open(path.c_str(), flags, nullptr, nullptr, nullptr);
    if (dataset_ == nullptr) return InvalidArgument("GDAL: ", errors.message());
    const int full_width = gdal.width(dataset_), full_height = gdal.height(dataset_);
    info_.levels = 1 + (gdal.bands(dataset_) > 0 ? gdal.overviews(gdal.band(dataset_, 1)) : 0);
    ReadMetadata();
    if (options.level < 0 || options.level >= info_.levels)
      return NotFound("there is no level ", options.level, ": the pyramid has levels 0 to ",
                      info_.levels - 1);
    if (options.level > 0) {
      gdal.close(dataset_);
      dataset_ = gdal.open(path.c_str(), flags, nullptr, open_options, nullptr);
      if (dataset_ == nullptr) return InvalidArgument("GDAL: ", errors.message());
    }
    info_.format = "GDAL";
    info_.channels = gdal.bands(dataset_);
    info_.height = gdal.height(dataset_);
    info_.width = gdal.width(dataset_);
    MSRT_RETURN_IF_ERROR(ReadType());
    MSRT_RETURN_IF_ERROR(CheckImageInfo(info_));
    info_.geo = Rescaled(info_.geo, 0, 0, full_height / static_cast<double>(info_.height),
                         full_width / static_cast<double>(info_.width));
    return SetLayout(options.max_block_bytes);
  }

  Status ReadBlock(const BlockIndex& index, std::span<std::byte> out) override {
    const Gdal& gdal = GetGdal();
    const QuietErrors errors;
    const int64_t row = index.row * layout_.rows, col = index.col * layout_.cols;
    const auto rows = static_cast<int>(std::min(layout_.rows, info_.height - row));
    const auto cols = static_cast<int>(std::min(layout_.cols, info_.width - col));
    Handle band = gdal.band(dataset_, static_cast<int>(index.plane) + 1);
    const auto bytes = static_cast<int>(ElementBytes(info_.dtype));
    const int code =
        gdal.read(band, kReadFlag, static_cast<int>(col), static_cast<int>(row), cols, rows,
                  out.data(), cols, rows, type_, bytes, bytes * static_cast<int>(layout_.cols));
    if (code == kNoError) return OkStatus();
    return InvalidArgument("the block at row ", row, ", column ", col,
                           " cannot be read. GDAL: ", errors.message());
  }

 private:
  void ReadMetadata() {
    const Gdal& gdal = GetGdal();
    double t[6];
    if (gdal.transform(dataset_, t) == kNoError) {
      info_.geo.has_transform = true;
      std::copy(t, t + 6, info_.geo.transform.begin());
    }
    const char* projection = gdal.projection(dataset_);
    if (projection != nullptr) info_.geo.projection = projection;
    (void)SetKeysFromProjection(&info_.geo);
    int has_no_data = 0;
    if (gdal.bands(dataset_) == 0) return;
    const double no_data = gdal.no_data(gdal.band(dataset_, 1), &has_no_data);
    if (has_no_data != 0) info_.no_data = no_data;
  }

  // Bands of different types are read as f32.
  Status ReadType() {
    const Gdal& gdal = GetGdal();
    if (info_.channels < 1) return InvalidArgument("GDAL finds no raster band in it");
    type_ = gdal.type(gdal.band(dataset_, 1));
    bool equal = true;
    for (int i = 2; i <= info_.channels; ++i)
      equal = equal && gdal.type(gdal.band(dataset_, i)) == type_;
    if (!equal) type_ = 6;
    info_.dtype = FromGdalType(type_);
    if (info_.dtype == DType::kNone)
      return Unsupported("GDAL's data type ", type_,
                         ": convert it with gdal_translate -ot Float32");
    return OkStatus();
  }

  // A multiple of GDAL's own blocks, which it keeps in its own cache.
  Status SetLayout(int64_t max_block_bytes) {
    int cols = 0, rows = 0;
    GetGdal().block_size(GetGdal().band(dataset_, 1), &cols, &rows);
    cols = std::max(cols, 1), rows = std::max(rows, 1);
    // GDAL decodes whole blocks, in all bands together where it must.
    MSRT_RETURN_IF_ERROR(CheckBlockLayout(info_, {rows, cols, false, false}, max_block_bytes));
    const auto choose = [](int64_t block, int64_t extent) {
      if (block < kMinBlock) block *= CeilDiv(kMinBlock, block);
      return std::min({block, kMaxBlock, extent});
    };
    layout_ = {choose(rows, info_.height), choose(cols, info_.width), true, false};
    // What a row of our blocks touches, in all bands.
    const int64_t down = CeilDiv(layout_.rows, rows) + (layout_.rows % rows == 0 ? 0 : 1);
    const int64_t across = CeilDiv(info_.width, cols);
    const std::array<int64_t, 4> block{rows, cols, info_.channels, ElementBytes(info_.dtype)};
    int64_t bytes;
    if (!CheckedProduct(block, &bytes) || !CheckedMul(bytes, across, &bytes) ||
        !CheckedMul(bytes, down, &bytes))
      return LimitExceeded("one row of its tiles is larger than any memory");
    constexpr int64_t kMinCache = 1 << 20;
    cache_bytes_ = std::max(bytes, kMinCache);
    CacheLimit::Add(cache_bytes_);
    return OkStatus();
  }

  Handle dataset_ = nullptr;
  int type_ = 0;
  int64_t cache_bytes_ = 0;
  ImageInfo info_;
  BlockLayout layout_;
};

}  // namespace

bool GdalIsInstalled() { return GetGdal().ok; }

Result<std::unique_ptr<BlockReader>> OpenGdalBlocks(const std::string& path,
                                                    const CodecOptions& options) {
  auto reader = std::make_unique<GdalBlockReader>();
  MSRT_RETURN_IF_ERROR(reader->Open(path, options));
  return std::unique_ptr<BlockReader>(std::move(reader));
}

}  // namespace msrt

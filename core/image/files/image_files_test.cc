// Files that other software wrote (tests/data/generate/images.py), read in windows.
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "core/image/files/gdal_reader.h"
#include "core/image/files/image_module.h"
#include "core/image/files/image_testing.h"
#include "core/image/files/openslide_reader.h"
#include "core/image/files/projection_keys.h"

namespace msrt::testing {
namespace {

std::string Data(const std::string& name) { return std::string(MSRT_IMAGE_DATA) + "/" + name; }

// A file whose pixels are the pattern.
struct PatternFile {
  const char* name;
  DType dtype;
  int64_t channels, height, width;
  int64_t modulus = 0;
};
constexpr PatternFile kPatternFiles[] = {
    {"tiles_deflate_f32.tif", DType::kF32, 5, 45, 61},
    {"planar_lzw_u16.tif", DType::kU16, 3, 45, 61},
    {"big_endian_packbits_i16.tif", DType::kI16, 2, 45, 61},
    {"bigtiff_f64.tif", DType::kF64, 1, 19, 23},
    {"tiles_zstd_i32.tif", DType::kI32, 1, 45, 61},
    {"strips_u32.tif", DType::kU32, 1, 45, 61},
    {"strips_lzma_i8.tif", DType::kI8, 1, 45, 61},
    {"sub_ifds_u8.tif", DType::kU8, 3, 64, 80},
    {"pages_u8.tif", DType::kU8, 1, 20, 30},
    {"geo_pyramid_u16.tif", DType::kU16, 4, 70, 90},
    {"geo_rotated_lerc_f32.tif", DType::kF32, 1, 30, 40},
    {"bits_u8.tif", DType::kU8, 1, 30, 41, 2},
    {"palette_u8.tif", DType::kU8, 1, 30, 41, 5},
    {"rgb.png", DType::kU8, 3, 45, 61},
    {"rgba.png", DType::kU8, 4, 45, 61},
    {"gray16.png", DType::kU16, 1, 45, 61},
    {"bits.png", DType::kU8, 1, 45, 61, 2},
    {"palette.png", DType::kU8, 1, 45, 61, 5},
    {"interlaced.png", DType::kU8, 1, 45, 61},
    {"chw_f32.npy", DType::kF32, 3, 9, 11},
    {"hw_u8.npy", DType::kU8, 1, 9, 11},
    {"big_endian_i16.npy", DType::kI16, 2, 9, 11},
    {"version2_f64.npy", DType::kF64, 1, 9, 11},
};

class PatternFiles : public ::testing::TestWithParam<PatternFile> {};

TEST_P(PatternFiles, WholeImageIsThePattern) {
  const PatternFile& file = GetParam();
  const auto source = MustOpen(Data(file.name));
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->info().channels, file.channels);
  EXPECT_EQ(source->info().height, file.height);
  EXPECT_EQ(source->info().width, file.width);
  ASSERT_EQ(source->info().dtype, file.dtype);
  EXPECT_EQ(ReadWhole(*source).bytes,
            Pattern(file.dtype, file.channels, file.height, file.width, 0, 0, file.modulus).bytes);
}

TEST_P(PatternFiles, RandomWindowsAreThePattern) {
  const PatternFile& file = GetParam();
  const auto source = MustOpen(Data(file.name));
  ASSERT_NE(source, nullptr);
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    ImageWindow window;
    window.row = static_cast<int64_t>(random()) % file.height;
    window.col = static_cast<int64_t>(random()) % file.width;
    window.channel = static_cast<int64_t>(random()) % file.channels;
    window.rows = 1 + static_cast<int64_t>(random()) % (file.height - window.row);
    window.cols = 1 + static_cast<int64_t>(random()) % (file.width - window.col);
    window.channels = 1 + static_cast<int64_t>(random()) % (file.channels - window.channel);
    const Pixels expected = Pattern(file.dtype, window.channels, window.rows, window.cols,
                                    window.row, window.col, file.modulus, window.channel);
    if (i % 2 == 0) source->ReadAhead(window);
    ASSERT_EQ(ReadPixels(*source, window, file.dtype).bytes, expected.bytes);
    Pixels floats(window.channels, window.rows, window.cols, DType::kF32);
    ConvertPixels(expected.bytes.data(), file.dtype, 1, floats.bytes.data(), DType::kF32,
                  window.channels * window.rows * window.cols);
    ASSERT_EQ(ReadPixels(*source, window, DType::kF32).bytes, floats.bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, PatternFiles, ::testing::ValuesIn(kPatternFiles),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(ImageFiles, LossyFilesMatchPillow) {
  for (const std::string name : {"rgb_420", "gray", "progressive", "cmyk"}) {
    const auto source = MustOpen(Data(name + ".jpg"));
    const auto expected = MustOpen(Data(name + ".npy"));
    ASSERT_TRUE(source != nullptr && expected != nullptr) << name;
    EXPECT_EQ(source->info().channels, expected->info().channels) << name;
    EXPECT_EQ(ReadWhole(*source).bytes, ReadWhole(*expected).bytes) << name;
    // Back to the beginning: decoded again.
    EXPECT_EQ(ReadPixels(*source, {0, 0, 1, 61}, DType::kU8).bytes,
              ReadPixels(*expected, {0, 0, 1, 61}, DType::kU8).bytes);
  }
}

TEST(ImageFiles, LevelsAreThoseOfGdal) {
  for (const int level : {1, 2}) {
    const auto source = MustOpen(Data("geo_pyramid_u16.tif"), {.level = level});
    const auto expected = MustOpen(Data(StrCat("geo_pyramid_u16_", 2 * level, ".npy")));
    ASSERT_TRUE(source != nullptr && expected != nullptr);
    EXPECT_EQ(source->info().levels, 3);
    EXPECT_EQ(source->info().height, expected->info().height);
    EXPECT_EQ(ReadWhole(*source).bytes, ReadWhole(*expected).bytes);
  }
  const auto none = OpenImage(Data("geo_pyramid_u16.tif"), {.level = 3});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::kNotFound);
  EXPECT_NE(none.status().message().find("levels 0 to 2"), std::string::npos);
}

TEST(ImageFiles, LevelsInSubDirectoriesAreRead) {
  const auto source = MustOpen(Data("sub_ifds_u8.tif"), {.level = 2});
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->info().levels, 3);
  EXPECT_EQ(ReadWhole(*source).bytes, Pattern(DType::kU8, 3, 16, 20).bytes);
}

TEST(ImageFiles, PagesAreChosen) {
  const auto source = MustOpen(Data("pages_u8.tif"), {.page = 1});
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->info().levels, 1);
  EXPECT_EQ(ReadWhole(*source).bytes, Pattern(DType::kU8, 1, 21, 31).bytes);
  EXPECT_EQ(OpenImage(Data("pages_u8.tif"), {.page = 2}).status().code(), Code::kNotFound);
}

TEST(ImageFiles, GeoTagsAreRead) {
  const auto north_up = MustOpen(Data("geo_pyramid_u16.tif"));
  ASSERT_NE(north_up, nullptr);
  const GeoReference& geo = north_up->info().geo;
  EXPECT_TRUE(geo.has_transform);
  EXPECT_EQ(geo.transform, (std::array<double, 6>{500000, 10, 0, 4600000, 0, -10}));
  EXPECT_FALSE(geo.keys.empty());
  EXPECT_NE(geo.ascii.find("UTM zone 33N"), std::string::npos);
  EXPECT_EQ(north_up->info().no_data, 0);
  const auto half = MustOpen(Data("geo_pyramid_u16.tif"), {.level = 1});
  EXPECT_EQ(half->info().geo.transform, (std::array<double, 6>{500000, 20, 0, 4600000, 0, -20}));
  const auto rotated = MustOpen(Data("geo_rotated_lerc_f32.tif"));
  EXPECT_EQ(rotated->info().geo.transform, (std::array<double, 6>{10, 0.5, 0.1, 50, 0.2, -0.4}));
}

TEST(ImageFiles, PalettesAreRead) {
  for (const char* name : {"palette_u8.tif", "palette.png"}) {
    const auto source = MustOpen(Data(name));
    ASSERT_NE(source, nullptr);
    ASSERT_GE(source->info().palette.size(), 5u) << name;
    EXPECT_EQ(source->info().palette[2], (PaletteEntry{100 * 257, 155 * 257, 2 * 257})) << name;
  }
}

TEST(ImageFiles, MissingTilesAreNoData) {
  const auto source = MustOpen(Data("sparse_f32.tif"));
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(ReadPixels(*source, {0, 0, 16, 16}, DType::kF32).bytes,
            Pattern(DType::kF32, 1, 16, 16).bytes);
  Pixels none(1, 20, 20, DType::kF32);
  FillPixels(-9999, DType::kF32, none.bytes.data(), 400);
  EXPECT_EQ(ReadPixels(*source, {20, 20, 20, 20}, DType::kF32).bytes, none.bytes);
}

TEST(ImageFiles, RowBandsDecodeEachTileOnce) {
  const auto source = MustOpen(Data("tiles_deflate_f32.tif"));
  ASSERT_NE(source, nullptr);
  for (int64_t row = 0; row < 45; row += 3) (void)ReadPixels(*source, {row, 0, 3, 61}, DType::kF32);
  EXPECT_EQ(source->decoded_blocks(), 3 * 2);
  // One tile fits: every band decodes both tiles of its row again.
  const auto small = MustOpen(Data("tiles_deflate_f32.tif"), {.cache_bytes = 1});
  for (int64_t row = 0; row < 15; row += 3) (void)ReadPixels(*small, {row, 0, 3, 61}, DType::kF32);
  EXPECT_EQ(small->decoded_blocks(), 5 * 2);
}

TEST(ImageFiles, FormatsOfGdalAreReadWhereItIsInstalled) {
  const auto source = OpenImage(Data("gdal_u8.jp2"));
  if (source.ok()) {
    auto opened = MustOpen(Data("gdal_u8.jp2"));
    EXPECT_EQ(ReadWhole(*opened).bytes, Pattern(DType::kU8, 1, 40, 50).bytes);
    EXPECT_EQ(opened->info().format, "GDAL");
  } else if (GdalIsInstalled()) {
    // A GDAL without the driver of JPEG 2000.
    EXPECT_NE(source.status().message().find("GDAL"), std::string::npos);
  } else {
    EXPECT_NE(source.status().message().find("libgdal"), std::string::npos);
  }
}

TEST(ImageFiles, ProjectionsWithACodeBecomeKeys) {
  const auto keys = [](const char* text) {
    GeoReference geo;
    geo.projection = text;
    const bool set = SetKeysFromProjection(&geo);
    EXPECT_EQ(set, !geo.keys.empty());
    return geo.keys;
  };
  const std::vector<uint16_t> utm{1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32633};
  const std::vector<uint16_t> degrees{1, 1, 0, 3, 1024, 0, 1, 2, 1025, 0, 1, 1, 2048, 0, 1, 4326};
  const std::string wgs =
      R"(GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.2,)"
      R"(AUTHORITY["EPSG","7030"]],AUTHORITY["EPSG","6326"]],AUTHORITY["EPSG","4326"]])";
  const std::string projected = R"(PROJCS["WGS 84 / UTM zone 33N, [north]",)" + wgs +
                                R"(,PROJECTION["Transverse_Mercator"],AUTHORITY["EPSG","32633"]])";
  EXPECT_EQ(keys(wgs.c_str()), degrees);
  EXPECT_EQ(keys(projected.c_str()), utm);
  EXPECT_EQ(keys(R"(PROJCRS["UTM",BASEGEOGCRS["WGS 84",ID["EPSG",4326]],ID["EPSG",32633]])"), utm);
  EXPECT_EQ(keys((R"(COMPD_CS["both",)" + projected +
                  R"(,VERT_CS["height",AUTHORITY["EPSG","5773"]],AUTHORITY["EPSG","9999"]])")
                     .c_str()),
            utm);
  // The code of the inner system is not that of the outer one.
  EXPECT_TRUE(keys((R"(PROJCS["mine",)" + wgs + R"(,PROJECTION["Other"]])").c_str()).empty());
  for (const char* other :
       {"", "LOCAL_CS[\"mine\"]", "PROJCS[", "PROJCS", "[", "PROJCS[\"a",
        R"(PROJCS["a",AUTHORITY["EPSG","70000"]])", R"(GEOGCS["a",AUTHORITY["ESRI","104000"]])"})
    EXPECT_TRUE(keys(other).empty()) << other;
}

TEST(ImageFiles, GdalHasOnePageAndCountsItsCache) {
  if (!GdalIsInstalled()) GTEST_SKIP() << "GDAL is not installed";
  const auto page = OpenGdalBlocks(Data("geo_pyramid_u16.tif"), {0, 1, 1 << 20});
  ASSERT_FALSE(page.ok());
  EXPECT_NE(page.status().message().find("there is no page 1"), std::string::npos);
  auto source = MustOpen(Data("gdal_u8.jp2"));
  ASSERT_NE(source, nullptr);
  const ImageInfo& info = source->info();
  // Two rows of blocks of its own, and one of GDAL's for each of two readers.
  EXPECT_GT(source->cache_bytes(), info.channels * info.width);
}

TEST(ImageFiles, GdalReadsWhatTheModuleReads) {
  if (!GdalIsInstalled()) GTEST_SKIP() << "GDAL is not installed";
  for (const int level : {0, 1}) {
    const auto own = MustOpen(Data("geo_pyramid_u16.tif"), {.level = level});
    auto gdal = OpenGdalBlocks(Data("geo_pyramid_u16.tif"), {level, 0, 1 << 20});
    ASSERT_TRUE(gdal.ok()) << gdal.status().message();
    BlockReader& reader = **gdal;
    EXPECT_EQ(reader.info().geo.transform, own->info().geo.transform);
    EXPECT_EQ(reader.info().levels, own->info().levels);
    EXPECT_EQ(reader.info().no_data, own->info().no_data);
    const Pixels expected = ReadWhole(*own);
    ASSERT_EQ(reader.layout().rows, own->info().height);
    ASSERT_EQ(reader.layout().cols, own->info().width);
    const size_t plane = expected.bytes.size() / 4;
    for (int64_t channel = 0; channel < 4; ++channel) {
      std::vector<std::byte> block(plane);
      ASSERT_TRUE(reader.ReadBlock({channel, 0, 0}, block).ok());
      EXPECT_TRUE(std::equal(block.begin(), block.end(),
                             expected.bytes.begin() + channel * static_cast<ptrdiff_t>(plane)));
    }
  }
}

// OpenSlide takes any tiled TIFF for a slide.
TEST(ImageFiles, OpenSlideReadsWhatTheModuleReads) {
  if (!OpenSlideIsInstalled()) GTEST_SKIP() << "OpenSlide is not installed";
  const auto own = MustOpen(Data("sub_ifds_u8.tif"));
  ASSERT_NE(own, nullptr);
  auto slide = OpenSlideBlocks(Data("sub_ifds_u8.tif"), {0, 0, 1 << 20});
  ASSERT_TRUE(slide.ok()) << slide.status().message();
  BlockReader& reader = **slide;
  EXPECT_EQ(reader.info().format, "OpenSlide");
  ASSERT_EQ(reader.info().channels, 3);
  ASSERT_EQ(reader.layout().rows, own->info().height);
  ASSERT_EQ(reader.layout().cols, own->info().width);
  const Pixels expected = ReadWhole(*own);
  std::vector<std::byte> block(expected.bytes.size());
  ASSERT_TRUE(reader.ReadBlock({0, 0, 0}, block).ok());
  const size_t plane = block.size() / 3;
  for (size_t i = 0; i < block.size(); ++i)  // interleaved against planar
    ASSERT_EQ(block[i], expected.bytes[i % 3 * plane + i / 3]) << i;
  EXPECT_NE(
      OpenSlideBlocks(Data("sub_ifds_u8.tif"), {7, 0, 1 << 20}).status().message().find("level"),
      std::string::npos);
  EXPECT_FALSE(OpenSlideBlocks(Data("pages_u8.tif"), {0, 0, 1 << 20}).ok());
}

TEST(ImageFiles, ThreadsReadAtOnce) {
  const auto source = MustOpen(Data("tiles_deflate_f32.tif"), {.cache_bytes = 20000});
  ASSERT_NE(source, nullptr);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 50; ++i) {
        const int64_t row = (i * 7 + t * 11) % 40;
        Pixels pixels(5, 5, 61, DType::kF32);
        source->ReadAhead({(row + 13) % 40, 0, 5, 61});
        const Status status = source->Read({row, 0, 5, 61}, pixels.buffer());
        if (!status.ok() || pixels.bytes != Pattern(DType::kF32, 5, 5, 61, row).bytes) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace msrt::testing

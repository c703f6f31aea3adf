// Files that are damaged, cut off, absurd or unsupported: each gets an error that names the
// problem.
#include <algorithm>

#include "core/image/files/image_testing.h"
#include "core/image/files/tiff_container.h"

namespace msrt::testing {
namespace {

std::string BadData(const std::string& name) { return std::string(MSRT_IMAGE_DATA) + "/" + name; }

// The message of opening the file or of reading all of it; empty if both succeed.
std::string Problem(const std::string& path, OpenOptions options = {}) {
  options.use_installed_readers = false;
  auto source = OpenImage(path, options);
  if (!source.ok()) return source.status().message();
  const ImageInfo& info = (*source)->info();
  Pixels pixels(info.channels, info.height, info.width, info.dtype);
  return (*source)->Read({0, 0, info.height, info.width}, pixels.buffer()).message();
}

void ExpectProblem(const std::string& path, const char* part, const OpenOptions& options = {}) {
  const std::string message = Problem(path, options);
  EXPECT_NE(message.find(part), std::string::npos) << path << ": " << message;
  EXPECT_NE(message.find(path), std::string::npos) << message;
}

TEST(BadImages, CutOffFilesAreErrors) {
  const TestFolder folder;
  for (const char* name :
       {"tiles_deflate_f32.tif", "planar_lzw_u16.tif", "bigtiff_f64.tif", "rgb.png",
        "interlaced.png", "rgb_420.jpg", "progressive.jpg", "chw_f32.npy"}) {
    const std::vector<std::byte> bytes = ReadBytes(BadData(name));
    for (const double part : {0.0, 0.01, 0.1, 0.5, 0.9}) {
      const auto kept = static_cast<size_t>(static_cast<double>(bytes.size()) * part);
      WriteBytes(folder.File(name), std::span(bytes).first(kept));
      EXPECT_NE(Problem(folder.File(name)), "") << name << " " << part;
    }
  }
}

TEST(BadImages, OtherFilesAreNamed) {
  const TestFolder folder;
  ExpectProblem(folder.File("missing.tif"), "No such file");
  WriteBytes(folder.File("text.tif"), std::as_bytes(std::span("hello", 5)));
  ExpectProblem(folder.File("text.tif"), "none of TIFF, PNG, JPEG and .npy");
  ExpectProblem(BadData("fortran_f32.npy"), "ascontiguousarray");
  ExpectProblem(BadData("gdal_u8.jp2"), "none of TIFF");
  ExpectProblem(BadData("rgb.png"), "one level", {.level = 1});
}

TEST(BadImages, LargeBlocksAreRefusedBeforeTheyAreAllocated) {
  ExpectProblem(BadData("tiles_deflate_f32.tif"), "limit of 1000 bytes", {.max_block_bytes = 1000});
  ExpectProblem(BadData("interlaced.png"), "limit of 1000 bytes", {.max_block_bytes = 1000});
  ExpectProblem(BadData("progressive.jpg"), "progressive and too large", {.max_block_bytes = 1000});
}

// A TIFF that consists of a directory.
struct TiffSketch {
  uint32_t width = 16, height = 16, tile = 16;
  std::vector<uint16_t> bits = {8};
  uint16_t compression = 1, sample_format = 1, photometric = 1;
  uint64_t offset = 8, byte_count = 256;
};

std::string WriteSketch(const TestFolder& folder, const TiffSketch& sketch) {
  TiffDirectory directory(false);
  directory.AddLong(TiffTag::kImageWidth, sketch.width);
  directory.AddLong(TiffTag::kImageLength, sketch.height);
  directory.AddShorts(TiffTag::kBitsPerSample, sketch.bits);
  directory.AddShort(TiffTag::kCompression, sketch.compression);
  directory.AddShort(TiffTag::kPhotometric, sketch.photometric);
  directory.AddShort(TiffTag::kSamplesPerPixel, static_cast<uint16_t>(sketch.bits.size()));
  directory.AddShort(TiffTag::kSampleFormat, sketch.sample_format);
  directory.AddLong(TiffTag::kTileWidth, sketch.tile);
  directory.AddLong(TiffTag::kTileLength, sketch.tile);
  directory.AddOffsets(TiffTag::kTileOffsets, {&sketch.offset, 1});
  directory.AddOffsets(TiffTag::kTileByteCounts, {&sketch.byte_count, 1});
  std::vector<std::byte> bytes = TiffHeader(false, 8);
  directory.Serialize(8, true, &bytes);
  bytes.resize(bytes.size() + 256);
  WriteBytes(folder.File("sketch.tif"), bytes);
  return folder.File("sketch.tif");
}

TEST(BadImages, UnsupportedTiffsAreNamed) {
  const TestFolder folder;
  EXPECT_EQ(Problem(WriteSketch(folder, {})), "");
  ExpectProblem(WriteSketch(folder, {.bits = {24}}), "samples of 24 bits");
  ExpectProblem(WriteSketch(folder, {.bits = {16}, .sample_format = 3}), "samples of 16 bits");
  ExpectProblem(WriteSketch(folder, {.compression = 6}), "TIFF compression 6");
  ExpectProblem(WriteSketch(folder, {.compression = 34676}), "TIFF compression 34676");
  ExpectProblem(WriteSketch(folder, {.bits = {8, 8, 8}, .photometric = 6}), "YCbCr");
  ExpectProblem(WriteSketch(folder, {.tile = 1 << 20}), "more than the limit");
  EXPECT_NE(Problem(WriteSketch(folder, {.width = 0xFFFFFFFF})), "");
  EXPECT_NE(Problem(WriteSketch(folder, {.width = 0, .height = 0})), "");
  ExpectProblem(WriteSketch(folder, {.offset = 1 << 30}), "damaged or cut off");
}

TEST(BadImages, WindowsAndBuffersAreChecked) {
  for (const char* name : {"chw_f32.npy", "tiles_deflate_f32.tif"}) {
    const auto source = MustOpen(BadData(name));
    std::vector<double> memory(10000);
    const auto message = [&](const ImageWindow& window, const PixelBuffer& out) {
      return source->Read(window, out).message();
    };
    const PixelBuffer good{memory.data(), DType::kF32, 100, 10};
    EXPECT_EQ(message({0, 0, 4, 4}, good), "");
    for (const ImageWindow& window :
         {ImageWindow{0, 0, 1000, 4}, ImageWindow{-1, 0, 4, 4}, ImageWindow{0, 0, 0, 4},
          ImageWindow{0, INT64_MAX, 4, 4}, ImageWindow{0, 0, 4, 4, 0, 99},
          ImageWindow{0, 0, 4, 4, 99, 0}})
      EXPECT_NE(message(window, good).find("not within the image"), std::string::npos);
    EXPECT_NE(message({0, 0, 4, 4}, {memory.data(), DType::kU8, 100, 10}).find("not as u8"),
              std::string::npos);
    EXPECT_NE(message({0, 0, 4, 4}, {memory.data(), DType::kF32, 100, 3}).find("strides"),
              std::string::npos);
    EXPECT_NE(message({0, 0, 4, 4}, {memory.data(), DType::kF32, 10, 10}).find("strides"),
              std::string::npos);
    EXPECT_NE(
        message({0, 0, 4, 4}, {memory.data(), DType::kF32, INT64_MAX / 2, 10}).find("strides"),
        std::string::npos);
    EXPECT_NE(message({0, 0, 4, 4}, {nullptr, DType::kF32, 100, 10}).find("null"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace msrt::testing

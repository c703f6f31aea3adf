// Helpers of image tests: a pattern of pixels, whole images in memory, folders for files.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/image/files/image_sink.h"
#include "core/image/files/image_source.h"
#include "core/image/files/pixel_convert.h"

namespace msrt::testing {

// The value of a pixel, as tests/data/generate/images.py has it.
inline double PatternValue(DType type, int64_t channel, int64_t row, int64_t col) {
  const int64_t v = channel * 37 + row * 11 + col * 7 + row * col % 13;
  switch (type) {
    case DType::kU8:
      return static_cast<double>(v % 251);
    case DType::kI8:
      return static_cast<double>(v % 251 - 125);
    case DType::kU16:
      return static_cast<double>(v * 97 % 65521);
    case DType::kI16:
      return static_cast<double>(v * 97 % 65521 - 32768);
    case DType::kU32:
      return static_cast<double>(v * 1000003);
    case DType::kI32:
      return static_cast<double>(v * 1000003 - 2000000000);
    case DType::kF32:
      return static_cast<double>(v) * 0.25 - 100;
    default:
      return static_cast<double>(v) / 3.0;
  }
}

// Pixels of a window: channels x rows x cols, dense.
struct Pixels {
  int64_t channels = 0, rows = 0, cols = 0;
  DType dtype = DType::kU8;
  std::vector<std::byte> bytes = {};

  Pixels(int64_t channels_in, int64_t rows_in, int64_t cols_in, DType dtype_in)
      : channels(channels_in),
        rows(rows_in),
        cols(cols_in),
        dtype(dtype_in),
        bytes(static_cast<size_t>(channels * rows * cols * ElementBytes(dtype))) {}
  PixelBuffer buffer() { return {bytes.data(), dtype, rows * cols, cols}; }
  ConstPixelBuffer view() const { return {bytes.data(), dtype, rows * cols, cols}; }
  std::byte* At(int64_t channel, int64_t row, int64_t col) {
    return bytes.data() + ((channel * rows + row) * cols + col) * ElementBytes(dtype);
  }
};

// The pattern in a window whose first pixel is (row, col); `modulus` > 0 for files with few values.
inline Pixels Pattern(DType type, int64_t channels, int64_t rows, int64_t cols, int64_t row = 0,
                      int64_t col = 0, int64_t modulus = 0, int64_t first_channel = 0) {
  Pixels pixels(channels, rows, cols, type);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t x = 0; x < cols; ++x) {
        double value = PatternValue(type, c + first_channel, r + row, x + col);
        if (modulus > 0) value = static_cast<double>(static_cast<int64_t>(value) % modulus);
        FillPixels(value, type, pixels.At(c, r, x), 1);
      }
    }
  }
  return pixels;
}

inline Pixels ReadPixels(ImageSource& source, const ImageWindow& window, DType type) {
  Pixels pixels(window.channels == 0 ? source.info().channels : window.channels, window.rows,
                window.cols, type);
  const Status status = source.Read(window, pixels.buffer());
  EXPECT_TRUE(status.ok()) << status.message();
  return pixels;
}
inline Pixels ReadWhole(ImageSource& source) {
  return ReadPixels(source, {0, 0, source.info().height, source.info().width}, source.info().dtype);
}

inline std::unique_ptr<ImageSource> MustOpen(const std::string& path, OpenOptions options = {}) {
  auto source = OpenImage(path, options);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return source.ok() ? *std::move(source) : nullptr;
}

// An empty folder that is removed at the end.
class TestFolder {
 public:
  TestFolder()
      : path_(::testing::TempDir() + "msrt_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() +
              ::testing::UnitTest::GetInstance()->current_test_info()->name() +
              std::to_string(getpid())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void WriteBytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}
inline std::vector<std::byte> ReadBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

}  // namespace msrt::testing

#include "tests/fuzz/image_subject.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <random>

#include "core/base/io.h"
#include "core/image/files/block_source.h"
#include "core/image/files/gdal_reader.h"
#include "core/image/files/image_source.h"

namespace msrt::testing {
namespace {

constexpr int64_t kMaxWindow = 64;
constexpr int64_t kMaxPixelsToEnd = 1 << 16;  // sequential formats decode all that comes before

// A file in memory, with a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::byte> bytes) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    MSRT_CHECK(fd_ >= 0);
    MSRT_CHECK(write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return StrCat("/proc/self/fd/", fd_); }

 private:
  const int fd_;
};

bool ReadSome(ImageSource& source) {
  const ImageInfo& info = source.info();
  bool all = true;
  const int64_t rows = std::min(info.height, kMaxWindow), cols = std::min(info.width, kMaxWindow);
  const int64_t channels = std::min<int64_t>(info.channels, 4);
  std::vector<float> pixels(static_cast<size_t>(rows * cols * channels));
  // The first rows, the last ones if the image is small enough to get there, and the first again.
  const int64_t last = info.height * info.width > kMaxPixelsToEnd ? 0 : info.height - rows;
  for (const int64_t row : {int64_t{0}, last, int64_t{0}}) {
    const ImageWindow window{row,  info.width - cols,        rows,
                             cols, info.channels - channels, channels};
    const Status status = source.Read(window, {pixels.data(), DType::kF32, rows * cols, cols});
    RequireGoodError(status);
    all = all && status.ok();
  }
  return all;
}

uint32_t Crc32(std::span<const std::byte> bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      made[i] = i;
      for (int k = 0; k < 8; ++k) made[i] = (made[i] & 1 ? 0xEDB88320u : 0) ^ made[i] >> 1;
    }
    return made;
  }();
  uint32_t crc = 0xFFFFFFFFu;
  for (const std::byte b : bytes) crc = table[(crc ^ static_cast<uint8_t>(b)) & 255] ^ crc >> 8;
  return ~crc;
}

}  // namespace

bool FuzzImage(std::span<const std::byte> bytes) {
  const MemoryFile file(bytes);
  OpenOptions options;
  options.max_block_bytes = 256 << 10;    // time is spent on variety
  options.use_installed_readers = false;  // GDAL and OpenSlide are not under test
  options.level = bytes.size() % 3 == 0 ? 1 : 0;
  auto source = OpenImage(file.path(), options);
  if (!source.ok() && source.status().code() == Code::kNotFound) {
    options.level = 0;
    source = OpenImage(file.path(), options);
  }
  if (!source.ok()) {
    RequireGoodError(source.status());
    return false;
  }
  return ReadSome(**source);
}

bool FuzzGdalImage(std::span<const std::byte> bytes) {
  const MemoryFile file(bytes);
  const std::string path = file.path();
  constexpr int64_t kMaxBlockBytes = 4 << 20;
  const CodecOptions codec{bytes.size() % 3 == 0 ? 1 : 0, 0, kMaxBlockBytes};
  auto reader = OpenGdalBlocks(path, codec);
  if (!reader.ok()) {
    RequireGoodError(reader.status());
    return false;
  }
  OpenOptions options;
  options.max_block_bytes = kMaxBlockBytes;
  auto source = MakeBlockSource(
      path, *std::move(reader), [path, codec] { return OpenGdalBlocks(path, codec); }, options);
  if (!source.ok()) {
    RequireGoodError(source.status());
    return false;
  }
  return ReadSome(**source);
}

std::vector<FuzzFile> ImageSeeds(const char* extension) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(MSRT_IMAGE_DATA)) {
    if (entry.path().extension() == extension) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<FuzzFile> seeds;
  for (const fs::path& file : files) {
    const auto bytes = DefaultIo()->MapFile(file.string());
    MSRT_CHECK(bytes.ok());
    seeds.emplace_back(bytes->data.begin(), bytes->data.end());
  }
  return seeds;
}

FuzzFile MutateBytes(std::span<const std::byte> file, uint64_t seed) {
  std::mt19937_64 random(seed);
  FuzzFile out(file.begin(), file.end());
  constexpr uint8_t kNotable[] = {0, 1, 2, 3, 4, 8, 16, 32, 64, 127, 128, 254, 255};
  const auto place = [&]() -> size_t {
    if (out.empty()) return 0;
    // Directories of TIFF may be at the end.
    const size_t near = std::min<size_t>(out.size(), 300);
    switch (random() % 4) {
      case 0:
        return random() % near;
      case 1:
        return out.size() - 1 - random() % near;
      default:
        return random() % out.size();
    }
  };
  const uint64_t edits = 1 + random() % 4;
  for (uint64_t i = 0; i < edits && !out.empty(); ++i) {
    const size_t at = place();
    switch (random() % 8) {
      case 0:
        out.resize(at);
        break;
      case 1:
        out.erase(out.begin() + static_cast<ptrdiff_t>(at));
        break;
      case 2:
        out.insert(out.begin() + static_cast<ptrdiff_t>(at), std::byte(random()));
        break;
      case 3:
        out[at] = std::byte(random());
        break;
      case 4:
        out[at] ^= std::byte(1u << random() % 8);
        break;
      case 5: {
        const size_t from = place(),
                     count = std::min({random() % 16, out.size() - from, out.size() - at});
        std::memmove(out.data() + at, out.data() + from, count);
        break;
      }
      default:
        out[at] = std::byte(kNotable[random() % std::size(kNotable)]);
    }
  }
  return out;
}

void RepairPng(FuzzFile* file) {
  // Signature, then chunks: length, kind, data, checksum.
  for (size_t at = 8; at + 12 <= file->size();) {
    const auto byte = [&](size_t i) { return static_cast<uint32_t>((*file)[at + i]); };
    const uint64_t length = byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
    if (length > file->size() - at - 12) return;
    const uint32_t crc = Crc32(std::span(*file).subspan(at + 4, 4 + length));
    for (size_t i = 0; i < 4; ++i)
      (*file)[at + 8 + length + i] = static_cast<std::byte>(crc >> (24 - 8 * i));
    at += 12 + length;
  }
}

}  // namespace msrt::testing

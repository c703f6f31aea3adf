// Results that are written in windows: complete files read back, incomplete ones never look
// complete.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <random>
#include <thread>

#include "core/image/files/image_testing.h"
#include "core/image/files/unfinished_file.h"

namespace msrt::testing {
namespace {

namespace fs = std::filesystem;

ImageInfo Info(DType dtype, int64_t channels, int64_t height, int64_t width) {
  ImageInfo info;
  info.dtype = dtype;
  info.channels = channels;
  info.height = height;
  info.width = width;
  return info;
}

std::unique_ptr<ImageSink> MustCreate(const std::string& path, const ImageInfo& info,
                                      const CreateOptions& options = {}) {
  auto sink = CreateImage(path, info, options);
  EXPECT_TRUE(sink.ok()) << sink.status().message();
  return sink.ok() ? *std::move(sink) : nullptr;
}

Status WritePattern(ImageSink& sink, const ImageWindow& window, int64_t modulus = 0) {
  const Pixels pixels = Pattern(sink.info().dtype, sink.info().channels, window.rows, window.cols,
                                window.row, window.col, modulus);
  return sink.Write(window, pixels.view());
}

// Writes rows [from, height) in bands.
Status WriteBands(ImageSink& sink, int64_t band, int64_t from = 0) {
  for (int64_t row = from; row < sink.info().height; row += band) {
    const int64_t rows = std::min(band, sink.info().height - row);
    MSRT_RETURN_IF_ERROR(WritePattern(sink, {row, 0, rows, sink.info().width}));
  }
  return OkStatus();
}

void ExpectPattern(const std::string& path, const ImageInfo& info) {
  const auto source = MustOpen(path);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->info().dtype, info.dtype);
  EXPECT_EQ(ReadWhole(*source).bytes,
            Pattern(info.dtype, info.channels, info.height, info.width).bytes);
}

TEST(ImageSink, EveryTypeAndCompressionReadsBack) {
  const TestFolder folder;
  for (const DType dtype : {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kU32,
                            DType::kI32, DType::kF32, DType::kF64}) {
    for (const Compression compression :
         {Compression::kNone, Compression::kPackBits, Compression::kLzw, Compression::kDeflate,
          Compression::kZstd}) {
      for (const bool planar : {false, true}) {
        for (const int64_t tile : {0, 16, 32}) {
          const ImageInfo info = Info(dtype, 3, 37, 53);
          const std::string path = folder.File("out.tif");
          const auto sink =
              MustCreate(path, info, {.compression = compression, .tile = tile, .planar = planar});
          ASSERT_NE(sink, nullptr);
          ASSERT_TRUE(WriteBands(*sink, 5).ok());
          const Status status = sink->Finish();
          ASSERT_TRUE(status.ok()) << status.message();
          ExpectPattern(path, info);
        }
      }
    }
    const ImageInfo info = Info(dtype, 2, 37, 53);
    const auto sink = MustCreate(folder.File("out.npy"), info);
    ASSERT_TRUE(WriteBands(*sink, 5).ok());
    ASSERT_TRUE(sink->Finish().ok());
    ExpectPattern(folder.File("out.npy"), info);
  }
  EXPECT_FALSE(fs::exists(folder.File("out.tif.part")));
  EXPECT_FALSE(fs::exists(folder.File("out.tif.journal")));
}

TEST(ImageSink, WindowsComeInAnyOrderFromSeveralThreads) {
  const TestFolder folder;
  const ImageInfo info = Info(DType::kF32, 2, 100, 130);
  for (const char* name : {"out.tif", "out.npy"}) {
    std::vector<ImageWindow> windows;
    for (int64_t row = 0; row < 100; row += 17) {
      for (int64_t col = 0; col < 130; col += 23)
        windows.push_back(
            {row, col, std::min<int64_t>(17, 100 - row), std::min<int64_t>(23, 130 - col)});
    }
    std::shuffle(windows.begin(), windows.end(), std::mt19937(3));
    const auto sink = MustCreate(folder.File(name), info, {.tile = 16});
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = t; i < windows.size(); i += 3)
          EXPECT_TRUE(WritePattern(*sink, windows[i]).ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(sink->Finish().ok());
    ExpectPattern(folder.File(name), info);
  }
}

// The rows of a .npy file are as wide as the image, but tiles go to their places at once.
TEST(ImageSink, TilesOfAWideNpyTakeLittleMemory) {
  const TestFolder folder;
  const ImageInfo info = Info(DType::kF32, 3, 300, 5000);
  const std::string path = folder.File("out.npy");
  const CreateOptions options{.max_pending_bytes = 128 << 10};
  const auto sink = MustCreate(path, info, options);
  constexpr int64_t kTileRows = 130, kTileCols = 120;
  // The left half and the right half at once, as two ranks write them.
  for (int64_t row = 0; row < 300; row += kTileRows) {
    for (int64_t col = 0; col < 2500; col += kTileCols) {
      for (const int64_t begin : {int64_t{0}, int64_t{2500}}) {
        const ImageWindow window{row, begin + col, std::min(kTileRows, 300 - row),
                                 std::min(kTileCols, 2500 - col)};
        const Status status = WritePattern(*sink, window);
        ASSERT_TRUE(status.ok()) << status.message();
      }
    }
  }
  const Status status = sink->Finish();
  ASSERT_TRUE(status.ok()) << status.message();
  ExpectPattern(path, info);
}

TEST(ImageSink, NpyRefusesPixelsThatAreWrittenTwice) {
  const TestFolder folder;
  const auto sink = MustCreate(folder.File("out.npy"), Info(DType::kU8, 1, 100, 300));
  ASSERT_TRUE(WritePattern(*sink, {0, 0, 40, 200}).ok());
  const Status twice = WritePattern(*sink, {39, 199, 10, 10});
  EXPECT_EQ(twice.code(), Code::kInvalidArgument);
  EXPECT_NE(twice.message().find("are written twice"), std::string::npos) << twice.message();
  EXPECT_FALSE(sink->Finish().ok());
}

TEST(ImageSink, GeoTagsPaletteAndNoDataReadBack) {
  const TestFolder folder;
  ImageInfo info = Info(DType::kU8, 1, 40, 50);
  info.geo.has_transform = true;
  info.geo.transform = {500000, 10, 0, 4600000, 0, -10};
  info.geo.keys = {1, 1, 0, 2, 1025, 0, 1, 2, 3072, 0, 1, 32633};  // pixel is point
  info.geo.doubles = {1.5};
  info.geo.ascii = "name|";
  info.palette = {{0, 0, 0}, {65535, 0, 0}, {0, 65535, 0}};
  info.no_data = 255;
  info.geo = Rescaled(info.geo, 4, 8, 2, 2);
  const auto sink = MustCreate(folder.File("classes.tif"), info);
  ASSERT_TRUE(WriteBands(*sink, 40).ok());
  ASSERT_TRUE(sink->Finish().ok());
  const auto source = MustOpen(folder.File("classes.tif"));
  EXPECT_EQ(source->info().geo, info.geo);
  EXPECT_EQ(source->info().geo.transform, (std::array<double, 6>{500080, 20, 0, 4599960, 0, -20}));
  EXPECT_EQ(source->info().no_data, 255);
  ASSERT_EQ(source->info().palette.size(), 256u);
  EXPECT_EQ(source->info().palette[1], (PaletteEntry{65535, 0, 0}));
}

// Overviews by plain loops over the whole image.
Pixels HalfOf(Pixels& whole, bool most_frequent) {
  Pixels half(whole.channels, (whole.rows + 1) / 2, (whole.cols + 1) / 2, whole.dtype);
  for (int64_t c = 0; c < half.channels; ++c) {
    for (int64_t r = 0; r < half.rows; ++r) {
      for (int64_t x = 0; x < half.cols; ++x) {
        std::vector<double> values;
        for (int64_t i = 2 * r; i < std::min(2 * r + 2, whole.rows); ++i) {
          for (int64_t j = 2 * x; j < std::min(2 * x + 2, whole.cols); ++j)
            values.push_back(static_cast<double>(*reinterpret_cast<uint8_t*>(whole.At(c, i, j))));
        }
        double result = 0;
        if (most_frequent) {
          std::ptrdiff_t best = 0;
          for (const double v : values) {
            const auto n = std::count(values.begin(), values.end(), v);
            if (n > best) {
              best = n;
              result = v;
            }
          }
        } else {
          for (const double v : values) result += v / static_cast<double>(values.size());
        }
        FillPixels(result, whole.dtype, half.At(c, r, x), 1);
      }
    }
  }
  return half;
}

TEST(ImageSink, OverviewsAreBuiltWhileWriting) {
  const TestFolder folder;
  for (const bool classes : {false, true}) {
    ImageInfo info = Info(DType::kU8, classes ? 1 : 3, 75, 101);
    if (classes) info.palette = {{0, 0, 0}, {65535, 0, 0}};
    const std::string path = folder.File("out.tif");
    const auto sink = MustCreate(path, info, {.tile = 16, .overviews = true});
    for (int64_t row = 0; row < 75; row += 4)
      ASSERT_TRUE(
          WritePattern(*sink, {row, 0, std::min<int64_t>(4, 75 - row), 101}, classes ? 3 : 0).ok());
    ASSERT_TRUE(sink->Finish().ok());
    Pixels expected = Pattern(DType::kU8, info.channels, 75, 101, 0, 0, classes ? 3 : 0);
    for (int level = 0; level < 4; ++level) {
      const auto source = MustOpen(path, {.level = level});
      ASSERT_NE(source, nullptr);
      EXPECT_EQ(source->info().levels, 4);
      EXPECT_EQ(ReadWhole(*source).bytes, expected.bytes) << level;
      expected = HalfOf(expected, classes);
    }
  }
}

TEST(ImageSink, BigTiffIsChosenBySize) {
  const TestFolder folder;
  ImageInfo info = Info(DType::kF32, 4, 16, 16);
  const auto first_bytes = [&](const CreateOptions& options) {
    const auto sink = MustCreate(folder.File("out.tif"), info, options);
    return static_cast<int>(ReadBytes(folder.File("out.tif.part"))[2]);
  };
  EXPECT_EQ(first_bytes({}), 42);
  EXPECT_EQ(first_bytes({.big_tiff = BigTiff::kYes}), 43);
  info.height = info.width = 30000;
  EXPECT_EQ(first_bytes({}), 43);
}

TEST(ImageSink, AbandonedResultNeverLooksComplete) {
  const TestFolder folder;
  for (const char* name : {"out.tif", "out.npy"}) {
    const ImageInfo info = Info(DType::kF32, 1, 64, 64);
    {
      const auto sink = MustCreate(folder.File(name), info, {.tile = 16});
      ASSERT_TRUE(WritePattern(*sink, {0, 0, 50, 64}).ok());
      const Status status = sink->Finish();
      ASSERT_FALSE(status.ok());
      EXPECT_NE(status.message().find("pixels are missing"), std::string::npos);
    }
    EXPECT_FALSE(fs::exists(folder.File(name)));
    EXPECT_TRUE(fs::exists(folder.File(std::string(name) + ".part")));
    RemoveUnfinished(folder.File(name));
    EXPECT_FALSE(fs::exists(folder.File(std::string(name) + ".part")));
  }
}

TEST(ImageSink, KilledJobContinuesWithTheSameBytes) {
  const TestFolder folder;
  for (const char* name : {"out.tif", "out.npy"}) {
    const bool is_tiff = std::string(name) == "out.tif";
    ImageInfo info = Info(DType::kU16, 2, 200, 150);
    CreateOptions options{.compression = is_tiff ? Compression::kDeflate : Compression::kAuto,
                          .tile = 16,
                          .overviews = is_tiff,
                          .resume = true,
                          .job = 5};
    const std::string path = folder.File(name), whole = folder.File(std::string("whole_") + name);
    {
      const auto sink = MustCreate(whole, info, options);
      ASSERT_TRUE(WriteBands(*sink, 7).ok());
      ASSERT_TRUE(sink->Finish().ok());
    }
    // Each child writes a bit more, syncs, writes again without a sync, and dies.
    for (int64_t stop = 30; stop < 200; stop += 45) {
      const pid_t child = fork();
      if (child == 0) {
        auto sink = CreateImage(path, info, options);
        bool ok = sink.ok();
        int64_t row = ok ? (*sink)->finished_rows() : 0;
        for (; ok && row < stop; row += 7)
          ok = WritePattern(**sink, {row, 0, std::min<int64_t>(7, 200 - row), 150}).ok();
        ok = ok && (*sink)->Sync().ok();
        for (int i = 0; ok && i < 4 && row < 200; ++i, row += 7)
          ok = WritePattern(**sink, {row, 0, std::min<int64_t>(7, 200 - row), 150}).ok();
        if (ok) kill(getpid(), SIGKILL);
        _exit(1);
      }
      int how = 0;
      ASSERT_EQ(waitpid(child, &how, 0), child);
      ASSERT_TRUE(WIFSIGNALED(how)) << stop;
      ASSERT_FALSE(fs::exists(path));
    }
    const auto sink = MustCreate(path, info, options);
    ASSERT_NE(sink, nullptr);
    EXPECT_TRUE(!is_tiff || sink->finished_rows() >= 160) << sink->finished_rows();
    EXPECT_TRUE(!is_tiff || sink->IsFinished({0, 0, 100, 150}));
    // From an earlier row on: what exists is skipped.
    ASSERT_TRUE(WriteBands(*sink, 7, sink->finished_rows() / 2 / 7 * 7).ok());
    const Status status = sink->Finish();
    ASSERT_TRUE(status.ok()) << status.message();
    const auto level_count = MustOpen(path)->info().levels;
    EXPECT_EQ(level_count, is_tiff ? 5 : 1);
    for (int level = 0; level < level_count; ++level)
      EXPECT_EQ(ReadWhole(*MustOpen(path, {.level = level})).bytes,
                ReadWhole(*MustOpen(whole, {.level = level})).bytes)
          << level;
  }
}

TEST(ImageSink, AnotherJobIsNotContinued) {
  const TestFolder folder;
  const ImageInfo info = Info(DType::kU8, 1, 64, 64);
  const std::string path = folder.File("out.tif");
  {
    const auto sink = MustCreate(path, info, {.tile = 16, .job = 1});
    ASSERT_TRUE(WritePattern(*sink, {0, 0, 32, 64}).ok());
    ASSERT_TRUE(sink->Sync().ok());
  }
  const auto other = CreateImage(path, info, {.tile = 16, .resume = true, .job = 2});
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().message().find("another model, image or options"), std::string::npos);
  const auto fresh = MustCreate(path, info, {.tile = 16, .job = 2});
  EXPECT_EQ(fresh->finished_rows(), 0);
  const auto second = CreateImage(path, info, {.tile = 16, .job = 2});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("another process"), std::string::npos);
}

TEST(ImageSink, DamagedJournalIsRefusedOrCutOff) {
  const TestFolder folder;
  const ImageInfo info = Info(DType::kU8, 2, 64, 64);
  const std::string path = folder.File("out.tif");
  const CreateOptions options{.tile = 16, .planar = true, .resume = true};
  {
    const auto sink = MustCreate(path, info, options);
    ASSERT_TRUE(WritePattern(*sink, {0, 0, 32, 64}).ok());
    ASSERT_TRUE(sink->Sync().ok());
  }
  const std::vector<std::byte> journal = ReadBytes(JournalPath(path));
  const std::vector<std::byte> part = ReadBytes(PartPath(path));
  std::mt19937 random(5);
  for (int i = 0; i < 400; ++i) {
    std::vector<std::byte> damaged = journal;
    for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = std::byte(random());
    if (i % 3 == 0) damaged.resize(random() % damaged.size());
    std::vector<std::byte> cut = part;
    if (i % 5 == 0) cut.resize(random() % cut.size());
    WriteBytes(JournalPath(path), damaged);
    WriteBytes(PartPath(path), cut);
    auto sink = CreateImage(path, info, options);
    if (!sink.ok()) {
      EXPECT_NE(sink.status().code(), Code::kInternal);
      continue;
    }
    ASSERT_TRUE(WriteBands(**sink, 16).ok());
    ASSERT_TRUE((*sink)->Finish().ok());
    ExpectPattern(path, info);
  }
}

TEST(ImageSink, FullDiskLeavesNoResult) {
  const TestFolder folder;
  for (const char* name : {"out.tif", "out.npy"}) {
    const std::string path = folder.File(name);
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{40000, 40000};
      setrlimit(RLIMIT_FSIZE, &limit);
      auto sink = CreateImage(path, Info(DType::kF32, 1, 256, 256), {.tile = 16});
      if (!sink.ok()) _exit(1);
      const Status status = WriteBands(**sink, 16);
      if (status.ok() || status.code() != Code::kIo) _exit(2);
      if (status.message().find("write: File too large") == std::string::npos) _exit(3);
      if ((*sink)->Finish().ok() || (*sink)->Sync().ok()) _exit(4);
      _exit(0);
    }
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << WEXITSTATUS(how);
    EXPECT_FALSE(fs::exists(path));
  }
}

TEST(ImageSink, WrongWindowsAreRefused) {
  const TestFolder folder;
  const ImageInfo info = Info(DType::kU8, 2, 32, 32);
  const auto refused = [&](const ImageWindow& window, DType dtype, int64_t channels) {
    const auto sink = MustCreate(folder.File("out.tif"), info, {.tile = 16});
    EXPECT_TRUE(WritePattern(*sink, {0, 0, 8, 32}).ok());
    Pixels pixels(channels, std::max<int64_t>(window.rows, 1), std::max<int64_t>(window.cols, 1),
                  dtype);
    return sink->Write(window, pixels.view()).message();
  };
  EXPECT_NE(refused({4, 0, 8, 32}, DType::kU8, 2).find("written twice"), std::string::npos);
  EXPECT_NE(refused({30, 0, 8, 32}, DType::kU8, 2).find("not within"), std::string::npos);
  EXPECT_NE(refused({8, 0, 0, 32}, DType::kU8, 2).find("not within"), std::string::npos);
  EXPECT_NE(refused({8, 0, 8, 32}, DType::kF32, 2).find("written as u8"), std::string::npos);
  EXPECT_NE(refused({8, 0, 8, 32, 0, 1}, DType::kU8, 2).find("all 2 channels"), std::string::npos);
}

TEST(ImageSink, ImpossibleResultsAreRefused) {
  const TestFolder folder;
  const auto message = [&](const char* name, const ImageInfo& info, const CreateOptions& options) {
    const auto sink = CreateImage(folder.File(name), info, options);
    EXPECT_FALSE(sink.ok());
    return sink.ok() ? std::string() : sink.status().message();
  };
  const ImageInfo good = Info(DType::kU8, 1, 8, 8);
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(message("out.png", good, {}), "ends in .tif, .tiff or .npy"));
  EXPECT_TRUE(has(message("out.tif", good, {.tile = 20}), "multiple of 16"));
  EXPECT_TRUE(has(message("out.tif", good, {.tile = 0, .overviews = true}), "need tiles"));
  EXPECT_TRUE(has(message("out.npy", good, {.overviews = true}), "no overviews"));
  EXPECT_TRUE(has(message("out.tif", Info(DType::kI64, 1, 8, 8), {}), "element type i64"));
  EXPECT_TRUE(has(message("out.tif", Info(DType::kU8, 1, 0, 8), {}), "no pixels"));
  EXPECT_TRUE(has(message("out.tif", Info(DType::kU8, 1 << 20, 8, 8), {}), "65535 channels"));
  EXPECT_TRUE(has(message("out.tif", Info(DType::kF64, int64_t{1} << 40, int64_t{1} << 40, 8), {}),
                  "larger than any memory"));
  ImageInfo palette = Info(DType::kF32, 1, 8, 8);
  palette.palette = {{1, 2, 3}};
  EXPECT_TRUE(has(message("out.tif", palette, {}), "palette needs one channel"));
  EXPECT_TRUE(has(message("missing/out.tif", good, {}), "No such file"));
}

TEST(ImageSink, CallbacksReadAndWrite) {
  const ImageInfo info = Info(DType::kU8, 1, 10, 10);
  auto source = MakeCallbackSource(info, [](const ImageWindow& window, const PixelBuffer& out) {
    const Pixels pixels = Pattern(DType::kU8, 1, window.rows, window.cols, window.row, window.col);
    std::memcpy(out.data, pixels.bytes.data(), pixels.bytes.size());
    return OkStatus();
  });
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(ReadPixels(**source, {2, 3, 4, 5}, DType::kU8).bytes,
            Pattern(DType::kU8, 1, 4, 5, 2, 3).bytes);
  int64_t rows = 0;
  auto sink = MakeCallbackSink(info, [&](const ImageWindow& window, const ConstPixelBuffer&) {
    rows += window.rows;
    return OkStatus();
  });
  ASSERT_TRUE(sink.ok());
  EXPECT_TRUE(WriteBands(**sink, 3).ok());
  EXPECT_TRUE((*sink)->Finish().ok());
  EXPECT_EQ(rows, 10);
}

}  // namespace
}  // namespace msrt::testing

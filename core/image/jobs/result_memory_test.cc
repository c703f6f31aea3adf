// What sinks hold while several ranks write, in the worst order, is no more than is counted.
#include "core/image/jobs/result_memory.h"

#include <gtest/gtest.h>

#include "core/image/files/image_testing.h"

namespace msrt::testing {
namespace {

struct Order {
  ResultPieces pieces;
  std::vector<std::vector<ImageWindow>> ranks;  // the windows of each
};

// Windows of `rows` x `columns` over a part, row by row.
std::vector<ImageWindow> WindowsOf(int64_t top, int64_t left, int64_t bottom, int64_t right,
                                   int64_t rows, int64_t columns) {
  std::vector<ImageWindow> windows;
  for (int64_t row = top; row < bottom; row += rows) {
    for (int64_t col = left; col < right; col += columns)
      windows.push_back({row, col, std::min(rows, bottom - row), std::min(columns, right - col)});
  }
  return windows;
}

Order OrderOf(const ImageInfo& info, const ResultPieces& pieces) {
  Order order{pieces, {}};
  for (int64_t i = 0; i < pieces.parts_down; ++i) {
    for (int64_t j = 0; j < pieces.parts_across; ++j) {
      const auto cut = [](int64_t extent, int64_t k, int64_t n) { return extent * k / n; };
      order.ranks.push_back(WindowsOf(
          cut(info.height, i, pieces.parts_down), cut(info.width, j, pieces.parts_across),
          cut(info.height, i + 1, pieces.parts_down), cut(info.width, j + 1, pieces.parts_across),
          pieces.rows, pieces.columns > 0 ? pieces.columns : info.width));
    }
  }
  return order;
}

// All ranks in turn; windows are cut at the rows of blocks as JobResults does.
Status WriteInTurn(ImageSink& sink, const Order& order, int64_t block) {
  size_t most = 0;
  for (const auto& windows : order.ranks) most = std::max(most, windows.size());
  for (size_t k = 0; k < most; ++k) {
    for (const auto& windows : order.ranks) {
      if (k >= windows.size()) continue;
      const ImageWindow& w = windows[k];
      for (int64_t row = w.row, end; row < w.row + w.rows; row = end) {
        end = std::min((row / block + 1) * block, w.row + w.rows);
        const Pixels pixels(sink.info().channels, end - row, w.cols, sink.info().dtype);
        MSRT_RETURN_IF_ERROR(sink.Write({row, w.col, end - row, w.cols}, pixels.view()));
      }
    }
  }
  return sink.Finish();
}

TEST(ResultMemory, IsNotExceededByRanksThatWriteInTurn) {
  const TestFolder folder;
  JobOptions options;
  options.create.tile = 32;
  for (const char* name : {"out.tif", "out.npy"}) {
    for (const bool classes : {false, true}) {
      ImageInfo info;
      info.height = 333, info.width = 467;
      info.channels = classes ? 1 : 2;
      info.dtype = classes ? DType::kU8 : DType::kF32;
      const bool is_npy = std::string(name) == "out.npy";
      if (classes && !is_npy) info.palette = {{0, 0, 0}, {65535, 0, 0}};
      for (const ResultPieces& pieces :
           std::vector<ResultPieces>{{ImageExecutor::kStream, 1, 1, 5, 0},
                                     {ImageExecutor::kStream, 3, 1, 7, 0},
                                     {ImageExecutor::kTiles, 1, 1, 40, 24},
                                     {ImageExecutor::kTiles, 2, 2, 100, 90},
                                     {ImageExecutor::kTiles, 1, 3, 21, 300},
                                     {ImageExecutor::kHalo, 2, 2, 11, 0},
                                     {ImageExecutor::kHalo, 1, 4, 16, 0}}) {
        CreateOptions create = options.create;
        create.compression = Compression::kNone;
        create.overviews = !info.palette.empty();
        const JobOutput output{.path = folder.File(name)};
        // The sink does not count the pixels that are converted; here they are of no use to it.
        create.max_pending_bytes = OpenBlockBytes(options, output, info, pieces);
        auto sink = CreateImage(output.path, info, create);
        ASSERT_TRUE(sink.ok()) << sink.status().message();
        const Status status = WriteInTurn(**sink, OrderOf(info, pieces), options.create.tile);
        EXPECT_TRUE(status.ok()) << name << ", " << ExecutorName(pieces.executor) << " "
                                 << pieces.parts_down << " x " << pieces.parts_across << ": "
                                 << status.message();
        EXPECT_LE(create.max_pending_bytes,
                  (info.channels * ElementBytes(info.dtype) + 1) * 4 * 512 * 512);
      }
    }
  }
}

}  // namespace
}  // namespace msrt::testing

#include "core/image/files/block_source.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/catch_as_status.h"
#include "core/base/checked_math.h"
#include "core/image/files/block_cache.h"
#include "core/image/files/pixel_convert.h"

namespace msrt {
namespace {

// Readers of one image, handed out to one thread at a time and opened when more are needed.
class ReaderPool {
 public:
  ReaderPool(std::unique_ptr<BlockReader> first, ReopenBlocks reopen, int max_readers)
      : reopen_(std::move(reopen)), max_readers_(max_readers) {
    free_.push_back(std::move(first));
  }

  Result<std::unique_ptr<BlockReader>> Take() {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [&] { return !free_.empty() || readers_ < max_readers_; });
    if (!free_.empty()) {
      std::unique_ptr<BlockReader> reader = std::move(free_.back());
      free_.pop_back();
      return reader;
    }
    ++readers_;
    lock.unlock();
    Result<std::unique_ptr<BlockReader>> reader = reopen_();
    if (!reader.ok()) Lost();
    return reader;
  }

  void Return(std::unique_ptr<BlockReader> reader) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(reader));
    returned_.notify_one();
  }

  void Lost() {
    const std::lock_guard lock(mutex_);
    --readers_;
    returned_.notify_one();
  }

 private:
  const ReopenBlocks reopen_;
  const int max_readers_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<BlockReader>> free_;
  int readers_ = 1;
};

class BlockSource final : public ImageSource {
 public:
  BlockSource(std::string name, std::unique_ptr<BlockReader> reader, ReopenBlocks reopen,
              const OpenOptions& options)
      : name_(std::move(name)),
        info_(reader->info()),
        layout_(reader->layout()),
        across_(CeilDiv(info_.width, layout_.cols)),
        down_(CeilDiv(info_.height, layout_.rows)),
        base_cache_bytes_(CacheLimit(options)),
        readers_(layout_.sequential ? 1 : std::max(options.decoders, 1)),
        library_bytes_(readers_ * reader->cache_bytes()),
        allowed_cache_bytes_(base_cache_bytes_),
        cache_(base_cache_bytes_),
        pool_(std::move(reader), std::move(reopen), readers_) {}

  ~BlockSource() override {
    {
      const std::lock_guard lock(ahead_mutex_);
      stop_ = true;
    }
    ahead_changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  const ImageInfo& info() const override { return info_; }
  int64_t cache_bytes() const override { return base_cache_bytes_ + library_bytes_; }
  void AllowCache(int64_t bytes) override {
    allowed_cache_bytes_.store(std::max(base_cache_bytes_, bytes - library_bytes_));
  }
  int64_t block_rows() const override { return layout_.rows; }
  int64_t decoded_blocks() const override { return decoded_.load(); }

  Status Read(const ImageWindow& asked, const PixelBuffer& out) override {
    const auto named = [&](Status status) { return std::move(status).Within(name_); };
    Result<ImageWindow> window = CheckWindow(info_, asked);
    if (!window.ok()) return named(std::move(window).status());
    if (out.dtype != info_.dtype && out.dtype != DType::kF32)
      return named(
          InvalidArgument("pixels are read as ", info_.dtype, " or f32, not as ", out.dtype));
    Status status = CheckBuffer(*window, {out.data, out.dtype, out.channel_stride, out.row_stride});
    if (status.ok()) FitCache(*window);
    if (status.ok())
      status = ForEachBlock(*window, [&](const BlockIndex& index) -> Status {
        read_row_.store(index.row, std::memory_order_relaxed);
        MSRT_ASSIGN_OR_RETURN(const BlockCache::Block block, Block(index));
        CopyPart(*window, index, *block, out);
        return OkStatus();
      });
    return named(std::move(status));
  }

  void ReadAhead(const ImageWindow& asked) override {
    const Result<ImageWindow> window = CheckWindow(info_, asked);
    if (!window.ok()) return;  // the read itself reports it
    FitCache(*window);
    const std::lock_guard lock(ahead_mutex_);
    ahead_ = *window;
    read_row_.store(0, std::memory_order_relaxed);
    // Without a thread the image is read when it is asked for.
    if (!thread_.joinable())
      (void)CatchAsStatus([&] { thread_ = std::thread([this] { RunAhead(); }); });
    ahead_changed_.notify_all();
  }

 private:
  int64_t CacheLimit(const OpenOptions& options) const {
    return options.cache_bytes > 0 ? options.cache_bytes : BytesOfRows(2);
  }

  // The bytes of so many rows of blocks.
  int64_t BytesOfRows(int64_t rows) const {
    int64_t bytes = BlockBytes(info_, layout_);
    const int64_t planes = layout_.planar ? info_.channels : 1;
    if (!CheckedMul(bytes, across_, &bytes) || !CheckedMul(bytes, planes, &bytes) ||
        !CheckedMul(bytes, rows, &bytes))
      return INT64_MAX;
    return bytes;
  }

  void FitCache(const ImageWindow& window) {
    const int64_t last = (window.row + window.rows - 1) / layout_.rows;
    const int64_t needed = BytesOfRows(last - window.row / layout_.rows + 1);
    cache_.Grow(std::min(needed, allowed_cache_bytes_.load()));
  }

  template <typename Body>
  Status ForEachBlock(const ImageWindow& window, const Body& body) const {
    const int64_t first_plane = layout_.planar ? window.channel : 0;
    const int64_t end_plane = layout_.planar ? window.channel + window.channels : 1;
    for (int64_t row = window.row / layout_.rows;
         row <= (window.row + window.rows - 1) / layout_.rows; ++row) {
      for (int64_t plane = first_plane; plane < end_plane; ++plane) {
        for (int64_t col = window.col / layout_.cols;
             col <= (window.col + window.cols - 1) / layout_.cols; ++col) {
          MSRT_RETURN_IF_ERROR(body(BlockIndex{plane, row, col}));
        }
      }
    }
    return OkStatus();
  }

  Result<BlockCache::Block> Block(const BlockIndex& index) {
    const int64_t key = (index.plane * down_ + index.row) * across_ + index.col;
    return cache_.Get(key, [&]() -> Result<BlockCache::Block> {
      const int64_t bytes = BlockBytes(info_, layout_);
      auto block = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes));
      MSRT_ASSIGN_OR_RETURN(std::unique_ptr<BlockReader> reader, pool_.Take());
      Status status;
      const Status caught = CatchAsStatus([&] {
        status = reader->ReadBlock(index, {block->data(), block->size()});
      });
      pool_.Return(std::move(reader));
      MSRT_RETURN_IF_ERROR(caught);
      MSRT_RETURN_IF_ERROR(status);
      decoded_.fetch_add(1);
      return BlockCache::Block(std::move(block));
    });
  }

  // Copies the part of the window that is in the block.
  void CopyPart(const ImageWindow& window, const BlockIndex& index,
                const std::vector<std::byte>& block, const PixelBuffer& out) const {
    const int64_t block_row = index.row * layout_.rows, block_col = index.col * layout_.cols;
    const int64_t row_begin = std::max(window.row, block_row);
    const int64_t row_end = std::min(window.row + window.rows, block_row + layout_.rows);
    const int64_t col_begin = std::max(window.col, block_col);
    const int64_t col_end = std::min(window.col + window.cols, block_col + layout_.cols);
    const int64_t pixel_stride = layout_.planar ? 1 : info_.channels;
    const int64_t from_bytes = ElementBytes(info_.dtype), to_bytes = ElementBytes(out.dtype);
    const int64_t first = layout_.planar ? index.plane : window.channel;
    const int64_t count = layout_.planar ? 1 : window.channels;
    auto* const to = static_cast<std::byte*>(out.data);
    for (int64_t channel = first; channel < first + count; ++channel) {
      for (int64_t row = row_begin; row < row_end; ++row) {
        const int64_t pixel = (row - block_row) * layout_.cols + (col_begin - block_col);
        const int64_t element = pixel * pixel_stride + (layout_.planar ? 0 : channel);
        const int64_t target = (channel - window.channel) * out.channel_stride +
                               (row - window.row) * out.row_stride + (col_begin - window.col);
        ConvertPixels(block.data() + element * from_bytes, info_.dtype, pixel_stride,
                      to + target * to_bytes, out.dtype, col_end - col_begin);
      }
    }
  }

  // The background thread: loads the blocks of the latest request, but no more than the cache
  // holds, else the first of them would be gone before they are read, and none that a read has
  // passed. Errors are left for the read.
  void RunAhead() {
    std::unique_lock lock(ahead_mutex_);
    while (true) {
      ahead_changed_.wait(lock, [&] { return stop_ || ahead_.has_value(); });
      if (stop_) return;
      const ImageWindow window = *std::exchange(ahead_, std::nullopt);
      lock.unlock();
      int64_t bytes = 0;
      (void)ForEachBlock(window, [&](const BlockIndex& index) -> Status {
        {
          const std::lock_guard inner(ahead_mutex_);
          if (stop_ || ahead_.has_value()) return Status(Code::kCancelled, "");
        }
        if (index.row < read_row_.load(std::memory_order_relaxed)) return OkStatus();
        bytes += BlockBytes(info_, layout_);
        if (bytes > cache_.max_bytes()) return Status(Code::kCancelled, "");
        Status status;
        MSRT_RETURN_IF_ERROR(CatchAsStatus([&] { status = Block(index).status(); }));
        return status;
      });
      lock.lock();
    }
  }

  const std::string name_;
  const ImageInfo info_;
  const BlockLayout layout_;
  const int64_t across_, down_;     // the numbers of blocks
  const int64_t base_cache_bytes_;  // of decoded blocks
  const int readers_;
  const int64_t library_bytes_;  // of all readers
  std::atomic<int64_t> allowed_cache_bytes_;
  BlockCache cache_;
  ReaderPool pool_;
  std::atomic<int64_t> read_row_{0};  // of blocks, which a read has reached since the last request
  std::atomic<int64_t> decoded_{0};

  std::mutex ahead_mutex_;
  std::condition_variable ahead_changed_;
  std::optional<ImageWindow> ahead_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<ImageSource>> MakeBlockSource(std::string name,
                                                     std::unique_ptr<BlockReader> reader,
                                                     ReopenBlocks reopen,
                                                     const OpenOptions& options) {
  Status status = CheckImageInfo(reader->info());
  if (status.ok())
    status = CheckBlockLayout(reader->info(), reader->layout(), options.max_block_bytes);
  MSRT_RETURN_IF_ERROR(std::move(status).Within(name));
  // Buffers are sized by the first reader; another process may replace the file.
  auto checked = [info = reader->info(), layout = reader->layout(),
                  inner = std::move(reopen)]() -> Result<std::unique_ptr<BlockReader>> {
    MSRT_ASSIGN_OR_RETURN(std::unique_ptr<BlockReader> again, inner());
    const ImageInfo& other = again->info();
    if (other.channels != info.channels || other.height != info.height ||
        other.width != info.width || other.dtype != info.dtype || again->layout() != layout)
      return IoError("the file was replaced while it was read");
    return again;
  };
  return std::unique_ptr<ImageSource>(std::make_unique<BlockSource>(
      std::move(name), std::move(reader), std::move(checked), options));
}

}  // namespace msrt

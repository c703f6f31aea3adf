#include "core/image/files/npy_sink.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>

#include "core/base/catch_as_status.h"
#include "core/base/checked_math.h"
#include "core/image/files/image_file.h"
#include "core/image/files/npy_header.h"
#include "core/image/files/sink_journal.h"
#include "core/image/files/unfinished_file.h"

namespace msrt {
namespace {

constexpr int64_t kNpySyncBytes = int64_t{128} << 20;

// The pixels of a block that a window has claimed, of those that exist.
class ClaimedPixels {
 public:
  explicit ClaimedPixels(int64_t pixels) : missing_(pixels) {}

  // Claims columns [begin, end) of a row of the block; false if one of them is claimed already.
  bool Claim(int64_t row, int64_t begin, int64_t end) {
    bool free = true;
    for (int64_t word = begin / 64; word * 64 < end; ++word) {
      const int64_t first = std::max<int64_t>(begin - word * 64, 0);
      const int64_t last = std::min<int64_t>(end - word * 64, 64);  // at least first + 1
      const uint64_t bits = ~uint64_t{0} >> (64 - (last - first)) << first;
      uint64_t& claimed = claimed_[static_cast<size_t>(row * kWords + word)];
      free = free && (claimed & bits) == 0;
      claimed |= bits;
    }
    return free;
  }
  // Counts pixels that are in the file; whether they were the last.
  bool Written(int64_t pixels) { return (missing_ -= pixels) == 0; }

 private:
  static constexpr int64_t kWords = kNpyBlockCols / 64;
  std::array<uint64_t, kNpyBlockRows * kWords> claimed_{};
  int64_t missing_;
};

enum class NpyBlock : uint8_t { kMissing, kDone, kRestored };

class NpySink final : public ImageSink {
 public:
  NpySink(std::string path, const ImageInfo& info, const CreateOptions& options, ImageFile file,
          SinkJournal journal, int64_t header_bytes)
      : path_(std::move(path)),
        info_(info),
        max_pending_bytes_(options.max_pending_bytes),
        header_bytes_(header_bytes),
        across_(CeilDiv(info.width, kNpyBlockCols)),
        file_(std::move(file)),
        journal_(std::move(journal)),
        blocks_(static_cast<size_t>(across_ * CeilDiv(info.height, kNpyBlockRows))) {}

  const ImageInfo& info() const override { return info_; }

  // Called once, before the sink is shared.
  Status Restore(std::span<const StoredBlock> blocks) {
    if (!blocks.empty()) restored_.resize(blocks_.size());
    for (const StoredBlock& stored : blocks) {
      if (stored.level != 0 || stored.block < 0 ||
          static_cast<size_t>(stored.block) >= blocks_.size())
        return InvalidArgument(
            "its journal names a block that the result does not have; start without resuming");
      blocks_[static_cast<size_t>(stored.block)] = NpyBlock::kRestored;
      restored_[static_cast<size_t>(stored.block)] = true;
    }
    return OkStatus();
  }

  Status Write(const ImageWindow& asked, const ConstPixelBuffer& data) override {
    Status status = WriteWindow(asked, data);
    return std::move(status).Within(path_);
  }

  Status Sync() override {
    const std::lock_guard lock(sync_mutex_);
    std::vector<StoredBlock> blocks;
    {
      const std::lock_guard inner(mutex_);
      if (!failure_.ok()) return failure_;
      blocks.swap(unsynced_);
      unsynced_bytes_ = 0;
    }
    if (blocks.empty()) return OkStatus();
    Status status = file_.Sync();
    if (status.ok()) status = journal_.Append(blocks);
    return Remember(std::move(status));
  }

  int64_t finished_rows() const override {
    const std::lock_guard lock(mutex_);
    const auto missing = std::find(blocks_.begin(), blocks_.end(), NpyBlock::kMissing);
    return std::min((missing - blocks_.begin()) / across_ * kNpyBlockRows, info_.height);
  }

  bool IsFinished(const ImageWindow& asked) const override {
    const Result<ImageWindow> window = CheckWindow(info_, asked);
    if (!window.ok()) return false;
    const std::lock_guard lock(mutex_);
    bool finished = true;
    ForEachPart(*window, [&](int64_t block, const ImageWindow&) {
      finished = finished && blocks_[static_cast<size_t>(block)] != NpyBlock::kMissing;
    });
    return finished;
  }

  Status Finish() override {
    Status status = CheckComplete();
    if (status.ok()) status = Remember(file_.Sync());
    if (status.ok()) status = Remember(RenameFinished(path_));
    return std::move(status).Within(path_);
  }

 private:
  // Calls body(block, the part of the window in it).
  template <typename Body>
  void ForEachPart(const ImageWindow& window, const Body& body) const {
    const int64_t row_end = window.row + window.rows, col_end = window.col + window.cols;
    for (int64_t row = window.row, next; row < row_end; row = next) {
      next = std::min((row / kNpyBlockRows + 1) * kNpyBlockRows, row_end);
      for (int64_t col = window.col, end; col < col_end; col = end) {
        end = std::min((col / kNpyBlockCols + 1) * kNpyBlockCols, col_end);
        body(row / kNpyBlockRows * across_ + col / kNpyBlockCols,
             ImageWindow{row, col, next - row, end - col});
      }
    }
  }

  // The first failure makes all later calls fail: the result is incomplete.
  Status Remember(Status status) {
    if (status.ok()) return status;
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = status;
    return status;
  }

  Status WriteWindow(const ImageWindow& asked, const ConstPixelBuffer& data) {
    MSRT_ASSIGN_OR_RETURN(const ImageWindow window, CheckPixels(info_, asked, data));
    {
      const std::lock_guard lock(mutex_);
      if (!failure_.ok()) return failure_;
      Status status;
      const Status thrown = CatchAsStatus([&] { status = Claim(window); });
      if (!thrown.ok()) status = thrown;
      // Some blocks may have claimed pixels of this window that nobody writes.
      if (!status.ok()) return failure_ = status;
    }
    MSRT_RETURN_IF_ERROR(Remember(WriteMissing(window, data)));
    bool sync;
    {
      const std::lock_guard lock(mutex_);
      Complete(window);
      sync = unsynced_bytes_ >= kNpySyncBytes;
    }
    return sync ? Sync() : OkStatus();
  }

  // Requires the lock.
  Status Claim(const ImageWindow& window) {
    bool free = true;
    ForEachPart(window, [&](int64_t block, const ImageWindow& part) {
      const NpyBlock state = blocks_[static_cast<size_t>(block)];
      if (state == NpyBlock::kRestored) return;
      free = free && state == NpyBlock::kMissing;
      if (!free) return;
      const int64_t first_row = part.row / kNpyBlockRows * kNpyBlockRows;
      const int64_t first_col = part.col / kNpyBlockCols * kNpyBlockCols;
      const int64_t pixels = std::min(kNpyBlockRows, info_.height - first_row) *
                             std::min(kNpyBlockCols, info_.width - first_col);
      ClaimedPixels& claimed = pending_.try_emplace(block, pixels).first->second;
      for (int64_t r = 0; r < part.rows; ++r) {
        const int64_t begin = part.col - first_col;
        free = claimed.Claim(part.row - first_row + r, begin, begin + part.cols) && free;
      }
    });
    if (!free)
      return InvalidArgument("pixels of rows ", window.row, " + ", window.rows, ", columns ",
                             window.col, " + ", window.cols, " are written twice");
    if (static_cast<int64_t>(pending_.size() * sizeof(ClaimedPixels)) > max_pending_bytes_)
      return LimitExceeded("incomplete blocks need more than ", max_pending_bytes_,
                           " bytes: write windows from top to bottom");
    return OkStatus();
  }

  // Writes all but the parts in blocks that an earlier run has written; blocks beside each other
  // together.
  Status WriteMissing(const ImageWindow& window, const ConstPixelBuffer& data) const {
    Status status;
    ImageWindow run{0, 0, 0, 0};
    const auto write_run = [&] {
      if (status.ok() && run.rows > 0) status = WriteRun(run, window, data);
    };
    ForEachPart(window, [&](int64_t block, const ImageWindow& part) {
      if (!restored_.empty() && restored_[static_cast<size_t>(block)]) return;
      if (run.row == part.row && run.rows == part.rows && run.col + run.cols == part.col) {
        run.cols += part.cols;
        return;
      }
      write_run();
      run = part;
    });
    write_run();
    return status;
  }

  Status WriteRun(const ImageWindow& run, const ImageWindow& window,
                  const ConstPixelBuffer& data) const {
    const int64_t bytes = ElementBytes(info_.dtype);
    // Rows of the whole width are adjacent in the file.
    const bool dense = run.cols == info_.width && data.row_stride == run.cols;
    const int64_t rows = dense ? run.rows : 1;
    for (int64_t channel = 0; channel < info_.channels; ++channel) {
      for (int64_t r = 0; r < run.rows; r += rows) {
        const int64_t from = channel * data.channel_stride +
                             (run.row + r - window.row) * data.row_stride + run.col - window.col;
        const int64_t to = (channel * info_.height + run.row + r) * info_.width + run.col;
        MSRT_RETURN_IF_ERROR(file_.Write(header_bytes_ + to * bytes,
                                         {static_cast<const std::byte*>(data.data) + from * bytes,
                                          static_cast<size_t>(rows * run.cols * bytes)}));
      }
    }
    return OkStatus();
  }

  // Requires the lock.
  void Complete(const ImageWindow& window) {
    ForEachPart(window, [&](int64_t block, const ImageWindow& part) {
      NpyBlock& state = blocks_[static_cast<size_t>(block)];
      if (state == NpyBlock::kRestored) return;
      unsynced_bytes_ += part.rows * part.cols * info_.channels * ElementBytes(info_.dtype);
      if (!pending_.at(block).Written(part.rows * part.cols)) return;
      pending_.erase(block);
      state = NpyBlock::kDone;
      unsynced_.push_back({0, block});
    });
  }

  Status CheckComplete() const {
    const std::lock_guard lock(mutex_);
    if (!failure_.ok()) return failure_;
    const auto missing = std::find(blocks_.begin(), blocks_.end(), NpyBlock::kMissing);
    if (missing == blocks_.end()) return OkStatus();
    const int64_t block = missing - blocks_.begin();
    return InvalidArgument("pixels are missing, the first in the block at row ",
                           block / across_ * kNpyBlockRows, ", column ",
                           block % across_ * kNpyBlockCols, "; write every window before the end");
  }

  const std::string path_;
  const ImageInfo info_;
  const int64_t max_pending_bytes_, header_bytes_;
  const int64_t across_;  // blocks in a row of them
  const ImageFile file_;
  std::vector<bool> restored_;  // by block, constant once the sink is shared; empty: none

  std::mutex sync_mutex_;  // taken before mutex_
  SinkJournal journal_;    // under sync_mutex_

  mutable std::mutex mutex_;  // protects everything below
  std::vector<NpyBlock> blocks_;
  std::unordered_map<int64_t, ClaimedPixels> pending_;
  std::vector<StoredBlock> unsynced_;
  int64_t unsynced_bytes_ = 0;
  Status failure_;
};

}  // namespace

Result<std::unique_ptr<ImageSink>> MakeNpySink(const std::string& path, const ImageInfo& info,
                                               const CreateOptions& options) {
  const bool has_part = access(PartPath(path).c_str(), F_OK) == 0;
  std::vector<StoredBlock> blocks;
  MSRT_ASSIGN_OR_RETURN(SinkJournal journal,
                        SinkJournal::Open(JournalPath(path), JobHash(info, options),
                                          options.resume && has_part, &blocks));
  MSRT_ASSIGN_OR_RETURN(ImageFile file, ImageFile::OpenForWriting(PartPath(path)));
  const std::string header = MakeNpyHeader(info);
  if (blocks.empty()) {
    MSRT_RETURN_IF_ERROR(file.Truncate(0));
    MSRT_RETURN_IF_ERROR(file.Write(0, std::as_bytes(std::span(header.data(), header.size()))));
  }
  auto sink = std::make_unique<NpySink>(path, info, options, std::move(file), std::move(journal),
                                        static_cast<int64_t>(header.size()));
  Status status = sink->Restore(blocks);
  MSRT_RETURN_IF_ERROR(std::move(status).Within(PartPath(path)));
  return std::unique_ptr<ImageSink>(std::move(sink));
}

}  // namespace msrt

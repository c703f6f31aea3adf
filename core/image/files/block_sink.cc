#include "core/image/files/block_sink.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "core/base/catch_as_status.h"
#include "core/image/files/sink_journal.h"
#include "core/image/files/unfinished_file.h"

namespace msrt {
namespace {

constexpr int64_t kSyncBytes = int64_t{128} << 20;

// A block that has not all of its pixels yet.
struct PendingBlock {
  std::vector<std::byte> pixels;  // channels x rows x cols
  std::vector<uint8_t> present;   // per pixel of rows x cols
  int64_t missing = 0;            // pixels
};

// A complete block on its way to the file.
struct CompleteBlock {
  int level = 0;
  int64_t block = 0;
  std::vector<std::byte> pixels = {};
};

enum class BlockState : uint8_t { kMissing, kInFlight, kDone, kRestored };

struct LevelState {
  StoreLevel shape;
  std::vector<BlockState> blocks;
  std::unordered_map<int64_t, PendingBlock> pending;
};

class BlockSink final : public ImageSink {
 public:
  BlockSink(std::string path, const ImageInfo& info, const CreateOptions& options,
            SinkJournal journal, std::unique_ptr<BlockStore> store)
      : path_(std::move(path)),
        info_(info),
        max_pending_bytes_(options.max_pending_bytes),
        rule_{info.palette.empty() ? OverviewMode::kMean : OverviewMode::kMostFrequent, info.dtype,
              info.no_data},
        journal_(std::move(journal)),
        store_(std::move(store)) {
    for (const StoreLevel& shape : store_->levels()) {
      const auto blocks = static_cast<size_t>(shape.across() * shape.down());
      levels_.push_back({shape, std::vector<BlockState>(blocks, BlockState::kMissing), {}});
    }
  }

  const ImageInfo& info() const override { return info_; }

  // Called once, before the sink is shared.
  Status Restore(std::span<const StoredBlock> blocks) {
    for (const StoredBlock& block : blocks) {
      if (block.level < 0 || static_cast<size_t>(block.level) >= levels_.size() ||
          block.block < 0 || static_cast<size_t>(block.block) >= level(block.level).blocks.size())
        return InvalidArgument(
            "its journal names a block that the result does not have; start "
            "without resuming");
      State(block.level, block.block) = BlockState::kRestored;
    }
    MSRT_RETURN_IF_ERROR(store_->Restore(blocks));
    for (int k = 0; k + 1 < static_cast<int>(levels_.size()); ++k)
      MSRT_RETURN_IF_ERROR(RestoreParents(k));
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
    Status status = store_->Sync();
    if (status.ok()) status = journal_.Append(blocks);
    return Remember(std::move(status));
  }

  int64_t finished_rows() const override {
    const std::lock_guard lock(mutex_);
    const LevelState& base = levels_[0];
    const auto done = std::find_if(base.blocks.begin(), base.blocks.end(),
                                   [](BlockState state) { return state < BlockState::kDone; });
    const int64_t row = (done - base.blocks.begin()) / base.shape.across();
    return std::min(row * base.shape.block_rows, info_.height);
  }

  bool IsFinished(const ImageWindow& asked) const override {
    const Result<ImageWindow> window = CheckWindow(info_, asked);
    if (!window.ok()) return false;
    const std::lock_guard lock(mutex_);
    bool finished = true;
    ForEachBlock(*window, [&](int64_t block) {
      finished = finished && levels_[0].blocks[static_cast<size_t>(block)] >= BlockState::kDone;
    });
    return finished;
  }

  Status Finish() override {
    Status status = FinishFile();
    return std::move(status).Within(path_);
  }

 private:
  LevelState& level(int k) { return levels_[static_cast<size_t>(k)]; }
  BlockState& State(int k, int64_t block) { return level(k).blocks[static_cast<size_t>(block)]; }

  template <typename Body>
  void ForEachBlock(const ImageWindow& window, const Body& body) const {
    const StoreLevel& shape = levels_[0].shape;
    for (int64_t row = window.row / shape.block_rows;
         row <= (window.row + window.rows - 1) / shape.block_rows; ++row) {
      for (int64_t col = window.col / shape.block_cols;
           col <= (window.col + window.cols - 1) / shape.block_cols; ++col)
        body(row * shape.across() + col);
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
    std::vector<CompleteBlock> complete;
    {
      const std::lock_guard lock(mutex_);
      if (!failure_.ok()) return failure_;
      Status status;
      ForEachBlock(window, [&](int64_t block) {
        if (!status.ok()) return;
        const Status thrown =
            CatchAsStatus([&] { status = Deposit(0, block, window, data, &complete); });
        if (!thrown.ok()) status = thrown;
      });
      // Some blocks may have pixels of this window: what is pending is not reliable any more.
      if (!status.ok()) {
        failure_ = status;
        return status;
      }
    }
    for (CompleteBlock& block : complete) MSRT_RETURN_IF_ERROR(Remember(Store(std::move(block))));
    bool sync;
    {
      const std::lock_guard lock(mutex_);
      sync = unsynced_bytes_ >= kSyncBytes;
    }
    return sync ? Sync() : OkStatus();
  }

  // Copies the window's part of a block; a block that has all pixels moves to `complete`. Requires
  // the lock.
  Status Deposit(int k, int64_t block, const ImageWindow& window, const ConstPixelBuffer& data,
                 std::vector<CompleteBlock>* complete) {
    LevelState& state = level(k);
    const StoreLevel& shape = state.shape;
    BlockState& block_state = State(k, block);
    if (block_state == BlockState::kRestored) return OkStatus();
    const int64_t block_row = block / shape.across() * shape.block_rows;
    const int64_t block_col = block % shape.across() * shape.block_cols;
    if (block_state != BlockState::kMissing)
      return InvalidArgument("pixels at row ", window.row, ", column ", window.col,
                             " are written twice");
    MSRT_ASSIGN_OR_RETURN(PendingBlock * pending, Pending(k, block));
    const int64_t row_begin = std::max(window.row, block_row);
    const int64_t row_end = std::min(window.row + window.rows, block_row + shape.block_rows);
    const int64_t col_begin = std::max(window.col, block_col);
    const int64_t cols =
        std::min(window.col + window.cols, block_col + shape.block_cols) - col_begin;
    for (int64_t row = row_begin; row < row_end; ++row) {
      uint8_t* present = &pending->present[static_cast<size_t>(
          (row - block_row) * shape.block_cols + col_begin - block_col)];
      if (std::any_of(present, present + cols, [](uint8_t p) { return p != 0; }))
        return InvalidArgument("pixels of row ", row, ", columns ", col_begin, " + ", cols,
                               " are written twice");
      std::fill(present, present + cols, uint8_t{1});
    }
    pending->missing -= (row_end - row_begin) * cols;
    CopyRows(shape, {row_begin - block_row, col_begin - block_col, row_end - row_begin, cols},
             row_begin - window.row, col_begin - window.col, data, &pending->pixels);
    if (pending->missing > 0) return OkStatus();
    block_state = BlockState::kInFlight;
    complete->push_back({k, block, std::move(pending->pixels)});
    pending_bytes_ -= PendingBytes(shape);
    state.pending.erase(block);
    return OkStatus();
  }

  // Copies rows of all channels from (row, col) of `data` to the window `to` of a block.
  void CopyRows(const StoreLevel& shape, const ImageWindow& to, int64_t row, int64_t col,
                const ConstPixelBuffer& data, std::vector<std::byte>* pixels) const {
    const int64_t bytes = ElementBytes(info_.dtype);
    const auto* const from = static_cast<const std::byte*>(data.data);
    for (int64_t channel = 0; channel < info_.channels; ++channel) {
      for (int64_t i = 0; i < to.rows; ++i) {
        const int64_t source = channel * data.channel_stride + (row + i) * data.row_stride + col;
        const int64_t target =
            (channel * shape.block_rows + to.row + i) * shape.block_cols + to.col;
        std::memcpy(pixels->data() + target * bytes, from + source * bytes,
                    static_cast<size_t>(to.cols * bytes));
      }
    }
  }

  int64_t PendingBytes(const StoreLevel& shape) const {
    return shape.block_rows * shape.block_cols * (info_.channels * ElementBytes(info_.dtype) + 1);
  }

  Result<PendingBlock*> Pending(int k, int64_t block) {
    LevelState& state = level(k);
    const auto found = state.pending.find(block);
    if (found != state.pending.end()) return &found->second;
    const StoreLevel& shape = state.shape;
    const int64_t bytes = PendingBytes(shape);
    if (pending_bytes_ + bytes > max_pending_bytes_)
      return LimitExceeded("incomplete blocks need more than ", max_pending_bytes_,
                           " bytes: write windows from top to bottom, or use smaller tiles");
    const int64_t row = block / shape.across() * shape.block_rows;
    const int64_t col = block % shape.across() * shape.block_cols;
    const int64_t pixels = shape.block_rows * shape.block_cols;
    PendingBlock pending;
    pending.pixels.resize(static_cast<size_t>(pixels * info_.channels * ElementBytes(info_.dtype)));
    pending.present.resize(static_cast<size_t>(pixels));
    pending.missing = std::min(shape.block_rows, shape.height - row) *
                      std::min(shape.block_cols, shape.width - col);
    pending_bytes_ += bytes;
    return &state.pending.emplace(block, std::move(pending)).first->second;
  }

  // Writes a block and those of the overviews that it completes.
  Status Store(CompleteBlock first) {
    std::vector<CompleteBlock> queue;
    queue.push_back(std::move(first));
    while (!queue.empty()) {
      const CompleteBlock block = std::move(queue.back());
      queue.pop_back();
      MSRT_RETURN_IF_ERROR(StoreOne(block));
      if (static_cast<size_t>(block.level) + 1 < levels_.size())
        MSRT_RETURN_IF_ERROR(DepositHalf(block.level, block.block, block.pixels, &queue));
    }
    return OkStatus();
  }

  Status StoreOne(const CompleteBlock& block) {
    MSRT_ASSIGN_OR_RETURN(std::vector<FileExtent> extents,
                          store_->WriteBlock(block.level, block.block, block.pixels));
    const std::lock_guard lock(mutex_);
    for (const FileExtent& extent : extents) unsynced_bytes_ += extent.bytes;
    unsynced_.push_back({block.level, block.block, std::move(extents)});
    State(block.level, block.block) = BlockState::kDone;
    return OkStatus();
  }

  // Halves a complete block and puts it into its block of the next level. Blocks have even sizes,
  // so no pixel of the next level depends on two of them.
  Status DepositHalf(int k, int64_t block, std::span<const std::byte> pixels,
                     std::vector<CompleteBlock>* complete) {
    const StoreLevel &shape = level(k).shape, &next = level(k + 1).shape;
    const int64_t row = block / shape.across() * shape.block_rows;
    const int64_t col = block % shape.across() * shape.block_cols;
    const int64_t rows = std::min(shape.block_rows, shape.height - row);
    const int64_t cols = std::min(shape.block_cols, shape.width - col);
    const int64_t half_rows = CeilDiv(rows, 2), half_cols = CeilDiv(cols, 2);
    const int64_t bytes = ElementBytes(info_.dtype);
    std::vector<std::byte> half(
        static_cast<size_t>(info_.channels * half_rows * half_cols * bytes));
    for (int64_t channel = 0; channel < info_.channels; ++channel) {
      Halve(rule_, pixels.data() + channel * shape.block_rows * shape.block_cols * bytes,
            shape.block_cols, rows, cols, half.data() + channel * half_rows * half_cols * bytes,
            half_cols);
    }
    const ImageWindow window{row / 2, col / 2, half_rows, half_cols, 0, info_.channels};
    const ConstPixelBuffer data{half.data(), info_.dtype, half_rows * half_cols, half_cols};
    const int64_t parent =
        window.row / next.block_rows * next.across() + window.col / next.block_cols;
    const std::lock_guard lock(mutex_);
    return Deposit(k + 1, parent, window, data, complete);
  }

  // After a kill: halves again the blocks of level k whose block of the next level was not
  // complete.
  Status RestoreParents(int k) {
    const StoreLevel &shape = level(k).shape, &next = level(k + 1).shape;
    const int64_t bytes = ElementBytes(info_.dtype);
    std::vector<CompleteBlock> complete;
    std::unique_ptr<ImageSource> written;
    std::vector<std::byte> pixels(
        static_cast<size_t>(info_.channels * shape.block_rows * shape.block_cols * bytes));
    for (int64_t block = 0; block < shape.across() * shape.down(); ++block) {
      const int64_t block_row = block / shape.across(), block_col = block % shape.across();
      const int64_t parent = block_row * shape.block_rows / 2 / next.block_rows * next.across() +
                             block_col * shape.block_cols / 2 / next.block_cols;
      if (State(k, block) < BlockState::kDone || State(k + 1, parent) >= BlockState::kDone)
        continue;
      if (written == nullptr) {
        MSRT_ASSIGN_OR_RETURN(written, store_->OpenWritten(k));
      }
      const int64_t row = block_row * shape.block_rows, col = block_col * shape.block_cols;
      MSRT_RETURN_IF_ERROR(written->Read(
          {row, col, std::min(shape.block_rows, shape.height - row),
           std::min(shape.block_cols, shape.width - col)},
          {pixels.data(), info_.dtype, shape.block_rows * shape.block_cols, shape.block_cols}));
      MSRT_RETURN_IF_ERROR(DepositHalf(k, block, pixels, &complete));
    }
    if (written == nullptr) return OkStatus();
    written.reset();
    MSRT_RETURN_IF_ERROR(store_->CloseWritten());
    // Their halves follow when the next level is restored.
    for (const CompleteBlock& block : complete) MSRT_RETURN_IF_ERROR(StoreOne(block));
    return OkStatus();
  }

  Status CheckComplete() const {
    const std::lock_guard lock(mutex_);
    if (!failure_.ok()) return failure_;
    const auto& blocks = levels_[0].blocks;
    const auto missing = std::find_if(blocks.begin(), blocks.end(),
                                      [](BlockState s) { return s < BlockState::kDone; });
    if (missing == blocks.end()) return OkStatus();
    const StoreLevel& shape = levels_[0].shape;
    const int64_t block = missing - blocks.begin();
    return InvalidArgument("pixels are missing, the first in the block at row ",
                           block / shape.across() * shape.block_rows, ", column ",
                           block % shape.across() * shape.block_cols,
                           "; write every window before the end");
  }

  Status FinishFile() {
    MSRT_RETURN_IF_ERROR(CheckComplete());
    MSRT_RETURN_IF_ERROR(Remember(store_->Complete()));
    MSRT_RETURN_IF_ERROR(Remember(store_->Sync()));
    return Remember(RenameFinished(path_));
  }

  const std::string path_;
  const ImageInfo info_;
  const int64_t max_pending_bytes_;
  const OverviewRule rule_;

  std::mutex sync_mutex_;  // taken before mutex_
  SinkJournal journal_;    // under sync_mutex_
  const std::unique_ptr<BlockStore> store_;

  mutable std::mutex mutex_;  // protects everything below
  std::vector<LevelState> levels_;
  std::vector<StoredBlock> unsynced_;
  int64_t unsynced_bytes_ = 0, pending_bytes_ = 0;
  Status failure_;
};

}  // namespace

Result<std::unique_ptr<ImageSink>> MakeBlockSink(const std::string& path, const ImageInfo& info,
                                                 const CreateOptions& options,
                                                 const OpenStore& open_store) {
  const bool has_part = access(PartPath(path).c_str(), F_OK) == 0;
  std::vector<StoredBlock> blocks;
  MSRT_ASSIGN_OR_RETURN(SinkJournal journal,
                        SinkJournal::Open(JournalPath(path), JobHash(info, options),
                                          options.resume && has_part, &blocks));
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<BlockStore> store, open_store(!blocks.empty()));
  auto sink =
      std::make_unique<BlockSink>(path, info, options, std::move(journal), std::move(store));
  if (!blocks.empty()) {
    Status status = sink->Restore(blocks);
    MSRT_RETURN_IF_ERROR(std::move(status).Within(PartPath(path)));
  }
  return std::unique_ptr<ImageSink>(std::move(sink));
}

}  // namespace msrt

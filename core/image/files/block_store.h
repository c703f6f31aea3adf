// The file format below an image sink: takes complete blocks and returns where they are in the
// file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/checked_math.h"
#include "core/image/files/image_source.h"

namespace msrt {

struct FileExtent {
  int64_t offset = 0, bytes = 0;
};

// A block of one level and its extents: one, or one per channel.
struct StoredBlock {
  int level = 0;
  int64_t block = 0;
  std::vector<FileExtent> extents = {};
};

// One resolution of the result, in blocks that are numbered row by row.
struct StoreLevel {
  int64_t height = 0, width = 0;
  int64_t block_rows = 0, block_cols = 0;
  int64_t across() const { return CeilDiv(width, block_cols); }
  int64_t down() const { return CeilDiv(height, block_rows); }
};

class BlockStore {
 public:
  virtual ~BlockStore() = default;
  virtual std::span<const StoreLevel> levels() const = 0;
  // Writes a block: channels x block_rows x block_cols elements, zero beyond the border.
  // Thread-safe.
  virtual Result<std::vector<FileExtent>> WriteBlock(int level, int64_t block,
                                                     std::span<const std::byte> pixels) = 0;
  // Takes over the blocks that an interrupted job wrote. Called before any other function. The
  // extents come from a file and are not trusted.
  virtual Status Restore(std::span<const StoredBlock> blocks) = 0;
  // Opens what has been written so far at a level. Until CloseWritten no block is written. Only
  // stores of several levels need it.
  virtual Result<std::unique_ptr<ImageSource>> OpenWritten(int level) = 0;
  virtual Status CloseWritten() = 0;
  // Makes the blocks durable.
  virtual Status Sync() = 0;
  // Writes everything that is not a block.
  virtual Status Complete() = 0;
};

}  // namespace msrt

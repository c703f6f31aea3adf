// The journal of an unfinished image: which blocks are in the file, and where. Each entry has a
// checksum, so an entry that a kill cut off ends the journal.
#pragma once

#include <string>
#include <vector>

#include "core/image/files/block_store.h"
#include "core/image/files/image_file.h"

namespace msrt {

// Used by one thread at a time.
class SinkJournal {
 public:
  // Opens and locks the journal. With `resume`, reads the blocks of an earlier run of the same job,
  // which `*blocks` receives; an error if it is of another job. Otherwise it begins empty.
  static Result<SinkJournal> Open(const std::string& path, uint64_t job, bool resume,
                                  std::vector<StoredBlock>* blocks);

  // Appends the blocks and makes them durable. The data must be durable before.
  Status Append(std::span<const StoredBlock> blocks);

 private:
  explicit SinkJournal(ImageFile file) : file_(std::move(file)) {}

  ImageFile file_;
  int64_t end_ = 0;
};

// A hash (FNV-1a, 64 bits) for checksums and for the identity of jobs; not against forgery.
uint64_t HashBytes(std::span<const std::byte> bytes, uint64_t seed = 0xcbf29ce484222325u);

}  // namespace msrt

// Files as the runtime sees them: read, map, write-then-rename. An interface, so that tests can
// make the n-th call fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/allocator.h"
#include "core/base/status.h"

namespace msrt {

// Bytes that stay valid and unchanged while somebody holds the owner. Copying shares.
struct Bytes {
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner;
};

// Thread-safe.
class Io {
 public:
  virtual ~Io() = default;
  // Maps the file read-only. Whoever truncates it while it is mapped makes the process fault: use
  // ReadFile where that may happen.
  virtual Result<Bytes> MapFile(const std::string& path) = 0;
  // What was read of a mapping of this Io and is not needed for a while: its memory is free for
  // others. The bytes stay readable.
  virtual void Forget(std::span<const std::byte> mapped) { (void)mapped; }
  // Copies the file into memory from `allocator`, which must outlive the bytes.
  virtual Result<Bytes> ReadFile(const std::string& path, Allocator* allocator) = 0;
  // Writes beside `path`, syncs, renames: afterwards there is the whole new file or the untouched
  // old one.
  virtual Status WriteFile(const std::string& path,
                           std::span<const std::span<const std::byte>> pieces) = 0;
};

Io* DefaultIo();

}  // namespace msrt

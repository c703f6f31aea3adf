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

// Bytes that stay valid and unchanged as long as a copy of `owner` exists. Copying shares them.
struct Bytes {
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner;
};

// Thread-safe.
class Io {
 public:
  virtual ~Io() = default;
  // Maps the file read-only. If another process truncates it while it is mapped, access faults: use
  // ReadFile where that may happen.
  virtual Result<Bytes> MapFile(const std::string& path) = 0;
  // Releases the physical memory of a part of a mapping that is not needed for a while. The bytes
  // stay readable: they are read from the file again.
  virtual void Forget(std::span<const std::byte> mapped) { (void)mapped; }
  // Copies the file into memory from `allocator`, which must outlive the bytes.
  virtual Result<Bytes> ReadFile(const std::string& path, Allocator* allocator) = 0;
  // Writes a temporary file beside `path`, syncs and renames it: afterwards `path` is either the
  // whole new file or the untouched old one.
  virtual Status WriteFile(const std::string& path,
                           std::span<const std::span<const std::byte>> pieces) = 0;
};

Io* DefaultIo();

}  // namespace msrt

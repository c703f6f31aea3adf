// Checks the files that a tool will write, before the work starts: an output never replaces a file
// that the tool reads, nor an existing file of another kind, and its folder is writable.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/base/io.h"

namespace msrt {

// The files that a tool reads. A file is identified by its device and inode, so that links, hard
// links and relative paths lead to the same entry.
class FilesRead {
 public:
  // A file that does not exist is not added: reading it fails with its own error.
  void Add(const std::string& path);
  // Returns an error if `path` names one of them. `what` is for the message: "output", "--json".
  Status Refuse(std::string_view what, const std::string& path) const;

 private:
  struct Entry {
    std::string path;
    dev_t device;
    ino_t inode;
  };
  std::vector<Entry> entries_;
};

// Reads as `io` does, adds every file to `files`, and refuses to write to one of them. Both outlive
// it.
class GuardedIo final : public Io {
 public:
  GuardedIo(Io* io, FilesRead* files) : io_(io), writer_(io), files_(files) {}
  // From now on files are written by `io`, which outlives the writing.
  void WriteThrough(Io* io) { writer_ = io; }
  Result<Bytes> MapFile(const std::string& path) override;
  void Forget(std::span<const std::byte> mapped) override { io_->Forget(mapped); }
  Result<Bytes> ReadFile(const std::string& path, Allocator* allocator) override;
  Status WriteFile(const std::string& path,
                   std::span<const std::span<const std::byte>> pieces) override;

 private:
  Io* const io_;
  Io* writer_;
  FilesRead* const files_;
};

// A kind of file that a tool writes, recognised by its first bytes.
struct FileKind {
  std::string_view name;  // "a .msrt file"
  bool (*matches)(std::span<const std::byte> first_bytes);
};
extern const FileKind kMsrtFile, kJsonFile;

// Returns an error if a tool may not write to `path`. Existing files must be empty or of the kind,
// and not in `read`. Pipes, devices and "-" (standard output) are always allowed.
Status CheckOutputFile(std::string_view what, const std::string& path, const FileKind& kind,
                       const FilesRead& read);

// Returns whether two paths name the same file, which need not exist yet.
bool SamePath(const std::string& a, const std::string& b);

}  // namespace msrt

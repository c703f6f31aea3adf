// A file that images are read from and written to, at offsets. Errors name the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/status.h"

namespace msrt {

// Reading and writing at offsets is thread-safe.
class ImageFile {
 public:
  // Refuses everything but regular files, without waiting for the writer of a pipe.
  static Result<ImageFile> OpenForReading(const std::string& path);
  // Opens the file for reading and writing, creates it if it is not there, and locks it against
  // other processes.
  static Result<ImageFile> OpenForWriting(const std::string& path);

  ImageFile() = default;
  ImageFile(ImageFile&& other) noexcept;
  ImageFile& operator=(ImageFile&& other) noexcept;
  ~ImageFile();

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  Result<int64_t> Bytes() const;
  Status Read(int64_t offset, std::span<std::byte> out) const;  // all of it, or an error
  Status Write(int64_t offset, std::span<const std::byte> data) const;
  Status Truncate(int64_t bytes) const;
  Status Sync() const;

 private:
  ImageFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  Status Error(std::string_view doing) const;

  int fd_ = -1;
  std::string path_;
};

// Makes the last rename in the folder of `path` survive a power failure, where the system can.
void SyncFolder(const std::string& path);

}  // namespace msrt

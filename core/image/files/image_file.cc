#include "core/image/files/image_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace msrt {
namespace {

constexpr size_t kMaxTransfer = size_t{1} << 30;  // the system transfers less than 2 GiB at once

Status FileProblem(const std::string& path, std::string_view doing, int error) {
  return MakeStatus(error == ENOENT ? Code::kNotFound : Code::kIo, "file '", path, "': ", doing,
                    ": ", std::strerror(error));
}

}  // namespace

Status ImageFile::Error(std::string_view doing) const { return FileProblem(path_, doing, errno); }

Result<ImageFile> ImageFile::OpenForReading(const std::string& path) {
  ImageFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), path);
  if (file.fd_ < 0) return file.Error("open");
  struct stat info;
  if (fstat(file.fd_, &info) != 0) return file.Error("stat");
  if (!S_ISREG(info.st_mode)) return IoError("file '", path, "': not a regular file");
  return file;
}

Result<ImageFile> ImageFile::OpenForWriting(const std::string& path) {
  ImageFile file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666), path);
  if (file.fd_ < 0) return file.Error("create");
  struct stat info;
  if (fstat(file.fd_, &info) != 0) return file.Error("stat");
  if (!S_ISREG(info.st_mode)) return IoError("file '", path, "': not a regular file");
  if (flock(file.fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return IoError("file '", path, "': another process is writing it; wait for it or stop it");
  return file;
}

ImageFile::ImageFile(ImageFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

ImageFile& ImageFile::operator=(ImageFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

ImageFile::~ImageFile() {
  if (fd_ >= 0) close(fd_);
}

Result<int64_t> ImageFile::Bytes() const {
  struct stat info;
  if (fstat(fd_, &info) != 0) return Error("stat");
  return static_cast<int64_t>(info.st_size);
}

Status ImageFile::Read(int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = pread(fd_, out.data(), std::min(out.size(), kMaxTransfer), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error("read");
    if (n == 0) return IoError("file '", path_, "': ends before its contents do");
    out = out.subspan(static_cast<size_t>(n));
    offset += n;
  }
  return OkStatus();
}

Status ImageFile::Write(int64_t offset, std::span<const std::byte> data) const {
  while (!data.empty()) {
    const ssize_t n = pwrite(fd_, data.data(), std::min(data.size(), kMaxTransfer), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error("write");
    data = data.subspan(static_cast<size_t>(n));
    offset += n;
  }
  return OkStatus();
}

Status ImageFile::Truncate(int64_t bytes) const {
  return ftruncate(fd_, bytes) == 0 ? OkStatus() : Error("truncate");
}

Status ImageFile::Sync() const { return fdatasync(fd_) == 0 ? OkStatus() : Error("sync"); }

void SyncFolder(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)fsync(fd);
  close(fd);
}

}  // namespace msrt

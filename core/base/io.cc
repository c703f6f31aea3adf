#include "core/base/io.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/watched_io.h"

namespace msrt {
namespace {

// Opening a pipe must not wait for its writer: it is refused, as is everything but regular files.
constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  int Close() { return close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

Status FileError(const std::string& path, std::string_view doing) {
  const int error = errno;
  const Code code = error == ENOENT ? Code::kNotFound : Code::kIo;
  return MakeStatus(code, "file '", path, "': ", doing, ": ", std::strerror(error))
      .With("path", path);
}

Result<uint64_t> RegularFileBytes(const File& file, const std::string& path) {
  struct stat info;
  if (fstat(file.fd(), &info) != 0) return FileError(path, "stat");
  if (!S_ISREG(info.st_mode)) return IoError("file '", path, "': not a regular file");
  return static_cast<uint64_t>(info.st_size);
}

using Watch = std::function<void(uint64_t, uint64_t)>;

class PosixIo final : public Io {
 public:
  explicit PosixIo(Watch watch = {}) : watch_(std::move(watch)) {}

  Result<Bytes> MapFile(const std::string& path) override {
    File file(open(path.c_str(), kReadFlags));
    if (!file.ok()) return FileError(path, "open");
    MSRT_ASSIGN_OR_RETURN(const uint64_t bytes, RegularFileBytes(file, path));
    if (bytes == 0) return Bytes{};
    void* p = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.fd(), 0);
    if (p == MAP_FAILED && errno == ENOMEM)
      return OutOfMemory(bytes, StrCat("the map of file '", path, "'"));
    if (p == MAP_FAILED) return FileError(path, "mmap");
    std::shared_ptr<const void> owner(
        p, [bytes](const void* q) { munmap(const_cast<void*>(q), bytes); });
    return Bytes{{static_cast<const std::byte*>(p), bytes}, std::move(owner)};
  }

  void Forget(std::span<const std::byte> mapped) override {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = (reinterpret_cast<uintptr_t>(mapped.data()) + page - 1) / page * page;
    const auto end = reinterpret_cast<uintptr_t>(mapped.data() + mapped.size()) / page * page;
    if (begin < end)
      (void)madvise(reinterpret_cast<void*>(begin), end - begin,
                    MADV_DONTNEED);  // pages come back from the file
  }

  Result<Bytes> ReadFile(const std::string& path, Allocator* allocator) override {
    File file(open(path.c_str(), kReadFlags));
    if (!file.ok()) return FileError(path, "open");
    MSRT_ASSIGN_OR_RETURN(const uint64_t bytes, RegularFileBytes(file, path));
    MSRT_ASSIGN_OR_RETURN(Block block, Block::Make(allocator, bytes, path));
    uint64_t done = 0;
    while (done < bytes) {
      const ssize_t n =
          read(file.fd(), block.data() + done, std::min<uint64_t>(bytes - done, uint64_t{1} << 30));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return FileError(path, "read");
      if (n == 0) return IoError("file '", path, "': became shorter while it was read");
      done += static_cast<uint64_t>(n);
    }
    auto owner = std::make_shared<Block>(std::move(block));
    const std::span<const std::byte> data{owner->data(), owner->bytes()};
    return Bytes{data, std::move(owner)};
  }

  Status WriteFile(const std::string& path,
                   std::span<const std::span<const std::byte>> pieces) override {
    // A pipe or a device takes the bytes itself; a rename would replace it by a file.
    struct stat info;
    if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return WriteAndSync(path, pieces);
    const std::string temporary = StrCat(path, ".tmp-", getpid());
    Status status = WriteAndSync(temporary, pieces);
    if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0)
      status = FileError(path, "rename");
    if (!status.ok()) {
      unlink(temporary.c_str());
      return status;
    }
    return SyncFolderOf(path);
  }

 private:
  // Bytes per write when progress is reported: small enough that it is seen to move.
  static constexpr size_t kWatchedBytes = size_t{16} << 20;

  Status WriteAll(const File& file, std::span<const std::byte> bytes, const std::string& path,
                  uint64_t total, uint64_t* written) const {
    while (!bytes.empty()) {
      const ssize_t n =
          write(file.fd(), bytes.data(),
                std::min<size_t>(bytes.size(), watch_ ? kWatchedBytes : size_t{1} << 30));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return FileError(path, "write");
      bytes = bytes.subspan(static_cast<size_t>(n));
      *written += static_cast<uint64_t>(n);
      if (watch_) watch_(*written, total);
    }
    return OkStatus();
  }

  Status WriteAndSync(const std::string& path,
                      std::span<const std::span<const std::byte>> pieces) const {
    File file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file.ok()) return FileError(path, "create");
    uint64_t total = 0, written = 0;
    for (const auto& piece : pieces) total += piece.size();
    for (const auto& piece : pieces)
      MSRT_RETURN_IF_ERROR(WriteAll(file, piece, path, total, &written));
    if (fsync(file.fd()) != 0 && errno != EINVAL)
      return FileError(path, "fsync");  // EINVAL: a pipe or a device
    if (file.Close() != 0) return FileError(path, "close");
    return OkStatus();
  }

  // Without this a power failure may lose the rename (OSDI'14, ALICE). Folders that cannot be
  // opened are skipped.
  static Status SyncFolderOf(const std::string& path) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    File file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (file.ok() && fsync(file.fd()) != 0 && errno != EINVAL) return FileError(folder, "fsync");
    return OkStatus();
  }

  const Watch watch_;
};

}  // namespace

std::unique_ptr<Io> MakeWatchedIo(Watch watch) {
  return std::make_unique<PosixIo>(std::move(watch));
}

Io* DefaultIo() {
  static PosixIo io;
  return &io;
}

}  // namespace msrt

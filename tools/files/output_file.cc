#include "tools/files/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace msrt {
namespace {

namespace fs = std::filesystem;

bool StartsWithMagic(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), "MSRT", 4) == 0;
}

bool StartsLikeJson(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

Status CheckFolderOf(std::string_view what, const std::string& path) {
  const fs::path folder =
      fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  if (access(folder.c_str(), W_OK | X_OK) == 0) {
    if (fs::is_directory(folder)) return OkStatus();
    errno = ENOTDIR;
  }
  return IoError(what, " '", path, "' cannot be written: folder '", folder.string(),
                 "': ", std::strerror(errno));
}

Status CheckKind(std::string_view what, const std::string& path, const FileKind& kind) {
  std::array<char, 64> first{};
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return IoError(what, " '", path,
                   "' exists and cannot be read, so it is not replaced; remove it first");
  file.read(first.data(), first.size());
  const auto bytes = std::as_bytes(std::span(first)).first(static_cast<size_t>(file.gcount()));
  if (bytes.empty() || kind.matches(bytes)) return OkStatus();
  return InvalidArgument(what, " '", path, "' exists and is not ", kind.name,
                         ", so it is not replaced; remove it first or use another name");
}

}  // namespace

const FileKind kMsrtFile = {"a .msrt file", StartsWithMagic},
               kJsonFile = {"a JSON file", StartsLikeJson};

void FilesRead::Add(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0) entries_.push_back({path, info.st_dev, info.st_ino});
}

Status FilesRead::Refuse(std::string_view what, const std::string& path) const {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return OkStatus();
  for (const Entry& e : entries_) {
    if (e.device != info.st_dev || e.inode != info.st_ino) continue;
    const std::string same = e.path == path ? "" : StrCat(" under the name '", e.path, "'");
    return InvalidArgument(what, " '", path, "' is also read", same,
                           " and would be lost; use another name");
  }
  return OkStatus();
}

Result<Bytes> GuardedIo::MapFile(const std::string& path) {
  files_->Add(path);
  return io_->MapFile(path);
}

Result<Bytes> GuardedIo::ReadFile(const std::string& path, Allocator* allocator) {
  files_->Add(path);
  return io_->ReadFile(path, allocator);
}

Status GuardedIo::WriteFile(const std::string& path,
                            std::span<const std::span<const std::byte>> pieces) {
  MSRT_RETURN_IF_ERROR(files_->Refuse("output", path));
  return writer_->WriteFile(path, pieces);
}

Status CheckOutputFile(std::string_view what, const std::string& path, const FileKind& kind,
                       const FilesRead& read) {
  if (path == "-") return OkStatus();
  if (path.empty()) return InvalidArgument(what, ": the name of the file is empty");
  MSRT_RETURN_IF_ERROR(read.Refuse(what, path));
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) return IoError(what, " '", path, "': ", std::strerror(errno));
    return CheckFolderOf(what, path);
  }
  if (S_ISDIR(info.st_mode)) return InvalidArgument(what, " '", path, "' is a folder; name a file");
  if (access(path.c_str(), W_OK) != 0)
    return IoError(what, " '", path, "' cannot be written: ", std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return OkStatus();
  MSRT_RETURN_IF_ERROR(CheckFolderOf(what, path));
  return CheckKind(what, path, kind);
}

bool SamePath(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const auto resolved = [](const std::string& path) {
    std::error_code ignored;
    return fs::weakly_canonical(fs::absolute(path), ignored);
  };
  return resolved(a) == resolved(b);
}

}  // namespace msrt

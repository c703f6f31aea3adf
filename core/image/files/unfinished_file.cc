#include "core/image/files/unfinished_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/image/files/image_file.h"
#include "core/image/files/sink_journal.h"

namespace msrt {

std::string PartPath(const std::string& path) { return path + ".part"; }
std::string JournalPath(const std::string& path) { return path + ".journal"; }

void RemoveUnfinished(const std::string& path) {
  (void)unlink(PartPath(path).c_str());
  (void)unlink(JournalPath(path).c_str());
}

uint64_t JobHash(const ImageInfo& info, const CreateOptions& options) {
  std::string text =
      StrCat(options.job, " ", info.channels, " ", info.height, " ", info.width, " ", info.dtype,
             " ", static_cast<int>(options.compression), " ", options.tile, " ", options.planar,
             " ", static_cast<int>(options.big_tiff), " ", options.overviews, " ",
             info.no_data.value_or(0), " ", info.no_data.has_value());
  for (const PaletteEntry& entry : info.palette)
    StrAppend(&text, " ", entry.red, ",", entry.green, ",", entry.blue);
  return HashBytes(std::as_bytes(std::span(text.data(), text.size())));
}

Status RenameFinished(const std::string& path) {
  if (std::rename(PartPath(path).c_str(), path.c_str()) != 0)
    return IoError("rename from '", PartPath(path), "': ", std::strerror(errno));
  (void)unlink(JournalPath(path).c_str());
  SyncFolder(path);
  return OkStatus();
}

}  // namespace msrt

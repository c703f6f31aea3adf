// The files of a result that is not complete, OUT.part and OUT.journal, and how OUT.part becomes
// OUT.
#pragma once

#include <string>

#include "core/image/files/image_sink.h"

namespace msrt {

std::string PartPath(const std::string& path);     // OUT.part
std::string JournalPath(const std::string& path);  // OUT.journal

// Identifies the job and everything that determines the bytes of a file: what its journal is for.
uint64_t JobHash(const ImageInfo& info, const CreateOptions& options);

// Gives the complete file its name and removes the journal.
Status RenameFinished(const std::string& path);

}  // namespace msrt

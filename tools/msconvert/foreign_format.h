// Files of formats that msconvert does not read, named for what they are, with the way to a format
// that it does read.
#pragma once

#include <span>
#include <string>

namespace msrt {

// "is a TensorFlow Lite model; ..." by the first and last bytes; empty: nothing that is known.
std::string ForeignFormatOf(std::span<const std::byte> bytes);
// The same by the extension of the file's name, for files that turned out not to be what they were
// taken for.
std::string ForeignFormatOf(const std::string& path);
// The same for a folder that was given instead of a file.
std::string ForeignFolder(const std::string& path);

}  // namespace msrt

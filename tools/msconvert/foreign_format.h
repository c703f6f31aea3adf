// Recognises files of formats that msconvert does not read, and says how to convert them to one
// that it does.
#pragma once

#include <span>
#include <string>

namespace msrt {

// Returns "is a TensorFlow Lite model; ..." by the first and last bytes; empty if the format is not
// known.
std::string ForeignFormatOf(std::span<const std::byte> bytes);
// The same by the extension of the file's name, for files that could not be parsed.
std::string ForeignFormatOf(const std::string& path);
// The same for a folder that was given instead of a file.
std::string ForeignFolder(const std::string& path);

}  // namespace msrt

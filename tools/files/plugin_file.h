// The --plugin option of the tools.
#pragma once

#include <string>

namespace msrt {

struct PluginFile {
  std::string path, options;
};

// Parses "PATH:OPTIONS". Options may contain colons; a path cannot. A bare name is the file in the
// current folder if there is one; otherwise the system looks for it among its libraries.
PluginFile ParsePluginFile(const std::string& text);

}  // namespace msrt

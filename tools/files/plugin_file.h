// The --plugin option of the tools.
#pragma once

#include <string>

namespace msrt {

struct PluginFile {
  std::string path, options;
};

// "PATH:OPTIONS". Options may have colons; a path cannot. A bare name is the file in the current
// folder if there is one; the system looks for it among its libraries otherwise.
PluginFile ParsePluginFile(const std::string& text);

}  // namespace msrt

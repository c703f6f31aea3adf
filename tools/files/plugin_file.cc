#include "tools/files/plugin_file.h"

#include <filesystem>

namespace msrt {

PluginFile ParsePluginFile(const std::string& text) {
  const size_t colon = text.find(':');
  PluginFile plugin{text.substr(0, colon),
                    colon == std::string::npos ? "" : text.substr(colon + 1)};
  const bool bare = plugin.path.find('/') == std::string::npos;
  if (bare && std::filesystem::is_regular_file(plugin.path)) plugin.path = "./" + plugin.path;
  return plugin;
}

}  // namespace msrt

// The options of msrun launch.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/msrun/launch.h"

namespace msrt {

CLI::App* AddLaunch(CLI::App* app, LaunchArguments* arguments);

// Removes the words after the options of launch, and returns them: "-- COMMAND ..." or "COMMAND
// ...". `texts` begins with "launch".
std::vector<std::string> CutLaunchCommand(std::vector<std::string>* texts);

// Checks the options, and takes the words of CutLaunchCommand. A verb of msrun without -- means
// this program.
Status TakeLaunchCommand(const CLI::App& launch, std::vector<std::string> words,
                         LaunchArguments* arguments);

}  // namespace msrt

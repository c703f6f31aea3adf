// A module as text for people. (Print, in graph.h, has the graphs one after the other, as they are in the file.)
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace msrt {

// A graph that is called at one place stands there, indented, with what it is handed behind its inputs.
std::string Outline(const Module& module);

}  // namespace msrt

// A module as text for people. (Print, in graph.h, has the graphs one after the other, as they are
// in the file.)
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace msrt {

// A graph that is called at one place stands there, indented, with what it is handed behind its
// inputs.
std::string Outline(const Module& module);

// "f32[batch, 3, 224, 224]": with the names of the module's symbols.
std::string TypeText(const Type& type, const Module& module);

}  // namespace msrt

// A module as nested text for people. (Print, in graph.h, lists the graphs one after the other, as
// they are in the file.)
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace msrt {

// Returns the module's text. A graph that is called only once is printed at the call, indented, and
// each of its inputs shows the value that the caller passes.
std::string Outline(const Module& module);

// "f32[batch, 3, 224, 224]": with the names of the module's symbols.
std::string TypeText(const Type& type, const Module& module);

}  // namespace msrt

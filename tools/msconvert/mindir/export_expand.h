// Before a module is exported: layers that MindSpore lacks on the CPU become ops and loops that it has.
#pragma once

#include "core/graph/graph.h"

namespace msrt::mindir_export {

// GRU and RNN become a Scan over their steps for each direction, where they are of the usual kind; others stay as they are, and are refused
// later. Requires a validated module and leaves one.
Status ExpandRecurrent(Module* module);

}  // namespace msrt::mindir_export

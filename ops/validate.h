// Semantic validation of a module, wherever it comes from (a file, the C API, an importer), before
// anything works on it. Afterwards every value has the type that its node produces, and passes,
// placement and kernels check nothing but data.
#pragma once

#include "core/graph/graph.h"

namespace msrt {

class OpSet;  // ops/registry.h

// Looks up each node's op (in the library's table, then in `ops`, which may be null and must
// outlive the module), checks its attributes, infers the types of its outputs and merges them with
// the declared ones; checks the order of nodes, graph references, state slots and constants. Ops
// that this build does not know are accepted if the types of their outputs are declared; their
// Node::def stays null. A newer version of an op that it knows is refused (kUnsupported). Linear in
// the size of the module. Errors name the graph, the node, its op, the shapes and the cause. After
// an error the module is as valid as before, but types may have been filled in.
Status Validate(Module* module, const OpSet* ops = nullptr);

}  // namespace msrt

// Reads the notes that msconvert writes into MindIR files: which op a group of primitives was (see
// `origin` in schema/mindir.proto). The importer restores the op and leaves out the primitives that
// it stands for. An invalid note is ignored: the primitives have the same meaning.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/attribute.h"
#include "core/graph/graph.h"

namespace msrt::mindir {
class NodeProto;
}  // namespace msrt::mindir

namespace msrt::mindir_import {

struct Origin {
  std::string name, domain, op;
  std::vector<std::string> inputs;   // empty: omitted
  std::vector<std::string> outputs;  // the nodes of the file that make them; empty: none
  AttrList attrs;

  size_t OutputOf(const std::string& node) const;  // requires that it is one of them
};

// Returns null if the node has no note, or none that this build understands.
std::shared_ptr<const Origin> OriginOf(const mindir::NodeProto& node);

}  // namespace msrt::mindir_import

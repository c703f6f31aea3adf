// What msconvert notes in the MindIR files that it writes: which op of ours a group of primitives
// was (see `origin` in schema/mindir.proto). Read back, the op is made again, and the primitives
// that only it stands for are left out. A note that makes no sense is ignored: the primitives say
// the same.
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
  std::vector<std::string> inputs;   // empty: left out
  std::vector<std::string> outputs;  // the nodes of the file that give them; empty: nobody does
  AttrList attrs;

  size_t OutputOf(const std::string& node) const;  // requires that it is one of them
};

// Null: the node has no note, or none that this build can follow.
std::shared_ptr<const Origin> OriginOf(const mindir::NodeProto& node);

}  // namespace msrt::mindir_import

// A user's wishes about where nodes run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace msrt {

// Nodes of that name or op go to the delegate, or never go there. Nodes are meant as they are after
// all passes.
struct Pin {
  std::string node;  // '*' stands for any characters; empty: every node
  std::string op;    // "Conv", "msrt.FusedConv"; empty: every op
  std::string delegate;
  bool exclude = false;
};

// "node:conv*=reference", "op:Conv!=onednn", "*=onednn".
Result<Pin> ParsePin(std::string_view text);
// Several, separated by ';' or ','. Spaces around each do not count.
Result<std::vector<Pin>> ParsePins(std::string_view list);
std::string Describe(const Pin& pin);

// Whether the pin speaks of this node, for or against whatever delegate.
bool AppliesTo(const Pin& pin, const Node& node);

// The first pin that keeps this node away from that delegate; null if none does.
const Pin* FindExcludingPin(std::span<const Pin> pins, const Node& node, std::string_view delegate);

}  // namespace msrt

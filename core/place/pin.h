// A user's wishes about where nodes run.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/graph/graph.h"

namespace msrt {

// Nodes of that name and op go to the delegate, or never go there.
struct Pin {
  std::string node;  // '*' stands for any characters; empty: every node
  std::string op;    // "Conv", "msrt.FusedConv"; empty: every op
  std::string delegate;
  bool exclude = false;
};

// "node:conv*=reference", "op:Conv!=onednn", "*=onednn".
Result<Pin> ParsePin(std::string_view text);
std::string Describe(const Pin& pin);

// The first pin that keeps this node away from that delegate; null if none does.
const Pin* PinAgainst(std::span<const Pin> pins, const Node& node, std::string_view delegate);

}  // namespace msrt

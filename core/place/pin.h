// Pins: a user's constraints on where nodes run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace msrt {

// Nodes of that name or op run on the delegate or device, or never run on it. Pins apply to the
// nodes after all passes.
struct Pin {
  std::string node;      // '*' matches any characters; empty: every node
  std::string op;        // "Conv", "msrt.FusedConv"; empty: every op
  std::string delegate;  // or a device
  bool exclude = false;
};

// "node:conv*=reference", "op:Conv!=onednn", "*=onednn".
Result<Pin> ParsePin(std::string_view text);
// Several, separated by ';' or ','. Spaces around each are ignored.
Result<std::vector<Pin>> ParsePins(std::string_view list);
std::string Describe(const Pin& pin);

// Whether the pin applies to this node, for or against any delegate.
bool AppliesTo(const Pin& pin, const Node& node);

// Returns the first pin that excludes this node from that delegate on that device (empty: the
// host); null if none does.
const Pin* FindExcludingPin(std::span<const Pin> pins, const Node& node, std::string_view delegate,
                            std::string_view device = {});

}  // namespace msrt

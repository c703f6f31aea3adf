#include "core/place/pin.h"

#include <algorithm>

namespace msrt {
namespace {

// '*' matches any characters. Backtracks only to the last '*'.
bool Matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

Result<Pin> ParsePin(std::string_view text) {
  const auto wrong = [&] {
    return InvalidArgument("pin '", text,
                           "' must look like node:NAME=DELEGATE or op:OP!=DELEGATE ('*' in NAME "
                           "stands for any characters; DELEGATE may also be a device)");
  };
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) return wrong();
  Pin pin;
  pin.delegate = text.substr(equals + 1);
  std::string_view what = text.substr(0, equals);
  if (what.back() == '!') {
    pin.exclude = true;
    what.remove_suffix(1);
  }
  if (what.starts_with("op:")) pin.op = what.substr(3);
  else if (what.starts_with("node:")) pin.node = what.substr(5);
  else if (what != "*") return wrong();
  if (what != "*" && pin.op.empty() && pin.node.empty()) return wrong();
  return pin;
}

Result<std::vector<Pin>> ParsePins(std::string_view list) {
  std::vector<Pin> pins;
  while (!list.empty()) {
    const size_t end = std::min(list.find_first_of(";,"), list.size());
    std::string_view text = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    if (text.empty()) continue;
    MSRT_ASSIGN_OR_RETURN(Pin pin, ParsePin(text));
    pins.push_back(std::move(pin));
  }
  return pins;
}

std::string Describe(const Pin& pin) {
  const std::string what = !pin.node.empty() ? "node:" + pin.node
                           : !pin.op.empty() ? "op:" + pin.op
                                             : "*";
  return StrCat(what, pin.exclude ? "!=" : "=", pin.delegate);
}

bool AppliesTo(const Pin& pin, const Node& node) {
  return (pin.node.empty() || Matches(pin.node, node.name)) &&
         (pin.op.empty() || pin.op == OpName(node));
}

const Pin* FindExcludingPin(std::span<const Pin> pins, const Node& node, std::string_view delegate,
                            std::string_view device) {
  for (const Pin& pin : pins) {
    const bool named = pin.delegate == delegate || pin.delegate == device;
    if (named == pin.exclude && AppliesTo(pin, node)) return &pin;
  }
  return nullptr;
}

}  // namespace msrt

// Rules for RNN, GRU and LSTM, whose attributes are written loosely in many files.
#include <algorithm>
#include <cctype>

#include "ops/registry.h"
#include "tools/msconvert/onnx/lift.h"

namespace msrt::onnx_import {
namespace {

bool EqualButForCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

// A function's name as the entry writes it; a name that is none of the entry's is refused there.
std::string SpelledRight(const std::string& name, std::span<const std::string_view> known) {
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](std::string_view k) { return EqualButForCase(name, k); });
  return found == known.end() ? name : std::string(*found);
}

std::span<const std::string_view> FunctionsOf(const NodeLift& n) {
  for (const AttrDef& attr : FindOp("", n.op())->attrs) {
    if (attr.name == "activations") return attr.choices;
  }
  return {};
}

Status LiftRecurrent(NodeLift& n) {
  n.attrs().Remove("output_sequence");  // before opset 7 it said whether output 0 is wanted, which
                                        // whoever reads it says too
  if (const AttrValue* given = n.attrs().Find("activations")) {
    std::vector<std::string> names;
    if (const auto* list = std::get_if<std::vector<std::string>>(given)) names = *list;
    for (std::string& name : names) name = SpelledRight(name, FunctionsOf(n));
    n.attrs().Set("activations", std::move(names));
  }
  return n.Pass();
}

constexpr LiftRule kRules[] = {
    {"", "RNN", LiftRecurrent}, {"", "GRU", LiftRecurrent}, {"", "LSTM", LiftRecurrent}};

}  // namespace

std::span<const LiftRule> RecurrentLifts() { return kRules; }

}  // namespace msrt::onnx_import

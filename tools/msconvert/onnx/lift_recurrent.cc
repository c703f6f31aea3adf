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

// Returns a function's name in the spelling of the op's entry, which refuses unknown names.
std::string CanonicalSpelling(const std::string& name, std::span<const std::string_view> known) {
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
  // Before opset 7 it said whether output 0 is used, which its users show.
  n.attrs().Remove("output_sequence");
  if (const AttrValue* given = n.attrs().Find("activations")) {
    std::vector<std::string> names;
    if (const auto* list = std::get_if<std::vector<std::string>>(given)) names = *list;
    for (std::string& name : names) name = CanonicalSpelling(name, FunctionsOf(n));
    n.attrs().Set("activations", std::move(names));
  }
  return n.Pass();
}

constexpr LiftRule kRecurrentLifts[] = {
    {"", "RNN", LiftRecurrent}, {"", "GRU", LiftRecurrent}, {"", "LSTM", LiftRecurrent}};

}  // namespace

std::span<const LiftRule> RecurrentLifts() { return kRecurrentLifts; }

}  // namespace msrt::onnx_import

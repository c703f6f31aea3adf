#include "tools/msconvert/problems.h"

#include <nlohmann/json.hpp>

#include "core/base/str_cat.h"

namespace msrt {
namespace {

// Returns the attribute that a reason names as "attribute 'name'"; empty if it names none.
std::string AttributeIn(const std::string& reason) {
  constexpr std::string_view kBefore = "attribute '";
  const size_t begin = reason.find(kBefore);
  if (begin == std::string::npos) return {};
  const size_t name = begin + kBefore.size();
  return reason.substr(name, reason.find('\'', name) - name);
}

}  // namespace

void Problems::Add(std::string_view op, int64_t opset, std::string_view node, std::string reason,
                   std::string cure) {
  for (Problem& p : list_) {
    if (p.op != op || p.reason != reason) continue;
    if (p.nodes.size() < kNamedNodes) p.nodes.emplace_back(node);
    ++p.count;
    return;
  }
  if (list_.size() == kMaxKinds) {
    ++left_out_;
    return;
  }
  if (cure.empty()) cure = cure_for_(reason);
  list_.push_back(
      {std::string(op), opset, std::move(reason), std::move(cure), {std::string(node)}, 1});
}

std::string Problems::Text() const {
  std::string out;
  for (const Problem& p : list_) {
    if (p.op.empty()) {
      StrAppend(&out, "the model: ", p.reason, "\n");
    } else {
      StrAppend(&out, p.op, p.opset != 0 ? StrCat(" (opset ", p.opset, "), ") : ", ", p.count,
                p.count == 1 ? " node: " : " nodes: ", p.reason, "\n    at ");
      for (size_t i = 0; i < p.nodes.size(); ++i)
        StrAppend(&out, i == 0 ? "'" : ", '", p.nodes[i], "'");
      if (p.count > p.nodes.size()) StrAppend(&out, " and ", p.count - p.nodes.size(), " more");
      out += "\n";
    }
    if (!p.cure.empty()) StrAppend(&out, "    ", p.cure, "\n");
  }
  if (left_out_ != 0) StrAppend(&out, "and ", left_out_, " more\n");
  return out;
}

std::string Problems::Json() const {
  nlohmann::json problems = nlohmann::json::array();
  for (const Problem& p : list_) {
    problems.push_back({{"op", p.op},
                        {"opset", p.opset},
                        {"count", p.count},
                        {"nodes", p.nodes},
                        {"attribute", AttributeIn(p.reason)},
                        {"reason", p.reason},
                        {"cure", p.cure}});
  }
  // Names come from the file and need not be UTF-8.
  return nlohmann::json{{"problems", problems}}.dump(2, ' ', false,
                                                     nlohmann::json::error_handler_t::replace);
}

}  // namespace msrt

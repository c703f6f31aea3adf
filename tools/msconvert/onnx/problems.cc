#include "tools/msconvert/onnx/problems.h"

#include <nlohmann/json.hpp>

#include "core/base/str_cat.h"

namespace msrt::onnx_import {

void Problems::Add(std::string_view op, int64_t opset, std::string_view node, std::string reason, std::string cure) {
  for (Problem& p : list_) {
    if (p.op != op || p.reason != reason) continue;
    if (p.nodes.size() < kNamedNodes) p.nodes.emplace_back(node);
    ++p.count;
    return;
  }
  list_.push_back({std::string(op), opset, std::move(reason), std::move(cure), {std::string(node)}, 1});
}

std::string Problems::Text() const {
  std::string out;
  for (const Problem& p : list_) {
    if (p.op.empty()) {
      StrAppend(&out, "the model: ", p.reason, "\n");
    } else {
      StrAppend(&out, p.op, " (opset ", p.opset, "), ", p.count, p.count == 1 ? " node: " : " nodes: ", p.reason, "\n    at ");
      for (size_t i = 0; i < p.nodes.size(); ++i) StrAppend(&out, i == 0 ? "'" : ", '", p.nodes[i], "'");
      if (p.count > p.nodes.size()) StrAppend(&out, " and ", p.count - p.nodes.size(), " more");
      out += "\n";
    }
    if (!p.cure.empty()) StrAppend(&out, "    ", p.cure, "\n");
  }
  return out;
}

std::string Problems::Json() const {
  nlohmann::json problems = nlohmann::json::array();
  for (const Problem& p : list_) {
    problems.push_back({{"op", p.op}, {"opset", p.opset}, {"count", p.count}, {"nodes", p.nodes}, {"reason", p.reason}, {"cure", p.cure}});
  }
  // Names come from the file and need not be UTF-8.
  return nlohmann::json{{"problems", problems}}.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace msrt::onnx_import

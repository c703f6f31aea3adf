// Checks the order of a graph: each value has one source and is used only after it. A template, so
// that it serves both forms of a graph, the tables of a file and core/graph/graph.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace msrt {

// A Graph as CheckSources reads it.
class GraphSources {
 public:
  explicit GraphSources(const Graph& graph) : graph_(graph) {}
  size_t value_count() const { return graph_.value_count(); }
  std::string_view value_name(uint32_t v) const { return graph_.value(ValueId(v)).name; }
  bool is_constant(uint32_t v) const { return graph_.value(ValueId(v)).constant != nullptr; }
  const std::vector<ValueId>& inputs() const { return graph_.inputs; }
  const std::vector<ValueId>& outputs() const { return graph_.outputs; }
  size_t node_count() const { return graph_.nodes.size(); }
  const std::vector<ValueId>& node_inputs(size_t n) const { return graph_.nodes[n].inputs; }
  const std::vector<ValueId>& node_outputs(size_t n) const { return graph_.nodes[n].outputs; }
  std::string DescribeNode(size_t n) const { return Describe(graph_, n); }

 private:
  const Graph& graph_;
};

// Implements CheckSources below.
template <typename Source>
class SourceCheck {
 public:
  explicit SourceCheck(const Source& graph) : graph_(graph), sources_(graph.value_count(), kNone) {}

  Status Run() {
    for (uint32_t v = 0; v < sources_.size(); ++v) {
      if (graph_.is_constant(v)) sources_[v] = kConstant;
    }
    MSRT_RETURN_IF_ERROR(DefineAll(graph_.inputs(), kInput));
    for (size_t n = 0; n < graph_.node_count(); ++n) {
      Status status = UseAll(graph_.node_inputs(n), true);
      if (status.ok()) status = DefineAll(graph_.node_outputs(n), static_cast<int32_t>(n));
      if (!status.ok()) return std::move(status).Within(graph_.DescribeNode(n));
    }
    return UseAll(graph_.outputs(), false);
  }

 private:
  static constexpr int32_t kNone = -1, kInput = -2, kConstant = -3;  // others: the index of a node

  template <typename Ids>
  Status DefineAll(const Ids& ids, int32_t source) {
    size_t position = 0;
    for (const auto id : ids) {
      const auto v = static_cast<uint32_t>(id);
      if (source == kInput || v != IndexOf(kNoValue)) {
        if (v >= sources_.size())
          return OutOfRange(source == kInput ? "input " : "output ", position, v);
        if (sources_[v] != kNone) {
          return InvalidModel(source == kInput ? "input " : "output ", position, " is ",
                              DescribeValue(v), ", which ", DescribeSource(sources_[v]),
                              " already defines; a value has one source");
        }
        sources_[v] = source;
      }
      ++position;
    }
    return OkStatus();
  }

  template <typename Ids>
  Status UseAll(const Ids& ids, bool of_node) {
    size_t position = 0;
    for (const auto id : ids) {
      const auto v = static_cast<uint32_t>(id);
      if (!of_node || v != IndexOf(kNoValue)) {
        if (v >= sources_.size()) return OutOfRange(of_node ? "input " : "output ", position, v);
        if (sources_[v] == kNone) {
          return InvalidModel(of_node ? "input " : "output ", position, " is ", DescribeValue(v),
                              ", which no ", of_node ? "earlier " : "",
                              "node, input or constant defines");
        }
      }
      ++position;
    }
    return OkStatus();
  }

  Status OutOfRange(std::string_view what, size_t position, uint32_t v) const {
    return InvalidModel(what, position, " is value ", v, ", the graph has ", sources_.size(),
                        " values");
  }
  std::string DescribeValue(uint32_t v) const {
    return StrCat("value ", v, " '", graph_.value_name(v), "'");
  }
  std::string DescribeSource(int32_t source) const {
    if (source == kInput) return "an input of the graph";
    return source == kConstant ? "a constant" : graph_.DescribeNode(static_cast<size_t>(source));
  }

  const Source& graph_;
  std::vector<int32_t> sources_;
};

// Checks that all value indices are in range, each value has one source, and sources come before
// uses. Linear time. Errors name the node and the value.
template <typename Source>
Status CheckSources(const Source& graph) {
  return SourceCheck<Source>(graph).Run();
}

}  // namespace msrt

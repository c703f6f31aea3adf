#include "tests/examples/accelerator/chain.h"

#include <algorithm>
#include <map>

namespace accelerator {
namespace {

using Place = Wiring::Place;

// The nodes that read each value, ascending.
std::map<int64_t, std::vector<uint32_t>> FindReaders(const msrt_graph_view& graph) {
  std::map<int64_t, std::vector<uint32_t>> readers;
  for (uint32_t n = 0; n < graph.node_count; ++n) {
    const msrt_node_view& node = NodeAt(graph, n);
    for (size_t i = 0; i < node.input_count; ++i) {
      if (node.inputs[i].id < 0) continue;
      std::vector<uint32_t>& list = readers[node.inputs[i].id];
      if (list.empty() || list.back() != n) list.push_back(n);
    }
  }
  return readers;
}

Wiring WiringOfOne(const msrt_node_view& node) {
  Wiring wiring;
  Wiring::NodePlaces places;
  const auto place = [](const msrt_value_view& v, Place::Kind kind, uint32_t* count) {
    const uint32_t index = (*count)++;
    return v.id < 0 ? Place{} : Place{kind, index};
  };
  for (size_t i = 0; i < node.input_count; ++i)
    places.inputs.push_back(place(node.inputs[i], Place::kInput, &wiring.input_count));
  for (size_t i = 0; i < node.output_count; ++i)
    places.outputs.push_back(place(node.outputs[i], Place::kOutput, &wiring.output_count));
  wiring.nodes.push_back(std::move(places));
  return wiring;
}

}  // namespace

const msrt_node_view& NodeAt(const msrt_graph_view& graph, size_t index) {
  return *graph.node(graph.graph, index);
}

std::vector<Chain> FindChains(const msrt_graph_view& graph, const std::vector<bool>& supported,
                              size_t max_nodes) {
  const auto readers = FindReaders(graph);
  constexpr uint32_t kNoReader = UINT32_MAX;
  std::vector<uint32_t> next(graph.node_count, kNoReader);
  for (uint32_t n = 0; n < graph.node_count; ++n) {
    const msrt_node_view& node = NodeAt(graph, n);
    const msrt_value_view* result = nullptr;
    bool single = supported[n];
    for (size_t i = 0; i < node.output_count; ++i) {
      if (node.outputs[i].id < 0) continue;
      single &= result == nullptr && !node.outputs[i].is_graph_output;
      result = &node.outputs[i];
    }
    if (!single || result == nullptr) continue;
    const auto it = readers.find(result->id);
    if (it != readers.end() && it->second.size() == 1 && supported[it->second[0]])
      next[n] = it->second[0];
  }
  std::vector<Chain> chains;
  for (uint32_t n = 0; n < graph.node_count; ++n) {
    Chain chain{n};
    while (chain.size() < max_nodes && next[chain.back()] != kNoReader) {
      chain.push_back(next[chain.back()]);
      chains.push_back(chain);
    }
  }
  return chains;
}

Wiring WiringOf(const msrt_graph_view& graph, const uint32_t* nodes, size_t node_count) {
  if (node_count == 1) return WiringOfOne(NodeAt(graph, nodes[0]));
  Wiring wiring;
  std::map<int64_t, Place> places;  // by value
  for (size_t n = 0; n < node_count; ++n) {
    const msrt_node_view& node = NodeAt(graph, nodes[n]);
    Wiring::NodePlaces& of_node = wiring.nodes.emplace_back();
    for (size_t i = 0; i < node.input_count; ++i) {
      const int64_t value = node.inputs[i].id;
      if (value >= 0 && places.count(value) == 0)
        places[value] = {Place::kInput, wiring.input_count++};
      of_node.inputs.push_back(value < 0 ? Place{} : places[value]);
    }
    for (size_t i = 0; i < node.output_count; ++i) {
      const int64_t value = node.outputs[i].id;
      const bool last = n + 1 == node_count;
      if (value >= 0)
        places[value] = last ? Place{Place::kOutput, wiring.output_count++}
                             : Place{Place::kInside, wiring.inside_count++};
      of_node.outputs.push_back(value < 0 ? Place{} : places[value]);
    }
  }
  return wiring;
}

}  // namespace accelerator

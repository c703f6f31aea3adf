// A module under construction for one row of the tables of bad models: a graph whose node 'bad' is
// wrong in one way. Nothing is checked here, on purpose.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace msrt::testing {

using Ints = std::vector<int64_t>;

class ModelDraft {
 public:
  ModelDraft();

  Module module;
  // The data of a run, one for each input of the graph; without bytes: the input is not set.
  std::vector<ConstTensor> data;

  Graph& graph() { return module.graphs[0]; }
  Node& node() { return graph().nodes.back(); }

  // Inputs are called x0, x1, ...; zeros are bound to those of moderate size, with 2 for each
  // unknown dim.
  ValueId Input(Dims dims, DType dtype = DType::kF32);
  ValueId InputOf(Type type);
  // An input with this data.
  ValueId Given(ConstTensor tensor);
  // Constants: ones, and a list of i64.
  ValueId Ones(Dims dims, DType dtype = DType::kF32);
  ValueId List(const Ints& values);
  // A node 'bad' whose outputs y0, y1, ... have no declared types and are outputs of the graph.
  void Add(std::string op, std::vector<ValueId> inputs, AttrList attrs = {}, size_t outputs = 1,
           std::string domain = {});
  // The same for a valid node; returns its output, which only other nodes use.
  ValueId Good(std::string op, std::vector<ValueId> inputs, AttrList attrs = {});
};

}  // namespace msrt::testing

// A graph of the module while it is written: its values, the weights it has taken in, and where
// items become values.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ops/builder.h"
#include "tools/msconvert/mindir/import_item.h"
#include "tools/msconvert/mindir/import_proto.h"

namespace msrt::mindir_import {

// The weights of a file. Those that the model assigns are state; who assigns is known after the
// first pass over the graphs only.
struct Weights {
  struct Entry {
    std::string name;  // as the user knows it
    Weight weight;
    Status wrong;  // why it could not be read; OK: it could
    bool assigned = false;
    int64_t slot = -1;  // of the module's states; -1: a constant
  };
  std::vector<Entry> entries;
};

class GraphDraft {
 public:
  GraphDraft(Module* module, uint32_t graph, Weights* weights)
      : module_(*module), graph_(graph), weights_(*weights) {}

  Graph& graph() { return module_.graphs[graph_]; }
  uint32_t index() const { return graph_; }
  Weights& weights() { return weights_; }
  const Type& type(ValueId v) const { return module_.graphs[graph_].value(v).type; }
  const ConstTensor* constant(ValueId v) const {
    return module_.graphs[graph_].value(v).constant.get();
  }

  // A tensor for an item that is one, or a number. Parameters are read here and now.
  Result<ValueId> Materialize(const Item& item, const std::string& name);
  // The same item with everything in it that can be a tensor as one: what is handed to another
  // graph.
  Result<Item> Materialized(const Item& item, const std::string& name);

  ValueId Constant(const std::string& name, ConstTensor data) {
    return graph().AddConstant(name, std::move(data));
  }
  ValueId Number(const std::string& name, DType dtype, double value);  // of rank 0
  Result<ValueId> Add(std::string_view op, const std::string& name, std::vector<ValueId> inputs,
                      AttrList attrs = {});
  Result<std::vector<ValueId>> AddMany(std::string_view domain, std::string_view op,
                                       const std::string& name, std::vector<ValueId> inputs,
                                       AttrList attrs, size_t outputs,
                                       std::vector<Type> declared = {});

 private:
  Result<ValueId> Read(uint32_t weight);
  Result<ValueId> Dequantized(const Weights::Entry& entry, ValueId stored);

  Module& module_;
  const uint32_t graph_;
  Weights& weights_;
  std::unordered_map<uint32_t, ValueId> constants_;       // by weight
  std::unordered_map<const ConstTensor*, ValueId> data_;  // by what the file shares
};

}  // namespace msrt::mindir_import

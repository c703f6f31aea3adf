// A graph of the module while it is written: its values, the weights it uses, and the conversion of
// items to values.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ops/builder.h"
#include "tools/msconvert/mindir/import_item.h"
#include "tools/msconvert/mindir/import_proto.h"

namespace msrt::mindir_import {

// The weights of a file. Those that the model assigns are state, which is known only after the
// first pass over the graphs.
struct Weights {
  struct Entry {
    std::string name;  // as the user knows it
    Weight weight;
    Status wrong;  // why it could not be read; OK if it could
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

  // Returns a tensor for an item that is one, or a number. Parameters are read at this point.
  Result<ValueId> Materialize(const Item& item, const std::string& name);
  // Returns the same item with everything in it that can be a tensor as one, to be passed to
  // another graph.
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
  std::unordered_map<const ConstTensor*, ValueId> data_;  // by constant of the file
};

}  // namespace msrt::mindir_import

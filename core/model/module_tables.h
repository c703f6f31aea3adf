// Converts a Module to the tables of schema/model.fbs and the weights they refer to. The first half
// of writing; private to core/model.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/graph/graph.h"
#include "core/model/format.h"
#include "core/model/model_generated.h"

namespace msrt {

// Collects the data records of the file: each distinct run of bytes once for each kind of segment.
class DataStore {
 public:
  struct Item {
    fbs::SegmentKind kind;
    std::span<const std::byte> bytes;
    uint64_t digest;
  };

  uint32_t Add(fbs::SegmentKind kind, std::span<const std::byte> bytes);
  const std::vector<Item>& items() const { return items_; }
  // Item indices in file order.
  std::vector<uint32_t> FileOrder() const;

 private:
  std::vector<Item> items_;
  std::unordered_multimap<uint64_t, uint32_t> by_digest_;
};

// Converts a module to tables. Refuses only what tables cannot represent; Verify, which runs
// afterwards, checks everything else.
class TableBuilder {
 public:
  Status Add(const Module& module);
  Status Add(const ModelExtras& extras);
  fbs::ModelT& tables() { return tables_; }
  // `data` of constants, packed weights and programs is an index of its items.
  const DataStore& store() const { return store_; }

 private:
  Result<uint32_t> TypeIndex(const Type& type);
  Result<uint32_t> ConstantIndex(const ConstTensor& tensor);
  uint32_t OpIndex(const Node& node);
  Status AddGraph(const Graph& graph);
  Status AddNode(const Node& node, fbs::GraphT* out);
  Status SetAttr(const AttrValue& value, fbs::AttrT* out);

  fbs::ModelT tables_;
  DataStore store_;
  std::unordered_map<std::string, uint32_t> types_, constants_, ops_;
};

}  // namespace msrt

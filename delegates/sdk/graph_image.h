// Reads the host's graph through its table of functions into the types that delegates in C++ work
// on.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "core/abi/msrt_plugin.h"
#include "core/base/copy_known_fields.h"
#include "delegates/sdk/delegate.h"

namespace msrt::sdk {

Type TypeOf(const msrt_shape& shape);

// Attributes as a node has them.
class AttrImage {
 public:
  // Adds an attribute, or replaces the one of that name.
  void Set(const msrt_attr_view& attr);
  const AttrList& attrs() const { return attrs_; }
  // The defaults of those that the node omits, and those that are local.
  const std::vector<AttrDef>& defs() const { return defs_; }

 private:
  AttrList attrs_;
  std::vector<AttrDef> defs_;
};

// One node. The host owns its strings and the bytes of constants.
class NodeImage {
 public:
  explicit NodeImage(const msrt_node_view& node);
  NodeImage(const NodeImage&) = delete;
  NodeImage& operator=(const NodeImage&) = delete;
  NodeInfo info(const Machine& machine) const {
    return {&declared_view_, &typical_view_, flops_,      bytes_,
            input_ids_,      output_ids_,    parameters_, machine};
  }
  const AttrImage& attrs() const { return attrs_; }

 private:
  struct Side {  // declared or typical types
    std::vector<Type> types;
    std::vector<const Type*> inputs, outputs;
  };
  static Side SideOf(const msrt_node_view& node, const msrt_shape msrt_value_view::*shape);

  AttrImage attrs_;
  std::deque<ConstTensor> constant_data_;
  std::vector<const ConstTensor*> constants_;
  Side declared_, typical_;
  OpView declared_view_, typical_view_;
  double flops_, bytes_;
  std::vector<int64_t> input_ids_, output_ids_;
  std::vector<char> parameters_;  // by input
};

// Creates the image of a node on first use and caches it.
class GraphImage final : public GraphView {
 public:
  GraphImage(const msrt_graph_view& view, const msrt_host_api& host)
      : view_(CopyKnownFields(view)), machine_{host.flops_per_second, host.bytes_per_second} {}
  size_t node_count() const override { return view_.node_count; }
  NodeInfo node(size_t index) const override { return image(index).info(machine_); }
  const NodeImage& image(size_t index) const;

 private:
  const msrt_graph_view view_;
  const Machine machine_;
  mutable std::map<size_t, NodeImage> images_;
};

}  // namespace msrt::sdk

// Writes a MindIR file: functions of nodes, the primitives they refer to, weights. It knows
// MindSpore's encoding and nothing about our ops; export_lower.h builds on it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/graph/tensor.h"
#include "mindir.pb.h"

namespace msrt::mindir_export {

// The name of a value in the file: a node, a parameter, a constant or a function.
struct Ref {
  std::string name;
};

using Ints = std::vector<int64_t>;

// An argument of a primitive: a value, or a literal.
class Arg {
 public:
  struct None {};
  Arg(Ref value) : value_(std::move(value)) {}  // NOLINT: implicit, so that calls read like the op
  Arg(int value) : value_(int64_t{value}) {}    // NOLINT
  Arg(int64_t value) : value_(value) {}         // NOLINT
  Arg(bool value) : value_(value) {}            // NOLINT
  Arg(double value) : value_(static_cast<float>(value)) {}  // NOLINT
  Arg(Ints values) : value_(std::move(values)) {}           // NOLINT
  Arg(const char* text) : value_(std::string(text)) {}      // NOLINT
  Arg(None none) : value_(none) {}                          // NOLINT
  const Ref* ref() const { return std::get_if<Ref>(&value_); }
  void EncodeTo(mindir::AttributeProto* attribute) const;  // requires that it is no Ref

 private:
  std::variant<Ref, int64_t, bool, float, Ints, std::string, None> value_;
};
using Args = std::vector<Arg>;
using PrimAttrs = std::vector<std::pair<std::string_view, Arg>>;

// Returns MindSpore's number of an element type, an argument of Cast and others; 0 if it has none.
int64_t TypeIdOf(DType dtype);
// Returns the element type as a file encodes it; UNDEFINED if MindIR has none.
mindir::TensorProto::DataType DataTypeOf(DType dtype);

class FileWriter;

// One function. Nodes are appended in an order in which they can run.
class FunctionWriter {
 public:
  FunctionWriter(FileWriter* file, mindir::GraphProto* graph) : file_(*file), graph_(*graph) {}
  FunctionWriter(const FunctionWriter&) = delete;
  FunctionWriter& operator=(const FunctionWriter&) = delete;

  const std::string& name() const { return graph_.name(); }
  Ref self() const { return {graph_.name()}; }

  Ref Input(std::string_view input_name, const Type& type);
  Ref MonadInput();
  // The results may have names, which MindSpore ignores.
  void Return(Ref value, std::span<const Type> types, std::span<const std::string> names = {});

  // The nodes that follow belong to this node of the module; it is a prefix of their names.
  void SetScope(std::string_view scope) { scope_ = scope; }

  // Adds a primitive whose former attributes are arguments, in the order of MindSpore's definition
  // of the op.
  Ref Op(std::string_view primitive, const Args& args);
  // Adds a primitive with attributes.
  Ref Prim(std::string_view primitive, const PrimAttrs& attrs, const Args& args);
  // Calls a function, or the function that a node returns.
  Ref Call(const Ref& callee, const Args& args);
  // Writes a parameter, after the effects that the token stands for.
  Ref Assign(const Ref& parameter, const Ref& value, const Ref& token);
  Ref Tuple(std::vector<Ref> elements);
  Ref Item(const Ref& tuple, size_t index);
  // Returns a dim of a tensor at run time as a number, for tuples that are shapes.
  Ref DimOf(const Ref& tensor, int axis) {
    return Item(Op("Shape", {tensor}), static_cast<size_t>(axis));
  }
  Ref ShapeTuple(const Args& dims) { return Prim("MakeTuple", {}, dims); }

  Ref Constant(const ConstTensor& tensor);
  Ref Monad();
  size_t node_count() const { return static_cast<size_t>(graph_.node_size()); }
  // Returns the node that makes `value` if it comes after the first `before` nodes; else null.
  mindir::NodeProto* NodeAfter(size_t before, const Ref& value);
  // Sets the types of a node's results. Ignores values that are not nodes of this function.
  void Describe(const Ref& value, std::span<const Type> types);

 private:
  Ref AddNode(std::string_view what, std::string op_type, const Args& args);
  Ref ConstantOf(const mindir::AttributeProto& value);

  FileWriter& file_;
  mindir::GraphProto& graph_;
  std::string scope_;
  std::map<std::string, std::string> constants_;  // encoded value -> name
  std::map<std::string, mindir::NodeProto*> nodes_;
};

// Weights stay outside the message until it is clear whether they fit into it.
struct Weight {
  mindir::TensorProto* parameter;
  ConstTensor tensor;
};

class FileWriter {
 public:
  FileWriter();

  mindir::GraphProto* main() { return model_.mutable_graph(); }
  // Makes the name unique and replaces colons, at which MindSpore would cut it off.
  mindir::GraphProto* AddFunction(std::string_view name);
  void NameMain(std::string_view name);
  // Adds a parameter of the main graph.
  Ref AddWeight(std::string_view name, const ConstTensor& tensor);

  std::string PrimitiveFor(std::string_view op_type, const PrimAttrs& attrs, bool function);
  uint64_t NextId() { return ++last_id_; }

  mindir::ModelProto& model() { return model_; }
  const std::vector<Weight>& weights() const { return weights_; }

 private:
  std::string Unique(std::string name);

  mindir::ModelProto model_;
  uint64_t last_id_ = 0;
  std::map<std::string, std::string> primitives_;  // encoded -> name
  std::map<std::string, int> names_;
  std::vector<Weight> weights_;
};

}  // namespace msrt::mindir_export

// The names of a MindIR file: which graph makes a value, what is a constant, a weight, a primitive
// or a graph, and what each graph uses of the graphs around it. Files before version 1 keep
// attributes at nodes, later ones in primitives that nodes refer to.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "mindir.pb.h"
#include "tools/msconvert/mindir/import_origin.h"
#include "tools/msconvert/mindir/import_proto.h"

namespace msrt::mindir_import {

// What the op_type of a node refers to.
struct Target {
  enum Kind {
    kPrimitive,
    kGraph,
    kValue,
    kForeign
  } kind;                                       // a value: a function; foreign: Python's own things
  std::string op;                               // of a primitive, or what it is called
  mindir::PrimitiveProto* primitive = nullptr;  // null: attributes stand at the node
  uint32_t graph = 0;
};

// The node of a graph, with what it refers to.
struct FileNode {
  mindir::NodeProto* proto;
  Target target;
  std::shared_ptr<const Origin> origin;  // of what it gives; null: what it says itself
  bool needed = false;                   // for the results of its graph
};

struct FileGraph {
  mindir::GraphProto* proto = nullptr;
  std::vector<FileNode> nodes;  // in an order in which they can run, without constants
  std::vector<std::string>
      free;               // names of values of other graphs that it, or a graph that it names, uses
  size_t references = 0;  // to it, in the whole file
};

class ModelFile {
 public:
  ModelFile() = default;
  // Errors: names that stand twice or nowhere, circles, graphs that use values which no graph
  // around them makes.
  static Result<ModelFile> Of(mindir::ModelProto* model);

  const std::vector<FileGraph>& graphs() const { return graphs_; }  // the first is the model's own

  enum class NameKind { kNothing, kValue, kConstant, kWeight, kGraph };
  struct Name {
    NameKind kind = NameKind::kNothing;
    uint32_t graph = 0;                          // that makes the value, or that is called so
    mindir::AttributeProto* constant = nullptr;  // its "value"
    uint32_t weight = 0;
  };
  Name Find(const std::string& name) const;

  std::vector<mindir::TensorProto*>& weights() { return weights_; }

  // What the user knows a parameter or an input as: without the graph that it stands in.
  static std::string Short(const std::string& name);

 private:
  Status Add(const std::string& name, Name what);
  Status AddGraph(mindir::GraphProto* graph);
  Status AddNodes(uint32_t graph);
  Target TargetOf(const mindir::NodeProto& node) const;
  Status Order(uint32_t graph);
  void FindOrigins(uint32_t graph);
  void FindNeeded(uint32_t graph);
  Status FindFree();
  // All that a node refers to: its inputs, and what it calls.
  static std::vector<std::string> Used(const FileNode& node);

  std::vector<FileGraph> graphs_;
  std::unordered_map<std::string, mindir::PrimitiveProto*> primitives_;
  std::unordered_map<std::string, Name> names_;
  std::vector<mindir::TensorProto*> weights_;
};

}  // namespace msrt::mindir_import

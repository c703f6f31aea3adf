// Resolves the names of a MindIR file: which graph makes a value, which name is a constant, a
// weight, a primitive or a graph, and which values each graph uses of the graphs around it. Files
// before version 1 have attributes in nodes, later ones in primitives that nodes refer to.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "mindir.pb.h"
#include "tools/msconvert/mindir/import_origin.h"
#include "tools/msconvert/mindir/import_proto.h"

namespace msrt::mindir_import {

// The target that the op_type of a node refers to.
struct Target {
  enum Kind {
    kPrimitive,
    kGraph,
    kValue,
    kForeign
  } kind;                                       // a value: a function; foreign: Python objects
  std::string op;                               // of a primitive, else the name of the target
  mindir::PrimitiveProto* primitive = nullptr;  // null: the node has the attributes
  uint32_t graph = 0;
};

// A node of a graph, with its target.
struct FileNode {
  mindir::NodeProto* proto;
  Target target;
  std::shared_ptr<const Origin> origin;  // of its result; null: the node is imported as it is
  bool needed = false;                   // for the results of its graph
};

struct FileGraph {
  mindir::GraphProto* proto = nullptr;
  std::vector<FileNode> nodes;  // in an order in which they can run, without constants
  std::vector<std::string>
      free;  // names of values of other graphs that it, or a graph that it refers to, uses
  size_t references = 0;  // to this graph, in the whole file
};

class ModelFile {
 public:
  ModelFile() = default;
  // Errors: duplicate or unknown names, cycles, graphs that use values which no graph around them
  // makes.
  static Result<ModelFile> Of(mindir::ModelProto* model);

  const std::vector<FileGraph>& graphs() const { return graphs_; }  // the first is the main graph

  enum class NameKind { kNothing, kValue, kConstant, kWeight, kGraph };
  struct Name {
    NameKind kind = NameKind::kNothing;
    uint32_t graph = 0;                          // that makes the value, or has this name
    mindir::AttributeProto* constant = nullptr;  // its "value"
    uint32_t weight = 0;
  };
  Name Find(const std::string& name) const;

  std::vector<mindir::TensorProto*>& weights() { return weights_; }

  // Returns the name of a parameter or an input as the user knows it: without that of its graph.
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
  // Returns all names that a node refers to: its inputs and the function that it calls.
  static std::vector<std::string> Used(const FileNode& node);

  std::vector<FileGraph> graphs_;
  std::unordered_map<std::string, mindir::PrimitiveProto*> primitives_;
  std::unordered_map<std::string, Name> names_;
  std::vector<mindir::TensorProto*> weights_;
};

}  // namespace msrt::mindir_import

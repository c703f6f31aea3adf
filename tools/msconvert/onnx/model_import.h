// Imports one ONNX model into a module: scopes of names, nodes, functions written out, graphs that
// nodes call.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "onnx-ml.pb.h"
#include "tools/msconvert/external_data.h"
#include "tools/msconvert/onnx/importer.h"
#include "tools/msconvert/onnx/lift.h"

namespace msrt::onnx_import {

inline constexpr int kMaxNesting = 64;
inline constexpr size_t kMaxNameBytes = 4096;  // the limit of .msrt files

inline std::string Canonical(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

using Opsets = std::map<std::string, int64_t>;

template <typename Imports>
Opsets OpsetsOf(const Imports& imports) {
  Opsets opsets;
  for (const auto& import : imports) opsets[Canonical(import.domain())] = import.version();
  return opsets;
}

// Names in one graph, or in one expanded function.
struct Scope {
  uint32_t graph = 0;  // of the module
  const Opsets* opsets = nullptr;
  std::unordered_map<std::string, ValueId> values;
  std::map<std::string, const onnx::AttributeProto*>
      bindings;        // a function's attributes; null: absent
  std::string prefix;  // of node names in an expanded function
  int depth = 0;
  const Scope* caller = nullptr;                      // of an expanded function
  const onnx::FunctionProto* function = nullptr;      // the expanded function
  std::unordered_set<std::string> optional_captures;  // captured names that are optionals outside
};

// A node with its op, name and opset.
struct NodeInFile {
  onnx::NodeProto* proto;
  std::string domain, op, name;  // op with its domain
  int64_t version;               // of the domain's opset
};

// A value of an outer graph that an inner one uses.
struct Capture {
  std::string name;
  ValueId value;  // in the outer graph
  Type type;
  std::shared_ptr<const ConstTensor>
      constant;  // copied into the inner graph, so that kernels see weights as such
};

// The arguments of a graph that a node calls: types for its own inputs, if the node determines
// them, then captured values.
struct InnerGraph {
  std::vector<Type> inputs;
  std::vector<Capture> captures;
  bool exact = false;  // the types override those that the file declares
};

class Importer {
 public:
  Importer(onnx::ModelProto* model, const std::string& path, const ImportOptions& options, Io* io)
      : model_(*model),
        options_(options),
        external_(path, io),
        opsets_(OpsetsOf(model->opset_import())),
        max_copied_bytes_(options.max_copied_bytes + 4 * model->ByteSizeLong()) {}

  Result<ImportResult> Run();

 private:
  struct Function {
    onnx::FunctionProto* proto = nullptr;
    Opsets opsets;
  };

  Status CheckModel();
  Status FindFunctions();

  // Replaces the main graph's open dims by the sizes of the options.
  Status BindSizes();
  // Returns a type of the main graph as the file declares it, with the sizes of the options.
  Result<Type> Declared(const onnx::TypeProto& type);

  Graph& GraphOf(const Scope& scope) { return out_.module.graphs[scope.graph]; }

  // Fills a new graph of the module: the main graph, or one that a node calls.
  Status ImportGraph(onnx::GraphProto* graph, const InnerGraph* inner, Scope* scope);
  void AddCaptures(const InnerGraph& inner, Scope* scope);
  Status AddOutputs(const onnx::GraphProto& graph, Scope* scope);

  // Outputs of the model are found by name, so each has a value of that name, even if it is only a
  // copy of another.
  Result<ValueId> Named(Scope* scope, ValueId value, const std::string& name, bool twice);

  Status ImportInitializers(onnx::GraphProto* graph, Scope* scope);

  Status ImportInputs(const onnx::GraphProto& graph, const InnerGraph* inner, Scope* scope);

  // Adds a value of unknown type, because its node could not be converted. Nodes that depend on it
  // are checked, not converted.
  ValueId Unknown(Scope* scope, const std::string& name) {
    return GraphOf(*scope).AddValue(name, UndeclaredType());
  }
  bool IsUnknown(const Scope& scope, ValueId v) {
    return v != kNoValue && !IsDeclared(GraphOf(scope).value(v).type);
  }

  Status Define(Scope* scope, const std::string& name, ValueId value);

  // Counts bytes that are written out again against the limit.
  Status Spend(size_t bytes);

  Result<int64_t> OpsetOf(const std::string& domain, const Scope& scope) const;

  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  // Returns the nodes in an order in which they can run, or an error if they form a cycle.
  Result<std::vector<onnx::NodeProto*>> Ordered(Nodes* nodes, const Scope& scope);

  static std::vector<std::string> UsedNames(const onnx::NodeProto& node);

  Status ImportNodes(Nodes* nodes, Scope* scope);

  static std::string NodeName(const onnx::NodeProto& node, const Scope& scope);

  Status ImportNode(onnx::NodeProto* node, Scope* scope);

  const RegisteredImporter* PluginRule(const NodeInFile& node) const;
  // Uses a rule, or without one adds a node of an op that a plugin defines.
  Status ImportByPlugin(const NodeInFile& node, const RegisteredImporter* rule,
                        std::vector<ValueId> inputs, Scope* scope);

  Status Lift(const NodeInFile& node, std::vector<ValueId> inputs, AttrList attrs, Scope* scope);

  // Adds a node of an unknown op, with the types that the file declares.
  Status Keep(const NodeInFile& node, std::vector<ValueId> inputs, AttrList attrs, Scope* scope);

  void Problem(const NodeInFile& node, std::string reason, std::string cure);

  Status DefineUnknown(const onnx::NodeProto& node, Scope* scope);

  // Returns an attribute of a node, or the value of the function's attribute that it refers to;
  // null if that is absent. `copy` is storage for attributes that must stay in the file.
  onnx::AttributeProto* Resolve(onnx::AttributeProto* given, const Scope& scope,
                                onnx::AttributeProto* copy) const;
  Status ImportAttr(onnx::AttributeProto* attribute, const NodeInFile& node, Scope* scope,
                    AttrList* attrs, bool* understood);

  // Control flow and optionals (control_import.cc).
  Status ImportControl(const NodeInFile& node, std::vector<ValueId> inputs, Scope* scope);
  Status FindInner(const NodeInFile& node, Scope* scope, AttrList* attrs,
                   std::vector<onnx::AttributeProto>* graphs, bool* understood);
  Status FindCaptured(std::span<const onnx::AttributeProto> graphs, const Scope& scope,
                      std::vector<Capture>* captures);
  std::optional<bool> Decided(ValueId condition, const Scope& scope);
  Status KeepDecided(const std::vector<ValueId>& inputs, const Scope& scope,
                     std::vector<onnx::AttributeProto>* branches);
  Status ImportDecided(const NodeInFile& node, const onnx::GraphProto& branch,
                       const InnerGraph& inner, Scope* scope);
  Result<uint32_t> ImportInner(const onnx::GraphProto& graph, const InnerGraph& inner,
                               const Scope& scope);
  Status WrapOptionals(uint32_t body, size_t first, size_t first_result, size_t carried);
  Result<uint32_t> ImportBody(const onnx::GraphProto& graph, InnerGraph inner, size_t first,
                              size_t first_result, size_t carried, const Scope& scope);
  Status FinishControl(const NodeInFile& node, std::string_view op, std::vector<ValueId> inputs,
                       AttrList attrs, Scope* scope);
  Status ImportBatchedScan(const NodeInFile& node, std::vector<ValueId> inputs, AttrList attrs,
                           const onnx::GraphProto& body, const std::vector<Capture>& captures,
                           Scope* scope);
  Status ImportSequenceMap(const NodeInFile& node, std::vector<ValueId> inputs,
                           const onnx::GraphProto& body, const std::vector<Capture>& captures,
                           Scope* scope);
  // Returns the content of an optional. A run fails there if the optional is empty.
  Result<ValueId> ContentOf(Scope* scope, ValueId optional, const std::string& name);
  Status ImportOptional(const NodeInFile& node, const std::vector<ValueId>& inputs, Scope* scope);
  bool IsOptional(const Scope& scope, ValueId v) const {
    return optionals_.count({scope.graph, IndexOf(v)}) != 0;
  }

  // Writes out a model-local function where it is called.
  Status Expand(onnx::NodeProto* call, const Function& function, const std::vector<ValueId>& inputs,
                Scope* scope);

  onnx::ModelProto& model_;
  const ImportOptions& options_;
  const ExternalData external_;
  const Opsets opsets_;
  const uint64_t max_copied_bytes_;
  std::map<std::tuple<std::string, std::string, std::string>, Function>
      functions_;              // by domain, name, overload
  size_t node_count_ = 0;      // of all graphs that were begun
  size_t imported_count_ = 0;  // of these nodes
  uint64_t copied_bytes_ = 0;
  uint64_t visited_values_ = 0;  // values visited to decide conditions
  size_t open_choices_ = 0;      // enclosing branches and bodies that may not run
  size_t rereads_ = 0;           // of bodies of loops
  std::set<std::pair<uint32_t, uint32_t>>
      optionals_;  // graph and value: lists of at most one element that the file calls optional
  BoundSizes sizes_;
  ImportResult out_;
};

// Finds the names that a graph uses and does not define: its captures.
void FindCaptures(const onnx::GraphProto& graph, std::vector<std::string>* out,
                  std::unordered_set<std::string>* seen, int depth);

}  // namespace msrt::onnx_import

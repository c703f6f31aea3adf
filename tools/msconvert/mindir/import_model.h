// Imports one MindIR model into a module. Each graph of the file is written out once for every way
// in which it is used: closures, weights and tuples among its arguments are resolved, and only
// tensors remain. Graphs wait in a queue until they are written, so the importer does not recurse
// over nested graphs.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/msconvert/mindir/import.h"
#include "tools/msconvert/mindir/import_draft.h"
#include "tools/msconvert/mindir/import_file.h"

namespace msrt::mindir_import {

// A graph of the module that is to be written. Values in its items are positions among its inputs.
struct Instance {
  uint32_t graph = 0;  // of the module
  using Input = NamedType;
  std::vector<Input> inputs;
  // Calls `callee` with `arguments`; its body is inlined if this is its only use, else a node calls
  // it.
  Item callee;
  Items arguments;
  bool whole = false;  // the instance is the body of callee, which is a function
  Declaration result;  // that callers expect
  std::string name;
};

class Importer {
 public:
  Importer(mindir::ModelProto* model, const std::string& path, const ImportOptions& options,
           Io* io);

  Result<ImportResult> Run();

 private:
  // The names of a graph while it is written.
  struct Scope {
    GraphDraft draft;
    std::unordered_map<std::string, Item> items = {};
    std::unordered_map<std::string, std::vector<ValueId>> origins =
        {};  // results of noted ops, by the first node that makes one
    const FileGraph* graph = nullptr;
  };

  Status CheckModel() const;
  Status ReadWeights();
  Status ImportAll();  // one pass over everything that is used
  bool AssignSlots();  // returns true if a weight became state: everything must be written again
  Result<std::vector<Instance::Input>> MainInputs(Items* arguments);

  Status Write(const Instance& instance);
  Status WriteBody(const Instance& instance, const Items& arguments, Scope* scope);
  Result<Item> ReadAll(const Item& item, const std::string& name, Scope* scope);
  Status SetResult(const Instance& instance, const Item& result, Scope* scope);
  Status NameOutputs(Graph* graph);
  // Returns a constant of the file. It is read only once, because its bytes are moved out.
  Result<Item> Constant(mindir::AttributeProto* value);
  Result<Item> Lookup(const std::string& name, Scope* scope);
  Result<Item> FunctionOf(uint32_t graph, Scope* scope);

  Status ImportNode(const FileNode& node, Scope* scope);
  Result<Item> ImportAsWritten(const FileNode& node, const Declaration& declared, Scope* scope);
  Result<Item> ImportOrigin(const FileNode& node, const Declaration& declared, Scope* scope);
  Result<std::vector<ValueId>> MakeOrigin(const Origin& origin, Scope* scope);
  Result<Item> ImportTarget(const FileNode& node, const Declaration& declared, Items inputs,
                            Scope* scope);
  Result<Item> ImportPrimitive(const FileNode& node, const Declaration& declared, Items inputs,
                               Scope* scope);
  Result<std::vector<std::pair<std::string, Item>>> Attributes(const FileNode& node);
  // Returns the result that the file declares for a node that could not be converted.
  Result<Item> Assumed(const Declaration& declared, Scope* scope, const std::string& name);

  // Imports tuples, order tokens, closures and assignments (import_plumbing.cc); returns false if
  // the node is none of these.
  Result<bool> ImportPlumbing(const FileNode& node, const Items& inputs, Scope* scope,
                              Item* result);
  Result<Item> Assign(const FileNode& node, const Items& inputs, Scope* scope);

  // Calls (import_calls.cc).
  Result<Item> Call(const Item& callee, const Items& arguments, const Declaration& declared,
                    const std::string& name, Scope* scope);
  Result<Item> CallFunction(const Item& function, const Items& arguments,
                            const Declaration& declared, const std::string& name, Scope* scope);
  Result<Item> CallSwitch(const Item& choice, const Items& arguments, const Declaration& declared,
                          const std::string& name, Scope* scope);
  Result<ValueId> ChosenIndex(const Item& selector, size_t count, const std::string& name,
                              Scope* scope);
  // Returns the graph of the module for a function with all its arguments.
  Result<uint32_t> InstanceFor(const Item& function, const Items& arguments,
                               const Declaration& declared, Scope* scope);
  Result<uint32_t> AddInstance(Instance instance);
  Status DeclareInputs(const Item& function, const Items& arguments, Instance* instance) const;
  Result<Declaration> ResultOf(const Item& callee, const Declaration& declared) const;

  mindir::ModelProto& model_;
  const ImportOptions& options_;
  const ExternalData external_;
  ModelFile file_;
  Weights weights_;
  std::deque<Instance> todo_;
  std::map<std::string, uint32_t> instances_;  // by function and the shape of its arguments
  std::unordered_map<const mindir::AttributeProto*, Result<Item>> constants_;
  size_t node_count_ = 0;
  size_t passed_values_ = 0;  // values passed to functions, in all calls
  ImportResult out_;
};

// Returns an item with the structure of a declaration, whose tensors are values that `make`
// returns.
Result<Item> ItemOver(const Declaration& declared, FunctionRef<ValueId(const Type&)> make);
// Returns the structure of tuples and tensors, on which both sides of a call must agree.
std::string ShapeOf(const Declaration& declared);
std::string ShapeOf(const Item& item);
void AppendTypes(const Declaration& declared, std::vector<Type>* out);

}  // namespace msrt::mindir_import

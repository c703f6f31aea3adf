// One MindIR model on its way into a module. Each graph of the file is written out once for every
// way in which it is used: closures, weights and tuples among its arguments are resolved, and what
// is left are tensors. Graphs wait in a list until they are written, so nothing here recurses over
// what a file nests.
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
  // Calls `callee` with `arguments`; its body stands here if nobody else uses it, else a node calls
  // it.
  Item callee;
  Items arguments;
  bool whole = false;  // the body of callee, which is a function
  Declared result;     // that callers count on
  std::string name;
};

class Importer {
 public:
  Importer(mindir::ModelProto* model, const std::string& path, const ImportOptions& options,
           Io* io);

  Result<Imported> Run();

 private:
  // The names of a graph while it is written.
  struct Scope {
    GraphDraft draft;
    std::unordered_map<std::string, Item> items = {};
    std::unordered_map<std::string, std::vector<ValueId>> origins =
        {};  // results of noted ops, by the first node that gives one
    const FileGraph* graph = nullptr;
  };

  Status CheckModel() const;
  Status ReadWeights();
  Status ImportAll();  // one pass over everything that is used
  bool AssignSlots();  // true: a weight became state, so everything has to be written again
  Result<std::vector<Instance::Input>> MainInputs(Items* arguments);

  Status Write(const Instance& instance);
  Status WriteBody(const Instance& instance, const Items& arguments, Scope* scope);
  Result<Item> ReadAll(const Item& item, const std::string& name, Scope* scope);
  Status SetResult(const Instance& instance, const Item& result, Scope* scope);
  Status NameOutputs(Graph* graph);
  // A value of the file; read once, because its bytes are taken out of it.
  Result<Item> Constant(mindir::AttributeProto* value);
  Result<Item> Look(const std::string& name, Scope* scope);
  Result<Item> FunctionOf(uint32_t graph, Scope* scope);

  Status ImportNode(const FileNode& node, Scope* scope);
  Result<Item> ImportAsSaid(const FileNode& node, const Declared& declared, Scope* scope);
  Result<Item> ImportOrigin(const FileNode& node, const Declared& declared, Scope* scope);
  Result<std::vector<ValueId>> MakeOrigin(const Origin& origin, Scope* scope);
  Result<Item> ImportTarget(const FileNode& node, const Declared& declared, Items inputs,
                            Scope* scope);
  Result<Item> ImportPrimitive(const FileNode& node, const Declared& declared, Items inputs,
                               Scope* scope);
  Result<std::vector<std::pair<std::string, Item>>> Attributes(const FileNode& node);
  // What the result of a node that could not be converted is said to be.
  Result<Item> Assumed(const Declared& declared, Scope* scope, const std::string& name);

  // Tuples, order tokens, closures, assignments (import_plumbing.cc); false: it is none of these.
  Result<bool> ImportPlumbing(const FileNode& node, const Items& inputs, Scope* scope,
                              Item* result);
  Result<Item> Assign(const FileNode& node, const Items& inputs, Scope* scope);

  // Calls (import_calls.cc).
  Result<Item> Call(const Item& callee, const Items& arguments, const Declared& declared,
                    const std::string& name, Scope* scope);
  Result<Item> CallFunction(const Item& function, const Items& arguments, const Declared& declared,
                            const std::string& name, Scope* scope);
  Result<Item> CallSwitch(const Item& choice, const Items& arguments, const Declared& declared,
                          const std::string& name, Scope* scope);
  Result<ValueId> ChosenIndex(const Item& selector, size_t count, const std::string& name,
                              Scope* scope);
  // The graph of the module for a function with all its arguments.
  Result<uint32_t> Need(const Item& function, const Items& arguments, const Declared& declared,
                        Scope* scope);
  Result<uint32_t> AddInstance(Instance instance);
  Status DeclareInputs(const Item& function, const Items& arguments, Instance* instance) const;
  Result<Declared> ResultOf(const Item& callee, const Declared& declared) const;

  mindir::ModelProto& model_;
  const ImportOptions& options_;
  const ExternalData external_;
  ModelFile file_;
  Weights weights_;
  std::deque<Instance> todo_;
  std::map<std::string, uint32_t> instances_;  // by function and the shape of its arguments
  std::unordered_map<const mindir::AttributeProto*, Result<Item>> constants_;
  size_t node_count_ = 0;
  size_t handed_ = 0;  // values to functions, in all calls
  Imported out_;
};

// A file's declaration as an item over values that `make` gives for its tensors.
Result<Item> ItemOver(const Declared& declared, FunctionRef<ValueId(const Type&)> make);
// How many values it has, in which order of tuples: what both sides of a call must agree on.
std::string ShapeOf(const Declared& declared);
std::string ShapeOf(const Item& item);
void AppendTypes(const Declared& declared, std::vector<Type>* out);

}  // namespace msrt::mindir_import

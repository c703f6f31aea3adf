// Lowers a node to primitives of MindSpore. A family of ops is a table of rows in an
// export_<family>.cc; a row's function writes the primitives that compute the node, or returns why
// there are none.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "ops/node_view.h"
#include "tools/msconvert/mindir/export_writer.h"

namespace msrt::mindir_export {

class NodeLowering;
using LowerFn = Status (*)(NodeLowering&);

struct Lowerer {
  std::string_view op;  // with its domain as a prefix, if it has one
  LowerFn lower;
  std::string_view primitive = {};  // for rows that differ in nothing else
};

// The names that the values of one graph have in the function that is written for it.
class GraphNames {
 public:
  GraphNames(const Graph& graph, FunctionWriter* out, FileWriter* file, bool is_main);
  const Graph& graph() const { return graph_; }
  FunctionWriter& out() { return out_; }
  // Returns the name of a value. Constants are written on first use: weights of the main graph as
  // parameters, all others where they are used.
  Ref Of(ValueId value);
  // The same if the value has been written already or is a small constant; else nullopt.
  std::optional<Ref> Known(ValueId value);
  void Set(ValueId value, Ref ref) { refs_[IndexOf(value)] = std::move(ref); }

 private:
  Ref Load(const Value& value);
  const Graph& graph_;
  FunctionWriter& out_;
  FileWriter& file_;
  bool is_main_;
  std::vector<Ref> refs_;
};

// One node while it is lowered.
class NodeLowering {
 public:
  NodeLowering(GraphNames* names, const Node& node, const Lowerer& row)
      : names_(*names), node_(node), row_(row), view_(names->graph(), node) {}

  const Node& node() const { return node_; }
  const OpView& op() const { return view_.op(); }
  FunctionWriter& out() { return names_.out(); }
  std::string_view primitive() const { return row_.primitive; }

  bool Has(size_t input) const { return op().has_input(input); }
  Ref In(size_t input) { return names_.Of(node_.inputs[input]); }
  std::vector<Ref> AllInputs();
  const Type& type(size_t input) const { return op().input(input); }
  const Dims& dims(size_t input) const { return op().input(input).dims; }
  DType dtype() const { return op().input(0).dtype; }
  bool Wants(size_t output) const { return op().has_output(output); }
  const Type& result(size_t output = 0) const { return op().output(output); }
  void SetOutput(size_t output, Ref value);
  void SetOutput(Ref value) { SetOutput(0, std::move(value)); }

  // Return an error if the rank or the shape is not known.
  Status NeedRank(size_t input = 0) const;
  Status NeedShape(size_t input = 0) const;

  // Returns the list that is an attribute in the static form and an input in the dynamic one;
  // nullopt if it is not known or not given.
  std::optional<Ints> KnownInts(std::string_view attr, size_t input) const;
  // The same as an argument, computed at run time if necessary. Requires that one of them is given.
  Arg IntsArg(std::string_view attr, size_t input);

  Ref Op(std::string_view primitive, const Args& args) { return out().Op(primitive, args); }
  Ref Prim(std::string_view primitive, const PrimAttrs& attrs, const Args& args) {
    return out().Prim(primitive, attrs, args);
  }
  // A constant of rank 0; by default of the type of the node's first input.
  Ref Number(double value, DType dtype);
  Ref Number(double value) { return Number(value, dtype()); }
  Ref IntTensor(const Ints& values);  // rank 1

 private:
  GraphNames& names_;
  const Node& node_;
  const Lowerer& row_;
  NodeView view_;
};

// Returns the axis counted from the front. Requires a known rank and an axis that inference has
// accepted.
inline int64_t FromFront(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

// A tensor of one element.
ConstTensor NumberTensor(DType dtype, double value);

// Steps that several ops share.
Ref LowerReshape(NodeLowering& n, const Ref& x, const Dims& dims);  // at most one dim unknown
Ref LowerActivation(NodeLowering& n, const Ref& x, std::string_view activation, double alpha,
                    double beta);

std::span<const Lowerer> ElementwiseLowerers();
std::span<const Lowerer> LinearLowerers();
std::span<const Lowerer> PoolLowerers();
std::span<const Lowerer> ShapeLowerers();
std::span<const Lowerer> GatherLowerers();
std::span<const Lowerer> NormLowerers();
std::span<const Lowerer> ResizeLowerers();
std::span<const Lowerer> AttentionLowerers();
std::span<const Lowerer> RecurrentLowerers();
std::span<const Lowerer> QuantLowerers();
std::span<const Lowerer> LossLowerers();
std::span<const Lowerer> DetectionLowerers();

// Returns null if the op cannot be exported.
const Lowerer* FindLowerer(const Node& node);

}  // namespace msrt::mindir_export

// Symbolic shapes and elements of small integer tensors before a run: each dim and each element as
// a product of a number and of dims that only the run knows. Filled node by node in the order of
// the graph. FoldShapes writes the results into the types; passes that match patterns ask
// ProvenDims for equalities that types cannot express.
#pragma once

#include "core/passes/dim_product.h"
#include "ops/op_def.h"

namespace msrt {

// Whether a type of the graph has an unnamed open dim.
bool HasOpenDims(const Graph& graph);

class SymbolicShapes {
 public:
  explicit SymbolicShapes(const Graph& graph);

  // Follows all nodes in order.
  void FollowAll();
  // Follows one node. Its inputs must have been followed.
  void Follow(const Node& node);

  // The dims of a tensor of known rank; nullopt otherwise.
  const std::optional<DimProducts>& dims(ValueId v) const { return dims_[IndexOf(v)]; }
  // The elements of an integer or bool tensor of rank 0 or 1, if they are followed.
  const std::optional<DimProducts>& data(ValueId v) const { return data_[IndexOf(v)]; }
  bool has(ValueId v) const { return v != kNoValue && IndexOf(v) < dims_.size(); }

 private:
  // A quantity that is not a product. Each is a new dim; equal operands make the same one.
  struct Term {
    enum Kind : uint8_t { kWindows, kSum, kQuotient, kSmaller, kBroadcast } kind;
    DimProduct a, b;
    int64_t room = 0, stride = 0;  // kWindows: floor((a + room) / stride) + 1
  };

  void Declare(ValueId v);
  void FollowDims(const Node& node);
  void FollowData(const Node& node);

  // Dims of the first output, or of all outputs of a Split.
  std::optional<DimProducts> DimsOf(const Node& node);
  std::optional<DimProducts> DimsOfWindows(const Node& node);
  std::optional<DimProducts> DimsOfProduct(const Node& node);
  std::optional<DimProducts> DimsOfConcat(const Node& node);
  std::optional<DimProducts> DimsOfSlice(const Node& node);
  std::optional<DimProducts> DimsOfGather(const Node& node);
  std::optional<DimProducts> DimsOfBroadcast(const Node& node);
  std::optional<DimProducts> DimsOfAttention(const Node& node);
  // Returns the dims that input `i` lists as its elements.
  std::optional<DimProducts> ListedDims(const Node& node, size_t i) const;

  std::optional<DimProducts> DataOf(const Node& node);
  std::optional<DimProducts> PairwiseData(const Node& node);

  DimProduct Named(const Term& term);
  DimProduct WindowsOver(const DimProduct& dim, int64_t room, int64_t stride);
  DimProduct Sum(const DimProduct& a, const DimProduct& b);
  DimProduct Difference(const DimProduct& a, const DimProduct& b);
  DimProduct Quotient(const DimProduct& a, const DimProduct& b);
  DimProduct Smaller(const DimProduct& a, const DimProduct& b);
  DimProduct BroadcastDim(const DimProduct& a, const DimProduct& b);
  DimProducts Broadcast(const DimProducts& a, const DimProducts& b);

  const Graph& graph_;
  std::vector<Term> terms_;
  std::vector<std::optional<DimProducts>> dims_, data_;
};

// Proves that dims are equal in every run, by the types or by the nodes that made the values.
// Describes the graph at the time of construction: for values that are added later it knows only
// the types.
class ProvenDims {
 public:
  explicit ProvenDims(const Graph& graph);
  bool Equal(ValueId a, int a_axis, ValueId b, int b_axis) const;
  // Compares all dims and the element type.
  bool Equal(ValueId a, ValueId b) const;

 private:
  const Graph& graph_;
  std::optional<SymbolicShapes> shapes_;  // if types leave dims open
};

}  // namespace msrt

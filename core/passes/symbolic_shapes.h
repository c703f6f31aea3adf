// What is known about shapes and about small integer tensors before a run: each dim and each
// element as a product of a number and of dims that only the run knows. Filled node by node in the
// order of the graph. The pass that folds shapes writes what it finds into the types; passes that
// look for patterns ask ProvenDims for what types cannot say.
#pragma once

#include "core/passes/dim_product.h"
#include "ops/op_def.h"

namespace msrt {

// Whether a type leaves a dim open that has no name.
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
  // The elements of an integer or bool tensor of rank 0 or 1, as far as that is followed.
  const std::optional<DimProducts>& data(ValueId v) const { return data_[IndexOf(v)]; }
  bool has(ValueId v) const { return v != kNoValue && IndexOf(v) < dims_.size(); }

 private:
  // A quantity that is no product: each is a dim of its own, the same for the same operands.
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
  // The dims that the elements of input `i` are a list of.
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

// Whether dims are equal in every run, by the types or by the nodes that made the values. Of a
// graph as it was when the object was made: values that are added later are known by their types
// only.
class ProvenDims {
 public:
  explicit ProvenDims(const Graph& graph);
  bool Equal(ValueId a, int a_axis, ValueId b, int b_axis) const;
  // All dims and the element type.
  bool Equal(ValueId a, ValueId b) const;

 private:
  const Graph& graph_;
  std::optional<SymbolicShapes> shapes_;  // where types leave dims open
};

}  // namespace msrt

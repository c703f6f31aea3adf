// What is known about shapes and about small integer tensors before a run: each dim and each element as a product of a number and of dims
// that only the run knows. Filled node by node in the order of the graph; the pass that folds shapes reads it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace msrt {

// number * dim * dim ..., or nothing known at all.
class DimProduct {
 public:
  static DimProduct Unknown() { return DimProduct(); }
  static DimProduct Number(int64_t number);
  // The dim of a type: a number, a symbol, or an open dim that is named by where it stands.
  static DimProduct Dim(int64_t dim, ValueId value, int axis);
  // The number of windows that slide over another dim, numbered by whoever counts them.
  static DimProduct Windows(size_t number);

  bool known() const { return known_; }
  std::optional<int64_t> number() const { return known_ && count_ == 0 ? std::optional(factor_) : std::nullopt; }
  // The dim as types write it, where it is a number or one symbol.
  std::optional<int64_t> dim() const;
  // A product of dims and a number that is not negative is never negative.
  bool IsNeverNegative() const { return known_ && factor_ >= 0; }
  // Equal in every run. What is not known equals nothing.
  bool operator==(const DimProduct& other) const;

  DimProduct Times(const DimProduct& other) const;
  DimProduct Plus(const DimProduct& other, int64_t sign) const;
  // Where the division is exact and by a number.
  DimProduct Over(const DimProduct& other) const;

 private:
  static constexpr int kMost = 6;
  bool known_ = false;
  int64_t factor_ = 0;
  int count_ = 0;
  uint64_t dims_[kMost] = {};  // sorted
};

using DimProducts = std::vector<DimProduct>;

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
  // Tensors of one element type and of equal dims in every run.
  bool AreEqual(ValueId a, ValueId b) const;

 private:
  void Declare(ValueId v);
  std::optional<DimProducts> DimsOf(const Node& node);
  std::optional<DimProducts> DimsOfWindows(const Node& node);
  DimProduct WindowsOver(const DimProduct& dim, int64_t room, int64_t stride);
  std::optional<DimProducts> DataOf(const Node& node) const;

  // floor((dim + room) / stride) + 1, which is no product: each is a name of its own, the same for the same numbers.
  struct WindowCount {
    DimProduct dim;
    int64_t room, stride;
  };

  const Graph& graph_;
  std::vector<WindowCount> windows_;
  std::vector<std::optional<DimProducts>> dims_, data_;
};

}  // namespace msrt

// A graph that grows node by node: its values, new ones on demand, and helpers for the recipes of
// ops. Private to random_graph.cc and recipes.cc.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ops/builder.h"
#include "ops/op_def.h"
#include "tests/fuzz/random_graph.h"
#include "tests/fuzz/random_values.h"

namespace msrt::testing {

using Ints = std::vector<int64_t>;

// A proposed node. Inference decides whether it is valid.
struct Proposal {
  std::vector<ValueId> inputs;
  AttrList attrs;
  size_t outputs = 1;
};

class Grower {
 public:
  explicit Grower(uint64_t seed);

  Choices choices;
  RandomGraph result;

  // Adds up to `count` nodes, then finishes the graph.
  void Grow(int count);

  Graph& graph() { return result.module.graphs[0]; }
  const Type& TypeOf(ValueId v) { return graph().value(v).type; }
  const Dims& DimsOf(ValueId v) { return TypeOf(v).dims; }

  // A new input or constant with this data.
  ValueId Given(ConstTensor data);
  ValueId Constant(ConstTensor data);
  ValueId New(DType dtype, const Dims& dims) { return Given(RandomTensor(choices, dtype, dims)); }
  // Indices in [low, high]; of i32 or i64.
  ValueId Indices(const Dims& dims, int64_t low, int64_t high);
  Dims SmallDims(int rank);
  // A value of one of the types whose rank is in [low, high]: one that exists, or a new one.
  ValueId Any(DTypeSet types, int low = 0, int high = 4);
  // Dims that broadcast with these; more often the same than not.
  Dims Broadcastable(const Dims& dims);
  int64_t Axis(int rank) { return choices.Between(-rank, rank - 1); }
  // Adds a list (or one number) as the attribute, or as an input at that position; `p->inputs` must
  // have all inputs before it.
  void SetList(std::string_view attr, size_t input, const Ints& values, Proposal* p);
  void SetNumber(std::string_view attr, size_t input, int64_t value, Proposal* p);

 private:
  bool TryNode(const OpDef& def);
  Proposal Generic(const OpDef& def);
  std::optional<AttrValue> GenericAttr(const AttrDef& attr, int rank);
  void Finish();

  GraphBuilder builder_;
  std::vector<ValueId> usable_;  // with known dims, not too large
};

// Returns the recipe of an op whose inputs and attributes must fit each other; null: parameter
// types and attribute ranges suffice.
using Recipe = Proposal (*)(Grower&, const OpDef&);
Recipe RecipeFor(const OpDef& def);

}  // namespace msrt::testing

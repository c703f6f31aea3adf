// The meaning of a name of a MindIR graph while the graph is being written out. MindIR has values
// that our graphs lack: tuples, numbers beside tensors, texts, types, tokens that order effects,
// parameters by reference, functions by name. Only tensors become values; the rest is resolved
// during import.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/parallel_for.h"
#include "core/graph/graph.h"

namespace msrt::mindir_import {

enum class ItemKind : uint8_t {
  kUnknown,  // its node could not be converted
  kTensor,   // `value`
  kData,     // `data`: a constant tensor that no graph has yet
  kTuple,    // `parts`
  kNumber,   // `dtype`, and `integer` or `real`
  kText,     // `text`
  kDType,    // `dtype`
  kNone,
  kMonad,      // orders effects; the order of nodes does the same
  kParameter,  // `index` among the file's weights
  kFunction,   // graph `index` of the file; `parts`: its environment, then its first arguments
  kSwitch,     // `parts`: the selector, then the functions; `by_index`: the selector is a number,
               // not a bool
};

struct Item;
using Items = std::vector<Item>;

struct Item {
  ItemKind kind = ItemKind::kUnknown;
  ValueId value = kNoValue;
  DType dtype = DType::kNone;
  bool by_index = false;
  uint32_t index = 0;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::shared_ptr<const ConstTensor> data;
  std::shared_ptr<const Items> parts;
  // Nesting depth, and the number of items and of values in all parts, counting repeated ones
  // again. Bounded, so that recursion and copies are.
  uint32_t depth = 0;
  size_t items = 1, leaves = 0;

  bool is(ItemKind k) const { return kind == k; }
  size_t part_count() const { return parts == nullptr ? 0 : parts->size(); }
  const Item& part(size_t i) const { return (*parts)[i]; }

  static Item Tensor(ValueId value);
  static Item Data(ConstTensor data);
  static Item Integer(int64_t value, DType dtype = DType::kI64);
  static Item Real(double value, DType dtype = DType::kF32);
  static Item Text(std::string text);
  static Item Type(DType dtype);
  static Item Plain(ItemKind kind);  // for kinds without content
  static Item Parameter(uint32_t index);
};

// Returns an item with parts. Refuses items that are nested too deeply or have too many parts.
Result<Item> Compound(ItemKind kind, Items parts, uint32_t index = 0);

// Appends the values in an item, in order.
void AppendLeaves(const Item& item, std::vector<ValueId>* out);
// Returns the same item with each of its values replaced by leaf(value).
Item Mapped(const Item& item, FunctionRef<Item(const Item&)> leaf);

// Appends everything but the values themselves: items of the same shape share an instance of a
// graph.
void AppendShape(const Item& item, std::string* out);

// For messages: "a tuple", "a function".
std::string_view Describe(const Item& item);

}  // namespace msrt::mindir_import

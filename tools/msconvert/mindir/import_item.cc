#include "tools/msconvert/mindir/import_item.h"

#include <algorithm>

namespace msrt::mindir_import {
namespace {

constexpr uint32_t kMaxDepth = 48;
constexpr size_t kMaxItems = 65'536;

Item Of(ItemKind kind) {
  Item item;
  item.kind = kind;
  return item;
}

}  // namespace

Item Item::Tensor(ValueId value) {
  Item item = Of(ItemKind::kTensor);
  item.value = value;
  item.leaves = 1;
  return item;
}

Item Item::Data(ConstTensor data) {
  Item item = Of(ItemKind::kData);
  item.data = std::make_shared<const ConstTensor>(std::move(data));
  return item;
}

Item Item::Integer(int64_t value, DType dtype) {
  Item item = Of(ItemKind::kNumber);
  item.integer = value;
  item.real = static_cast<double>(value);
  item.dtype = dtype;
  return item;
}

Item Item::Real(double value, DType dtype) {
  Item item = Of(ItemKind::kNumber);
  item.real = value;
  item.dtype = dtype;
  return item;
}

Item Item::Text(std::string text) {
  Item item = Of(ItemKind::kText);
  item.text = std::move(text);
  return item;
}

Item Item::Type(DType dtype) {
  Item item = Of(ItemKind::kDType);
  item.dtype = dtype;
  return item;
}

Item Item::Plain(ItemKind kind) { return Of(kind); }

Item Item::Parameter(uint32_t index) {
  Item item = Of(ItemKind::kParameter);
  item.index = index;
  return item;
}

Result<Item> Compound(ItemKind kind, Items parts, uint32_t index) {
  Item item = Of(kind);
  item.index = index;
  for (const Item& p : parts) {
    item.depth = std::max(item.depth, p.depth + 1);
    item.items += p.items;
    item.leaves += p.leaves;
  }
  const std::string_view what = Describe(item);
  if (item.depth > kMaxDepth)
    return InvalidModel(what, " is nested more than ", kMaxDepth, " deep");
  if (item.items > kMaxItems) return InvalidModel(what, " has more than ", kMaxItems, " parts");
  item.parts = std::make_shared<const Items>(std::move(parts));
  return item;
}

void AppendLeaves(const Item& item, std::vector<ValueId>* out) {
  if (item.is(ItemKind::kTensor)) out->push_back(item.value);
  for (size_t i = 0; i < item.part_count(); ++i) AppendLeaves(item.part(i), out);
}

Item Mapped(const Item& item, FunctionRef<Item(const Item&)> leaf) {
  if (item.is(ItemKind::kTensor)) return leaf(item);
  if (item.parts == nullptr || item.leaves == 0) return item;
  Item copy = item;
  Items parts;
  copy.leaves = 0;
  for (const Item& p : *item.parts) {
    parts.push_back(Mapped(p, leaf));
    copy.leaves += parts.back().leaves;
  }
  copy.parts = std::make_shared<const Items>(std::move(parts));
  return copy;
}

void AppendShape(const Item& item, std::string* out) {
  StrAppend(out, static_cast<int>(item.kind), ":");
  switch (item.kind) {
    case ItemKind::kNumber:
      StrAppend(out, static_cast<int>(item.dtype), ",", item.integer, ",", item.real);
      break;
    case ItemKind::kText:
      StrAppend(out, item.text.size(), ",", item.text);
      break;
    case ItemKind::kDType:
      StrAppend(out, static_cast<int>(item.dtype));
      break;
    case ItemKind::kParameter:
    case ItemKind::kFunction:
      StrAppend(out, item.index);
      break;
    case ItemKind::kSwitch:
      StrAppend(out, item.by_index ? 1 : 0);
      break;
    default:
      break;
  }
  if (item.parts == nullptr) return;
  out->push_back('(');
  for (const Item& p : *item.parts) AppendShape(p, out);
  out->push_back(')');
}

std::string_view Describe(const Item& item) {
  switch (item.kind) {
    case ItemKind::kUnknown:
      return "a value that could not be converted";
    case ItemKind::kTensor:
    case ItemKind::kData:
      return "a tensor";
    case ItemKind::kTuple:
      return "a tuple";
    case ItemKind::kNumber:
      return "a number";
    case ItemKind::kText:
      return "a text";
    case ItemKind::kDType:
      return "an element type";
    case ItemKind::kNone:
      return "None";
    case ItemKind::kMonad:
      return "an order token";
    case ItemKind::kParameter:
      return "a parameter";
    case ItemKind::kFunction:
    case ItemKind::kSwitch:
      return "a function";
  }
  return "a value";
}

}  // namespace msrt::mindir_import

// Attributes of nodes: an open list of named values, and the definitions in an op's entry that they
// are checked against.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/graph/tensor.h"

namespace msrt {

// A graph of the same module, by index: the body of a loop, a branch, a callee.
struct GraphRef {
  uint32_t index = 0;
  bool operator==(const GraphRef&) const = default;
};

// The order of alternatives is the order of AttrKind and part of the file format.
using AttrValue =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                 std::vector<std::string>, DType, ConstTensor, GraphRef, std::vector<GraphRef>>;
enum class AttrKind : uint8_t {
  kInt,
  kFloat,
  kString,
  kInts,
  kFloats,
  kStrings,
  kDType,
  kTensor,
  kGraph,
  kGraphs
};
inline AttrKind KindOf(const AttrValue& value) { return static_cast<AttrKind>(value.index()); }
std::string_view AttrKindName(AttrKind kind);

struct Attr {
  std::string name;
  AttrValue value;
};
void AppendTo(std::string* out, const AttrValue& value);

class AttrList {
 public:
  AttrList() = default;
  AttrList(std::initializer_list<Attr> attrs) : attrs_(attrs) {}
  explicit AttrList(std::vector<Attr> attrs) : attrs_(std::move(attrs)) {}  // the names must differ
  const AttrValue* Find(std::string_view name) const;
  void Set(std::string_view name, AttrValue value);  // adds or replaces
  void Remove(std::string_view name);
  size_t size() const { return attrs_.size(); }
  bool empty() const { return attrs_.empty(); }
  auto begin() const { return attrs_.begin(); }
  auto end() const { return attrs_.end(); }

 private:
  std::vector<Attr> attrs_;
};

// One attribute of an op's entry. Ranges hold for the number or for every element of the list; they
// are checked for every node before any kernel exists, so no kernel ever divides by an attribute
// that could be zero.
struct AttrDef {
  std::string_view name;
  AttrKind kind = AttrKind::kInt;
  bool required = false;
  // Defaults for kInt, kFloat and kString; an absent list reads as empty.
  int64_t default_int = 0;
  double default_float = 0;
  std::string_view default_string = {};
  int64_t min_int = std::numeric_limits<int64_t>::min(),
          max_int = std::numeric_limits<int64_t>::max();
  double min_float = -std::numeric_limits<double>::infinity(),
         max_float = std::numeric_limits<double>::infinity();
  std::span<const std::string_view> choices = {};  // for strings: the allowed ones; empty means any
  int max_count = 64;                              // for lists: the maximum number of elements
  bool local = false;  // set by localize only: the position of a piece in the whole
};

// Checks `attrs` against the entry: unknown names, wrong kinds, values out of range, missing ones.
Status CheckAttrs(const AttrList& attrs, std::span<const AttrDef> defs);

}  // namespace msrt

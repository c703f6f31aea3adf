// Attributes as delegates and callbacks see them: msrt_attr_view.
#pragma once

#include <deque>
#include <vector>

#include "core/abi/msrt_plugin.h"
#include "core/graph/attribute.h"

namespace msrt {

// Owns the lists that views point to where the graph has none in that form. It only grows, and its
// elements never move.
class AttrStore {
 public:
  // Returns the node's own attributes, then the defaults of those that it leaves out. Everything in
  // `attrs` and `defs` must outlive the views; names in `defs` are zero-terminated.
  std::vector<msrt_attr_view> ViewsOf(const AttrList& attrs, std::span<const AttrDef> defs);

 private:
  msrt_attr_view ViewOf(const Attr& attr);
  template <typename T>
  static const T* Keep(std::vector<T> list, std::deque<std::vector<T>>* owner) {
    return owner->emplace_back(std::move(list)).data();
  }
  std::deque<std::vector<const char*>> strings_;
  std::deque<std::vector<int64_t>> ints_;
};

}  // namespace msrt

#include "core/delegate/attr_views.h"

#include <algorithm>

#include "core/delegate/offered_graph.h"

namespace msrt {

std::vector<msrt_attr_view> AttrStore::ViewsOf(const AttrList& attrs,
                                               std::span<const AttrDef> defs) {
  std::vector<msrt_attr_view> views;
  for (const Attr& attr : attrs) {
    views.push_back(ViewOf(attr));
    const bool local = std::any_of(
        defs.begin(), defs.end(), [&](const AttrDef& d) { return d.local && d.name == attr.name; });
    if (local) views.back().flags |= MSRT_ATTR_IS_LOCAL;
  }
  for (const AttrDef& def : defs) {
    if (def.local || attrs.Find(def.name) != nullptr) continue;
    msrt_attr_view view{};
    view.name = def.name.data();
    view.kind = static_cast<msrt_attr_kind>(def.kind);
    view.flags = MSRT_ATTR_IS_DEFAULT;
    view.count = 1;
    // Only single values have defaults; the op itself defines what an absent list or tensor means.
    if (def.kind == AttrKind::kInt) view.ints = &def.default_int;
    else if (def.kind == AttrKind::kFloat) view.floats = &def.default_float;
    else if (def.kind == AttrKind::kString)
      view.strings = Keep<const char*>(
          {def.default_string.empty() ? "" : def.default_string.data()}, &strings_);
    else continue;
    views.push_back(view);
  }
  return views;
}

msrt_attr_view AttrStore::ViewOf(const Attr& attr) {
  msrt_attr_view view{};
  view.name = attr.name.c_str();
  view.kind = static_cast<msrt_attr_kind>(KindOf(attr.value));
  view.count = 1;
  if (const auto* i = std::get_if<int64_t>(&attr.value)) view.ints = i;
  if (const auto* f = std::get_if<double>(&attr.value)) view.floats = f;
  if (const auto* s = std::get_if<std::string>(&attr.value))
    view.strings = Keep<const char*>({s->c_str()}, &strings_);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&attr.value))
    view.ints = list->data(), view.count = list->size();
  if (const auto* list = std::get_if<std::vector<double>>(&attr.value))
    view.floats = list->data(), view.count = list->size();
  if (const auto* list = std::get_if<std::vector<std::string>>(&attr.value)) {
    std::vector<const char*> strings;
    for (const std::string& s : *list) strings.push_back(s.c_str());
    view.count = strings.size();
    view.strings = Keep(std::move(strings), &strings_);
  }
  if (const auto* dtype = std::get_if<DType>(&attr.value))
    view.dtype = static_cast<msrt_dtype>(*dtype);
  if (const auto* tensor = std::get_if<ConstTensor>(&attr.value)) {
    view.tensor_shape = ShapeOf(tensor->type());
    view.tensor_data = tensor->bytes.data();
  }
  if (const auto* ref = std::get_if<GraphRef>(&attr.value))
    view.ints = Keep<int64_t>({int64_t{ref->index}}, &ints_);
  if (const auto* refs = std::get_if<std::vector<GraphRef>>(&attr.value)) {
    std::vector<int64_t> indices;
    for (GraphRef r : *refs) indices.push_back(r.index);
    view.count = indices.size();
    view.ints = Keep(std::move(indices), &ints_);
  }
  return view;
}

}  // namespace msrt

#include "core/graph/attribute.h"

#include <algorithm>
#include <cmath>

namespace msrt {
namespace {

constexpr std::string_view kKindNames[] = {"int",     "float", "string", "ints",  "floats",
                                           "strings", "type",  "tensor", "graph", "graphs"};

const AttrDef* FindDef(std::span<const AttrDef> defs, std::string_view name) {
  const auto it =
      std::find_if(defs.begin(), defs.end(), [&](const AttrDef& d) { return d.name == name; });
  return it == defs.end() ? nullptr : &*it;
}

Status CheckInt(const AttrDef& def, std::string_view label, int64_t v) {
  if (v < def.min_int) return InvalidModel(label, " = ", v, ", must be at least ", def.min_int);
  if (v > def.max_int) return InvalidModel(label, " = ", v, ", must be at most ", def.max_int);
  return OkStatus();
}

Status CheckFloat(const AttrDef& def, std::string_view label, double v) {
  if (std::isnan(v)) return InvalidModel(label, " is not a number");
  if (v < def.min_float) return InvalidModel(label, " = ", v, ", must be at least ", def.min_float);
  if (v > def.max_float) return InvalidModel(label, " = ", v, ", must be at most ", def.max_float);
  return OkStatus();
}

Status CheckString(const AttrDef& def, std::string_view label, const std::string& v) {
  if (def.choices.empty() ||
      std::find(def.choices.begin(), def.choices.end(), v) != def.choices.end())
    return OkStatus();
  std::string all;
  for (std::string_view c : def.choices) StrAppend(&all, all.empty() ? "" : ", ", "'", c, "'");
  return InvalidModel(label, " = '", v, "', must be one of ", all);
}

template <typename T, typename Check>
Status CheckEach(const AttrDef& def, const std::vector<T>& values, Check check) {
  if (values.size() > static_cast<size_t>(def.max_count)) {
    return InvalidModel(def.name, " has ", values.size(), " elements, at most ", def.max_count,
                        " are allowed");
  }
  for (size_t i = 0; i < values.size(); ++i) {
    // The label costs more than the check: it is made for failures only.
    if (!check(def, def.name, values[i]).ok())
      return check(def, StrCat(def.name, "[", i, "]"), values[i]);
  }
  return OkStatus();
}

Status CheckValue(const AttrDef& def, const AttrValue& value) {
  if (KindOf(value) != def.kind) {
    return InvalidModel("attribute ", def.name, " is of kind ", AttrKindName(KindOf(value)),
                        ", must be ", AttrKindName(def.kind));
  }
  switch (def.kind) {
    case AttrKind::kInt:
      return CheckInt(def, def.name, std::get<int64_t>(value));
    case AttrKind::kFloat:
      return CheckFloat(def, def.name, std::get<double>(value));
    case AttrKind::kString:
      return CheckString(def, def.name, std::get<std::string>(value));
    case AttrKind::kInts:
      return CheckEach(def, std::get<std::vector<int64_t>>(value), CheckInt);
    case AttrKind::kFloats:
      return CheckEach(def, std::get<std::vector<double>>(value), CheckFloat);
    case AttrKind::kStrings:
      return CheckEach(def, std::get<std::vector<std::string>>(value), CheckString);
    case AttrKind::kDType:
    case AttrKind::kTensor:
    case AttrKind::kGraph:
    case AttrKind::kGraphs:
      return OkStatus();
  }
  return OkStatus();
}

template <typename T>
void AppendList(std::string* out, const std::vector<T>& values) {
  out->push_back('[');
  for (size_t i = 0; i < values.size(); ++i) StrAppend(out, i == 0 ? "" : ", ", values[i]);
  out->push_back(']');
}

}  // namespace

std::string_view AttrKindName(AttrKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

const AttrValue* AttrList::Find(std::string_view name) const {
  for (const Attr& a : attrs_) {
    if (a.name == name) return &a.value;
  }
  return nullptr;
}

void AttrList::Set(std::string_view name, AttrValue value) {
  for (Attr& a : attrs_) {
    if (a.name == name) {
      a.value = std::move(value);
      return;
    }
  }
  attrs_.push_back({std::string(name), std::move(value)});
}

void AttrList::Remove(std::string_view name) {
  std::erase_if(attrs_, [&](const Attr& a) { return a.name == name; });
}

void AppendTo(std::string* out, const AttrValue& value) {
  switch (KindOf(value)) {
    case AttrKind::kInt:
      return AppendTo(out, std::get<int64_t>(value));
    case AttrKind::kFloat:
      return AppendTo(out, std::get<double>(value));
    case AttrKind::kString:
      return StrAppend(out, "'", std::get<std::string>(value), "'");
    case AttrKind::kInts:
      return AppendList(out, std::get<std::vector<int64_t>>(value));
    case AttrKind::kFloats:
      return AppendList(out, std::get<std::vector<double>>(value));
    case AttrKind::kStrings:
      return AppendList(out, std::get<std::vector<std::string>>(value));
    case AttrKind::kDType:
      return AppendTo(out, std::get<DType>(value));
    case AttrKind::kTensor:
      return StrAppend(out, "tensor ", std::get<ConstTensor>(value).type());
    case AttrKind::kGraph:
      return StrAppend(out, "graph#", std::get<GraphRef>(value).index);
    case AttrKind::kGraphs:
      out->push_back('[');
      for (GraphRef g : std::get<std::vector<GraphRef>>(value)) StrAppend(out, " graph#", g.index);
      out->append(" ]");
      return;
  }
}

Status CheckAttrs(const AttrList& attrs, std::span<const AttrDef> defs) {
  for (const Attr& a : attrs) {
    const AttrDef* def = FindDef(defs, a.name);
    if (def == nullptr) return InvalidModel("attribute '", a.name, "' is unknown to this op");
    MSRT_RETURN_IF_ERROR(CheckValue(*def, a.value));
  }
  for (const AttrDef& def : defs) {
    if (def.required && attrs.Find(def.name) == nullptr)
      return InvalidModel("attribute '", def.name, "' is missing");
  }
  return OkStatus();
}

}  // namespace msrt

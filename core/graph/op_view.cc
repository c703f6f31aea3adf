#include "core/graph/op_view.h"

namespace msrt {

const AttrDef* OpView::DefOf(std::string_view attr) const {
  for (const AttrDef& d : defs_) {
    if (d.name == attr) return &d;
  }
  return nullptr;
}

int64_t OpView::Int(std::string_view attr) const {
  if (const AttrValue* v = attrs_->Find(attr)) return std::get<int64_t>(*v);
  const AttrDef* def = DefOf(attr);
  return def != nullptr ? def->default_int : 0;
}

double OpView::Float(std::string_view attr) const {
  if (const AttrValue* v = attrs_->Find(attr)) return std::get<double>(*v);
  const AttrDef* def = DefOf(attr);
  return def != nullptr ? def->default_float : 0;
}

std::string_view OpView::String(std::string_view attr) const {
  if (const AttrValue* v = attrs_->Find(attr)) return std::get<std::string>(*v);
  const AttrDef* def = DefOf(attr);
  return def != nullptr ? def->default_string : std::string_view();
}

std::span<const int64_t> OpView::Ints(std::string_view attr) const {
  const AttrValue* v = attrs_->Find(attr);
  return v != nullptr ? std::span<const int64_t>(std::get<std::vector<int64_t>>(*v))
                      : std::span<const int64_t>();
}

std::span<const double> OpView::Floats(std::string_view attr) const {
  const AttrValue* v = attrs_->Find(attr);
  return v != nullptr ? std::span<const double>(std::get<std::vector<double>>(*v))
                      : std::span<const double>();
}

DType OpView::Dtype(std::string_view attr) const {
  const AttrValue* v = attrs_->Find(attr);
  return v != nullptr ? std::get<DType>(*v) : DType::kNone;
}

const ConstTensor* OpView::Tensor(std::string_view attr) const {
  const AttrValue* v = attrs_->Find(attr);
  return v != nullptr ? &std::get<ConstTensor>(*v) : nullptr;
}

}  // namespace msrt

// A node as ops and kernels see it: its op, its attributes with defaults filled in, the types of
// its inputs and outputs. It owns nothing and is built on the stack, so the same code serves a node
// of a graph, a piece of one made by `localize`, and a test that has no graph at all.
#pragma once

#include <span>
#include <string_view>

#include "core/graph/attribute.h"

namespace msrt {

class CustomOp;  // ops/custom_op.h

class OpView {
 public:
  // All spans and pointers must outlive the view. An omitted optional input is a null type.
  // `constants` may be empty.
  OpView(std::string_view domain, std::string_view op, std::string_view node_name,
         const AttrList* attrs, std::span<const AttrDef> defs, std::span<const Type* const> inputs,
         std::span<const Type* const> outputs, std::span<const ConstTensor* const> constants = {})
      : domain_(domain),
        op_(op),
        name_(node_name),
        attrs_(attrs),
        defs_(defs),
        inputs_(inputs),
        outputs_(outputs),
        constants_(constants) {}

  // The same node with other types, such as those of a binding or of a piece.
  OpView WithTypes(std::span<const Type* const> inputs, std::span<const Type* const> outputs,
                   std::span<const ConstTensor* const> constants = {}) const {
    return OpView(domain_, op_, name_, attrs_, defs_, inputs, outputs, constants)
        .WithCustom(custom_);
  }
  // The same node with other attributes, such as those of a piece; both must outlive the view.
  OpView WithAttrs(const AttrList* attrs, std::span<const AttrDef> defs) const {
    OpView view = *this;
    view.attrs_ = attrs;
    view.defs_ = defs;
    return view;
  }
  // The same node, whose op is defined by the application.
  OpView WithCustom(const CustomOp* custom) const {
    OpView view = *this;
    view.custom_ = custom;
    return view;
  }

  std::string_view domain() const { return domain_; }
  std::string_view op() const { return op_; }
  std::string_view name() const { return name_; }
  const AttrList& attrs() const { return *attrs_; }
  std::span<const AttrDef> attr_defs() const { return defs_; }  // of the op's entry
  const CustomOp* custom() const { return custom_; }            // null for the library's own ops

  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  bool has_input(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const Type& input(size_t i) const { return *inputs_[i]; }
  const Type& output(size_t i) const { return *outputs_[i]; }
  bool has_output(size_t i) const { return i < outputs_.size() && outputs_[i] != nullptr; }
  // The value of input i where it is known before the run (a constant, a shape); null otherwise.
  const ConstTensor* constant(size_t i) const {
    return i < constants_.size() ? constants_[i] : nullptr;
  }

  // Attribute values. For an absent attribute these return the entry's default, for an absent list
  // an empty span. Requires checked kinds.
  bool Has(std::string_view attr) const { return attrs_->Find(attr) != nullptr; }
  int64_t Int(std::string_view attr) const;
  double Float(std::string_view attr) const;
  std::string_view String(std::string_view attr) const;
  std::span<const int64_t> Ints(std::string_view attr) const;
  std::span<const double> Floats(std::string_view attr) const;
  DType Dtype(std::string_view attr) const;                // kNone when absent
  const ConstTensor* Tensor(std::string_view attr) const;  // null when absent

 private:
  const AttrDef* DefOf(std::string_view attr) const;
  std::string_view domain_, op_, name_;
  const AttrList* attrs_;
  std::span<const AttrDef> defs_;
  std::span<const Type*const> inputs_, outputs_;
  std::span<const ConstTensor* const> constants_;
  const CustomOp* custom_ = nullptr;
};

}  // namespace msrt

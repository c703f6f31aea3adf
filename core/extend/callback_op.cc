#include "core/extend/callback_op.h"

#include <algorithm>

#include "core/delegate/attr_views.h"
#include "core/delegate/boundary.h"
#include "core/delegate/host.h"
#include "core/delegate/offered_graph.h"

namespace msrt {
namespace {

// An OpView as the msrt_node_view that callbacks get.
class CallbackView {
 public:
  CallbackView(const OpView& op, int32_t version, size_t output_count)
      : domain_(op.domain()), op_(op.op()), name_(op.name()) {
    values_.reserve(op.input_count() + output_count);
    for (size_t i = 0; i < op.input_count(); ++i) values_.push_back(InputOf(op, i));
    for (size_t i = 0; i < output_count; ++i) values_.push_back(OutputOf(op, i));
    attrs_ = store_.ViewsOf(op.attrs(), op.attr_defs());
    view_.version = version;
    view_.domain = domain_.c_str();
    view_.op = op_.c_str();
    view_.name = name_.c_str();
    view_.inputs = values_.data();
    view_.input_count = op.input_count();
    view_.outputs = values_.data() + op.input_count();
    view_.output_count = output_count;
    view_.attrs = attrs_.data();
    view_.attr_count = attrs_.size();
  }
  CallbackView(const CallbackView&) = delete;
  CallbackView& operator=(const CallbackView&) = delete;
  const msrt_node_view* get() const { return &view_; }

 private:
  static msrt_value_view Unknown(int64_t id) {
    msrt_value_view view{};
    view.state_slot = -1;
    view.id = id;
    view.declared.rank = view.typical.rank = -1;
    return view;
  }
  static msrt_value_view InputOf(const OpView& op, size_t i) {
    msrt_value_view view = Unknown(op.has_input(i) ? static_cast<int64_t>(i) : -1);
    if (!op.has_input(i)) return view;
    view.declared = view.typical = ShapeOf(op.input(i));
    if (op.constant(i) != nullptr) view.constant = op.constant(i)->bytes.data();
    return view;
  }
  // Inference may come before the outputs exist.
  static msrt_value_view OutputOf(const OpView& op, size_t i) {
    const bool left_out = i < op.output_count() && !op.has_output(i);
    msrt_value_view view = Unknown(left_out ? -1 : static_cast<int64_t>(op.input_count() + i));
    if (op.has_output(i) && op.output(i).concrete())
      view.declared = view.typical = ShapeOf(op.output(i));
    return view;
  }

  std::string domain_, op_, name_;  // zero-terminated copies: a string_view need not be
  std::vector<msrt_value_view> values_;
  AttrStore store_;
  std::vector<msrt_attr_view> attrs_;
  msrt_node_view view_ = MSRT_INIT(msrt_node_view);
};

// Callbacks may return an input's symbolic dim; any other negative number is a mistake.
bool IsSymbolOfInput(const OpView& op, int64_t symbol) {
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (op.has_input(i) && std::find(op.input(i).dims.begin(), op.input(i).dims.end(), symbol) !=
                               op.input(i).dims.end())
      return true;
  }
  return false;
}

Result<Type> TypeFrom(const OpView& op, const msrt_shape& shape) {
  if (shape.dtype < 0 || !IsDType(static_cast<uint32_t>(shape.dtype)))
    return InvalidModel("element type ", shape.dtype);
  if (shape.rank < -1 || shape.rank > kMaxRank)
    return InvalidModel("rank ", shape.rank, ", must be from -1 (open) to ", kMaxRank);
  const auto dtype = static_cast<DType>(shape.dtype);
  if (shape.rank == -1) return Type::UnrankedTensor(dtype);
  Dims dims;
  for (int i = 0; i < shape.rank; ++i) {
    int64_t d = shape.dims[i];
    if (d == MSRT_UNKNOWN_DIM) {
      d = kUnknownDim;
    } else if (d < 0) {
      // Symbols are numbered downwards from -2; see ShapeOf.
      const bool fits = d >= -2 - int64_t{UINT32_MAX};
      const int64_t symbol = fits ? SymbolDim(static_cast<uint32_t>(-2 - d)) : kUnknownDim;
      if (!fits || !IsSymbolOfInput(op, symbol))
        return InvalidModel("dims[", i, "] = ", d, ", must be at least -1 (open)");
      d = symbol;
    }
    dims.push_back(d);
  }
  return Type::Tensor(dtype, dims);
}

msrt_box BoxView(const Box& box) {
  msrt_box view{};
  view.rank = box.rank();
  for (int i = 0; i < box.rank(); ++i) {
    view.begin[i] = box[i].begin;
    view.end[i] = box[i].end;
  }
  return view;
}

std::vector<msrt_box> BoxViews(std::span<const Box> boxes) {
  std::vector<msrt_box> views;
  for (const Box& box : boxes) views.push_back(BoxView(box));
  return views;
}

// Returns the box as a part of a tensor of these dims, or why it is not one.
Result<Box> PartOf(const Dims& dims, const msrt_box& box) {
  if (box.rank != dims.rank()) return InvalidModel("has rank ", box.rank, ", the tensor ", dims);
  Box part;
  for (int i = 0; i < dims.rank(); ++i) {
    const Interval interval{box.begin[i], box.end[i]};
    if (interval.begin < 0 || interval.begin > interval.end || interval.end > dims[i]) {
      return InvalidModel("is ", interval, " along dim ", i, " of a tensor ", dims);
    }
    part.push_back(interval);
  }
  return part;
}

class CallbackOp final : public CustomOp {
 public:
  CallbackOp(const msrt_op_desc& desc, CallbackOwner owner)
      : owner_(std::move(owner)), host_(owner_.services), desc_(desc) {}

  Status Infer(InferContext& context) const override {
    const CallbackView view(context.op(), owner_.version, context.output_count());
    msrt_shape open{};
    open.rank = -1;
    std::vector<msrt_shape> shapes(context.output_count(), open);
    MSRT_RETURN_IF_ERROR(
        Ask("infer", [&] { return desc_.infer(owner_.user, host(), view.get(), shapes.data()); }));
    for (size_t i = 0; i < shapes.size(); ++i) {
      auto type = TypeFrom(context.op(), shapes[i]);
      if (!type.ok()) return Wrong("infer", StrCat("output ", i), type.status());
      context.SetOutput(i, *std::move(type));
    }
    return OkStatus();
  }

  Cost CostOf(const OpView& op) const override {
    Cost cost = CostOfTraffic(op);
    if (desc_.flops == nullptr) return cost;
    const CallbackView view(op, owner_.version, op.output_count());
    double flops = -1;
    const bool said = CatchAsStatus([&] { flops = desc_.flops(owner_.user, view.get()); }).ok();
    if (said && flops >= 0 && flops < 1e18)
      cost.flops = flops;  // any other value is not a number of operations
    return cost;
  }

  Status Axes(const OpView& op, IterationSpace* space) const override {
    const CallbackView view(op, owner_.version, op.output_count());
    msrt_axis axes[MSRT_MAX_AXES] = {};
    int32_t count = 0;
    MSRT_RETURN_IF_ERROR(
        Ask("axes", [&] { return desc_.axes(owner_.user, host(), view.get(), axes, &count); }));
    static_assert(MSRT_MAX_AXES == Box::kMaxAxes);
    if (count < 0 || count > MSRT_MAX_AXES)
      return Wrong("axes", "axis_count",
                   InvalidModel(count, ", must be from 0 to ", MSRT_MAX_AXES));
    for (int32_t i = 0; i < count; ++i) {
      const msrt_axis& axis = axes[i];
      const bool reduces = axis.kind == MSRT_AXIS_REDUCE;
      const bool good = axis.kind >= MSRT_AXIS_PARALLEL && axis.kind <= MSRT_AXIS_WHOLE &&
                        axis.extent >= 0 && axis.extent <= kMaxElements &&
                        axis.monoid >= (reduces ? MSRT_MONOID_SUM : MSRT_MONOID_NONE) &&
                        axis.monoid <= MSRT_MONOID_MIN;
      if (!good) {
        return Wrong(
            "axes", StrCat("axis ", i),
            InvalidModel("kind ", axis.kind, ", extent ", axis.extent, ", monoid ", axis.monoid));
      }
      space->Add(static_cast<AxisKind>(axis.kind), axis.extent,
                 reduces ? static_cast<Monoid>(axis.monoid) : Monoid::kNone);
    }
    return OkStatus();
  }

  Status Operands(const OpView& op, const Box& box, std::span<Box> inputs) const override {
    return Parts("operands", desc_.operands, op, box, inputs,
                 [&](size_t i) { return op.has_input(i) ? &op.input(i) : nullptr; });
  }
  Status Results(const OpView& op, const Box& box, std::span<Box> outputs) const override {
    return Parts("results", desc_.results, op, box, outputs,
                 [&](size_t i) { return op.has_output(i) ? &op.output(i) : nullptr; });
  }

  Status Localize(const OpView& op, const Box& box, std::span<const Box> inputs,
                  std::span<const Box> outputs, AttrList* attrs) const override {
    if (desc_.localize == nullptr) return OkStatus();
    const CallbackView view(op, owner_.version, op.output_count());
    const msrt_box piece = BoxView(box);
    const std::vector<msrt_box> in = BoxViews(inputs), out = BoxViews(outputs);
    LocalAttrs local;
    msrt_attr_sink sink{};
    sink.sink = &local;
    sink.set_int = [](void* s, const char* name, int64_t value) {
      static_cast<LocalAttrs*>(s)->Set(name, value);
    };
    sink.set_ints = [](void* s, const char* name, const int64_t* values, size_t count) {
      static_cast<LocalAttrs*>(s)->SetList(name, values, count);
    };
    MSRT_RETURN_IF_ERROR(Ask("localize", [&] {
      return desc_.localize(owner_.user, host(), view.get(), &piece, in.data(), out.data(), &sink);
    }));
    if (local.out_of_memory) throw std::bad_alloc();
    if (local.no_values)
      return Wrong("localize", "a list", InvalidModel("a count, but NULL for the values"));
    for (Attr& attr : local.attrs) {
      const auto is_it = [&](const AttrDef& def) {
        return def.local && def.name == attr.name && def.kind == KindOf(attr.value);
      };
      if (std::none_of(op.attr_defs().begin(), op.attr_defs().end(), is_it)) {
        return Wrong("localize", StrCat("'", attr.name, "'"),
                     InvalidModel("no local attribute of this name and kind"));
      }
      attrs->Set(attr.name, std::move(attr.value));
    }
    return OkStatus();
  }

 private:
  // Nothing may be thrown through a callback.
  struct LocalAttrs {
    std::vector<Attr> attrs;
    bool out_of_memory = false, no_values = false;
    void Set(const char* name, AttrValue value) noexcept {
      try {
        attrs.push_back({name == nullptr ? "" : name, std::move(value)});
      } catch (...) {
        out_of_memory = true;
      }
    }
    void SetList(const char* name, const int64_t* values, size_t count) noexcept {
      no_values |= values == nullptr && count != 0;
      if (no_values) return;
      try {
        Set(name, std::vector<int64_t>(values, values + count));
      } catch (...) {  // also if the count exceeds all memory
        out_of_memory = true;
      }
    }
  };

  const msrt_host_api* host() const { return host_.api(); }
  std::string Kernel() const { return StrCat("kernel '", owner_.kernel, "'"); }

  template <typename Call>
  Status Ask(std::string_view callback, const Call& call) const {
    Status status = CallCallback(call);
    return status.ok() ? status : std::move(status).Within(StrCat(Kernel(), ": ", callback));
  }
  Status Wrong(std::string_view callback, std::string_view what, const Status& why) const {
    return InvalidModel(Kernel(), ": its ", callback, " returned for ", what, ": ", why.message());
  }

  using PartsFn = msrt_status (*)(void*, const msrt_host_api*, const msrt_node_view*,
                                  const msrt_box*, msrt_box*);
  template <typename TypeAt>
  Status Parts(std::string_view callback, PartsFn parts, const OpView& op, const Box& box,
               std::span<Box> out, TypeAt type_at) const {
    const CallbackView view(op, owner_.version, op.output_count());
    const msrt_box piece = BoxView(box);
    std::vector<msrt_box> boxes(out.size());
    MSRT_RETURN_IF_ERROR(Ask(
        callback, [&] { return parts(owner_.user, host(), view.get(), &piece, boxes.data()); }));
    for (size_t i = 0; i < out.size(); ++i) {
      const Type* type = type_at(i);
      if (type == nullptr) continue;
      auto part = PartOf(type->dims, boxes[i]);
      if (!part.ok())
        return Wrong(callback, StrCat("tensor ", i),
                     InvalidModel("a box that ", part.status().message()));
      out[i] = *std::move(part);
    }
    return OkStatus();
  }

  const CallbackOwner owner_;
  const Host host_;
  const msrt_op_desc desc_;  // its attrs are not used: the caller may have freed them
};

}  // namespace

std::unique_ptr<const CustomOp> MakeCallbackOp(const msrt_op_desc& desc, CallbackOwner owner) {
  return std::make_unique<CallbackOp>(desc, std::move(owner));
}

}  // namespace msrt

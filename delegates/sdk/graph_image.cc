#include "delegates/sdk/graph_image.h"

namespace msrt::sdk {
namespace {

ConstTensor BorrowTensor(const msrt_shape& shape, const void* data) {
  ConstTensor t;
  const Type type = TypeOf(shape);
  t.dtype = type.dtype;
  t.dims = type.dims;
  t.bytes = {static_cast<const std::byte*>(data), BytesOf(type.dtype, type.elements())};
  return t;
}

AttrValue ValueOf(const msrt_attr_view& a) {
  switch (static_cast<AttrKind>(a.kind)) {
    case AttrKind::kInt:
      return a.ints[0];
    case AttrKind::kFloat:
      return a.floats[0];
    case AttrKind::kString:
      return std::string(a.strings[0]);
    case AttrKind::kInts:
      return std::vector<int64_t>(a.ints, a.ints + a.count);
    case AttrKind::kFloats:
      return std::vector<double>(a.floats, a.floats + a.count);
    case AttrKind::kStrings:
      return std::vector<std::string>(a.strings, a.strings + a.count);
    case AttrKind::kDType:
      return static_cast<DType>(a.dtype);
    case AttrKind::kTensor:
      return BorrowTensor(a.tensor_shape, a.tensor_data);
    case AttrKind::kGraph:
      return GraphRef{static_cast<uint32_t>(a.ints[0])};
    case AttrKind::kGraphs:
      break;
  }
  std::vector<GraphRef> refs;
  for (size_t i = 0; i < a.count; ++i) refs.push_back({static_cast<uint32_t>(a.ints[i])});
  return refs;
}

}  // namespace

Type TypeOf(const msrt_shape& shape) {
  const auto dtype = static_cast<DType>(shape.dtype);
  if (shape.rank < 0) return Type::UnrankedTensor(dtype);
  Dims dims(std::span<const int64_t>(shape.dims, static_cast<size_t>(shape.rank)));
  // The host counts symbols downwards from -2.
  for (int64_t& d : dims) {
    if (d < 0) d = d == MSRT_UNKNOWN_DIM ? kUnknownDim : SymbolDim(static_cast<uint32_t>(-2 - d));
  }
  return Type::Tensor(dtype, dims);
}

NodeImage::NodeImage(const msrt_node_view& node)
    : declared_(SideOf(node, &msrt_value_view::declared)),
      typical_(SideOf(node, &msrt_value_view::typical)),
      declared_view_(node.domain, node.op, node.name, &attrs_.attrs(), {}, {}, {}),
      typical_view_(declared_view_),
      flops_(node.flops),
      bytes_(node.bytes) {
  for (size_t i = 0; i < node.attr_count; ++i) attrs_.Set(node.attrs[i]);
  for (size_t i = 0; i < node.input_count; ++i) {
    const msrt_value_view& v = node.inputs[i];
    input_ids_.push_back(v.id);
    parameters_.push_back(v.state_slot >= 0 && v.state_role == MSRT_STATE_PARAMETER);
    constants_.push_back(v.constant == nullptr
                             ? nullptr
                             : &constant_data_.emplace_back(BorrowTensor(v.declared, v.constant)));
  }
  for (size_t i = 0; i < node.output_count; ++i) output_ids_.push_back(node.outputs[i].id);
  const OpView bare(node.domain, node.op, node.name, &attrs_.attrs(), attrs_.defs(), {}, {});
  declared_view_ = bare.WithTypes(declared_.inputs, declared_.outputs, constants_);
  typical_view_ = bare.WithTypes(typical_.inputs, typical_.outputs, constants_);
}

NodeImage::Side NodeImage::SideOf(const msrt_node_view& node,
                                  const msrt_shape msrt_value_view::*shape) {
  Side side;
  side.types.reserve(node.input_count + node.output_count);  // keeps pointers into it valid
  const auto add = [&](const msrt_value_view& v, std::vector<const Type*>* out) {
    out->push_back(v.id < 0 ? nullptr : &side.types.emplace_back(TypeOf(v.*shape)));
  };
  for (size_t i = 0; i < node.input_count; ++i) add(node.inputs[i], &side.inputs);
  for (size_t i = 0; i < node.output_count; ++i) add(node.outputs[i], &side.outputs);
  return side;
}

void AttrImage::Set(const msrt_attr_view& a) {
  const bool is_default = (a.flags & MSRT_ATTR_IS_DEFAULT) != 0;
  if (is_default) attrs_.Remove(a.name);
  else attrs_.Set(a.name, ValueOf(a));
  std::erase_if(defs_, [&](const AttrDef& d) { return d.name == a.name; });
  if (is_default && a.count == 0) return;
  if (!is_default && (a.flags & MSRT_ATTR_IS_LOCAL) == 0) return;
  AttrDef def;
  def.name = a.name;
  def.kind = static_cast<AttrKind>(a.kind);
  def.local = (a.flags & MSRT_ATTR_IS_LOCAL) != 0;
  if (is_default && def.kind == AttrKind::kInt) def.default_int = a.ints[0];
  if (is_default && def.kind == AttrKind::kFloat) def.default_float = a.floats[0];
  if (is_default && def.kind == AttrKind::kString) def.default_string = a.strings[0];
  defs_.push_back(def);
}

const NodeImage& GraphImage::image(size_t index) const {
  auto it = images_.find(index);
  if (it == images_.end())
    it = images_.try_emplace(images_.end(), index, *view_.node(view_.graph, index));
  return it->second;
}

}  // namespace msrt::sdk

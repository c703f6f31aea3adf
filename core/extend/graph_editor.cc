#include "core/extend/graph_editor.h"

#include <algorithm>

#include "core/base/countable.h"
#include "core/delegate/boundary.h"
#include "ops/builder.h"

namespace msrt {
namespace {

Result<Type> TypeArgument(const msrt_shape& shape, std::string_view what) {
  if (!IsDType(static_cast<uint32_t>(shape.dtype)) || shape.dtype == 0)
    return InvalidArgument(what, " has element type ", shape.dtype);
  const auto dtype = static_cast<DType>(shape.dtype);
  if (shape.rank < 0) return Type::UnrankedTensor(dtype);
  if (shape.rank > kMaxRank)
    return InvalidArgument(what, " has rank ", shape.rank, ", at most ", kMaxRank, " is possible");
  Dims dims;
  // An open dim stays open; inference finds again which other dim it equals.
  for (int i = 0; i < shape.rank; ++i)
    dims.push_back(shape.dims[i] < 0 ? kUnknownDim : shape.dims[i]);
  if (!IsCountable(dims))
    return InvalidArgument(what, " has dims ", dims, ", which are more than 2^56 elements");
  return Type::Tensor(dtype, dims);
}

Result<ConstTensor> TensorArgument(const msrt_shape& shape, const void* data,
                                   std::string_view what) {
  MSRT_ASSIGN_OR_RETURN(const Type type, TypeArgument(shape, what));
  if (!type.concrete()) return InvalidArgument(what, " cannot be ", type);
  const size_t bytes = type.bytes();
  if (data == nullptr && bytes != 0) return InvalidArgument(what, " has no data");
  return ConstTensor::Copy(type.dtype, type.dims, {static_cast<const std::byte*>(data), bytes});
}

template <typename T, typename U>
std::vector<T> ListOf(const U* values, size_t count) {
  return std::vector<T>(values, values + count);
}

Result<AttrValue> AttrArgument(const msrt_attr_view& attr) {
  const std::string what = StrCat("attribute '", attr.name, "'");
  const auto need = [&](const void* list) -> Status {
    const bool single =
        attr.kind == MSRT_ATTR_INT || attr.kind == MSRT_ATTR_FLOAT || attr.kind == MSRT_ATTR_STRING;
    if ((single && attr.count != 1) || (list == nullptr && attr.count != 0))
      return InvalidArgument(what, " has no value");
    return OkStatus();
  };
  const auto need_strings = [&]() -> Status {
    MSRT_RETURN_IF_ERROR(need(attr.strings));
    const bool whole = std::none_of(attr.strings, attr.strings + attr.count,
                                    [](const char* s) { return s == nullptr; });
    return whole ? OkStatus() : InvalidArgument(what, " has a string that is NULL");
  };
  switch (attr.kind) {
    case MSRT_ATTR_INT:
      MSRT_RETURN_IF_ERROR(need(attr.ints));
      return AttrValue(attr.ints[0]);
    case MSRT_ATTR_INTS:
      MSRT_RETURN_IF_ERROR(need(attr.ints));
      return AttrValue(ListOf<int64_t>(attr.ints, attr.count));
    case MSRT_ATTR_FLOAT:
      MSRT_RETURN_IF_ERROR(need(attr.floats));
      return AttrValue(attr.floats[0]);
    case MSRT_ATTR_FLOATS:
      MSRT_RETURN_IF_ERROR(need(attr.floats));
      return AttrValue(ListOf<double>(attr.floats, attr.count));
    case MSRT_ATTR_STRING:
      MSRT_RETURN_IF_ERROR(need_strings());
      return AttrValue(std::string(attr.strings[0]));
    case MSRT_ATTR_STRINGS:
      MSRT_RETURN_IF_ERROR(need_strings());
      return AttrValue(ListOf<std::string>(attr.strings, attr.count));
    case MSRT_ATTR_DTYPE:
      if (!IsDType(static_cast<uint32_t>(attr.dtype)))
        return InvalidArgument(what, " is no element type");
      return AttrValue(static_cast<DType>(attr.dtype));
    case MSRT_ATTR_TENSOR: {
      MSRT_ASSIGN_OR_RETURN(ConstTensor tensor,
                            TensorArgument(attr.tensor_shape, attr.tensor_data, what));
      return AttrValue(std::move(tensor));
    }
    default:
      return InvalidArgument(what, " is of kind ", attr.kind, ", which no application can set");
  }
}

}  // namespace

msrt_graph_editor GraphEditor::api() {
  msrt_graph_editor api = MSRT_INIT(msrt_graph_editor);
  api.editor = this;
  api.add_constant = [](void* self, const char* name, const msrt_shape* shape, const void* data,
                        int64_t* value) {
    return ToStatusCode(
        [&] { return static_cast<GraphEditor*>(self)->AddConstant(name, shape, data, value); });
  };
  api.add_node = [](void* self, size_t before, const char* domain, const char* op, const char* name,
                    const int64_t* inputs, size_t input_count, const msrt_attr_view* attrs,
                    size_t attr_count, const msrt_shape* declared, int64_t* outputs,
                    size_t output_count) {
    return ToStatusCode([&]() -> Status {
      const bool whole = op != nullptr && (inputs != nullptr || input_count == 0) &&
                         (attrs != nullptr || attr_count == 0) &&
                         (outputs != nullptr || output_count == 0);
      if (!whole) return InvalidArgument("add_node: op, inputs, attrs or outputs is NULL");
      return static_cast<GraphEditor*>(self)->AddNode({before,
                                                       domain,
                                                       op,
                                                       name,
                                                       {inputs, input_count},
                                                       {attrs, attr_count},
                                                       declared,
                                                       {outputs, output_count}});
    });
  };
  api.replace = [](void* self, int64_t from, int64_t to) {
    return ToStatusCode([&] { return static_cast<GraphEditor*>(self)->Replace(from, to); });
  };
  return api;
}

Result<ValueId> GraphEditor::ValueArgument(int64_t id, std::string_view what) const {
  if (id >= 0 && static_cast<size_t>(id) < graph_.value_count())
    return ValueId(static_cast<uint32_t>(id));
  return InvalidArgument(what, ": there is no value ", id);
}

Status GraphEditor::AddConstant(const char* name, const msrt_shape* shape, const void* data,
                                int64_t* value) {
  if (shape == nullptr || value == nullptr)
    return InvalidArgument("add_constant: shape or value is NULL");
  MSRT_ASSIGN_OR_RETURN(ConstTensor tensor, TensorArgument(*shape, data, "add_constant"));
  *value = IndexOf(graph_.AddConstant(name == nullptr ? "" : name, std::move(tensor)));
  return OkStatus();
}

Status GraphEditor::AddNode(const NewNode& node) {
  std::vector<ValueId> inputs;
  for (int64_t id : node.inputs) {
    if (id == -1) {
      inputs.push_back(kNoValue);
      continue;
    }
    MSRT_ASSIGN_OR_RETURN(const ValueId value, ValueArgument(id, "add_node"));
    inputs.push_back(value);
  }
  AttrList attrs;
  for (const msrt_attr_view& attr : node.attrs) {
    if (attr.name == nullptr) return InvalidArgument("add_node: an attribute has no name");
    if ((attr.flags & MSRT_ATTR_IS_DEFAULT) != 0)
      continue;  // copied from a view: the op has the same default
    MSRT_ASSIGN_OR_RETURN(AttrValue value, AttrArgument(attr));
    attrs.Set(attr.name, std::move(value));
  }
  std::vector<Type> declared;
  for (size_t i = 0; node.declared != nullptr && i < node.outputs.size(); ++i) {
    MSRT_ASSIGN_OR_RETURN(Type type, TypeArgument(node.declared[i], StrCat("output ", i)));
    declared.push_back(std::move(type));
  }
  const std::string_view domain = node.domain == nullptr ? "" : node.domain,
                         name = node.name == nullptr ? node.op : node.name;
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                        GraphBuilder(&graph_, ops_)
                            .Add(domain, node.op, name, std::move(inputs), std::move(attrs),
                                 node.outputs.size(), std::move(declared)));
  for (size_t i = 0; i < outputs.size(); ++i) node.outputs[i] = IndexOf(outputs[i]);
  before_.push_back(std::min(node.before, original_nodes_));
  return OkStatus();
}

Status GraphEditor::Replace(int64_t from_id, int64_t to_id) {
  MSRT_ASSIGN_OR_RETURN(const ValueId from, ValueArgument(from_id, "replace"));
  MSRT_ASSIGN_OR_RETURN(const ValueId to, ValueArgument(to_id, "replace"));
  const auto fits = MergeTypes(graph_.value(from).type, graph_.value(to).type);
  if (!fits.ok())
    return InvalidArgument("replace: value ", from_id, " by ", to_id, ": ",
                           fits.status().message());
  const bool is_output =
      std::find(graph_.outputs.begin(), graph_.outputs.end(), from) != graph_.outputs.end();
  if (is_output) std::swap(graph_.value(from).name, graph_.value(to).name);
  graph_.ReplaceUses(from, to);
  return OkStatus();
}

void GraphEditor::Finish() {
  std::vector<std::pair<size_t, Node>> placed;  // by the original node that they go before
  placed.reserve(graph_.nodes.size());
  for (size_t i = 0; i < before_.size(); ++i)
    placed.emplace_back(before_[i], std::move(graph_.nodes[original_nodes_ + i]));
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Node> nodes;
  nodes.reserve(graph_.nodes.size());
  auto next = placed.begin();
  for (size_t n = 0; n <= original_nodes_; ++n) {
    for (; next != placed.end() && next->first == n; ++next)
      nodes.push_back(std::move(next->second));
    if (n < original_nodes_) nodes.push_back(std::move(graph_.nodes[n]));
  }
  graph_.nodes = std::move(nodes);
}

}  // namespace msrt

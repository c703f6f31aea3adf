#include "core/passes/loop_shape.h"

#include "ops/infer.h"

namespace msrt {

int64_t ScanLength(const Graph& graph, const Node& node, const ControlShape& shape) {
  const AttrValue* given = node.attrs.Find("scan_input_axes");
  const auto* axes = given == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(given);
  int64_t length = -1;
  for (size_t i = 0; i < shape.scan_inputs; ++i) {
    const Type& type = graph.value(node.inputs[shape.carried + i]).type;
    const int64_t axis = axes == nullptr || i >= axes->size() ? 0 : (*axes)[i];
    if (!type.concrete()) return -1;
    const auto a = NormalizeAxis(axis, type.rank());
    if (!a.ok() || (i != 0 && type.dims[*a] != length)) return -1;
    length = type.dims[*a];
  }
  return length;
}

std::optional<int64_t> ConstantNumber(const Graph& graph, ValueId v) {
  const ConstTensor* t = v == kNoValue ? nullptr : graph.value(v).constant.get();
  if (t == nullptr || t->dims.elements() != 1) return std::nullopt;
  if (t->dtype == DType::kBool) return static_cast<int64_t>(t->As<uint8_t>()[0] != 0);
  if (t->dtype == DType::kI32 || t->dtype == DType::kI64) return IntValues(*t)[0];
  return std::nullopt;
}

}  // namespace msrt

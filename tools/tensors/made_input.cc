#include "tools/tensors/made_input.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "core/base/half.h"

namespace msrt {
namespace {

template <typename T, typename Draw>
ConstTensor Fill(DType dtype, const Dims& dims, Draw draw) {
  std::vector<T> values(static_cast<size_t>(dims.elements()));
  for (T& v : values) v = draw();
  return ConstTensor::Of<T>(dtype, dims, values);
}

// How many different numbers an input of integers may hold: those that every table has which it, or a copy of it in another shape or type,
// looks up.
int64_t TokensOf(const Graph& graph, ValueId input) {
  constexpr std::string_view kCopies[] = {"Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Flatten"};
  int64_t tokens = 100;
  std::unordered_set<ValueId> copies{input};
  for (const Node& node : graph.nodes) {
    const auto reads = [&](size_t i) { return i < node.inputs.size() && copies.count(node.inputs[i]) != 0; };
    if (reads(0) && std::find(std::begin(kCopies), std::end(kCopies), node.op) != std::end(kCopies)) copies.insert(node.outputs[0]);
    if (node.op != "Gather" || !reads(1)) continue;
    const Type& table = graph.value(node.inputs[0]).type;
    const AttrValue* given = node.attrs.Find("axis");
    const int64_t* axis = given == nullptr ? nullptr : std::get_if<int64_t>(given);
    if (axis != nullptr && *axis != 0) continue;
    if (table.rank_known && table.rank() > 0 && table.dims[0] > 0) tokens = std::min(tokens, table.dims[0]);
  }
  return tokens;
}

}  // namespace

Result<Dims> ParseShape(const std::string& text) {
  Dims dims;
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    int64_t dim = -1;
    const auto [next, error] = std::from_chars(p, end, dim);
    if (error != std::errc() || dim < 0 || dims.rank() == kMaxRank || (next != end && *next != 'x')) {
      return InvalidArgument("shape '", text, "' must be like 1x3x224x224, with at most ", kMaxRank, " dims");
    }
    dims.push_back(dim);
    p = next == end ? end : next + 1;
  }
  return dims;
}

std::string ShapeText(const Dims& dims) {
  std::string out;
  for (int i = 0; i < dims.rank(); ++i) StrAppend(&out, i == 0 ? "" : "x", dims[i]);
  return dims.empty() ? "scalar" : out;
}

Result<Dims> DimsFor(const Value& input, const std::map<std::string, Dims>& given) {
  if (const auto it = given.find(input.name); it != given.end()) return it->second;
  if (!input.type.rank_known) return InvalidArgument("input '", input.name, "' has no declared rank: give --shape ", input.name, "=...");
  Dims dims = input.type.dims;
  for (int d = 0; d < dims.rank(); ++d) {
    if (!IsKnown(dims[d])) dims[d] = d == 0 ? 1 : dims.rank() == 4 ? 224 : 128;
  }
  return dims;
}

Result<ConstTensor> RandomInput(const Graph& graph, ValueId id, const Dims& dims, std::mt19937_64& random) {
  const Value& input = graph.value(id);
  const auto tokens = static_cast<uint64_t>(TokensOf(graph, id));
  std::normal_distribution<float> normal;
  const bool mask = input.name.find("mask") != std::string::npos;
  const auto token = [&] { return mask ? 1 : static_cast<int>(random() % tokens); };
  const DType t = input.type.dtype;
  switch (t) {
    case DType::kF64:
      return Fill<double>(t, dims, [&] { return static_cast<double>(normal(random)); });
    case DType::kF32:
      return Fill<float>(t, dims, [&] { return normal(random); });
    case DType::kF16:
      return Fill<Half>(t, dims, [&] { return Half(normal(random)); });
    case DType::kBF16:
      return Fill<BFloat16>(t, dims, [&] { return BFloat16(normal(random)); });
    case DType::kI64:
    case DType::kU64:
      return Fill<int64_t>(t, dims, token);
    case DType::kI32:
    case DType::kU32:
      return Fill<int32_t>(t, dims, token);
    case DType::kI16:
    case DType::kU16:
      return Fill<int16_t>(t, dims, [&] { return static_cast<int16_t>(token()); });
    case DType::kI8:
    case DType::kU8:
      return Fill<int8_t>(t, dims, [&] { return static_cast<int8_t>(token()); });
    case DType::kBool:
      return Fill<uint8_t>(t, dims, [&] { return static_cast<uint8_t>(mask || random() % 2 == 0); });
    default:
      return Unsupported("input '", input.name, "' has type ", t, ": give it with --input");
  }
}

}  // namespace msrt

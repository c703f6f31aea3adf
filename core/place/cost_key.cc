// The key of a measured cost: everything that a kernel's time depends on, and nothing else (no
// names, no position in the graph).
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <unordered_map>

#include "core/delegate/offered_graph.h"
#include "core/place/cost_table.h"

namespace msrt {
namespace {

// A longer key (an attribute of a thousand numbers) is cut, and a hash of the whole key replaces
// the rest.
constexpr size_t kMaxKeyBytes = 4096;

std::string HashText(const void* data, size_t bytes) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(XXH64(data, bytes, 0)));
  return text;
}

// Strings of a model may contain any bytes: those that are not printable ASCII become \xNN.
void AppendEscaped(std::string* out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  for (char c : text) {
    if (c > 0x20 && c < 0x7F && c != '\\') *out += c;
    else
      StrAppend(out, "\\x", kHex[static_cast<uint8_t>(c) >> 4], kHex[static_cast<uint8_t>(c) & 15]);
  }
}

void AppendShape(std::string* out, const msrt_shape& shape) {
  StrAppend(out, DTypeName(static_cast<DType>(shape.dtype)));
  for (int i = 0; i < shape.rank; ++i) StrAppend(out, i == 0 ? "[" : ",", shape.dims[i]);
  StrAppend(out, shape.rank > 0 ? "]" : "");
}

void AppendAttr(std::string* out, const msrt_attr_view& attr) {
  *out += ' ';
  AppendEscaped(out, attr.name);
  *out += '=';
  for (size_t i = 0; i < attr.count && attr.ints != nullptr; ++i)
    StrAppend(out, i == 0 ? "" : ",", attr.ints[i]);
  for (size_t i = 0; i < attr.count && attr.floats != nullptr; ++i)
    StrAppend(out, i == 0 ? "" : ",", attr.floats[i]);
  for (size_t i = 0; i < attr.count && attr.strings != nullptr; ++i) {
    if (i != 0) *out += ',';
    AppendEscaped(out, attr.strings[i]);
  }
  if (attr.kind == MSRT_ATTR_DTYPE) StrAppend(out, DTypeName(static_cast<DType>(attr.dtype)));
  if (attr.kind != MSRT_ATTR_TENSOR) return;
  AppendShape(out, attr.tensor_shape);
  Dims dims;
  for (int i = 0; i < attr.tensor_shape.rank; ++i) dims.push_back(attr.tensor_shape.dims[i]);
  StrAppend(out, ":",
            HashText(attr.tensor_data,
                     Type::Tensor(static_cast<DType>(attr.tensor_shape.dtype), dims).bytes()));
}

// Writes the tensors of a candidate, numbered in order of first mention, so that the key shows
// which nodes share one.
class TensorNames {
 public:
  TensorNames(const OfferedGraph& graph, const Candidate& candidate) {
    const CandidateBorder border = graph.BorderOf(candidate.nodes);
    Keep(border.inputs, candidate.input_layouts);
    Keep(border.outputs, candidate.output_layouts);
  }
  void Append(std::string* out, const msrt_value_view& value) {
    if (value.id < 0) {
      *out += " _";
      return;
    }
    const auto [it, added] = numbers_.try_emplace(value.id, numbers_.size());
    StrAppend(out, " #", it->second);
    if (!added) return;
    *out += ':';
    AppendShape(out, value.typical);
    if (value.constant != nullptr) *out += "=const";
    if (value.state_slot >= 0 && value.state_role == MSRT_STATE_PARAMETER) *out += "=parameter";
    const auto layout = layouts_.find(value.id);
    if (layout != layouts_.end() && layout->second != Layout::kPlain)
      StrAppend(out, "@", layout->second);
  }

 private:
  void Keep(const std::vector<ValueId>& values, const std::vector<Layout>& layouts) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] != kNoValue) layouts_[IndexOf(values[i])] = layouts[i];
    }
  }
  std::unordered_map<int64_t, size_t> numbers_;
  std::unordered_map<int64_t, Layout> layouts_;
};

void AppendNode(std::string* out, const msrt_node_view& node, TensorNames* tensors) {
  *out += " | ";
  AppendEscaped(out, node.domain);
  if (*node.domain != '\0') *out += '.';
  AppendEscaped(out, node.op);
  StrAppend(out, "/", node.version, " (");
  for (size_t i = 0; i < node.input_count; ++i) tensors->Append(out, node.inputs[i]);
  *out += " ) ->";
  for (size_t i = 0; i < node.output_count; ++i) tensors->Append(out, node.outputs[i]);
  std::vector<const msrt_attr_view*> attrs;
  for (size_t i = 0; i < node.attr_count; ++i) {
    if ((node.attrs[i].flags & MSRT_ATTR_IS_DEFAULT) == 0) attrs.push_back(&node.attrs[i]);
  }
  std::sort(attrs.begin(), attrs.end(),
            [](const auto* a, const auto* b) { return std::string_view(a->name) < b->name; });
  for (const msrt_attr_view* attr : attrs) AppendAttr(out, *attr);
}

}  // namespace

std::string CostKey(const OfferedGraph& graph, std::string_view delegate,
                    const Candidate& candidate) {
  std::string key(delegate);
  key += ' ';
  AppendEscaped(&key, candidate.algorithm);
  TensorNames tensors(graph, candidate);
  for (uint32_t n : candidate.nodes) AppendNode(&key, graph.node(n), &tensors);
  if (key.size() <= kMaxKeyBytes) return key;
  return StrCat(key.substr(0, kMaxKeyBytes - 20), " #", HashText(key.data(), key.size()));
}

}  // namespace msrt

// Checks the graphs, nodes and attributes of a file.
#include <algorithm>

#include "core/graph/attribute.h"
#include "core/graph/sources.h"
#include "core/model/structure_check.h"

namespace msrt {
namespace {

std::string DescribeFileNode(const fbs::Model& model, uint32_t index, const fbs::Node& node) {
  std::string op = "?";
  if (node.op() < CountOf(model.ops())) {
    const fbs::Op* entry = model.ops()->Get(node.op());
    op = TextOf(entry->domain()).empty()
             ? StrCat(TextOf(entry->name()))
             : StrCat(TextOf(entry->domain()), ".", TextOf(entry->name()));
  }
  return StrCat("node ", index, " '", TextOf(node.name()), "' (", op, ")");
}

// A graph of the file, as CheckSources reads it.
class FileGraphSources {
 public:
  FileGraphSources(const fbs::Model& model, const fbs::Graph& graph)
      : model_(model), graph_(graph) {}
  size_t value_count() const { return CountOf(graph_.values()); }
  std::string_view value_name(uint32_t v) const { return TextOf(graph_.values()->Get(v)->name()); }
  bool is_constant(uint32_t v) const { return graph_.values()->Get(v)->constant() != kNoIndex; }
  std::span<const uint32_t> inputs() const { return SpanOf(graph_.inputs()); }
  std::span<const uint32_t> outputs() const { return SpanOf(graph_.outputs()); }
  size_t node_count() const { return CountOf(graph_.nodes()); }
  std::span<const uint32_t> node_inputs(size_t n) const { return SpanOf(NodeAt(n)->inputs()); }
  std::span<const uint32_t> node_outputs(size_t n) const { return SpanOf(NodeAt(n)->outputs()); }
  std::string DescribeNode(size_t n) const {
    return DescribeFileNode(model_, static_cast<uint32_t>(n), *NodeAt(n));
  }

 private:
  const fbs::Node* NodeAt(size_t n) const { return graph_.nodes()->Get(static_cast<uint32_t>(n)); }
  const fbs::Model& model_;
  const fbs::Graph& graph_;
};

}  // namespace

Status StructureCheck::CheckGraphs() {
  for (uint32_t g = 0; g < CountOf(model_.graphs()); ++g) {
    const fbs::Graph* graph = model_.graphs()->Get(g);
    MSRT_RETURN_IF_ERROR(In(CheckName(graph->name()), [&] { return StrCat("graph ", g); }));
    MSRT_RETURN_IF_ERROR(In(CheckGraph(*graph),
                            [&] { return StrCat("graph ", g, " '", TextOf(graph->name()), "'"); }));
  }
  return OkStatus();
}

Status StructureCheck::CheckGraph(const fbs::Graph& graph) {
  values_ += CountOf(graph.values());
  nodes_ += CountOf(graph.nodes());
  if (values_ > limits_.max_values)
    return LimitExceeded("more than ", limits_.max_values, " values in the model");
  if (nodes_ > limits_.max_nodes)
    return LimitExceeded("more than ", limits_.max_nodes, " nodes in the model");
  MSRT_RETURN_IF_ERROR(ChargeVector(graph.inputs()));
  MSRT_RETURN_IF_ERROR(ChargeVector(graph.outputs()));
  for (uint32_t v = 0; v < CountOf(graph.values()); ++v) {
    const fbs::Value* value = graph.values()->Get(v);
    MSRT_RETURN_IF_ERROR(In(CheckName(value->name()), [&] { return StrCat("value ", v); }));
    const auto context = [&] { return StrCat("value ", v, " '", TextOf(value->name()), "'"); };
    const bool typed = value->type() != kNoIndex, constant = value->constant() != kNoIndex;
    if (typed)
      MSRT_RETURN_IF_ERROR(In(CheckIndex("type", value->type(), CountOf(model_.types())), context));
    if (!constant) continue;
    MSRT_RETURN_IF_ERROR(
        In(CheckIndex("constant", value->constant(), CountOf(model_.constants())), context));
    if (value->type() != model_.constants()->Get(value->constant())->type()) {
      return InvalidModel(context(), ": its type is not that of its constant");
    }
  }
  for (uint32_t n = 0; n < CountOf(graph.nodes()); ++n) {
    const fbs::Node* node = graph.nodes()->Get(n);
    MSRT_RETURN_IF_ERROR(In(CheckName(node->name()), [&] { return StrCat("node ", n); }));
    MSRT_RETURN_IF_ERROR(In(CheckNode(*node), [&] { return DescribeFileNode(model_, n, *node); }));
  }
  return CheckSources(FileGraphSources(model_, graph));
}

Status StructureCheck::CheckNode(const fbs::Node& node) {
  MSRT_RETURN_IF_ERROR(CheckIndex("op", node.op(), CountOf(model_.ops())));
  MSRT_RETURN_IF_ERROR(ChargeVector(node.inputs()));
  MSRT_RETURN_IF_ERROR(ChargeVector(node.outputs()));
  const uint32_t count = CountOf(node.attrs());
  if (count > limits_.max_attrs_per_node)
    return LimitExceeded(count, " attributes, the limit is ", limits_.max_attrs_per_node);
  for (uint32_t i = 0; i < count; ++i) {
    const fbs::Attr* attr = node.attrs()->Get(i);
    const std::string_view name = TextOf(attr->name());
    MSRT_RETURN_IF_ERROR(In(CheckName(attr->name()), [&] { return StrCat("attribute ", i); }));
    if (name.empty()) return InvalidModel("attribute ", i, ": has no name");
    for (uint32_t k = 0; k < i; ++k) {
      if (TextOf(node.attrs()->Get(k)->name()) == name)
        return InvalidModel("attribute '", name, "' is given twice");
    }
    MSRT_RETURN_IF_ERROR(In(CheckAttr(*attr), [&] { return StrCat("attribute '", name, "'"); }));
  }
  return OkStatus();
}

// All fields are charged and bounded, whichever of them the kind selects.
Status StructureCheck::CheckAttr(const fbs::Attr& attr) {
  MSRT_RETURN_IF_ERROR(CheckText(attr.s(), limits_.max_attr_bytes));
  MSRT_RETURN_IF_ERROR(ChargeVector(attr.ints()));
  MSRT_RETURN_IF_ERROR(ChargeVector(attr.floats()));
  uint64_t bytes = uint64_t{8} * CountOf(attr.ints()) + uint64_t{8} * CountOf(attr.floats()) +
                   uint64_t{8} * CountOf(attr.strings());
  for (uint32_t i = 0; i < CountOf(attr.strings()); ++i) {
    const flatbuffers::String* text = attr.strings()->Get(i)->value();
    MSRT_RETURN_IF_ERROR(CheckText(text, limits_.max_attr_bytes));
    bytes += TextOf(text).size();
  }
  if (bytes > limits_.max_attr_bytes)
    return LimitExceeded("has ", bytes, " bytes, the limit is ", limits_.max_attr_bytes);
  return CheckAttrValue(attr);
}

Status StructureCheck::CheckAttrValue(const fbs::Attr& attr) {
  // A negative index becomes a huge one, out of every range.
  const auto unsigned_i = static_cast<uint64_t>(attr.i());
  switch (attr.kind()) {
    case static_cast<uint8_t>(AttrKind::kInt):
    case static_cast<uint8_t>(AttrKind::kString):
    case static_cast<uint8_t>(AttrKind::kInts):
    case static_cast<uint8_t>(AttrKind::kFloats):
    case static_cast<uint8_t>(AttrKind::kStrings):
      return OkStatus();
    case static_cast<uint8_t>(AttrKind::kFloat):
      return attr.f().has_value() ? OkStatus() : InvalidModel("is a float without a value");
    case static_cast<uint8_t>(AttrKind::kDType):
      return unsigned_i < kDTypeCount ? OkStatus()
                                      : InvalidModel("element type ", attr.i(), " is unknown");
    case static_cast<uint8_t>(AttrKind::kTensor):
      return CheckIndex("constant", unsigned_i, CountOf(model_.constants()));
    case static_cast<uint8_t>(AttrKind::kGraph):
      return CheckIndex("graph", unsigned_i, CountOf(model_.graphs()));
    case static_cast<uint8_t>(AttrKind::kGraphs):
      for (int64_t graph : SpanOf(attr.ints())) {
        MSRT_RETURN_IF_ERROR(
            CheckIndex("graph", static_cast<uint64_t>(graph), CountOf(model_.graphs())));
      }
      return OkStatus();
    default:
      return InvalidModel("kind ", attr.kind(), " is unknown");
  }
}

Status StructureCheck::CheckEntries() {
  if (CountOf(model_.entries()) == 0)
    return InvalidModel("the model has no entry: no graph of it can be run");
  MSRT_RETURN_IF_ERROR(ChargeVector(model_.entries()));
  std::vector<bool> seen(CountOf(model_.graphs()), false);
  for (uint32_t graph : SpanOf(model_.entries())) {
    MSRT_RETURN_IF_ERROR(
        In(CheckIndex("graph", graph, CountOf(model_.graphs())), [] { return "entries"; }));
    if (seen[graph]) return InvalidModel("entries: graph ", graph, " is named twice");
    seen[graph] = true;
  }
  return OkStatus();
}

}  // namespace msrt

#include "core/model/module_tables.h"

#include <algorithm>
#include <numeric>

#include "core/base/countable.h"
#include "ops/op_def.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace msrt {
namespace {

// Small constants (shapes, scalars, biases) come first in their segment, so that reading them
// touches few pages.
constexpr uint64_t kSmallDataBytes = 4096;

std::vector<uint32_t> Indices(const std::vector<ValueId>& ids) {
  std::vector<uint32_t> out;
  for (ValueId id : ids) out.push_back(IndexOf(id));
  return out;
}

}  // namespace

uint32_t DataStore::Add(fbs::SegmentKind kind, std::span<const std::byte> bytes) {
  const uint64_t digest = XXH64(bytes.data(), bytes.size(), 0);
  auto [it, end] = by_digest_.equal_range(digest);
  for (; it != end; ++it) {
    const Item& item = items_[it->second];
    if (item.kind == kind &&
        std::equal(bytes.begin(), bytes.end(), item.bytes.begin(), item.bytes.end()))
      return it->second;
  }
  const auto index = static_cast<uint32_t>(items_.size());
  by_digest_.emplace(digest, index);
  items_.push_back({kind, bytes, digest});
  return index;
}

std::vector<uint32_t> DataStore::FileOrder() const {
  std::vector<uint32_t> order(items_.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto rank = [&](uint32_t i) {
    return std::pair(items_[i].kind, items_[i].bytes.size() > kSmallDataBytes);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });
  return order;
}

Result<uint32_t> TableBuilder::TypeIndex(const Type& type) {
  const std::string key = StrCat(type);
  if (const auto it = types_.find(key); it != types_.end()) return it->second;
  fbs::TypeT out;
  out.kind = static_cast<uint8_t>(type.kind);
  switch (type.kind) {
    case TypeKind::kTensor:
      out.dtype = static_cast<uint8_t>(type.dtype);
      out.unranked = !type.rank_known;
      if (type.rank_known) out.dims.assign(type.dims.begin(), type.dims.end());
      break;
    case TypeKind::kList: {
      if (type.element == nullptr)
        return InvalidModel("a list type without the type of its elements");
      MSRT_ASSIGN_OR_RETURN(out.element, TypeIndex(*type.element));
      break;
    }
    case TypeKind::kFunction:
      if (type.signature == nullptr) return InvalidModel("a function type without a signature");
      for (const Type& t : type.signature->parameters) {
        MSRT_ASSIGN_OR_RETURN(const uint32_t index, TypeIndex(t));
        out.parameters.push_back(index);
      }
      for (const Type& t : type.signature->results) {
        MSRT_ASSIGN_OR_RETURN(const uint32_t index, TypeIndex(t));
        out.results.push_back(index);
      }
      break;
  }
  const auto index = static_cast<uint32_t>(tables_.types.size());
  types_.emplace(key, index);
  tables_.types.push_back(std::make_unique<fbs::TypeT>(std::move(out)));
  return index;
}

Result<uint32_t> TableBuilder::ConstantIndex(const ConstTensor& tensor) {
  if (!tensor.dims.known() || !IsCountable(tensor.dims) ||
      tensor.type().bytes() != tensor.bytes.size()) {
    return InvalidModel("a constant ", tensor.type(), " has ", tensor.bytes.size(),
                        " bytes of data");
  }
  fbs::ConstantT out;
  MSRT_ASSIGN_OR_RETURN(out.type, TypeIndex(tensor.type()));
  out.data = store_.Add(fbs::SegmentKind_Weights, tensor.bytes);
  const auto [it, is_new] = constants_.emplace(StrCat(out.type, " ", out.data),
                                               static_cast<uint32_t>(tables_.constants.size()));
  if (is_new) tables_.constants.push_back(std::make_unique<fbs::ConstantT>(out));
  return it->second;
}

uint32_t TableBuilder::OpIndex(const Node& node) {
  // The version is written if it is known: the meaning of 0 may differ in the build that reads the
  // file.
  const int32_t version =
      node.version == 0 && node.def != nullptr ? node.def->version : node.version;
  const std::string key = StrCat(node.domain, "\n", node.op, "\n", version);
  const auto [it, is_new] = ops_.emplace(key, static_cast<uint32_t>(tables_.ops.size()));
  if (is_new) {
    fbs::OpT out;
    out.domain = node.domain;
    out.name = node.op;
    out.version = version;
    tables_.ops.push_back(std::make_unique<fbs::OpT>(std::move(out)));
  }
  return it->second;
}

Status TableBuilder::Add(const Module& module) {
  tables_.name = module.name;
  tables_.producer = module.producer;
  for (const auto& [key, value] : module.metadata) {
    fbs::KeyValueT out;
    out.key = key;
    out.value = value;
    tables_.metadata.push_back(std::make_unique<fbs::KeyValueT>(std::move(out)));
  }
  tables_.symbols = module.symbols;
  tables_.entries = module.entries;
  for (const StateSlot& state : module.states) {
    fbs::StateT out;
    out.name = state.name;
    MSRT_ASSIGN_OR_RETURN(out.type, TypeIndex(state.type));
    MSRT_ASSIGN_OR_RETURN(out.initial, ConstantIndex(state.initial));
    out.role = static_cast<uint8_t>(state.role);
    tables_.states.push_back(std::make_unique<fbs::StateT>(std::move(out)));
  }
  for (size_t g = 0; g < module.graphs.size(); ++g) {
    Status status = AddGraph(module.graphs[g]);
    if (!status.ok())
      return std::move(status).Within(StrCat("graph ", g, " '", module.graphs[g].name, "'"));
  }
  return OkStatus();
}

Status TableBuilder::Add(const ModelExtras& extras) {
  for (const PackedWeight& packed : extras.packed) {
    fbs::PackedWeightT out;
    MSRT_ASSIGN_OR_RETURN(out.constant, ConstantIndex(packed.weight));
    out.kernel = packed.id.kernel;
    out.isa = packed.id.isa;
    out.block = packed.id.block;
    out.version = packed.id.version;
    out.data = store_.Add(fbs::SegmentKind_Packed, packed.data.data);
    tables_.packed.push_back(std::make_unique<fbs::PackedWeightT>(std::move(out)));
  }
  for (const TunedProgram& program : extras.programs) {
    fbs::ProgramT out;
    out.key = program.key;
    out.data = store_.Add(fbs::SegmentKind_Programs, program.data.data);
    tables_.programs.push_back(std::make_unique<fbs::ProgramT>(out));
  }
  return OkStatus();
}

Status TableBuilder::AddGraph(const Graph& graph) {
  auto out = std::make_unique<fbs::GraphT>();
  out->name = graph.name;
  for (uint32_t v = 0; v < graph.value_count(); ++v) {
    const Value& value = graph.value(ValueId(v));
    fbs::ValueT entry;
    entry.name = value.name;
    if (value.constant != nullptr) {
      MSRT_ASSIGN_OR_RETURN(entry.constant, ConstantIndex(*value.constant));
      entry.type = tables_.constants[entry.constant]->type;
    } else if (IsDeclared(value.type)) {
      MSRT_ASSIGN_OR_RETURN(entry.type, TypeIndex(value.type));
    }
    out->values.push_back(std::make_unique<fbs::ValueT>(std::move(entry)));
  }
  out->inputs = Indices(graph.inputs);
  out->outputs = Indices(graph.outputs);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Status status = AddNode(graph.nodes[n], out.get());
    if (!status.ok()) return std::move(status).Within(Describe(graph, n));
  }
  tables_.graphs.push_back(std::move(out));
  return OkStatus();
}

Status TableBuilder::AddNode(const Node& node, fbs::GraphT* graph) {
  auto out = std::make_unique<fbs::NodeT>();
  out->op = OpIndex(node);
  out->name = node.name;
  out->inputs = Indices(node.inputs);
  out->outputs = Indices(node.outputs);
  for (const Attr& attr : node.attrs) {
    auto entry = std::make_unique<fbs::AttrT>();
    entry->name = attr.name;
    entry->kind = static_cast<uint8_t>(KindOf(attr.value));
    MSRT_RETURN_IF_ERROR(SetAttr(attr.value, entry.get()));
    out->attrs.push_back(std::move(entry));
  }
  graph->nodes.push_back(std::move(out));
  return OkStatus();
}

Status TableBuilder::SetAttr(const AttrValue& value, fbs::AttrT* out) {
  switch (KindOf(value)) {
    case AttrKind::kInt:
      out->i = std::get<int64_t>(value);
      break;
    case AttrKind::kFloat:
      out->f = std::get<double>(value);
      break;
    case AttrKind::kString:
      out->s = std::get<std::string>(value);
      break;
    case AttrKind::kInts:
      out->ints = std::get<std::vector<int64_t>>(value);
      break;
    case AttrKind::kFloats:
      out->floats = std::get<std::vector<double>>(value);
      break;
    case AttrKind::kStrings:
      for (const std::string& text : std::get<std::vector<std::string>>(value)) {
        auto entry = std::make_unique<fbs::TextT>();
        entry->value = text;
        out->strings.push_back(std::move(entry));
      }
      break;
    case AttrKind::kDType:
      out->i = static_cast<int64_t>(std::get<DType>(value));
      break;
    case AttrKind::kTensor: {
      MSRT_ASSIGN_OR_RETURN(const uint32_t constant, ConstantIndex(std::get<ConstTensor>(value)));
      out->i = constant;
      break;
    }
    case AttrKind::kGraph:
      out->i = std::get<GraphRef>(value).index;
      break;
    case AttrKind::kGraphs:
      for (GraphRef graph : std::get<std::vector<GraphRef>>(value))
        out->ints.push_back(graph.index);
      break;
  }
  return OkStatus();
}

}  // namespace msrt

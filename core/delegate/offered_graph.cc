#include "core/delegate/offered_graph.h"

#include <algorithm>
#include <unordered_set>

#include "core/delegate/typical_results.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

Type TypicalInput(const Type& declared, const Dims* hint) {
  Type t = declared;
  if (!t.is_tensor()) return t;
  if (!t.rank_known) {
    t.rank_known = true;
    t.dims = hint != nullptr ? *hint : Dims{1};
  }
  for (int i = 0; i < t.rank(); ++i) {
    if (IsKnown(t.dims[i])) continue;
    const bool hinted = hint != nullptr && i < hint->rank() && IsKnown((*hint)[i]);
    t.dims[i] = hinted ? (*hint)[i] : i == 0 ? 1 : OfferedGraph::kTypicalExtent;
  }
  return t;
}

// Dims that are unknown after propagation depend on data; costs need some number.
void FillUnknown(Type* t) {
  if (!t->is_tensor()) return;
  t->rank_known = true;
  for (int64_t& d : t->dims) {
    if (!IsKnown(d)) d = 1;
  }
}

}  // namespace

msrt_shape ShapeOf(const Type& type) {
  msrt_shape s{};
  if (!type.is_tensor()) return s;
  s.dtype = static_cast<msrt_dtype>(type.dtype);
  s.rank = type.rank_known ? type.rank() : -1;
  for (int i = 0; i < type.rank(); ++i) {
    const int64_t d = type.dims[i];
    s.dims[i] = IsKnown(d) ? d : IsSymbol(d) ? -2 - int64_t{SymbolOf(d)} : MSRT_UNKNOWN_DIM;
  }
  return s;
}

OfferedGraph::OfferedGraph(const Graph& graph, const Evaluator& evaluator)
    : graph_(graph),
      evaluator_(evaluator),
      typical_(graph),
      agreed_(graph.nodes.size()),
      settled_(graph.nodes.size()),
      size_in_data_(graph.nodes.size()),
      readers_(graph.value_count()),
      is_output_(graph.value_count()) {
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    for (ValueId v : graph.nodes[n].inputs) {
      if (v == kNoValue) continue;
      std::vector<uint32_t>& readers = readers_[IndexOf(v)];
      if (readers.empty() || readers.back() != n) readers.push_back(n);
    }
  }
  for (ValueId v : graph.outputs) is_output_[IndexOf(v)] = true;
}

Result<std::unique_ptr<OfferedGraph>> OfferedGraph::Make(const Graph& graph,
                                                         const Evaluator& evaluator,
                                                         std::span<const Dims> typical_dims,
                                                         const Module* module,
                                                         std::span<const int64_t> passed) {
  std::unique_ptr<OfferedGraph> offered(new OfferedGraph(graph, evaluator));
  offered->FindTypicalTypes(typical_dims, module);
  if (module != nullptr) offered->FindState(*module, passed);
  offered->nodes_.reserve(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) offered->AddNode(n);
  offered->MakeApi();
  return offered;
}

void OfferedGraph::MakeApi() {
  api_ = MSRT_INIT(msrt_graph_view);
  api_.graph = this;
  api_.node_count = nodes_.size();
  api_.node = [](const void* self, size_t index) -> const msrt_node_view* {
    const auto& p = *static_cast<const OfferedGraph*>(self);
    return index < p.nodes_.size() ? &p.nodes_[index] : nullptr;
  };
  const auto views = [&](const std::vector<ValueId>& values) {
    std::vector<msrt_value_view> list;
    for (ValueId v : values) list.push_back(ValueOf(v));
    return Keep(std::move(list), &values_);
  };
  api_.inputs = views(graph_.inputs);
  api_.input_count = graph_.inputs.size();
  api_.outputs = views(graph_.outputs);
  api_.output_count = graph_.outputs.size();
  api_.callee = [](const void* self, int64_t number) -> const msrt_graph_view* {
    const OfferedGraph* callee = static_cast<const OfferedGraph*>(self)->callee(number);
    return callee == nullptr ? nullptr : callee->api();
  };
}

const OfferedGraph* OfferedGraph::callee(int64_t number) const {
  const bool exists =
      module_ != nullptr && number >= 0 && static_cast<size_t>(number) < module_->size();
  return exists ? (*module_)[static_cast<size_t>(number)].get() : nullptr;
}

void OfferedGraph::FindTypicalTypes(std::span<const Dims> typical_dims, const Module* module) {
  size_t nodes_left = 4 * graph_.nodes.size() + 1000;  // to visit in called graphs
  for (size_t i = 0; i < graph_.inputs.size(); ++i) {
    Type& t = typical_.types[IndexOf(graph_.inputs[i])];
    t = TypicalInput(t, i < typical_dims.size() ? &typical_dims[i] : nullptr);
  }
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    // Typical extents are guesses: where they contradict the graph, the declared dims (with ones)
    // are used.
    settled_[n] = agreed_[n] = PropagateNode(graph_, n, evaluator_, &typical_).ok();
    for (ValueId v : graph_.nodes[n].outputs) {
      if (v == kNoValue) continue;
      if (!agreed_[n]) typical_.types[IndexOf(v)] = graph_.value(v).type;
      settled_[n] = settled_[n] && typical_.types[IndexOf(v)].concrete();
      if (!typical_.types[IndexOf(v)].concrete()) size_in_data_[n] = true;
    }
    if (module != nullptr && agreed_[n] && !settled_[n])
      TakeResults(TypicalResults(*module, graph_.nodes[n], typical_, evaluator_, &nodes_left), n);
    for (ValueId v : graph_.nodes[n].outputs) {
      if (v != kNoValue) FillUnknown(&typical_.types[IndexOf(v)]);
    }
  }
}

void OfferedGraph::FindState(const Module& module, std::span<const int64_t> passed) {
  for (size_t i = 0; i < passed.size(); ++i) {
    if (passed[i] < 0) continue;
    const auto slot = static_cast<uint32_t>(passed[i]);
    passed_[graph_.inputs[i]] = {slot, module.states[slot].role};
  }
  for (const Node& node : graph_.nodes) {
    if (node.def == nullptr || node.def->effect != Effect::kState) continue;
    const auto slot = static_cast<uint32_t>(std::get<int64_t>(*node.attrs.Find("slot")));
    if (node.outputs.empty()) written_slots_.insert(slot);
    else state_[node.outputs[0]] = {slot, module.states[slot].role};
    if (node.outputs.empty() && IsUpdatedInPlace(module.states[slot].role) &&
        ReadersOf(node.inputs[0]).size() == 1 && !IsOutput(node.inputs[0]))
      updates_.insert(node.inputs[0]);
  }
}

bool OfferedGraph::IsParameter(ValueId v) const {
  for (const auto* slots : {&state_, &passed_}) {
    const auto slot = slots->find(v);
    if (slot != slots->end()) return slot->second.second == StateRole::kParameter;
  }
  return false;
}

void OfferedGraph::TakeResults(std::span<const Type> results, size_t n) {
  const std::vector<ValueId>& outputs = graph_.nodes[n].outputs;
  for (size_t i = 0; i < results.size() && i < outputs.size(); ++i) {
    if (outputs[i] != kNoValue) typical_.types[IndexOf(outputs[i])] = results[i];
  }
}

msrt_value_view OfferedGraph::ValueOf(ValueId v) const {
  msrt_value_view view{};
  view.id = view.state_slot = -1;
  if (v == kNoValue) return view;
  for (const auto* slots : {&state_, &passed_}) {
    const auto slot = slots->find(v);
    if (slot == slots->end()) continue;
    view.state_slot = static_cast<int32_t>(slot->second.first);
    view.state_role = static_cast<msrt_state_role>(slot->second.second);
  }
  const Value& value = graph_.value(v);
  view.id = IndexOf(v);
  view.declared = ShapeOf(value.type);
  view.typical = ShapeOf(typical_.types[IndexOf(v)]);
  view.constant = value.constant == nullptr ? nullptr : value.constant->bytes.data();
  view.is_graph_output = is_output_[IndexOf(v)];
  return view;
}

void OfferedGraph::AddNode(size_t n) {
  const Node& node = graph_.nodes[n];
  msrt_node_view view = MSRT_INIT(msrt_node_view);
  view.version = node.version;
  view.domain = node.domain.c_str();
  view.op = node.op.c_str();
  view.name = node.name.c_str();
  std::vector<msrt_value_view> values;
  values.reserve(node.inputs.size() + node.outputs.size());
  for (ValueId v : node.inputs) values.push_back(ValueOf(v));
  for (ValueId v : node.outputs) values.push_back(ValueOf(v));
  view.inputs = Keep(std::move(values), &values_);
  view.input_count = node.inputs.size();
  view.outputs = view.inputs + node.inputs.size();
  view.output_count = node.outputs.size();
  std::vector<msrt_attr_view> attrs = attr_store_.ViewsOf(
      node.attrs, node.def != nullptr ? node.def->attrs : std::span<const AttrDef>());
  view.attr_count = attrs.size();
  view.attrs = Keep(std::move(attrs), &attrs_);
  if (node.def != nullptr && node.def->cost != nullptr && agreed_[n]) {
    const Cost cost = node.def->cost(NodeView(node, typical_).op());
    view.flops = cost.flops;
    view.bytes = cost.bytes_read + cost.bytes_written;
  }
  nodes_.push_back(view);
}

CandidateBorder OfferedGraph::BorderOf(std::span<const uint32_t> nodes) const {
  if (nodes.size() == 1) return {graph_.nodes[nodes[0]].inputs, graph_.nodes[nodes[0]].outputs};
  CandidateBorder border;
  std::vector<ValueId> made;
  std::unordered_set<uint32_t> seen;
  for (uint32_t n : nodes) {
    for (ValueId v : graph_.nodes[n].inputs) {
      if (v != kNoValue && seen.insert(IndexOf(v)).second) border.inputs.push_back(v);
    }
    for (ValueId v : graph_.nodes[n].outputs) {
      if (v != kNoValue && seen.insert(IndexOf(v)).second) made.push_back(v);
    }
  }
  for (ValueId v : made) {
    const std::vector<uint32_t>& readers = ReadersOf(v);
    const bool leaves =
        IsOutput(v) || std::any_of(readers.begin(), readers.end(), [&](uint32_t reader) {
          return !std::binary_search(nodes.begin(), nodes.end(), reader);
        });
    if (leaves) border.outputs.push_back(v);
  }
  return border;
}

bool OfferedGraph::CanBindAtOnce(std::span<const uint32_t> nodes) const {
  std::unordered_set<uint32_t> made;
  for (uint32_t n : nodes) {
    const Node& node = graph_.nodes[n];
    const auto made_inside = [&](ValueId v) {
      return v != kNoValue && made.count(IndexOf(v)) != 0;
    };
    if (size_in_data_[n] && std::any_of(node.inputs.begin(), node.inputs.end(), made_inside))
      return false;
    for (ValueId v : node.outputs) {
      if (v != kNoValue) made.insert(IndexOf(v));
    }
  }
  return true;
}

bool OfferedGraph::MayHaveLayout(ValueId v) const {
  const Type& type = graph_.value(v).type;
  return type.is_tensor() && type.rank_known && type.rank() >= 3 && type.rank() <= 5 &&
         graph_.value(v).constant == nullptr;
}

std::array<double, kLayoutCount> OfferedGraph::TypicalBytes(ValueId v) const {
  const Type& t = typical_.types[IndexOf(v)];
  std::array<double, kLayoutCount> bytes = {};
  if (!t.concrete()) return bytes;
  bytes.fill(static_cast<double>(t.bytes()));
  if (MayHaveLayout(v) && t.rank() >= 2) {
    for (uint32_t l = 0; l < kLayoutCount; ++l)
      bytes[l] = static_cast<double>(BytesIn(static_cast<Layout>(l), t.dtype, t.dims));
  }
  return bytes;
}

std::array<double, kLayoutCount> OfferedGraph::MovedBytes(ValueId v) const {
  const auto read = state_.find(v);
  const bool stays = read != state_.end() && read->second.second != StateRole::kCache &&
                     !written_slots_.contains(read->second.first);
  return stays || updates_.contains(v) ? std::array<double, kLayoutCount>() : TypicalBytes(v);
}

}  // namespace msrt

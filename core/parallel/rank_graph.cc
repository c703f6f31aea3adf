#include "core/parallel/rank_graph.h"

#include <algorithm>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/parallel/overlap.h"

namespace msrt {
namespace {

// Returns how many elements are in at least one of the boxes. Looks at their dims from `dim` on.
int64_t UnionVolume(const std::vector<Box>& boxes, int dim = 0) {
  if (boxes.empty() || dim == boxes[0].rank()) return boxes.empty() ? 0 : 1;
  std::vector<int64_t> cuts;
  for (const Box& box : boxes) cuts.push_back(box[dim].begin), cuts.push_back(box[dim].end);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  int64_t volume = 0;
  for (size_t c = 0; c + 1 < cuts.size(); ++c) {
    std::vector<Box> slab;
    for (const Box& box : boxes) {
      if (box[dim].Contains({cuts[c], cuts[c + 1]})) slab.push_back(box);
    }
    volume += (cuts[c + 1] - cuts[c]) * UnionVolume(slab, dim + 1);
  }
  return volume;
}

}  // namespace

ConstTensor CutConstant(const ConstTensor& tensor, const Box& box) {
  const size_t width = BytesOf(tensor.dtype, 1);
  std::vector<std::byte> bytes(BytesOf(tensor.dtype, box.volume()));
  const Dims from = RowMajorStrides(tensor.dims), to = RowMajorStrides(box.dims());
  for (int64_t i = 0; i < box.volume(); ++i) {
    int64_t at = 0, rest = i;
    for (int d = 0; d < box.rank(); ++d) {
      at += (box[d].begin + rest / to[d]) * from[d];
      rest %= to[d];
    }
    std::memcpy(bytes.data() + static_cast<size_t>(i) * width,
                tensor.bytes.data() + static_cast<size_t>(at) * width, width);
  }
  return ConstTensor::Copy(tensor.dtype, box.dims(), bytes);
}

RankGraph::RankGraph(const GraphSpaces& spaces, const SplitPlan& plan, const SplitOptions& options,
                     int rank, Graph* out)
    : spaces_(spaces),
      source_(spaces.graph()),
      plan_(plan),
      options_(options),
      rank_(static_cast<size_t>(rank)),
      builder_(out),
      out_(*out),
      parts_(source_.value_count()) {}

Status RankGraph::Write() {
  out_.name = source_.name;
  MSRT_RETURN_IF_ERROR(AddInputs());
  for (size_t n = 0; n < source_.nodes.size(); ++n)
    MSRT_RETURN_IF_ERROR(AddNode(n).Within(msrt::Describe(source_, n)));
  MSRT_RETURN_IF_ERROR(AddOutputs());
  out_.CompactValues();
  return OkStatus();
}

void RankGraph::Describe(RankModule* result) const {
  for (ValueId v : source_.inputs)
    result->inputs.push_back(*plan_.values[IndexOf(v)].computed[rank_]);
  for (const std::vector<Box>& boxes : plan_.outputs) {
    const auto mine = boxes.begin() + static_cast<std::ptrdiff_t>(rank_);
    result->outputs.push_back(*mine);
    result->writes.push_back(std::find(boxes.begin(), mine, *mine) == mine);
  }
  result->bytes_sent = bytes_sent_;
  result->messages_sent = messages_sent_;
  result->exchanges = exchanges_;
  std::vector<uint32_t> computed;
  for (const Node& node : source_.nodes) {
    for (ValueId v : node.outputs) {
      if (v != kNoValue) computed.push_back(IndexOf(v));
    }
  }
  for (const uint32_t v : computed) {
    const auto& boxes = plan_.values[v].computed;
    if (rank_ >= boxes.size() || !boxes[rank_]) continue;
    std::vector<Box> lower;
    for (size_t r = 0; r < rank_; ++r) {
      const Box common = boxes[r] ? Intersect(*boxes[r], *boxes[rank_]) : Box();
      if (common.rank() == boxes[rank_]->rank() && !common.empty()) lower.push_back(common);
    }
    const int64_t elements = UnionVolume(lower);
    const Box& own = *boxes[rank_];
    const int64_t rows = own.rank() < 3 ? 1 : own[own.rank() - 2].size();
    if (elements > 0) result->recomputed_rows += CeilDiv(elements, own.volume() / rows);
  }
}

// All ranks exchange in the order of the source graph: its inputs, then the results of its nodes.
Status RankGraph::AddInputs() {
  for (ValueId v : source_.inputs) {
    const Box& box = *plan_.values[IndexOf(v)].computed[rank_];
    const DType dtype = spaces_.facts().types[IndexOf(v)].dtype;
    Keep(v, box, out_.AddInput(NameOf(v), Type::Tensor(dtype, box.dims())));
  }
  for (ValueId v : source_.inputs) MSRT_RETURN_IF_ERROR(AddExchange(v));
  return OkStatus();
}

Status RankGraph::AddNode(size_t n) {
  const RankPiece& mine = plan_.nodes[n][rank_];
  if (mine.pieces.size() > 1) {
    MSRT_RETURN_IF_ERROR(AddPieces(n));
  } else if (!mine.pieces.empty()) {
    const Node& node = source_.nodes[n];
    std::vector<ValueId> results;
    MSRT_RETURN_IF_ERROR(AddPiece(n, mine.pieces[0], node.name, mine.outputs, &results).status());
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] == kNoValue) continue;
      Keep(node.outputs[o], mine.outputs[o], results[o]);
      out_.value(results[o]).name = NameOf(node.outputs[o]);
    }
  }
  for (ValueId v : source_.nodes[n].outputs) {
    if (v != kNoValue) MSRT_RETURN_IF_ERROR(AddExchange(v));
  }
  return OkStatus();
}

// Returns the first output.
Result<ValueId> RankGraph::AddPiece(size_t n, const Box& piece, const std::string& name,
                                    std::span<const Box> outputs, std::vector<ValueId>* results) {
  const Node& node = source_.nodes[n];
  const ResolvedSpace* space = spaces_.of_node(n);
  AttrList attrs = node.attrs;
  if (space != nullptr && node.def->space->localize != nullptr) {
    const NodeView view(node, spaces_.facts());
    MSRT_RETURN_IF_ERROR(node.def->space->localize(view.op(), piece, InputBoxes(*space, piece),
                                                   OutputBoxes(*space, piece), &attrs));
  }
  std::vector<ValueId> inputs;
  bool reads_nothing = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    const bool absent =
        v == kNoValue ||
        (space != nullptr && (space->inputs[i].dropped || !IsPresent(space->inputs[i], piece)));
    if (absent) {
      inputs.push_back(kNoValue);
      continue;
    }
    const Box box = space == nullptr ? Box::Whole(spaces_.facts().types[IndexOf(v)].dims)
                                     : TouchedBox(space->inputs[i], piece);
    MSRT_ASSIGN_OR_RETURN(const ValueId made, Get(v, box));
    inputs.push_back(made);
    reads_nothing |= box.empty();
  }
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  MSRT_ASSIGN_OR_RETURN(*results, builder_.Add(node.domain, node.op, name, std::move(inputs),
                                               std::move(attrs), node.outputs.size()));
  Node& added = out_.nodes.back();
  added.version = node.version;
  // A sum without terms has the same bits in every arithmetic. Kernels may refuse empty inputs,
  // which the whole node does not have: wide dilated windows can miss a narrow input altogether.
  if (n < options_.arithmetics.size() && !reads_nothing) added.arithmetic = options_.arithmetics[n];
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (node.outputs[o] == kNoValue) {
      added.outputs[o] = kNoValue;
      continue;
    }
    const Type& type = out_.value((*results)[o]).type;
    if (!type.concrete() || !(type.dims == outputs[o].dims()))
      return InternalError("its piece for ", outputs[o], " has the type ", type);
  }
  return (*results)[0];
}

// The interior, the rest when the halo is there, and a Concat for each axis, inside out.
Status RankGraph::AddPieces(size_t n) {
  const Node& node = source_.nodes[n];
  const RankPiece& mine = plan_.nodes[n][rank_];
  const ResolvedSpace& space = *spaces_.of_node(n);
  std::vector<ValueId> made;
  for (size_t p = 0; p < mine.pieces.size(); ++p) {
    const std::string name = StrCat(node.name, p == 0 ? "/interior" : StrCat("/border", p));
    std::vector<ValueId> results;
    const std::vector<Box> outputs = OutputBoxes(space, mine.pieces[p]);
    MSRT_ASSIGN_OR_RETURN(const ValueId value,
                          AddPiece(n, mine.pieces[p], name, outputs, &results));
    made.push_back(value);
  }
  Box joined = mine.pieces[0];
  ValueId value = made[0];
  for (size_t p = mine.pieces.size(); p-- > 1;) {
    const auto touches = [&](const Box& side, int a) {
      return side[a].end == joined[a].begin || side[a].begin == joined[a].end;
    };
    // The two sides of an axis were cut one after the other; the axis is where they differ.
    int axis = 0;
    while (axis < joined.rank() &&
           (mine.pieces[p][axis] == joined[axis] || !touches(mine.pieces[p], axis)))
      ++axis;
    if (axis == joined.rank()) return InternalError("the pieces of a node do not join");
    const bool before = mine.pieces[p][axis].end == joined[axis].begin;
    const std::vector<ValueId> order =
        before ? std::vector<ValueId>{made[p], value} : std::vector<ValueId>{value, made[p]};
    joined[axis] = Hull(joined[axis], mine.pieces[p][axis]);
    const int dim = DimOfAxis(space.outputs[0], axis);
    MSRT_ASSIGN_OR_RETURN(value, builder_.Add("Concat", StrCat(node.name, "/join", p), order,
                                              {{"axis", int64_t{dim}}}));
  }
  if (!(out_.value(value).type.dims == mine.outputs[0].dims()))
    return InternalError("the joined pieces are ", out_.value(value).type);
  Keep(node.outputs[0], mine.outputs[0], value);
  return OkStatus();
}

Status RankGraph::AddExchange(ValueId v) {
  const ValuePlan& value = plan_.values[IndexOf(v)];
  if (value.transfers.empty()) return OkStatus();
  const RankTransfers& mine = value.transfers[rank_];
  const std::vector<Box>& required = value.exchanged[rank_];
  if (mine.sends.empty() && mine.receives.empty()) return OkStatus();
  const Type& type = spaces_.facts().types[IndexOf(v)];
  ExchangePlan plan{type.dtype, {}, required, mine.sends, mine.receives, options_.group};
  const std::optional<Box>& own = value.computed[rank_];
  std::vector<ValueId> inputs;
  if (own && !own->empty()) {
    plan.own = *own;
    MSRT_ASSIGN_OR_RETURN(const ValueId made, Get(v, *own));
    inputs.push_back(made);
  } else {
    for (int d = 0; d < type.rank(); ++d) plan.own.push_back({0, 0});
  }
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> results,
                        builder_.Add("msrt", "Exchange", StrCat(NameOf(v), "/exchange"),
                                     std::move(inputs), AttrsOf(plan), required.size()));
  for (size_t i = 0; i < results.size(); ++i) Keep(v, required[i], results[i]);
  ++exchanges_;
  messages_sent_ += mine.messages_sent();
  bytes_sent_ += static_cast<int64_t>(BytesOf(type.dtype, mine.elements_sent()));
  return OkStatus();
}

// An output that the graph has once more, or is given as it is, is its own value by a copy.
Status RankGraph::AddOutputs() {
  for (size_t o = 0; o < source_.outputs.size(); ++o) {
    MSRT_ASSIGN_OR_RETURN(const ValueId value, Get(source_.outputs[o], plan_.outputs[o][rank_]));
    out_.outputs.push_back(value);
  }
  return OkStatus();
}

Result<ValueId> RankGraph::Get(ValueId v, const Box& box) {
  std::vector<Part>& parts = parts_[IndexOf(v)];
  for (const Part& part : parts) {
    if (part.box == box) return part.value;
  }
  const Type& type = spaces_.facts().types[IndexOf(v)];
  if (const ConstTensor* known = spaces_.facts().known[IndexOf(v)]; known != nullptr)
    return Constant(v, *known, box);
  if (box.empty())
    return Constant(v, ConstTensor::Copy(type.dtype, box.dims(), {}), Box::Whole(box.dims()));
  for (size_t p = 0; p < parts.size(); ++p) {
    if (!Contains(parts[p].box, box)) continue;
    MSRT_ASSIGN_OR_RETURN(const ValueId cut,
                          Slice(parts[p], box, StrCat(NameOf(v), "/part", slices_++)));
    Keep(v, box, cut);
    return cut;
  }
  return InternalError("value '", NameOf(v), "' is read in ", box, " before that exists");
}

Result<ValueId> RankGraph::Slice(const Part& part, const Box& box, const std::string& name) {
  std::vector<int64_t> starts, ends, axes;
  for (int d = 0; d < box.rank(); ++d) {
    if (box[d] == part.box[d]) continue;
    axes.push_back(d);
    starts.push_back(box[d].begin - part.box[d].begin);
    ends.push_back(box[d].end - part.box[d].begin);
  }
  return builder_.Add("Slice", name, {part.value},
                      {{"starts", starts}, {"ends", ends}, {"axes", axes}});
}

Result<ValueId> RankGraph::Constant(ValueId v, const ConstTensor& data, const Box& box) {
  const bool whole = box == Box::Whole(data.dims);
  if (!whole && BitsOf(data.dtype) < 8)
    return Unsupported("constant '", NameOf(v), "' of type ", data.dtype, " cannot be cut");
  const ValueId made = out_.AddConstant(NameOf(v), whole ? data : CutConstant(data, box));
  Keep(v, box, made);
  return made;
}

}  // namespace msrt

#include "ops/required_boxes.h"

#include "ops/resolve_space.h"

namespace msrt {
namespace {

bool AllConcrete(const OpView& op) {
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (op.has_input(i) && !op.input(i).concrete()) return false;
  }
  for (size_t o = 0; o < op.output_count(); ++o) {
    if (op.has_output(o) && !op.output(o).concrete()) return false;
  }
  return true;
}

// These have consequences beyond their outputs.
bool AlwaysRuns(const Node& node) {
  if (node.def == nullptr) return false;
  const Effect effect = node.def->effect;
  return effect == Effect::kState || effect == Effect::kComm || effect == Effect::kControl;
}

// Returns the part of `needed` outside `there` if it is a box, otherwise all of `needed`; nullopt
// if nothing is missing.
std::optional<Box> Rest(const Box& needed, const Box& there) {
  if (Contains(there, needed)) return std::nullopt;
  int cut = -1;
  for (int d = 0; d < needed.rank(); ++d) {
    if (there[d].Contains(needed[d])) continue;
    if (cut >= 0) return needed;
    cut = d;
  }
  Box rest = needed;
  const Interval have = Intersect(needed[cut], there[cut]);
  if (have.empty()) return needed;
  if (have.begin == needed[cut].begin) rest[cut].begin = have.end;
  else if (have.end == needed[cut].end) rest[cut].end = have.begin;
  return rest;
}

// One walk over the nodes, last first.
class Walk {
 public:
  Walk(const GraphSpaces& spaces, const BoxRequest& request)
      : spaces_(spaces), request_(request), sources_(spaces.graph().value_count()) {
    result_.values.resize(spaces.graph().value_count());
    result_.pieces.resize(spaces.graph().nodes.size());
  }

  Status Start() {
    for (const ValueBox& source : request_.sources) {
      MSRT_RETURN_IF_ERROR(Check(source, "source"));
      sources_[IndexOf(source.value)] = &source.box;
    }
    for (const ValueBox& target : request_.targets) {
      MSRT_RETURN_IF_ERROR(Check(target, "target"));
      Need(target.value, target.box);
    }
    return OkStatus();
  }

  RequiredBoxes Run() {
    if (request_.groups.empty()) {
      for (size_t n = spaces_.graph().nodes.size(); n-- > 0;) Visit(n, /*whole=*/false);
    }
    for (size_t g = request_.groups.size(); g-- > 0;) VisitGroup(request_.groups[g]);
    return std::move(result_);
  }

 private:
  Status Check(const ValueBox& part, std::string_view what) const {
    const Box whole = WholeOf(part.value);
    if (part.box.rank() == whole.rank() && Contains(whole, part.box)) return OkStatus();
    return InvalidArgument(what, " '", spaces_.graph().value(part.value).name, "': box ", part.box,
                           " is not part of ", whole);
  }

  // Lists and functions have no parts: rank 0.
  Box WholeOf(ValueId value) const {
    const Type& type = spaces_.facts().types[IndexOf(value)];
    return type.concrete() ? Box::Whole(type.dims) : Box();
  }

  void Need(ValueId value, const Box& box) {
    if (value == kNoValue || box.empty()) return;
    std::optional<Box>& needed = result_.values[IndexOf(value)];
    needed = needed ? Hull(*needed, box) : box;
  }

  // The part of the value that its node has to compute.
  std::optional<Box> Missing(ValueId v) const {
    if (v == kNoValue || spaces_.facts().known[IndexOf(v)] != nullptr) return std::nullopt;
    const std::optional<Box>& needed = result_.values[IndexOf(v)];
    const Box* source = sources_[IndexOf(v)];
    return needed && source != nullptr ? Rest(*needed, *source) : needed;
  }

  bool IsUsed(size_t n) const {
    const Node& node = spaces_.graph().nodes[n];
    return AlwaysRuns(node) || std::any_of(node.outputs.begin(), node.outputs.end(),
                                           [&](ValueId v) { return Missing(v).has_value(); });
  }

  void VisitGroup(const std::vector<uint32_t>& group) {
    const bool used =
        std::any_of(group.begin(), group.end(), [&](uint32_t n) { return IsUsed(n); });
    if (!used) return;
    for (size_t i = group.size(); i-- > 0;) Visit(group[i], group.size() > 1);
  }

  void Visit(size_t n, bool whole) {
    const Node& node = spaces_.graph().nodes[n];
    if (!whole && !IsUsed(n)) return;
    std::vector<std::optional<Box>> outputs;
    for (ValueId v : node.outputs) outputs.push_back(Missing(v));
    const ResolvedSpace* space = whole ? nullptr : spaces_.of_node(n);
    if (space == nullptr) {
      result_.pieces[n] = Box();
      for (ValueId v : node.inputs) {
        if (v != kNoValue) Need(v, WholeOf(v));
      }
      return;
    }
    result_.pieces[n] = PieceFor(*space, outputs);
    KeepWhole(n, *space, &*result_.pieces[n]);
    if (request_.granule) ExtendToGranule(*space, request_.granule(n), &*result_.pieces[n]);
    const std::vector<Box> inputs = InputBoxes(*space, *result_.pieces[n]);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!space->inputs[i].dropped) Need(node.inputs[i], inputs[i]);
    }
  }

  // Extends the piece to the whole of each axis that a dim follows of which no part may be read.
  void KeepWhole(size_t n, const ResolvedSpace& space, Box* piece) const {
    if (!request_.may_cut) return;
    for (size_t i = 0; i < space.inputs.size(); ++i) {
      if (!space.inputs[i].present || space.inputs[i].dropped) continue;
      for (size_t d = 0; d < space.inputs[i].dims.size(); ++d) {
        const int axis = space.inputs[i].dims[d].axis;
        if (axis >= 0 && !request_.may_cut(n, i, static_cast<int>(d)))
          (*piece)[axis] = {0, space.axes[axis].extent};
      }
    }
  }

  const GraphSpaces& spaces_;
  const BoxRequest& request_;
  std::vector<const Box*> sources_;  // by value; null: none
  RequiredBoxes result_;
};

}  // namespace

Result<GraphSpaces> GraphSpaces::Resolve(const Graph& graph, const GraphFacts& facts) {
  GraphSpaces spaces(graph, facts);
  for (const Node& node : graph.nodes) {
    const NodeView& view = *spaces.views_.emplace_back(std::make_unique<NodeView>(node, facts));
    auto& resolved = spaces.spaces_.emplace_back();
    if (node.def == nullptr || node.def->space == nullptr || AlwaysRuns(node) ||
        !AllConcrete(view.op()))
      continue;
    auto space = ResolveSpace(*node.def, view.op());
    if (space.ok()) resolved = std::make_unique<ResolvedSpace>(*std::move(space));
    else if (space.status().code() != Code::kUnsupported) return std::move(space).status();
  }
  return spaces;
}

Result<RequiredBoxes> FindRequiredBoxes(const GraphSpaces& spaces, const BoxRequest& request) {
  Walk walk(spaces, request);
  MSRT_RETURN_IF_ERROR(walk.Start());
  return walk.Run();
}

Result<RequiredBoxes> FindRequiredBoxes(const GraphSpaces& spaces, std::span<const Box> outputs) {
  const Graph& graph = spaces.graph();
  if (outputs.size() != graph.outputs.size())
    return InvalidArgument(outputs.size(), " boxes for ", graph.outputs.size(), " graph outputs");
  std::vector<ValueBox> targets;
  for (size_t o = 0; o < outputs.size(); ++o) targets.push_back({graph.outputs[o], outputs[o]});
  return FindRequiredBoxes(spaces, BoxRequest{.targets = targets});
}

}  // namespace msrt

#include "core/parallel/value_cuts.h"

#include <algorithm>
#include <cmath>

namespace msrt {
namespace {

constexpr int kMaxRanks = 1 << 16;

bool MayCut(AxisKind kind) { return kind == AxisKind::kParallel || kind == AxisKind::kWindow; }

// Every axis of the grid cuts an input, and into parts that have at least one element.
Status CheckParts(const GraphSpaces& spaces, const SplitOptions& o) {
  const Graph& graph = spaces.graph();
  for (size_t g = 0; g < o.parts.size(); ++g) {
    if (o.parts[g] == 1) continue;
    bool cuts = false;
    for (ValueId v : graph.inputs) {
      const Type& type = spaces.facts().types[IndexOf(v)];
      const int d = o.dims[g];
      if (!type.concrete() || d < 0 || d >= type.rank() || type.dims[d] <= 1) continue;
      cuts = true;
      if (type.dims[d] < o.parts[g])
        return InvalidArgument("input '", graph.value(v).name, "' is ", type, ": its dim ", d,
                               " cannot be split into ", o.parts[g], " parts; use at most ",
                               type.dims[d]);
    }
    if (!cuts)
      return InvalidArgument("the grid has ", o.parts[g], " parts along dim ", o.dims[g],
                             ", but no input has more than one element there; use 1 part");
  }
  return OkStatus();
}

}  // namespace

Result<int> RanksOf(const SplitOptions& o) {
  int64_t product = 1;
  for (int parts : o.parts) {
    if (parts < 1 || (product *= parts) > kMaxRanks)
      return InvalidArgument("a grid of ranks has ", parts,
                             " parts along an axis; it needs at least 1, and at most ", kMaxRanks,
                             " ranks in all");
  }
  if (o.dims.size() < o.parts.size())
    return InvalidArgument("the grid has ", o.parts.size(), " axes, but dims for ", o.dims.size());
  for (size_t g = 0; g < o.shares.size(); ++g) {
    const std::vector<double>& shares = o.shares[g];
    if (shares.empty()) continue;
    double sum = 0;
    for (double s : shares) sum += s >= 0 ? s : NAN;
    if (g >= o.parts.size() || shares.size() != static_cast<size_t>(o.parts[g]) ||
        !std::isfinite(sum) || sum <= 0)
      return InvalidArgument("axis ", g, " needs a share for each of its parts, none negative");
  }
  return static_cast<int>(product);
}

ValueCuts::ValueCuts(const GraphSpaces& spaces, const SplitOptions& options)
    : spaces_(spaces),
      options_(options),
      dims_(spaces.graph().value_count(), std::vector<int>(options.parts.size(), -1)),
      granules_(spaces.graph().value_count()) {}

Result<ValueCuts> ValueCuts::Make(const GraphSpaces& spaces, const SplitOptions& options) {
  ValueCuts cuts(spaces, options);
  MSRT_ASSIGN_OR_RETURN(cuts.ranks_, RanksOf(options));
  MSRT_RETURN_IF_ERROR(CheckParts(spaces, options));
  const Graph& graph = spaces.graph();
  for (ValueId v : graph.inputs) {
    const Type& type = spaces.facts().types[IndexOf(v)];
    for (size_t g = 0; g < options.parts.size(); ++g) {
      const int d = options.dims[g];
      if (type.concrete() && d >= 0 && d < type.rank() && type.dims[d] > 1)
        cuts.dims_[IndexOf(v)][g] = d;
    }
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (size_t g = 0; g < options.parts.size(); ++g) cuts.Follow(n, g);
    const std::vector<ValueId>& outputs = graph.nodes[n].outputs;
    if (n < options.granules.size() && !outputs.empty() && outputs[0] != kNoValue)
      cuts.granules_[IndexOf(outputs[0])] = options.granules[n];
  }
  return cuts;
}

// An output follows the first of the inputs that are cut.
void ValueCuts::Follow(size_t n, size_t g) {
  const Node& node = spaces_.graph().nodes[n];
  const ResolvedSpace* space = spaces_.of_node(n);
  if (space == nullptr) return;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    if (v == kNoValue || !space->inputs[i].present || space->inputs[i].dropped) continue;
    const int d = dims_[IndexOf(v)][g];
    const int axis = d < 0 ? -1 : space->inputs[i].dims[static_cast<size_t>(d)].axis;
    if (axis < 0 || !MayCut(space->axes[axis].kind)) continue;
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] == kNoValue || !space->outputs[o].present) continue;
      std::vector<int>& dims = dims_[IndexOf(node.outputs[o])];
      for (size_t k = 0; k < space->outputs[o].dims.size(); ++k) {
        const DimMap& map = space->outputs[o].dims[k];
        const bool taken = std::find(dims.begin(), dims.end(), static_cast<int>(k)) != dims.end();
        if (map.axis == axis && map.extent > 1 && !taken && dims[g] < 0)
          dims[g] = static_cast<int>(k);
      }
    }
    return;
  }
}

bool ValueCuts::is_cut(ValueId v) const {
  const std::vector<int>& dims = dims_[IndexOf(v)];
  return std::any_of(dims.begin(), dims.end(), [](int d) { return d >= 0; });
}

Result<RankLayout> ValueCuts::LayoutOf(ValueId v) const {
  const Dims& dims = spaces_.facts().types[IndexOf(v)].dims;
  std::vector<DimCuts> cuts;
  for (size_t g = 0; g < options_.parts.size(); ++g) {
    const int d = dims_[IndexOf(v)][g];
    const auto parts = static_cast<size_t>(options_.parts[g]);
    const bool equal = g >= options_.shares.size() || options_.shares[g].empty();
    const std::vector<double> shares = equal ? std::vector<double>(parts, 1.0) : options_.shares[g];
    const Dims& granule = granules_[IndexOf(v)];
    const int64_t multiple = d < 0 || d >= granule.rank() ? 1 : std::max<int64_t>(1, granule[d]);
    cuts.push_back({d, CutsByShares(d < 0 ? 0 : dims[d], shares, multiple)});
  }
  return RankLayout::Grid(dims, cuts);
}

}  // namespace msrt

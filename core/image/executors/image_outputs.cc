#include "core/image/executors/image_outputs.h"

#include <set>

namespace msrt {
namespace {

enum : uint8_t { kRows = 1, kColumns = 2 };

// For each dim of each value, whether it follows the rows or the columns of the image.
class DimsOfImage {
 public:
  explicit DimsOfImage(const PieceRunner& runner)
      : runner_(runner), follows_(runner.graph().value_count()) {
    const Graph& graph = runner.graph();
    Set(graph.inputs[0], {0, 0, kRows, kColumns});
    for (size_t n = 0; n < graph.nodes.size(); ++n) AddNode(n);
  }

  bool RowsAndColumns(ValueId v) const {
    const std::vector<uint8_t>& dims = follows_[IndexOf(v)];
    return dims.size() >= 2 && (dims[dims.size() - 2] & kRows) != 0 &&
           (dims[dims.size() - 1] & kColumns) != 0;
  }
  // Of an output with one row or one column it suffices that the other dim follows the image.
  bool FollowsImage(ValueId v) const {
    const std::vector<uint8_t>& dims = follows_[IndexOf(v)];
    if (dims.size() < 2) return false;
    const bool rows = (dims[dims.size() - 2] & kRows) != 0;
    const bool columns = (dims[dims.size() - 1] & kColumns) != 0;
    const auto [height, width] = ExtentsOf(v);
    return (rows || height == 1) && (columns || width == 1) && (rows || columns);
  }

 private:
  void AddNode(size_t n) {
    const Node& node = runner_.graph().nodes[n];
    const ResolvedSpace* space = runner_.spaces().of_node(n);
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId v = node.outputs[o];
      if (v == kNoValue || !runner_.type(v).is_tensor() || !runner_.type(v).concrete()) continue;
      std::vector<uint8_t> dims(static_cast<size_t>(runner_.type(v).rank()), 0);
      for (size_t d = 0; d < dims.size(); ++d) {
        if (space == nullptr) dims[d] = SameDim(node, dims.size(), d);
        else if (o < space->outputs.size()) dims[d] = OfAxis(node, *space, o, d);
        if (dims[d] == 0) dims[d] = SingleDim(node, dims, d);
      }
      const bool moves = node.op == "Reshape" || node.op == "Transpose";
      if (moves && dims.size() >= 3 && extents_.contains(ExtentsOf(v)) && DescendsFromImage(node))
        dims[dims.size() - 2] |= kRows, dims[dims.size() - 1] |= kColumns;
      Set(v, std::move(dims));
    }
  }

  void Set(ValueId v, std::vector<uint8_t> dims) {
    follows_[IndexOf(v)] = std::move(dims);
    if (RowsAndColumns(v)) extents_.insert(ExtentsOf(v));
  }
  std::pair<int64_t, int64_t> ExtentsOf(ValueId v) const {
    const Dims& dims = runner_.type(v).dims;
    return {dims[dims.rank() - 2], dims[dims.rank() - 1]};
  }
  // A Reshape merges rows and columns, for a softmax over both, and another one restores them, or
  // after dims of 1 a Transpose: then the extents are those of a value that follows the image.
  bool DescendsFromImage(const Node& node) const {
    return node.inputs[0] != kNoValue && !follows_[IndexOf(node.inputs[0])].empty();
  }

  // A dim of 1 follows no axis, because it may be broadcast: the dims of outputs follow by
  // position.
  uint8_t SingleDim(const Node& node, const std::vector<uint8_t>& dims, size_t d) const {
    uint8_t follows = 0;
    for (ValueId v : node.inputs) {
      if (v == kNoValue || follows_[IndexOf(v)].size() != dims.size()) continue;
      if (runner_.type(v).dims[static_cast<int>(d)] == 1) follows |= follows_[IndexOf(v)][d];
    }
    return follows;
  }

  // An op that computes its whole output at once: dims of tensors of equal rank correspond.
  uint8_t SameDim(const Node& node, size_t rank, size_t d) const {
    uint8_t follows = 0;
    for (ValueId v : node.inputs) {
      if (v != kNoValue && follows_[IndexOf(v)].size() == rank) follows |= follows_[IndexOf(v)][d];
    }
    return follows;
  }

  uint8_t OfAxis(const Node& node, const ResolvedSpace& space, size_t o, size_t d) const {
    const std::vector<DimMap>& maps = space.outputs[o].dims;
    if (d >= maps.size() || maps[d].kind == DimMap::Kind::kFixed) return 0;
    uint8_t follows = 0;
    for (size_t i = 0; i < std::min(node.inputs.size(), space.inputs.size()); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      const auto& from = follows_[IndexOf(node.inputs[i])];
      const std::vector<DimMap>& dims = space.inputs[i].dims;
      for (size_t e = 0; e < std::min(from.size(), dims.size()); ++e) {
        if (dims[e].kind != DimMap::Kind::kFixed && dims[e].axis == maps[d].axis)
          follows |= from[e];
      }
    }
    return follows;
  }

  const PieceRunner& runner_;
  std::vector<std::vector<uint8_t>> follows_;      // by value; empty: does not depend on the image
  std::set<std::pair<int64_t, int64_t>> extents_;  // rows and columns of values that follow it
};

}  // namespace

Status CheckRowsFollowImage(const PieceRunner& runner) {
  const DimsOfImage dims(runner);
  for (ValueId output : runner.graph().outputs) {
    if (dims.FollowsImage(output)) continue;
    return Unsupported("output '", runner.graph().value(output).name, "' (", runner.type(output),
                       ") does not follow the rows and columns of the image, as detections and ",
                       "classes of a whole image do not; choose an output that follows the image, ",
                       "or run the model whole");
  }
  return OkStatus();
}

}  // namespace msrt

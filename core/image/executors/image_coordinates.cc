#include "core/image/executors/image_coordinates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "ops/resample.h"

namespace msrt {
namespace {

enum class ImageAxis : uint8_t { kRows, kColumns };

// A dim that follows an axis of the image.
struct DimCoordinates {
  ImageAxis axis = ImageAxis::kRows;
  AxisCoordinates at;
};
using ValueCoordinates = std::vector<std::optional<DimCoordinates>>;  // by dim

// `inner` maps indices to those that `outer` maps.
AxisCoordinates Compose(const AxisCoordinates& outer, const AxisCoordinates& inner) {
  return {outer.scale * inner.scale, outer.scale * inner.offset + outer.offset};
}

AxisCoordinates Inverse(const AxisCoordinates& map) {
  return {1 / map.scale, -map.offset / map.scale};
}

AxisCoordinates Line(double x0, double y0, double x1, double y1) {
  const double scale = (y1 - y0) / (x1 - x0);
  return {scale, y0 - scale * x0};
}

// The centre of the elements that an index of an axis touches.
double CentreOf(const DimMap& dim, int64_t index) {
  const Interval touched = dim.Touched({index, index + 1});
  return static_cast<double>(touched.begin + touched.end - 1) / 2;
}

// Follows the centres between the borders of the dim, where nothing is cut off or mirrored.
std::optional<AxisCoordinates> ByCentres(const DimMap& dim, int64_t axis_extent) {
  // Means over a quarter of the axis each, so that the phases of a resampling even out.
  const auto mean = [&](int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += CentreOf(dim, i);
    return sum / static_cast<double>(end - begin);
  };
  constexpr int64_t kSamples = 1024, kLeast = 8;
  if (axis_extent < kLeast) return std::nullopt;
  const int64_t count = std::min(axis_extent / 4, kSamples), last = axis_extent - axis_extent / 8;
  const int64_t first = axis_extent / 8;
  const double half = static_cast<double>(count - 1) / 2;
  const AxisCoordinates line =
      Line(static_cast<double>(first) + half, mean(first, first + count),
           static_cast<double>(last - count) + half, mean(last - count, last));
  if (!std::isfinite(line.scale) || line.scale == 0) return std::nullopt;
  return line;
}

// Maps indices of the axis that the dim follows to elements of the dim.
std::optional<AxisCoordinates> AlongAxis(const DimMap& dim, int64_t axis_extent) {
  const auto step = static_cast<double>(dim.step), offset = static_cast<double>(dim.offset);
  const double reach = static_cast<double>(dim.dilation * (dim.kernel - 1)) / 2;
  switch (dim.kind) {
    case DimMap::Kind::kFixed:
      return std::nullopt;
    case DimMap::Kind::kAffine:
      return AxisCoordinates{step, offset};
    case DimMap::Kind::kWindow:
      return AxisCoordinates{step, offset + reach};
    case DimMap::Kind::kTransposedWindow:
      return AxisCoordinates{1 / step, -(offset + reach) / step};
    case DimMap::Kind::kBlock: {
      const auto size = static_cast<double>(dim.size), divisor = static_cast<double>(dim.divisor);
      return AxisCoordinates{size / divisor,
                             (offset - (divisor - 1) / 2) * size / divisor + (size - 1) / 2};
    }
    case DimMap::Kind::kFunction:
      return ByCentres(dim, axis_extent);
  }
  return std::nullopt;
}

// The coordinates of a dim that Resize samples, by its formula: the distance of the elements, and
// where it interpolates also the place of the first. Nearest elements are where their centres are,
// which may be up to half an element beside.
std::optional<AxisCoordinates> ByFormula(const GraphSpaces& spaces, const Node& node, size_t d,
                                         const DimMap& dim) {
  if (node.op != "Resize" || node.inputs[0] == kNoValue) return std::nullopt;
  const NodeView view(node, spaces.facts());
  const Dims& input = spaces.facts().types[IndexOf(node.inputs[0])].dims;
  const Result<Resample> resample = ResampleOf(view.op(), input, ResizeListsOf(view.op()));
  if (!resample.ok()) return std::nullopt;
  const ResizeAxis& axis = resample->axis[d];
  if (axis.out < 2) return std::nullopt;
  const auto last = static_cast<double>(axis.out - 1);
  AxisCoordinates line =
      Line(0, SourceOf(*resample, axis, 0), last, SourceOf(*resample, axis, axis.out - 1));
  if (resample->mode != ResizeMode::kNearest || !(line.scale > 0)) return line;
  // Over whole periods, so that outputs that share an element even out.
  const auto period = std::max<int64_t>(1, std::llround(1 / line.scale));
  constexpr int64_t kSamples = 1024;
  const int64_t first = axis.out / 8;
  const int64_t count = std::min(axis.out - 2 * first, kSamples) / period * period;
  if (count == 0) return line;
  double sum = 0;
  for (int64_t i = first; i < first + count; ++i)
    sum += CentreOf(dim, i) - line.scale * static_cast<double>(i);
  line.offset = sum / static_cast<double>(count);
  return line;
}

class CoordinateMap {
 public:
  explicit CoordinateMap(const PieceRunner& runner)
      : runner_(runner), values_(runner.graph().value_count()) {
    const Graph& graph = runner.graph();
    const ValueId image = graph.inputs[0];
    ValueCoordinates dims(static_cast<size_t>(runner.type(image).rank()));
    dims[dims.size() - 2] = {ImageAxis::kRows, {}};
    dims[dims.size() - 1] = {ImageAxis::kColumns, {}};
    Set(image, std::move(dims));
    for (size_t n = 0; n < graph.nodes.size(); ++n) AddNode(n);
  }

  ImageCoordinates Of(ValueId v) const {
    const Dims& dims = runner_.type(v).dims;
    const Dims& image = runner_.type(runner_.graph().inputs[0]).dims;
    const auto along = [&](int from_end, ImageAxis axis) {
      const auto& found = values_[IndexOf(v)];
      const size_t d = static_cast<size_t>(dims.rank() - from_end);
      if (d < found.size() && found[d] && found[d]->axis == axis) return found[d]->at;
      const auto scale = static_cast<double>(image[image.rank() - from_end]) /
                         static_cast<double>(dims[dims.rank() - from_end]);
      return AxisCoordinates{scale, (scale - 1) / 2};
    };
    return {along(2, ImageAxis::kRows), along(1, ImageAxis::kColumns)};
  }

 private:
  void AddNode(size_t n) {
    const Node& node = runner_.graph().nodes[n];
    const ResolvedSpace* space = runner_.spaces().of_node(n);
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId v = node.outputs[o];
      if (v == kNoValue || !runner_.type(v).is_tensor() || !runner_.type(v).concrete()) continue;
      ValueCoordinates dims(static_cast<size_t>(runner_.type(v).rank()));
      for (size_t d = 0; d < dims.size(); ++d) {
        if (space == nullptr) dims[d] = SameDim(node, v, d);
        else if (o < space->outputs.size()) dims[d] = OfAxis(node, *space, o, d);
      }
      // A Reshape merges rows and columns and another one restores them.
      if (dims.size() >= 3 &&
          std::none_of(dims.begin(), dims.end(), [](const auto& d) { return d; }))
        dims = LikeBefore(node, v);
      Set(v, std::move(dims));
    }
  }

  void Set(ValueId v, ValueCoordinates dims) {
    const size_t rank = dims.size();
    if (rank >= 2 && dims[rank - 2] && dims[rank - 1]) before_.try_emplace(ExtentsOf(v), dims);
    values_[IndexOf(v)] = std::move(dims);
  }
  std::pair<int64_t, int64_t> ExtentsOf(ValueId v) const {
    const Dims& dims = runner_.type(v).dims;
    return {dims[dims.rank() - 2], dims[dims.rank() - 1]};
  }

  ValueCoordinates LikeBefore(const Node& node, ValueId v) const {
    ValueCoordinates dims(static_cast<size_t>(runner_.type(v).rank()));
    const auto found = before_.find(ExtentsOf(v));
    if (found == before_.end() || node.inputs.empty() || node.inputs[0] == kNoValue ||
        values_[IndexOf(node.inputs[0])].empty())
      return dims;
    dims[dims.size() - 2] = found->second[found->second.size() - 2];
    dims[dims.size() - 1] = found->second[found->second.size() - 1];
    return dims;
  }

  // An op that computes its whole output at once: dims of equal extents correspond.
  std::optional<DimCoordinates> SameDim(const Node& node, ValueId output, size_t d) const {
    std::vector<DimCoordinates> found;
    const Dims& dims = runner_.type(output).dims;
    for (ValueId v : node.inputs) {
      if (v == kNoValue || values_[IndexOf(v)].size() != static_cast<size_t>(dims.rank())) continue;
      const int dim = static_cast<int>(d);
      if (values_[IndexOf(v)][d] && runner_.type(v).dims[dim] == dims[dim])
        found.push_back(*values_[IndexOf(v)][d]);
    }
    return Finest(found);
  }

  std::optional<DimCoordinates> OfAxis(const Node& node, const ResolvedSpace& space, size_t o,
                                       size_t d) const {
    const std::vector<DimMap>& outputs = space.outputs[o].dims;
    if (d >= outputs.size() || outputs[d].axis < 0) return std::nullopt;
    const int axis = outputs[d].axis;
    const int64_t extent = space.axes[axis].extent;
    const auto to_output = AlongAxis(outputs[d], extent);
    if (!to_output || to_output->scale == 0) return std::nullopt;
    std::vector<DimCoordinates> found;
    for (size_t i = 0; i < std::min(node.inputs.size(), space.inputs.size()); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      const ValueCoordinates& from = values_[IndexOf(node.inputs[i])];
      const std::vector<DimMap>& dims = space.inputs[i].dims;
      for (size_t e = 0; e < std::min(from.size(), dims.size()); ++e) {
        if (!from[e] || dims[e].axis != axis) continue;
        auto to_input = AlongAxis(dims[e], extent);
        if (dims[e].kind == DimMap::Kind::kFunction) {
          if (const auto formula = ByFormula(runner_.spaces(), node, e, dims[e]))
            to_input = formula;
        }
        if (to_input)
          found.push_back(
              {from[e]->axis, Compose(from[e]->at, Compose(*to_input, Inverse(*to_output)))});
      }
    }
    return Finest(found);
  }

  // What of several counts: the mean of those that sample the image most finely.
  static std::optional<DimCoordinates> Finest(const std::vector<DimCoordinates>& found) {
    if (found.empty()) return std::nullopt;
    constexpr double kEqual = 1e-9;
    const auto finest = std::min_element(
        found.begin(), found.end(),
        [](const auto& a, const auto& b) { return std::abs(a.at.scale) < std::abs(b.at.scale); });
    double offset = 0, count = 0;
    for (const DimCoordinates& f : found) {
      if (f.axis != finest->axis || std::abs(f.at.scale - finest->at.scale) > kEqual) continue;
      offset += f.at.offset, ++count;
    }
    return DimCoordinates{finest->axis, {finest->at.scale, offset / count}};
  }

  const PieceRunner& runner_;
  std::vector<ValueCoordinates> values_;  // empty: does not depend on the image
  // By rows and columns: the first value that follows both.
  std::map<std::pair<int64_t, int64_t>, ValueCoordinates> before_;
};

}  // namespace

std::vector<ImageCoordinates> OutputCoordinates(const PieceRunner& runner) {
  const CoordinateMap map(runner);
  std::vector<ImageCoordinates> coordinates;
  for (ValueId v : runner.graph().outputs) coordinates.push_back(map.Of(v));
  return coordinates;
}

}  // namespace msrt

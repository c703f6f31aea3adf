#include "core/place/control_price.h"

#include <algorithm>
#include <limits>

#include "core/place/place.h"
#include "ops/control.h"

namespace msrt {
namespace {

// A frame for the callee, its inputs and its results; see control_bench.
constexpr double kCallSeconds = 0.4e-6;

constexpr double kImpossible = std::numeric_limits<double>::infinity();
// The upper bound of a delegate's estimate, so that its offer is preferred to a price this high.
// The counts of nested loops multiply to numbers that placement would reject.
constexpr double kMaxSeconds = 1e9;

// Exporters write the largest integer if only the condition ends a loop.
constexpr int64_t kMaxTrips = 1'000'000'000;

double TripsOf(const Graph& graph, const Node& loop) {
  const ConstTensor* count =
      loop.inputs[0] == kNoValue ? nullptr : graph.value(loop.inputs[0]).constant.get();
  if (count == nullptr || count->dims.elements() != 1 || count->As<int64_t>()[0] > kMaxTrips)
    return kTypicalTrips;
  return static_cast<double>(std::max(count->As<int64_t>()[0], int64_t{0}));
}

// A Scan runs once for each slice.
double SlicesOf(const OfferedGraph& graph, const Node& node, const ControlShape& shape) {
  const AttrValue* axes = node.attrs.Find("scan_input_axes");
  const int64_t axis = axes == nullptr || std::get<std::vector<int64_t>>(*axes).empty()
                           ? 0
                           : std::get<std::vector<int64_t>>(*axes)[0];
  const Dims& dims = graph.typical().types[IndexOf(node.inputs[shape.carried])].dims;
  const int64_t a = axis < 0 ? axis + dims.rank() : axis;
  return a >= 0 && a < dims.rank() ? static_cast<double>(dims[static_cast<int>(a)]) : kTypicalTrips;
}

}  // namespace

double ControlPrices::SecondsOf(const OfferedGraph& graph, const Node& node) {
  const ControlShape shape = ShapeOfControl(node);
  const auto call = [&](size_t g) { return SecondsOfCall(graph, shape.graphs[g]); };
  double seconds = 0;
  switch (shape.kind) {
    case ControlKind::kIf:
    case ControlKind::kSwitch:
      for (size_t g = 0; g < shape.graphs.size(); ++g)
        seconds += call(g) / static_cast<double>(shape.graphs.size());
      break;
    case ControlKind::kLoop:
      seconds = TripsOf(graph.graph(), node) * call(0);
      break;
    case ControlKind::kScan:
      seconds = SlicesOf(graph, node, shape) * call(0);
      break;
    case ControlKind::kWhile:
      seconds = kTypicalTrips * (call(0) + call(1)) + call(0);
      break;
    case ControlKind::kCall:
      seconds = shape.graphs.empty() ? 0 : call(0);
      break;
    case ControlKind::kPartial:
      break;
  }
  // NaN: zero iterations of a graph that cannot run.
  return seconds < kImpossible ? std::min(seconds, kMaxSeconds) : kImpossible;
}

double ControlPrices::SecondsOfCall(const OfferedGraph& caller, uint32_t number) {
  const OfferedGraph* callee = caller.callee(number);
  if (callee == nullptr) return kCallSeconds;
  const auto known = seconds_.find(callee);
  if (known != seconds_.end()) return kCallSeconds + known->second;
  Placer placer(*callee, host_, delegates_, options_, this);
  double seconds = kImpossible;
  if (placer.Query().ok()) {
    const auto placement = placer.Place();
    if (placement.ok()) seconds = placement->seconds;
  }
  seconds_[callee] = seconds;
  return kCallSeconds + seconds;
}

}  // namespace msrt

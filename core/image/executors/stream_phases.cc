#include "core/image/executors/stream_phases.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace msrt {
namespace {

// A stored value is smaller than the largest value by this factor. Where the receptive field is
// larger than the image, other values are required whole too; storing them would gain nothing.
constexpr double kMinReduction = 4;
constexpr int kMaxDepth = 1000;  // of statistics that depend on statistics

class PhaseFinder {
 public:
  PhaseFinder(const PieceRunner& runner, const PhaseOptions& options)
      : runner_(runner),
        graph_(runner.graph()),
        options_(options),
        producers_(graph_.Producers()),
        is_known_(graph_.value_count()) {
    for (const Node& node : graph_.nodes) {
      for (ValueId v : node.outputs) {
        if (v != kNoValue) max_bytes_ = std::max(max_bytes_, BytesOfValue(v));
      }
    }
  }

  Result<std::vector<StreamPhase>> Run() {
    std::vector<StreamTarget> outputs;
    for (ValueId v : graph_.outputs) outputs.push_back({v, runner_.type(v).rank() - 2});
    MSRT_RETURN_IF_ERROR(Add(std::move(outputs), 0));
    return std::move(phases_);
  }

 private:
  double BytesOfValue(ValueId v) const {
    const Type& type = runner_.type(v);
    return type.concrete() ? static_cast<double>(type.bytes()) : 0;
  }

  // Adds the phases that the targets depend on, then theirs.
  Status Add(std::vector<StreamTarget> targets, int depth) {
    MSRT_ASSIGN_OR_RETURN(const Statistics statistics, FindStatistics(targets));
    const auto is_target = [&](ValueId v) {
      return std::any_of(targets.begin(), targets.end(),
                         [&](const StreamTarget& t) { return t.value == v; });
    };
    const bool progress =
        !statistics.stored.empty() && depth < kMaxDepth &&
        (statistics.stored.size() < targets.size() ||
         !std::all_of(statistics.stored.begin(), statistics.stored.end(), is_target));
    StreamPhase phase;
    if (progress) {
      std::vector<StreamTarget> stored;
      for (ValueId v : statistics.stored) {
        MSRT_ASSIGN_OR_RETURN(const int dim, DimOfRows(v));
        stored.push_back({v, dim});
      }
      MSRT_RETURN_IF_ERROR(Add(std::move(stored), depth + 1));
    }
    if (progress || statistics.stored.empty()) {
      for (ValueId v : statistics.used) {
        if (!is_known_[IndexOf(v)]) phase.derived.push_back(v);
      }
    }
    for (ValueId v : phase.derived) known_.push_back(v), is_known_[IndexOf(v)] = true;
    std::erase_if(targets, [&](const StreamTarget& t) { return is_known_[IndexOf(t.value)]; });
    phase.known = known_;
    phase.targets = std::move(targets);
    for (const StreamTarget& t : phase.targets) {
      if (depth > 0) known_.push_back(t.value), is_known_[IndexOf(t.value)] = true;
    }
    if (depth == 0 || !phase.targets.empty() || !phase.derived.empty())
      phases_.push_back(std::move(phase));
    return OkStatus();
  }

  struct Statistics {
    std::vector<ValueId> used;    // by values that follow the rows of the image
    std::vector<ValueId> stored;  // from which `used` can be computed
  };

  // The boxes that the first or last row of each target requires.
  Result<RequiredBoxes> RequiredFor(std::span<const StreamTarget> targets, bool last) const {
    std::vector<PieceMemory> wanted;
    for (const StreamTarget& t : targets) {
      const int64_t rows = RowsOf(runner_, t);
      const Interval row = last ? Interval{rows - 1, rows} : Interval{0, 1};
      wanted.push_back({t.value, CutOf(runner_, t, row), {}});
    }
    return RequiredFrom(wanted);
  }

  // The boxes that `wanted` requires beside the known values.
  Result<RequiredBoxes> RequiredFrom(const std::vector<PieceMemory>& wanted) const {
    std::vector<PieceMemory> sources;
    for (ValueId v : known_) sources.push_back({v, Box::Whole(runner_.type(v).dims), {}});
    return runner_.Required(sources, wanted);
  }

  Result<Statistics> FindStatistics(std::span<const StreamTarget> targets) const {
    MSRT_ASSIGN_OR_RETURN(const RequiredBoxes first, RequiredFor(targets, false));
    MSRT_ASSIGN_OR_RETURN(const RequiredBoxes last, RequiredFor(targets, true));
    std::vector<bool> fixed(graph_.value_count());  // required whole by every row, and small
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!first.pieces[n] || !last.pieces[n]) continue;
      for (ValueId v : graph_.nodes[n].outputs) {
        if (v == kNoValue || !first.values[IndexOf(v)] || !last.values[IndexOf(v)]) continue;
        const Box whole = Box::Whole(runner_.type(v).dims);
        const double bytes = BytesOfValue(v);
        fixed[IndexOf(v)] = *first.values[IndexOf(v)] == whole &&
                            *last.values[IndexOf(v)] == whole &&
                            bytes <= static_cast<double>(options_.max_stored_bytes) &&
                            bytes * kMinReduction <= max_bytes_;
      }
    }
    Statistics result;
    std::vector<bool> seen(graph_.value_count());
    const auto visit = [&](ValueId v) {
      if (v == kNoValue || !fixed[IndexOf(v)] || seen[IndexOf(v)]) return;
      seen[IndexOf(v)] = true;
      result.used.push_back(v);
    };
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!first.pieces[n] && !last.pieces[n]) continue;
      const auto& outputs = graph_.nodes[n].outputs;
      const bool streams = std::any_of(outputs.begin(), outputs.end(), [&](ValueId v) {
        return v != kNoValue && !fixed[IndexOf(v)] && first.values[IndexOf(v)];
      });
      if (!streams) continue;
      for (ValueId v : graph_.nodes[n].inputs) visit(v);
    }
    FindStored(fixed, &result);
    return result;
  }

  // Goes from the used values towards the image, as long as the values are small.
  void FindStored(const std::vector<bool>& fixed, Statistics* result) const {
    std::vector<bool> seen(graph_.value_count());
    std::vector<ValueId> open = result->used;
    while (!open.empty()) {
      const ValueId v = open.back();
      open.pop_back();
      if (seen[IndexOf(v)] || is_known_[IndexOf(v)]) continue;
      seen[IndexOf(v)] = true;
      const Node& node = graph_.nodes[static_cast<size_t>(producers_[IndexOf(v)])];
      const bool inner = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) {
        return in == kNoValue || fixed[IndexOf(in)] || is_known_[IndexOf(in)] || IsConstant(in);
      });
      if (!inner) {
        result->stored.push_back(v);
        continue;
      }
      for (ValueId in : node.inputs) {
        if (in != kNoValue && fixed[IndexOf(in)]) open.push_back(in);
      }
    }
  }

  bool IsConstant(ValueId v) const { return runner_.spaces().facts().known[IndexOf(v)] != nullptr; }

  // The dim of a stored value whose elements need the fewest rows of the image, because strips go
  // along the rows; among those, the smallest part of it. -1: each needs the whole image.
  Result<int> DimOfRows(ValueId v) const {
    const Dims& dims = runner_.type(v).dims;
    const ValueId image = graph_.inputs[0];
    const Box whole = Box::Whole(runner_.type(image).dims);
    const auto size = [](const Box& box) { return std::pair(box[2].size(), box.volume()); };
    auto least = size(whole);
    int best = -1;
    for (int d = 0; d < dims.rank(); ++d) {
      if (dims[d] <= 1) continue;
      std::optional<Box> box;
      // The first elements may need nothing but padding.
      for (int64_t at = 0; at < dims[d] && !box; at += std::max<int64_t>(1, dims[d] / 2)) {
        MSRT_ASSIGN_OR_RETURN(const RequiredBoxes boxes,
                              RequiredFrom({{v, CutOf(runner_, {v, d}, {at, at + 1}), {}}}));
        box = boxes.values[IndexOf(image)];
      }
      if (!box || size(*box) >= least) continue;
      least = size(*box);
      best = d;
    }
    return best;
  }

  const PieceRunner& runner_;
  const Graph& graph_;
  const PhaseOptions& options_;
  const std::vector<int32_t> producers_;
  double max_bytes_ = 0;
  std::vector<ValueId> known_;
  std::vector<bool> is_known_;  // by value
  std::vector<StreamPhase> phases_;
};

}  // namespace

Box CutOf(const PieceRunner& runner, const StreamTarget& target, Interval rows) {
  Box box = Box::Whole(runner.type(target.value).dims);
  if (target.dim >= 0) box[target.dim] = rows;
  return box;
}

int64_t RowsOf(const PieceRunner& runner, const StreamTarget& target) {
  return target.dim < 0 ? 1 : runner.type(target.value).dims[target.dim];
}

Result<std::vector<StreamPhase>> FindPhases(const PieceRunner& runner,
                                            const PhaseOptions& options) {
  return PhaseFinder(runner, options).Run();
}

}  // namespace msrt

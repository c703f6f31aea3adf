#include "core/image/executors/image_plan.h"

#include <algorithm>
#include <set>

#include "core/base/platform.h"

namespace msrt {
namespace {

constexpr int64_t kMaxTile = 4096;
// Smaller tiles hardly save memory, as the part of the image that a tile reads is larger.
constexpr int64_t kMinTile = 16;
// For the scratch memory of kernels: a share of the limit, and at least some bytes.
constexpr size_t kScratchShare = 64;
constexpr size_t kMinScratchBytes = size_t{1} << 20;

// Returns the least limit that leaves `bytes` beside scratch memory.
size_t LimitFor(size_t bytes) {
  return std::max(bytes + kMinScratchBytes, bytes + bytes / (kScratchShare - 1) + kScratchShare);
}

std::vector<PieceMemory> WithoutMemory(const PieceRunner& runner, std::span<const ValueBox> boxes) {
  std::vector<PieceMemory> memory;
  for (const ValueBox& b : boxes)
    memory.push_back({b.value, b.box, {runner.type(b.value).dtype, b.box.dims()}});
  return memory;
}

// Counts the memory of the pieces of one phase. `last`: the targets are outputs, written piece by
// piece; otherwise they are stored.
class PhaseMemory {
 public:
  PhaseMemory(const PieceRunner& runner, const StreamPhase& phase, bool last)
      : runner_(runner), phase_(phase), last_(last) {
    for (ValueId v : phase.known) known_.push_back({v, Box::Whole(runner.type(v).dims)});
  }

  Result<size_t> OfStrips(int64_t rows, Interval range) const {
    MSRT_ASSIGN_OR_RETURN(const RowSchedule schedule,
                          RowSchedule::Make(runner_, phase_, rows, range));
    std::vector<std::optional<Box>> held(runner_.graph().value_count());
    std::optional<Box> image;
    std::set<size_t> bound;
    size_t peak = 0, arena = 0;
    for (size_t s = 0; s < schedule.strip_count(); ++s) {
      const StreamStrip strip = schedule.strip(s);
      size_t bytes = 0;
      for (size_t v = 0; v < held.size(); ++v) {
        if (held[v]) bytes += BytesOf(ValueId(static_cast<uint32_t>(v)), *held[v]);
      }
      // While the rows that stay are copied, the image has two buffers; later it has one.
      const size_t before = image ? BytesOf(Image(), *image) : 0;
      if (strip.image) image = strip.image;
      const size_t after = image ? BytesOf(Image(), *image) : 0;
      peak = std::max(peak, bytes + before + after);
      bytes += after;
      for (const ValueBox& r : strip.retains) bytes += BytesOf(r.value, r.box);
      if (last_) bytes += Sum(strip.targets);
      if (bound.insert(schedule.shape_of(s)).second) {
        std::vector<ValueBox> sources = known_, targets = strip.targets;
        if (image) sources.push_back({Image(), *image});
        for (ValueId v : strip.reads) {
          if (held[IndexOf(v)]) sources.push_back({v, *held[IndexOf(v)]});
        }
        targets.insert(targets.end(), strip.retains.begin(), strip.retains.end());
        MSRT_ASSIGN_OR_RETURN(const size_t needed, ArenaOf(sources, targets));
        arena = std::max(arena, needed);
      }
      peak = std::max(peak, bytes);
      for (const ValueBox& r : strip.retains) held[IndexOf(r.value)] = r.box;
      for (size_t v = 0; v < held.size(); ++v) {
        if (schedule.last_read(ValueId(static_cast<uint32_t>(v))) <= static_cast<int64_t>(s))
          held[v].reset();
      }
    }
    return peak + arena;  // the arena stays from strip to strip
  }

  // If the run may skip strips, a range may begin anywhere; a few in the middle stand for all.
  Result<size_t> OfStrips(int64_t rows, bool skips) const {
    const int64_t strips = StripCount(runner_, phase_, rows);
    MSRT_ASSIGN_OR_RETURN(size_t peak, OfStrips(rows, Interval{0, strips}));
    constexpr int64_t kStarts = 4;
    for (int64_t s = strips / 2; skips && s < std::min(strips, strips / 2 + kStarts); ++s) {
      MSRT_ASSIGN_OR_RETURN(const size_t bytes,
                            OfStrips(rows, Interval{s, std::min(strips, s + 2)}));
      peak = std::max(peak, bytes);
    }
    return peak;
  }

  // Interior tiles are the largest; the one in the middle and the first stand for all.
  Result<size_t> OfTiles(int64_t rows, int64_t columns) const {
    const TileSchedule schedule(runner_, phase_, rows, columns);
    size_t peak = 0;
    const int64_t count = schedule.tile_count();
    std::set<std::vector<int64_t>> seen;
    constexpr int64_t kSamples = 64;
    for (int64_t k = 0; k < std::min(count, kSamples); ++k) {
      const int64_t tile = count <= kSamples ? k : k * (count - 1) / (kSamples - 1);
      MSRT_ASSIGN_OR_RETURN(const size_t bytes, OfTile(schedule.targets(tile), &seen));
      peak = std::max(peak, bytes);
    }
    return peak;
  }

  Result<size_t> OfDerived() const {
    if (phase_.derived.empty()) return size_t{0};
    std::vector<ValueBox> sources = known_, targets;
    std::erase_if(sources, [&](const ValueBox& s) {
      return std::find(phase_.derived.begin(), phase_.derived.end(), s.value) !=
             phase_.derived.end();
    });
    for (ValueId v : phase_.derived) targets.push_back({v, Box::Whole(runner_.type(v).dims)});
    return ArenaOf(sources, targets);
  }

 private:
  ValueId Image() const { return runner_.graph().inputs[0]; }
  size_t BytesOf(ValueId v, const Box& box) const { return BytesOfBox(runner_, v, box); }
  size_t Sum(std::span<const ValueBox> boxes) const {
    size_t bytes = 0;
    for (const ValueBox& b : boxes) bytes += BytesOf(b.value, b.box);
    return bytes;
  }

  Result<size_t> ArenaOf(std::span<const ValueBox> sources,
                         std::span<const ValueBox> targets) const {
    const auto from = WithoutMemory(runner_, sources), to = WithoutMemory(runner_, targets);
    MSRT_ASSIGN_OR_RETURN(const auto binding, runner_.Bind(from, to));
    return binding->arena_bytes;
  }

  Result<size_t> OfTile(const std::vector<ValueBox>& targets,
                        std::set<std::vector<int64_t>>* seen) const {
    const auto from = WithoutMemory(runner_, known_), to = WithoutMemory(runner_, targets);
    MSRT_ASSIGN_OR_RETURN(const RequiredBoxes required, runner_.Required(from, to));
    std::vector<int64_t> shape;
    for (const auto& box : required.values) {
      for (int d = 0; box && d < box->rank(); ++d) shape.push_back((*box)[d].size());
    }
    if (!seen->insert(std::move(shape)).second) return size_t{0};
    std::vector<ValueBox> sources = known_;
    size_t bytes = last_ ? Sum(targets) : 0;
    if (const auto& image = required.values[IndexOf(Image())]; image) {
      sources.push_back({Image(), *image});
      bytes += BytesOf(Image(), *image);
    }
    MSRT_ASSIGN_OR_RETURN(const size_t arena, ArenaOf(sources, targets));
    return bytes + arena;
  }

  const PieceRunner& runner_;
  const StreamPhase& phase_;
  const bool last_;
  std::vector<ValueBox> known_;
};

class ImagePlanner {
 public:
  ImagePlanner(const PieceRunner& runner, size_t weight_bytes, const ImagePlanOptions& options)
      : runner_(runner), options_(options) {
    plan_.limit_bytes = MemoryLimitOf(options);
    plan_.fixed_bytes = weight_bytes + runner.packed_bytes() + options.caller_bytes;
  }

  Result<ImagePlan> Run() {
    PhaseOptions phases;
    phases.max_stored_bytes =
        static_cast<size_t>(static_cast<double>(plan_.limit_bytes) * options_.stored_share);
    MSRT_ASSIGN_OR_RETURN(std::vector<StreamPhase> found, FindPhases(runner_, phases));
    size_t stored = 0;
    for (size_t p = 0; p < found.size(); ++p) {
      MSRT_ASSIGN_OR_RETURN(PhasePlan plan,
                            PlanPhase(std::move(found[p]), p + 1 == found.size(), &stored));
      plan_.peak_bytes =
          std::max(plan_.peak_bytes, plan_.fixed_bytes + plan.stored_bytes + plan.piece_bytes +
                                         KernelScratchBytes(plan_.limit_bytes));
      plan_.phases.push_back(std::move(plan));
    }
    return std::move(plan_);
  }

  size_t limit() const { return plan_.limit_bytes; }
  // After kLimitExceeded: a limit that the first phase that does not fit would keep; 0: unknown.
  size_t needed() const { return needed_; }

 private:
  Result<PhasePlan> PlanPhase(StreamPhase phase, bool last, size_t* stored) {
    PhasePlan plan;
    plan.phase = std::move(phase);
    for (ValueId v : plan.phase.derived) *stored += runner_.type(v).bytes();
    for (const StreamTarget& t : plan.phase.targets)
      *stored += last ? 0 : runner_.type(t.value).bytes();
    plan.stored_bytes = *stored;
    const PhaseMemory memory(runner_, plan.phase, last);
    MSRT_ASSIGN_OR_RETURN(const size_t derived, memory.OfDerived());
    const size_t used = plan_.fixed_bytes + plan.stored_bytes;
    const size_t taken = used + KernelScratchBytes(plan_.limit_bytes);
    const size_t left = plan_.limit_bytes > taken ? plan_.limit_bytes - taken : 0;
    size_t least = SIZE_MAX;  // of all that was tried
    bool fits = plan.phase.targets.empty();
    Status refusal;
    if (!fits && options_.executor != ImageExecutor::kTiles) {
      const Status status = TryStrips(memory, left, &plan, &least, &fits);
      if (!status.ok() &&
          (status.code() != Code::kUnsupported || options_.executor == ImageExecutor::kStream))
        return status;
    }
    if (!fits && options_.executor != ImageExecutor::kStream)
      MSRT_RETURN_IF_ERROR(TryTiles(memory, left, last, &plan, &least, &fits));
    if (!fits || derived > left) {
      needed_ = LimitFor(used + std::max(derived, fits ? plan.piece_bytes : least));
      return LimitExceeded("the image needs ", needed_, " bytes");
    }
    plan.piece_bytes = std::max(plan.piece_bytes, derived);
    return plan;
  }

  int64_t RowsOfPhase(const StreamPhase& phase) const {
    int64_t rows = 1;
    for (const StreamTarget& t : phase.targets) rows = std::max(rows, RowsOf(runner_, t));
    return rows;
  }

  // The largest strips that fit: they cost least.
  Status TryStrips(const PhaseMemory& memory, size_t left, PhasePlan* plan, size_t* least,
                   bool* fits) const {
    const int64_t all = RowsOfPhase(plan->phase);
    int64_t rows = options_.strip_rows;
    if (rows == 0) {
      rows = 1;
      while (rows < std::min(all, options_.max_strip_rows)) rows *= 2;
      rows = std::min(rows, std::max<int64_t>(1, options_.max_strip_rows));
    }
    for (;; rows /= 2) {
      MSRT_ASSIGN_OR_RETURN(const size_t bytes, memory.OfStrips(rows, options_.skips));
      *least = std::min(*least, bytes);
      plan->executor = ImageExecutor::kStream;
      plan->rows = rows, plan->columns = 0, plan->piece_bytes = bytes;
      *fits = bytes <= left;
      if (*fits || rows <= 1 || options_.strip_rows != 0) return OkStatus();
    }
  }

  Status TryTiles(const PhaseMemory& memory, size_t left, bool last, PhasePlan* plan, size_t* least,
                  bool* fits) const {
    const bool given = last && options_.tile_rows != 0;
    for (int64_t tile = kMaxTile;; tile /= 2) {
      const int64_t rows = given ? options_.tile_rows : tile;
      const int64_t columns = given && options_.tile_columns != 0 ? options_.tile_columns : rows;
      MSRT_ASSIGN_OR_RETURN(const size_t bytes, memory.OfTiles(rows, columns));
      *least = std::min(*least, bytes);
      plan->executor = ImageExecutor::kTiles;
      plan->rows = rows, plan->columns = columns, plan->piece_bytes = bytes;
      *fits = bytes <= left;
      if (*fits || tile <= kMinTile || given) return OkStatus();
    }
  }

  const PieceRunner& runner_;
  const ImagePlanOptions& options_;
  ImagePlan plan_;
  size_t needed_ = 0;
};

}  // namespace

std::string_view ExecutorName(ImageExecutor executor) {
  switch (executor) {
    case ImageExecutor::kStream:
      return "stream";
    case ImageExecutor::kTiles:
      return "tiles";
    case ImageExecutor::kHalo:
      return "halo";
    case ImageExecutor::kAuto:
      break;
  }
  return "auto";
}

size_t MemoryLimitOf(const ImagePlanOptions& options) {
  if (options.memory_limit_bytes != 0) return options.memory_limit_bytes;
  return static_cast<size_t>(PhysicalMemoryBytes() / 2);
}

size_t KernelScratchBytes(size_t limit) {
  return std::max(limit / kScratchShare, kMinScratchBytes);
}

size_t BytesOfBox(const PieceRunner& runner, ValueId value, const Box& box) {
  return BytesOf(runner.type(value).dtype, box.volume());
}

TileSchedule::TileSchedule(const PieceRunner& runner, const StreamPhase& phase, int64_t rows,
                           int64_t columns)
    : runner_(runner), phase_(phase), rows_(rows), columns_(columns) {
  down_ = StripCount(runner, phase, rows);
  for (const StreamTarget& t : phase.targets) {
    const Dims& dims = runner.type(t.value).dims;
    if (t.dim >= 0 && t.dim + 2 == dims.rank()) all_columns_ = std::max(all_columns_, dims.back());
  }
  across_ = (all_columns_ + columns - 1) / columns;
}

std::vector<ValueBox> TileSchedule::targets(int64_t tile) const {
  std::vector<ValueBox> boxes = TargetsOf(runner_, phase_, rows_, tile / across_);
  const int64_t column = tile % across_;
  for (ValueBox& b : boxes) {
    const int dim = b.box.rank() - 1;
    const bool cut = std::any_of(phase_.targets.begin(), phase_.targets.end(), [&](const auto& t) {
      return t.value == b.value && t.dim >= 0 && t.dim + 1 == dim;
    });
    const auto at = [&](int64_t c) {
      return std::min(all_columns_, c * columns_) * b.box[dim].end / all_columns_;
    };
    if (cut) b.box[dim] = {at(column), at(column + 1)};
    else if (column != 0) b.box[0] = {0, 0};
  }
  std::erase_if(boxes, [](const ValueBox& b) { return b.box.empty(); });
  return boxes;
}

Result<ImagePlan> PlanImage(const PieceRunner& runner, size_t weight_bytes,
                            const ImagePlanOptions& options) {
  ImagePlanner planner(runner, weight_bytes, options);
  Result<ImagePlan> plan = planner.Run();
  size_t needed = planner.needed();
  if (plan.ok() || needed == 0) return plan;
  // Later phases may need more, and a larger limit may change the phases.
  constexpr int kMaxRounds = 64;
  for (int round = 0; round < kMaxRounds; ++round) {
    ImagePlanOptions larger = options;
    larger.memory_limit_bytes = needed;
    ImagePlanner again(runner, weight_bytes, larger);
    const Result<ImagePlan> suffices = again.Run();
    if (suffices.ok()) break;
    if (again.needed() <= needed) return suffices.status();
    needed = again.needed();
  }
  return LimitExceeded("the image needs at least ", needed, " bytes, the memory limit is ",
                       planner.limit(), "; set the limit to ", needed, " bytes or more");
}

}  // namespace msrt

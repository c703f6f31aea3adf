#include "core/image/executors/image_plan.h"

#include <algorithm>

#include "core/base/platform.h"
#include "core/image/executors/phase_memory.h"

namespace msrt {
namespace {

// Smaller tiles hardly save memory, as the part of the image that a tile reads is larger.
constexpr int64_t kMinTile = 16;
// For the scratch memory of kernels: a share of the limit, and at least some bytes.
constexpr size_t kScratchShare = 64;
constexpr size_t kMinScratchBytes = size_t{1} << 20;

// Returns the least limit that leaves `bytes` beside scratch memory.
size_t LimitFor(size_t bytes) {
  return std::max(bytes + kMinScratchBytes, bytes + bytes / (kScratchShare - 1) + kScratchShare);
}

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
    arena_ = std::max(arena_, derived);
    size_t least = SIZE_MAX;  // of all that was tried
    bool fits = plan.phase.targets.empty() && arena_ <= left;
    if (fits) plan.piece_bytes = arena_;
    if (!plan.phase.targets.empty() && options_.executor != ImageExecutor::kTiles) {
      const Status status = TryStrips(memory, left, last, &plan, &least, &fits);
      if (!status.ok() &&
          (status.code() != Code::kUnsupported || options_.executor == ImageExecutor::kStream))
        return status;
    }
    if (!plan.phase.targets.empty() && !fits && options_.executor != ImageExecutor::kStream)
      MSRT_RETURN_IF_ERROR(TryTiles(memory, left, last, &plan, &least, &fits));
    if (fits) return plan;
    needed_ = LimitFor(used + (least == SIZE_MAX ? arena_ : least));
    return LimitExceeded("the image needs ", needed_, " bytes");
  }

  int64_t RowsOfPhase(const StreamPhase& phase) const {
    int64_t rows = 1;
    for (const StreamTarget& t : phase.targets) rows = std::max(rows, RowsOf(runner_, t));
    return rows;
  }

  // The largest strips that fit: they cost least.
  Status TryStrips(const PhaseMemory& memory, size_t left, bool last, PhasePlan* plan,
                   size_t* least, bool* fits) {
    const int64_t all = RowsOfPhase(plan->phase);
    int64_t rows = options_.strip_rows;
    if (rows == 0) {
      rows = 1;
      while (rows < std::min(all, options_.max_strip_rows)) rows *= 2;
      rows = std::min(rows, std::max<int64_t>(1, options_.max_strip_rows));
    }
    plan->executor = ImageExecutor::kStream;
    for (;; rows /= 2) {
      const bool smallest = rows <= 1 || options_.strip_rows != 0;
      plan->rows = rows, plan->columns = 0;
      MSRT_ASSIGN_OR_RETURN(const PieceBytes bytes,
                            memory.OfStrips(rows, options_.skips, smallest ? SIZE_MAX : left));
      Take(bytes, last, left, plan, least, fits);
      if (*fits || smallest) return OkStatus();
    }
  }

  Status TryTiles(const PhaseMemory& memory, size_t left, bool last, PhasePlan* plan, size_t* least,
                  bool* fits) {
    const bool given = last && options_.tile_rows != 0;
    plan->executor = ImageExecutor::kTiles;
    for (int64_t tile = kMaxTile;; tile /= 2) {
      const bool smallest = tile <= kMinTile || given;
      plan->rows = given ? options_.tile_rows : tile;
      plan->columns = given && options_.tile_columns != 0 ? options_.tile_columns : plan->rows;
      MSRT_ASSIGN_OR_RETURN(const PieceBytes bytes,
                            memory.OfTiles(plan->rows, plan->columns, smallest ? SIZE_MAX : left));
      Take(bytes, last, left, plan, least, fits);
      if (*fits || smallest) return OkStatus();
    }
  }

  // Notes what the pieces of the plan take, and whether that fits.
  void Take(const PieceBytes& bytes, bool last, size_t left, PhasePlan* plan, size_t* least,
            bool* fits) {
    const size_t arena = std::max(arena_, bytes.arena);  // that of earlier phases stays
    plan->piece_bytes = bytes.held + arena;
    if (last && options_.writer_bytes)
      plan->piece_bytes += options_.writer_bytes(plan->executor, plan->rows, plan->columns);
    *least = std::min(*least, plan->piece_bytes);
    *fits = plan->piece_bytes <= left;
    if (*fits) arena_ = arena;
  }

  const PieceRunner& runner_;
  const ImagePlanOptions& options_;
  ImagePlan plan_;
  size_t arena_ = 0;  // that the phases so far need
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

// Rolling rows: runs the strips of a phase from top to bottom.
#include <algorithm>
#include <optional>

#include "core/image/executors/image_runner_state.h"
#include "core/image/executors/piece_counter.h"

namespace msrt {
namespace {

class StreamExecutor {
 public:
  StreamExecutor(const RowSchedule& schedule, const StreamPhase& phase, ImageRunState* state)
      : schedule_(schedule), phase_(phase), state_(*state), counter_(state->runner) {}

  const PieceCounter& counter() const { return counter_; }

  Status Run(size_t s) {
    const StreamStrip strip = schedule_.strip(s);
    MSRT_RETURN_IF_ERROR(ReadImage(strip));
    ReadAhead(s + 1);
    std::vector<PieceMemory> sources = state_.Stored(phase_.known);
    if (image_) sources.push_back(image_->View());
    for (ValueId v : strip.reads) {
      if (const auto it = held_.find(IndexOf(v)); it != held_.end())
        sources.push_back(it->second.View());
    }
    std::vector<BoxMemory> outputs;
    MSRT_ASSIGN_OR_RETURN(std::vector<PieceMemory> targets,
                          state_.TargetMemory(strip.targets, &outputs));
    std::vector<BoxMemory> retained;
    for (const ValueBox& r : strip.retains) {
      MSRT_ASSIGN_OR_RETURN(BoxMemory memory, state_.NewMemory(r.value, r.box));
      retained.push_back(std::move(memory));
    }
    for (const BoxMemory& memory : retained) targets.push_back(memory.View());
    MSRT_ASSIGN_OR_RETURN(const RequiredBoxes required, state_.runner.Required(sources, targets));
    counter_.Add(required);
    MSRT_RETURN_IF_ERROR(state_.Run(sources, targets));
    for (BoxMemory& memory : retained)
      held_.insert_or_assign(IndexOf(memory.value()), std::move(memory));
    std::erase_if(held_, [&](const auto& entry) {
      return schedule_.last_read(ValueId(entry.first)) <= static_cast<int64_t>(s);
    });
    return state_.Write(outputs);
  }

 private:
  // Reads the rows of the image that no strip has read.
  Status ReadImage(const StreamStrip& strip) {
    if (!strip.image) return OkStatus();
    MSRT_ASSIGN_OR_RETURN(BoxMemory next, state_.NewMemory(state_.image(), *strip.image));
    const Box rest = Unread(*strip.image);
    if (image_) MSRT_RETURN_IF_ERROR(next.CopyFrom(*image_, state_.parallel));
    state_.counter.Note(state_.fixed_bytes + state_.runner.arena_bytes() +
                        state_.runner.scratch_bytes());
    image_ = std::move(next);
    return rest.empty() ? OkStatus() : state_.Read(*image_, rest);
  }

  // Returns the rows of the box that are not in memory.
  Box Unread(Box box) const {
    if (!image_) return box;
    if (image_->box() == box) box[0] = {0, 0};
    // Rows are the dim in which the two differ.
    for (int d = 0; d < box.rank() && !box.empty(); ++d) {
      if (image_->box()[d] != box[d]) box[d].begin = std::max(box[d].begin, image_->box()[d].end);
    }
    return box;
  }

  void ReadAhead(size_t s) const {
    if (!state_.io.ahead || s >= schedule_.strip_count()) return;
    const StreamStrip strip = schedule_.strip(s);
    const Box rest = strip.image ? Unread(*strip.image) : Box();
    if (rest.rank() != 0 && !rest.empty()) state_.io.ahead(rest);
  }

  const RowSchedule& schedule_;
  const StreamPhase& phase_;
  ImageRunState& state_;
  PieceCounter counter_;
  std::optional<BoxMemory> image_;
  std::map<uint32_t, BoxMemory> held_;  // retained rows, by value
};

// Finds the strips to compute: ranges of them, between which at least `min_gap` are skipped.
Result<std::vector<Interval>> WantedRanges(const PhasePlan& plan, size_t phase, bool last_phase,
                                           const ImageRunState& state, int64_t min_gap) {
  const int64_t strips = StripCount(state.runner, plan.phase, plan.rows);
  std::vector<Interval> ranges;
  for (int64_t s = 0; s < strips; ++s) {
    MSRT_RETURN_IF_ERROR(state.CheckCancelled());
    MSRT_ASSIGN_OR_RETURN(
        const bool wanted,
        state.Wanted(plan, phase, last_phase, TargetsOf(state.runner, plan.phase, plan.rows, s)));
    if (!wanted) continue;
    if (!ranges.empty() && s - ranges.back().end < min_gap) ranges.back().end = s + 1;
    else ranges.push_back({s, s + 1});
  }
  return ranges;
}

// Counts the rows of a range of strips, and those that an earlier range has computed too.
void CountRows(const RowSchedule& schedule, const PieceCounter& counter,
               std::map<uint32_t, Interval>* earlier, ImageReport::Phase* report) {
  report->computed_elements += counter.computed();
  report->whole_elements += counter.whole();
  for (RowCount count : counter.Rows([&](ValueId v) { return schedule.dim_of(v); })) {
    const Interval rows = schedule.last_rows(count.value);
    Interval& before = (*earlier)[IndexOf(count.value)];
    count.recomputed += Intersect(before, rows).size();
    before = rows;  // ranges are in order
    report->computed_rows += count.computed;
    report->recomputed_rows += count.recomputed;
    const auto known = std::find_if(report->values.begin(), report->values.end(),
                                    [&](const RowCount& c) { return c.value == count.value; });
    if (known == report->values.end()) report->values.push_back(count);
    else known->computed += count.computed, known->recomputed += count.recomputed;
  }
}

// A new range computes the rows above it again, so a gap of one strip saves little.
constexpr int64_t kMinSkippedStrips = 2;

}  // namespace

Status StreamPhaseRows(const PhasePlan& plan, size_t phase, size_t phases, ImageRunState* state,
                       ImageReport::Phase* report) {
  const int64_t strips = StripCount(state->runner, plan.phase, plan.rows);
  report->pieces = strips;
  MSRT_ASSIGN_OR_RETURN(std::vector<Interval> ranges,
                        WantedRanges(plan, phase, phase + 1 == phases, *state, kMinSkippedStrips));
  ranges.push_back({strips, strips});
  std::map<uint32_t, Interval> earlier;
  int64_t at = 0;
  for (const Interval& range : ranges) {
    for (; at < range.begin; ++at, ++report->skipped_pieces) {
      if (phase + 1 == phases)
        MSRT_RETURN_IF_ERROR(state->Skip(TargetsOf(state->runner, plan.phase, plan.rows, at)));
      state->Progress(phase, phases, at + 1, strips);
    }
    if (range.empty()) break;
    MSRT_ASSIGN_OR_RETURN(const RowSchedule schedule,
                          RowSchedule::Make(state->runner, plan.phase, plan.rows, range));
    StreamExecutor executor(schedule, plan.phase, state);
    for (; at < range.end; ++at) {
      MSRT_RETURN_IF_ERROR(state->CheckCancelled());
      MSRT_RETURN_IF_ERROR(executor.Run(static_cast<size_t>(at - range.begin)));
      state->Progress(phase, phases, at + 1, strips);
    }
    CountRows(schedule, executor.counter(), &earlier, report);
  }
  return OkStatus();
}

}  // namespace msrt

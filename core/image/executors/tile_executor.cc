// Overlapping tiles: each tile of the targets is computed from the part of the image that it needs.
#include "core/image/executors/image_runner_state.h"
#include "core/image/executors/piece_counter.h"
#include "core/image/executors/tile_schedule.h"

namespace msrt {
namespace {

std::vector<PieceMemory> BoxesOnly(const ImageRunState& state, std::span<const ValueBox> boxes) {
  std::vector<PieceMemory> memory;
  for (const ValueBox& b : boxes)
    memory.push_back({b.value, b.box, {state.runner.type(b.value).dtype, b.box.dims()}});
  return memory;
}

// Tells which part of the image a tile needs.
Status ReadAhead(const StreamPhase& phase, std::span<const ValueBox> boxes,
                 const ImageRunState& state) {
  if (!state.io.ahead || boxes.empty()) return OkStatus();
  const std::vector<PieceMemory> targets = BoxesOnly(state, boxes);
  MSRT_ASSIGN_OR_RETURN(const RequiredBoxes required,
                        state.runner.Required(state.Stored(phase.known), targets));
  if (const auto& box = required.values[IndexOf(state.image())]; box) state.io.ahead(*box);
  return OkStatus();
}

// `next`: the boxes of the tile after this one, if there is one.
Status RunTile(const StreamPhase& phase, const std::vector<ValueBox>& boxes,
               std::span<const ValueBox> next, ImageRunState* state, PieceCounter* counter) {
  std::vector<BoxMemory> outputs;
  MSRT_ASSIGN_OR_RETURN(const std::vector<PieceMemory> targets,
                        state->TargetMemory(boxes, &outputs));
  std::vector<PieceMemory> sources = state->Stored(phase.known);
  MSRT_ASSIGN_OR_RETURN(const RequiredBoxes required, state->runner.Required(sources, targets));
  counter->Add(required);
  {
    std::optional<BoxMemory> image;
    if (const auto& box = required.values[IndexOf(state->image())]; box) {
      MSRT_ASSIGN_OR_RETURN(image, state->NewMemory(state->image(), *box));
      MSRT_RETURN_IF_ERROR(state->Read(*image, *box));
      sources.push_back(image->View());
    }
    MSRT_RETURN_IF_ERROR(ReadAhead(phase, next, *state));
    MSRT_RETURN_IF_ERROR(state->Run(sources, targets));
  }
  return state->Write(outputs);
}

}  // namespace

Status RunPhaseTiles(const PhasePlan& plan, size_t phase, size_t phases, ImageRunState* state,
                     ImageReport::Phase* report) {
  const TileSchedule schedule(state->runner, plan.phase, plan.rows, plan.columns);
  PieceCounter counter(state->runner);
  report->pieces = schedule.tile_count();
  for (int64_t t = 0; t < schedule.tile_count(); ++t) {
    MSRT_RETURN_IF_ERROR(state->CheckCancelled());
    const std::vector<ValueBox> boxes = schedule.targets(t);
    MSRT_ASSIGN_OR_RETURN(const bool wanted,
                          state->Wanted(plan, phase, phase + 1 == phases, boxes));
    if (!wanted) {
      if (phase + 1 == phases) MSRT_RETURN_IF_ERROR(state->Skip(boxes));
      ++report->skipped_pieces;
    } else if (!boxes.empty()) {
      const bool last = t + 1 == schedule.tile_count();
      const std::vector<ValueBox> next = last ? std::vector<ValueBox>() : schedule.targets(t + 1);
      MSRT_RETURN_IF_ERROR(RunTile(plan.phase, boxes, next, state, &counter));
    }
    state->Progress(phase, phases, t + 1, schedule.tile_count());
  }
  report->computed_elements = counter.computed();
  report->whole_elements = counter.whole();
  return OkStatus();
}

}  // namespace msrt

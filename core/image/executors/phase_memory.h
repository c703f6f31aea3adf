// Counts the memory of the pieces of one phase, strips or tiles, by binding them without running
// them.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "core/image/executors/stream_rows.h"

namespace msrt {

// What pieces take at most. The arena grows and never shrinks, so the two need not belong to the
// same piece.
struct PieceBytes {
  size_t held = 0;   // parts of the image, retained rows, parts of the targets
  size_t arena = 0;  // values in between
  size_t total() const { return held + arena; }
  void Include(const PieceBytes& other);
};

class PhaseMemory {
 public:
  // `last`: the targets are outputs, written piece by piece; otherwise they are stored.
  PhaseMemory(const PieceRunner& runner, const StreamPhase& phase, bool last);

  // Both count until they find more than `enough` bytes, then they return what they found. All
  // pieces that differ in a shape are bound, so none takes more than the result.
  // `skips`: a run may begin at any strip and leave out others.
  Result<PieceBytes> OfStrips(int64_t rows, bool skips, size_t enough) const;
  Result<PieceBytes> OfTiles(int64_t rows, int64_t columns, size_t enough) const;
  // Of the values that are derived before the phase.
  Result<size_t> OfDerived() const;

 private:
  using Shapes = std::vector<int64_t>;
  Result<PieceBytes> OfSchedule(const RowSchedule& schedule) const;
  Result<PieceBytes> OfTile(const std::vector<ValueBox>& targets, std::set<Shapes>* seen) const;
  Result<Shapes> ShapesFor(const std::vector<ValueBox>& targets) const;
  // Returns one piece of each shape, those that take most first.
  Result<std::vector<int64_t>> OneOfEachShape(
      const std::vector<std::vector<ValueBox>>& pieces) const;
  Result<size_t> ArenaOf(std::span<const ValueBox> sources,
                         std::span<const ValueBox> targets) const;
  size_t Sum(std::span<const ValueBox> boxes) const;
  ValueId Image() const { return runner_.graph().inputs[0]; }

  const PieceRunner& runner_;
  const StreamPhase& phase_;
  const bool last_;
  std::vector<ValueBox> known_;
};

// Returns the bytes of a box of the value, dense.
size_t BytesOfBox(const PieceRunner& runner, ValueId value, const Box& box);

}  // namespace msrt

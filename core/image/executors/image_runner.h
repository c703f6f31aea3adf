// Computes the outputs of a model for an image of any size, by rolling rows or tiles, under a
// memory limit. The bits are those of an unsplit run in exact mode.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "core/image/executors/image_plan.h"

namespace msrt {

// Boxes are in global coordinates; memory is plain, has the dims of the box and may have strides.
struct ImageIo {
  // Fills `memory` with a box of the image, [1, channels, rows, columns] of f32.
  std::function<Status(const Box& box, const TensorView& memory)> read;
  // Told, after a read, which box of the image is probably read next. May be null.
  std::function<void(const Box& box)> ahead = {};
  // Takes a box of an output. Boxes come once each: strips from top to bottom, tiles by rows of
  // tiles.
  std::function<Status(size_t output, const Box& box, const TensorView& memory)> write;
  // Returns whether a strip or tile with these boxes of outputs has to be computed; null: all have.
  // The boxes of others are passed to `skip` instead of `write`, if the pieces around them save
  // work by that. Requires ImagePlanOptions::skips.
  std::function<Result<bool>(std::span<const ValueBox> boxes)> wanted = {};
  std::function<Status(size_t output, const Box& box)> skip = {};
};

class PhaseShare;  // core/image/executors/phase_share.h

struct ImageProgress {
  size_t phase = 0, phases = 1;
  int64_t done = 0, total = 0;  // strips or tiles of the phase
  double fraction = 0;          // of all work, each phase being weighed alike
};

struct ImageRunOptions {
  std::function<void(const ImageProgress&)> progress;
  const std::atomic<bool>* cancelled = nullptr;  // checked between strips and tiles
  PhaseShare* share = nullptr;  // with the other ranks that run the same image; null: nothing
};

// Rows of one value over a phase of rolling rows.
struct RowCount {
  ValueId value;
  int64_t computed = 0, recomputed = 0;
  int64_t rows = 0;  // of the whole value
};

struct ImageReport {
  struct Phase {
    ImageExecutor executor = ImageExecutor::kStream;
    int64_t rows = 0, columns = 0, pieces = 0, skipped_pieces = 0;
    // Of all values that the phase computes. Stream: rows; tiles: rows are not counted.
    int64_t computed_rows = 0, recomputed_rows = 0;
    double computed_elements = 0;
    double whole_elements = 0;  // of the same values, computed once
    std::vector<RowCount> values;
    double seconds = 0, bind_seconds = 0;
  };
  std::vector<Phase> phases;
  int64_t recomputed_rows = 0;  // by streaming; more than 0 only behind strips that were skipped
  size_t peak_bytes = 0;        // arenas, scratch, rows, parts, stored values, weights
  double seconds = 0, read_seconds = 0, write_seconds = 0;
};

// Used by one thread at a time.
class ImageRunner {
 public:
  // The model is from CompileForImage.
  static Result<std::unique_ptr<ImageRunner>> Create(std::shared_ptr<const CompiledModel> model,
                                                     const ImagePlanOptions& options);
  ~ImageRunner();

  const ImagePlan& plan() const;
  const Graph& graph() const;
  const Type& output_type(size_t output) const;
  const PieceRunner& pieces() const;  // for pictures of the plan
  std::string Describe() const;       // the plan, one line for each phase

  // kCancelled if `options.cancelled` became true; errors of `io` are returned as they are.
  Result<ImageReport> Run(const ImageIo& io, const ImageRunOptions& options);

 private:
  class Impl;
  explicit ImageRunner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace msrt

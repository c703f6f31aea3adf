// Chooses how an image is computed under a memory limit: by rolling rows or by tiles, and in which
// sizes. Memory is counted by binding the pieces without running them.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/image/executors/stream_rows.h"

namespace msrt {

enum class ImageExecutor : uint8_t {
  kAuto,
  kStream,  // rolling rows: nothing is computed twice
  kTiles,   // overlapping tiles: borders are computed again by each neighbour
  kHalo,    // each rank computes its part at once and exchanges halos (image_job.h)
};
std::string_view ExecutorName(ImageExecutor executor);

// The largest tile that is chosen, in rows and columns of an output.
inline constexpr int64_t kMaxTile = 4096;

struct ImagePlanOptions {
  size_t memory_limit_bytes = 0;  // 0: half of the machine's memory
  // Memory that the caller holds meanwhile, such as the decoded blocks of a file; counts against
  // the limit.
  size_t caller_bytes = 0;
  // Returns what the caller needs besides to write the outputs in strips of `rows`, or in tiles of
  // `rows` x `columns`. Null: nothing.
  std::function<size_t(ImageExecutor executor, int64_t rows, int64_t columns)> writer_bytes = {};
  ImageExecutor executor = ImageExecutor::kAuto;
  int64_t strip_rows = 0;                   // of the output; 0: chosen
  int64_t tile_rows = 0, tile_columns = 0;  // of the output; 0: chosen
  int64_t max_strip_rows = 256;             // that is chosen
  // Whether the run may begin in the middle of the image or leave strips out (ImageIo::wanted):
  // then the first strip of a range, which computes all rows it needs, counts too.
  bool skips = false;
  // The part of the limit that values stored for statistics may take, each.
  double stored_share = 0.125;
};

// How one phase runs.
struct PhasePlan {
  StreamPhase phase;
  ImageExecutor executor = ImageExecutor::kStream;
  int64_t rows = 0;     // of a strip or tile
  int64_t columns = 0;  // of a tile
  // Arena, retained rows, parts of the image and of the targets, and what writing the outputs
  // takes.
  size_t piece_bytes = 0;
  size_t stored_bytes = 0;  // whole values for this phase and later ones, the targets included
};

struct ImagePlan {
  std::vector<PhasePlan> phases;
  size_t limit_bytes = 0;
  size_t fixed_bytes = 0;  // weights, their packed forms, and memory of the caller
  size_t peak_bytes = 0;   // expected
};

// Returns the limit in bytes, whatever the options say of it.
size_t MemoryLimitOf(const ImagePlanOptions& options);

// Returns the part of a limit that is left for the scratch memory of kernels.
size_t KernelScratchBytes(size_t limit);

// `weight_bytes` are the constants of the model. kLimitExceeded, with the amount that would
// suffice, if nothing fits.
Result<ImagePlan> PlanImage(const PieceRunner& runner, size_t weight_bytes,
                            const ImagePlanOptions& options);

}  // namespace msrt

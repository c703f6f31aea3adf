// The memory that the results of a job take while they are written: blocks that are not complete,
// pixels that are converted, and boxes on their way from other ranks.
#pragma once

#include "core/image/jobs/image_job.h"
#include "core/image/jobs/job_ranks.h"

namespace msrt {

// How the boxes of an output arrive: the parts of a grid at once, each from top to bottom.
struct ResultPieces {
  ImageExecutor executor = ImageExecutor::kStream;
  int64_t parts_down = 1, parts_across = 1;
  int64_t rows = 0, columns = 0;  // of a strip or tile; 0 columns: the width of a part
};

// An upper bound of what the sink of a result and those who write to it hold. `converts`: pixels
// are not written as the model computes them.
int64_t ResultBytes(const JobOptions& options, const JobOutput& output, const ImageInfo& info,
                    const ResultPieces& pieces, bool converts);

// Of these, the blocks that are not complete.
int64_t OpenBlockBytes(const JobOptions& options, const JobOutput& output, const ImageInfo& info,
                       const ResultPieces& pieces);

// What the results take on one rank of a job. Refers to what it is made from.
class WriterMemory {
 public:
  // The outputs can be written as images. `content`: the results have pixels without content.
  WriterMemory(const JobOptions& options, const JobRanks& ranks, std::span<const Type> outputs,
               bool content)
      : options_(options), ranks_(ranks), outputs_(outputs), content_(content) {}

  // How the boxes of the outputs arrive at rank 0, which computes tiles of `rows` x `columns`.
  ResultPieces Pieces(ImageExecutor executor, int64_t rows, int64_t columns) const;
  size_t Bytes(ImageExecutor executor, int64_t rows, int64_t columns) const;
  // The rows of a result of which the content is kept: those of a strip or of a row of tiles, for
  // each rank.
  static int64_t ContentRows(const ResultPieces& pieces);

 private:
  const JobOptions& options_;
  const JobRanks& ranks_;
  const std::span<const Type> outputs_;
  const bool content_;
};

// The largest message with pixels of a part, `columns` wide. It has at least one row.
size_t ResultMessageBytes(const Type& output, int64_t columns);

// The rows of a box that are converted at once.
int64_t ConvertedRows(const ImageInfo& info, int64_t columns);

}  // namespace msrt

// What the ranks of a job that are threads of one process share: its threads, its memory limit and
// the source of the image.
#pragma once

#include "core/image/jobs/image_job.h"

namespace msrt {

// The environment of one of several ranks, with its own threads.
std::shared_ptr<const Environment> RankEnvironment(const Environment& all, int64_t ranks);

// The options of a rank whose share of the memory is one of `ranks`.
JobOptions RankOptionsOf(const JobOptions& options, Communicator* communicator, size_t ranks);

// A source that callers read one at a time.
std::shared_ptr<ImageSource> MakeLockedSource(std::shared_ptr<ImageSource> source);

}  // namespace msrt

// The identity of a job: a hash of everything that determines the pixels of its results, the
// version of msrt included, whose kernels may round otherwise. How the work is cut does not: rows,
// tiles and memory limits may differ when a job is resumed.
#pragma once

#include "core/image/jobs/image_job.h"

namespace msrt {

Result<uint64_t> JobIdentity(const Environment& environment, const std::string& model,
                             const ImageInfo& image, const JobOptions& options);

}  // namespace msrt

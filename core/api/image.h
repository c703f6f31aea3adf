// An image of the C API: a job over an image, its last report and what its run reported.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "core/api/exclusive.h"
#include "core/image/jobs/image_job.h"

namespace msrt {

struct ImageObject {
  std::unique_ptr<ImageJob> job;
  std::atomic<bool> busy{false};
  std::optional<JobReport> run;  // of a run that succeeded
  std::string report;            // the last one returned
};

// JSON; see MSRT_IMAGE_REPORT_JSON. `run` may be null.
std::string ImageReportJson(const ImageJob& job, const JobReport* run);
// SVG; see MSRT_IMAGE_REPORT_SVG.
Result<std::string> ImageReportSvg(const ImageJob& job);

// Parses "3,2,1" to channels from 0.
Result<std::vector<int64_t>> ParseBands(std::string_view text);

}  // namespace msrt

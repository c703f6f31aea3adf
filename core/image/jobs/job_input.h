// Checks the image of a job against its model, and opens it.
#pragma once

#include "core/image/jobs/image_content.h"
#include "core/image/jobs/image_job.h"

namespace msrt {

Result<std::shared_ptr<ImageSource>> OpenInput(const JobInput& input);

// Returns the channels of the image that the model gets, from 0.
Result<std::vector<int64_t>> BandsOf(const JobInput& input, const ImageInfo& info);

// Checks that the model takes this number of channels.
Status CheckChannels(const Module& module, const std::string& image, size_t bands);

// Keeps the outputs that the job asks for, in that order; the passes drop what only others need.
Status SelectOutputs(const std::vector<JobOutput>& outputs, Module* module);

// Opens what decides which pixels have content.
Result<std::unique_ptr<ImageContent>> OpenContent(const JobOptions& options, const ImageInfo& info,
                                                  std::vector<int64_t> bands);

}  // namespace msrt

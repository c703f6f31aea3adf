#include "core/image/jobs/job_input.h"

#include <algorithm>
#include <numeric>

namespace msrt {

Result<std::vector<int64_t>> BandsOf(const JobInput& input, const ImageInfo& info) {
  for (const int64_t band : input.bands) {
    if (band < 0 || band >= info.channels)
      return InvalidArgument("image '", input.path, "': there is no band ", band + 1,
                             "; the image has ", info.channels);
  }
  if (!input.bands.empty()) return input.bands;
  std::vector<int64_t> bands(static_cast<size_t>(info.channels));
  std::iota(bands.begin(), bands.end(), 0);
  return bands;
}

// The model's input may leave the number of channels open.
Status CheckChannels(const Module& module, const std::string& image, size_t bands) {
  if (module.entries.empty() || module.main().inputs.size() != 1) return OkStatus();
  const Value& input = module.main().value(module.main().inputs[0]);
  if (!input.type.is_tensor() || !input.type.rank_known || input.type.rank() != 4 ||
      !IsKnown(input.type.dims[1]) || input.type.dims[1] == static_cast<int64_t>(bands))
    return OkStatus();
  return InvalidArgument("image '", image, "' has ", bands, " channels, but input '", input.name,
                         "' of the model takes ", input.type.dims[1],
                         "; choose as many bands of the image as the model takes");
}

Status SelectOutputs(const std::vector<JobOutput>& outputs, Module* module) {
  if (module->entries.empty()) return InvalidArgument("the model has no entry to run");
  Graph& graph = module->main();
  std::vector<ValueId> selected;
  for (const JobOutput& output : outputs) {
    if (graph.outputs.empty()) return InvalidArgument("the model has no outputs");
    const auto named = [&](ValueId v) { return graph.value(v).name == output.name; };
    const auto found = output.name.empty()
                           ? graph.outputs.begin()
                           : std::find_if(graph.outputs.begin(), graph.outputs.end(), named);
    if (found == graph.outputs.end()) {
      std::string known;
      for (ValueId v : graph.outputs)
        StrAppend(&known, known.empty() ? "'" : ", '", graph.value(v).name, "'");
      return NotFound("the model has no output '", output.name, "'; it has ", known);
    }
    if (std::find(selected.begin(), selected.end(), *found) != selected.end())
      return InvalidArgument("output '", graph.value(*found).name, "' is asked for twice");
    selected.push_back(*found);
  }
  graph.outputs = std::move(selected);
  return OkStatus();
}

Result<std::shared_ptr<ImageSource>> OpenInput(const JobInput& input) {
  if (input.source != nullptr) return input.source;
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<ImageSource> source, OpenImage(input.path, input.open));
  return std::shared_ptr<ImageSource>(std::move(source));
}

// Sources for the decision which pixels have content: sources of their own, because they are read
// at other times than the image for the model.
Result<std::unique_ptr<ImageContent>> OpenContent(const JobOptions& options, const ImageInfo& info,
                                                  std::vector<int64_t> bands) {
  std::shared_ptr<ImageSource> mask, image;
  if (!options.mask.empty()) {
    MSRT_ASSIGN_OR_RETURN(mask, OpenImage(options.mask, {}));
  }
  if (options.use_no_data && info.no_data.has_value()) {
    MSRT_ASSIGN_OR_RETURN(image, OpenInput(options.input));
  }
  return std::make_unique<ImageContent>(std::move(mask), std::move(image), std::move(bands));
}

}  // namespace msrt

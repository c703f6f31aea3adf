#include "core/image/image_job.h"

#include <algorithm>
#include <numeric>

#include "core/base/clock.h"
#include "core/image/image_content.h"
#include "core/image/job_identity.h"
#include "core/image/job_results.h"
#include "core/image/stream_model.h"
#include "core/model/load.h"

namespace msrt {
namespace {

Status CheckSplit(const JobOptions& options) {
  if (options.split_rows < 1 || options.split_columns < 1)
    return InvalidArgument("a split of ", options.split_rows, " x ", options.split_columns,
                           " has no parts; both numbers must be at least 1");
  if (options.split_rows == 1 && options.split_columns == 1) return OkStatus();
  return Unsupported("a split of ", options.split_rows, " x ", options.split_columns,
                     " parts needs the executor 'halo' and several ranks, which this version does ",
                     "not have; leave the split out: one process computes images of any size");
}

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

// Keeps the outputs that the job asks for, in that order; the passes drop what only others need.
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

}  // namespace

class ImageJob::Impl {
 public:
  explicit Impl(JobOptions options) : options_(std::move(options)) {}

  Status Prepare(std::shared_ptr<const Environment> environment, const std::string& model) {
    const StopWatch watch;
    MSRT_RETURN_IF_ERROR(CheckSplit(options_));
    if (options_.outputs.empty()) return InvalidArgument("the job has no output");
    MSRT_RETURN_IF_ERROR(CheckResultFiles(model, options_));
    MSRT_ASSIGN_OR_RETURN(source_, OpenInput(options_.input));
    const ImageInfo& info = source_->info();
    MSRT_ASSIGN_OR_RETURN(bands_, BandsOf(options_.input, info));
    MSRT_ASSIGN_OR_RETURN(content_, OpenContent(options_, info, bands_));
    MSRT_ASSIGN_OR_RETURN(identity_, JobIdentity(*environment, model, info, options_));

    MSRT_ASSIGN_OR_RETURN(Module module, LoadFile(environment->io, model));
    MSRT_RETURN_IF_ERROR(CheckChannels(module, options_.input.path, bands_.size()));
    MSRT_RETURN_IF_ERROR(options_.normalization.Check(static_cast<int64_t>(bands_.size())));
    MSRT_RETURN_IF_ERROR(SelectOutputs(options_.outputs, &module));
    const ImageSize size{static_cast<int64_t>(bands_.size()), info.height, info.width};
    Result<std::shared_ptr<const CompiledModel>> compiled =
        CompileForImage(environment, std::move(module), size, options_.compile);
    if (!compiled.ok())
      return std::move(compiled).status().Within(StrCat("model '", model, "' for an image of ",
                                                        size.channels, " x ", size.rows, " x ",
                                                        size.columns));
    compile_seconds_ = watch.Millis() / 1e3;
    return Plan(*std::move(compiled));
  }

  Result<JobReport> Run() {
    if (ran_) return InvalidArgument("the job has run already; create another one");
    ran_ = true;
    since_run_ = StopWatch();
    MSRT_ASSIGN_OR_RETURN(results_,
                          JobResults::Create(options_, results_info_, identity_, content_.get()));
    JobReport report;
    report.resumed_rows = results_->finished_rows();
    Result<ImageReport> run =
        runner_->Run(Io(), {.progress = Progress(), .cancelled = &cancelled_});
    if (!run.ok()) {
      // What is complete is there for the next attempt; the first error is the one to report.
      (void)results_->Sync();
      return std::move(run).status();
    }
    MSRT_RETURN_IF_ERROR(results_->Finish());
    results_.reset();
    report.run = *std::move(run);
    report.plan = runner_->plan();
    report.compile_seconds = compile_seconds_;
    report.seconds = since_run_.Millis() / 1e3;
    report.pixels = source_->info().height * source_->info().width;
    report.decoded_blocks = source_->decoded_blocks();
    return report;
  }

 private:
  friend class ImageJob;

  Status Plan(std::shared_ptr<const CompiledModel> compiled) {
    ImagePlanOptions plan = options_.plan;
    plan.caller_bytes += static_cast<size_t>(source_->cache_bytes() + content_->cache_bytes());
    plan.skips = options_.resume || !content_->empty();
    const Graph& graph = compiled->module.main();
    for (size_t o = 0; o < options_.outputs.size(); ++o) {
      const Type& type = graph.value(graph.outputs[o]).type;
      if (!type.is_tensor() || !type.concrete() || type.rank() < 3 || type.rank() > 4) break;
      MSRT_ASSIGN_OR_RETURN(ImageInfo info, ResultInfo(type, options_.outputs[o].classes));
      plan.caller_bytes += static_cast<size_t>(ResultBytes(options_, info));
    }
    MSRT_ASSIGN_OR_RETURN(runner_, ImageRunner::Create(std::move(compiled), plan));
    for (size_t o = 0; o < options_.outputs.size(); ++o) {
      MSRT_ASSIGN_OR_RETURN(ImageInfo info, ResultOf(o));
      results_info_.push_back(std::move(info));
    }
    return OkStatus();
  }

  // The result covers the area of the image.
  Result<ImageInfo> ResultOf(size_t o) const {
    const ImageInfo& from = source_->info();
    MSRT_ASSIGN_OR_RETURN(ImageInfo info,
                          ResultInfo(runner_->output_type(o), options_.outputs[o].classes));
    if (!content_->empty()) info.no_data = FillValue(info);
    info.geo = Rescaled(from.geo, 0, 0,
                        static_cast<double>(from.height) / static_cast<double>(info.height),
                        static_cast<double>(from.width) / static_cast<double>(info.width));
    return info;
  }

  ImageIo Io() {
    ImageIo io;
    io.read = [this](const Box& box, const TensorView& memory) { return Read(box, memory); };
    io.write = [this](size_t o, const Box& box, const TensorView& memory) {
      computing_ = true;
      return results_->Write(o, box, memory);
    };
    if (!options_.resume && content_->empty()) return io;
    io.wanted = [this](std::span<const ValueBox> boxes) { return Wanted(boxes); };
    io.skip = [this](size_t o, const Box& box) { return results_->Skip(o, box); };
    return io;
  }

  Result<bool> Wanted(std::span<const ValueBox> boxes) {
    const std::vector<ValueId>& outputs = runner_->graph().outputs;
    for (const ValueBox& box : boxes) {
      for (size_t o = 0; o < outputs.size(); ++o) {
        if (outputs[o] != box.value) continue;
        MSRT_ASSIGN_OR_RETURN(const bool wanted, results_->Wanted(o, box.box));
        if (wanted) return true;
      }
    }
    return false;
  }

  // Fills the memory with a box of the image, [1, bands, rows, columns].
  Status Read(const Box& box, const TensorView& memory) {
    Dims strides =
        memory.strides != nullptr ? Dims({memory.strides, 4}) : RowMajorStrides(memory.dims);
    const Interval bands = box[1], rows = box[2], columns = box[3];
    for (int64_t b = bands.begin; b < bands.end; ++b) {
      float* const plane = memory.As<float>() + (b - bands.begin) * strides[1];
      MSRT_RETURN_IF_ERROR(
          source_->Read({rows.begin, columns.begin, rows.size(), columns.size(),
                         bands_[static_cast<size_t>(b)], 1},
                        {plane, DType::kF32, rows.size() * strides[2], strides[2]}));
      for (int64_t r = 0; !options_.normalization.empty() && r < rows.size(); ++r)
        options_.normalization.Apply(b,
                                     {plane + r * strides[2], static_cast<size_t>(columns.size())});
    }
    ReadAhead(rows, columns);
    return OkStatus();
  }

  // Decodes the next strip, or the next tile of a row of tiles, while this one is computed. A wrong
  // guess costs only time.
  void ReadAhead(Interval rows, Interval columns) {
    const ImageInfo& info = source_->info();
    ImageWindow next{rows.begin, columns.end, rows.size(),
                     std::min(columns.size(), info.width - columns.end)};
    if (columns.end >= info.width)
      next = {rows.end, 0, std::min(rows.size(), info.height - rows.end), columns.size()};
    if (next.rows > 0 && next.cols > 0) source_->ReadAhead(next);
  }

  std::function<void(const ImageProgress&)> Progress() {
    if (!options_.progress) return {};
    return [this](const ImageProgress& p) {
      JobProgress progress{.fraction = p.fraction, .seconds = since_run_.Millis() / 1e3};
      // What was skipped says nothing about the speed.
      if (!computing_) skipped_ = p.fraction, skipped_seconds_ = progress.seconds;
      const double done = p.fraction - skipped_, seconds = progress.seconds - skipped_seconds_;
      if (done > 0 && seconds > 0) {
        const auto pixels = static_cast<double>(source_->info().height * source_->info().width);
        progress.pixels_per_second = done * pixels / seconds;
        progress.seconds_left = seconds / done * (1 - p.fraction);
      }
      options_.progress(progress);
    };
  }

  const JobOptions options_;
  std::shared_ptr<ImageSource> source_;
  std::vector<int64_t> bands_;
  std::unique_ptr<ImageContent> content_;
  uint64_t identity_ = 0;
  double compile_seconds_ = 0;
  std::unique_ptr<ImageRunner> runner_;
  std::vector<ImageInfo> results_info_;
  std::unique_ptr<JobResults> results_;
  std::atomic<bool> cancelled_{false};
  bool ran_ = false, computing_ = false;
  StopWatch since_run_;
  double skipped_ = 0, skipped_seconds_ = 0;
};

ImageJob::ImageJob(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ImageJob::~ImageJob() = default;

Result<std::unique_ptr<ImageJob>> ImageJob::Create(std::shared_ptr<const Environment> environment,
                                                   const std::string& model, JobOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  MSRT_RETURN_IF_ERROR(impl->Prepare(std::move(environment), model));
  return std::unique_ptr<ImageJob>(new ImageJob(std::move(impl)));
}

const ImageInfo& ImageJob::image() const { return impl_->source_->info(); }
const ImageInfo& ImageJob::result(size_t output) const { return impl_->results_info_[output]; }
const ImageRunner& ImageJob::runner() const { return *impl_->runner_; }
const JobOptions& ImageJob::options() const { return impl_->options_; }
uint64_t ImageJob::identity() const { return impl_->identity_; }
Result<JobReport> ImageJob::Run() { return impl_->Run(); }
void ImageJob::Cancel() { impl_->cancelled_.store(true); }

}  // namespace msrt

#include "core/image/jobs/image_job.h"

#include <algorithm>
#include <thread>

#include "core/base/catch_as_status.h"
#include "core/base/clock.h"
#include "core/comm/job/counted_parallel.h"
#include "core/comm/thread_engine.h"
#include "core/image/executors/halo_runner.h"
#include "core/image/executors/image_coordinates.h"
#include "core/image/executors/image_outputs.h"
#include "core/image/executors/phase_share.h"
#include "core/image/executors/stream_model.h"
#include "core/image/jobs/band_reader.h"
#include "core/image/jobs/image_explain.h"
#include "core/image/jobs/job_identity.h"
#include "core/image/jobs/job_input.h"
#include "core/image/jobs/job_ranks.h"
#include "core/image/jobs/job_results.h"
#include "core/image/jobs/split_explain.h"
#include "core/image/jobs/thread_ranks.h"
#include "core/model/load.h"

namespace msrt {
namespace {

// A rank may compute for hours without a message, and threads of one process do not get lost.
constexpr std::chrono::hours kStallLimit{24 * 7};

// A rank that computes its part at once reports its progress in steps of at least so much.
constexpr double kLeastProgress = 0.002;

Status CheckSplit(const JobOptions& options) {
  constexpr int64_t kMaxParts = 65536;
  if (options.split_rows < 1 || options.split_columns < 1)
    return InvalidArgument("a split of ", options.split_rows, " x ", options.split_columns,
                           " has no parts; both numbers must be at least 1");
  if (options.split_rows > kMaxParts / options.split_columns)
    return InvalidArgument("a split of ", options.split_rows, " x ", options.split_columns,
                           " has more than ", kMaxParts, " parts");
  if (options.plan.executor == ImageExecutor::kHalo &&
      options.split_rows * options.split_columns == 1)
    return InvalidArgument("the executor 'halo' needs several ranks; split the image, as 2x2");
  return OkStatus();
}

Status CheckParts(const JobOptions& options, const ImageInfo& info) {
  if (options.split_rows <= info.height && options.split_columns <= info.width) return OkStatus();
  return InvalidArgument("an image of ", info.height, " rows and ", info.width,
                         " columns cannot be split into ", options.split_rows, " x ",
                         options.split_columns, " parts; use at most ", info.height, " x ",
                         info.width);
}

// The outputs of the whole model, all of which follow the image.
struct CheckedOutputs {
  std::vector<Type> types;
  std::vector<ImageCoordinates> coordinates;
};
Result<CheckedOutputs> CheckOutputs(const std::shared_ptr<const CompiledModel>& model) {
  const Graph& graph = model->module.main();
  const std::vector<Dims> image{graph.value(graph.inputs[0]).type.dims};
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<PieceRunner> runner,
                        PieceRunner::Create(model, 0, image, {}));
  CheckedOutputs outputs;
  for (ValueId v : runner->graph().outputs) outputs.types.push_back(runner->type(v));
  MSRT_RETURN_IF_ERROR(CheckOutputsFollowImage(runner->graph(), outputs.types));
  MSRT_RETURN_IF_ERROR(CheckRowsFollowImage(*runner));
  outputs.coordinates = OutputCoordinates(*runner);
  return outputs;
}

}  // namespace

// One rank of the job.
class ImageJob::Impl {
 public:
  explicit Impl(JobOptions options) : options_(std::move(options)) {}

  // A collective of all ranks.
  Status Prepare(std::shared_ptr<const Environment> environment, const std::string& model) {
    Status status = PrepareRank(std::move(environment), model);
    // The others may wait for this rank.
    if (!status.ok() && options_.communicator != nullptr) options_.communicator->Abort(status);
    if (ranks_) ranks_->StopWatch();
    return status;
  }

  // A collective of all ranks.
  Result<JobReport> Run() {
    if (ran_) return InvalidArgument("the job has run already; create another one");
    ran_ = true;
    since_run_ = StopWatch();
    JobReport report;
    ranks_->StartWatch();
    const Status status = RunRank(&report);
    if (!status.ok()) {
      ranks_->Abort(status);
      const Status of_others = ranks_->Join();
      ranks_->StopWatch();
      // What is complete is there for the next attempt; the first error is the one to report.
      if (results_) (void)results_->Sync();
      const bool stopped = status.code() == Code::kCancelled && !of_others.ok();
      return stopped ? of_others : status;
    }
    ranks_->StopWatch();
    results_.reset();
    report.plan = plan_;
    report.compile_seconds = compile_seconds_;
    report.seconds = since_run_.Millis() / 1e3;
    report.pixels = source_->info().height * source_->info().width;
    report.decoded_blocks = source_->decoded_blocks();
    return report;
  }

  std::string DescribePlan() const {
    if (runner_) return runner_->Describe();
    const RankModule& split = halo_->split();
    return StrCat("halo: ", options_.split_rows, " x ", options_.split_columns, " parts of ",
                  names_[0], ", ", split.exchanges, " exchanges, ", split.messages_sent,
                  " messages and ", split.bytes_sent, " bytes sent by rank 0, ", plan_.peak_bytes,
                  " bytes\n");
  }

  Result<std::string> DrawPlan(std::string_view title) const {
    if (runner_) return ImagePlanSvg(*runner_, title);
    SplitPicture picture;
    picture.title = title;
    picture.image = {1, static_cast<int64_t>(bands_.size()), source_->info().height,
                     source_->info().width};
    picture.output = output_types_[0].dims;
    picture.expected_bytes = expected_bytes_;
    picture.limit_bytes = plan_.limit_bytes;
    CompileOptions compile = options_.compile;
    compile.place.exact = true;
    Module module = module_;
    MSRT_RETURN_IF_ERROR(
        SetImageSize({picture.image[1], picture.image[2], picture.image[3]}, &module));
    MSRT_ASSIGN_OR_RETURN(
        picture.ranks, PlanRanks(environment_, std::move(module), 0, {&picture.image, 1}, compile,
                                 HaloSplit(ranks_->part(ImageExecutor::kHalo))));
    return SplitSvg(picture);
  }

 private:
  friend class ImageJob;

  Status PrepareRank(std::shared_ptr<const Environment> environment, const std::string& model) {
    const StopWatch watch;
    auto counted = std::make_shared<Environment>(*environment);
    if (options_.watch.stall.count() != 0)
      counted->parallel = std::make_shared<CountedParallel>(environment->parallel, work_);
    environment_ = std::move(counted);
    MSRT_RETURN_IF_ERROR(CheckSplit(options_));
    if (options_.outputs.empty()) return InvalidArgument("the job has no output");
    MSRT_ASSIGN_OR_RETURN(ranks_, JobRanks::Create(options_.communicator, options_.split_rows,
                                                   options_.split_columns, options_.watch, work_));
    ranks_->StartWatch();
    if (ranks_->writes()) MSRT_RETURN_IF_ERROR(CheckResultFiles(model, options_));
    MSRT_ASSIGN_OR_RETURN(source_, OpenInput(options_.input));
    const ImageInfo& info = source_->info();
    MSRT_RETURN_IF_ERROR(CheckParts(options_, info));
    MSRT_ASSIGN_OR_RETURN(bands_, BandsOf(options_.input, info));
    reader_ = std::make_unique<BandReader>(source_, bands_, options_.normalization, work_);
    content_ = std::make_unique<ImageContent>(nullptr, nullptr, bands_);
    if (ranks_->writes()) {  // the others ask
      MSRT_ASSIGN_OR_RETURN(content_, OpenContent(options_, info, bands_));
      MSRT_ASSIGN_OR_RETURN(identity_, JobIdentity(*environment_, model, info, options_));
    }
    MSRT_ASSIGN_OR_RETURN(module_, LoadFile(environment_->io, model));
    MSRT_RETURN_IF_ERROR(CheckChannels(module_, options_.input.path, bands_.size()));
    MSRT_RETURN_IF_ERROR(options_.normalization.Check(static_cast<int64_t>(bands_.size())));
    MSRT_RETURN_IF_ERROR(SelectOutputs(options_.outputs, &module_));
    for (ValueId v : module_.main().outputs) names_.push_back(module_.main().value(v).name);
    const ImageSize size{static_cast<int64_t>(bands_.size()), info.height, info.width};
    Status status = Compile(size);
    if (!status.ok() && status.code() != Code::kLimitExceeded &&
        status.code() != Code::kDeadlineExceeded)
      return std::move(status).Within(StrCat("model '", model, "' for an image of ", size.channels,
                                             " x ", size.rows, " x ", size.columns));
    MSRT_RETURN_IF_ERROR(std::move(status));
    for (size_t o = 0; o < options_.outputs.size(); ++o) {
      MSRT_ASSIGN_OR_RETURN(ImageInfo result, ResultOf(o));
      results_info_.push_back(std::move(result));
    }
    compile_seconds_ = watch.Millis() / 1e3;
    return OkStatus();
  }

  // Chooses the executor: halos if the ranks have the memory for their parts.
  Status Compile(const ImageSize& size) {
    MSRT_ASSIGN_OR_RETURN(std::shared_ptr<const CompiledModel> compiled,
                          CompileForImage(environment_, module_, size, options_.compile));
    MSRT_ASSIGN_OR_RETURN(CheckedOutputs outputs, CheckOutputs(compiled));
    output_types_ = std::move(outputs.types);
    coordinates_ = std::move(outputs.coordinates);
    const ImageExecutor executor = options_.plan.executor;
    // Halos are computed again as a whole, so a job that is continued takes rows.
    if (!ranks_->alone() && (executor == ImageExecutor::kHalo ||
                             (executor == ImageExecutor::kAuto && !options_.resume))) {
      compiled.reset();
      MSRT_ASSIGN_OR_RETURN(const bool fits, PlanHalos(size));
      if (fits) return OkStatus();
      MSRT_ASSIGN_OR_RETURN(compiled,
                            CompileForImage(environment_, module_, size, options_.compile));
    }
    ImagePlanOptions plan = options_.plan;
    plan.skips = options_.resume || !content_->empty() || !ranks_->alone();
    plan.caller_bytes += SourceBytes();
    MSRT_RETURN_IF_ERROR(CheckResults());
    plan.writer_bytes = [this](ImageExecutor kind, int64_t rows, int64_t columns) {
      return writers().Bytes(kind, rows, columns);
    };
    MSRT_ASSIGN_OR_RETURN(runner_, ImageRunner::Create(compiled, plan));
    // The executor decides which part is whose, and rank 0 has less memory for it: if one rank
    // needs tiles, all take them. Their sizes may differ.
    const bool tiles = runner_->plan().phases.back().executor == ImageExecutor::kTiles;
    MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> tiled, ranks_->Gather(tiles ? 1 : 0));
    if (!tiles && std::find(tiled.begin(), tiled.end(), 1) != tiled.end()) {
      plan.executor = ImageExecutor::kTiles;
      MSRT_ASSIGN_OR_RETURN(runner_, ImageRunner::Create(std::move(compiled), plan));
    }
    plan_ = runner_->plan();
    AllowCache();
    part_ = ranks_->part(plan_.phases.back().executor);
    return OkStatus();
  }

  // Returns whether all ranks have the memory; an error if nothing else is allowed.
  Result<bool> PlanHalos(const ImageSize& size) {
    part_ = ranks_->part(ImageExecutor::kHalo);
    MSRT_RETURN_IF_ERROR(CheckResults());
    plan_.limit_bytes = MemoryLimitOf(options_.plan);
    plan_.fixed_bytes =
        options_.plan.caller_bytes + SourceBytes() + writers().Bytes(ImageExecutor::kHalo, 0, 0);
    const size_t cap = plan_.limit_bytes - std::min(plan_.limit_bytes - 1, plan_.fixed_bytes);
    MSRT_ASSIGN_OR_RETURN(halo_, HaloRunner::Create(environment_, module_, size, options_.compile,
                                                    part_, ranks_->halos(), cap));
    plan_.peak_bytes =
        plan_.fixed_bytes + halo_->expected_bytes() + KernelScratchBytes(plan_.limit_bytes);
    const Box part = part_.Of(output_types_[0].dims);
    PhasePlan phase;
    phase.executor = ImageExecutor::kHalo;
    phase.rows = part[part.rank() - 2].size(), phase.columns = part[part.rank() - 1].size();
    phase.piece_bytes = halo_->expected_bytes();
    plan_.phases = {phase};
    const auto expected = static_cast<int64_t>(plan_.peak_bytes);
    MSRT_ASSIGN_OR_RETURN(expected_bytes_, ranks_->Gather(expected));
    const bool fits = plan_.peak_bytes <= plan_.limit_bytes;
    MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> lacking, ranks_->Gather(fits ? 0 : expected));
    const auto most = std::max_element(lacking.begin(), lacking.end());
    if (*most == 0) return true;
    halo_.reset();
    plan_ = {};
    if (options_.plan.executor == ImageExecutor::kAuto) return false;
    return LimitExceeded("rank ", most - lacking.begin(), " needs ", *most,
                         " bytes for its part of the image; set the memory limit of each rank to ",
                         *most, " bytes or more, split the image into more parts, or let the ",
                         "ranks stream (executor 'stream')");
  }

  // Tiles overlap: the source may keep the blocks of a row of tiles, in half of the memory that the
  // plan leaves.
  void AllowCache() {
    if (std::none_of(plan_.phases.begin(), plan_.phases.end(), [](const PhasePlan& phase) {
          return phase.executor == ImageExecutor::kTiles;
        }))
      return;
    const size_t left = plan_.limit_bytes - std::min(plan_.limit_bytes, plan_.peak_bytes);
    source_->AllowCache(source_->cache_bytes() + static_cast<int64_t>(left / 2));
  }

  // An error if an output cannot be written as an image.
  Status CheckResults() const {
    for (size_t o = 0; o < output_types_.size(); ++o)
      MSRT_RETURN_IF_ERROR(ResultInfo(output_types_[o], options_.outputs[o].classes).status());
    return OkStatus();
  }

  // Memory of what is read beside the computation.
  size_t SourceBytes() const {
    return static_cast<size_t>(source_->cache_bytes() + content_->cache_bytes());
  }

  WriterMemory writers() const { return {options_, *ranks_, output_types_, !content_->empty()}; }

  Status RunRank(JobReport* report) {
    PieceResults* results = ranks_->remote();
    if (ranks_->writes()) {
      const PhasePlan& last = plan_.phases.back();
      const ResultPieces pieces = writers().Pieces(last.executor, last.rows, last.columns);
      std::vector<ResultGrid> grids;
      for (size_t o = 0; o < results_info_.size(); ++o)
        grids.push_back({results_info_[o].height, results_info_[o].width, coordinates_[o]});
      content_->SetResults(std::move(grids), source_->info().height, source_->info().width,
                           WriterMemory::ContentRows(pieces));
      MSRT_ASSIGN_OR_RETURN(
          results_, JobResults::Create(options_, results_info_, identity_, pieces, content_.get()));
      report->resumed_rows = results_->finished_rows();
      results = results_.get();
      ranks_->Serve(results, &cancelled_);
    }
    RankWork work;
    MSRT_RETURN_IF_ERROR(halo_ ? RunHalos(results, report, &work)
                               : RunPieces(results, report, &work));
    work.expected_bytes = static_cast<int64_t>(plan_.peak_bytes);
    work.seconds = since_run_.Millis() / 1e3;
    if (!ranks_->writes()) {
      MSRT_RETURN_IF_ERROR(ranks_->remote()->Done(work));
      return ranks_->Finish();
    }
    const auto progress = Progress();
    MSRT_RETURN_IF_ERROR(ranks_->Join([&] {
      if (progress) progress({.fraction = 1});  // of this rank's part
    }));
    if (!ranks_->alone() && options_.progress)
      options_.progress({.fraction = 1, .seconds = since_run_.Millis() / 1e3});
    MSRT_RETURN_IF_ERROR(results_->Finish());
    AddRanks(work, report);
    return ranks_->Finish();
  }

  void AddRanks(const RankWork& own, JobReport* report) const {
    report->recomputed_rows = own.recomputed_rows;
    if (ranks_->alone()) return;
    report->ranks = ranks_->work();
    report->ranks.insert(report->ranks.begin(), own);
    // Rows that several ranks have computed are more than there are.
    int64_t computed = 0, rows = 0;
    for (const RankWork& work : report->ranks) computed += work.computed_rows;
    for (const ImageReport::Phase& phase : report->run.phases) {
      for (const RowCount& count : phase.values) rows += count.rows;
    }
    for (const RankWork& work : ranks_->work()) report->recomputed_rows += work.recomputed_rows;
    report->recomputed_rows = std::max(report->recomputed_rows, computed - rows);
  }

  Status RunHalos(PieceResults* results, JobReport* report, RankWork* work) {
    RankIo io;
    io.read = [this](size_t, const Box& box, const TensorView& memory) {
      return reader_->Read(box, memory);
    };
    io.write = [results](size_t o, const Box& box, const TensorView& memory) {
      return results->Write(o, box, memory);
    };
    if (const auto progress = Progress())
      io.progress = [&, progress, last = 0.0](double fraction) mutable {
        computing_ = true;
        if (fraction - last >= kLeastProgress) progress({.fraction = last = fraction});
      };
    Result<RankReport> ran = halo_->Run(io, cancelled_);
    if (!ran.ok() && ran.status().code() == Code::kLimitExceeded) {
      const size_t enough = plan_.peak_bytes + plan_.peak_bytes / 8;
      return LimitExceeded("a kernel took more scratch memory than the plan left for it (",
                           ran.status().message(), "); set the memory limit of each rank to ",
                           std::max(enough, plan_.limit_bytes + plan_.limit_bytes / 8),
                           " bytes or more, or let the ranks stream (executor 'stream')");
    }
    MSRT_ASSIGN_OR_RETURN(const RankReport run, std::move(ran));
    work->exchanges = run.exchanges.exchanges;
    work->messages = run.exchanges.messages_sent;
    work->message_bytes = run.exchanges.bytes_sent;
    work->exposed_seconds = static_cast<double>(run.exchanges.exposed_nanos) * 1e-9;
    work->peak_bytes = static_cast<int64_t>(run.peak_bytes);
    work->recomputed_rows = halo_->split().recomputed_rows;
    report->run.peak_bytes = run.peak_bytes;
    report->run.recomputed_rows = work->recomputed_rows;
    report->run.seconds = run.seconds;
    report->run.read_seconds = run.read_seconds, report->run.write_seconds = run.write_seconds;
    ImageReport::Phase phase;
    phase.executor = ImageExecutor::kHalo;
    phase.rows = plan_.phases[0].rows, phase.columns = plan_.phases[0].columns;
    phase.pieces = 1;
    phase.recomputed_rows = work->recomputed_rows;
    phase.seconds = run.seconds;
    report->run.phases.push_back(std::move(phase));
    return OkStatus();
  }

  Status RunPieces(PieceResults* results, JobReport* report, RankWork* work) {
    std::unique_ptr<PhaseShare> share;
    if (!ranks_->alone()) {
      MSRT_ASSIGN_OR_RETURN(share, PhaseShare::Create(ranks_->world(), runner_->pieces(), plan_));
    }
    const ImageRunOptions run{
        .progress = Progress(), .cancelled = &cancelled_, .share = share.get()};
    MSRT_ASSIGN_OR_RETURN(report->run, runner_->Run(Io(results), run));
    work->peak_bytes = static_cast<int64_t>(report->run.peak_bytes);
    work->recomputed_rows = report->run.recomputed_rows;
    for (const ImageReport::Phase& phase : report->run.phases)
      work->computed_rows += phase.computed_rows;
    return OkStatus();
  }

  // The result is where its pixels are in the image.
  Result<ImageInfo> ResultOf(size_t o) const {
    MSRT_ASSIGN_OR_RETURN(ImageInfo info,
                          ResultInfo(output_types_[o], options_.outputs[o].classes));
    if (!content_->empty()) info.no_data = FillValue(info);
    const auto& [rows, columns] = coordinates_[o];
    WarnOfProjection(options_.outputs[o]);
    info.geo =
        Rescaled(source_->info().geo, rows.Begin(), columns.Begin(), rows.scale, columns.scale);
    return info;
  }

  void WarnOfProjection(const JobOutput& output) const {
    const GeoReference& geo = source_->info().geo;
    if (!ranks_->writes() || output.write != nullptr || output.path.ends_with(".npy")) return;
    if (geo.projection.empty() || !geo.keys.empty()) return;
    environment_->log(LogLevel::kWarning, "image '", options_.input.path,
                      "': its coordinate system has no EPSG code, so '", output.path,
                      "' gets the transform without it; add it with 'gdal_edit.py -a_srs'");
  }

  // The boxes of this rank's part go to the results; those of others are neither computed, as far
  // as strips and tiles allow, nor written.
  ImageIo Io(PieceResults* results) {
    ImageIo io;
    io.read = [this](const Box& box, const TensorView& memory) {
      return reader_->Read(box, memory);
    };
    io.ahead = [this](const Box& box) { reader_->ReadAhead(box); };
    io.write = [this, results](size_t o, const Box& box, const TensorView& memory) {
      computing_ = true;
      const Box own = Own(o, box);
      if (own == box) return results->Write(o, box, memory);
      Dims strides;
      return own.empty() ? OkStatus() : results->Write(o, own, CutView(memory, box, own, &strides));
    };
    if (!options_.resume && content_->empty() && ranks_->alone()) return io;
    io.wanted = [this, results](std::span<const ValueBox> boxes) { return Wanted(results, boxes); };
    io.skip = [this, results](size_t o, const Box& box) {
      const Box own = Own(o, box);
      return own.empty() ? OkStatus() : results->Skip(o, own);
    };
    return io;
  }

  Box Own(size_t o, const Box& box) const {
    return ranks_->alone() ? box : Intersect(box, part_.Of(output_types_[o].dims));
  }

  Result<bool> Wanted(PieceResults* results, std::span<const ValueBox> boxes) {
    const std::vector<ValueId>& outputs = runner_->graph().outputs;
    for (const ValueBox& box : boxes) {
      for (size_t o = 0; o < outputs.size(); ++o) {
        if (outputs[o] != box.value) continue;
        const Box own = Own(o, box.box);
        if (own.empty()) continue;
        MSRT_ASSIGN_OR_RETURN(const bool wanted, results->Wanted(o, own));
        if (wanted) return true;
      }
    }
    return false;
  }

  std::function<void(const ImageProgress&)> Progress() {
    if (RemoteResults* const remote = ranks_->remote(); remote != nullptr) {
      // An error shows with the next box.
      return [remote](const ImageProgress& p) { (void)remote->Progress(p.fraction); };
    }
    if (!options_.progress) return {};
    return [this](const ImageProgress& p) {
      const auto parts = static_cast<double>(options_.split_rows * options_.split_columns);
      const double fraction = (p.fraction + ranks_->fractions()) / parts;
      JobProgress progress{.fraction = fraction, .seconds = since_run_.Millis() / 1e3};
      // What was skipped says nothing about the speed.
      if (!computing_) skipped_ = fraction, skipped_seconds_ = progress.seconds;
      const double done = fraction - skipped_, seconds = progress.seconds - skipped_seconds_;
      if (done > 0 && seconds > 0) {
        const auto pixels = static_cast<double>(source_->info().height * source_->info().width);
        progress.pixels_per_second = done * pixels / seconds;
        progress.seconds_left = seconds / done * (1 - fraction);
      }
      options_.progress(progress);
    };
  }

  const JobOptions options_;
  std::shared_ptr<const Environment> environment_;
  // Grows while this rank works.
  const std::shared_ptr<std::atomic<uint64_t>> work_ = std::make_shared<std::atomic<uint64_t>>(0);
  std::unique_ptr<JobRanks> ranks_;
  std::shared_ptr<ImageSource> source_;
  std::vector<int64_t> bands_;
  std::unique_ptr<BandReader> reader_;
  std::unique_ptr<ImageContent> content_;
  uint64_t identity_ = 0;
  double compile_seconds_ = 0;
  Module module_;
  std::vector<std::string> names_;  // of the outputs
  std::vector<Type> output_types_;
  std::vector<ImageCoordinates> coordinates_;  // by output
  RankPart part_;
  ImagePlan plan_;
  std::vector<int64_t> expected_bytes_;  // by rank, of halos
  std::unique_ptr<ImageRunner> runner_;  // either of the two
  std::unique_ptr<HaloRunner> halo_;
  std::vector<ImageInfo> results_info_;
  std::unique_ptr<JobResults> results_;
  std::atomic<bool> cancelled_{false};
  bool ran_ = false, computing_ = false;
  StopWatch since_run_;
  double skipped_ = 0, skipped_seconds_ = 0;
};

ImageJob::ImageJob() = default;
ImageJob::~ImageJob() = default;

// Calls body(rank) for all ranks of this process, each in a thread but for the first. If several
// fail, the error of the first is returned.
template <typename Body>
Status ImageJob::ForEachRank(const Body& body) {
  std::vector<Status> statuses(ranks_.size());
  std::vector<std::thread> threads;
  for (size_t r = 1; r < ranks_.size(); ++r) {
    threads.emplace_back([&, r] {
      Status thrown = CatchAsStatus([&] { statuses[r] = body(r); });
      if (thrown.ok()) return;
      communicators_[r]->Abort(thrown);
      statuses[r] = std::move(thrown);
    });
  }
  statuses[0] = body(0);
  for (std::thread& thread : threads) thread.join();
  for (Status& status : statuses) MSRT_RETURN_IF_ERROR(std::move(status));
  return OkStatus();
}

Result<std::unique_ptr<ImageJob>> ImageJob::Create(std::shared_ptr<const Environment> environment,
                                                   const std::string& model, JobOptions options) {
  std::unique_ptr<ImageJob> job(new ImageJob());
  MSRT_RETURN_IF_ERROR(CheckSplit(options));
  const int64_t parts = options.split_rows * options.split_columns;
  if (parts == 1 || options.communicator != nullptr) {
    job->ranks_.push_back(std::make_unique<Impl>(std::move(options)));
    MSRT_RETURN_IF_ERROR(job->first().Prepare(std::move(environment), model));
    return job;
  }
  constexpr int64_t kMaxThreadRanks = 256;
  if (parts > kMaxThreadRanks)
    return InvalidArgument("a split of ", options.split_rows, " x ", options.split_columns,
                           " parts is too much for one process; use at most ", kMaxThreadRanks,
                           ", or start as many ranks ('msrun launch')");
  if (options.input.source != nullptr)
    options.input.source = MakeLockedSource(options.input.source);
  MSRT_ASSIGN_OR_RETURN(job->communicators_,
                        MakeThreadCommunicators(static_cast<int>(parts), "world", kStallLimit));
  for (const auto& communicator : job->communicators_)
    job->ranks_.push_back(std::make_unique<Impl>(
        RankOptionsOf(options, communicator.get(), static_cast<size_t>(parts))));
  MSRT_RETURN_IF_ERROR(job->ForEachRank([&](size_t r) {
    return job->ranks_[r]->Prepare(RankEnvironment(*environment, parts), model);
  }));
  return job;
}

const ImageInfo& ImageJob::image() const { return first().source_->info(); }
const ImageInfo& ImageJob::result(size_t output) const { return first().results_info_[output]; }
const std::string& ImageJob::output_name(size_t output) const { return first().names_[output]; }
const ImagePlan& ImageJob::plan() const { return first().plan_; }
std::string ImageJob::DescribePlan() const { return first().DescribePlan(); }
Result<std::string> ImageJob::DrawPlan(std::string_view title) const {
  return first().DrawPlan(title);
}
const JobOptions& ImageJob::options() const { return first().options_; }
uint64_t ImageJob::identity() const { return first().identity_; }

Result<JobReport> ImageJob::Run() {
  JobReport report;
  MSRT_RETURN_IF_ERROR(ForEachRank([&](size_t r) -> Status {
    MSRT_ASSIGN_OR_RETURN(JobReport of_rank, ranks_[r]->Run());
    if (r == 0) report = std::move(of_rank);
    return OkStatus();
  }));
  return report;
}

void ImageJob::Cancel() {
  for (const auto& rank : ranks_) rank->cancelled_.store(true);
}

}  // namespace msrt

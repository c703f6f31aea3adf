#include "core/image/executors/image_runner.h"

#include "core/graph/constants.h"
#include "core/image/executors/image_outputs.h"
#include "core/image/executors/image_runner_state.h"
#include "core/image/executors/phase_share.h"
#include "core/image/executors/stream_model.h"

namespace msrt {

// ---- the state of a run -------------------------------------------------------------------------

std::vector<PieceMemory> ImageRunState::Stored(std::span<const ValueId> values) const {
  std::vector<PieceMemory> views;
  for (ValueId v : values) views.push_back(stored.at(IndexOf(v)).View());
  return views;
}

Result<std::vector<PieceMemory>> ImageRunState::TargetMemory(std::span<const ValueBox> targets,
                                                             std::vector<BoxMemory>* outputs) {
  std::vector<PieceMemory> views;
  outputs->reserve(targets.size());
  for (const ValueBox& t : targets) {
    if (const auto it = stored.find(IndexOf(t.value)); it != stored.end()) {
      views.push_back(it->second.View(t.box));
      continue;
    }
    MSRT_ASSIGN_OR_RETURN(BoxMemory output, NewMemory(t.value, t.box));
    outputs->push_back(std::move(output));
    views.push_back(outputs->back().View());
  }
  return views;
}

Status ImageRunState::Read(const BoxMemory& to, const Box& box) {
  const StopWatch watch;
  const PieceMemory part = to.View(box);
  MSRT_RETURN_IF_ERROR(io.read(part.box, part.memory));
  report.read_seconds += watch.Millis() / 1e3;
  return OkStatus();
}

Status ImageRunState::Write(const std::vector<BoxMemory>& outputs) {
  const StopWatch watch;
  const std::vector<ValueId>& values = runner.graph().outputs;
  for (const BoxMemory& output : outputs) {
    for (size_t o = 0; o < values.size(); ++o) {
      if (values[o] != output.value()) continue;
      const PieceMemory part = output.View();
      MSRT_RETURN_IF_ERROR(io.write(o, part.box, part.memory));
    }
  }
  report.write_seconds += watch.Millis() / 1e3;
  return OkStatus();
}

Status ImageRunState::WriteStored() {
  const StopWatch watch;
  const std::vector<ValueId>& values = runner.graph().outputs;
  for (size_t o = 0; o < values.size(); ++o) {
    const auto it = stored.find(IndexOf(values[o]));
    if (it == stored.end()) continue;
    const PieceMemory whole = it->second.View();
    const ValueBox target{whole.value, whole.box};
    MSRT_ASSIGN_OR_RETURN(const bool wanted, io.wanted ? io.wanted({&target, 1}) : true);
    if (wanted) MSRT_RETURN_IF_ERROR(io.write(o, whole.box, whole.memory));
    else if (io.skip) MSRT_RETURN_IF_ERROR(io.skip(o, whole.box));
  }
  report.write_seconds += watch.Millis() / 1e3;
  return OkStatus();
}

Result<bool> ImageRunState::Wanted(const PhasePlan& plan, size_t phase, bool last_phase,
                                   std::span<const ValueBox> targets) const {
  if (last_phase) return io.wanted ? io.wanted(targets) : true;
  if (options.share == nullptr || !options.share->Shares(phase)) return true;
  return options.share->IsWanted(runner, plan.phase, targets);
}

Status ImageRunState::Skip(std::span<const ValueBox> targets) const {
  const std::vector<ValueId>& values = runner.graph().outputs;
  for (const ValueBox& target : targets) {
    for (size_t o = 0; o < values.size(); ++o) {
      if (values[o] == target.value && io.skip) MSRT_RETURN_IF_ERROR(io.skip(o, target.box));
    }
  }
  return OkStatus();
}

Status ImageRunState::Run(std::span<const PieceMemory> sources,
                          std::span<const PieceMemory> targets) {
  const Status status = runner.Run(sources, targets, {});
  counter.Note(fixed_bytes + runner.arena_bytes() + runner.scratch_bytes());
  if (status.ok() && counter.peak() > limit_bytes) {
    return LimitExceeded("the kernels took more scratch memory than expected (",
                         runner.scratch_bytes(), " bytes); set the memory limit to ",
                         counter.peak() + counter.peak() / 8, " bytes or more");
  }
  return status;
}

Status ImageRunState::CheckCancelled() const {
  if (options.cancelled == nullptr || !options.cancelled->load()) return OkStatus();
  return MakeStatus(Code::kCancelled, "the run over the image was cancelled");
}

void ImageRunState::Progress(size_t phase, size_t phases, int64_t done, int64_t total) const {
  if (!options.progress) return;
  const double part = static_cast<double>(done) / static_cast<double>(total);
  options.progress({phase, phases, done, total,
                    (static_cast<double>(phase) + part) / static_cast<double>(phases)});
}

// ---- the runner ---------------------------------------------------------------------------------

class ImageRunner::Impl {
 public:
  Impl(std::shared_ptr<const CompiledModel> model, std::unique_ptr<PieceRunner> runner,
       ImagePlan plan)
      : model_(std::move(model)), runner_(std::move(runner)), plan_(std::move(plan)) {}

  Result<ImageReport> Run(const ImageIo& io, const ImageRunOptions& options) {
    const StopWatch watch;
    ImageRunState state{*runner_,
                        *model_->parallel,
                        io,
                        options,
                        ConstantBytes(model_->module) + runner_->packed_bytes(),
                        plan_.limit_bytes,
                        CountedMemory(model_->environment->allocator),
                        {},
                        {}};
    for (size_t p = 0; p < plan_.phases.size(); ++p) {
      const StopWatch phase_watch;
      ImageReport::Phase report;
      MSRT_RETURN_IF_ERROR(RunPhase(p, &state, &report));
      report.seconds = phase_watch.Millis() / 1e3;
      state.report.recomputed_rows += report.recomputed_rows;
      state.report.phases.push_back(std::move(report));
    }
    MSRT_RETURN_IF_ERROR(state.WriteStored());
    state.report.peak_bytes = state.counter.peak();
    state.report.seconds = watch.Millis() / 1e3;
    return std::move(state.report);
  }

 private:
  friend class ImageRunner;

  Status RunPhase(size_t p, ImageRunState* state, ImageReport::Phase* report) {
    const PhasePlan& plan = plan_.phases[p];
    report->executor = plan.executor, report->rows = plan.rows, report->columns = plan.columns;
    MSRT_RETURN_IF_ERROR(Derive(plan.phase, state));
    if (p + 1 < plan_.phases.size()) {
      for (const StreamTarget& t : plan.phase.targets) MSRT_RETURN_IF_ERROR(Store(t.value, state));
    }
    if (plan.phase.targets.empty()) return OkStatus();
    const auto run = plan.executor == ImageExecutor::kTiles ? RunPhaseTiles : StreamPhaseRows;
    MSRT_RETURN_IF_ERROR(run(plan, p, plan_.phases.size(), state, report));
    PhaseShare* const share = state->options.share;
    if (share == nullptr || !share->Shares(p)) return OkStatus();
    return share->Gather(*runner_, plan.phase, state->stored);
  }

  Status Store(ValueId v, ImageRunState* state) {
    MSRT_ASSIGN_OR_RETURN(BoxMemory memory, state->NewMemory(v, Box::Whole(runner_->type(v).dims)));
    state->stored.insert_or_assign(IndexOf(v), std::move(memory));
    return OkStatus();
  }

  // Computes the values that follow from those that are stored.
  Status Derive(const StreamPhase& phase, ImageRunState* state) {
    if (phase.derived.empty()) return OkStatus();
    std::vector<PieceMemory> sources, targets;
    for (const auto& [value, memory] : state->stored) sources.push_back(memory.View());
    for (ValueId v : phase.derived) {
      MSRT_RETURN_IF_ERROR(Store(v, state));
      targets.push_back(state->stored.at(IndexOf(v)).View());
    }
    return state->Run(sources, targets);
  }

  // Destroyed in reverse order.
  const std::shared_ptr<const CompiledModel> model_;
  const std::unique_ptr<PieceRunner> runner_;
  const ImagePlan plan_;
};

ImageRunner::ImageRunner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ImageRunner::~ImageRunner() = default;

Result<std::unique_ptr<ImageRunner>> ImageRunner::Create(std::shared_ptr<const CompiledModel> model,
                                                         const ImagePlanOptions& options) {
  const Graph& graph = model->module.main();
  if (graph.inputs.size() != 1 || !graph.value(graph.inputs[0]).type.concrete())
    return InvalidArgument("the model was not compiled for an image; use CompileForImage");
  const Dims image = graph.value(graph.inputs[0]).type.dims;
  const SessionOptions session{.memory_cap_bytes = options.memory_limit_bytes};
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<PieceRunner> runner,
                        PieceRunner::Create(model, 0, std::vector<Dims>{image}, session));
  std::vector<Type> outputs;
  for (ValueId v : runner->graph().outputs) outputs.push_back(runner->type(v));
  MSRT_RETURN_IF_ERROR(CheckOutputsFollowImage(runner->graph(), outputs));
  MSRT_RETURN_IF_ERROR(CheckRowsFollowImage(*runner));
  MSRT_ASSIGN_OR_RETURN(ImagePlan plan, PlanImage(*runner, ConstantBytes(model->module), options));
  return std::unique_ptr<ImageRunner>(new ImageRunner(
      std::make_unique<Impl>(std::move(model), std::move(runner), std::move(plan))));
}

const ImagePlan& ImageRunner::plan() const { return impl_->plan_; }
const Graph& ImageRunner::graph() const { return impl_->runner_->graph(); }
const Type& ImageRunner::output_type(size_t output) const {
  return impl_->runner_->type(graph().outputs[output]);
}
const PieceRunner& ImageRunner::pieces() const { return *impl_->runner_; }

std::string ImageRunner::Describe() const {
  std::string text;
  for (const PhasePlan& p : impl_->plan_.phases) {
    StrAppend(&text, ExecutorName(p.executor), ": ");
    if (p.executor == ImageExecutor::kTiles) StrAppend(&text, p.rows, " x ", p.columns, " tiles");
    else StrAppend(&text, "strips of ", p.rows, " rows");
    StrAppend(&text, " of");
    for (const StreamTarget& t : p.phase.targets)
      StrAppend(&text, " ", graph().value(t.value).name);
    StrAppend(&text, ", ", p.piece_bytes + p.stored_bytes, " bytes\n");
  }
  return text;
}

Result<ImageReport> ImageRunner::Run(const ImageIo& io, const ImageRunOptions& options) {
  return impl_->Run(io, options);
}

}  // namespace msrt

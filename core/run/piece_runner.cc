#include "core/run/piece_runner.h"

#include "core/compile/failover.h"
#include "core/run/executor.h"

namespace msrt {
namespace {

PieceRequest RequestOf(std::span<const PieceMemory> sources, std::span<const PieceMemory> targets) {
  PieceRequest request;
  const auto add = [](const PieceMemory& m, std::vector<PieceTensor>* to) {
    PieceTensor tensor{m.value, m.box, {}};
    if (m.memory.strides != nullptr)
      tensor.strides = Dims({m.memory.strides, static_cast<size_t>(m.box.rank())});
    to->push_back(std::move(tensor));
  };
  for (const PieceMemory& m : sources) add(m, &request.sources);
  for (const PieceMemory& m : targets) add(m, &request.targets);
  return request;
}

}  // namespace

class PieceRunner::Impl {
 public:
  Impl(std::shared_ptr<const CompiledModel> model, size_t entry, const SessionOptions& options)
      : model_(std::move(model)),
        entry_(entry),
        budget_(model_->environment->allocator, options.memory_cap_bytes),
        states_(*model_, budget_, nullptr),
        executor_(*model_, &budget_, &states_, &cancelled_, options.stream_priority) {}

  Status SetInputs(std::span<const Dims> inputs) {
    const Graph& graph = model_->module.graphs[model_->module.entries[entry_]];
    if (inputs.size() != graph.inputs.size())
      return InvalidArgument(inputs.size(), " shapes for ", graph.inputs.size(), " inputs");
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs_.push_back(Type::Tensor(graph.value(graph.inputs[i]).type.dtype, inputs[i]));
    return Refresh();
  }

  // Makes the binder anew if the program was replaced.
  Status Refresh() {
    std::shared_ptr<const EntryProgram> current = model_->entries[entry_]->current();
    if (current == placed_) return OkStatus();
    binding_.reset();  // before its program
    binder_.reset();
    placed_ = std::move(current);
    MSRT_ASSIGN_OR_RETURN(binder_, PieceBinder::Make(*placed_->program, model_->module,
                                                     *model_->environment->evaluator, inputs_));
    return OkStatus();
  }

  Status Run(std::span<const PieceMemory> sources, std::span<const PieceMemory> targets,
             const RunOptions& options) {
    for (const PieceMemory& m : sources) MSRT_RETURN_IF_ERROR(Check(m, "source"));
    for (const PieceMemory& m : targets) MSRT_RETURN_IF_ERROR(Check(m, "target"));
    std::vector<RunValue> inputs;
    for (const PieceMemory& m : sources) inputs.push_back(RunValue::Of(m.memory));
    std::vector<ResultCell> outputs(targets.size());
    for (size_t t = 0; t < targets.size(); ++t) outputs[t].value = RunValue::Of(targets[t].memory);
    const PieceRequest request = RequestOf(sources, targets);
    const uint32_t graph = model_->module.entries[entry_];
    for (;;) {
      MSRT_RETURN_IF_ERROR(Refresh());
      auto binding = binder_->Bind(request, placed_->pieces.get());
      Status status = std::move(binding).status();
      std::string failed = FailedDelegateName(status);
      if (status.ok()) {
        binding_ = *std::move(binding);
        status = executor_.RunPiece(graph, placed_, binding_, inputs, outputs, options);
        failed = executor_.failure().delegate;
      }
      if (!status.ok() && model_->entries[entry_]->current() != placed_) continue;
      const bool stopped =
          status.code() == Code::kCancelled || status.code() == Code::kDeadlineExceeded;
      if (status.ok() || failed.empty() || stopped) return status;
      // Nothing has been kept of this run, so it can start again on another delegate.
      MSRT_RETURN_IF_ERROR(RecompileWithout(*model_, graph, placed_, failed, status));
    }
  }

  Status Check(const PieceMemory& m, std::string_view what) const {
    const Graph& graph = *placed_->program->graph;
    if (IndexOf(m.value) >= graph.value_count())
      return InvalidArgument(what, ": value ", IndexOf(m.value), " does not exist");
    const Type& type = binder_->type(m.value);
    const auto refuse = [&](const auto&... why) {
      return InvalidArgument(what, " '", graph.value(m.value).name, "': ", why...);
    };
    if (!type.is_tensor()) return refuse("is no tensor");
    if (!m.memory.present()) return refuse("has no memory");
    if (m.memory.layout != Layout::kPlain) return refuse("its memory must be plain");
    if (m.memory.dtype != type.dtype)
      return refuse("its memory is for ", m.memory.dtype, ", the value is ", type);
    if (m.box.rank() > kMaxRank || !(m.memory.dims == m.box.dims()))
      return refuse("its memory is for ", m.memory.dims, ", the box is ", m.box);
    if (m.memory.strides != nullptr && m.box.rank() > 0 && m.memory.dims.back() > 1 &&
        m.memory.strides[m.box.rank() - 1] != 1)
      return refuse("the elements of its last dim must be neighbours in memory");
    return OkStatus();
  }

  const std::shared_ptr<const CompiledModel> model_;
  const size_t entry_;
  std::vector<Type> inputs_;
  Budget budget_;
  StateStore states_;
  std::atomic<bool> cancelled_{false};
  // Bindings and binders refer to the program.
  std::shared_ptr<const EntryProgram> placed_;
  std::shared_ptr<const PieceBinder> binder_;
  std::shared_ptr<const Binding> binding_;
  Executor executor_;
};

PieceRunner::PieceRunner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PieceRunner::~PieceRunner() = default;

Result<std::unique_ptr<PieceRunner>> PieceRunner::Create(std::shared_ptr<const CompiledModel> model,
                                                         size_t entry, std::span<const Dims> inputs,
                                                         const SessionOptions& options) {
  if (entry >= model->entries.size())
    return NotFound("entry ", entry, " does not exist; the model has ", model->entries.size());
  auto impl = std::make_unique<Impl>(std::move(model), entry, options);
  MSRT_RETURN_IF_ERROR(impl->SetInputs(inputs));
  return std::unique_ptr<PieceRunner>(new PieceRunner(std::move(impl)));
}

const Graph& PieceRunner::graph() const { return *impl_->placed_->program->graph; }
const Type& PieceRunner::type(ValueId value) const { return impl_->binder_->type(value); }

Result<RequiredBoxes> PieceRunner::Required(std::span<const PieceMemory> sources,
                                            std::span<const PieceMemory> targets) const {
  return impl_->binder_->Required(RequestOf(sources, targets));
}

Status PieceRunner::Run(std::span<const PieceMemory> sources, std::span<const PieceMemory> targets,
                        const RunOptions& options) {
  return impl_->Run(sources, targets, options);
}

Result<std::shared_ptr<const Binding>> PieceRunner::Bind(
    std::span<const PieceMemory> sources, std::span<const PieceMemory> targets) const {
  return impl_->binder_->Bind(RequestOf(sources, targets), impl_->placed_->pieces.get());
}

const GraphSpaces& PieceRunner::spaces() const { return impl_->binder_->spaces(); }

size_t PieceRunner::packed_bytes() const {
  size_t bytes = 0;
  for (const Step& step : impl_->placed_->program->steps) {
    if (step.kernel) bytes += step.kernel.packed_bytes();
  }
  return bytes;
}

std::shared_ptr<const Binding> PieceRunner::binding() const { return impl_->binding_; }
PieceKernels::Counts PieceRunner::kernel_counts() const { return impl_->placed_->pieces->counts(); }
size_t PieceRunner::arena_bytes() const { return impl_->executor_.frames().arena_bytes(); }
size_t PieceRunner::scratch_bytes() const { return impl_->executor_.scratch_bytes(); }

}  // namespace msrt

#include "core/run/rank_session.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include "core/base/catch_as_status.h"
#include "core/comm/communicator.h"
#include "core/comm/thread_engine.h"
#include "core/graph/constants.h"
#include "core/run/session.h"
#include "ops/exchange.h"

namespace msrt {
namespace {

size_t MessageBytes(const ExchangePlan& plan) {
  return BytesOf(plan.dtype, ElementsOf(plan.sends) + ElementsOf(plan.receives));
}

double SecondsSince(int64_t begin) { return static_cast<double>(MonotonicNanos() - begin) * 1e-9; }

}  // namespace

class RankSession::Impl {
 public:
  Impl(RankModel model, Communicator* communicator)
      : model_(std::move(model)), communicator_(*communicator) {}

  Status Start(size_t memory_cap_bytes) {
    for (const Step& step : model_.model->entries[0]->current()->program->steps) {
      if (step.kernel) fixed_bytes_ += step.kernel.packed_bytes();
      if (step.exchange) message_bytes_ = std::max(message_bytes_, MessageBytes(*step.exchange));
    }
    const Graph& graph = model_.model->module.main();
    for (ValueId v : graph.inputs) fixed_bytes_ += graph.value(v).type.bytes();
    fixed_bytes_ += ConstantBytes(model_.model->module) + message_bytes_;
    SessionOptions options;
    if (memory_cap_bytes != 0)
      options.memory_cap_bytes = memory_cap_bytes - std::min(memory_cap_bytes - 1, fixed_bytes_);
    options.communicator = &communicator_;
    MSRT_ASSIGN_OR_RETURN(session_, Session::Create(model_.model, 0, options));
    return OkStatus();
  }

  Result<RankReport> Run(const RankIo& io, const RunOptions& options) {
    RankReport report;
    const int64_t begin = MonotonicNanos();
    MSRT_RETURN_IF_ERROR(AllocateInputs());
    MSRT_RETURN_IF_ERROR(Read(io));
    report.read_seconds = SecondsSince(begin);
    const int64_t read = MonotonicNanos();
    RunOptions run = options;
    if (io.progress) run.progress = &io.progress;
    MSRT_RETURN_IF_ERROR(session_->Run(run));
    report.seconds = SecondsSince(read);
    report.exchanges = session_->exchanges();
    report.memory_bytes = session_->memory().total();
    report.peak_bytes = fixed_bytes_ + report.memory_bytes;
    const int64_t ran = MonotonicNanos();
    MSRT_RETURN_IF_ERROR(Write(io));
    report.write_seconds = SecondsSince(ran);
    return report;
  }

  // Before the first run, not before: a caller may find that the memory does not suffice.
  Status AllocateInputs() {
    const Graph& graph = session_->graph();
    for (size_t i = inputs_.size(); i < graph.inputs.size(); ++i) {
      const Type& type = graph.value(graph.inputs[i]).type;
      MSRT_ASSIGN_OR_RETURN(Block block,
                            Block::Make(model_.model->environment->allocator,
                                        std::max<size_t>(type.bytes(), 1), "the inputs of a rank"));
      inputs_.push_back(std::move(block));
      MSRT_RETURN_IF_ERROR(session_->SetInput(
          i, {type.dtype, type.dims, Layout::kPlain, inputs_.back().data()}, nullptr));
    }
    return OkStatus();
  }

  Result<size_t> ExpectedBytes() const {
    const std::shared_ptr<const EntryProgram> placed = model_.model->entries[0]->current();
    const Graph& graph = session_->graph();
    BindRequest request;
    for (ValueId v : graph.inputs) request.inputs.push_back(graph.value(v).type);
    MSRT_ASSIGN_OR_RETURN(const std::shared_ptr<const Binding> binding,
                          BindingFor(*model_.model, *placed, request));
    size_t bytes = binding->arena_bytes + fixed_bytes_;
    for (const Type& type : binding->output_types) bytes += type.concrete() ? type.bytes() : 0;
    return bytes;
  }

  Status Read(const RankIo& io) {
    const Graph& graph = session_->graph();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Box& box = model_.split.inputs[i];
      if (box.empty()) continue;
      const Type& type = graph.value(graph.inputs[i]).type;
      MSRT_RETURN_IF_ERROR(
          io.read(i, box, {type.dtype, type.dims, Layout::kPlain, inputs_[i].data()}));
    }
    return OkStatus();
  }

  Status Write(const RankIo& io) {
    for (size_t o = 0; o < model_.split.outputs.size(); ++o) {
      const Box& box = model_.split.outputs[o];
      if (box.empty() || !model_.split.writes[o]) continue;
      MSRT_ASSIGN_OR_RETURN(const TensorView view, session_->Output(o));
      MSRT_RETURN_IF_ERROR(io.write(o, box, view));
    }
    return OkStatus();
  }

  RankModel model_;
  Communicator& communicator_;
  size_t fixed_bytes_ = 0;     // inputs, weights, their packed forms, the largest messages
  size_t message_bytes_ = 0;   // of the largest exchange; exchanges run one after the other
  std::vector<Block> inputs_;  // the session reads them
  std::unique_ptr<Session> session_;
};

RankSession::RankSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RankSession::~RankSession() = default;

Result<std::unique_ptr<RankSession>> RankSession::Create(
    std::shared_ptr<const Environment> environment, Module module, std::span<const Dims> inputs,
    const RankOptions& options, Communicator* communicator) {
  const auto create = [&]() -> Result<std::unique_ptr<RankSession>> {
    MSRT_ASSIGN_OR_RETURN(const int ranks, RanksOf(options.split));
    if (ranks != communicator->size())
      return InvalidArgument("the grid has ", ranks, " ranks, group '", communicator->group(),
                             "' has ", communicator->size(), "; start as many ranks as parts");
    MSRT_ASSIGN_OR_RETURN(
        RankModel model, CompileRank(std::move(environment), std::move(module), options.entry,
                                     inputs, options.compile, options.split, communicator->rank()));
    auto impl = std::make_unique<Impl>(std::move(model), communicator);
    MSRT_RETURN_IF_ERROR(impl->Start(options.memory_cap_bytes));
    return std::unique_ptr<RankSession>(new RankSession(std::move(impl)));
  };
  auto result = create();
  if (!result.ok()) communicator->Abort(result.status());
  return result;
}

const RankModule& RankSession::split() const { return impl_->model_.split; }
const CompiledModel& RankSession::model() const { return *impl_->model_.model; }
Result<size_t> RankSession::ExpectedBytes() const { return impl_->ExpectedBytes(); }

Result<RankReport> RankSession::Run(const RankIo& io, const RunOptions& options) {
  auto report = impl_->Run(io, options);
  if (!report.ok()) impl_->communicator_.Abort(report.status());
  return report;
}

void RankSession::Cancel() { impl_->session_->Cancel(); }

Result<std::vector<RankReport>> RunThreadRanks(
    std::span<const std::shared_ptr<const Environment>> environments, const Module& module,
    std::span<const Dims> inputs, const RankOptions& options, const RankIo& io,
    const RunOptions& run) {
  MSRT_ASSIGN_OR_RETURN(auto communicators,
                        MakeThreadCommunicators(static_cast<int>(environments.size())));
  std::mutex mutex;
  RankIo one_at_a_time;
  one_at_a_time.read = [&](size_t input, const Box& box, const TensorView& memory) {
    std::lock_guard lock(mutex);
    return io.read(input, box, memory);
  };
  one_at_a_time.write = [&](size_t output, const Box& box, const TensorView& memory) {
    std::lock_guard lock(mutex);
    return io.write(output, box, memory);
  };
  std::vector<RankReport> reports(environments.size());
  std::vector<Status> statuses(environments.size());
  const auto run_rank = [&](size_t r) -> Status {
    MSRT_ASSIGN_OR_RETURN(auto session, RankSession::Create(environments[r], module, inputs,
                                                            options, communicators[r].get()));
    MSRT_ASSIGN_OR_RETURN(reports[r], session->Run(one_at_a_time, run));
    return OkStatus();
  };
  std::vector<std::thread> threads;
  for (size_t r = 0; r < environments.size(); ++r) {
    threads.emplace_back([&, r] {
      Status thrown = CatchAsStatus([&] { statuses[r] = run_rank(r); });
      if (thrown.ok()) return;
      communicators[r]->Abort(thrown);
      statuses[r] = std::move(thrown);
    });
  }
  for (std::thread& t : threads) t.join();
  for (Status& status : statuses) MSRT_RETURN_IF_ERROR(std::move(status));
  return reports;
}

}  // namespace msrt

#include "core/program/program_builder.h"

#include <algorithm>
#include <bit>

#include "ops/node_view.h"

namespace msrt {

ProgramBuilder::ProgramBuilder(const Placement& placement, UploadedConstants* uploads,
                               Program* program)
    : graph_(*program->graph),
      program_(*program),
      transfers_(placement.transfers),
      device_values_(placement.device_values),
      wanted_(graph_.value_count()),
      produced_(graph_.value_count(), kNoBuffer),
      buffers_(graph_.value_count()),
      uploads_(*uploads),
      upload_streams_(program->devices.size()) {
  FindWanted(placement);
  for (ValueId v : graph_.inputs) {
    program_.input_buffers.push_back(Produce(v, HomeOf(v)));
    if (!graph_.value(v).type.is_tensor()) Hold(program_.input_buffers.back());
  }
  for (uint32_t v = 0; v < graph_.value_count(); ++v) {
    if (graph_.value(ValueId(v)).constant != nullptr) Produce(ValueId(v), kHostPlain);
  }
}

void ProgramBuilder::FindWanted(const Placement& placement) {
  const auto want = [&](ValueId v, TensorState state) {
    if (v != kNoValue) wanted_[IndexOf(v)] |= SetOf(state);
  };
  for (const Placement::Step& step : placement.steps) {
    const CandidateBorder border = program_.offered->BorderOf(step.nodes);
    for (size_t i = 0; i < border.inputs.size(); ++i) {
      if (step.candidate != nullptr)
        want(border.inputs[i], {step.device, step.candidate->input_layouts[i]});
      else want(border.inputs[i], {i == 0 ? step.device : uint16_t{0}, Layout::kPlain});
    }
  }
  for (ValueId v : graph_.outputs) want(v, HomeOf(v));
}

TensorState ProgramBuilder::HomeOf(ValueId v) const {
  const auto kept = std::find_if(device_values_.begin(), device_values_.end(),
                                 [&](const auto& k) { return k.first == v; });
  return kept == device_values_.end() ? kHostPlain : TensorState{kept->second, Layout::kPlain};
}

Status ProgramBuilder::AddKernel(const Placement::Step& placed, std::string_view delegate,
                                 Kernel kernel) {
  const Candidate& c = *placed.candidate;
  const uint32_t n = placed.nodes.back();
  const CandidateBorder border = program_.offered->BorderOf(placed.nodes);
  std::vector<BufferId> inputs;
  for (size_t i = 0; i < border.inputs.size(); ++i) {
    const ValueId v = border.inputs[i];
    const bool constant = v != kNoValue && graph_.value(v).constant != nullptr;
    if (constant && c.packs_constants) {
      inputs.push_back(kNoBuffer);
    } else if (constant && placed.device != 0) {
      MSRT_ASSIGN_OR_RETURN(const BufferId uploaded, NeedConstant(v, placed.device));
      inputs.push_back(uploaded);
    } else {
      inputs.push_back(Need(n, v, {placed.device, c.input_layouts[i]}));
    }
  }
  const QueueId queue = c.asynchronous ? kThreadQueue : placed.device;
  program_.uses_thread |= c.asynchronous;
  Step step{StepKind::kKernel,
            queue,
            n,
            placed.nodes,
            std::move(kernel),
            std::string(delegate),
            c.algorithm,
            std::move(inputs),
            {},
            c.in_place};
  for (size_t i = 0; i < border.outputs.size(); ++i) {
    step.outputs.push_back(Produce(border.outputs[i], {placed.device, c.output_layouts[i]}));
  }
  step.seconds = c.seconds;
  step.arithmetic = c.arithmetic;
  step.strided_inputs = c.strided_inputs;
  step.strided_outputs = c.strided_outputs;
  step.granule = c.granule;
  step.packs_constants = c.packs_constants;
  program_.steps.push_back(std::move(step));
  const std::vector<BufferId> outputs = program_.steps.back().outputs;
  for (BufferId b : outputs) SendOn(n, b);
  return OkStatus();
}

void ProgramBuilder::AddHostWork(const Placement::Step& placed) {
  const uint32_t n = placed.nodes.back();
  const Node& node = graph_.nodes[n];
  if (node.def->effect == Effect::kState) {
    Step step{node.outputs.empty() ? StepKind::kStateWrite : StepKind::kStateRead,
              0,
              n,
              {n},
              {},
              {},
              {},
              {},
              {},
              {}};
    for (ValueId v : node.inputs) step.inputs.push_back(Need(n, v, kHostPlain));
    for (ValueId v : node.outputs) step.outputs.push_back(Produce(v, kHostPlain));
    program_.steps.push_back(std::move(step));
    return;
  }
  if (node.def->effect == Effect::kComm) return AddExchange(n);
  if ((node.def->traits & kRunByExecutor) != 0) {
    Step step{StepKind::kControl, 0, n, {n}, {}, {}, {}, {}, {}, {}};
    for (ValueId v : node.inputs) step.inputs.push_back(Need(n, v, kHostPlain));
    for (ValueId v : node.outputs) {
      step.outputs.push_back(Produce(v, kHostPlain));
      if (v != kNoValue) Hold(step.outputs.back());
    }
    if (IsControl(node)) step.control = std::make_shared<const ControlShape>(ShapeOfControl(node));
    step.seconds = placed.seconds;
    program_.steps.push_back(std::move(step));
    return;
  }
  const TensorState state{placed.device, Layout::kPlain};
  const BufferId source = Need(n, node.inputs[0], state);
  const BufferId target = Produce(node.outputs[0], state);
  // The caller provides the memory of a graph output, so on the host it cannot be a view of another
  // value.
  const bool copy = placed.device == 0 && program_.offered->IsOutput(node.outputs[0]);
  if (!copy) program_.buffers[target].root = program_.buffers[source].root;
  Step step{copy ? StepKind::kConvert : StepKind::kView,
            placed.device,
            n,
            {n},
            {},
            {},
            copy ? "copy" : "view",
            {source},
            {target},
            {}};
  // The other inputs are small: the new shape, axes. A binding may have to wait for their values.
  for (size_t i = 1; i < node.inputs.size(); ++i)
    step.inputs.push_back(Need(n, node.inputs[i], kHostPlain));
  program_.steps.push_back(std::move(step));
  SendOn(n, target);
}

// Mostly waits, so that the host goes on with steps that need none of its results.
void ProgramBuilder::AddExchange(uint32_t n) {
  const Node& node = graph_.nodes[n];
  Step step{StepKind::kExchange, kThreadQueue, n, {n}, {}, {}, {}, {}, {}, {}};
  for (ValueId v : node.inputs) step.inputs.push_back(Need(n, v, kHostPlain));
  for (ValueId v : node.outputs) step.outputs.push_back(Produce(v, kHostPlain));
  const NodeView view(graph_, node);
  if (IsCollective(node)) {
    step.collective = std::make_shared<const CollectivePlan>(CollectivePlanOf(view.op()));
    if (step.collective->background) step.queue = kBackgroundQueue;
  } else {
    auto plan = ExchangePlanOf(view.op());
    MSRT_CHECK(plan.ok());  // validated
    step.exchange = std::make_shared<const ExchangePlan>(*std::move(plan));
  }
  program_.uses_thread = true;
  program_.steps.push_back(std::move(step));
}

Status ProgramBuilder::Finish() {
  AddOutputs();
  MarkTailCall();
  DropUnusedDevices();
  return FinishUploads();
}

// Every graph output needs its own plain memory: a value that is also an input, a constant, or
// named twice is copied. Outputs that are kept on a device are made there by a kernel or a copy,
// and named once.
void ProgramBuilder::AddOutputs() {
  std::vector<bool> made(program_.buffers.size());
  const auto mark = [&](const Step& step) {
    made.resize(program_.buffers.size());
    for (BufferId b : step.outputs) {
      if (b != kNoBuffer && step.kind != StepKind::kView) made[b] = true;
    }
  };
  for (const Step& step : program_.steps) mark(step);
  const uint32_t last =
      graph_.nodes.empty() ? kNoNode : static_cast<uint32_t>(graph_.nodes.size() - 1);
  for (ValueId v : graph_.outputs) {
    const size_t before = program_.steps.size();
    BufferId b = Need(last, v, HomeOf(v));
    for (size_t s = before; s < program_.steps.size(); ++s) mark(program_.steps[s]);
    made.resize(program_.buffers.size());
    if (!made[b] && graph_.value(v).type.is_tensor()) {  // other values are shared, never written
      const TensorState home = HomeOf(v);
      const BufferId own = NewBuffer(v, home);
      program_.steps.push_back(
          {StepKind::kConvert, home.device, last, {}, {}, {}, "copy", {b}, {own}, {}});
      b = own;
      made.resize(program_.buffers.size());
    }
    made[b] = false;  // taken: named once more, it must be copied
    program_.output_buffers.push_back(b);
  }
}

void ProgramBuilder::MarkTailCall() {
  if (program_.steps.empty()) return;
  Step& last = program_.steps.back();
  const bool calls =
      last.control != nullptr && last.control->carried + last.control->scan_inputs == 0;
  last.tail = calls && last.control->kind != ControlKind::kPartial &&
              last.outputs == program_.output_buffers;
}

// Sessions then create no streams or memory on them.
void ProgramBuilder::DropUnusedDevices() {
  std::vector<bool> used(program_.devices.size());
  for (const Buffer& b : program_.buffers) used[b.state.device] = true;
  for (size_t d = 1; d < used.size(); ++d) {
    if (!used[d]) program_.devices[d] = nullptr;
  }
  while (program_.devices.size() > 1 && program_.devices.back() == nullptr)
    program_.devices.pop_back();
}

BufferId ProgramBuilder::NewBuffer(ValueId v, TensorState state) {
  const auto id = static_cast<BufferId>(program_.buffers.size());
  program_.buffers.push_back({v, state, id});
  return id;
}

void ProgramBuilder::Hold(BufferId b) {
  program_.buffers[b].held = static_cast<int32_t>(program_.held_count++);
}

BufferId ProgramBuilder::Produce(ValueId v, TensorState state) {
  if (v == kNoValue) return kNoBuffer;
  const BufferId id = NewBuffer(v, state);
  produced_[IndexOf(v)] = id;
  buffers_[IndexOf(v)].push_back(id);
  return id;
}

BufferId ProgramBuilder::Find(ValueId v, TensorState state) const {
  for (BufferId b : buffers_[IndexOf(v)]) {
    if (program_.buffers[b].state == state) return b;
  }
  return kNoBuffer;
}

// Values go directly from where they were made, or through the host: TransferPrices relies on this.
BufferId ProgramBuilder::Need(uint32_t n, ValueId v, TensorState state) {
  if (v == kNoValue) return kNoBuffer;
  const BufferId there = Find(v, state);
  if (there != kNoBuffer) return there;
  const BufferId made = produced_[IndexOf(v)];
  const TensorState at = program_.buffers[made].state;
  if (transfers_.Direct(at, state) != nullptr) {
    return Transfer(at.device == state.device ? StepKind::kConvert : StepKind::kCopyPeer, n, made,
                    state);
  }
  if (state.device != 0)
    return Transfer(StepKind::kCopyToDevice, n, Need(n, v, {0, state.layout}), state);
  if (at.device == 0) return Transfer(StepKind::kConvert, n, made, state);
  if (at.layout == state.layout) return Transfer(StepKind::kCopyToHost, n, made, state);
  return Transfer(StepKind::kConvert, n, Need(n, v, {0, at.layout}), state);
}

Result<BufferId> ProgramBuilder::NeedConstant(ValueId v, uint16_t device) {
  const TensorState state{device, Layout::kPlain};
  const BufferId there = Find(v, state);
  if (there != kNoBuffer) return there;
  const std::span<const std::byte> bytes = graph_.value(v).constant->bytes;
  std::shared_ptr<const DeviceBlock> copy = uploads_.Find(*program_.devices[device], bytes);
  if (copy == nullptr) {
    MSRT_ASSIGN_OR_RETURN(copy, Upload(v, device));
  }
  const BufferId id = NewBuffer(v, state);
  program_.buffers[id].uploaded = copy->data();
  program_.uploads.push_back(std::move(copy));
  buffers_[IndexOf(v)].push_back(id);
  return id;
}

// Enqueues the copy of a constant; FinishUploads waits for all of them at once.
Result<std::shared_ptr<const DeviceBlock>> ProgramBuilder::Upload(ValueId v, uint16_t device) {
  const Host& host = *program_.host;
  const Device& d = *program_.devices[device];
  const std::span<const std::byte> bytes = graph_.value(v).constant->bytes;
  std::unique_ptr<Stream>& stream = upload_streams_[device];
  if (stream == nullptr) {
    MSRT_ASSIGN_OR_RETURN(stream, d.MakeStream(host));
  }
  MSRT_ASSIGN_OR_RETURN(
      DeviceBlock block,
      d.Allocate(host, bytes.size(), StrCat("constant '", graph_.value(v).name, "'")));
  auto copy = std::make_shared<const DeviceBlock>(std::move(block));
  pending_uploads_.push_back({bytes, copy});
  MSRT_RETURN_IF_ERROR(stream->CopyToDevice(host, copy->data(), bytes.data(), bytes.size()));
  return std::shared_ptr<const DeviceBlock>(std::move(copy));
}

Status ProgramBuilder::FinishUploads() {
  Status first;
  for (uint16_t d = 1; d < upload_streams_.size(); ++d) {
    if (upload_streams_[d] == nullptr) continue;
    Status status = upload_streams_[d]->Synchronize(*program_.host);
    if (!first.ok() || status.ok()) continue;
    failed_device_ = d;
    first = std::move(status);
  }
  upload_streams_.clear();
  if (first.ok()) {
    for (const PendingUpload& u : pending_uploads_) uploads_.Add(u.constant, u.copy);
  }
  pending_uploads_.clear();
  return first;
}

// Copies in progress use the memory of constants and blocks.
ProgramBuilder::~ProgramBuilder() {
  for (const std::unique_ptr<Stream>& stream : upload_streams_) {
    if (stream != nullptr) (void)stream->Synchronize(*program_.host);
  }
}

BufferId ProgramBuilder::Transfer(StepKind kind, uint32_t n, BufferId from, TensorState to) {
  const ValueId v = program_.buffers[from].value;
  const BufferId id = NewBuffer(v, to);
  const TensorState at = program_.buffers[from].state;
  const QueueId queue = kind == StepKind::kCopyToHost ? at.device : to.device;
  Step step{kind,   queue, n, {}, {}, {}, kind == StepKind::kConvert ? "convert" : "copy",
            {from}, {id},  {}};
  step.seconds = SecondsOf(kind, at, to, v);
  program_.steps.push_back(std::move(step));
  buffers_[IndexOf(v)].push_back(id);
  return id;
}

double ProgramBuilder::SecondsOf(StepKind kind, TensorState from, TensorState to, ValueId v) const {
  const TransferPrices prices(transfers_, program_.offered->MovedBytes(v));
  if (prices.IsDirect(from, to)) return prices.direct(from, to);
  return kind == StepKind::kConvert        ? prices.convert(to.layout)
         : kind == StepKind::kCopyToDevice ? prices.copy_to(to)
                                           : prices.copy_from(from);
}

void ProgramBuilder::SendOn(uint32_t n, BufferId b) {
  if (b == kNoBuffer || program_.buffers[b].state.device == 0) return;
  const Buffer buffer = program_.buffers[b];
  bool to_host = false;
  StateSet rest = wanted_[IndexOf(buffer.value)] & ~SetOf(buffer.state);
  for (; rest != 0; rest &= rest - 1) {
    const TensorState state = StateAt(static_cast<uint32_t>(std::countr_zero(rest)));
    if (transfers_.Direct(buffer.state, state) != nullptr) Need(n, buffer.value, state);
    else to_host = true;
  }
  if (to_host) Need(n, buffer.value, {0, buffer.state.layout});
}

}  // namespace msrt

#include "core/bind/piece_steps.h"

#include <algorithm>

#include "core/bind/memory_plan.h"
#include "core/bind/waits.h"
#include "core/delegate/offered_graph.h"

namespace msrt {
namespace {

bool IsTransfer(const Step& step) { return step.nodes.empty(); }

msrt_shape ShapeOfBox(DType dtype, const Box& box) {
  return ShapeOf(Type::Tensor(dtype, box.dims()));
}

msrt_strides StridesOf(const Part& part) {
  msrt_strides strides{};
  for (int d = 0; d < part.strides.rank(); ++d) strides.dims[d] = part.strides[d];
  return strides;
}

bool SameAttr(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* t = std::get_if<ConstTensor>(&a))
    return t->bytes.data() == std::get<ConstTensor>(b).bytes.data();
  std::string x, y;
  AppendTo(&x, a);
  AppendTo(&y, b);
  return x == y;
}

bool Accepts(uint64_t bits, size_t i) { return i < 64 && (bits >> i & 1) != 0; }

}  // namespace

PieceSteps::PieceSteps(const PieceBinder& binder, const PieceRequest& request,
                       const RequiredBoxes& required, PieceKernels* kernels, Binding* out)
    : binder_(binder),
      program_(binder.program_),
      graph_(*program_.graph),
      request_(request),
      required_(required),
      kernels_(*kernels),
      out_(*out),
      source_of_(graph_.value_count(), -1),
      runs_(program_.steps.size()),
      needed_(program_.buffers.size()),
      parts_(program_.buffers.size()),
      joined_(program_.buffers.size()),
      delivered_(request.targets.size()) {}

Status PieceSteps::Make() {
  FindSources();
  MSRT_RETURN_IF_ERROR(CheckSources());
  MSRT_RETURN_IF_ERROR(FindNeeded());
  std::vector<bool> copied(parts_.size());  // by buffer: the result of a transfer
  for (const Step& step : program_.steps) {
    if (IsTransfer(step)) copied[step.outputs[0]] = true;
  }
  for (BufferId b = 0; b < parts_.size(); ++b) {
    parts_[b] = Existing(b);
    if (needed_[b] && !parts_[b]) MSRT_RETURN_IF_ERROR(ImportSource(b, copied));
  }
  MSRT_RETURN_IF_ERROR(DeliverExisting());
  for (uint32_t s = 0; s < program_.steps.size(); ++s) {
    if (!runs_[s]) continue;
    MSRT_RETURN_IF_ERROR(AddStep(s).Within(Describe(program_, program_.steps[s])));
    for (BufferId b : program_.steps[s].outputs) {
      if (b != kNoBuffer) MSRT_RETURN_IF_ERROR(Deliver(s, b));
    }
  }
  for (const PieceTensor& target : request_.targets)
    out_.output_types.push_back(Type::Tensor(binder_.type(target.value).dtype, target.box.dims()));
  PlanArenas();
  if (program_.queue_count() > 1) AddWaits(program_, &out_);
  return OkStatus();
}

// ---- what exists and what is needed -------------------------------------------------------------

void PieceSteps::FindSources() {
  for (size_t i = 0; i < request_.sources.size(); ++i)
    source_of_[IndexOf(request_.sources[i].value)] = static_cast<int32_t>(i);
}

Status PieceSteps::CheckSources() const {
  for (ValueId v : graph_.inputs) {
    const std::optional<Box>& required = required_.values[IndexOf(v)];
    if (!required) continue;
    const int32_t source = source_of_[IndexOf(v)];
    if (source < 0)
      return InvalidArgument("input '", graph_.value(v).name, "' is required, but not given");
    const Box& given = request_.sources[static_cast<size_t>(source)].box;
    if (!Contains(given, *required)) {
      return InvalidArgument("input '", graph_.value(v).name, "' is required in ", *required,
                             ", but given in ", given);
    }
  }
  return OkStatus();
}

std::optional<Part> PieceSteps::Existing(BufferId b) const {
  const Buffer& buffer = program_.buffers[b];
  const Type& type = TypeOf(b);
  if (buffer.uploaded != nullptr) {
    return DensePart(type.dtype, Box::Whole(type.dims), buffer.state,
                     {Location::kConstant, 0, 0, 0, buffer.uploaded});
  }
  if (buffer.state != kHostPlain) return std::nullopt;
  if (const ConstTensor* known = binder_.facts_.known[IndexOf(buffer.value)]; known != nullptr) {
    return DensePart(type.dtype, Box::Whole(type.dims), kHostPlain,
                     {Location::kConstant, 0, 0, 0, known->bytes.data()});
  }
  const int32_t source = source_of_[IndexOf(buffer.value)];
  if (source < 0) return std::nullopt;
  const PieceTensor& given = request_.sources[static_cast<size_t>(source)];
  if (RequiredOf(b) && !Contains(given.box, *RequiredOf(b))) return std::nullopt;
  Part part = DensePart(type.dtype, given.box, kHostPlain,
                        {Location::kInput, 0, static_cast<uint32_t>(source), 0, nullptr});
  if (!given.strides.empty()) part.strides = given.strides;
  return part;
}

BufferId PieceSteps::BufferForTarget(ValueId value) const {
  for (size_t o = 0; o < graph_.outputs.size(); ++o) {
    if (graph_.outputs[o] == value) return program_.output_buffers[o];
  }
  BufferId best = kNoBuffer;
  for (BufferId b = 0; b < program_.buffers.size(); ++b) {
    if (program_.buffers[b].value != value) continue;
    const TensorState state = program_.buffers[b].state;
    if (state == kHostPlain) return b;
    if (best == kNoBuffer || (state.device == 0 && program_.buffers[best].state.device != 0))
      best = b;
  }
  return best;
}

// A step with nodes runs if one of them has a piece; a transfer, if its result is needed and does
// not exist.
Status PieceSteps::FindNeeded() {
  for (const PieceTensor& target : request_.targets) {
    target_buffers_.push_back(BufferForTarget(target.value));
    if (target_buffers_.back() == kNoBuffer)
      return Unsupported("value '", graph_.value(target.value).name,
                         "' is inside a step of several nodes, which does not store it");
    if (!target.box.empty()) needed_[target_buffers_.back()] = true;
  }
  for (size_t s = program_.steps.size(); s-- > 0;) {
    const Step& step = program_.steps[s];
    runs_[s] = IsTransfer(step)
                   ? needed_[step.outputs[0]] && !Existing(step.outputs[0])
                   : std::any_of(step.nodes.begin(), step.nodes.end(),
                                 [&](uint32_t n) { return required_.pieces[n].has_value(); });
    if (!runs_[s]) continue;
    const size_t inputs = step.kind == StepKind::kKernel ? step.inputs.size() : 1;
    for (size_t i = 0; i < inputs; ++i) {
      const BufferId b = step.inputs[i];
      if (b != kNoBuffer && RequiredOf(b)) needed_[b] = true;
    }
  }
  return OkStatus();
}

// ---- parts --------------------------------------------------------------------------------------

Location PieceSteps::NewBlock(size_t bytes, uint16_t device) {
  // An empty tensor has an address too: null means that it is omitted.
  blocks_.push_back({std::max<size_t>(bytes, 1), device});
  return {Location::kArena, device, static_cast<uint32_t>(blocks_.size() - 1), 0, nullptr};
}

Part PieceSteps::NewPart(DType dtype, const Box& box, TensorState state) {
  return DensePart(dtype, box, state,
                   NewBlock(BytesIn(state.layout, dtype, box.dims()), state.device));
}

Result<Part> PieceSteps::PartOf(BufferId b, const Box& box) const {
  if (!parts_[b] || !Contains(parts_[b]->box, box)) {
    return InternalError("value '", graph_.value(program_.buffers[b].value).name,
                         "' is read before ", box, " of it exists");
  }
  return SubPart(*parts_[b], box);
}

Result<Part> PieceSteps::PlaceOutput(BufferId b, const Box& written, bool takes_strides) {
  const TensorState state = program_.buffers[b].state;
  if (parts_[b]) return SubPart(*parts_[b], written);  // begun with a part of a source
  for (size_t t = 0; t < request_.targets.size(); ++t) {
    const PieceTensor& target = request_.targets[t];
    if (target_buffers_[t] != b || delivered_[t] || state != kHostPlain || target.box != written)
      continue;
    Part part = DensePart(TypeOf(b).dtype, written, state,
                          {Location::kOutput, 0, static_cast<uint32_t>(t), 0, nullptr});
    if (!target.strides.empty()) part.strides = target.strides;
    if (!takes_strides && !part.is_dense()) break;
    delivered_[t] = true;
    parts_[b] = part;
    return part;
  }
  parts_[b] = NewPart(TypeOf(b).dtype, written, state);
  return *parts_[b];
}

// Returns the part itself if it is dense, otherwise a dense copy. Parts of device memory are copied
// through the host.
Result<Part> PieceSteps::Dense(uint32_t step, const Part& part) {
  if (part.is_dense()) return part;
  if (part.state.device == 0) {
    const Part copy = NewPart(part.dtype, part.box, part.state);
    AddCopy(StepKind::kConvert, step, 0, part, copy);
    return copy;
  }
  const auto whole = std::find_if(parts_.begin(), parts_.end(), [&](const auto& p) {
    return p && p->state == part.state && p->place.kind == part.place.kind &&
           p->place.index == part.place.index && p->place.offset <= part.place.offset &&
           p->is_dense() && Contains(p->box, part.box);
  });
  if (whole == parts_.end()) return Unsupported("a part of device memory that cannot be copied");
  const Part on_host = NewPart(part.dtype, (*whole)->box, {0, part.state.layout});
  AddCopy(StepKind::kCopyToHost, step, part.state.device, **whole, on_host);
  MSRT_ASSIGN_OR_RETURN(const Part cut, SubPart(on_host, part.box));
  MSRT_ASSIGN_OR_RETURN(const Part dense, Dense(step, cut));
  const Part back = NewPart(part.dtype, part.box, part.state);
  AddCopy(StepKind::kCopyToDevice, step, part.state.device, dense, back);
  return back;
}

// ---- steps --------------------------------------------------------------------------------------

Status PieceSteps::AddStep(uint32_t s) {
  const Step& step = program_.steps[s];
  if (IsTransfer(step)) return AddTransfer(s);
  return step.kind == StepKind::kKernel ? AddKernel(s) : AddView(s);
}

PieceSteps::StepBoxes PieceSteps::BoxesOf(const Step& step) const {
  StepBoxes boxes;
  const uint32_t n = step.nodes.back();
  const ResolvedSpace* space = binder_.spaces_->of_node(n);
  if (step.nodes.size() == 1 && space != nullptr) {
    const Box& piece = *required_.pieces[n];
    const std::vector<Box> in = InputBoxes(*space, piece), out = OutputBoxes(*space, piece);
    for (size_t i = 0; i < in.size(); ++i)
      boxes.inputs.push_back(IsPresent(space->inputs[i], piece) ? std::optional(in[i])
                                                                : std::nullopt);
    for (size_t o = 0; o < out.size(); ++o)
      boxes.outputs.push_back(space->outputs[o].present ? std::optional(out[o]) : std::nullopt);
    return boxes;
  }
  const CandidateBorder border = program_.offered->BorderOf(step.nodes);
  const auto whole = [&](ValueId v) {
    return v == kNoValue ? std::nullopt : std::optional(Box::Whole(binder_.type(v).dims));
  };
  for (ValueId v : border.inputs) boxes.inputs.push_back(whole(v));
  for (ValueId v : border.outputs) boxes.outputs.push_back(whole(v));
  return boxes;
}

Status PieceSteps::AddKernel(uint32_t s) {
  const Step& step = program_.steps[s];
  const StepBoxes boxes = BoxesOf(step);
  std::vector<Part> parts(step.inputs.size() + step.outputs.size());
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (step.inputs[i] == kNoBuffer || !boxes.inputs[i]) continue;
    if (boxes.inputs[i]->empty()) {
      parts[i] = NewPart(TypeOf(step.inputs[i]).dtype, *boxes.inputs[i],
                         program_.buffers[step.inputs[i]].state);
      continue;
    }
    MSRT_ASSIGN_OR_RETURN(parts[i], PartOf(step.inputs[i], *boxes.inputs[i]));
    if (Accepts(step.strided_inputs, i)) continue;
    MSRT_ASSIGN_OR_RETURN(parts[i], Dense(s, parts[i]));
  }
  std::vector<std::pair<Part, Part>> copies;  // of outputs, after the step
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    if (step.outputs[o] == kNoBuffer || !boxes.outputs[o]) continue;
    if (joined_[step.outputs[o]]) {
      parts[step.inputs.size() + o] = NewPart(TypeOf(step.outputs[o]).dtype, *boxes.outputs[o],
                                              program_.buffers[step.outputs[o]].state);
      continue;
    }
    const bool takes_strides = Accepts(step.strided_outputs, o);
    MSRT_ASSIGN_OR_RETURN(const Part to,
                          PlaceOutput(step.outputs[o], *boxes.outputs[o], takes_strides));
    Part& part = parts[step.inputs.size() + o];
    part = to;
    if (takes_strides || to.is_dense()) continue;
    if (IsOnDevice(step.queue)) return Unsupported("cannot write a part of device memory");
    part = NewPart(to.dtype, to.box, to.state);
    copies.emplace_back(part, to);
  }
  MSRT_ASSIGN_OR_RETURN(std::vector<PieceNode> nodes, PieceNodes(step, boxes, parts));
  BoundStep bound;
  // A piece has no host work that could continue beside it.
  bound.kind = StepKind::kKernel, bound.step = s;
  if (IsOnDevice(step.queue)) bound.queue = step.queue;
  MSRT_ASSIGN_OR_RETURN(bound.kernel, kernels_.Get(program_, s, std::move(nodes)));
  if (const size_t bytes = bound.kernel->workspace_bytes(); bytes != 0)
    bound.workspace = NewBlock(bytes, bound.queue);
  bound.input_count = static_cast<uint32_t>(step.inputs.size());
  for (const Part& part : parts) AddArgument(part, &bound);
  Push(std::move(bound));
  for (const auto& [from, to] : copies) AddCopy(StepKind::kConvert, s, 0, from, to);
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    const BufferId b = step.outputs[o];
    if (b != kNoBuffer && boxes.outputs[o] && joined_[b])
      MSRT_RETURN_IF_ERROR(Join(s, parts[step.inputs.size() + o], b));
  }
  return OkStatus();
}

// Adds what a step has computed to what a source has of the buffer, through the host.
Status PieceSteps::Join(uint32_t step, const Part& computed, BufferId b) {
  const uint16_t device = computed.state.device;
  const Part host = NewPart(computed.dtype, computed.box, {0, computed.state.layout});
  AddCopy(StepKind::kCopyToHost, step, device, computed, host);
  MSRT_ASSIGN_OR_RETURN(const Part to, SubPart(*joined_[b], computed.box));
  AddCopy(StepKind::kConvert, step, 0, host, to);
  AddCopy(StepKind::kCopyToDevice, step, device, *joined_[b], *parts_[b]);
  return OkStatus();
}

Result<std::vector<PieceNode>> PieceSteps::PieceNodes(const Step& step, const StepBoxes& boxes,
                                                      std::span<const Part> parts) const {
  std::vector<PieceNode> nodes(step.nodes.size());
  for (size_t k = 0; k < nodes.size(); ++k) {
    const Node& node = graph_.nodes[step.nodes[k]];
    // The boxes are those of the node if it is alone; several nodes run whole.
    const auto add = [&](ValueId v, const std::optional<Box>* box, std::vector<msrt_shape>* to) {
      const bool present = v != kNoValue && (box == nullptr || *box);
      const Type* type = present ? &binder_.type(v) : nullptr;
      to->push_back(type == nullptr  ? msrt_shape{}
                    : box == nullptr ? ShapeOf(*type)
                                     : ShapeOfBox(type->dtype, **box));
    };
    const bool alone = nodes.size() == 1;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      add(v, alone ? &boxes.inputs[i] : nullptr, &nodes[k].inputs);
      const ConstTensor* known = v == kNoValue ? nullptr : binder_.facts_.known[IndexOf(v)];
      const bool whole = !alone || (boxes.inputs[i] && known != nullptr &&
                                    *boxes.inputs[i] == Box::Whole(known->dims));
      nodes[k].known.push_back(whole ? known : nullptr);
    }
    for (size_t o = 0; o < node.outputs.size(); ++o)
      add(node.outputs[o], alone ? &boxes.outputs[o] : nullptr, &nodes[k].outputs);
  }
  const uint32_t n = step.nodes.back();
  if (nodes.size() > 1) return nodes;
  if (binder_.spaces_->of_node(n) != nullptr)
    MSRT_RETURN_IF_ERROR(Localize(n, *required_.pieces[n], &nodes[0]));
  const auto strided = [](const Part& p) { return p.dtype != DType::kNone && !p.is_dense(); };
  if (std::none_of(parts.begin(), parts.end(), strided)) return nodes;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool input = i < step.inputs.size();
    (input ? nodes[0].input_strides : nodes[0].output_strides)
        .push_back(strided(parts[i]) ? StridesOf(parts[i]) : msrt_strides{});
  }
  return nodes;
}

// Sets the attributes in which the piece differs from the node.
Status PieceSteps::Localize(uint32_t n, const Box& piece, PieceNode* out) const {
  const Node& node = graph_.nodes[n];
  if (node.def->space->localize == nullptr) return OkStatus();
  const ResolvedSpace& space = *binder_.spaces_->of_node(n);
  const std::vector<Box> in = InputBoxes(space, piece), results = OutputBoxes(space, piece);
  const NodeView view(node, binder_.facts_);
  AttrList attrs = node.attrs;
  MSRT_RETURN_IF_ERROR(node.def->space->localize(view.op(), piece, in, results, &attrs));
  for (const Attr& a : attrs) {
    const AttrValue* before = node.attrs.Find(a.name);
    if (before == nullptr || !SameAttr(*before, a.value)) out->attrs.Set(a.name, a.value);
  }
  for (const Attr& a : node.attrs) {
    if (attrs.Find(a.name) == nullptr) out->removed_attrs.push_back(a.name);
  }
  return OkStatus();
}

// Other dims of the same elements: the part itself where it is dense, else a dense copy.
Status PieceSteps::AddView(uint32_t s) {
  const Step& step = program_.steps[s];
  const StepBoxes boxes = BoxesOf(step);
  MSRT_ASSIGN_OR_RETURN(const Part from, PartOf(step.inputs[0], *boxes.inputs[0]));
  MSRT_ASSIGN_OR_RETURN(const Part dense, Dense(s, from));
  const Part viewed = DensePart(dense.dtype, *boxes.outputs[0],
                                program_.buffers[step.outputs[0]].state, dense.place);
  std::optional<Part>& begun = parts_[step.outputs[0]];
  if (!begun) {
    begun = viewed;
    return OkStatus();
  }
  if (joined_[step.outputs[0]]) return Join(s, viewed, step.outputs[0]);
  MSRT_ASSIGN_OR_RETURN(const Part to, SubPart(*begun, viewed.box));
  AddCopy(StepKind::kConvert, s, 0, viewed, to);
  return OkStatus();
}

Status PieceSteps::AddTransfer(uint32_t s) {
  const Step& step = program_.steps[s];
  const BufferId in = step.inputs[0], out = step.outputs[0];
  MSRT_ASSIGN_OR_RETURN(Part from, PartOf(in, *RequiredOf(out)));
  const bool from_device = program_.buffers[in].state.device != 0;
  if (from_device) from = *parts_[in];  // devices have no strided copies
  if (step.kind == StepKind::kCopyToDevice) {
    MSRT_ASSIGN_OR_RETURN(from, Dense(s, from));
  }
  MSRT_ASSIGN_OR_RETURN(
      const Part to, PlaceOutput(out, from.box, step.kind == StepKind::kConvert && !from_device));
  AddCopy(step.kind, s, step.queue, from, to);
  return OkStatus();
}

// Fills a buffer that its step would have made with what a source has of it: in the layout and on
// the device of the buffer, all of it, or the part that the step does not compute.
Status PieceSteps::ImportSource(BufferId b, const std::vector<bool>& copied) {
  const Buffer& buffer = program_.buffers[b];
  const int32_t source = source_of_[IndexOf(buffer.value)];
  if (source < 0 || copied[b]) return OkStatus();
  const PieceTensor& given = request_.sources[static_cast<size_t>(source)];
  const Box& required = *RequiredOf(b);
  Box have = Intersect(given.box, required), all = required;
  for (uint32_t s = 0; s < program_.steps.size(); ++s) {
    const Step& step = program_.steps[s];
    if (IsTransfer(step) || !runs_[s]) continue;
    for (size_t o = 0; o < step.outputs.size(); ++o) {
      if (step.outputs[o] == b) all = Hull(all, *BoxesOf(step).outputs[o]);
    }
  }
  const bool joins = buffer.state.device != 0 && all != have;
  if (joins && have.empty()) return OkStatus();
  Part from = DensePart(TypeOf(b).dtype, given.box, kHostPlain,
                        {Location::kInput, 0, static_cast<uint32_t>(source), 0, nullptr});
  if (!given.strides.empty()) from.strides = given.strides;
  parts_[b] = NewPart(TypeOf(b).dtype, all, buffer.state);
  if (have.empty()) return OkStatus();
  MSRT_ASSIGN_OR_RETURN(from, SubPart(from, have));
  if (joins) joined_[b] = NewPart(from.dtype, all, {0, buffer.state.layout});
  MSRT_ASSIGN_OR_RETURN(const Part to, SubPart(joins ? *joined_[b] : *parts_[b], have));
  if (buffer.state.device == 0 || joins) {
    AddCopy(StepKind::kConvert, 0, 0, from, to);
    return OkStatus();
  }
  Part host = NewPart(from.dtype, have, {0, buffer.state.layout});
  AddCopy(StepKind::kConvert, 0, 0, from, host);
  AddCopy(StepKind::kCopyToDevice, 0, buffer.state.device, host, to);
  return OkStatus();
}

Status PieceSteps::DeliverExisting() {
  for (size_t t = 0; t < request_.targets.size(); ++t) {
    bool made = false;
    for (size_t s = 0; s < runs_.size() && !made; ++s) {
      const std::vector<BufferId>& outputs = program_.steps[s].outputs;
      made = runs_[s] &&
             std::find(outputs.begin(), outputs.end(), target_buffers_[t]) != outputs.end();
    }
    if (!made) MSRT_RETURN_IF_ERROR(Deliver(0, target_buffers_[t]));
  }
  return OkStatus();
}

// Copies the buffer to the targets that its step did not write itself.
Status PieceSteps::Deliver(uint32_t step, BufferId b) {
  for (size_t t = 0; t < request_.targets.size(); ++t) {
    const PieceTensor& target = request_.targets[t];
    if (target_buffers_[t] != b || delivered_[t]) continue;
    delivered_[t] = true;
    if (target.box.empty()) continue;
    Part to = DensePart(TypeOf(b).dtype, target.box, kHostPlain,
                        {Location::kOutput, 0, static_cast<uint32_t>(t), 0, nullptr});
    if (!target.strides.empty()) to.strides = target.strides;
    Part whole = *parts_[b];
    if (whole.state.device != 0) {
      const Part on_host = NewPart(whole.dtype, whole.box, {0, whole.state.layout});
      AddCopy(StepKind::kCopyToHost, step, whole.state.device, whole, on_host);
      whole = on_host;
    }
    MSRT_ASSIGN_OR_RETURN(const Part from, SubPart(whole, target.box));
    AddCopy(StepKind::kConvert, step, 0, from, to);
  }
  return OkStatus();
}

void PieceSteps::AddCopy(StepKind kind, uint32_t step, QueueId queue, const Part& from,
                         const Part& to) {
  BoundStep bound;
  bound.kind = kind, bound.queue = queue, bound.step = step;
  bound.input_count = 1;
  AddArgument(from, &bound);
  AddArgument(to, &bound);
  Push(std::move(bound));
}

void PieceSteps::AddArgument(const Part& part, BoundStep* bound) {
  if (part.dtype == DType::kNone) {
    bound->views.emplace_back();
    bound->locations.emplace_back();
    bound->strides.emplace_back();
    return;
  }
  bound->views.push_back({part.dtype, part.dims(), part.state.layout, nullptr});
  bound->locations.push_back(part.place);
  bound->strides.push_back(part.is_dense() ? Dims() : part.strides);
}

void PieceSteps::Push(BoundStep bound) {
  const auto now = static_cast<uint32_t>(out_.steps.size());
  for (size_t i = 0; i < bound.views.size(); ++i) {
    if (!bound.strides[i].empty()) bound.views[i].strides = bound.strides[i].begin();
    UseBlock(bound.locations[i], now);
  }
  UseBlock(bound.workspace, now);
  out_.max_views = std::max(out_.max_views, bound.views.size());
  out_.bytes += sizeof(BoundStep) +
                bound.views.size() * (sizeof(TensorView) + sizeof(Location) + sizeof(Dims)) + 64;
  out_.steps.push_back(std::move(bound));
}

void PieceSteps::UseBlock(const Location& place, uint32_t step) {
  if (place.kind != Location::kArena) return;
  Block& block = blocks_[place.index];
  block.first = std::min(block.first, step);
  block.last = std::max(block.last, step);
}

void PieceSteps::PlanArenas() {
  const size_t devices = program_.devices.size();
  if (devices > 1) out_.device_arena_bytes.resize(devices);
  std::vector<size_t> offsets(blocks_.size());
  for (uint16_t device = 0; device < devices; ++device) {
    std::vector<LiveBlock> live;
    std::vector<size_t> numbers;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (blocks_[b].device != device || blocks_[b].first == UINT32_MAX) continue;
      live.push_back({blocks_[b].bytes, blocks_[b].first, blocks_[b].last});
      numbers.push_back(b);
    }
    const MemoryPlan plan = PlanMemory(live);
    for (size_t i = 0; i < numbers.size(); ++i) offsets[numbers[i]] = plan.offsets[i];
    if (devices > 1) out_.device_arena_bytes[device] = plan.arena_bytes;
    if (device != 0) continue;
    out_.arena_bytes = plan.arena_bytes;
    out_.lower_bound_bytes = plan.lower_bound_bytes;
  }
  for (BoundStep& step : out_.steps) {
    const auto locate = [&](Location* l) {
      if (l->kind != Location::kArena) return;
      l->offset += offsets[l->index];
      l->index = 0;
    };
    for (Location& l : step.locations) locate(&l);
    locate(&step.workspace);
  }
}

}  // namespace msrt

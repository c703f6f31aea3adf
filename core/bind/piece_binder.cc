#include "core/bind/piece_binder.h"

#include "core/bind/piece_steps.h"

namespace msrt {
namespace {

Status CheckStep(const Program& program, const Step& step, const GraphFacts& facts) {
  switch (step.kind) {
    case StepKind::kStateRead:
    case StepKind::kStateWrite:
    case StepKind::kControl:
    case StepKind::kExchange:
      return Unsupported(Describe(program, step), ": a graph with state, control flow or ",
                         "communication has no pieces; run it whole");
    default:
      break;
  }
  for (BufferId b : step.outputs) {
    if (b != kNoBuffer && !facts.types[IndexOf(program.buffers[b].value)].concrete())
      return Unsupported(Describe(program, step), ": its sizes depend on data; run it whole");
  }
  return OkStatus();
}

std::vector<ValueBox> BoxesOf(const std::vector<PieceTensor>& tensors) {
  std::vector<ValueBox> boxes;
  for (const PieceTensor& t : tensors) boxes.push_back({t.value, t.box});
  return boxes;
}

}  // namespace

Result<std::shared_ptr<const PieceBinder>> PieceBinder::Make(const Program& program,
                                                             const Module& module,
                                                             const Evaluator& evaluator,
                                                             std::span<const Type> inputs) {
  GraphFacts facts(*program.graph);
  MSRT_RETURN_IF_ERROR(SetInputTypes(*program.graph, module, inputs, &facts));
  for (const Step& step : program.steps) {
    for (uint32_t n : step.nodes)
      MSRT_RETURN_IF_ERROR(PropagateNode(*program.graph, n, evaluator, &facts));
    MSRT_RETURN_IF_ERROR(CheckStep(program, step, facts));
  }
  std::shared_ptr<PieceBinder> binder(new PieceBinder(program, std::move(facts)));
  MSRT_RETURN_IF_ERROR(binder->Resolve());
  return std::shared_ptr<const PieceBinder>(std::move(binder));
}

Status PieceBinder::Resolve() {
  MSRT_ASSIGN_OR_RETURN(GraphSpaces spaces, GraphSpaces::Resolve(*program_.graph, facts_));
  spaces_ = std::make_unique<const GraphSpaces>(std::move(spaces));
  steps_.resize(program_.graph->nodes.size());
  for (const Step& step : program_.steps) {
    if (step.nodes.empty()) continue;
    groups_.push_back(step.nodes);
    for (uint32_t n : step.nodes) steps_[n] = &step;
  }
  return OkStatus();
}

Result<RequiredBoxes> PieceBinder::Required(const PieceRequest& request) const {
  const std::vector<ValueBox> targets = BoxesOf(request.targets),
                              sources = BoxesOf(request.sources);
  // Not constants that the kernel has packed or that are in a device's memory, which is not copied
  // in parts; nor channels in blocks.
  const auto may_cut = [this](size_t n, size_t input, int dim) {
    const Step& step = *steps_[n];
    const ValueId v = program_.graph->nodes[n].inputs[input];
    const bool constant = v != kNoValue && program_.graph->value(v).constant != nullptr;
    if (constant && (step.packs_constants || IsOnDevice(step.queue))) return false;
    const BufferId b = step.inputs[input];
    return dim != 1 || b == kNoBuffer || BlockOf(program_.buffers[b].state.layout) == 1;
  };
  const auto granule = [this](size_t n) { return std::span<const int64_t>(steps_[n]->granule); };
  return FindRequiredBoxes(*spaces_, {.targets = targets,
                                      .sources = sources,
                                      .groups = groups_,
                                      .may_cut = may_cut,
                                      .granule = granule});
}

Result<std::shared_ptr<const Binding>> PieceBinder::Bind(const PieceRequest& request,
                                                         PieceKernels* kernels) const {
  MSRT_ASSIGN_OR_RETURN(const RequiredBoxes required, Required(request));
  auto binding = std::make_shared<Binding>(GraphFacts(*program_.graph));
  binding->is_piece = true;
  binding->owner = shared_from_this();
  binding->end_step = program_.steps.size();
  MSRT_RETURN_IF_ERROR(PieceSteps(*this, request, required, kernels, binding.get()).Make());
  return std::shared_ptr<const Binding>(std::move(binding));
}

}  // namespace msrt

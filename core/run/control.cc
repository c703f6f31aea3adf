#include "core/run/control.h"

#include "core/run/lists.h"
#include "core/run/results.h"
#include "core/run/step_values.h"

namespace msrt {

Result<bool> ControlFlow::Begin(Frame* frame) {
  const Step& step = StepAtEnd(frame);
  MSRT_RETURN_IF_ERROR(context_.CheckStopped(frame->program(), step));
  if (step.control != nullptr) return BeginKind(frame, step);
  Status status = RunListStep(frame, step, context_.states, &context_.budget);
  if (!status.ok()) return std::move(status).Within(Describe(frame->program(), step));
  return true;
}

Result<bool> ControlFlow::BeginKind(Frame* frame, const Step& step) {
  const auto describe = [&](Status status) {
    return std::move(status).Within(Describe(frame->program(), step));
  };
  switch (step.control->kind) {
    case ControlKind::kIf:
    case ControlKind::kSwitch: {
      const auto graph = BranchOf(frame, step);
      if (!graph.ok()) return describe(graph.status());
      return Call(frame, step, *graph, {});
    }
    case ControlKind::kCall: {
      if (!step.control->graphs.empty()) return Call(frame, step, step.control->graphs[0], {});
      const RunValue function = InputOf(frame, context_.states, step, 0);
      if (!function.present())
        return describe(InvalidArgument("the function that it calls was never made"));
      return Call(frame, step, function.closure().graph, function.closure().captured);
    }
    case ControlKind::kPartial: {
      Status status = MakePartial(frame, step);
      if (!status.ok()) return describe(std::move(status));
      return true;
    }
    case ControlKind::kLoop:
    case ControlKind::kScan:
    case ControlKind::kWhile: {
      auto done = loops_.Begin(frame, step);
      if (!done.ok()) return describe(std::move(done).status());
      return done;
    }
  }
  return true;
}

Result<bool> ControlFlow::Resume(Frame* frame) {
  const Step& step = StepAtEnd(frame);
  switch (step.control->kind) {
    case ControlKind::kLoop:
    case ControlKind::kScan:
    case ControlKind::kWhile: {
      Status status = context_.CheckStopped(frame->program(), step);
      if (status.ok()) status = loops_.TakeResults(frame, step);
      if (!status.ok()) return std::move(status).Within(Describe(frame->program(), step));
      return loops_.Next(frame, step);
    }
    default:
      return true;  // the callee wrote its results directly to their cells
  }
}

// Returns the graph that an If or a Switch chooses.
Result<uint32_t> ControlFlow::BranchOf(Frame* frame, const Step& step) const {
  const ControlShape& shape = *step.control;
  MSRT_ASSIGN_OR_RETURN(const int64_t index, NumberOf(frame, context_.states, step, 0));
  if (shape.kind == ControlKind::kIf) return shape.graphs[index != 0 ? 0 : 1];
  const auto count = static_cast<int64_t>(shape.graphs.size());
  if (index < -count || index >= count)
    return InvalidArgument("index ", index, " names none of ", count, " branches");
  return shape.graphs[static_cast<size_t>(index < 0 ? index + count : index)];
}

Result<bool> ControlFlow::Call(Frame* frame, const Step& step, uint32_t graph,
                               std::span<const RunValue> captured) {
  arguments_.assign(captured.begin(), captured.end());
  for (size_t i = step.control->leading; i < step.inputs.size(); ++i)
    arguments_.push_back(InputOf(frame, context_.states, step, i));
  if (step.tail) {
    MSRT_RETURN_IF_ERROR(calls_.TailCall(graph, arguments_));
    return false;
  }
  targets_.clear();
  const size_t results = context_.model.module.graphs[graph].outputs.size();
  if (results != 0)
    (void)UnwantedCell(frame, results - 1);  // grows once: pointers to these cells stay valid
  for (size_t i = 0; i < results; ++i) targets_.push_back(CellOf(frame, step, i));
  MSRT_RETURN_IF_ERROR(calls_.Call(graph, std::move(arguments_), targets_));
  return false;
}

Status ControlFlow::MakePartial(Frame* frame, const Step& step) {
  auto closure = std::make_shared<Closure>();
  closure->graph = step.control->graphs[0];
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    MSRT_ASSIGN_OR_RETURN(RunValue copy,
                          LastingCopy(InputOf(frame, context_.states, step, i), &context_.budget));
    closure->captured.push_back(std::move(copy));
  }
  CellOf(frame, step, 0)->value = RunValue::Of(std::shared_ptr<const Closure>(std::move(closure)));
  return OkStatus();
}

}  // namespace msrt

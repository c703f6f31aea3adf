// Adds up the steps of profiled runs.
#include <map>

#include "core/program/explain.h"
#include "tools/msrun/bench.h"
#include "tools/tensors/made_input.h"

namespace msrt {
namespace {

StepTotal Describe(const RunProfile& profile, const StepTime& time) {
  const Program& program = *time.placed->program;
  const Step& step = program.steps[time.step];
  StepTotal t;
  t.name = NameOf(program, step);
  t.op = OpLabel(program, step);
  t.delegate = DelegateName(step);
  t.algorithm = step.algorithm;
  t.arithmetic = step.arithmetic;
  if (time.placed != profile.placed) t.graph = program.graph->name;
  return t;
}

void AddTime(const StepTime& time, int64_t self_nanos, StepTotal* t) {
  t->count += 1;
  t->millis += static_cast<double>(self_nanos) * 1e-6;
  const BoundStep* bound = time.bound_step();
  if (bound == nullptr) return;
  t->gflops += bound->flops;
  t->gbytes_per_second += MovedBytes(*bound);
  if (const TensorView* shown = MainTensor(*bound)) {
    t->layout = LayoutName(shown->layout);
    t->shape = ShapeText(shown->dims);
  }
}

}  // namespace

std::string OpLabel(const Program& program, const Step& step) {
  switch (step.kind) {
    case StepKind::kKernel:
    case StepKind::kControl:
    case StepKind::kExchange:
      return OpOf(program, step);
    case StepKind::kStateRead:
    case StepKind::kStateWrite:
      return "state";
    default:
      return step.algorithm;
  }
}

void AddUpSteps(Measurement* m) {
  std::map<std::pair<const EntryProgram*, uint32_t>, size_t> known;
  const auto runs = static_cast<double>(m->profiles.size());
  double total = 0;
  for (const RunProfile& profile : m->profiles) {
    const std::vector<int64_t> self = SelfNanos(profile);
    total += static_cast<double>(profile.end_nanos - profile.begin_nanos) * 1e-6 / runs;
    for (size_t i = 0; i < profile.steps.size(); ++i) {
      const StepTime& time = profile.steps[i];
      const auto [it, added] = known.try_emplace({time.placed.get(), time.step}, m->steps.size());
      if (added) m->steps.push_back(Describe(profile, time));
      AddTime(time, self[i], &m->steps[it->second]);
    }
  }
  m->between_steps_millis = total;
  for (StepTotal& t : m->steps) {
    const double flops = t.gflops / runs, bytes = t.gbytes_per_second / runs;
    t.count /= runs;
    t.millis /= runs;
    const double seconds = std::max(t.millis * 1e-3, 1e-9);
    t.gflops = flops * 1e-9 / seconds;
    t.gbytes_per_second = bytes * 1e-9 / seconds;
    t.share = t.millis / std::max(total, 1e-9);
    m->gflop += flops * 1e-9;
    m->between_steps_millis -= t.millis;
  }
}

}  // namespace msrt

#include "core/place/program.h"

#include <algorithm>

#include "core/base/clock.h"
#include "core/place/place.h"

namespace msrt {
namespace {

// Lays out the steps of a placement: buffers, layout changes right before they are needed, views, kernels.
class ProgramBuilder {
 public:
  ProgramBuilder(const Graph& graph, Program* program) : graph_(graph), program_(program), in_layout_(graph.value_count()) {
    produced_.assign(graph.value_count(), kNoBuffer);
    is_output_.resize(graph.value_count());
    for (ValueId v : graph.outputs) is_output_[IndexOf(v)] = true;
    for (ValueId v : graph.inputs) program->input_buffers.push_back(Produce(v, Layout::kPlain));
    for (uint32_t v = 0; v < graph.value_count(); ++v) {
      if (graph.value(ValueId(v)).constant != nullptr) Produce(ValueId(v), Layout::kPlain);
    }
  }

  void AddKernel(uint32_t n, std::string_view delegate, const Candidate& c, std::unique_ptr<Kernel> kernel) {
    const Node& node = graph_.nodes[n];
    Step step{StepKind::kKernel, n, std::move(kernel), delegate, c.algorithm, {}, {}, c.in_place};
    for (size_t i = 0; i < node.inputs.size(); ++i) step.inputs.push_back(Need(n, node.inputs[i], c.input_layouts[i]));
    for (size_t i = 0; i < node.outputs.size(); ++i) step.outputs.push_back(Produce(node.outputs[i], c.output_layouts[i]));
    program_->steps.push_back(std::move(step));
  }

  void AddHostStep(uint32_t n) {
    const Node& node = graph_.nodes[n];
    if (node.def->effect == Effect::kState) {
      const bool read = !node.outputs.empty();
      Step step{read ? StepKind::kStateRead : StepKind::kStateWrite, n, nullptr, {}, {}, {}, {}, {}};
      for (ValueId v : node.inputs) step.inputs.push_back(Need(n, v, Layout::kPlain));
      for (ValueId v : node.outputs) step.outputs.push_back(Produce(v, Layout::kPlain));
      program_->steps.push_back(std::move(step));
      return;
    }
    // A graph output has memory of its own, given by the caller, so it cannot be a view of something else.
    const BufferId source = Need(n, node.inputs[0], Layout::kPlain);
    const BufferId target = Produce(node.outputs[0], Layout::kPlain);
    const bool copy = is_output_[IndexOf(node.outputs[0])];
    if (!copy) program_->buffers[target].root = program_->buffers[source].root;
    Step step{copy ? StepKind::kConvert : StepKind::kView, n, nullptr, {}, copy ? "copy" : "view", {source}, {target}, {}};
    // The other inputs are small: the new shape, axes. A binding may have to wait for their values.
    for (size_t i = 1; i < node.inputs.size(); ++i) step.inputs.push_back(Need(n, node.inputs[i], Layout::kPlain));
    program_->steps.push_back(std::move(step));
  }

  // Every graph output must be plain memory of its own: a value that is also an input, a constant, or named twice is copied.
  void Finish() {
    std::vector<bool> taken(program_->buffers.size());
    for (ValueId v : graph_.outputs) {
      const auto last = static_cast<uint32_t>(graph_.nodes.empty() ? 0 : graph_.nodes.size() - 1);
      BufferId b = Need(last, v, Layout::kPlain);
      taken.resize(program_->buffers.size());
      const bool made_here = std::any_of(program_->steps.begin(), program_->steps.end(), [&](const Step& s) {
        return s.kind != StepKind::kView && std::find(s.outputs.begin(), s.outputs.end(), b) != s.outputs.end();
      });
      if (!made_here || taken[b]) {
        const BufferId own = NewBuffer(v, Layout::kPlain);
        program_->steps.push_back({StepKind::kConvert, last, nullptr, {}, "copy", {b}, {own}, {}});
        b = own;
        taken.resize(program_->buffers.size());
      }
      taken[b] = true;
      program_->output_buffers.push_back(b);
    }
  }

 private:
  BufferId NewBuffer(ValueId v, Layout layout) {
    const auto id = static_cast<BufferId>(program_->buffers.size());
    program_->buffers.push_back({v, layout, id});
    return id;
  }

  BufferId Produce(ValueId v, Layout layout) {
    if (v == kNoValue) return kNoBuffer;
    const BufferId id = NewBuffer(v, layout);
    produced_[IndexOf(v)] = id;
    in_layout_[IndexOf(v)][static_cast<size_t>(layout)] = id + 1;
    return id;
  }

  BufferId Need(uint32_t n, ValueId v, Layout layout) {
    if (v == kNoValue) return kNoBuffer;
    BufferId& id = in_layout_[IndexOf(v)][static_cast<size_t>(layout)];
    if (id == 0) {
      const BufferId from = produced_[IndexOf(v)];
      id = NewBuffer(v, layout) + 1;
      program_->steps.push_back({StepKind::kConvert, n, nullptr, {}, "convert", {from}, {id - 1}, {}});
    }
    return id - 1;
  }

  const Graph& graph_;
  Program* program_;
  std::vector<BufferId> produced_;                  // by value: the buffer its producer writes
  std::vector<std::array<BufferId, 3>> in_layout_;  // by value and layout: buffer + 1, or 0
  std::vector<bool> is_output_;
};

std::string BufferText(const Program& p, BufferId b) {
  if (b == kNoBuffer) return "_";
  const Buffer& buffer = p.buffers[b];
  const std::string& name = p.graph->value(buffer.value).name;
  std::string text = name.empty() ? StrCat("%", IndexOf(buffer.value)) : StrCat("%", name);
  if (buffer.layout != Layout::kPlain) StrAppend(&text, "@", buffer.layout);
  return text;
}

constexpr std::string_view kStepNames[] = {"kernel", "convert", "view", "state-read", "state-write"};

}  // namespace

Result<std::unique_ptr<Program>> MakeProgram(const Graph& graph, std::unique_ptr<PlacedGraph> view,
                                             std::span<const Delegate* const> delegates, const PlaceOptions& options,
                                             const CompileContext& context, const Log& log, double* place_millis) {
  std::vector<std::pair<uint32_t, uint32_t>> banned;
  for (;;) {
    const StopWatch watch;
    MSRT_ASSIGN_OR_RETURN(Placement placement, Place(graph, *view, delegates, options, banned));
    if (banned.empty()) *place_millis = watch.Millis();
    auto program = std::make_unique<Program>();
    program->graph = &graph;
    program->explanations = std::move(placement.explanations);
    ProgramBuilder builder(graph, program.get());
    bool again = false;
    for (uint32_t n = 0; n < graph.nodes.size() && !again; ++n) {
      const Placement::Choice& choice = placement.choices[n];
      if (choice.delegate < 0) {
        builder.AddHostStep(n);
        continue;
      }
      const Delegate& delegate = *delegates[static_cast<size_t>(choice.delegate)];
      auto kernel = delegate.Compile(*view, choice.candidate, context);
      if (!kernel.ok()) {
        Status status = std::move(kernel).status();
        if (options.strict || status.code() == Code::kOutOfMemory) return std::move(status).Within(Describe(graph, n));
        log(LogLevel::kWarning, Describe(graph, n), ": delegate ", delegate.name(), " failed to compile (", status.message(),
            "); placing again without it");
        banned.emplace_back(static_cast<uint32_t>(choice.delegate), n);
        again = true;
        continue;
      }
      program->packed_bytes += (*kernel)->packed_bytes();
      program->flops += view->node(n).flops;
      builder.AddKernel(n, delegate.name(), choice.candidate, *std::move(kernel));
    }
    if (again) continue;
    builder.Finish();
    program->placed = std::move(view);
    return program;
  }
}

std::string Print(const Program& program) {
  std::string out = StrCat("program of ", program.steps.size(), " steps, ", program.packed_bytes, " bytes of packed weights\n");
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    StrAppend(&out, "  ", s, ": ");
    for (size_t i = 0; i < step.outputs.size(); ++i) StrAppend(&out, i == 0 ? "" : ", ", BufferText(program, step.outputs[i]));
    StrAppend(
        &out, " = ",
        step.kind == StepKind::kKernel ? OpName(program.graph->nodes[step.node]) : std::string(kStepNames[static_cast<size_t>(step.kind)]),
        "(");
    for (size_t i = 0; i < step.inputs.size(); ++i) StrAppend(&out, i == 0 ? "" : ", ", BufferText(program, step.inputs[i]));
    out += ")";
    if (step.kind == StepKind::kKernel) StrAppend(&out, "  on ", step.delegate, " by ", step.algorithm);
    out += "\n";
  }
  return out;
}

std::string Explain(const Program& program) {
  std::string out;
  for (size_t n = 0; n < program.explanations.size(); ++n) {
    const NodeExplanation& e = program.explanations[n];
    StrAppend(&out, Describe(*program.graph, n), " -> ");
    if (e.delegate.empty()) out += "host";
    else StrAppend(&out, e.delegate, " by ", e.algorithm, ", ", e.seconds * 1e6, " us estimated");
    out += "\n";
    for (const auto& [delegate, reason] : e.others) StrAppend(&out, "    not ", delegate, ": ", reason, "\n");
  }
  return out;
}

}  // namespace msrt

#include "core/program/program.h"

#include <map>
#include <set>

#include "core/base/clock.h"
#include "core/program/program_builder.h"

namespace msrt {
namespace {

// Makes a program from placements, leaving out failing candidates and delegates until one succeeds.
class ProgramMaker {
 public:
  ProgramMaker(std::shared_ptr<const OfferedGraph> graph, std::shared_ptr<const Host> host,
               std::span<const std::shared_ptr<const Delegate>> delegates,
               const PlaceOptions& options, const Log& log, UploadedConstants* uploads)
      : offered_(std::move(graph)),
        host_(std::move(host)),
        delegates_(delegates),
        options_(options),
        failed_delegates_(options.failed_delegates),
        log_(log),
        uploads_(*uploads),
        placer_(*offered_, *host_, delegates, options) {}

  Result<std::unique_ptr<Program>> Run(double* place_millis) {
    const StopWatch watch;
    MSRT_RETURN_IF_ERROR(placer_.Query());
    for (bool first = true;; first = false) {
      MSRT_ASSIGN_OR_RETURN(Placement placement, placer_.Place());
      if (first) *place_millis = watch.Millis();
      bool whole = true;
      MSRT_RETURN_IF_ERROR(CompileAll(placement, &whole));
      if (!whole) continue;
      auto program = std::make_unique<Program>();
      program->graph = &offered_->graph();
      program->host = host_;
      program->offered = offered_;
      program->devices = placer_.devices();
      Status status = LayOut(placement, program.get());
      if (status.ok()) {
        program->failed_delegates = std::move(failed_delegates_);
        return program;
      }
      // Kernels that were moved into the program are compiled again.
      for (const Placement::Step& step : placement.steps) kernels_.erase(step.option);
      if (failed_in_layout_ < 0 || options_.strict) return status;
      GiveUp(failed_in_layout_,
             StrCat("failed to take the model's constants (", status.message(), ")"));
    }
  }

 private:
  // Compile record of a delegate. One candidate that fails to compile disqualifies only itself:
  // others of the delegate may still be the best. The delegate counts as broken when failed nodes
  // reach three for each compiled candidate plus three. So a delegate that fails for one in twenty
  // nodes is given up once in thousands of models, and one that always fails is not asked to
  // compile every candidate of every node. It stays as long as there is a node that no other
  // delegate can run.
  struct CompileRecord {
    std::set<uint32_t> failed_nodes;
    size_t compiled = 0;
    bool given_up = false;
    bool broken() const { return failed_nodes.size() >= 3 * (compiled + 1); }
  };

  Status CompileAll(const Placement& placement, bool* whole) {
    for (const Placement::Step& step : placement.steps) {
      if (step.candidate == nullptr || kernels_.count(step.option) != 0) continue;
      CompileRecord& so_far = compile_records_[step.delegate];
      if (so_far.given_up) continue;
      auto kernel = delegates_[static_cast<size_t>(step.delegate)]->Compile(*host_, *offered_,
                                                                            *step.candidate);
      if (kernel.ok()) {
        kernels_.emplace(step.option, *std::move(kernel));
        ++so_far.compiled;
        ForgetConstants(step);
        continue;
      }
      MSRT_RETURN_IF_ERROR(LeaveOut(step, std::move(kernel).status(), &so_far));
      *whole = false;
    }
    return OkStatus();
  }

  // Releases the constants: compiling has read them, and nearly always packed them.
  void ForgetConstants(const Placement::Step& step) const {
    for (const uint32_t n : step.nodes) {
      for (const ValueId v : offered_->graph().nodes[n].inputs) {
        if (v == kNoValue) continue;
        if (const auto& constant = offered_->graph().value(v).constant; constant != nullptr)
          host_->mapped().Forget(*constant);
      }
    }
  }

  // Leaves out the candidate, or the whole delegate if it is broken.
  Status LeaveOut(const Placement::Step& step, Status status, CompileRecord* so_far) {
    const std::string node = Describe(offered_->graph(), step.nodes.back());
    // A full device disqualifies only its delegate; a full host fails the model.
    const bool host_is_full = status.code() == Code::kOutOfMemory && step.device == 0;
    if (options_.strict || host_is_full) return std::move(status).Within(node);
    so_far->failed_nodes.insert(step.nodes.back());
    so_far->given_up = so_far->broken() && placer_.HasAlternatives(step.delegate);
    if (so_far->given_up) {
      GiveUp(step.delegate, StrCat("failed to compile ", so_far->failed_nodes.size(),
                                   " nodes, the last ", node, " (", status.message(), ")"));
      return OkStatus();
    }
    log_(LogLevel::kWarning, node, ": delegate ",
         delegates_[static_cast<size_t>(step.delegate)]->name(), " failed to compile (",
         status.message(), "); placing again without this candidate");
    placer_.Ban(step.option, StrCat("failed to compile: ", status.message()));
    return OkStatus();
  }

  Status LayOut(const Placement& placement, Program* program) {
    program->explanations = placement.explanations;
    program->seconds = placement.seconds;
    program->lower_bound = placement.lower_bound;
    program->optimal = placement.optimal;
    failed_in_layout_ = -1;
    ProgramBuilder builder(placement, &uploads_, program);
    for (const Placement::Step& step : placement.steps) {
      if (step.candidate == nullptr) {
        builder.AddHostWork(step);
        continue;
      }
      Kernel kernel = std::move(kernels_.at(step.option));
      program->packed_bytes += kernel.packed_bytes();
      for (uint32_t n : step.nodes) program->flops += program->offered->node(n).flops;
      Status status = builder.AddKernel(
          step, delegates_[static_cast<size_t>(step.delegate)]->name(), std::move(kernel));
      if (!status.ok()) {
        failed_in_layout_ = step.delegate;
        return std::move(status).Within(Describe(*program->graph, step.nodes.back()));
      }
    }
    Status status = builder.Finish();
    for (const Placement::Step& step : placement.steps) {
      if (!status.ok() && step.candidate != nullptr && step.device == builder.failed_device())
        failed_in_layout_ = step.delegate;
    }
    return status;
  }

  void GiveUp(int32_t delegate, const std::string& what) {
    const std::string name(delegates_[static_cast<size_t>(delegate)]->name());
    log_(LogLevel::kWarning, "delegate ", name, " ", what, "; placing again without it");
    failed_delegates_.push_back({name, StrCat("it ", what)});
    placer_.BanDelegate(delegate, failed_delegates_.back().reason);
  }

  std::shared_ptr<const OfferedGraph> offered_;
  std::shared_ptr<const Host> host_;
  std::span<const std::shared_ptr<const Delegate>> delegates_;
  const PlaceOptions& options_;
  std::vector<FailedDelegate> failed_delegates_;
  const Log& log_;
  UploadedConstants& uploads_;
  Placer placer_;
  std::map<uint32_t, Kernel> kernels_;                // by option: those compiled so far
  std::map<int32_t, CompileRecord> compile_records_;  // by delegate
  int32_t failed_in_layout_ = -1;                     // delegate; -1: none
};

std::string BufferText(const Program& p, BufferId b) {
  if (b == kNoBuffer) return "_";
  const Buffer& buffer = p.buffers[b];
  const std::string& name = p.graph->value(buffer.value).name;
  std::string text = name.empty() ? StrCat("%", IndexOf(buffer.value)) : StrCat("%", name);
  if (buffer.state.layout != Layout::kPlain) StrAppend(&text, "@", buffer.state.layout);
  if (buffer.state.device != 0) StrAppend(&text, "@", p.devices[buffer.state.device]->name());
  return text;
}

}  // namespace

std::string_view StepKindName(StepKind kind) {
  constexpr std::string_view kNames[] = {"kernel",    "convert", "copy_to_device", "copy_to_host",
                                         "copy_peer", "view",    "state_read",     "state_write",
                                         "exchange",  "control"};
  return kNames[static_cast<size_t>(kind)];
}

Result<std::unique_ptr<Program>> MakeProgram(
    std::shared_ptr<const OfferedGraph> graph, std::shared_ptr<const Host> host,
    std::span<const std::shared_ptr<const Delegate>> delegates, const PlaceOptions& options,
    const Log& log, UploadedConstants* uploads, double* place_millis) {
  return ProgramMaker(std::move(graph), std::move(host), delegates, options, log, uploads)
      .Run(place_millis);
}

const Node* NodeOf(const Program& program, const Step& step) {
  return step.node == kNoNode ? nullptr : &program.graph->nodes[step.node];
}

std::string Describe(const Program& program, const Step& step) {
  if (step.node != kNoNode) return Describe(*program.graph, step.node);
  return StrCat("output '", program.graph->value(program.buffers[step.outputs[0]].value).name, "'");
}

std::string Print(const Program& program) {
  std::string out = StrCat("program of ", program.steps.size(), " steps, ", program.packed_bytes,
                           " bytes of packed weights\n");
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    StrAppend(&out, "  ", s, ": ");
    for (size_t i = 0; i < step.outputs.size(); ++i)
      StrAppend(&out, i == 0 ? "" : ", ", BufferText(program, step.outputs[i]));
    std::string what(StepKindName(step.kind));
    if (step.kind == StepKind::kKernel) {
      what.clear();
      for (uint32_t n : step.nodes)
        StrAppend(&what, what.empty() ? "" : "+", OpName(program.graph->nodes[n]));
    } else if (step.kind == StepKind::kControl) {
      what = OpName(program.graph->nodes[step.node]);
    }
    StrAppend(&out, " = ", what, "(");
    for (size_t i = 0; i < step.inputs.size(); ++i)
      StrAppend(&out, i == 0 ? "" : ", ", BufferText(program, step.inputs[i]));
    out += ")";
    if (step.kind == StepKind::kKernel)
      StrAppend(&out, "  on ", step.delegate, " by ", step.algorithm,
                step.arithmetic.empty() ? "" : StrCat(" in ", step.arithmetic));
    if (step.control != nullptr) {
      for (uint32_t g : step.control->graphs) StrAppend(&out, "  #", g);
      if (step.tail) out += "  as a tail call";
    }
    out += "\n";
  }
  return out;
}

}  // namespace msrt

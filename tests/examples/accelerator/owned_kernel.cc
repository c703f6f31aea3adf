// Control flow that was taken whole, run in the stream without involving the host.
#include <cstring>

#include "tests/examples/accelerator/inner.h"
#include "tests/examples/accelerator/kernel.h"
#include "tests/examples/accelerator/owned_plan.h"

namespace accelerator {
namespace {

class OwnedKernel final : public Kernel {
 public:
  OwnedKernel(Accelerator* a, const msrt_candidate& candidate)
      : Kernel(a, candidate), constants(&memory()) {}

  Failure Compile(const msrt_host_api* host, const msrt_graph_view& graph, uint32_t node) {
    plan = PlanOwned(accelerator(), host, graph, node);
    if (!plan.refused.empty()) return Failed(plan.refused);
    if (Failure failure = constants.Allocate(plan.constant_bytes); !failure.ok()) return failure;
    for (const auto& [slot, data] : plan.constants) {
      if (slot.bytes != 0) std::memcpy(constants.data() + slot.offset, data, slot.bytes);
    }
    kernels.resize(plan.kernels);
    bound.resize(plan.kernels);
    return CompileStep(host, plan.step);
  }

  Failure Bind(const msrt_host_api* host, const msrt_bound_node* nodes,
               std::unique_ptr<BoundKernel>* out) const override;
  size_t bytes() const override {
    size_t bytes = plan.constant_bytes;
    for (const InnerKernel& k : kernels) bytes += k.bytes();
    return bytes;
  }

  OwnedPlan plan;
  Temporary constants;
  std::vector<InnerKernel> kernels;
  std::vector<InnerBound> bound;  // shapes are fixed, so there is one of each

 private:
  Failure CompileStep(const msrt_host_api* host, const OwnedStep& step) {
    if (step.kind == OwnedStep::kKernel) return CompileNode(host, step);
    for (const OwnedGraph& graph : step.graphs) {
      for (const OwnedStep& inner : graph.steps) {
        if (Failure failure = CompileStep(host, inner); !failure.ok()) return failure;
      }
    }
    return {};
  }

  Failure CompileNode(const msrt_host_api* host, const OwnedStep& step) {
    const msrt_node_view& node = *step.graph->node(step.graph->graph, step.node);
    std::vector<msrt_shape> shapes;
    std::vector<const void*> known;
    for (size_t i = 0; i < node.input_count; ++i) {
      shapes.push_back(node.inputs[i].declared);
      known.push_back(node.inputs[i].constant);
    }
    for (size_t i = 0; i < node.output_count; ++i) shapes.push_back(node.outputs[i].declared);
    msrt_bound_node fixed{};
    fixed.inputs = shapes.data(), fixed.input_count = node.input_count;
    fixed.outputs = shapes.data() + node.input_count, fixed.output_count = node.output_count;
    fixed.known = known.data();
    Failure failure = kernels[step.kernel].Compile(accelerator(), host, *step.graph, step.node);
    if (failure.ok()) failure = bound[step.kernel].Bind(kernels[step.kernel], host, fixed);
    return failure.ok() ? bound[step.kernel].Prepare(host) : failure;
  }
};

// One run of an OwnedKernel.
class OwnedRun {
 public:
  OwnedRun(const OwnedKernel& kernel, std::byte* arena) : kernel_(kernel), arena_(arena) {}

  std::byte* At(const Slot& slot) const {
    if (slot.where == Slot::kNowhere) return nullptr;
    return (slot.where == Slot::kArena ? arena_ : kernel_.constants.data()) + slot.offset;
  }

  Failure Step(const OwnedStep& step) {
    switch (step.kind) {
      case OwnedStep::kKernel:
        return RunKernel(step);
      case OwnedStep::kIf:
        return If(step);
      case OwnedStep::kLoop:
        return Loop(step);
      case OwnedStep::kWhile:
        return While(step);
    }
    return {};
  }

 private:
  bool IsTrue(const Slot& slot) const { return *At(slot) != std::byte{0}; }
  void Copy(const Slot& to, const Slot& from) const {
    if (to.bytes != 0) std::memcpy(At(to), At(from), to.bytes);
  }

  Failure RunKernel(const OwnedStep& step) {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const Slot& s : step.inputs) inputs.push_back(At(s));
    for (const Slot& s : step.outputs) outputs.push_back(At(s));
    return kernel_.bound[step.kernel].Run(inputs, outputs);
  }

  Failure Graph(const OwnedGraph& graph) {
    for (const OwnedStep& step : graph.steps) {
      if (Failure failure = Step(step); !failure.ok()) return failure;
    }
    return {};
  }

  Failure If(const OwnedStep& step) {
    const OwnedGraph& branch = step.graphs[IsTrue(step.inputs[0]) ? 0 : 1];
    for (size_t i = 0; i < branch.inputs.size(); ++i) Copy(branch.inputs[i], step.inputs[1 + i]);
    Failure failure = Graph(branch);
    for (size_t i = 0; failure.ok() && i < step.outputs.size(); ++i)
      Copy(step.outputs[i], branch.outputs[i]);
    return failure;
  }

  // Carried values begin in the memory of the results.
  void BeginLoop(const OwnedStep& step) const {
    for (size_t i = 0; i < step.carried; ++i) Copy(step.outputs[i], step.inputs[step.leading + i]);
  }

  // Runs a graph of a loop. Its inputs are `told` numbers of the loop, the carried values, then the
  // captures.
  Failure Iterate(const OwnedStep& step, const OwnedGraph& graph, size_t told) {
    for (size_t i = told; i < graph.inputs.size(); ++i) {
      const size_t from = i - told;
      Copy(graph.inputs[i],
           from < step.carried ? step.outputs[from] : step.inputs[step.leading + from]);
    }
    // A device may also die in the middle of a loop.
    Failure failure = kernel_.accelerator().faults.OnCall();
    return failure.ok() ? Graph(graph) : failure;
  }

  void TakeCarried(const OwnedStep& step, const OwnedGraph& body, size_t answered) const {
    for (size_t i = 0; i < step.carried; ++i) Copy(step.outputs[i], body.outputs[answered + i]);
  }

  Failure Loop(const OwnedStep& step) {
    const OwnedGraph& body = step.graphs[0];
    int64_t trips = INT64_MAX;
    if (step.inputs[0].bytes != 0) std::memcpy(&trips, At(step.inputs[0]), sizeof trips);
    bool go_on = step.inputs[1].bytes == 0 || IsTrue(step.inputs[1]);
    BeginLoop(step);
    for (int64_t i = 0; go_on && i < trips; ++i) {
      std::memcpy(At(body.inputs[0]), &i, sizeof i);
      *At(body.inputs[1]) = std::byte{1};
      if (Failure failure = Iterate(step, body, 2); !failure.ok()) return failure;
      go_on = IsTrue(body.outputs[0]);
      TakeCarried(step, body, 1);
    }
    return {};
  }

  Failure While(const OwnedStep& step) {
    const OwnedGraph &condition = step.graphs[0], &body = step.graphs[1];
    BeginLoop(step);
    for (;;) {
      if (Failure failure = Iterate(step, condition, 0); !failure.ok()) return failure;
      if (!IsTrue(condition.outputs[0])) return {};
      if (Failure failure = Iterate(step, body, 0); !failure.ok()) return failure;
      TakeCarried(step, body, 0);
    }
  }

  const OwnedKernel& kernel_;
  std::byte* const arena_;
};

class BoundOwned final : public BoundKernel {
 public:
  explicit BoundOwned(const OwnedKernel& kernel) : BoundKernel(kernel), kernel_(kernel) {
    const msrt_node_view& node = *step().graph->node(step().graph->graph, step().node);
    for (const Slot& s : step().inputs) input_bytes_.push_back(s.bytes);
    for (size_t i = 0; i < node.output_count; ++i) output_bytes_.push_back(step().outputs[i].bytes);
  }
  size_t bytes() const override { return 0; }
  Failure Prepare(const msrt_host_api*) const override { return {}; }

 protected:
  Failure Run(const Tensors& tensors) const override {
    Temporary arena(&memory());
    if (Failure failure = arena.Allocate(kernel_.plan.arena_bytes); !failure.ok()) return failure;
    OwnedRun run(kernel_, arena.data());
    for (size_t i = 0; i < tensors.inputs.size(); ++i) {
      if (step().inputs[i].bytes != 0)
        std::memcpy(run.At(step().inputs[i]), tensors.inputs[i].data(), step().inputs[i].bytes);
    }
    Failure failure = run.Step(step());
    for (size_t i = 0; failure.ok() && i < tensors.outputs.size(); ++i) {
      if (tensors.outputs[i].data() != nullptr && output_bytes_[i] != 0)
        std::memcpy(tensors.outputs[i].data(), run.At(step().outputs[i]), output_bytes_[i]);
    }
    return failure;
  }

 private:
  const OwnedStep& step() const { return kernel_.plan.step; }
  const OwnedKernel& kernel_;
};

Failure OwnedKernel::Bind(const msrt_host_api*, const msrt_bound_node*,
                          std::unique_ptr<BoundKernel>* out) const {
  *out = std::make_unique<BoundOwned>(*this);
  return {};
}

}  // namespace

Failure MakeOwnedKernel(Accelerator* a, const msrt_host_api* host, const msrt_graph_view& graph,
                        const msrt_candidate& candidate, std::unique_ptr<Kernel>* out) {
  auto kernel = std::make_unique<OwnedKernel>(a, candidate);
  Failure failure = kernel->Compile(host, graph, candidate.nodes[0]);
  if (failure.ok()) *out = std::move(kernel);
  return failure;
}

}  // namespace accelerator

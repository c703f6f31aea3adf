#include "delegates/reference/reference.h"

#include <algorithm>
#include <utility>

#include "core/abi/msrt_plugin.h"
#include "delegates/reference/kernel.h"
#include "delegates/sdk/rounded.h"

namespace msrt {
namespace {

using namespace sdk;

using reference::KernelArgs;
using reference::KernelFn;

// Plain loops reach so small a part of the machine's throughput that placement prefers any other
// delegate that can run the node.
constexpr double kPartOfFlops = 1.0 / 360, kPartOfBandwidth = 1.0 / 40, kLaunchSeconds = 1e-6;
// Caps the estimates for sizes beyond all memory, which the host would reject; binding reports the
// actual error.
constexpr double kMaxSeconds = 1e8;

// Copies the types that the OpView points to, which must live as long as the binding.
class ReferenceBound final : public BoundKernel {
 public:
  ReferenceBound(KernelFn run, const OpView& op) : run_(run), op_(op) {
    for (size_t i = 0; i < op.input_count(); ++i)
      input_types_.push_back(op.has_input(i) ? op.input(i) : Type{});
    for (size_t i = 0; i < op.output_count(); ++i)
      output_types_.push_back(op.has_output(i) ? op.output(i) : Type{});
    for (size_t i = 0; i < op.input_count(); ++i)
      inputs_.push_back(op.has_input(i) ? &input_types_[i] : nullptr);
    for (size_t i = 0; i < op.output_count(); ++i)
      outputs_.push_back(op.has_output(i) ? &output_types_[i] : nullptr);
  }
  Status Run(const RunArgs& args) override {
    const OpView op = op_.WithTypes(inputs_, outputs_);
    return run_(KernelArgs{op, args.inputs, args.outputs, args.parallel});
  }
  size_t bytes() const override {
    return (input_types_.size() + output_types_.size()) * sizeof(Type);
  }

 private:
  KernelFn run_;
  const OpView op_;  // without its types, which are below
  std::vector<Type> input_types_, output_types_;
  std::vector<const Type*> inputs_, outputs_;
};

class ReferenceKernel final : public Kernel {
 public:
  explicit ReferenceKernel(KernelFn run) : run_(run) {}
  Result<std::unique_ptr<BoundKernel>> Bind(const OpView& op) override {
    return std::unique_ptr<BoundKernel>(std::make_unique<ReferenceBound>(run_, op));
  }

 private:
  KernelFn run_;
};

class ReferenceDelegate final : public Delegate {
 public:
  const char* name() const override { return "reference"; }

  void Query(const GraphView& graph, QueryResult* out) const override {
    for (size_t n = 0; n < graph.node_count(); ++n) {
      const NodeInfo node = graph.node(n);
      if (reference::FindKernel(node.op->domain(), node.op->op()) == nullptr) {
        out->refusals.push_back({static_cast<uint32_t>(n), "no reference kernel for this op"});
        continue;
      }
      Candidate c;
      c.node = static_cast<uint32_t>(n);
      c.input_layouts.assign(node.inputs.size(), Layout::kPlain);
      c.output_layouts.assign(node.outputs.size(), Layout::kPlain);
      const double seconds = kLaunchSeconds +
                             node.flops / (kPartOfFlops * node.machine.flops_per_second) +
                             node.bytes / (kPartOfBandwidth * node.machine.bytes_per_second);
      c.seconds = std::min(seconds, kMaxSeconds);
      c.arithmetic = IsRounded(*node.op) ? MSRT_ARITHMETIC_ROUNDED : MSRT_ARITHMETIC_REFERENCE;
      c.algorithm = "loops";
      c.in_place = reference::OptimizerInPlace(*node.op);
      if (c.in_place.empty()) c.in_place = reference::TrainingOptimizerInPlace(*node.op);
      out->candidates.push_back(std::move(c));
    }
  }

  Result<std::unique_ptr<Kernel>> Compile(const GraphView& graph, const Candidate& candidate,
                                          const CompileContext&) const override {
    const NodeInfo node = graph.node(candidate.node);
    const KernelFn run = reference::FindKernel(node.op->domain(), node.op->op());
    if (run == nullptr)
      return InternalError("reference: asked to compile ", node.op->op(), ", which it refused");
    return std::unique_ptr<Kernel>(std::make_unique<ReferenceKernel>(run));
  }
};

class ReferenceEvaluatorImpl final : public Evaluator {
 public:
  bool Knows(const OpView& op) const override {
    return reference::FindKernel(op.domain(), op.op()) != nullptr;
  }
  Status Evaluate(const OpView& op, std::span<const TensorView> inputs,
                  std::span<const TensorView> outputs) const override {
    const KernelFn run = reference::FindKernel(op.domain(), op.op());
    if (run == nullptr) return Unsupported("no reference kernel for ", op.op());
    const std::unique_ptr<ParallelFor> serial = MakeSerial();
    return run(KernelArgs{op, inputs, outputs, *serial});
  }
};

}  // namespace

std::unique_ptr<sdk::Delegate> MakeReferenceDelegate() {
  return std::make_unique<ReferenceDelegate>();
}

const Evaluator& ReferenceEvaluator() {
  static const ReferenceEvaluatorImpl evaluator;
  return evaluator;
}

}  // namespace msrt

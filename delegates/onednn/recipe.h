// The parts of a family of ops: rules that answer Query without touching the library, and a recipe
// that Compile makes, which turns concrete shapes into a plan. The BoundKernel around it is the
// same for every op (bound.cc).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "delegates/sdk/delegate.h"
#include "ops/evaluator.h"

namespace msrt::onednn {

using sdk::BoundKernel;
using sdk::Candidate;
using sdk::CompileContext;
using sdk::Kernel;
using sdk::NodeInfo;
using sdk::RunArgs;

class Plan;

// A compiled node. Immutable but for weight variants that it guards itself; shared by its bindings.
class Recipe {
 public:
  Recipe(const NodeInfo& node, const Candidate& candidate)
      : op_(node.op),
        input_layouts_(candidate.input_layouts),
        output_layouts_(candidate.output_layouts) {
    for (size_t i = 0; i < node.op->input_count(); ++i) constants_.push_back(node.op->constant(i));
  }
  virtual ~Recipe() = default;

  // Fills `plan` for concrete types. `shared_residual`: the residual lies where output 0 is to be
  // written. Outputs are not empty and at least one element of every input exists. kUnsupported (or
  // dnnl::error 'unimplemented') where the library has nothing for just these shapes: the fallback
  // runs then.
  virtual Status Build(const OpView& op, bool shared_residual, Plan* plan) const = 0;
  virtual size_t packed_bytes() const { return 0; }
  // The input for which shared_residual makes a difference; -1 if none.
  virtual int residual_input() const { return -1; }

  const OpView& op() const { return *op_; }
  std::span<const ConstTensor* const> constants() const { return constants_; }
  Layout input_layout(size_t i) const {
    return i < input_layouts_.size() ? input_layouts_[i] : Layout::kPlain;
  }
  Layout output_layout(size_t i) const {
    return i < output_layouts_.size() ? output_layouts_[i] : Layout::kPlain;
  }

 private:
  const OpView* op_;
  std::vector<Layout> input_layouts_, output_layouts_;
  std::vector<const ConstTensor*> constants_;
};

// `local_attrs`: those of pieces that the recipe reads; the fallback computes pieces with others,
// and pieces that have a part of a constant, which is packed whole.
std::unique_ptr<Kernel> MakeKernel(std::shared_ptr<const Recipe> recipe, const Evaluator& fallback,
                                   std::span<const std::string_view> local_attrs);

// Adds candidates for the node, or returns why there are none. Types have known ranks and `typical`
// is concrete; everything that is not an index or a shape has one of the rule's element types.
using QueryFn = std::string (*)(const NodeInfo& node, std::vector<Candidate>* out);
using CompileFn = Result<std::shared_ptr<const Recipe>> (*)(const NodeInfo& node,
                                                            const Candidate& candidate,
                                                            const CompileContext& context);

struct Rule {
  std::string_view domain, op;
  QueryFn query;
  CompileFn compile;
  bool one_rank =
      false;  // the op admits one rank for each tensor, so that ranks need not be declared
  DTypeSet types{DType::kF32};
  std::span<const std::string_view> local_attrs = {};  // those of pieces that the recipe reads
};

// The usual CompileFn: a recipe that needs nothing but the node.
template <typename R>
Result<std::shared_ptr<const Recipe>> CompileAs(const NodeInfo& node, const Candidate& candidate,
                                                const CompileContext&) {
  return std::shared_ptr<const Recipe>(std::make_shared<R>(node, candidate));
}

// The families; listed once in onednn.cc.
std::span<const Rule> ConvolutionRules();
std::span<const Rule> TransposedConvolutionRules();
std::span<const Rule> ConvolutionWeightGradRules();
std::span<const Rule> MatMulRules();
std::span<const Rule> IntegerMatMulRules();
std::span<const Rule> IntegerConvolutionRules();
std::span<const Rule> ResamplingRules();
std::span<const Rule> RecurrentRules();

}  // namespace msrt::onednn

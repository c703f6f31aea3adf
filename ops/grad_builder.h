// What a gradient rule (OpDef::grad) works with: the node, the gradients of its outputs, and the
// graph that the gradients of its inputs are built in.
//
// A rule reads like the formula. The functions that add nodes return values, and the first error is
// kept until the rule has ended: after an error they return kNoValue, and accept it.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "ops/builder.h"

namespace msrt {

// Appends the gradients of `of` with respect to values of the same graph, looking only at nodes
// from `first_node` on. core/autodiff is above ops, so it is passed in.
using AddGradientsFn = std::function<Result<std::vector<ValueId>>(
    size_t first_node, const std::vector<ValueId>& of, const std::vector<ValueId>& seeds,
    const std::vector<ValueId>& with_respect_to)>;

class GradBuilder {
 public:
  // `output_grads`: one for each output of the node, kNoValue where the gradient is zero.
  // `wanted`: one for each input, whether its gradient is needed. `ops` may be null.
  GradBuilder(Graph* graph, const Node& node, std::vector<ValueId> output_grads,
              std::vector<bool> wanted, const OpSet* ops, AddGradientsFn add_gradients = {});

  // ---- the node ---------------------------------------------------------------------------------

  // Types and known constants as they were when the rule began.
  const OpView& op() const { return view_; }
  bool has_input(size_t i) const { return view_.has_input(i); }
  ValueId input(size_t i) const { return i < node_.inputs.size() ? node_.inputs[i] : kNoValue; }
  // kNoValue for an output that the node does not have.
  ValueId output(size_t i) const { return i < node_.outputs.size() ? node_.outputs[i] : kNoValue; }
  bool wants(size_t i) const { return i < wanted_.size() && wanted_[i]; }
  // The gradient of an output; kNoValue if it is zero. At least one is not.
  ValueId grad(size_t o = 0) const { return o < grads_.size() ? grads_[o] : kNoValue; }
  // The same, with zeros as a tensor.
  ValueId GradOrZeros(size_t o);

  // ---- the result -------------------------------------------------------------------------------

  // Sets the gradient of an input, which must have its dims. An input that is not set, or set to
  // kNoValue, has a gradient of zero.
  void Set(size_t i, ValueId gradient);
  // The same for a gradient with the dims of a broadcast result: summed over what was broadcast.
  void SetSummed(size_t i, ValueId gradient) { Set(i, SumTo(gradient, input(i))); }
  const std::vector<ValueId>& input_grads() const { return input_grads_; }

  // For an op that is composed of others: the rule has added `outputs`, which compute the outputs
  // of the node from its inputs (kNoValue: an output without gradient), and the gradients of the
  // inputs are those of the nodes added. Passes remove what is computed twice.
  void SetByComposition(const std::vector<ValueId>& outputs);

  // Keeps the first error. Requires an error.
  void Fail(Status status);
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

  // ---- building ---------------------------------------------------------------------------------

  const Type& type(ValueId v) const;
  // An op with one output.
  ValueId Add(std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {});
  ValueId AddMsrt(std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {});
  // Any op; returns `outputs` values.
  std::vector<ValueId> AddNode(std::string_view domain, std::string_view op,
                               std::vector<ValueId> inputs, AttrList attrs, size_t outputs);

  ValueId Plus(ValueId a, ValueId b) { return Add("Add", {a, b}); }
  ValueId Minus(ValueId a, ValueId b) { return Add("Sub", {a, b}); }
  ValueId Times(ValueId a, ValueId b) { return Add("Mul", {a, b}); }
  ValueId Over(ValueId a, ValueId b) { return Add("Div", {a, b}); }
  ValueId Negative(ValueId a) { return Add("Neg", {a}); }
  ValueId Square(ValueId a) { return Times(a, a); }
  // The same with a number, in the element type of `a`.
  ValueId Plus(ValueId a, double b) { return Plus(a, Scalar(b, a)); }
  ValueId Minus(double a, ValueId b) { return Minus(Scalar(a, b), b); }
  ValueId Times(ValueId a, double b) { return Times(a, Scalar(b, a)); }
  ValueId Over(double a, ValueId b) { return Over(Scalar(a, b), b); }

  // A constant of rank 0 with the element type of `like`.
  ValueId Scalar(double number, ValueId like);
  ValueId Ints(std::vector<int64_t> numbers);  // a constant of type i64 and rank 1
  ValueId Constant(std::string_view name, ConstTensor data);
  // `a` in the element type of `like`.
  ValueId CastTo(ValueId a, ValueId like);
  // The dims of `v` as i64: a constant where they are known, else a Shape node.
  ValueId ShapeOf(ValueId v);
  ValueId Fill(double number, ValueId like);  // a tensor like `like`
  ValueId Zeros(ValueId like) { return Fill(0, like); }
  ValueId ReshapeTo(ValueId v, ValueId like);  // the elements of `v` with the dims of `like`
  ValueId ExpandTo(ValueId v, ValueId like);   // broadcast to the dims of `like`
  // Sums over the axes along which `like` broadcasts to `v`: the gradient of broadcasting.
  ValueId SumTo(ValueId v, ValueId like);
  // Sums over `axes`, which stay as dims of 1 if `keep`.
  ValueId SumOver(ValueId v, std::vector<int64_t> axes, bool keep);

 private:
  Graph* const graph_;
  const Node node_;
  const std::vector<ValueId> grads_;
  const std::vector<bool> wanted_;
  const OpSet* const ops_;
  const AddGradientsFn add_gradients_;
  const size_t first_node_;
  std::vector<Type> types_;
  std::vector<const Type*> input_types_, output_types_;
  std::vector<std::shared_ptr<const ConstTensor>> held_;
  std::vector<const ConstTensor*> constants_;
  OpView view_;
  std::vector<ValueId> input_grads_;
  Status status_;
};

// The rule of an op whose outputs do not change with its inputs, or whose gradient must not flow.
Status GradZero(GradBuilder&);

}  // namespace msrt

// Converts a node of an ONNX file, of any opset, to nodes of the module (opset 23). Most ops pass
// unchanged; each op that changed its meaning, its inputs or its name has a rule in
// lift_<family>.cc.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "ops/builder.h"
#include "tools/msconvert/problems.h"

namespace msrt::onnx_import {

// One node that is being converted, and the graph to write to.
class NodeLift {
 public:
  NodeLift(Graph* graph, std::string domain, std::string op, int64_t opset, std::string name,
           std::vector<ValueId> inputs, AttrList attrs, std::vector<std::string> output_names);

  const std::string& domain() const { return domain_; }
  const std::string& op() const { return op_; }
  const std::string& name() const { return name_; }
  int64_t opset() const { return opset_; }  // that the model imports for the op's domain

  size_t input_count() const { return inputs_.size(); }
  bool has_input(size_t i) const { return i < inputs_.size() && inputs_[i] != kNoValue; }
  ValueId input(size_t i) const { return i < inputs_.size() ? inputs_[i] : kNoValue; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  // Undeclared if the input is omitted; an op that needs it is refused when its node is added.
  const Type& type(size_t i) const { return type_of(input(i)); }
  const Type& type_of(ValueId v) const;
  // Returns the value of an input that is constant; else null.
  const ConstTensor* constant(size_t i) const {
    return has_input(i) ? constant_of(inputs_[i]) : nullptr;
  }
  const ConstTensor* constant_of(ValueId v) const {
    return v == kNoValue ? nullptr : graph_->value(v).constant.get();
  }
  Status RequireInputs(size_t count) const;  // refuses a node that omits one of the first `count`
  void SetInput(size_t i, ValueId value);
  void DropInputs(size_t from) {
    if (from < inputs_.size())
      inputs_.erase(inputs_.begin() + static_cast<ptrdiff_t>(from), inputs_.end());
  }

  // Whether the model is read in order to train it: layers that behave differently in training keep
  // their form for inference, which a trainer turns into that for training.
  void set_for_training(bool on) { for_training_ = on; }
  bool for_training() const { return for_training_; }

  AttrList& attrs() { return attrs_; }
  bool Has(std::string_view attr) const { return attrs_.Find(attr) != nullptr; }
  int64_t Int(std::string_view attr, int64_t fallback) const;
  double Float(std::string_view attr, double fallback) const;
  std::string String(std::string_view attr, std::string fallback) const;
  std::vector<int64_t> Ints(std::string_view attr) const;
  std::vector<double> Floats(std::string_view attr) const;

  size_t output_count() const { return output_names_.size(); }
  bool wants_output(size_t i) const {
    return i < output_names_.size() && !output_names_[i].empty();
  }

  // Append nodes. Return an error if a node is invalid.
  Result<ValueId> Add(std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {});
  Result<std::vector<ValueId>> AddMany(std::string_view domain, std::string_view op,
                                       std::vector<ValueId> inputs, AttrList attrs,
                                       size_t output_count, std::vector<Type> declared = {});
  ValueId Constant(ConstTensor data);
  ValueId Scalar(DType dtype, double value);  // of rank 0

  // The outputs of the node.
  void SetOutput(size_t i, ValueId value);
  const std::vector<ValueId>& outputs() const { return outputs_; }

  // Emits the node under another name, or unchanged: inputs that are constant lists become
  // attributes if the op's entry has both, type numbers become types, and attributes that the entry
  // lacks are refused.
  Status PassAs(std::string_view op, std::string_view domain = {});
  Status Pass() { return PassAs(op_, domain_); }

 private:
  Status Fit(const OpDef& def);
  Status InputsToAttrs(const OpDef& def);
  std::string NameFor(std::string_view op);

  Graph* graph_;
  const std::string domain_, op_, name_;
  const int64_t opset_;
  std::vector<ValueId> inputs_;
  bool for_training_ = false;
  AttrList attrs_;
  std::vector<std::string> output_names_;
  std::vector<ValueId> outputs_;
  int added_ = 0;
};

// Returns OK if the outputs are set. kUnsupported is a problem for the report. Other codes mean
// that the file is invalid.
using LiftFn = Status (*)(NodeLift&);

inline constexpr std::string_view kMlDomain = "ai.onnx.ml", kContribDomain = "com.microsoft";

struct LiftRule {
  std::string_view domain, op;
  LiftFn lift;
};
// Returns null if the op passes unchanged.
LiftFn FindLift(std::string_view domain, std::string_view op);

// The families, listed once in lift.cc.
std::span<const LiftRule> ElementwiseLifts();
std::span<const LiftRule> TensorLifts();
std::span<const LiftRule> NormalizationLifts();
std::span<const LiftRule> ResizeLifts();
std::span<const LiftRule> ContribLifts();
std::span<const LiftRule> ContribAttentionLifts();
std::span<const LiftRule> ContribGroupQueryLifts();
std::span<const LiftRule> ContribQuantLifts();
std::span<const LiftRule> RecurrentLifts();
std::span<const LiftRule> VisionLifts();
std::span<const LiftRule> MlLifts();
std::span<const LiftRule> TreeLifts();
std::span<const LiftRule> LegacyLifts();

}  // namespace msrt::onnx_import

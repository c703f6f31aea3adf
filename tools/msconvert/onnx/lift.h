// From a node of an ONNX file, of whatever opset, to nodes of ours (opset 23). Most ops pass as
// they are; a rule stands in lift_<family>.cc for each that changed its meaning, its inputs or its
// name.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "ops/builder.h"
#include "tools/msconvert/problems.h"

namespace msrt::onnx_import {

// One node that is being converted: what the file says about it, and the graph to write to.
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
  // Undeclared where the input is left out; whoever needs it is refused when the node is added.
  const Type& type(size_t i) const { return type_of(input(i)); }
  const Type& type_of(ValueId v) const;
  // The value of an input that is constant; null otherwise.
  const ConstTensor* constant(size_t i) const {
    return has_input(i) ? constant_of(inputs_[i]) : nullptr;
  }
  const ConstTensor* constant_of(ValueId v) const {
    return v == kNoValue ? nullptr : graph_->value(v).constant.get();
  }
  Status RequireInputs(size_t count) const;  // refuses a node that leaves out one of the first
  void SetInput(size_t i, ValueId value);
  void DropInputs(size_t from) {
    if (from < inputs_.size())
      inputs_.erase(inputs_.begin() + static_cast<ptrdiff_t>(from), inputs_.end());
  }

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

  // Appends nodes. What is wrong with one is the error.
  Result<ValueId> Add(std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {});
  Result<std::vector<ValueId>> AddMany(std::string_view domain, std::string_view op,
                                       std::vector<ValueId> inputs, AttrList attrs,
                                       size_t output_count, std::vector<Type> declared = {});
  ValueId Constant(ConstTensor data);
  ValueId Scalar(DType dtype, double value);  // of rank 0

  // What the node gives.
  void SetOutput(size_t i, ValueId value);
  const std::vector<ValueId>& outputs() const { return outputs_; }

  // Emits the node under another name, or as it stands: inputs that are constant lists become
  // attributes where the op's entry has both, numbers of types become types, and attributes that
  // the entry lacks are refused.
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
  AttrList attrs_;
  std::vector<std::string> output_names_;
  std::vector<ValueId> outputs_;
  int added_ = 0;
};

// OK: the outputs are set. kUnsupported: a problem for the report. Other codes: the file is wrong.
using LiftFn = Status (*)(NodeLift&);

struct LiftRule {
  std::string_view domain, op;
  LiftFn lift;
};
// Null where the op passes as it is.
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

// Converts a primitive of MindIR to nodes of the module. Each primitive has a rule in
// import_<family>.cc. A rule gets arguments by name and need not know whether the file has them as
// inputs (newer files) or as attributes.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/msconvert/mindir/import_draft.h"

namespace msrt::mindir_import {

struct Rule;

class PrimitiveCall {
 public:
  // `inputs` are in the file's order. `attributes` are the primitive's, by name.
  PrimitiveCall(GraphDraft* draft, const Rule& rule, std::string name, Items inputs,
                std::vector<std::pair<std::string, Item>> attributes, const Declaration& declared);

  GraphDraft& draft() { return *draft_; }
  std::string_view target() const;  // of the rule: the op to create
  const std::string& name() const { return name_; }
  // Whether the model is read in order to train it: layers that behave differently in training keep
  // their form for inference, which a trainer turns into that for training.
  void set_for_training(bool on) { for_training_ = on; }
  bool for_training() const { return for_training_; }
  // The declared type of the result.
  const Declaration& declared() const { return declared_; }

  // Returns an argument; null if it is absent or None.
  const Item* Find(std::string_view argument) const;
  bool Has(std::string_view argument) const { return Find(argument) != nullptr; }
  Result<Item> Get(std::string_view argument) const;
  Result<ValueId> Tensor(std::string_view argument);
  Result<ValueId> TensorOrNone(std::string_view argument);  // kNoValue where it is absent
  // Known numbers: a number, a constant tensor, a tuple of numbers.
  Result<int64_t> Int(std::string_view argument, std::optional<int64_t> fallback = {}) const;
  Result<double> Float(std::string_view argument, std::optional<double> fallback = {}) const;
  Result<bool> Bool(std::string_view argument, std::optional<bool> fallback = {}) const;
  Result<std::vector<int64_t>> Ints(
      std::string_view argument) const;  // one number is a list of one
  std::optional<std::vector<int64_t>> KnownInts(const Item& item) const;
  // Returns a list of integers as a tensor of rank 1, known or not.
  Result<ValueId> IntsTensor(std::string_view argument);
  Result<DType> ElementType(std::string_view argument) const;
  // Returns a text, or the text for a number in newer files, in upper case.
  Result<std::string> Choice(std::string_view argument, std::span<const std::string_view> by_number,
                             std::string_view fallback) const;

  const Type& type(ValueId v) const { return draft_->type(v); }
  Result<int> Rank(ValueId v) const;  // refuses an unknown rank
  Result<int> Axis(std::string_view argument, int rank, std::optional<int64_t> fallback = {}) const;
  Result<int64_t> KnownDim(ValueId v, int axis) const;

  // Appends nodes.
  Result<ValueId> Add(std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {});
  Result<std::vector<ValueId>> AddMany(std::string_view domain, std::string_view op,
                                       std::vector<ValueId> inputs, AttrList attrs, size_t outputs);
  ValueId Constant(ConstTensor data);
  ValueId Number(DType dtype, double value);
  ValueId IntList(std::vector<int64_t> values) { return Constant(ConstTensor::Int64s(values)); }
  // Returns the same value if it has that type already.
  Result<ValueId> Cast(ValueId v, DType dtype);

  // Set the result of the primitive.
  void SetResult(ValueId value) { result_ = Item::Tensor(value); }
  Status SetResult(Result<ValueId> value);
  Status SetTupleResult(std::vector<ValueId> values);  // kNoValue: a part that cannot be used
  void SetItemResult(Item item) { result_ = std::move(item); }
  const Item& result() const { return result_; }

 private:
  std::string NextName(std::string_view op);
  Status Refuse(std::string_view argument, std::string_view why) const;

  GraphDraft* draft_;
  const Rule& rule_;
  const std::string name_;
  const Items inputs_;
  const std::vector<std::pair<std::string, Item>> attributes_;
  bool for_training_ = false;
  const Declaration& declared_;
  std::vector<std::string_view> arguments_;  // names of the inputs
  Item result_;
  int added_ = 0;
};

// Returns OK if the result is set. kUnsupported and invalid use are problems for the report.
using RuleFn = Status (*)(PrimitiveCall&);

struct Rule {
  std::string_view op;
  // Names in the order of the inputs in newer files, separated by blanks. A file that has some as
  // attributes leaves these out.
  std::string_view arguments;
  RuleFn rule;
  std::string_view target = {};
};

// Returns null if the primitive is not known.
const Rule* FindRule(std::string_view op);

void ForEachRule(const std::function<void(const Rule&)>& visit);

// The families, listed once in import_rule.cc.
std::span<const Rule> ElementwiseRules();
std::span<const Rule> ConvolutionRules();
std::span<const Rule> MatMulRules();
std::span<const Rule> ReduceRules();
std::span<const Rule> MovementRules();
std::span<const Rule> GatherRules();
std::span<const Rule> ImageRules();
std::span<const Rule> RecurrentRules();
std::span<const Rule> LossRules();
std::span<const Rule> GenerateRules();

}  // namespace msrt::mindir_import

// Checks of one node on a delegate: every candidate against the reference kernel. The tests of all
// delegates share them.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "delegates/sdk/delegate.h"
#include "ops/op_def.h"
#include "tests/conformance/op_case.h"

namespace msrt::testing {

// A graph of one node, with the values of its inputs.
class OneNode final : public sdk::GraphView {
 public:
  OneNode(std::string_view domain, std::string_view op, AttrList attrs,
          std::vector<std::optional<ConstTensor>> inputs, std::vector<bool> constant,
          size_t outputs = 1);
  OneNode(const OneNode&) = delete;

  bool ok() const { return def_ != nullptr && status_.ok(); }
  const Status& status() const { return status_; }
  size_t node_count() const override { return 1; }
  sdk::NodeInfo node(size_t) const override;
  const OpView& op() const { return *typical_; }
  const std::vector<std::optional<ConstTensor>>& inputs() const { return inputs_; }
  // Makes all inputs but the first that are not constant parameters.
  void MakeParameters();
  // Computed by the reference kernel. `reduced`: with the first two inputs, the factors of
  // products, rounded to bf16.
  Result<std::vector<ConstTensor>> Expected(bool reduced = false) const;

 private:
  OpView View(std::span<const ConstTensor* const> constants) const;
  const OpDef* def_;
  AttrList attrs_;
  std::vector<std::optional<ConstTensor>> inputs_;
  std::vector<bool> constant_;
  std::vector<Type> input_types_, output_types_;
  std::vector<const Type*> input_pointers_, output_pointers_;
  std::vector<const ConstTensor*> values_, constants_;
  std::vector<int64_t> input_ids_, output_ids_;
  std::vector<char> parameters_;  // by input
  std::unique_ptr<OpView> declared_, typical_;
  Status status_;
};

// A row of the op cases; with `weights_constant`, all inputs but the first are constants.
std::unique_ptr<OneNode> NodeOf(const OpCase& c, bool weights_constant);

// Returns the difference; empty if equal within 1e-5 (f64: 2e-14) of the value and of the output's
// range.
std::string FloatDifference(const ConstTensor& got, const ConstTensor& expected);

// The expected results of a node for each kind of candidate. A candidate that may round need not: a
// library lacks some products in bf16.
struct Expectation {
  std::vector<ConstTensor> exact, reduced;

  static Result<Expectation> Of(const OneNode& node, const sdk::QueryResult& query);
  // Returns the difference; empty if they are equal according to FloatDifference.
  std::string Difference(const sdk::Candidate& candidate, const ConstTensor& got,
                         size_t output = 0) const;
};

// One team for all tests: each team has its own threads, which spin for a while before they sleep.
ParallelFor& Team();

Result<std::unique_ptr<sdk::Kernel>> CompileNode(const sdk::Delegate& delegate, const OneNode& node,
                                                 const sdk::Candidate& candidate);

// Runs a bound kernel on the node's inputs; `shared` makes that pair of input and output one
// buffer.
Result<std::vector<ConstTensor>> RunBound(
    sdk::BoundKernel& bound, const OneNode& node, const sdk::Candidate& candidate,
    std::optional<std::pair<uint32_t, uint32_t>> shared = std::nullopt, ParallelFor& team = Team());

// Checks every candidate for the node, alone and with each pair that may share memory. Returns the
// number of candidates.
size_t CheckNode(const sdk::Delegate& delegate, const OneNode& node);

// Checks every op case that the delegate accepts, with constant weights and without. Ops of
// `must_accept` must have at least one such row.
void CheckEveryRow(const sdk::Delegate& delegate, std::span<const std::string_view> must_accept);

}  // namespace msrt::testing

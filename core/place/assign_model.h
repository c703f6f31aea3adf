// The placement problem as variables with costs and pairs of variables with tables: the form that core/solve minimises. Internal to
// Assign; each function adds one kind of cost, so that the least sum is the time of the fastest plan.
//
// The first variables are the nodes, in order; the choices of a node are the options that it may be run by. The cost of an option of
// several nodes sits at its last node.
#pragma once

#include "core/place/assign.h"

namespace msrt {

// The options of each node, in the order of `AssignProblem::options`.
struct NodeChoices {
  std::vector<uint32_t> options;
  std::vector<uint32_t> first;  // by node, and one more: where its options begin
  std::span<const uint32_t> of(uint32_t node) const { return {options.data() + first[node], first[node + 1] - first[node]}; }
};

class AssignModel {
 public:
  struct Table {
    uint32_t a, b;
    size_t first;  // in cells(); a row for each choice of a
  };

  // All costs are 0 at first.
  uint32_t AddVariable(uint32_t choices) {
    costs_.resize(costs_.size() + choices);
    first_.push_back(static_cast<uint32_t>(costs_.size()));
    return variable_count() - 1;
  }
  // The cells, all 0, to be filled before the next call.
  std::span<double> AddTable(uint32_t a, uint32_t b) {
    tables_.push_back({a, b, cells_.size()});
    cells_.resize(cells_.size() + size_t{choice_count(a)} * choice_count(b));
    return std::span(cells_).subspan(tables_.back().first);
  }
  void AddConstant(double seconds) { constant_ += seconds; }

  uint32_t variable_count() const { return static_cast<uint32_t>(first_.size()) - 1; }
  uint32_t choice_count(uint32_t variable) const { return first_[variable + 1] - first_[variable]; }
  std::span<double> costs(uint32_t variable) { return {costs_.data() + first_[variable], choice_count(variable)}; }
  std::span<const Table> tables() const { return tables_; }
  std::span<const double> cells(const Table& t) const { return {cells_.data() + t.first, size_t{choice_count(t.a)} * choice_count(t.b)}; }
  double constant() const { return constant_; }

 private:
  std::vector<double> costs_, cells_;
  std::vector<uint32_t> first_ = {0};
  std::vector<Table> tables_;
  double constant_ = 0;
};

void AddTransfers(const AssignProblem& problem, const NodeChoices& choices, AssignModel* model);
void AddLaunches(const AssignProblem& problem, const NodeChoices& choices, AssignModel* model);

// Admissible, given the values that the option's nodes make.
Status AdmissibleAmong(const AssignProblem& problem, const AssignOption& option, std::span<const uint32_t> made);

}  // namespace msrt

// The placement problem in the form that core/solve minimises. Internal to Assign: each function adds one kind of cost, so that the
// least sum is the time of the fastest plan.
//
// The first nodes of the choice problem, called variables here, are the nodes to be placed, in order; their choices are the options that
// they may be run by. The cost of an option of several nodes sits at its last node. After them come the carried pairs, whose choices are
// the devices.
#pragma once

#include "core/place/assign.h"
#include "core/solve/choice.h"

namespace msrt {

// Numbers listed by node: options that it may choose, values that it makes.
struct ListsByNode {
  std::vector<uint32_t> numbers;
  std::vector<uint32_t> first;  // by node, and one more: where its list begins
  std::span<const uint32_t> of(uint32_t node) const { return {numbers.data() + first[node], first[node + 1] - first[node]}; }
};

inline uint32_t VariableOfCarried(const AssignProblem& problem, size_t pair) { return problem.node_count + static_cast<uint32_t>(pair); }

// Returns what is spent on transfers whatever is chosen.
double AddTransfers(const AssignProblem& problem, const ListsByNode& choices, ChoiceProblem* out);
void AddLaunches(const AssignProblem& problem, const ListsByNode& choices, ChoiceProblem* out);

// Admissible, given the values that the option's nodes make.
Status AdmissibleAmong(const AssignProblem& problem, const AssignOption& option, std::span<const uint32_t> made);

}  // namespace msrt

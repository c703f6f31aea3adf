// The placement problem in the form that core/solve minimises. Internal to Assign: each function
// adds one kind of cost, so that the least sum is the time of the fastest plan.
//
// The first nodes of the choice problem, called variables here, are the nodes to be placed, in
// order; their choices are the options that they may be run by. The cost of an option of several
// nodes sits at its last node. After them come the carried pairs, whose choices are the devices.
#pragma once

#include "core/place/assign.h"
#include "core/solve/choice.h"

namespace msrt {

// Numbers listed by node: options that it may choose, values that it makes.
struct ListsByNode {
  std::vector<uint32_t> numbers;
  std::vector<uint32_t> first;  // by node, and one more: where its list begins
  std::span<const uint32_t> of(uint32_t node) const {
    return {numbers.data() + first[node], first[node + 1] - first[node]};
  }
};

// Lists of numbers by a key below `keys`, in one piece. `each(emit)` calls emit(key, number) for
// everything, the same way twice.
template <typename Each>
ListsByNode ListBy(uint32_t keys, const Each& each) {
  ListsByNode lists;
  lists.first.assign(keys + 1, 0);
  each([&](uint32_t key, uint32_t) { ++lists.first[key + 1]; });
  for (uint32_t k = 0; k < keys; ++k) lists.first[k + 1] += lists.first[k];
  lists.numbers.resize(lists.first[keys]);
  std::vector<uint32_t> next(lists.first.begin(), lists.first.end() - 1);
  each([&](uint32_t key, uint32_t number) { lists.numbers[next[key]++] = number; });
  return lists;
}

inline uint32_t VariableOfCarried(const AssignProblem& problem, size_t pair) {
  return problem.node_count + static_cast<uint32_t>(pair);
}

// Returns what is spent on transfers whatever is chosen.
double AddTransfers(const AssignProblem& problem, const ListsByNode& choices, ChoiceProblem* out);
void AddLaunches(const AssignProblem& problem, const ListsByNode& choices, ChoiceProblem* out);

// The fastest plan that chooses among these options, and at least as fast as what one delegate does
// alone. `refused` stays empty.
Result<Assignment> FastestPlan(const AssignProblem& problem, const ListsByNode& choices);

// Admissible, given the values that the option's nodes make.
Status AdmissibleAmong(const AssignProblem& problem, const AssignOption& option,
                       std::span<const uint32_t> made);

}  // namespace msrt

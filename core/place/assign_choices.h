// The placement problem in the form that core/solve minimises. Internal to Assign: each function
// adds one kind of cost, so that the least sum is the time of the fastest assignment.
//
// The first nodes of the choice problem, called variables here, are the nodes to be placed, in
// order; their choices are the options that they may be run by. The cost of an option of several
// nodes is at its last node. After them come the carried pairs, whose choices are the devices.
#pragma once

#include "core/place/assign.h"
#include "core/solve/choice.h"

namespace msrt {

// Lists of numbers by node: the options that it may choose, the values that it makes.
struct ListsByNode {
  std::vector<uint32_t> numbers;
  std::vector<uint32_t> first;  // by node, and one more: the start of its list
  std::span<const uint32_t> of(uint32_t node) const {
    return {numbers.data() + first[node], first[node + 1] - first[node]};
  }
};

// Makes lists of numbers by a key below `keys`. `each(emit)` calls emit(key, number) for every
// pair; it is called twice and must emit the same pairs in the same order.
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

// Returns the seconds of transfers that every choice needs.
double AddTransfers(const AssignProblem& problem, const ListsByNode& choices, ChoiceProblem* out);
void AddLaunches(const AssignProblem& problem, const ListsByNode& choices, ChoiceProblem* out);

// Returns the fastest assignment among these options; see Assign. `refused` stays empty.
Result<Assignment> FastestAssignment(const AssignProblem& problem, const ListsByNode& choices);

// Admissible for callers that already know the values that the option's nodes make.
Status AdmissibleAmong(const AssignProblem& problem, const AssignOption& option,
                       std::span<const uint32_t> made);

}  // namespace msrt

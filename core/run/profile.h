// The times of one run, step by step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/bind/binding.h"

namespace msrt {

struct EntryProgram;  // core/compile/compile.h

// One activation of a step. A control step contains the steps of the graphs that it calls, except
// for a tail call: the caller's frame has ended by then, so a tail call takes no time itself.
struct StepTime {
  uint32_t step;  // in the program
  int64_t begin_nanos, end_nanos;
  // The program that ran; the model may have another one by now.
  std::shared_ptr<const EntryProgram> placed;
  // Null for control flow and lists; destroyed before its program.
  std::shared_ptr<const Binding> binding;
  uint32_t bound = 0;  // in binding->steps

  int64_t nanos() const { return end_nanos - begin_nanos; }
  const BoundStep* bound_step() const {
    return binding == nullptr ? nullptr : &binding->steps[bound];
  }
};

struct RunProfile {
  std::shared_ptr<const EntryProgram> placed;  // of the session's function
  int64_t begin_nanos = 0, end_nanos = 0;
  std::vector<StepTime> steps;  // in the order in which they begin
};

// Returns, by step, its time without that of the steps inside it.
std::vector<int64_t> SelfNanos(const RunProfile& profile);

// Returns the tensor that represents a step in a table: its first output, else its first input;
// null if it has neither.
const TensorView* MainTensor(const BoundStep& step);
// Returns the bytes that the step reads and writes.
double MovedBytes(const BoundStep& step);

}  // namespace msrt

// Converts a module to a MindIR file and back: both must compute the same bits.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace msrt::testing {

// The notes about ops that msconvert adds to the primitives that it writes. kStripped leaves only
// the primitives, as in a file that MindSpore has rewritten.
enum class Notes { kKept, kStripped };

// Does to a module what msconvert does before it writes a .msrt file.
Status OptimizeAsWritten(Module* module);

// Refusals and problems return kUnsupported.
Result<Module> ThroughMindIr(const Module& module, Notes notes);

// Returns the difference; empty: the same bits. Both modules run `runs` times in one session, so
// that state is compared too.
Result<std::string> DifferenceOf(const Module& a, const Module& b,
                                 const std::vector<ConstTensor>& inputs, bool passes, int runs = 1);

// Returns the largest deviation of an output, relative to its range, with the reference kernels;
// outputs of another element type are an error.
Result<double> DeviationOf(const Module& a, const Module& b,
                           const std::vector<ConstTensor>& inputs);

// Reads input_0.npy, input_1.npy ... of a folder.
Result<std::vector<ConstTensor>> ReadInputs(const std::string& folder);

}  // namespace msrt::testing

// A module through a MindIR file and back: what both compute must be the same, bit for bit.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace msrt::testing {

// What msconvert notes about ops in the primitives that it writes. Without it only the primitives
// speak, as in a file that MindSpore has written again.
enum class Notes { kKept, kStripped };

// What msconvert does to a module before it writes a .msrt file.
Status OptimizeAsWritten(Module* module);

// Refusals and problems are kUnsupported.
Result<Module> ThroughMindIr(const Module& module, Notes notes);

// Empty: the same bits. Both modules run `runs` times, one after the other, so that state is
// compared too.
Result<std::string> DifferenceOf(const Module& a, const Module& b,
                                 const std::vector<ConstTensor>& inputs, bool passes, int runs = 1);

// The largest deviation of an output, relative to its range, by the reference kernels; outputs of
// other kinds are an error.
Result<double> DeviationOf(const Module& a, const Module& b,
                           const std::vector<ConstTensor>& inputs);

// input_0.npy, input_1.npy ... of a folder.
Result<std::vector<ConstTensor>> ReadInputs(const std::string& folder);

}  // namespace msrt::testing

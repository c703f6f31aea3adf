// Inputs and outputs of any kind as files: a tensor is NAME.npy; a list is a folder NAME with
// 0.npy, 1.npy and so on, or folders 0, 1 and so on where its elements are lists.
#pragma once

#include <random>
#include <string>

#include "core/graph/graph.h"
#include "core/run/value.h"
#include "tools/tensors/compare.h"

namespace msrt {

// `path` is a file or a folder, as the type has it; a list of one tensor, such as an optional
// input, may be a file too.
Result<RunValue> ReadValue(const std::string& path, const Type& type);
// `path` without .npy. What an earlier, longer list left in the folder is removed.
Status WriteValue(const std::string& path, const RunValue& value);

// Seeded random numbers; a list gets one element. `dims` are those of the tensors.
Result<RunValue> MadeValue(const Graph& graph, ValueId input, const Dims& dims,
                           std::mt19937_64& random);

// "[1, 2.5, ...]": the first elements, at most so many.
std::string ElementsText(const TensorView& tensor, int64_t most);
// "f32 2x3", "list of 3".
std::string ValueText(const RunValue& value);

}  // namespace msrt

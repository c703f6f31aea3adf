// Inputs and outputs of any kind as files: a tensor is NAME.npy; a list is a folder NAME with
// 0.npy, 1.npy and so on, or folders 0, 1 and so on where its elements are lists.
#pragma once

#include <random>
#include <string>

#include "core/graph/graph.h"
#include "core/run/value.h"
#include "tools/tensors/compare.h"

namespace msrt {

// `path` is a file or a folder, depending on the type; a list of one tensor, such as an optional
// input, may be a file too.
Result<RunValue> ReadValue(const std::string& path, const Type& type);
// `path` is without .npy. Removes the elements that an earlier, longer list left in the folder.
Status WriteValue(const std::string& path, const RunValue& value);

RunValue ValueOf(const ConstTensor& tensor);
// Returns seeded random numbers; a list gets one element. `dims` are those of the tensors.
Result<RunValue> RandomValue(const Graph& graph, ValueId input, const Dims& dims,
                             std::mt19937_64& random);

// "[1, 2.5, ...]": at most the first `max_elements` elements.
std::string ElementsText(const TensorView& tensor, int64_t max_elements);
// "f32 2x3", "list of 3".
std::string ValueText(const RunValue& value);

}  // namespace msrt

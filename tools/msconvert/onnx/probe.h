// Inspects an ONNX model: which tensors its nodes make, and how to make another runtime return
// them.
#pragma once

#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/base/io.h"
#include "core/graph/tensor.h"

namespace msrt::onnx_import {

// Returns the names of the outputs of all nodes of the main graph.
Result<std::unordered_set<std::string>> NodeOutputs(const std::string& path, Io* io);

// Returns bytes that, appended to a model file, make the named tensors its outputs too: protobuf
// merges concatenated messages.
std::string MoreOutputs(std::span<const std::string> names);

// Reads a file with one tensor, as in ONNX's test data.
Result<ConstTensor> ReadTensorFile(const std::string& path, Io* io);

}  // namespace msrt::onnx_import

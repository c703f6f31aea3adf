// Looking into an ONNX model from outside: which tensors its nodes make, and how another runtime is
// asked to hand them out.
#pragma once

#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/base/io.h"
#include "core/graph/tensor.h"

namespace msrt::onnx_import {

// The names of what the nodes of the main graph make.
Result<std::unordered_set<std::string>> NodeOutputs(const std::string& path, Io* io);

// Bytes that, behind those of a model file, make the named tensors its outputs too: protobuf merges
// what follows itself.
std::string MoreOutputs(std::span<const std::string> names);

// A file that holds one tensor, as ONNX's test data do.
Result<ConstTensor> ReadTensorFile(const std::string& path, Io* io);

}  // namespace msrt::onnx_import

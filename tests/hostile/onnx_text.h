// ONNX models for tests, in protobuf's text form.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onnx-ml.pb.h"

namespace msrt::testing {

// A model of opset 21 with this graph; `rest` is the rest of the model (functions, metadata). The
// text must parse.
onnx::ModelProto OnnxModel(std::string_view graph, std::string_view rest = {});

// An empty model with reflection, which the classes generated from ONNX's definitions lack.
std::unique_ptr<google::protobuf::Message> NewDynamicOnnx();

std::vector<std::byte> OnnxBytes(const onnx::ModelProto& model);

// Small valid models with control flow, sequences, optionals, functions and initializers, to be
// damaged.
struct SampleText {
  const char* name;
  const char* graph;
  const char* rest = "";
};
std::vector<SampleText> SampleTexts();

}  // namespace msrt::testing

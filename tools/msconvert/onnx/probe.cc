#include "tools/msconvert/onnx/probe.h"

#include "onnx-ml.pb.h"
#include "tools/msconvert/external_data.h"
#include "tools/msconvert/onnx/proto_import.h"

namespace msrt::onnx_import {
namespace {

template <typename Message>
Result<Message> ReadMessage(const std::string& path, Io* io) {
  MSRT_ASSIGN_OR_RETURN(const Bytes bytes, io->MapFile(path));
  Message message;
  const bool fits = bytes.data.size() <= static_cast<size_t>(INT32_MAX);
  if (!fits || !message.ParseFromArray(bytes.data.data(), static_cast<int>(bytes.data.size()))) {
    return InvalidModel("file '", path, "' holds no ", message.GetTypeName());
  }
  return message;
}

}  // namespace

Result<std::unordered_set<std::string>> NodeOutputs(const std::string& path, Io* io) {
  MSRT_ASSIGN_OR_RETURN(const onnx::ModelProto model, ReadMessage<onnx::ModelProto>(path, io));
  std::unordered_set<std::string> names;
  for (const auto& node : model.graph().node())
    names.insert(node.output().begin(), node.output().end());
  names.erase("");
  return names;
}

std::string MoreOutputs(std::span<const std::string> names) {
  onnx::ModelProto patch;
  for (const std::string& name : names) patch.mutable_graph()->add_output()->set_name(name);
  return patch.SerializeAsString();
}

Result<ConstTensor> ReadTensorFile(const std::string& path, Io* io) {
  MSRT_ASSIGN_OR_RETURN(onnx::TensorProto tensor, ReadMessage<onnx::TensorProto>(path, io));
  return TakeTensor(&tensor, ExternalData("", io));
}

}  // namespace msrt::onnx_import

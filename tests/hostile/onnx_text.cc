#include "tests/hostile/onnx_text.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>

#include <fstream>

#include "core/base/status.h"

namespace msrt::testing {

std::unique_ptr<google::protobuf::Message> NewDynamicOnnx() {
  static google::protobuf::DescriptorPool pool;
  static google::protobuf::DynamicMessageFactory factory;
  static const google::protobuf::Message* const model = [] {
    google::protobuf::FileDescriptorSet files;
    std::ifstream in(MSRT_ONNX_DESCRIPTORS, std::ios::binary);
    MSRT_CHECK(files.ParseFromIstream(&in) && files.file_size() == 1);
    MSRT_CHECK(pool.BuildFile(files.file(0)) != nullptr);
    return factory.GetPrototype(pool.FindMessageTypeByName("onnx.ModelProto"));
  }();
  return std::unique_ptr<google::protobuf::Message>(model->New());
}

onnx::ModelProto OnnxModel(std::string_view graph, std::string_view rest) {
  const std::unique_ptr<google::protobuf::Message> written = NewDynamicOnnx();
  const std::string text =
      StrCat("ir_version: 10 opset_import { version: 21 } graph { name: 'g' ", graph, " } ", rest);
  MSRT_CHECK(google::protobuf::TextFormat::ParseFromString(text, written.get()));
  onnx::ModelProto model;
  MSRT_CHECK(model.ParseFromString(written->SerializeAsString()));
  return model;
}

std::vector<std::byte> OnnxBytes(const onnx::ModelProto& model) {
  std::vector<std::byte> bytes(model.ByteSizeLong());
  MSRT_CHECK(model.SerializeToArray(bytes.data(), static_cast<int>(bytes.size())));
  return bytes;
}

std::vector<SampleText> SampleTexts() {
  return {
      {"chain", R"(
        input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_param: 'n' }
          dim { dim_value: 3 } } } } }
        initializer { name: 'w' dims: 3 dims: 2 data_type: 1 float_data: [1, 2, 3, 4, 5, 6] }
        node { name: 'product' op_type: 'MatMul' input: 'x' input: 'w' output: 'p' }
        node { name: 'relu' op_type: 'Relu' input: 'p' output: 'y' }
        output { name: 'y' type { tensor_type { elem_type: 1 } } })"},
      {"branches", R"(
        input { name: 'c' type { tensor_type { elem_type: 9 shape {} } } }
        input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
        node { name: 'if' op_type: 'If' input: 'c' output: 'y'
          attribute { name: 'then_branch' type: GRAPH g { name: 't' node { op_type: 'Neg' input:
            'x' output: 'a' } output { name: 'a' } } }
          attribute { name: 'else_branch' type: GRAPH g { name: 'e'
            node { op_type: 'Relu' input: 'x' output: 'b' } output { name: 'b' } } } }
        output { name: 'y' })"},
      {"loop", R"(
        input { name: 'trips' type { tensor_type { elem_type: 7 shape {} } } }
        input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
        node { name: 'loop' op_type: 'Loop' input: 'trips' input: ''
          input: 'x' output: 'last' output: 'all'
          attribute { name: 'body' type: GRAPH g { name: 'body'
            input { name: 'i' } input { name: 'go' } input { name: 'v' }
            node { op_type: 'Identity' input: 'go' output: 'again' }
            node { op_type: 'Add' input: 'v' input: 'x' output: 'next' }
            node { op_type: 'Identity' input: 'next' output: 'scan' }
            output { name: 'again' } output { name: 'next' } output { name: 'scan' } } } }
        output { name: 'last' } output { name: 'all' })"},
      {"scan", R"(
        input { name: 's' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
        input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 3 }
          dim { dim_value: 2 } } } } }
        node { name: 'scan' op_type: 'Scan' input: 's' input: 'x' output: 'end' output: 'sums'
          attribute { name: 'num_scan_inputs' type: INT i: 1 }
          attribute { name: 'body' type: GRAPH g { name: 'body'
            input { name: 'a' } input { name: 'b' }
            node { op_type: 'Add' input: 'a' input: 'b' output: 'c' }
            node { op_type: 'Identity' input: 'c' output: 'd' }
            output { name: 'c' } output { name: 'd' } } } }
        output { name: 'end' } output { name: 'sums' })"},
      {"sequence", R"(
        input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } }
        node { name: 'split' op_type: 'SplitToSequence' input: 'x' output: 'list' }
        node { name: 'map' op_type: 'SequenceMap' input: 'list' output: 'mapped'
          attribute { name: 'body' type: GRAPH g { name: 'body' input { name: 'e' }
            node { op_type: 'Neg' input: 'e' output: 'r' } output { name: 'r' } } } }
        node { name: 'join' op_type: 'ConcatFromSequence' input: 'mapped' output: 'y'
          attribute { name: 'axis' type: INT i: 0 } }
        output { name: 'y' })"},
      {"optional", R"(
        input { name: 'o' type { optional_type { elem_type { tensor_type { elem_type: 1 shape { dim
          { dim_value: 2 } } } } } } }
        node { name: 'has' op_type: 'OptionalHasElement' input: 'o' output: 'h' }
        node { name: 'if' op_type: 'If' input: 'h' output: 'y'
          attribute { name: 'then_branch' type: GRAPH g {
            node { op_type: 'OptionalGetElement' input: 'o' output: 'a' } output { name: 'a' } } }
          attribute { name: 'else_branch' type: GRAPH g {
            node { op_type: 'Constant' output: 'z' attribute { name: 'value_floats' type: FLOATS
              floats: [0, 0] } }
            output { name: 'z' } } } }
        output { name: 'y' })"},
      {"function", R"(
        input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
        node { name: 'call' domain: 'own' op_type: 'Twice' input: 'x' output: 'y'
          attribute { name: 'alpha' type: FLOAT f: 0.5 } }
        output { name: 'y' })",
       R"(opset_import { domain: 'own' version: 1 }
        functions { name: 'Twice' domain: 'own' input: 'a' output: 'c' attribute: 'alpha'
          opset_import { version: 21 }
          node { op_type: 'LeakyRelu' input: 'a' output: 'b'
            attribute { name: 'alpha' type: FLOAT ref_attr_name: 'alpha' } }
          node { op_type: 'Add' input: 'b' input: 'b' output: 'c' } })"},
      {"network", R"(
        input { name: 'x' type { tensor_type { elem_type: 1
          shape { dim { dim_value: 1 } dim { dim_value: 1 } dim { dim_param: 'h' }
            dim { dim_value: 8 } } } } }
        initializer { name: 'w' dims: [2, 1, 3, 3] data_type: 1
          float_data: [1, 0, 1, 2, 0, 2, 1, 0, 1, 1, 2, 1, 0, 0, 0, 1, 2, 1] }
        initializer { name: 'shape' dims: 2 data_type: 7 int64_data: [0, -1] }
        node { name: 'conv' op_type: 'Conv' input: 'x' input: 'w' output: 'a'
          attribute { name: 'pads' type: INTS ints: [1, 1, 1, 1] } }
        node { name: 'pool' op_type: 'MaxPool' input: 'a' output: 'b'
          attribute { name: 'kernel_shape' type: INTS ints: [2, 2] }
          attribute { name: 'strides' type: INTS ints: [2, 2] } }
        node { name: 'flat' op_type: 'Reshape' input: 'b' input: 'shape' output: 'c' }
        node { name: 'softmax' op_type: 'Softmax' input: 'c' output: 'y'
          attribute { name: 'axis' type: INT i: 1 } }
        output { name: 'y' })"},
  };
}

}  // namespace msrt::testing

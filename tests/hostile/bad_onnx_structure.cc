#include "tests/hostile/bad_onnx.h"

namespace msrt::testing {
namespace {

#define MSRT_X \
  "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } "
#define MSRT_Y " output { name: 'y' }"
#define MSRT_RELU "node { name: 'relu' op_type: 'Relu' input: 'x' output: 'y' }"

std::vector<std::byte> OfOpset(int64_t version, std::string_view graph) {
  onnx::ModelProto model = OnnxModel(graph);
  model.mutable_opset_import(0)->set_version(version);
  return OnnxBytes(model);
}

constexpr BadOnnx kBadStructure[] = {
    // Names.
    {"CircleOfTwo", "'first' depends on itself",
     MSRT_X "node { name: 'first' op_type: 'Add' input: 'x' input: 'b' output: 'a' } node { name: "
            "'second' op_type: 'Neg' input: 'a' output: "
            "'b' } output { name: 'b' }"},
    {"CircleOfOne", "'self' depends on itself",
     MSRT_X "node { name: 'self' op_type: 'Add' input: 'x' input: 'y' output: 'y' }" MSRT_Y},
    {"MissingInitializer", "input 'w' is made by no node",
     MSRT_X "node { name: 'add' op_type: 'Add' input: 'x' input: 'w' output: 'y' }" MSRT_Y},
    {"MissingOutput", "output 'z' of graph 'g' is made by no node",
     MSRT_X MSRT_RELU " output { name: 'z' }"},
    {"OutputWithoutAName", "is made by no node", MSRT_X MSRT_RELU " output { }"},
    {"NoOutputs", "graph 'g' has no outputs", MSRT_X MSRT_RELU},
    {"TwoNodesMakeOne", "two nodes make the value 'y'",
     MSRT_X MSRT_RELU " node { op_type: 'Neg' input: 'x' output: 'y' }" MSRT_Y},
    {"NodeMakesAnInput", "two things make the value 'x'",
     MSRT_X "node { name: 'n' op_type: 'Neg' input: 'x' output: 'x' } output { name: 'x' }"},
    {"OneNodeMakesOneTwice", "two nodes make the value 'y'",
     MSRT_X "node { op_type: 'Split' input: 'x' output: 'y' output: 'y' }" MSRT_Y},
    {"TwoInputsOfOneName", "two inputs of graph 'g' are called 'x'",
     MSRT_X MSRT_X MSRT_RELU MSRT_Y},
    {"TwoInitializersOfOneName", "two things make the value 'w'",
     MSRT_X "initializer { name: 'w' dims: 1 data_type: 1 float_data: 1 } initializer { name: 'w' "
            "dims: 1 data_type: 1 float_data: 2 }" MSRT_RELU MSRT_Y},
    {"InputWithoutAName", "has no name",
     "input { type { tensor_type { elem_type: 1 } } } node { op_type: 'Neg' input: '' output: 'y' "
     "}" MSRT_Y},
    {"InitializerWithoutAName", "has no name",
     MSRT_X "initializer { dims: 1 data_type: 1 float_data: 1 }" MSRT_RELU MSRT_Y},
    // Types.
    {"TypesDisagree", "Add",
     MSRT_X "input { name: 'i' type { tensor_type { elem_type: 7 shape { dim { dim_value: 2 } } } "
            "} } node { name: 'add' op_type: 'Add' input: "
            "'x' input: 'i' output: 'y' }" MSRT_Y},
    {"DimsDisagree", "Add",
     MSRT_X "initializer { name: 'w' dims: 3 data_type: 1 float_data: [1, 2, 3] } node { name: "
            "'add' op_type: 'Add' input: 'x' input: 'w' "
            "output: 'y' }" MSRT_Y},
    {"TypeThatDoesNotExist", "element type 99 does not exist",
     "input { name: 'x' type { tensor_type { elem_type: 99 } } } " MSRT_RELU MSRT_Y},
    {"TypeBelowZero", "element type -5 does not exist",
     "input { name: 'x' type { tensor_type { elem_type: -5 } } } " MSRT_RELU MSRT_Y},
    {"TypeOfStrings", "STRING",
     "input { name: 'x' type { tensor_type { elem_type: 8 } } } " MSRT_RELU MSRT_Y},
    {"InputWithoutAType", "input 'x' is of no type", "input { name: 'x' } " MSRT_RELU MSRT_Y},
    {"InputIsAMap", "a map",
     "input { name: 'x' type { map_type { key_type: 7 } } } " MSRT_RELU MSRT_Y},
    {"InputIsSparse", "a sparse tensor",
     "input { name: 'x' type { sparse_tensor_type { elem_type: 1 } } } " MSRT_RELU MSRT_Y},
    {"RankTooHigh", "at most",
     "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim {} dim {} dim {} dim {} dim "
     "{} dim {} dim {} dim {} dim {} dim {} "
     "dim {} "
     "dim {} dim {} dim {} dim {} dim {} dim {} dim {} dim {} dim {} } } } } " MSRT_RELU MSRT_Y},
    {"ExtentOfAnEmptyImage", "more than 2^56 elements",
     "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 0 } dim { "
     "dim_value: 1 } dim { dim_value: "
     "9223372036854775807 } } } } } node { op_type: 'MaxPool' input: 'x' output: 'y' attribute { "
     "name: 'kernel_shape' type: INTS ints: 2 } "
     "attribute { name: 'pads' type: INTS ints: [1, 1] } } " MSRT_Y},
    {"DimTooLarge", "more than 2^56 elements",
     "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: "
     "9223372036854775807 } dim { dim_value: "
     "9223372036854775807 } } } } } " MSRT_RELU MSRT_Y},
    // Tensors.
    {"NegativeDim", "tensor 'w' has the dim -1",
     MSRT_X "initializer { name: 'w' dims: -1 data_type: 1 }" MSRT_RELU MSRT_Y},
    {"DimsThatOverflow", "tensor 'w' has dims",
     MSRT_X
     "initializer { name: 'w' dims: [4294967296, 4294967296] data_type: 1 raw_data: '' }" MSRT_RELU
         MSRT_Y},
    {"DimsThatWrapToZero", "tensor 'w' has dims",
     MSRT_X "initializer { name: 'w' dims: [4294967296, 4294967296, 4294967296, 4294967296] "
            "data_type: 1 raw_data: '' }" MSRT_RELU MSRT_Y},
    {"HugeTensorWithoutData", "tensor 'w'",
     MSRT_X
     "initializer { name: 'w' dims: 1099511627775 data_type: 1 raw_data: '' }" MSRT_RELU MSRT_Y},
    {"RankOfATensorTooHigh", "tensor 'w' has rank",
     MSRT_X "initializer { name: 'w' dims: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
            "1, 1] data_type: 1 float_data: 1 }" MSRT_RELU MSRT_Y},
    {"RawDataTooShort", "tensor 'w' f32[2] needs 8 bytes, has 7",
     MSRT_X "initializer { name: 'w' dims: 2 data_type: 1 raw_data: '1234567' }" MSRT_RELU MSRT_Y},
    {"RawDataTooLong", "tensor 'w' f32[2] needs 8 bytes, has 9",
     MSRT_X
     "initializer { name: 'w' dims: 2 data_type: 1 raw_data: '123456789' }" MSRT_RELU MSRT_Y},
    {"TooFewElements", "tensor 'w' of dims [3] has 2 elements",
     MSRT_X "initializer { name: 'w' dims: 3 data_type: 1 float_data: [1, 2] }" MSRT_RELU MSRT_Y},
    {"TooManyElements", "tensor 'w' of dims [1] has 2 elements",
     MSRT_X "initializer { name: 'w' dims: 1 data_type: 7 int64_data: [1, 2] }" MSRT_RELU MSRT_Y},
    {"ElementsInTheWrongField", "tensor 'w' of dims [2] has 0 elements",
     MSRT_X "initializer { name: 'w' dims: 2 data_type: 7 float_data: [1, 2] }" MSRT_RELU MSRT_Y},
    {"HalvesOfFourBitsTooMany", "tensor 'w'",
     MSRT_X
     "initializer { name: 'w' dims: 2 data_type: 22 int32_data: [1, 2, 3] }" MSRT_RELU MSRT_Y},
    {"TensorOfNoType", "tensor 'w': element",
     MSRT_X "initializer { name: 'w' dims: 1 float_data: 1 }" MSRT_RELU MSRT_Y},
    {"TensorOfAnUnknownType", "tensor 'w': element type 1000",
     MSRT_X "initializer { name: 'w' dims: 1 data_type: 1000 float_data: 1 }" MSRT_RELU MSRT_Y},
    {"TensorOfStrings", "STRING",
     MSRT_X "initializer { name: 'w' dims: 1 data_type: 8 string_data: 'a' } node { op_type: 'Add' "
            "input: 'x' input: 'w' output: 'y' }" MSRT_Y},
    {"SparseInitializers", "sparse initializers",
     MSRT_X "sparse_initializer { dims: 2 }" MSRT_RELU MSRT_Y},
    {"ExternalDataOfNoFile", "tensor 'w'",
     MSRT_X "initializer { name: 'w' dims: 2 data_type: 1 data_location: EXTERNAL external_data { "
            "key: 'location' value: 'w.bin' } }" MSRT_RELU MSRT_Y},
    // Attributes.
    {"AttributeOfTheWrongType", "attribute axis is of kind string",
     MSRT_X "node { name: 's' op_type: 'Softmax' input: 'x' output: 'y' attribute { name: 'axis' "
            "type: STRING s: 'one' } }" MSRT_Y},
    {"AttributeOfNoType", "'axis'",
     MSRT_X "node { name: 's' op_type: 'Softmax' input: 'x' output: 'y' attribute { name: 'axis' "
            "i: 1 } }" MSRT_Y},
    {"AttributeTwice", "attribute 'axis' is there twice",
     MSRT_X "node { name: 's' op_type: 'Softmax' input: 'x' output: 'y' attribute { name: 'axis' "
            "type: INT i: 0 } attribute { name: 'axis' "
            "type: INT i: 0 } }" MSRT_Y},
    {"AttributeUnknown", "attribute 'color'",
     MSRT_X "node { name: 's' op_type: 'Softmax' input: 'x' output: 'y' attribute { name: 'color' "
            "type: INT i: 1 } }" MSRT_Y},
    {"AttributeOutOfRange", "'s'",
     MSRT_X "node { name: 's' op_type: 'Softmax' input: 'x' output: 'y' attribute { name: 'axis' "
            "type: INT i: 9223372036854775807 } }" MSRT_Y},
    {"AttributeWithATornTensor", "tensor 'v'",
     MSRT_X "node { name: 'c' op_type: 'Constant' output: 'y' attribute { name: 'value' type: "
            "TENSOR t { name: 'v' dims: 4 data_type: 1 "
            "raw_data: '12' } } }" MSRT_Y},
    {"AttributeIsAGraph", "GRAPH",
     MSRT_X "node { name: 's' op_type: 'Softmax' input: 'x' output: 'y' attribute { name: 'axis' "
            "type: GRAPH g { } } }" MSRT_Y},
    {"CastToATypeThatDoesNotExist", "'to'",
     MSRT_X "node { name: 'c' op_type: 'Cast' input: 'x' output: 'y' attribute { name: 'to' type: "
            "INT i: 4294967297 } }" MSRT_Y},
    {"RequiredAttributeIsMissing", "'to'",
     MSRT_X "node { name: 'c' op_type: 'Cast' input: 'x' output: 'y' }" MSRT_Y},
    {"KernelOfZero", "'p'",
     "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } dim { "
     "dim_value: 1 } dim { dim_value: 4 } } } } } "
     "node { "
     "name: 'p' op_type: 'MaxPool' input: 'x' output: 'y' attribute { name: 'kernel_shape' type: "
     "INTS ints: 0 } }" MSRT_Y},
    // Nodes.
    {"UnknownOp", "the op is not known",
     MSRT_X "node { name: 'n' op_type: 'Frobnicate' input: 'x' output: 'y' }" MSRT_Y},
    {"OpWithoutAName", "the op is not known",
     MSRT_X "node { name: 'n' input: 'x' output: 'y' }" MSRT_Y},
    {"TooManyInputs", "'n'",
     MSRT_X
     "node { name: 'n' op_type: 'Relu' input: 'x' input: 'x' input: 'x' output: 'y' }" MSRT_Y},
    {"NoInputs", "'n'", MSRT_X "node { name: 'n' op_type: 'Relu' output: 'y' }" MSRT_Y},
    {"TooManyOutputs", "'n'",
     MSRT_X "node { name: 'n' op_type: 'Relu' input: 'x' output: 'y' output: 'z' }" MSRT_Y},
    {"NoNodesOutput", "'n'",
     MSRT_X "node { name: 'n' op_type: 'Identity' input: 'x' } node { op_type: 'Relu' input: 'x' "
            "output: 'y' }" MSRT_Y},
    {"ConstantWithoutOutput", "it has no outputs",
     MSRT_X MSRT_RELU " node { name: 'c' op_type: 'Constant' attribute { name: 'value_int' type: "
                      "INT i: 1 } }" MSRT_Y},
    {"SoftmaxOfNothing", "'n'", nullptr, "",
     [] { return OfOpset(11, "node { name: 'n' op_type: 'Softmax' output: 'y' }" MSRT_Y); }},
    {"ClipOfNothing", "'n'", nullptr, "",
     [] {
       return OfOpset(6,
                      "node { name: 'n' op_type: 'Clip' output: 'y' attribute { name: 'min' type: "
                      "FLOAT f: 1 } }" MSRT_Y);
     }},
    {"PadOfNothing", "'n'", nullptr, "",
     [] {
       return OfOpset(2,
                      "node { name: 'n' op_type: 'Pad' output: 'y' attribute { name: 'pads' type: "
                      "INTS ints: 1 } attribute { name: 'value' "
                      "type: FLOAT f: 1e30 } }" MSRT_Y);
     }},
    {"SumOfOneThatIsLeftOut", "'n'", nullptr, "",
     [] {
       return OfOpset(6, MSRT_X
                      "node { name: 'n' op_type: 'Add' input: '' input: 'x' output: 'y' attribute "
                      "{ name: 'broadcast' type: INT i: 1 } "
                      "attribute { name: 'axis' type: INT i: 0 } }" MSRT_Y);
     }},
    {"AxisOfASumThatWraps", "does not fit operands", nullptr, "",
     [] {
       return OfOpset(6, MSRT_X
                      "node { name: 'n' op_type: 'Add' input: 'x' input: 'x' output: 'y' attribute "
                      "{ name: 'broadcast' type: INT i: 1 } "
                      "attribute { name: 'axis' type: INT i: 9223372036854775807 } }" MSRT_Y);
     }},
    {"IdentityOfAListWithoutOutput", "'n'",
     "input { name: 'x' type { sequence_type { elem_type { tensor_type { elem_type: 1 } } } } } "
     "node { name: 'n' op_type: 'Identity' "
     "input: 'x' "
     "} node { op_type: 'SequenceLength' input: 'x' output: 'y' }" MSRT_Y},
    {"NoOpsetOfTheDomain", "the model imports no opset for the standard ops", nullptr, "",
     [] {
       onnx::ModelProto model = OnnxModel(MSRT_X MSRT_RELU MSRT_Y);
       model.mutable_opset_import(0)->set_domain("ai.onnx.ml");
       return OnnxBytes(model);
     }},
    {"NoOpset", "the model imports no opset", nullptr, "",
     [] {
       onnx::ModelProto model = OnnxModel(MSRT_X MSRT_RELU MSRT_Y);
       model.clear_opset_import();
       return OnnxBytes(model);
     }},
    {"OpsetBelowZero", "it uses opset -7", nullptr, "",
     [] {
       onnx::ModelProto model = OnnxModel(MSRT_X MSRT_RELU MSRT_Y);
       model.mutable_opset_import(0)->set_version(-7);
       return OnnxBytes(model);
     }},
    {"NoGraph", "the file holds no ONNX graph", nullptr, "",
     [] {
       onnx::ModelProto model = OnnxModel("");
       model.clear_graph();
       return OnnxBytes(model);
     }},
    {"EmptyFile", "the file holds no ONNX graph", nullptr, "",
     [] { return std::vector<std::byte>(); }},
    {"NoProtobuf", "the bytes are no ONNX model", nullptr, "",
     [] { return std::vector<std::byte>(64, std::byte{0xff}); }},
};

}  // namespace

std::span<const BadOnnx> BadStructure() { return kBadStructure; }

}  // namespace msrt::testing

#include <cmath>

#include "tests/hostile/bad_model.h"

namespace msrt::testing {
namespace {

constexpr BadModel kUnknownModels[] = {
    {"UnknownOp", Code::kUnsupported, "'bad' (Teleport)",
     [](ModelDraft& d) {
       d.Add("Teleport", {d.Input({2})});
       d.graph().value(d.node().outputs[0]).type = Type::Tensor(DType::kF32, {2});
     }},
    {"UnknownOpOfUnknownType", kBad, "'bad' (Teleport): output 0 'y0' has no declared type",
     [](ModelDraft& d) { d.Add("Teleport", {d.Input({2})}); }},
    {"UnknownDomain", Code::kUnsupported, "'bad' (com.example.Relu)",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({2})}, {}, 1, "com.example");
       d.graph().value(d.node().outputs[0]).type = Type::Tensor(DType::kF32, {2});
     }},
    {"NewerVersion", Code::kUnsupported, "'bad' (Relu)",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({2})});
       d.node().version = 999;
       d.graph().value(d.node().outputs[0]).type = Type::Tensor(DType::kF32, {2});
     }},
    {"NegativeVersion", kBad, "version -1 is negative",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({2})});
       d.node().version = -1;
     }},
    {"UnknownAttribute", kBad, "'bad' (Relu): attribute 'slope' is unknown",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({2})}, {{"slope", 1.0}});
     }},
    {"AttributeOfAnotherKind", kBad, "'bad' (Softmax): attribute axis is of kind float",
     [](ModelDraft& d) {
       d.Add("Softmax", {d.Input({2})}, {{"axis", 1.0}});
     }},
    {"ListForANumber", kBad, "'bad' (Softmax): attribute axis is of kind ints",
     [](ModelDraft& d) {
       d.Add("Softmax", {d.Input({2})}, {{"axis", Ints{0}}});
     }},
    {"TensorForANumber", kBad, "'bad' (Softmax): attribute axis is of kind tensor",
     [](ModelDraft& d) {
       d.Add("Softmax", {d.Input({2})}, {{"axis", ConstTensor::Int64s(Ints{0})}});
     }},
    {"UnknownMode", kBad, "'bad' (Conv): auto_pad = 'DIFFERENT'",
     [](ModelDraft& d) {
       d.Add("Conv", {d.Input({1, 1, 2, 2}), d.Ones({1, 1, 1, 1})}, {{"auto_pad", "DIFFERENT"}});
     }},
    {"UnknownReduction", kBad, "'bad' (ScatterND): reduction = 'xor'",
     [](ModelDraft& d) {
       d.Add("ScatterND", {d.Input({2}), d.Input({1, 1}, DType::kI64), d.Input({1})},
             {{"reduction", "xor"}});
     }},
    {"UnknownDirection", kBad, "'bad' (BitShift): direction = 'UP'",
     [](ModelDraft& d) {
       d.Add("BitShift", {d.List({1}), d.List({1})}, {{"direction", "UP"}});
     }},
    {"UnknownActivation", kBad, "'bad' (msrt.FusedMatMul): activation = 'exec'",
     [](ModelDraft& d) {
       d.Add("FusedMatMul", {d.Input({2, 2}), d.Ones({2, 2})}, {{"activation", "exec"}}, 1, "msrt");
     }},
    {"AlphaNotANumber", kBad, "'bad' (LeakyRelu): alpha is not a number",
     [](ModelDraft& d) {
       d.Add("LeakyRelu", {d.Input({2})}, {{"alpha", NAN}});
     }},
    {"EpsilonNegative", kBad, "'bad' (InstanceNormalization): epsilon = -1",
     [](ModelDraft& d) {
       d.Add("InstanceNormalization", {d.Input({1, 2, 2}), d.Ones({2}), d.Ones({2})},
             {{"epsilon", -1.0}});
     }},
    {"TrainingMode", kBad, "'bad' (BatchNormalization): training_mode = 1",
     [](ModelDraft& d) {
       const ValueId two = d.Ones({2});
       d.Add("BatchNormalization", {d.Input({1, 2, 2}), two, two, two, two},
             {{"training_mode", 1}});
     }},
    {"ElementTypeOfTheOp", kBad, "'bad' (Exp): input 0 'X' has element type i64",
     [](ModelDraft& d) { d.Add("Exp", {d.List({1})}); }},
    {"StorageTypeInArithmetic", kBad, "'bad' (Add): input 0 'A' has element type i4",
     [](ModelDraft& d) {
       const ValueId x = d.Input({2}, DType::kI4);
       d.Add("Add", {x, x});
     }},
    {"TwoElementTypes", kBad, "'bad' (Add): input 1 'B' has element type f64",
     [](ModelDraft& d) {
       d.Add("Add", {d.Input({2}), d.Input({2}, DType::kF64)});
     }},
    {"ListForATensor", kBad, "'bad' (Relu): input 0 'X' is a list",
     [](ModelDraft& d) {
       Type list;
       list.kind = TypeKind::kList;
       list.element = std::make_shared<const Type>(Type::Tensor(DType::kF32, {2}));
       d.Add("Relu", {d.InputOf(list)});
     }},
    {"DeclaredDimsAreWrong", kBad, "'bad' (Relu): output 0 'y0' is declared f32[3]",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({2})});
       d.graph().value(d.node().outputs[0]).type = Type::Tensor(DType::kF32, {3});
     }},
    {"DeclaredElementTypeIsWrong", kBad, "'bad' (Relu): output 0 'y0' is declared i8",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({2})});
       d.graph().value(d.node().outputs[0]).type = Type::Tensor(DType::kI8, {2});
     }},
    {"SymbolThatDoesNotExist", kBad, "symbol 5",
     [](ModelDraft& d) { d.Add("Relu", {d.Input({SymbolDim(5)})}); }},
    {"EyeOfAStorageType", kBad, "'bad' (EyeLike): dtype",
     [](ModelDraft& d) {
       d.Add("EyeLike", {d.Input({2, 2})}, {{"dtype", DType::kU4}});
     }},
    {"StashTypeIsNoFloat", kBad, "'bad' (LayerNormalization): stash_type",
     [](ModelDraft& d) {
       d.Add("LayerNormalization", {d.Input({2}), d.Ones({2})}, {{"stash_type", DType::kBool}});
     }},
    // Attributes that only the runtime sets: the position of a piece in the whole.
    {"PieceOfAMaxPool", kBad, "'bad' (MaxPool): attribute 'input_dims'",
     [](ModelDraft& d) {
       d.Add("MaxPool", {d.Input({1, 1, 2, 2})},
             {{"kernel_shape", Ints{1, 1}},
              {"input_dims", Ints{INT64_MAX}},
              {"input_origin", Ints{INT64_MAX}}},
             2);
     }},
    {"PieceOfAConv", kBad, "'bad' (Conv): attribute 'output_channels'",
     [](ModelDraft& d) {
       d.Add("Conv", {d.Input({1, 2, 2, 2}), d.Ones({2, 2, 1, 1})},
             {{"output_channels", Ints{0, 1000, 0}}});
     }},
    {"PieceOfAConvTranspose", kBad, "'bad' (ConvTranspose): attribute 'piece_offsets'",
     [](ModelDraft& d) {
       d.Add("ConvTranspose", {d.Input({1, 1, 2}), d.Ones({1, 1, 2})},
             {{"piece_offsets", Ints{-4000000000}}, {"piece_outputs", Ints{9}}});
     }},
    {"PieceOfAPad", kBad, "'bad' (Pad): attribute 'piece_input_begin'",
     [](ModelDraft& d) {
       d.Add("Pad", {d.Input({2})}, {{"piece_input_begin", Ints{1000}}, {"pads", Ints{1, 1}}});
     }},
    {"PieceOfATile", kBad, "'bad' (Tile): attribute 'piece_begin'",
     [](ModelDraft& d) {
       d.Add("Tile", {d.Input({2})},
             {{"piece_begin", Ints{3}}, {"piece_dims", Ints{1}}, {"repeats", Ints{2}}});
     }},
    {"PieceOfAResize", kBad, "'bad' (Resize): attribute 'input_dims'",
     [](ModelDraft& d) {
       d.Add("Resize", {d.Input({2})},
             {{"input_dims", Ints{int64_t{1} << 56}}, {"sizes", Ints{4}}});
     }},
    {"PieceOfARange", kBad, "'bad' (Range): attribute 'piece_begin'",
     [](ModelDraft& d) {
       d.Add("Range", {d.List({0}), d.List({4}), d.List({1})},
             {{"piece_begin", 1}, {"piece_count", 2}});
     }},
    {"PieceOfAnAverage", kBad, "'bad' (GlobalAveragePool): attribute 'divisor'",
     [](ModelDraft& d) {
       d.Add("GlobalAveragePool", {d.Input({1, 1, 2})}, {{"divisor", 0}});
     }},
    {"PieceOfAOneHot", kBad, "'bad' (OneHot): attribute 'class_begin'",
     [](ModelDraft& d) {
       d.Add("OneHot", {d.List({0}), kNoValue, d.Ones({2})},
             {{"depth", 3}, {"class_begin", INT64_MAX}, {"class_end", 0}});
     }},
    {"PieceOfAnAttention", kBad, "'bad' (Attention): attribute 'row_offset'",
     [](ModelDraft& d) {
       const ValueId x = d.Input({1, 1, 2, 2});
       d.Add("Attention", {x, x, x}, {{"is_causal", 1}, {"row_offset", int64_t{1} << 56}});
     }},
};

}  // namespace

std::span<const BadModel> UnknownModels() { return kUnknownModels; }

}  // namespace msrt::testing

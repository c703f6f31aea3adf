#include "tests/hostile/bad_model.h"

namespace msrt::testing {
namespace {

constexpr BadModel kMissingModels[] = {
    {"NoInputs", kBad, "'bad' (Add): input 0 'A' is missing",
     [](ModelDraft& d) { d.Add("Add", {}); }},
    {"OneInput", kBad, "'bad' (Add): input 1 'B' is missing",
     [](ModelDraft& d) { d.Add("Add", {d.Input({2})}); }},
    {"RequiredInputLeftOut", kBad, "'bad' (Conv): input 0 'X' is missing",
     [](ModelDraft& d) {
       d.Add("Conv", {kNoValue, d.Ones({1, 1, 1, 1})});
     }},
    {"VariadicInputLeftOut", kBad, "'bad' (Concat): input 1 of a variadic list is left out",
     [](ModelDraft& d) {
       d.Add("Concat", {d.Input({2}), kNoValue, d.Input({2})}, {{"axis", 0}});
     }},
    {"TooManyInputs", kBad, "'bad' (Relu): has 2 inputs",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({2}), d.Input({2})});
     }},
    {"NoOutputs", kBad, "'bad' (Relu): has 0 outputs",
     [](ModelDraft& d) { d.Add("Relu", {d.Input({2})}, {}, 0); }},
    {"TooManyOutputs", kBad, "'bad' (Relu): has 2 outputs",
     [](ModelDraft& d) { d.Add("Relu", {d.Input({2})}, {}, 2); }},
    {"TopKWithoutK", kBad, "'bad' (TopK): 'k' is missing",
     [](ModelDraft& d) { d.Add("TopK", {d.Input({2})}, {}, 2); }},
    {"TopKOfNoNumber", kBad, "'bad' (TopK)",
     [](ModelDraft& d) {
       d.Add("TopK", {d.Input({2}), d.Given(ConstTensor::Int64s({}))}, {}, 2);
     }},
    {"ReshapeWithoutShape", kBad, "'bad' (Reshape): 'shape' is missing",
     [](ModelDraft& d) { d.Add("Reshape", {d.Input({2})}); }},
    {"ReshapeOfTwoShapes", kBad, "'bad' (Reshape): 'shape' is given both",
     [](ModelDraft& d) {
       d.Add("Reshape", {d.Input({2}), d.List({2})}, {{"shape", Ints{2}}});
     }},
    {"ReshapeShapeOfRankTwo", kBad, "'bad' (Reshape): input 1 'shape' has shape [1, 1]",
     [](ModelDraft& d) {
       d.Add("Reshape", {d.Input({2}), d.Input({1, 1}, DType::kI64)});
     }},
    {"ConcatWithoutAxis", kBad, "'bad' (Concat): attribute 'axis' is missing",
     [](ModelDraft& d) { d.Add("Concat", {d.Input({2})}); }},
    {"MaxPoolWithoutKernel", kBad, "'bad' (MaxPool): attribute 'kernel_shape' is missing",
     [](ModelDraft& d) {
       d.Add("MaxPool", {d.Input({1, 1, 2, 2})});
     }},
    {"CastToNothing", kBad, "'bad' (Cast)",
     [](ModelDraft& d) {
       d.Add("Cast", {d.Input({2})}, {{"to", DType::kNone}});
     }},
    {"SplitWithoutSizes", kBad, "'bad' (Split): needs either",
     [](ModelDraft& d) { d.Add("Split", {d.Input({2})}); }},
    {"SliceWithoutEnds", kBad, "'bad' (Slice): 'ends' is missing",
     [](ModelDraft& d) {
       d.Add("Slice", {d.Input({2})}, {{"starts", Ints{0}}});
     }},
    {"ResizeWithoutSizes", kBad, "'bad' (Resize)",
     [](ModelDraft& d) { d.Add("Resize", {d.Input({2})}); }},
    {"ResizeEmptyScales", kBad, "'bad' (Resize)",
     [](ModelDraft& d) {
       d.Add("Resize", {d.Input({2}), kNoValue, d.Given(ConstTensor::Floats({0}, {}))});
     }},
    {"ConvOfAScalar", kBad, "'bad' (Conv)",
     [](ModelDraft& d) {
       d.Add("Conv", {d.Input({}), d.Ones({1, 1, 1, 1})});
     }},
    {"ConvWeightsOfRankZero", kBad, "'bad' (Conv)",
     [](ModelDraft& d) {
       d.Add("Conv", {d.Input({1, 1, 2, 2}), d.Ones({})});
     }},
    {"ConvBiasTooShort", kBad, "'bad' (Conv)",
     [](ModelDraft& d) {
       d.Add("Conv", {d.Input({1, 1, 2, 2}), d.Ones({4, 1, 1, 1}), d.Ones({3})});
     }},
    {"MatMulOfAScalar", kBad, "'bad' (MatMul)",
     [](ModelDraft& d) {
       d.Add("MatMul", {d.Input({}), d.Input({})});
     }},
    {"BatchNormalizationTooFewScales", kBad, "'bad' (BatchNormalization)",
     [](ModelDraft& d) {
       const ValueId three = d.Ones({3});
       d.Add("BatchNormalization", {d.Input({1, 4, 2}), three, three, three, three});
     }},
    {"OneHotWithoutValues", kBad, "'bad' (OneHot): input 2 'values' is missing",
     [](ModelDraft& d) {
       d.Add("OneHot", {d.List({0})}, {{"depth", 2}});
     }},
    {"OneHotOfOneValue", kBad, "'bad' (OneHot)",
     [](ModelDraft& d) {
       d.Add("OneHot", {d.List({0}), kNoValue, d.Ones({1})}, {{"depth", 2}});
     }},
    {"ArgMaxOfNothing", kBad, "'bad' (ArgMax)",
     [](ModelDraft& d) {
       d.Add("ArgMax", {d.Input({0})}, {{"axis", 0}});
     }},
    {"RangeOfNoNumber", kBad, "'bad' (Range)",
     [](ModelDraft& d) {
       const ValueId none = d.Given(ConstTensor::Int64s({}));
       d.Add("Range", {none, none, none});
     }},
    {"TriluOfNoNumber", kBad, "'bad' (Trilu)",
     [](ModelDraft& d) {
       d.Add("Trilu", {d.Input({2, 2}), d.Given(ConstTensor::Int64s({}))});
     }},
    {"ConstantOfShapeOfNoValue", kBad, "'bad' (ConstantOfShape)",
     [](ModelDraft& d) {
       d.Add("ConstantOfShape", {}, {{"shape", Ints{2}}, {"value", ConstTensor::Floats({0}, {})}});
     }},
    {"InputWithoutType", kBad, "input 0 'x0' has no type",
     [](ModelDraft& d) { d.Add("Relu", {d.InputOf(UndeclaredType())}); }},
    {"StateWithoutType", kBad, "type",
     [](ModelDraft& d) {
       d.module.states.push_back(
           {"cache", UndeclaredType(), ConstTensor::Floats({1}, std::vector<float>{1})});
       d.Add("Relu", {d.Input({1})});
     }},
    {"NoEntry", kBad, "no entry",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({1})});
       d.module.entries.clear();
     }},
    {"OutputLeftOut", kBad, "'bad' (Relu): output 0 is left out",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({2})});
       d.node().outputs[0] = kNoValue;
       d.graph().outputs.clear();
     }},
    {"FirstOutputLeftOut", kBad, "'bad' (MaxPool): output 0 is left out",
     [](ModelDraft& d) {
       d.Add("MaxPool", {d.Input({1, 1, 4, 4})}, {{"kernel_shape", Ints{2, 2}}}, 2);
       d.node().outputs[0] = kNoValue;
       d.graph().outputs.erase(d.graph().outputs.begin());
     }},
    {"StateReadOfNothing", kBad, "'bad' (msrt.StateRead): output 0 is left out",
     [](ModelDraft& d) {
       d.module.states.push_back({"cache", Type::Tensor(DType::kF32, {1}),
                                  ConstTensor::Floats({1}, std::vector<float>{1})});
       d.Add("StateRead", {}, {{"slot", 0}, {"dtype", DType::kF32}, {"dims", Ints{1}}}, 1, "msrt");
       d.node().outputs[0] = kNoValue;
       d.graph().outputs.clear();
       d.Add("Relu", {d.Input({2})});
     }},
    {"OptionalOutputsLeftOut", Code::kOk, "",
     [](ModelDraft& d) {
       const ValueId x = d.Input({1, 2, 4, 4});
       d.Add("MaxPool", {x}, {{"kernel_shape", Ints{2, 2}}}, 2);
       d.Add("LayerNormalization", {x, d.Ones({4})}, {}, 3);
       d.Add("Attention", {x, x, x}, {}, 1);
       d.Add("Split", {x}, {{"num_outputs", 4}, {"axis", 2}}, 4);
       for (Node& n : d.graph().nodes) {
         if (n.outputs.size() > 1) n.outputs[1] = kNoValue;
       }
       d.graph().outputs.clear();
       for (const Node& n : d.graph().nodes) {
         d.graph().outputs.push_back(n.outputs[0]);
         if (n.outputs.size() > 2) d.graph().outputs.push_back(n.outputs[2]);
       }
     }},
    {"EmptyEverything", Code::kOk, "", [](ModelDraft&) {}},
    {"EmptyTensor", Code::kOk, "",
     [](ModelDraft& d) {
       d.Add("ReduceSum", {d.Good("Relu", {d.Input({0, 3})})});
     }},
};

}  // namespace

std::span<const BadModel> MissingModels() { return kMissingModels; }

}  // namespace msrt::testing

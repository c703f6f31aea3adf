#include "tests/hostile/bad_model.h"

namespace msrt::testing {
namespace {

// A node of an unknown op that refers to graphs.
void Call(ModelDraft& d, std::vector<ValueId> inputs, AttrList attrs) {
  const Type type = d.graph().value(inputs[0]).type;
  d.Add("Call", std::move(inputs), std::move(attrs), 1, "test");
  d.graph().value(d.node().outputs[0]).type = type;
}

constexpr BadModel kOrderModels[] = {
    {"NodeUsesItself", kBad, "'bad' (Relu): input 0",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({2})});
       d.node().inputs[0] = d.node().outputs[0];
     }},
    {"TwoNodesInACircle", kBad, "'good1' (Neg): input 0",
     [](ModelDraft& d) {
       const ValueId x = d.Good("Neg", {d.Input({2})});
       d.Add("Relu", {x});
       d.graph().nodes[0].inputs[0] = d.node().outputs[0];
     }},
    {"WrongOrder", kBad, "'bad' (Relu): input 0",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Good("Neg", {d.Input({2})})});
       std::swap(d.graph().nodes[0], d.graph().nodes[1]);
     }},
    {"TwoProducers", kBad, "'bad' (Relu): output 0",
     [](ModelDraft& d) {
       const ValueId x = d.Good("Neg", {d.Input({2})});
       d.Add("Relu", {x});
       d.node().outputs[0] = x;
     }},
    {"OneValueTwiceFromOneNode", kBad, "'bad' (TopK): output 1",
     [](ModelDraft& d) {
       d.Add("TopK", {d.Input({2})}, {{"k", 1}}, 2);
       d.node().outputs[1] = d.node().outputs[0];
     }},
    {"OutputIsTheInput", kBad, "'bad' (Relu): output 0",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({2})});
       d.node().outputs[0] = d.node().inputs[0];
     }},
    {"OutputIsAConstant", kBad, "'bad' (Relu): output 0",
     [](ModelDraft& d) {
       const ValueId ones = d.Ones({2});
       d.Add("Relu", {d.Input({2})});
       d.node().outputs[0] = ones;
     }},
    {"InputIsAConstant", kBad, "input 1",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({2})});
       d.graph().inputs.push_back(d.Ones({2}));
     }},
    {"InputTwice", kBad, "input 1",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({2})});
       d.graph().inputs.push_back(d.graph().inputs[0]);
     }},
    {"TwoInputsOfOneName", kBad, "two inputs are named 'x0'",
     [](ModelDraft& d) {
       d.Add("Add", {d.Input({2}), d.Input({2})});
       d.graph().value(d.graph().inputs[1]).name = "x0";
     }},
    {"OutputWithoutProducer", kBad, "output 0",
     [](ModelDraft& d) {
       d.graph().outputs.push_back(d.graph().AddValue("y", Type::Tensor(DType::kF32, {2})));
     }},
    {"ValueThatDoesNotExist", kBad, "'bad' (Relu): input 0 is value 77",
     [](ModelDraft& d) { d.Add("Relu", {ValueId(77)}); }},
    {"GraphThatDoesNotExist", kBad, "'bad' (test.Call): attribute 'body'",
     [](ModelDraft& d) {
       Call(d, {d.Input({2})}, {{"body", GraphRef{5}}});
     }},
    {"ListOfGraphsThatDoNotExist", kBad, "'bad' (test.Call): attribute 'bodies'",
     [](ModelDraft& d) {
       Call(d, {d.Input({2})}, {{"bodies", std::vector<GraphRef>{{0}, {UINT32_MAX}}}});
     }},
    {"EntryThatDoesNotExist", kBad, "raph 3 does not exist",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({2})});
       d.module.entries.push_back(3);
     }},
    {"GraphThatCallsItself", Code::kUnsupported, "'bad' (test.Call)",
     [](ModelDraft& d) {
       Call(d, {d.Input({2})}, {{"body", GraphRef{0}}});
     }},
    {"GraphsThatCallEachOther", Code::kUnsupported, "'bad' (test.Call)",
     [](ModelDraft& d) {
       Call(d, {d.Input({2})}, {{"body", GraphRef{1}}});
       d.module.graphs.push_back(d.graph());
       d.module.graphs[1].nodes[0].attrs = {{"body", GraphRef{0}}};
     }},
    {"AThousandGraphsDeep", Code::kUnsupported, "'bad' (test.Call)",
     [](ModelDraft& d) {
       Call(d, {d.Input({2})}, {{"body", GraphRef{1}}});
       const Graph first = d.graph();
       for (uint32_t g = 1; g < 1000; ++g) {
         d.module.graphs.push_back(first);
         d.module.graphs.back().nodes[0].attrs = {{"body", GraphRef{(g + 1) % 1000}}};
       }
     }},
    {"TypeThreeThousandDeep", Code::kLimitExceeded, "parts",
     [](ModelDraft& d) {
       Type type = Type::Tensor(DType::kF32, {2});
       for (int i = 0; i < 3000; ++i) {
         Type outer;
         outer.kind = TypeKind::kList;
         outer.element = std::make_shared<const Type>(std::move(type));
         type = std::move(outer);
       }
       d.InputOf(std::move(type));
     }},
    {"StateWrittenAndReadInOneRun", Code::kOk, "",
     [](ModelDraft& d) {
       d.module.states.push_back({"cache", Type::Tensor(DType::kF32, {kUnknownDim}),
                                  ConstTensor::Floats({1}, std::vector<float>{1})});
       const ValueId x = d.Input({3});
       d.Add("StateWrite", {x}, {{"slot", 0}}, 0, "msrt");
       d.Add("StateRead", {}, {{"slot", 0}, {"dtype", DType::kF32}, {"dims", Ints{-1}}}, 1, "msrt");
       d.Add("StateWrite", {d.node().outputs[0]}, {{"slot", 0}}, 0, "msrt");
     }},
    {"StateOfAnotherType", kBad, "'bad' (msrt.StateWrite)",
     [](ModelDraft& d) {
       d.module.states.push_back({"cache", Type::Tensor(DType::kF32, {2}),
                                  ConstTensor::Floats({2}, std::vector<float>{1, 2})});
       d.Add("StateWrite", {d.Input({2}, DType::kF64)}, {{"slot", 0}}, 0, "msrt");
     }},
    {"StateGrowsBeyondItsDims", kBad, "'bad' (msrt.StateWrite)",
     [](ModelDraft& d) {
       d.module.states.push_back({"cache", Type::Tensor(DType::kF32, {2}),
                                  ConstTensor::Floats({2}, std::vector<float>{1, 2})});
       d.Add("StateWrite", {d.Input({3})}, {{"slot", 0}}, 0, "msrt");
     }},
    {"StateReadAsAnotherType", kBad, "'bad' (msrt.StateRead)",
     [](ModelDraft& d) {
       d.module.states.push_back(
           {"cache", Type::Tensor(DType::kI8, {2}),
            ConstTensor::Of<int8_t>(DType::kI8, {2}, std::vector<int8_t>{1, 2})});
       d.Add("StateRead", {}, {{"slot", 0}, {"dtype", DType::kF64}, {"dims", Ints{2}}}, 1, "msrt");
     }},
    {"StateReadBeyondItsDims", kBad, "'bad' (msrt.StateRead)",
     [](ModelDraft& d) {
       d.module.states.push_back({"cache", Type::Tensor(DType::kF32, {2}),
                                  ConstTensor::Floats({2}, std::vector<float>{1, 2})});
       d.Add("StateRead", {}, {{"slot", 0}, {"dtype", DType::kF32}, {"dims", Ints{1000}}}, 1,
             "msrt");
     }},
    {"TwoStatesOfOneName", kBad, "cache",
     [](ModelDraft& d) {
       const StateSlot slot{"cache", Type::Tensor(DType::kF32, {1}),
                            ConstTensor::Floats({1}, std::vector<float>{1})};
       d.module.states = {slot, slot};
       d.Add("Relu", {d.Input({2})});
     }},
    {"OneOutputTwice", Code::kOk, "",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({2})});
       d.graph().outputs.push_back(d.graph().outputs[0]);
     }},
    {"NothingButConstants", Code::kOk, "",
     [](ModelDraft& d) {
       d.Add("Neg", {d.List({1, 2})});
     }},
    {"ConstantAndInputAsOutputs", Code::kOk, "",
     [](ModelDraft& d) {
       const ValueId x = d.Input({2}), ones = d.Ones({2});
       d.graph().outputs = {x, ones, x};
     }},
};

}  // namespace

std::span<const BadModel> OrderModels() { return kOrderModels; }

}  // namespace msrt::testing

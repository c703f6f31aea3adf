#include "tests/hostile/bad_model.h"

namespace msrt::testing {
namespace {

constexpr int64_t kTwoTo32 = int64_t{1} << 32;

// Named after the vulnerability that each reproduces. Where the request is legal here, it must run.
constexpr BadModel kHistoricModels[] = {
    // 2021-29586: pooling divides by a stride of zero.
    {"Cve2021_29586", kBad, "'bad' (AveragePool): strides[0] = 0",
     [](ModelDraft& d) {
       d.Add("AveragePool", {d.Input({1, 1, 4, 4})},
             {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{0, 0}}, {"auto_pad", "SAME_UPPER"}});
     }},
    // 2021-29594: convolution divides by strides and dilations from the file.
    {"Cve2021_29594", kBad, "'bad' (Conv): strides[0] = 0",
     [](ModelDraft& d) {
       d.Add("Conv", {d.Input({1, 1, 4, 4}), d.Ones({1, 1, 1, 1})},
             {{"strides", Ints{0, 0}}, {"auto_pad", "SAME_LOWER"}});
     }},
    // 2021-29599: split divides by the number of parts.
    {"Cve2021_29599", kBad, "'bad' (Split): num_outputs = 0",
     [](ModelDraft& d) {
       d.Add("Split", {d.Input({4})}, {{"num_outputs", 0}});
     }},
    // 2021-29600: one-hot divides by the product of dims that may be zero.
    {"Cve2021_29600", Code::kOk, "",
     [](ModelDraft& d) {
       d.Add("OneHot", {d.Input({0, 3}, DType::kI64), kNoValue, d.Ones({2})},
             {{"depth", 4}, {"axis", 0}});
     }},
    // LiteRT 9255 and llama.cpp 2026-33298: a product of dims that wraps to exactly zero skips the
    // checks behind it.
    {"LiteRt9255", kBad, "more than 2^56 elements",
     [](ModelDraft& d) {
       d.Add("ReduceSum", {d.Input({kTwoTo32, kTwoTo32}, DType::kF32)});
     }},
    {"Cve2026_33298", kBad, "'bad' (ConstantOfShape)",
     [](ModelDraft& d) {
       d.Add("ConstantOfShape", {d.List({kTwoTo32, kTwoTo32, 1})});
     }},
    // llama.cpp 2026-27940: the product fits, its bytes do not.
    {"Cve2026_27940", Code::kLimitExceeded, "needs",
     [](ModelDraft& d) {
       d.Add("ConstantOfShape", {},
             {{"shape", Ints{int64_t{1} << 56}},
              {"value", ConstTensor::Of<double>(DType::kF64, {1}, std::vector<double>{1})}});
     }},
    // 2020-15207: a negative axis that only debug builds check.
    {"Cve2020_15207", kBad, "'bad' (Concat): axis = -5",
     [](ModelDraft& d) {
       const ValueId x = d.Input({2, 2});
       d.Add("Concat", {x, x}, {{"axis", -5}});
     }},
    // 2020-15211: an index of -1 for an input that is not optional.
    {"Cve2020_15211", kBad, "'bad' (Add): input 0 'A' is missing",
     [](ModelDraft& d) {
       d.Add("Add", {kNoValue, d.Input({2})});
     }},
    // 2021-29603: ArgMin over an axis out of range writes out of bounds.
    {"Cve2021_29603", kBad, "'bad' (ArgMin): axis = 4",
     [](ModelDraft& d) {
       d.Add("ArgMin", {d.Input({2, 2})}, {{"axis", 4}});
     }},
    // 2021-37687: negative indices of GatherND.
    {"Cve2021_37687", kData, "'bad' (GatherND)",
     [](ModelDraft& d) {
       d.Add("GatherND", {d.Input({2, 3}), d.Given(ConstTensor::Of<int32_t>(
                                               DType::kI32, {1, 1}, std::vector<int32_t>{-100}))});
     }},
    // 2020-15209: a tensor without data; here a value without a source.
    {"Cve2020_15209", kBad, "'bad' (Relu): input 0",
     [](ModelDraft& d) {
       d.Add("Relu", {d.graph().AddValue("nothing", Type::Tensor(DType::kF32, {2}))});
     }},
    // 2021-29590: Min and Max of empty tensors.
    {"Cve2021_29590", Code::kOk, "",
     [](ModelDraft& d) {
       d.Add("Min", {d.Input({0}), d.Input({1})});
       d.Add("Max", {d.Input({0}), d.Input({})});
     }},
    // 2021-29592: a Reshape whose shape is a scalar or missing.
    {"Cve2021_29592", kBad, "'bad' (Reshape)",
     [](ModelDraft& d) {
       d.Add("Reshape",
             {d.Input({2, 2}), d.Given(ConstTensor::Of<int64_t>(DType::kI64, {1, 1}, Ints{4}))});
     }},
    // 2021-37688: an optional input that is left out where the kernel reads it.
    {"Cve2021_37688", kBad, "'bad' (LayerNormalization): input 1 'Scale' is missing",
     [](ModelDraft& d) {
       d.Add("LayerNormalization", {d.Input({2}), kNoValue});
     }},
    // 2021-29591: a subgraph that calls itself until the stack overflows.
    {"Cve2021_29591", Code::kUnsupported, "'bad' (While)",
     [](ModelDraft& d) {
       d.Add("While", {d.Input({2})}, {{"cond", GraphRef{0}}, {"body", GraphRef{0}}});
       d.graph().value(d.node().outputs[0]).type = Type::Tensor(DType::kF32, {2});
     }},
    // 2021-37686: a slice that never ends.
    {"Cve2021_37686", kBad, "'bad' (Slice): axes",
     [](ModelDraft& d) {
       d.Add("Slice", {d.Input({2})}, {{"starts", Ints{0}}, {"ends", Ints{1}}, {"axes", Ints{-2}}});
     }},
    // 2020-15213: an index from the data decides how much is allocated.
    {"Cve2020_15213", Code::kLimitExceeded, "output 'y0' needs",
     [](ModelDraft& d) {
       d.Add("ConstantOfShape", {d.Given(ConstTensor::Int64s(Ints{int64_t{1} << 55}))});
     }},
    // ONNX Runtime 28055: folding without a budget for its results.
    {"OnnxRuntime28055", Code::kLimitExceeded, "output 'y0' needs",
     [](ModelDraft& d) {
       d.Add("Expand", {d.Ones({1})}, {{"shape", Ints{int64_t{1} << 38}}});
     }},
    // 2020-15210: one tensor as input and output of a node.
    {"Cve2020_15210", kBad, "'bad' (Add): output 0",
     [](ModelDraft& d) {
       d.Add("Add", {d.Input({2}), d.Ones({2})});
       d.node().outputs[0] = d.node().inputs[0];
     }},
    // ONNX 2022-25882 and its successors: a path as the location of a weight. Here it is plain
    // text.
    {"Cve2022_25882", Code::kOk, "",
     [](ModelDraft& d) {
       d.module.metadata = {{"location", "../../../../etc/passwd"},
                            {"external_data", "file:///etc/shadow"}};
       d.graph().AddConstant("/etc/passwd", ConstTensor::Floats({1}, std::vector<float>{1}));
       d.Add("Relu", {d.Input({2})});
     }},
    // ONNX Runtime 28709: a marker in the data that is read as an address.
    {"OnnxRuntime28709", Code::kOk, "",
     [](ModelDraft& d) {
       const Ints address = {0x4141414141414141, 16};
       d.Add("Add", {d.Input({2}, DType::kI64),
                     d.graph().AddConstant("*/_ORT_MEM_ADDR_/*", ConstTensor::Int64s(address))});
     }},
};

}  // namespace

std::span<const BadModel> HistoricModels() { return kHistoricModels; }

}  // namespace msrt::testing

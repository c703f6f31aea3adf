#include <cmath>

#include "tests/hostile/bad_model.h"

namespace msrt::testing {
namespace {

void Conv(ModelDraft& d, AttrList attrs) {
  d.Add("Conv", {d.Input({1, 2, 8, 8}), d.Ones({4, 2, 3, 3})}, std::move(attrs));
}
void ConvTranspose(ModelDraft& d, AttrList attrs) {
  d.Add("ConvTranspose", {d.Input({1, 2, 8, 8}), d.Ones({2, 4, 3, 3})}, std::move(attrs));
}
void Pool(ModelDraft& d, const char* op, AttrList attrs) {
  d.Add(op, {d.Input({1, 2, 8, 8})}, std::move(attrs));
}

constexpr BadModel kDivisorModels[] = {
    {"ConvStrideZero", kBad, "'bad' (Conv): strides[1] = 0",
     [](ModelDraft& d) {
       Conv(d, {{"strides", Ints{1, 0}}});
     }},
    {"ConvStrideNegative", kBad, "'bad' (Conv): strides[0] = -1",
     [](ModelDraft& d) {
       Conv(d, {{"strides", Ints{-1, 1}}});
     }},
    {"ConvStrideHuge", kBad, "'bad' (Conv): strides[0]",
     [](ModelDraft& d) {
       Conv(d, {{"strides", Ints{INT64_MAX, 1}}});
     }},
    {"ConvDilationZero", kBad, "'bad' (Conv): dilations[0] = 0",
     [](ModelDraft& d) {
       Conv(d, {{"dilations", Ints{0, 1}}});
     }},
    {"ConvDilationHuge", kBad, "'bad' (Conv): a kernel of 3 with dilation 2147483647",
     [](ModelDraft& d) {
       Conv(d, {{"dilations", Ints{2147483647, 1}}});
     }},
    {"ConvGroupZero", kBad, "'bad' (Conv): group = 0",
     [](ModelDraft& d) {
       Conv(d, {{"group", 0}});
     }},
    {"ConvGroupNegative", kBad, "'bad' (Conv): group = -2",
     [](ModelDraft& d) {
       Conv(d, {{"group", -2}});
     }},
    {"ConvGroupNoDivisor", kBad, "'bad' (Conv)",
     [](ModelDraft& d) {
       Conv(d, {{"group", 3}});
     }},
    {"ConvGroupHuge", kBad, "'bad' (Conv)",
     [](ModelDraft& d) {
       Conv(d, {{"group", 2147483647}});
     }},
    {"ConvKernelZero", kBad, "'bad' (Conv): kernel_shape[0] = 0",
     [](ModelDraft& d) {
       Conv(d, {{"kernel_shape", Ints{0, 3}}});
     }},
    {"ConvWeightsWithoutKernel", kBad, "'bad' (Conv)",
     [](ModelDraft& d) {
       d.Add("Conv", {d.Input({1, 2, 8, 8}), d.Ones({4, 2, 0, 3})});
     }},
    {"ConvPadNegative", kBad, "'bad' (Conv): pads[2] = -5",
     [](ModelDraft& d) {
       Conv(d, {{"pads", Ints{0, 0, -5, 0}}});
     }},
    {"ConvTransposeStrideZero", kBad, "'bad' (ConvTranspose): strides[0] = 0",
     [](ModelDraft& d) {
       ConvTranspose(d, {{"strides", Ints{0, 0}}});
     }},
    {"ConvTransposeGroupZero", kBad, "'bad' (ConvTranspose): group = 0",
     [](ModelDraft& d) {
       ConvTranspose(d, {{"group", 0}});
     }},
    {"ConvTransposeOutputPadding", kBad, "'bad' (ConvTranspose): output_padding[0] = 7",
     [](ModelDraft& d) {
       ConvTranspose(d, {{"output_padding", Ints{7, 7}}});
     }},
    {"MaxPoolKernelZero", kBad, "'bad' (MaxPool): kernel_shape[0] = 0",
     [](ModelDraft& d) {
       Pool(d, "MaxPool", {{"kernel_shape", Ints{0, 0}}});
     }},
    {"MaxPoolStrideZero", kBad, "'bad' (MaxPool): strides[1] = 0",
     [](ModelDraft& d) {
       Pool(d, "MaxPool", {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{1, 0}}});
     }},
    {"MaxPoolDilationZero", kBad, "'bad' (MaxPool): dilations[0] = 0",
     [](ModelDraft& d) {
       Pool(d, "MaxPool", {{"kernel_shape", Ints{2, 2}}, {"dilations", Ints{0, 1}}});
     }},
    {"AveragePoolStrideZero", kBad, "'bad' (AveragePool): strides[0] = 0",
     [](ModelDraft& d) {
       Pool(d, "AveragePool", {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{0, 1}}});
     }},
    {"LpPoolOrderZero", kBad, "'bad' (LpPool): p = 0",
     [](ModelDraft& d) {
       Pool(d, "LpPool", {{"kernel_shape", Ints{2, 2}}, {"p", 0}});
     }},
    {"GlobalLpPoolOrderNegative", kBad, "'bad' (GlobalLpPool): p = -1",
     [](ModelDraft& d) {
       Pool(d, "GlobalLpPool", {{"p", -1}});
     }},
    {"LpNormalizationOrderZero", kBad, "'bad' (LpNormalization): p = 0",
     [](ModelDraft& d) {
       Pool(d, "LpNormalization", {{"p", 0}});
     }},
    {"DepthToSpaceBlockZero", kBad, "'bad' (DepthToSpace): blocksize = 0",
     [](ModelDraft& d) {
       Pool(d, "DepthToSpace", {{"blocksize", 0}});
     }},
    {"DepthToSpaceBlockSquaredWraps", kBad, "'bad' (DepthToSpace): blocksize = 4294967296",
     [](ModelDraft& d) {
       Pool(d, "DepthToSpace", {{"blocksize", int64_t{1} << 32}});
     }},
    {"SpaceToDepthBlockZero", kBad, "'bad' (SpaceToDepth): blocksize = 0",
     [](ModelDraft& d) {
       Pool(d, "SpaceToDepth", {{"blocksize", 0}});
     }},
    {"SpaceToDepthBlockNoDivisor", kBad, "'bad' (SpaceToDepth): the height 8",
     [](ModelDraft& d) {
       Pool(d, "SpaceToDepth", {{"blocksize", 3}});
     }},
    {"GroupNormalizationGroupsZero", kBad, "'bad' (GroupNormalization): num_groups = 0",
     [](ModelDraft& d) {
       d.Add("GroupNormalization", {d.Input({1, 4, 2}), d.Ones({4}), d.Ones({4})},
             {{"num_groups", 0}});
     }},
    {"GroupNormalizationGroupsNoDivisor", kBad, "'bad' (GroupNormalization): num_groups = 3",
     [](ModelDraft& d) {
       d.Add("GroupNormalization", {d.Input({1, 4, 2}), d.Ones({4}), d.Ones({4})},
             {{"num_groups", 3}});
     }},
    {"SplitIntoNone", kBad, "'bad' (Split): num_outputs = 0",
     [](ModelDraft& d) {
       Pool(d, "Split", {{"num_outputs", 0}});
     }},
    {"SplitIntoTooMany", kBad, "'bad' (Split)",
     [](ModelDraft& d) {
       d.Add("Split", {d.Input({2})}, {{"num_outputs", 5}}, 5);
     }},
    {"SliceStepZero", kBad, "'bad' (Slice): steps[0] = 0",
     [](ModelDraft& d) {
       Pool(d, "Slice", {{"starts", Ints{0}}, {"ends", Ints{2}}, {"steps", Ints{0}}});
     }},
    {"SliceStepZeroFromData", kBad, "'bad' (Slice): steps[0] = 0",
     [](ModelDraft& d) {
       const ValueId zero = d.Given(ConstTensor::Int64s(Ints{0})), one = d.List({1});
       d.Add("Slice", {d.Input({8}), zero, one, zero, zero});
     }},
    {"RangeStepZero", kBad, "'bad' (Range): delta is 0",
     [](ModelDraft& d) {
       d.Add("Range", {d.List({0}), d.List({9}), d.List({0})});
     }},
    {"RangeStepZeroFromData", kBad, "'bad' (Range): delta is 0",
     [](ModelDraft& d) {
       const ValueId zero = d.Given(ConstTensor::Int64s(Ints{0}));
       d.Add("Range", {zero, d.List({9}), zero});
     }},
    {"AttentionHeadsZero", kBad, "'bad' (Attention): q_num_heads = 0",
     [](ModelDraft& d) {
       const ValueId x = d.Input({1, 4, 8});
       d.Add("Attention", {x, x, x}, {{"q_num_heads", 0}, {"kv_num_heads", 1}});
     }},
    {"AttentionHeadsNoDivisor", kBad, "'bad' (Attention)",
     [](ModelDraft& d) {
       const ValueId x = d.Input({1, 4, 8});
       d.Add("Attention", {x, x, x}, {{"q_num_heads", 3}, {"kv_num_heads", 2}});
     }},
    {"ResizeScaleZero", kBad, "'bad' (Resize)",
     [](ModelDraft& d) {
       Pool(d, "Resize", {{"scales", std::vector<double>{1, 1, 0, 1}}});
     }},
    {"ResizeScaleNotANumber", kBad, "'bad' (Resize)",
     [](ModelDraft& d) {
       Pool(d, "Resize", {{"scales", std::vector<double>{1, 1, NAN, 1}}});
     }},
    {"IntegerDivisionByZero", kData, "'bad' (Div)",
     [](ModelDraft& d) {
       d.Add("Div", {d.List({1, 2, 3}), d.Given(ConstTensor::Int64s(Ints{0}))});
     }},
    {"IntegerRemainderByZero", kData, "'bad' (Mod)",
     [](ModelDraft& d) {
       d.Add("Mod", {d.List({1, 2, 3}), d.Given(ConstTensor::Int64s(Ints{0}))});
     }},
    {"IntegerDivisionThatOverflows", Code::kOk, "",
     [](ModelDraft& d) {
       d.Add("Div", {d.List({INT64_MIN}), d.Given(ConstTensor::Int64s(Ints{-1}))});
     }},
    {"IntegerRemainderThatOverflows", Code::kOk, "",
     [](ModelDraft& d) {
       d.Add("Mod", {d.List({INT64_MIN}), d.Given(ConstTensor::Int64s(Ints{-1}))});
     }},
};

}  // namespace

std::span<const BadModel> DivisorModels() { return kDivisorModels; }

}  // namespace msrt::testing

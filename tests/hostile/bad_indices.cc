#include "tests/hostile/bad_model.h"

namespace msrt::testing {
namespace {

// Set at run time, so that only the kernel can check them.
ValueId Indices(ModelDraft& d, const Ints& values) { return d.Given(ConstTensor::Int64s(values)); }
ValueId Indices(ModelDraft& d, Dims dims, const Ints& values) {
  return d.Given(ConstTensor::Of<int64_t>(DType::kI64, dims, values));
}

constexpr BadModel kIndexModels[] = {
    {"SoftmaxAxis", kBad, "'bad' (Softmax): axis = 2",
     [](ModelDraft& d) {
       d.Add("Softmax", {d.Input({2, 3})}, {{"axis", 2}});
     }},
    {"SoftmaxAxisNegative", kBad, "'bad' (Softmax): axis = -3",
     [](ModelDraft& d) {
       d.Add("Softmax", {d.Input({2, 3})}, {{"axis", -3}});
     }},
    {"SoftmaxOfAScalar", kBad, "'bad' (Softmax): axis = -1",
     [](ModelDraft& d) { d.Add("Softmax", {d.Input({})}); }},
    {"ConcatAxis", kBad, "'bad' (Concat): axis = 7",
     [](ModelDraft& d) {
       d.Add("Concat", {d.Input({2})}, {{"axis", 7}});
     }},
    {"ReduceAxis", kBad, "'bad' (ReduceSum): axes = -9223372036854775808",
     [](ModelDraft& d) {
       d.Add("ReduceSum", {d.Input({2, 3})}, {{"axes", Ints{INT64_MIN}}});
     }},
    {"ReduceAxisTwice", kBad, "'bad' (ReduceSum): axes names axis 1 twice",
     [](ModelDraft& d) {
       d.Add("ReduceSum", {d.Input({2, 3})}, {{"axes", Ints{1, -1}}});
     }},
    {"ReduceAxisFromData", kBad, "'bad' (ReduceSum)",
     [](ModelDraft& d) {
       d.Add("ReduceSum", {d.Input({2, 3}), Indices(d, {9})});
     }},
    {"ArgMaxAxis", kBad, "'bad' (ArgMax): axis = 9223372036854775807",
     [](ModelDraft& d) {
       d.Add("ArgMax", {d.Input({2, 3})}, {{"axis", INT64_MAX}});
     }},
    {"CumSumAxisFromData", kData, "'bad' (CumSum)",
     [](ModelDraft& d) {
       d.Add("CumSum", {d.Input({2, 3}), Indices(d, {-3})});
     }},
    {"TransposeAxisTwice", kBad, "'bad' (Transpose): perm names axis 0",
     [](ModelDraft& d) {
       d.Add("Transpose", {d.Input({2, 3})}, {{"perm", Ints{0, 0}}});
     }},
    {"TransposeAxisNegative", kBad, "'bad' (Transpose): perm[0] = -1",
     [](ModelDraft& d) {
       d.Add("Transpose", {d.Input({2, 3})}, {{"perm", Ints{-1, 0}}});
     }},
    {"TransposeTooShort", kBad, "'bad' (Transpose): perm has 1 elements",
     [](ModelDraft& d) {
       d.Add("Transpose", {d.Input({2, 3})}, {{"perm", Ints{0}}});
     }},
    {"SqueezeAxis", kBad, "'bad' (Squeeze)",
     [](ModelDraft& d) {
       d.Add("Squeeze", {d.Input({1, 3}), Indices(d, {-3})});
     }},
    {"UnsqueezeAxis", kBad, "'bad' (Unsqueeze)",
     [](ModelDraft& d) {
       d.Add("Unsqueeze", {d.Input({3}), Indices(d, {5})});
     }},
    {"FlattenAxis", kBad, "'bad' (Flatten): axis = 4",
     [](ModelDraft& d) {
       d.Add("Flatten", {d.Input({2, 3})}, {{"axis", 4}});
     }},
    {"LayerNormalizationAxis", kBad, "'bad' (LayerNormalization): axis = 3",
     [](ModelDraft& d) {
       d.Add("LayerNormalization", {d.Input({2, 3}), d.Ones({3})}, {{"axis", 3}});
     }},
    {"SliceAxisTwice", kBad, "'bad' (Slice): axes names axis 0 twice",
     [](ModelDraft& d) {
       d.Add("Slice", {d.Input({4})},
             {{"starts", Ints{0, 0}}, {"ends", Ints{1, 1}}, {"axes", Ints{0, -1}}});
     }},
    {"SliceEndsOfTheNumberRange", Code::kOk, "",
     [](ModelDraft& d) {
       d.Add("Slice", {d.Input({4})},
             {{"starts", Ints{INT64_MAX}}, {"ends", Ints{INT64_MIN}}, {"steps", Ints{INT64_MIN}}});
     }},
    {"GatherIndex", kData, "'bad' (Gather)",
     [](ModelDraft& d) {
       d.Add("Gather", {d.Input({2, 3}), Indices(d, {2})});
     }},
    {"GatherIndexNegative", kData, "'bad' (Gather)",
     [](ModelDraft& d) {
       d.Add("Gather", {d.Input({2, 3}), Indices(d, {-3})});
     }},
    {"GatherIndexLeast", kData, "'bad' (Gather)",
     [](ModelDraft& d) {
       d.Add("Gather", {d.Input({2, 3}), Indices(d, {INT64_MIN})});
     }},
    {"GatherConstantIndex", kData, "'bad' (Gather)",
     [](ModelDraft& d) {
       d.Add("Gather", {d.Ones({2, 3}), d.List({7})});
     }},
    {"GatherFromNothing", kData, "'bad' (Gather)",
     [](ModelDraft& d) {
       d.Add("Gather", {d.Input({0, 3}), Indices(d, {0})});
     }},
    {"GatherElementsIndex", kData, "'bad' (GatherElements)",
     [](ModelDraft& d) {
       d.Add("GatherElements", {d.Input({3}), Indices(d, {0, 3})});
     }},
    {"GatherElementsBeyond", kBad, "'bad' (GatherElements): indices",
     [](ModelDraft& d) {
       d.Add("GatherElements", {d.Input({2, 3}), d.Input({2, 4}, DType::kI64)});
     }},
    {"GatherNDIndex", kData, "'bad' (GatherND)",
     [](ModelDraft& d) {
       d.Add("GatherND", {d.Input({2, 3}), Indices(d, {1, 2}, {1, 3})});
     }},
    {"GatherNDTupleTooLong", kBad, "'bad' (GatherND): the last dim of indices",
     [](ModelDraft& d) {
       d.Add("GatherND", {d.Input({2}), d.Input({1, 2}, DType::kI64)});
     }},
    {"GatherNDBatchDims", kBad, "'bad' (GatherND): batch_dims = 2",
     [](ModelDraft& d) {
       d.Add("GatherND", {d.Input({2, 3}), d.Input({2, 1}, DType::kI64)}, {{"batch_dims", 2}});
     }},
    {"ScatterElementsIndex", kData, "'bad' (ScatterElements)",
     [](ModelDraft& d) {
       d.Add("ScatterElements", {d.Input({3}), Indices(d, {INT64_MAX}), d.Input({1})});
     }},
    {"ScatterNDIndex", kData, "'bad' (ScatterND)",
     [](ModelDraft& d) {
       d.Add("ScatterND", {d.Input({2, 3}), Indices(d, {1, 1}, {-3}), d.Input({1, 3})});
     }},
    {"ScatterNDUpdates", kBad, "'bad' (ScatterND)",
     [](ModelDraft& d) {
       d.Add("ScatterND", {d.Input({2, 3}), Indices(d, {1, 1}, {0}), d.Input({1, 4})});
     }},
    {"TopKBeyond", kBad, "'bad' (TopK)",
     [](ModelDraft& d) {
       d.Add("TopK", {d.Input({2, 3})}, {{"k", 4}}, 2);
     }},
    {"TopKFromData", kBad, "'bad' (TopK)",
     [](ModelDraft& d) {
       d.Add("TopK", {d.Input({2, 3}), Indices(d, {-1})}, {}, 2);
     }},
    {"ReverseSequenceLength", kData, "'bad' (ReverseSequence)",
     [](ModelDraft& d) {
       d.Add("ReverseSequence", {d.Input({4, 2}), Indices(d, {4, 5})});
     }},
    {"ReverseSequenceAxes", kBad, "'bad' (ReverseSequence): batch_axis and time_axis",
     [](ModelDraft& d) {
       d.Add("ReverseSequence", {d.Input({4, 2}), Indices(d, {4, 4})},
             {{"batch_axis", 1}, {"time_axis", 1}});
     }},
    {"StateSlot", kBad, "'bad' (msrt.StateWrite): slot = 0, the module has 0 states",
     [](ModelDraft& d) {
       d.Add("StateWrite", {d.Input({2})}, {{"slot", 0}}, 0, "msrt");
     }},
    {"StateSlotHuge", kBad, "'bad' (msrt.StateRead): slot = 9223372036854775807",
     [](ModelDraft& d) {
       d.Add("StateRead", {}, {{"slot", INT64_MAX}, {"dtype", DType::kF32}, {"dims", Ints{2}}}, 1,
             "msrt");
     }},
    {"TriluDiagonalOfTheNumberRange", Code::kOk, "",
     [](ModelDraft& d) {
       d.Add("Trilu", {d.Input({3, 3}), Indices(d, {INT64_MIN})});
     }},
    {"EyeLikeDiagonalOfTheNumberRange", Code::kOk, "",
     [](ModelDraft& d) {
       d.Add("EyeLike", {d.Input({3, 3})}, {{"k", INT64_MIN}});
     }},
    {"BitShiftBeyondTheWidth", Code::kOk, "",
     [](ModelDraft& d) {
       d.Add("BitShift", {d.List({1, -1}), Indices(d, {64, -1})}, {{"direction", "LEFT"}});
     }},
};

}  // namespace

std::span<const BadModel> IndexModels() { return kIndexModels; }

}  // namespace msrt::testing

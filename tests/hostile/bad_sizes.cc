#include "tests/hostile/bad_model.h"

namespace msrt::testing {
namespace {

constexpr int64_t kTwo31 = int64_t{1} << 31, kTwo32 = int64_t{1} << 32, kTwo40 = int64_t{1} << 40;

constexpr BadModel kSizeModels[] = {
    {"InputTooManyElements", kBad, "more than 2^56 elements",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({kTwo40, kTwo40})});
     }},
    {"InputWrapsToZero", kBad, "more than 2^56 elements",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({kTwo32, kTwo32})});
     }},
    {"InputWrapsBehindAZero", kBad, "more than 2^56 elements",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({0, kTwo32, kTwo32})});
     }},
    {"InputDimBeyondTheLimit", Code::kLimitExceeded, "dim 0 is",
     [](ModelDraft& d) { d.Add("Relu", {d.Input({kTwo40 + 1})}); }},
    {"DeclaredOutputTooLarge", kBad, "more than 2^56 elements",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({kUnknownDim, kUnknownDim})});
       d.graph().value(d.node().outputs[0]).type = Type::Tensor(DType::kF32, {kTwo40, kTwo40});
     }},
    {"BroadcastTooLarge", kBad, "'bad' (Add): output 0 would have dims",
     [](ModelDraft& d) {
       d.Add("Add", {d.Input({kTwo32, 1}), d.Input({1, kTwo32})});
     }},
    {"ExpandWraps", kBad, "'bad' (Expand): output 0 would have dims",
     [](ModelDraft& d) {
       d.Add("Expand", {d.Input({1})}, {{"shape", Ints{kTwo32, kTwo32}}});
     }},
    {"ExpandWrapsFromData", kBad, "'bad' (Expand): output 0 would have dims",
     [](ModelDraft& d) {
       d.Add("Expand", {d.Input({1}), d.Given(ConstTensor::Int64s(Ints{kTwo32, kTwo32}))});
     }},
    {"ReshapeProductOverflows", kBad, "'bad' (Reshape)",
     [](ModelDraft& d) {
       d.Add("Reshape", {d.Input({4})}, {{"shape", Ints{kTwo40, kTwo40, -1}}});
     }},
    {"ReshapeWrapsToTheSameSize", kBad, "'bad' (Reshape)",
     [](ModelDraft& d) {
       d.Add("Reshape", {d.Input({0})}, {{"shape", Ints{kTwo32, kTwo32}}});
     }},
    {"ReshapeDimOfMinusTwo", kBad, "'bad' (Reshape): shape[0] = -2",
     [](ModelDraft& d) {
       d.Add("Reshape", {d.Input({4})}, {{"shape", Ints{-2, -2}}});
     }},
    {"ReshapeTwoUnknowns", kBad, "'bad' (Reshape): shape has -1",
     [](ModelDraft& d) {
       d.Add("Reshape", {d.Input({4})}, {{"shape", Ints{-1, -1}}});
     }},
    {"TileOverflows", kBad, "'bad' (Tile): repeats[0]",
     [](ModelDraft& d) {
       d.Add("Tile", {d.Input({4})}, {{"repeats", Ints{INT64_MAX}}});
     }},
    {"TileWrapsToZero", kBad, "'bad' (Tile)",
     [](ModelDraft& d) {
       d.Add("Tile", {d.Input({4, 4})}, {{"repeats", Ints{kTwo31, kTwo31}}});
     }},
    {"ConcatSumOverflows", kBad, "'bad' (Concat)",
     [](ModelDraft& d) {
       const ValueId x = d.Good("ConstantOfShape", {}, {{"shape", Ints{int64_t{1} << 55}}});
       d.Add("Concat", {x, x, x, x}, {{"axis", 0}});
     }},
    {"PadOverflows", kBad, "'bad' (Pad)",
     [](ModelDraft& d) {
       d.Add("Pad", {d.Input({4})}, {{"pads", Ints{int64_t{1} << 56, int64_t{1} << 56}}});
     }},
    {"PadFromDataOverflows", kBad, "'bad' (Pad)",
     [](ModelDraft& d) {
       d.Add("Pad", {d.Input({4}), d.Given(ConstTensor::Int64s(Ints{INT64_MAX, INT64_MAX}))});
     }},
    {"PadCutsMoreThanThereIs", kBad, "'bad' (Pad)",
     [](ModelDraft& d) {
       d.Add("Pad", {d.Input({4})}, {{"pads", Ints{-3, -3}}});
     }},
    {"ConvPadsOverflow", kBad, "'bad' (Conv): output 0 would have dims",
     [](ModelDraft& d) {
       const int64_t pad = 4294967294;
       d.Add("Conv", {d.Input({1, 1, 4, 4}), d.Ones({1, 1, 1, 1})},
             {{"pads", Ints{pad, pad, pad, pad}}});
     }},
    {"ConvTransposeOverflows", kBad, "'bad' (ConvTranspose)",
     [](ModelDraft& d) {
       d.Add("ConvTranspose", {d.Input({1, 1, kTwo32}), d.Ones({1, 1, 1})},
             {{"strides", Ints{kTwo31 - 1}}});
     }},
    {"ConvTransposeOutputShapeOverflows", kBad, "'bad' (ConvTranspose)",
     [](ModelDraft& d) {
       const int64_t extent = int64_t{1} << 56;
       d.Add("ConvTranspose", {d.Input({1, 1, 4, 4}), d.Ones({1, 1, 1, 1})},
             {{"output_shape", Ints{extent, extent}}});
     }},
    {"PoolPadsOverflow", kBad, "'bad' (MaxPool)",
     [](ModelDraft& d) {
       const int64_t pad = 4294967294;
       d.Add("MaxPool", {d.Input({1, 1, 4, 4})},
             {{"kernel_shape", Ints{1, 1}}, {"pads", Ints{pad, pad, pad, pad}}});
     }},
    {"ResizeOverflows", kBad, "'bad' (Resize)",
     [](ModelDraft& d) {
       d.Add("Resize", {d.Input({4})}, {{"scales", std::vector<double>{1e300}}});
     }},
    {"ResizeSizesOverflow", kBad, "'bad' (Resize)",
     [](ModelDraft& d) {
       const int64_t extent = int64_t{1} << 56;
       d.Add("Resize", {d.Input({4, 4})}, {{"sizes", Ints{extent, extent}}});
     }},
    {"DepthToSpaceOverflows", kBad, "'bad' (DepthToSpace)",
     [](ModelDraft& d) {
       d.Add("DepthToSpace", {d.Input({1, 0, kTwo31, kTwo31 / 128})}, {{"blocksize", kTwo31 - 1}});
     }},
    {"RangeTooLong", kBad, "'bad' (Range)",
     [](ModelDraft& d) {
       d.Add("Range", {d.List({INT64_MIN}), d.List({INT64_MAX}), d.List({1})});
     }},
    {"ConstantOfShapeWraps", kBad, "'bad' (ConstantOfShape)",
     [](ModelDraft& d) {
       d.Add("ConstantOfShape", {}, {{"shape", Ints{kTwo32, kTwo32}}});
     }},
    {"ConstantOfShapeNegative", kBad, "'bad' (ConstantOfShape): shape[0] = -1",
     [](ModelDraft& d) { d.Add("ConstantOfShape", {d.List({-1})}); }},
    {"OneHotDepthOverflows", kBad, "'bad' (OneHot)",
     [](ModelDraft& d) {
       d.Add("OneHot", {d.List({0, 1}), kNoValue, d.Ones({2})}, {{"depth", INT64_MAX}});
     }},
    {"OneHotDepthNegativeFromData", kBad, "'bad' (OneHot)",
     [](ModelDraft& d) {
       d.Add("OneHot", {d.List({0, 1}), d.Given(ConstTensor::Int64s(Ints{-5})), d.Ones({2})});
     }},
    {"SplitSumOverflows", kBad, "'bad' (Split): the sum of split overflows",
     [](ModelDraft& d) {
       d.Add("Split", {d.Input({4})}, {{"split", Ints{INT64_MAX, INT64_MAX, 6}}}, 3);
     }},
    {"GatherRankTooHigh", Code::kUnsupported, "'bad' (Gather): the output would have rank",
     [](ModelDraft& d) {
       d.Add("Gather", {d.Input({1, 1, 1, 1, 1, 1}), d.Input({1, 1, 1, 1}, DType::kI64)});
     }},
    {"UnsqueezeRankTooHigh", kBad, "'bad' (Unsqueeze)",
     [](ModelDraft& d) {
       d.Add("Unsqueeze", {d.Input({1, 1, 1, 1, 1, 1})}, {{"axes", Ints{0, 1, 2}}});
     }},
};

}  // namespace

std::span<const BadModel> SizeModels() { return kSizeModels; }

}  // namespace msrt::testing

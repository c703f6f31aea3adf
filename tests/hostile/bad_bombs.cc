#include "tests/hostile/bad_model.h"

namespace msrt::testing {
namespace {

constexpr auto kLimit = Code::kLimitExceeded;

// A few bytes of the file, extent^2 elements of memory.
ValueId Square(ModelDraft& d, int64_t extent) {
  return d.Good("ConstantOfShape", {}, {{"shape", Ints{extent, extent}}});
}

constexpr BadModel kBombModels[] = {
    {"OutputBeyondTheCap", kLimit, "output 'y0' needs",
     [](ModelDraft& d) {
       d.Add("Expand", {d.Input({1})}, {{"shape", Ints{int64_t{1} << 40}}});
     }},
    {"OutputBeyondTheCapFromData", kLimit, "output 'y0' needs",
     [](ModelDraft& d) {
       d.Add("Expand", {d.Input({1}), d.Given(ConstTensor::Int64s(Ints{int64_t{1} << 40}))});
     }},
    {"TileBeyondTheCap", kLimit, "output 'y0' needs",
     [](ModelDraft& d) {
       d.Add("Tile", {d.Input({4})}, {{"repeats", Ints{int64_t{1} << 40}}});
     }},
    {"PadBeyondTheCap", kLimit, "output 'y0' needs",
     [](ModelDraft& d) {
       d.Add("Pad", {d.Input({4})}, {{"pads", Ints{0, int64_t{1} << 40}}});
     }},
    {"RangeBeyondTheCap", kLimit, "output 'y0' needs",
     [](ModelDraft& d) {
       d.Add("Range",
             {d.List({0}), d.Given(ConstTensor::Int64s(Ints{int64_t{1} << 40})), d.List({1})});
     }},
    {"OneHotBeyondTheCap", kLimit, "output 'y0' needs",
     [](ModelDraft& d) {
       d.Add("OneHot", {d.List({0}), kNoValue, d.Ones({2})}, {{"depth", int64_t{1} << 40}});
     }},
    {"ResizeBeyondTheCap", kLimit, "output 'y0' needs",
     [](ModelDraft& d) {
       d.Add("Resize", {d.Input({4})}, {{"sizes", Ints{int64_t{1} << 40}}});
     }},
    {"ConvTransposeBeyondTheCap", kLimit, "output 'y0' needs",
     [](ModelDraft& d) {
       d.Add("ConvTranspose", {d.Input({1, 1, 64}), d.Ones({1, 1, 1})},
             {{"strides", Ints{2147483647}}});
     }},
    {"OuterProductBeyondTheCap", kLimit, "output 'y0' needs",
     [](ModelDraft& d) {
       d.Add("MatMul", {d.Input({100000, 1}), d.Input({1, 100000})});
     }},
    {"ArenaBeyondTheCap", kLimit, "the arena needs",
     [](ModelDraft& d) {
       d.Add("ReduceSum", {d.Good("Add", {d.Input({100000, 1}), d.Input({1, 100000})})});
     }},
    {"ManyOutputsBeyondTheCap", kLimit, "needs",
     [](ModelDraft& d) {
       const ValueId x = d.Input({1 << 20});
       for (int i = 0; i < 100; ++i) d.Add("Neg", {x});
       for (Node& n : d.graph().nodes) n.name = "";
     }},
    {"StateBeyondTheCap", kLimit, "state needs",
     [](ModelDraft& d) {
       d.module.states.push_back(
           {"cache", Type::Tensor(DType::kF32, {kUnknownDim}), ConstTensor::Floats({0}, {})});
       const ValueId big = d.Good("ConstantOfShape", {}, {{"shape", Ints{10 << 20}}});
       d.Add("StateWrite", {big}, {{"slot", 0}}, 0, "msrt");
     }},
    // Folding: constants that are small in the file and large in memory.
    {"FoldOneLarge", kLimit, "output 'y0' needs",
     [](ModelDraft& d) {
       d.Add("ConstantOfShape", {}, {{"shape", Ints{int64_t{1} << 40}}});
     }},
    {"FoldManyAtTheBudget", kLimit, "needs",
     [](ModelDraft& d) {
       for (int i = 0; i < 100; ++i)
         d.Add("ConstantOfShape", {},
               {{"shape", Ints{4 << 20}},
                {"value", ConstTensor::Floats({1}, std::vector<float>{float(i)})}});
     }},
    {"FoldTiles", kLimit, "needs",
     [](ModelDraft& d) {
       ValueId x = d.List({1});
       for (int i = 0; i < 9; ++i) x = d.Good("Tile", {x}, {{"repeats", Ints{16}}});
       d.Add("Neg", {x});
     }},
    {"FoldInManyGraphs", Code::kOk, "",
     [](ModelDraft& d) {
       d.Add("Relu", {d.Input({2})});
       ModelDraft folded;
       folded.Add("ConstantOfShape", {}, {{"shape", Ints{4 << 20}}});
       for (int i = 0; i < 1000; ++i) d.module.graphs.push_back(folded.graph());
     }},
    {"FoldSumsOfOneLarge", Code::kDeadlineExceeded, "the run passed its deadline",
     [](ModelDraft& d) {
       const ValueId x = d.Good("ConstantOfShape", {}, {{"shape", Ints{4 << 20}}});
       for (int i = 0; i < 200; ++i) d.Add("ReduceSum", {x});
     }},
    // Time: few bytes, many operations.
    {"FoldProductsOfMatrices", Code::kDeadlineExceeded, "the run passed its deadline",
     [](ModelDraft& d) {
       ValueId x = Square(d, 450);
       for (int i = 0; i < 30; ++i) x = d.Good("MatMul", {x, x});
       d.Add("ReduceSum", {x});
     }},
    {"PoolOfAHugeWindow", Code::kOk, "",
     [](ModelDraft& d) {
       const int64_t k = 2147483647;
       d.Add("AveragePool", {d.Input({1, 1, 4, 4})},
             {{"kernel_shape", Ints{k, k}}, {"pads", Ints{k, k, k, k}}, {"strides", Ints{k, k}}});
     }},
    {"ConvOfFarPadding", Code::kOk, "",
     [](ModelDraft& d) {
       const int64_t pad = 2147483647;
       d.Add("Conv", {d.Input({1, 1, 4}), d.Ones({1, 1, 1})},
             {{"pads", Ints{pad, pad}}, {"strides", Ints{pad}}});
     }},
    {"ResizeOfAHugeSupport", Code::kOk, "",
     [](ModelDraft& d) {
       d.Add("Resize", {d.Input({1 << 20})},
             {{"sizes", Ints{1}}, {"mode", "linear"}, {"antialias", 1}});
     }},
    {"ManyEmptyRows", Code::kOk, "",
     [](ModelDraft& d) {
       const ValueId x =
           d.Good("Expand", {d.Input({1, 0})}, {{"shape", Ints{int64_t{1} << 40, 0}}});
       d.Add("ReduceSum", {x}, {{"axes", Ints{0}}});
       d.Add("Softmax", {x}, {{"axis", 0}});
       d.Add("CumSum", {x}, {{"axis", 0}});
       d.Add("Transpose", {x});
       d.Add("Concat", {x, x}, {{"axis", 1}});
       d.Add("ArgMax", {x}, {{"axis", 0}});
     }},
    {"SumsOfNothing", kLimit, "output 'y0' needs",
     [](ModelDraft& d) {
       d.Add("ReduceSum", {d.Good("ConstantOfShape", {}, {{"shape", Ints{int64_t{1} << 40, 0}}})},
             {{"axes", Ints{1}}});
     }},
    {"ProductOfNothing", kLimit, "output 'y0' needs",
     [](ModelDraft& d) {
       d.Add("MatMul", {d.Input({1 << 20, 0}), d.Input({0, 1 << 20})});
     }},
    {"PowersOfPowers", Code::kOk, "",
     [](ModelDraft& d) {
       d.Add("Pow", {d.List({3}), d.Given(ConstTensor::Int64s(Ints{INT64_MAX}))});
     }},
    {"LpPoolOfAHugePower", Code::kOk, "",
     [](ModelDraft& d) {
       d.Add("LpPool", {d.Input({1, 1, 8, 8})}, {{"kernel_shape", Ints{2, 2}}, {"p", 2147483647}});
     }},
};

}  // namespace

std::span<const BadModel> BombModels() { return kBombModels; }

}  // namespace msrt::testing

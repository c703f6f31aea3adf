#include "tests/ranks/random_net.h"

#include <algorithm>

namespace msrt::testing {
namespace {

using Ints = std::vector<int64_t>;

class Drawing {
 public:
  Drawing(int64_t max_batch, std::mt19937* random) : random_(*random) {
    net_.module.graphs.emplace_back().name = "main";
    net_.module.entries = {0};
    const int64_t batch = Pick(1, 8) == 1 ? max_batch : 1;
    net_.image = {batch, Pick(1, 4), Pick(8, 48), Pick(5, 32)};
  }

  std::optional<RandomNet> Run() {
    GraphBuilder builder(&graph());
    builder_ = &builder;
    values_ = {graph().AddInput("image", Type::Tensor(DType::kF32, net_.image))};
    const int64_t layers = Pick(1, 8);
    while (static_cast<int64_t>(values_.size()) <= layers && !failed_) {
      const Layer layer = kLayers[Pick(0, static_cast<int64_t>(std::size(kLayers)) - 1)];
      values_.push_back((this->*layer)(values_.back()));
    }
    if (failed_) return std::nullopt;
    graph().outputs = {values_.back()};
    if (const ValueId other = Any();
        Pick(0, 5) == 0 && other != values_[0] && other != values_.back())
      graph().outputs.push_back(other);
    return std::move(net_);
  }

 private:
  using Layer = ValueId (Drawing::*)(ValueId);
  static const Layer kLayers[20];

  Graph& graph() { return net_.module.graphs[0]; }
  int64_t Pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint32_t>(high - low + 1));
  }
  template <typename T, size_t N>
  T OneOf(const T (&choices)[N]) {
    return choices[Pick(0, N - 1)];
  }
  ValueId Any() {
    return values_[static_cast<size_t>(Pick(0, static_cast<int64_t>(values_.size()) - 1))];
  }
  const Dims& DimsOf(ValueId v) { return graph().value(v).type.dims; }

  ValueId Op(const char* op, std::vector<ValueId> inputs, AttrList attrs = {}) {
    if (failed_) return inputs[0];
    StrAppend(&net_.text, op, " ");
    const ValueId first = inputs[0];
    auto out =
        builder_->Add(op, StrCat(op, graph().nodes.size()), std::move(inputs), std::move(attrs));
    constexpr int64_t kMaxElements = 80000;
    failed_ = !out.ok();
    if (failed_) return first;
    const Type& type = graph().value(*out).type;
    failed_ = !type.concrete() || type.elements() == 0 || type.elements() > kMaxElements;
    return *out;
  }
  ValueId Weight(const Dims& dims, float low = -1, float high = 1) {
    std::uniform_real_distribution<float> uniform(low, high);
    std::vector<float> values(static_cast<size_t>(dims.elements()));
    for (float& v : values) v = uniform(random_);
    return graph().AddConstant(StrCat("w", graph().value_count()),
                               ConstTensor::Floats(dims, values));
  }
  Ints Pads(int64_t high) { return {Pick(0, high), Pick(0, high), Pick(0, high), Pick(0, high)}; }
  int64_t Groups(int64_t channels) {
    const int64_t groups = OneOf<int64_t>({1, 1, 2, channels});
    return channels % groups == 0 ? groups : 1;
  }
  Ints Strides() { return Pick(0, 1) == 0 ? Ints{1, 1} : Ints{Pick(1, 4), Pick(1, 4)}; }

  ValueId Conv(ValueId x) {
    const int64_t in = DimsOf(x)[1], groups = Groups(in), out = groups * Pick(1, 3);
    return Op("Conv", {x, Weight({out, in / groups, Pick(1, 7), Pick(1, 7)}), Weight({out})},
              {{"strides", Strides()},
               {"dilations", Ints{Pick(1, 3), Pick(1, 3)}},
               {"pads", Pads(3)},
               {"group", groups}});
  }
  // Enough channels for Winograd's arithmetic, whose tiles pieces must not cut.
  ValueId WideConv(ValueId x) {
    const int64_t in = DimsOf(x)[1], wide = 32 + 16 * Pick(0, 1);
    if (in < 32) x = Op("Conv", {x, Weight({wide, in, 1, 1}), Weight({wide})});
    const int64_t channels = DimsOf(x)[1], pad = Pick(0, 1);
    return Op("Conv", {x, Weight({32, channels, 3, 3}, -0.1f, 0.1f), Weight({32})},
              {{"pads", Ints{pad, pad, pad, pad}}});
  }
  ValueId ConvRelu(ValueId x) { return Op("Relu", {Conv(x)}); }
  ValueId Pool(ValueId x) {
    const Ints kernel{Pick(1, 5), Pick(1, 5)};
    AttrList attrs{{"kernel_shape", kernel},
                   {"strides", Ints{Pick(1, 4), Pick(1, 4)}},
                   {"dilations", Pick(0, 2) == 0 ? Ints{Pick(1, 3), Pick(1, 3)} : Ints{1, 1}},
                   {"pads", Pads(std::min(kernel[0], kernel[1]) - 1)},
                   {"ceil_mode", Pick(0, 1)}};
    if (Pick(0, 1) == 0) return Op("MaxPool", {x}, std::move(attrs));
    attrs.Set("count_include_pad", Pick(0, 1));
    return Op("AveragePool", {x}, std::move(attrs));
  }
  ValueId Transposed(ValueId x) {
    const int64_t in = DimsOf(x)[1], groups = Groups(in), stride = Pick(1, 3);
    return Op("ConvTranspose", {x, Weight({in, Pick(1, 2), Pick(1, 5), Pick(1, 5)})},
              {{"strides", Ints{stride, Pick(1, 3)}},
               {"dilations", Ints{Pick(1, 2), Pick(1, 2)}},
               {"pads", Pads(1)},
               {"output_padding", Ints{Pick(0, stride - 1), 0}},
               {"group", groups}});
  }
  ValueId Resize(ValueId x) {
    const char* const kModes[] = {"nearest", "linear", "cubic"};
    const char* const kCoordinates[] = {"half_pixel",           "align_corners",
                                        "asymmetric",           "pytorch_half_pixel",
                                        "half_pixel_symmetric", "tf_crop_and_resize"};
    const char* const kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    const std::string mode = OneOf(kModes);
    const std::string coordinates = OneOf(kCoordinates);
    AttrList attrs{{"mode", mode},
                   {"coordinate_transformation_mode", coordinates},
                   {"nearest_mode", std::string(OneOf(kNearest))}};
    if (mode != "nearest" && Pick(0, 3) == 0) attrs.Set("antialias", int64_t{1});
    if (mode == "cubic" && Pick(0, 1) == 0) attrs.Set("cubic_coeff_a", -0.5);
    if (mode != "nearest" && Pick(0, 3) == 0) attrs.Set("exclude_outside", int64_t{1});
    if (coordinates == "tf_crop_and_resize") {
      // Parts of the rows and columns, which may be mirrored or reach beyond the image.
      constexpr double kBegins[] = {0, 0.2, -0.1, 0.9}, kEnds[] = {1, 0.7, 1.2, 0.1};
      attrs.Set("roi", std::vector<double>{0, 0, OneOf(kBegins), OneOf(kBegins), 1, 1, OneOf(kEnds),
                                           OneOf(kEnds)});
      attrs.Set("extrapolation_value", 0.5);
    }
    if (Pick(0, 1) == 0) {
      attrs.Set("sizes", Ints{DimsOf(x)[0], DimsOf(x)[1], Pick(2, 40), Pick(2, 30)});
    } else {
      constexpr double kScales[] = {0.5, 0.75, 1.3, 2, 2, 3};
      attrs.Set("scales", std::vector<double>{1, 1, OneOf(kScales), OneOf(kScales)});
    }
    return Op("Resize", {x}, std::move(attrs));
  }
  ValueId Pad(ValueId x) {
    const char* const kModes[] = {"reflect", "edge", "constant", "wrap"};
    const Ints p = Pads(3);
    return Op(
        "Pad", {x},
        {{"mode", std::string(OneOf(kModes))}, {"pads", Ints{0, 0, p[0], p[1], 0, 0, p[2], p[3]}}});
  }
  ValueId Pointwise(ValueId x) {
    if (Pick(0, 2) == 0) return Op("Sub", {x, Weight({DimsOf(x)[1], 1, 1})});
    return Op(Pick(0, 1) == 0 ? "Relu" : "Sigmoid", {x});
  }
  // Adds or joins an earlier value, resized to this one.
  ValueId Skip(ValueId x) {
    ValueId other = Any();
    const Dims a = DimsOf(x), b = DimsOf(other);
    if (a[2] != b[2] || a[3] != b[3])
      other = Op("Resize", {other},
                 {{"mode", std::string("linear")}, {"sizes", Ints{b[0], b[1], a[2], a[3]}}});
    if (a[1] == b[1] && Pick(0, 1) == 0) return Op("Add", {x, other});
    return Op("Concat", {x, other}, {{"axis", int64_t{1}}});
  }
  // A factor for each channel from the mean, or maximum, of the whole image.
  ValueId Excite(ValueId x) {
    const int64_t op = Pick(0, 3);
    const char* const kOps[] = {"GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "ReduceMax"};
    AttrList attrs;
    if (op >= 2) attrs.Set("axes", Ints{2, 3});
    return Op("Mul", {x, Op("Sigmoid", {Op(kOps[op], {x}, std::move(attrs))})});
  }
  ValueId Norm(ValueId x) {
    const int64_t channels = DimsOf(x)[1];
    const ValueId scale = Weight({channels}, 0.5f, 1.5f), bias = Weight({channels});
    if (Pick(0, 1) == 0) return Op("InstanceNormalization", {x, scale, bias});
    return Op("GroupNormalization", {x, scale, bias},
              {{"num_groups", channels % 2 == 0 ? int64_t{2} : int64_t{1}}});
  }
  // Over the channels of each position.
  ValueId LayerNorm(ValueId x) {
    const int64_t channels = DimsOf(x)[1];
    const ValueId last = Op("Transpose", {x}, {{"perm", Ints{0, 2, 3, 1}}});
    const ValueId y =
        Op("LayerNormalization", {last, Weight({channels}, 0.5f, 1.5f), Weight({channels})},
           {{"axis", int64_t{-1}}});
    return Op("Transpose", {y}, {{"perm", Ints{0, 3, 1, 2}}});
  }
  // Over all positions of each channel.
  ValueId Softmax(ValueId x) {
    const Dims d = DimsOf(x);
    const ValueId flat = Op("Reshape", {x}, {{"shape", Ints{d[0], d[1], -1}}});
    const ValueId y = Op("Softmax", {flat}, {{"axis", int64_t{-1}}});
    return Op("Reshape", {y}, {{"shape", Ints{d[0], d[1], d[2], d[3]}}});
  }
  ValueId Shuffle(ValueId x) {
    const Dims d = DimsOf(x);
    if (d[1] % 4 == 0) return Op("DepthToSpace", {x}, {{"blocksize", int64_t{2}}});
    if (d[2] % 2 == 0 && d[3] % 2 == 0) return Op("SpaceToDepth", {x}, {{"blocksize", int64_t{2}}});
    const ValueId turned = Op("Transpose", {x}, {{"perm", Ints{0, 1, 3, 2}}});
    return Op("Transpose", {Op("Relu", {turned})}, {{"perm", Ints{0, 1, 3, 2}}});
  }

  std::mt19937& random_;
  RandomNet net_;
  GraphBuilder* builder_ = nullptr;
  std::vector<ValueId> values_;
  bool failed_ = false;
};

const Drawing::Layer Drawing::kLayers[] = {
    &Drawing::Conv,      &Drawing::Conv,    &Drawing::Conv,    &Drawing::ConvRelu,
    &Drawing::Conv,      &Drawing::Pool,    &Drawing::Pool,    &Drawing::Transposed,
    &Drawing::Resize,    &Drawing::Resize,  &Drawing::Pad,     &Drawing::Pointwise,
    &Drawing::Skip,      &Drawing::Skip,    &Drawing::Excite,  &Drawing::Norm,
    &Drawing::LayerNorm, &Drawing::Softmax, &Drawing::Shuffle, &Drawing::WideConv};

}  // namespace

std::optional<RandomNet> DrawNet(int64_t max_batch, std::mt19937* random) {
  return Drawing(max_batch, random).Run();
}

SplitOptions DrawSplit(const Dims& image, std::mt19937* random) {
  const auto pick = [&](int n) { return static_cast<int>((*random)() % static_cast<uint32_t>(n)); };
  SplitOptions split;
  split.parts = {1 + pick(8)};
  if (pick(2) == 0) {
    split.parts = {1 + pick(4), 1 + pick(4)};
    while (split.parts[0] * split.parts[1] > 8) split.parts = {1 + pick(4), 1 + pick(4)};
  }
  if (split.parts.size() == 1 && pick(3) == 0) split.dims = {3};
  for (size_t g = 0; g < split.parts.size(); ++g) {
    split.parts[g] = std::min(split.parts[g], static_cast<int>(image[split.dims[g]]));
    std::vector<double> shares;
    for (int p = 0; p < split.parts[g]; ++p) shares.push_back(1 + pick(12));
    split.shares.push_back(pick(2) == 0 ? std::vector<double>() : shares);
  }
  split.inputs = static_cast<InputRule>(pick(3));
  split.halos = static_cast<HaloRule>(pick(3));
  split.overlap = static_cast<OverlapRule>(pick(3));
  return split;
}

std::string Describe(const SplitOptions& split) {
  std::string text = "grid";
  for (size_t g = 0; g < split.parts.size(); ++g) {
    StrAppend(&text, g == 0 ? " " : "x", split.parts[g], " of dim ", split.dims[g], " [");
    for (double s : split.shares[g]) StrAppend(&text, s, " ");
    text += "]";
  }
  return StrCat(text, " inputs ", static_cast<int>(split.inputs), " halos ",
                static_cast<int>(split.halos), " overlap ", static_cast<int>(split.overlap));
}

}  // namespace msrt::testing

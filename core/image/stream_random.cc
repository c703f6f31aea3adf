#include "core/image/stream_random.h"

namespace msrt::testing {
namespace {

using Ints = std::vector<int64_t>;

class Drawing {
 public:
  explicit Drawing(uint32_t seed) : random_(seed) {
    net_.module.graphs.emplace_back().name = "main";
    net_.module.entries = {0};
    net_.image = {1, Pick(1, 4), Pick(9, 48), Pick(5, 28)};
  }

  std::optional<RandomImageNet> Run() {
    GraphBuilder builder(&net_.module.graphs[0]);
    builder_ = &builder;
    ValueId x = graph().AddInput("image", Type::Tensor(DType::kF32, net_.image));
    values_ = {x};
    const int64_t layers = Pick(1, 8);
    for (int64_t i = 0; i < layers && !failed_; ++i) {
      x = Layer(x);
      if (failed_) break;
      values_.push_back(x);
    }
    if (failed_ || graph().nodes.empty()) return std::nullopt;
    graph().outputs = {x};
    if (Pick(0, 7) == 0) {  // a second output, of another scale
      const ValueId other = values_[static_cast<size_t>(Pick(0, Count() - 1))];
      if (other != x && other != values_[0]) graph().outputs.push_back(other);
    }
    return std::move(net_);
  }

 private:
  Graph& graph() { return net_.module.graphs[0]; }
  int64_t Pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint32_t>(high - low + 1));
  }
  int64_t Count() const { return static_cast<int64_t>(values_.size()); }
  const Dims& DimsOf(ValueId v) { return graph().value(v).type.dims; }

  ValueId Op(const char* op, std::vector<ValueId> inputs, AttrList attrs = {}) {
    if (failed_) return inputs[0];
    StrAppend(&net_.text, op, " ");
    auto out = builder_->Add(op, StrCat(op, graph().nodes.size()), inputs, std::move(attrs));
    failed_ = !out.ok();
    if (failed_) return inputs[0];
    const Type& type = graph().value(*out).type;
    constexpr int64_t kMaxElements = 60000;
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

  ValueId Layer(ValueId x) {
    switch (Pick(0, 16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return Conv(x);
      case 4:
        return Pool(x);
      case 5:
        return Transposed(x);
      case 6:
        return Resize(x);
      case 7:
        return Pad(x);
      case 8:
        return Op(Pick(0, 1) == 0 ? "Relu" : "Sigmoid", {x});
      case 9:
      case 10:
        return Skip(x);
      case 11:
        return Excite(x);
      case 12:
        return Norm(x);
      case 13:
        return Softmax(x);
      case 14:
        return Shuffle(x);
      case 15:
        return LayerNorm(x);
      default:
        return Subtract(x);
    }
  }

  ValueId Conv(ValueId x) {
    const int64_t in = DimsOf(x)[1];
    int64_t groups = Pick(0, 2) == 0 ? in : 1, out = Pick(1, 6);
    if (groups > 1) out = groups * Pick(1, 2);
    const int64_t kh = Pick(1, 7), kw = Pick(1, 7);
    return Op(
        "Conv", {x, Weight({out, in / groups, kh, kw}), Weight({out})},
        {{"strides", Ints{Pick(0, 2) == 0 ? Pick(1, 4) : 1, Pick(0, 2) == 0 ? Pick(1, 4) : 1}},
         {"dilations", Ints{Pick(1, 3), Pick(1, 3)}},
         {"pads", Pads(3)},
         {"group", groups}});
  }
  ValueId Pool(ValueId x) {
    const Ints kernel{Pick(1, 5), Pick(1, 5)};
    const int64_t pad = std::min(kernel[0], kernel[1]) - 1;
    AttrList attrs{{"kernel_shape", kernel},
                   {"strides", Ints{Pick(1, 4), Pick(1, 4)}},
                   {"pads", Pads(pad)},
                   {"ceil_mode", Pick(0, 1)}};
    if (Pick(0, 1) == 0) return Op("MaxPool", {x}, std::move(attrs));
    attrs.Set("count_include_pad", Pick(0, 1));
    return Op("AveragePool", {x}, std::move(attrs));
  }
  ValueId Transposed(ValueId x) {
    const int64_t in = DimsOf(x)[1], out = Pick(1, 4);
    return Op("ConvTranspose", {x, Weight({in, out, Pick(1, 4), Pick(1, 4)})},
              {{"strides", Ints{Pick(1, 3), Pick(1, 3)}}, {"pads", Pads(1)}});
  }
  ValueId Resize(ValueId x) {
    constexpr const char* kModes[] = {"nearest", "linear", "cubic"};
    constexpr const char* kPlaces[] = {"half_pixel", "align_corners", "asymmetric",
                                       "pytorch_half_pixel", "half_pixel_symmetric"};
    constexpr const char* kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    AttrList attrs{{"mode", std::string(kModes[Pick(0, 2)])},
                   {"coordinate_transformation_mode", std::string(kPlaces[Pick(0, 4)])},
                   {"nearest_mode", std::string(kNearest[Pick(0, 3)])}};
    if (Pick(0, 1) == 0) {
      attrs.Set("sizes", Ints{1, DimsOf(x)[1], Pick(2, 40), Pick(2, 30)});
    } else {
      constexpr double kScales[] = {0.5, 0.75, 1.3, 2, 2, 3};
      attrs.Set("scales", std::vector<double>{1, 1, kScales[Pick(0, 5)], kScales[Pick(0, 5)]});
    }
    return Op("Resize", {x}, std::move(attrs));
  }
  ValueId Pad(ValueId x) {
    constexpr const char* kModes[] = {"reflect", "edge", "constant"};
    const Ints p = Pads(3);
    return Op("Pad", {x},
              {{"mode", std::string(kModes[Pick(0, 2)])},
               {"pads", Ints{0, 0, p[0], p[1], 0, 0, p[2], p[3]}}});
  }
  // Adds or joins an earlier value, resized to this one.
  ValueId Skip(ValueId x) {
    ValueId other = values_[static_cast<size_t>(Pick(0, Count() - 1))];
    const Dims a = DimsOf(x), b = DimsOf(other);
    if (a[2] != b[2] || a[3] != b[3])
      other = Op("Resize", {other},
                 {{"mode", std::string("linear")}, {"sizes", Ints{1, b[1], a[2], a[3]}}});
    if (a[1] == b[1] && Pick(0, 1) == 0) return Op("Add", {x, other});
    return Op("Concat", {x, other}, {{"axis", int64_t{1}}});
  }
  // A factor for each channel from the mean, or maximum, of the whole image.
  ValueId Excite(ValueId x) {
    const char* const kOps[] = {"GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "ReduceMax"};
    const int64_t op = Pick(0, 3);
    AttrList attrs;
    if (op >= 2) attrs.Set("axes", Ints{2, 3});
    const ValueId pooled = Op(kOps[op], {x}, std::move(attrs));
    return Op("Mul", {x, Op("Sigmoid", {pooled})});
  }
  ValueId Norm(ValueId x) {
    const int64_t channels = DimsOf(x)[1];
    const ValueId scale = Weight({channels}, 0.5f, 1.5f), bias = Weight({channels});
    if (Pick(0, 1) == 0) return Op("InstanceNormalization", {x, scale, bias});
    const int64_t groups = channels % 2 == 0 ? 2 : 1;
    return Op("GroupNormalization", {x, scale, bias}, {{"num_groups", groups}});
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
    const Dims dims = DimsOf(x);
    const ValueId flat = Op("Reshape", {x}, {{"shape", Ints{1, dims[1], -1}}});
    const ValueId y = Op("Softmax", {flat}, {{"axis", int64_t{-1}}});
    return Op("Reshape", {y}, {{"shape", Ints{1, dims[1], dims[2], dims[3]}}});
  }
  ValueId Shuffle(ValueId x) {
    const Dims dims = DimsOf(x);
    if (dims[1] % 4 == 0 && Pick(0, 1) == 0)
      return Op("DepthToSpace", {x}, {{"blocksize", int64_t{2}}});
    if (dims[2] % 2 == 0 && dims[3] % 2 == 0 && dims[1] <= 3)
      return Op("SpaceToDepth", {x}, {{"blocksize", int64_t{2}}});
    return Op("Transpose", {Op("Transpose", {x}, {{"perm", Ints{0, 2, 3, 1}}})},
              {{"perm", Ints{0, 3, 1, 2}}});
  }
  ValueId Subtract(ValueId x) { return Op("Sub", {x, Weight({DimsOf(x)[1], 1, 1})}); }

  std::mt19937 random_;
  RandomImageNet net_;
  GraphBuilder* builder_ = nullptr;
  std::vector<ValueId> values_;
  bool failed_ = false;
};

}  // namespace

std::optional<RandomImageNet> DrawImageNet(uint32_t seed) { return Drawing(seed).Run(); }

}  // namespace msrt::testing

#include "tests/bench/image_networks.h"

#include <cmath>
#include <random>

#include "ops/builder.h"

namespace msrt::testing {
namespace {

using Ints = std::vector<int64_t>;

// The first error is kept; later values mean nothing.
class Network {
 public:
  Network() : module_(), builder_(nullptr) {
    module_.graphs.emplace_back().name = "main";
    module_.entries = {0};
    builder_ = GraphBuilder(&graph());
  }

  ValueId Image() {
    return graph().AddInput("image",
                            Type::Tensor(DType::kF32, {1, kImageBands, kUnknownDim, kUnknownDim}));
  }
  ValueId Op(const char* op, std::vector<ValueId> inputs, AttrList attrs = {}) {
    if (!status_.ok()) return kNoValue;
    auto out =
        builder_.Add(op, StrCat(op, graph().nodes.size()), std::move(inputs), std::move(attrs));
    if (out.ok()) return *out;
    status_ = std::move(out).status();
    return kNoValue;
  }
  ValueId Conv(ValueId x, int64_t in, int64_t out, int64_t kernel, int64_t stride = 1,
               int64_t dilation = 1) {
    const int64_t pad = dilation * (kernel - 1) / 2;
    const auto limit =
        static_cast<float>(std::sqrt(3.0 / static_cast<double>(in * kernel * kernel)));
    return Op("Conv", {x, Weight({out, in, kernel, kernel}, -limit, limit), Weight({out}, -1, 1)},
              {{"strides", Ints{stride, stride}},
               {"dilations", Ints{dilation, dilation}},
               {"pads", Ints{pad, pad, pad, pad}}});
  }
  ValueId Normed(ValueId x, int64_t channels) {
    const Dims dims{channels};
    x = Op("BatchNormalization", {x, Weight(dims, 0.5f, 1.5f), Weight(dims, -1, 1),
                                  Weight(dims, -0.1f, 0.1f), Weight(dims, 0.8f, 1.2f)});
    return Op("Relu", {x});
  }
  ValueId Pair(ValueId x, int64_t in, int64_t out) {
    for (const int64_t from : {in, out}) x = Normed(Conv(x, from, out, 3), out);
    return x;
  }
  ValueId Weight(const Dims& dims, float low, float high) {
    std::uniform_real_distribution<float> uniform(low, high);
    std::vector<float> values(static_cast<size_t>(dims.elements()));
    for (float& v : values) v = uniform(random_);
    return graph().AddConstant(StrCat("w", graph().value_count()),
                               ConstTensor::Floats(dims, values));
  }
  Result<Module> Finish(ValueId output) {
    MSRT_RETURN_IF_ERROR(std::move(status_));
    graph().outputs = {output};
    return std::move(module_);
  }

 private:
  Graph& graph() { return module_.graphs[0]; }
  Module module_;
  GraphBuilder builder_;
  std::mt19937 random_{1};
  Status status_;
};

Result<Module> Classes() {
  constexpr int64_t kChannels = 64, kClasses = 5;
  Network net;
  ValueId x = net.Conv(net.Image(), kImageBands, kChannels, 7, 2);
  for (int layer = 0; layer < 8; ++layer) {
    const bool dilated = layer == 3 || layer == 5;
    x = net.Normed(net.Conv(x, kChannels, kChannels, 3, 1, dilated ? 2 : 1), kChannels);
  }
  x = net.Op("Resize", {x},
             {{"mode", std::string("linear")}, {"scales", std::vector<double>{1, 1, 2, 2}}});
  return net.Finish(net.Conv(x, kChannels, kClasses, 1));
}

Result<Module> UNet() {
  constexpr int64_t kWidth = 32, kClasses = 2;
  constexpr int kLevels = 4;
  Network net;
  ValueId x = net.Image();
  std::vector<ValueId> skips;
  int64_t channels = kImageBands;
  for (int level = 0; level < kLevels; ++level) {
    const int64_t out = kWidth << level;
    x = net.Pair(x, channels, out);
    skips.push_back(x);
    x = net.Op("MaxPool", {x}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
    channels = out;
  }
  x = net.Pair(x, channels, 2 * channels);
  for (int level = kLevels - 1; level >= 0; --level) {
    const int64_t out = kWidth << level;
    const ValueId up =
        net.Op("ConvTranspose",
               {x, net.Weight({2 * out, out, 2, 2}, -0.1f, 0.1f), net.Weight({out}, -1, 1)},
               {{"strides", Ints{2, 2}}});
    x = net.Op("Concat", {skips[static_cast<size_t>(level)], up}, {{"axis", int64_t{1}}});
    x = net.Pair(x, 2 * out, out);
  }
  return net.Finish(net.Conv(x, kWidth, kClasses, 1));
}

}  // namespace

Result<Module> ImageNetwork(std::string_view name) {
  if (name == "classes") return Classes();
  if (name == "unet") return UNet();
  return InvalidArgument("no network '", name, "'; there are classes and unet");
}

}  // namespace msrt::testing

// Convolutional networks of the zoo.
#include "tools/msconvert/net.h"

namespace msrt::zoo {
namespace {

ValueId Image(Net& net, const Options& o, int64_t channels, int64_t usual) {
  const int64_t size = Or(o.image, usual);
  const int64_t batch = o.batch != 0 ? o.batch : net.Symbol("batch");
  if (o.open_image)
    return net.Input("image", DType::kF32,
                     {batch, channels, net.Symbol("height"), net.Symbol("width")});
  return net.Input("image", DType::kF32, {batch, channels, size, size});
}

ValueId ConvNorm(Net& net, ValueId x, const ConvSpec& spec) {
  return net.BatchNorm(net.Conv(x, spec));
}

ValueId ClassifierHead(Net& net, ValueId x, int64_t classes) {
  return net.Linear(net.Op("Flatten", {net.Op("GlobalAveragePool", {x})}), classes);
}

ValueId BasicBlock(Net& net, ValueId x, int64_t channels, int64_t stride) {
  const bool project = stride != 1 || net.DimsOf(x)[1] != channels;
  const ValueId shortcut = project ? ConvNorm(net, x, {.out = channels, .stride = stride}) : x;
  ValueId y =
      net.Relu(ConvNorm(net, x, {.out = channels, .kernel = 3, .stride = stride, .pad = 1}));
  y = ConvNorm(net, y, {.out = channels, .kernel = 3, .pad = 1});
  return net.Relu(net.Op("Add", {y, shortcut}));
}

// The 3x3 convolution has the stride, as in torchvision.
ValueId Bottleneck(Net& net, ValueId x, int64_t channels, int64_t stride) {
  const bool project = stride != 1 || net.DimsOf(x)[1] != 4 * channels;
  const ValueId shortcut = project ? ConvNorm(net, x, {.out = 4 * channels, .stride = stride}) : x;
  ValueId y = net.Relu(ConvNorm(net, x, {.out = channels}));
  y = net.Relu(ConvNorm(net, y, {.out = channels, .kernel = 3, .stride = stride, .pad = 1}));
  y = ConvNorm(net, y, {.out = 4 * channels});
  return net.Relu(net.Op("Add", {y, shortcut}));
}

Result<Module> ResNet(std::string_view name, const Options& o, std::span<const int> blocks,
                      ValueId (*block)(Net&, ValueId, int64_t, int64_t)) {
  Net net(name, o);
  const int64_t width = Or(o.width, 64);
  ValueId x = net.Relu(
      ConvNorm(net, Image(net, o, 3, 224), {.out = width, .kernel = 7, .stride = 2, .pad = 3}));
  x = net.MaxPool(x, 3, 2, 1);
  for (size_t stage = 0; stage < blocks.size(); ++stage) {
    for (int i = 0; i < blocks[stage]; ++i) {
      net.Scope(StrCat("layer", stage + 1, ".", i, "."));
      x = block(net, x, width << stage, stage != 0 && i == 0 ? 2 : 1);
    }
  }
  net.Scope("head.");
  net.Output(ClassifierHead(net, x, Or(o.classes, 1000)), "logits");
  return std::move(net).Finish();
}

// A 3x3 convolution that keeps the size, whatever its dilation.
ValueId DilatedConv(Net& net, ValueId x, int64_t channels, int64_t dilation) {
  return net.Relu(
      ConvNorm(net, x, {.out = channels, .kernel = 3, .pad = dilation, .dilation = dilation}));
}

ValueId Enlarge(Net& net, ValueId x, double factor) {
  return net.Op(
      "Resize", {x},
      {{"mode", std::string("linear")}, {"scales", std::vector<double>{1, 1, factor, factor}}});
}

ValueId DoubleConv(Net& net, ValueId x, int64_t channels) {
  for (int i = 0; i < 2; ++i)
    x = net.Relu(ConvNorm(net, x, {.out = channels, .kernel = 3, .pad = 1, .bias = true}));
  return x;
}

}  // namespace

Result<Module> LeNet(const Options& o) {
  Net net("lenet", o);
  ValueId x =
      net.Relu(net.Conv(Image(net, o, 1, 28), {.out = 6, .kernel = 5, .pad = 2, .bias = true}));
  x = net.MaxPool(x, 2, 2, 0);
  x = net.Relu(net.Conv(x, {.out = 16, .kernel = 5, .bias = true}));
  x = net.Op("Flatten", {net.MaxPool(x, 2, 2, 0)});
  x = net.Relu(net.Linear(x, 120));
  x = net.Relu(net.Linear(x, 84));
  net.Output(net.Op("Softmax", {net.Linear(x, Or(o.classes, 10))}), "probabilities");
  return std::move(net).Finish();
}

Result<Module> ResNet18(const Options& o) {
  constexpr int kBlocks[] = {2, 2, 2, 2};
  return ResNet("resnet18", o, kBlocks, BasicBlock);
}

Result<Module> ResNet50(const Options& o) {
  constexpr int kBlocks[] = {3, 4, 6, 3};
  return ResNet("resnet50", o, kBlocks, Bottleneck);
}

Result<Module> MobileNetV2(const Options& o) {
  struct Stage {
    int64_t expand, out;
    int repeat;
    int64_t stride;
  };
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  Net net("mobilenetv2", o);
  const auto clipped = [&](ValueId x) { return net.Op("Clip", {x}, {{"min", 0.0}, {"max", 6.0}}); };
  ValueId x = clipped(ConvNorm(net, Image(net, o, 3, 224),
                               {.out = Or(o.width, 32), .kernel = 3, .stride = 2, .pad = 1}));
  for (size_t s = 0; s < std::size(kStages); ++s) {
    for (int i = 0; i < kStages[s].repeat; ++i) {
      net.Scope(StrCat("stage", s + 1, ".", i, "."));
      const int64_t in = net.DimsOf(x)[1], hidden = in * kStages[s].expand,
                    stride = i == 0 ? kStages[s].stride : 1;
      ValueId y = kStages[s].expand == 1 ? x : clipped(ConvNorm(net, x, {.out = hidden}));
      y = clipped(ConvNorm(
          net, y, {.out = hidden, .kernel = 3, .stride = stride, .pad = 1, .group = hidden}));
      y = ConvNorm(net, y, {.out = kStages[s].out});
      x = stride == 1 && in == kStages[s].out ? net.Op("Add", {x, y}) : y;
    }
  }
  net.Scope("head.");
  x = clipped(ConvNorm(net, x, {.out = 1280}));
  net.Output(ClassifierHead(net, x, Or(o.classes, 1000)), "logits");
  return std::move(net).Finish();
}

// Four levels over images of four bands: the shape of a remote-sensing segmentation network.
Result<Module> UNet(const Options& o) {
  Net net("unet", o);
  const int64_t width = Or(o.width, 32);
  ValueId x = Image(net, o, 4, 256);
  std::vector<ValueId> skips;
  for (int level = 0; level < 4; ++level) {
    net.Scope(StrCat("down", level, "."));
    x = DoubleConv(net, x, width << level);
    skips.push_back(x);
    x = net.MaxPool(x, 2, 2, 0);
  }
  net.Scope("bottom.");
  x = DoubleConv(net, x, width << 4);
  for (int level = 3; level >= 0; --level) {
    net.Scope(StrCat("up", level, "."));
    x = net.Op("Concat", {skips[static_cast<size_t>(level)], net.Deconv2x2(x, width << level)},
               {{"axis", int64_t{1}}});
    x = DoubleConv(net, x, width << level);
  }
  net.Scope("head.");
  net.Output(net.Conv(x, {.out = Or(o.classes, 2), .bias = true}), "classes");
  return std::move(net).Finish();
}

// The segmentation network with "atrous" convolutions: stages that widen the view by dilation
// instead of strides, parallel branches of several dilations, and a decoder that enlarges
// bilinearly and joins early features. Without the branch that averages over the whole image.
Result<Module> DeepLab(const Options& o) {
  Net net("deeplab", o);
  const int64_t width = Or(o.width, 32);
  ValueId x = net.Relu(
      ConvNorm(net, Image(net, o, 4, 256), {.out = width, .kernel = 3, .stride = 2, .pad = 1}));
  x = net.MaxPool(x, 3, 2, 1);
  net.Scope("layer1.");
  x = BasicBlock(net, x, width, 1);
  const ValueId early = x;
  net.Scope("layer2.");
  x = BasicBlock(net, x, 2 * width, 2);
  for (const int64_t dilation : {2, 4}) {
    net.Scope(StrCat("layer", dilation == 2 ? 3 : 4, "."));
    x = net.Op("Add", {x, DilatedConv(net, x, 2 * width, dilation)});
  }
  net.Scope("branches.");
  std::vector<ValueId> branches{net.Relu(ConvNorm(net, x, {.out = width}))};
  for (const int64_t dilation : {3, 6, 9}) branches.push_back(DilatedConv(net, x, width, dilation));
  x = net.Op("Concat", std::move(branches), {{"axis", int64_t{1}}});
  x = net.Relu(ConvNorm(net, x, {.out = 2 * width}));
  net.Scope("head.");
  x = net.Op("Concat", {Enlarge(net, x, 2), net.Relu(ConvNorm(net, early, {.out = 8}))},
             {{"axis", int64_t{1}}});
  x = net.Relu(ConvNorm(net, x, {.out = width, .kernel = 3, .pad = 1}));
  net.Output(Enlarge(net, net.Conv(x, {.out = Or(o.classes, 2), .bias = true}), 4), "classes");
  return std::move(net).Finish();
}

}  // namespace msrt::zoo

#include "tools/msconvert/zoo.h"

namespace msrt::zoo {
namespace {

constexpr Entry kNetworks[] = {
    {"lenet", "LeNet-5 over 28x28 digits", LeNet},
    {"resnet18", "ResNet-18, 11.7 M parameters", ResNet18},
    {"resnet50", "ResNet-50, 25.6 M parameters", ResNet50},
    {"mobilenetv2", "MobileNetV2, 3.5 M parameters", MobileNetV2},
    {"unet", "4-level U-Net over 4-band images", UNet},
    {"deeplab", "dilated ResNet with parallel dilated branches over 4-band images", DeepLab},
    {"bert", "BERT base encoder, 109 M parameters", Bert},
    {"gpt2", "GPT-2 small decoder, 163 M parameters", Gpt2},
};

Status CheckOptions(const Options& o) {
  for (int64_t v : {o.batch, o.image, o.width, o.classes, o.layers, o.heads, o.sequence}) {
    if (v < 0 || v > (int64_t{1} << 20))
      return InvalidArgument("a size of ", v, " is out of range; sizes are 1 to 1048576");
  }
  return OkStatus();
}

}  // namespace

std::span<const Entry> Networks() { return kNetworks; }

Result<Module> Build(std::string_view name, const Options& options) {
  MSRT_RETURN_IF_ERROR(CheckOptions(options));
  std::string known;
  for (const Entry& e : kNetworks) {
    if (e.name == name) return e.build(options);
    StrAppend(&known, known.empty() ? "" : ", ", e.name);
  }
  return NotFound("the zoo has no '", name, "'; it has ", known);
}

}  // namespace msrt::zoo

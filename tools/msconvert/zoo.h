// Well-known networks with seeded weights, so that first experiments, benchmarks and tests need no
// other framework.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace msrt::zoo {

// 0 means the network's default.
struct Options {
  uint64_t seed = 1;
  int64_t batch = 0;        // 0: open, named "batch"
  int64_t image = 0;        // height and width
  bool open_image = false;  // height and width stay open, named "height" and "width"
  int64_t width = 0;        // channels of the first stage, or hidden size
  int64_t classes = 0;      // or vocabulary
  int64_t layers = 0, heads = 0;
  int64_t sequence = 0;  // 0: open, named "sequence"
};

struct Entry {
  std::string_view name, what;
  Result<Module> (*build)(const Options&);
};
// lenet, resnet18, resnet50, mobilenetv2, unet, deeplab, bert, gpt2.
std::span<const Entry> Networks();

Result<Module> Build(std::string_view name, const Options& options);

Result<Module> LeNet(const Options&);
Result<Module> ResNet18(const Options&);
Result<Module> ResNet50(const Options&);
Result<Module> MobileNetV2(const Options&);
Result<Module> UNet(const Options&);
Result<Module> DeepLab(const Options&);
Result<Module> Bert(const Options&);
Result<Module> Gpt2(const Options&);

}  // namespace msrt::zoo

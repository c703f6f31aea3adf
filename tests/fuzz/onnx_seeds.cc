#include "tests/fuzz/onnx_seeds.h"

#include <algorithm>
#include <filesystem>

#include "core/base/io.h"
#include "tests/hostile/onnx_text.h"

namespace msrt::testing {

std::vector<std::vector<std::byte>> OnnxSeeds() {
  namespace fs = std::filesystem;
  std::vector<std::vector<std::byte>> seeds;
  for (const SampleText& sample : SampleTexts()) seeds.push_back(OnnxBytes(OnnxModel(sample.graph, sample.rest)));
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(MSRT_TEST_DATA) / "onnx")) {
    if (entry.path().extension() == ".onnx") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const auto bytes = DefaultIo()->MapFile(file.string());
    MSRT_CHECK(bytes.ok());
    seeds.emplace_back(bytes->data.begin(), bytes->data.end());
  }
  return seeds;
}

}  // namespace msrt::testing

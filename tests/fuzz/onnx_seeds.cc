#include "tests/fuzz/onnx_seeds.h"

#include <algorithm>
#include <filesystem>

#include "core/base/io.h"
#include "ops/registry.h"
#include "tests/fuzz/mutate_message.h"
#include "tests/hostile/onnx_text.h"

namespace msrt::testing {
namespace {

// Names of ops and attributes, and values of attributes.
const std::vector<std::string>& OpWords() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> list = {"",     "com.microsoft", "ai.onnx.ml", "If",          "Loop",
                                     "Scan", "SequenceMap",   "Optional",   "then_branch", "body"};
    ForEachOp([&](const OpDef& def) {
      list.emplace_back(def.name);
      for (const AttrDef& attr : def.attrs) {
        list.emplace_back(attr.name);
        list.insert(list.end(), attr.choices.begin(), attr.choices.end());
      }
    });
    return list;
  }();
  return words;
}

}  // namespace

std::vector<std::byte> MutateOnnx(std::span<const std::byte> file, uint64_t seed) {
  return MutateMessage(file, seed, OpWords(), NewDynamicOnnx().get());
}

std::vector<std::vector<std::byte>> OnnxSeeds() {
  namespace fs = std::filesystem;
  std::vector<std::vector<std::byte>> seeds;
  for (const SampleText& sample : SampleTexts())
    seeds.push_back(OnnxBytes(OnnxModel(sample.graph, sample.rest)));
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

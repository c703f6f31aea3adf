// A MindIR file through all of msconvert.
#include <algorithm>
#include <filesystem>

#include "mindir.pb.h"
#include "tests/fuzz/converted.h"
#include "tests/fuzz/driver.h"
#include "tests/fuzz/mutate_message.h"
#include "tools/msconvert/mindir/import.h"
#include "tools/msconvert/mindir/import_rule.h"

namespace msrt::testing {
namespace {

constexpr size_t kMaxNodes = 500, kMaxGraphs = 100;  // small models
constexpr uintmax_t kMaxSeedBytes = 20'000;          // larger files only have larger weights

bool FuzzMindIr(std::span<const std::byte> bytes) {
  mindir_import::ImportOptions options;
  options.max_nodes = kMaxNodes;
  options.max_graphs = kMaxGraphs;
  auto imported = mindir_import::ImportBytes(bytes, "", options, DefaultIo());
  if (!imported.ok()) RequireGoodError(imported.status());
  if (!imported.ok() || !imported->problems.empty()) return false;
  return FuzzConverted(std::move(imported->module));
}

std::vector<FuzzFile> MindIrSeeds() {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(MSRT_MINDIR_DATA)) {
    if (entry.path().extension() == ".mindir" && entry.file_size() <= kMaxSeedBytes)
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<FuzzFile> seeds;
  for (const fs::path& file : files) {
    const auto bytes = DefaultIo()->MapFile(file.string());
    MSRT_CHECK(bytes.ok());
    seeds.emplace_back(bytes->data.begin(), bytes->data.end());
  }
  return seeds;
}

FuzzFile MutateMindIr(std::span<const std::byte> file, uint64_t seed) {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> list = {"Constant", "MakeTuple",   "TupleGetItem", "Partial",
                                     "Switch",   "SwitchLayer", "Depend",       "Load",
                                     "Assign",   "UpdateState"};
    mindir_import::ForEachRule(
        [&](const mindir_import::Rule& rule) { list.emplace_back(rule.op); });
    return list;
  }();
  mindir::ModelProto scratch;
  return MutateMessage(file, seed, words, &scratch);
}

}  // namespace

const FuzzSubject kFuzzSubject = {FuzzMindIr, MindIrSeeds, MutateMindIr, nullptr};

}  // namespace msrt::testing

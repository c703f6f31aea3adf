// Checkpoints that MindSpore saved, loaded over the weights of an exported model.
#include "tools/msconvert/mindir/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ops/validate.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/mindir/import.h"
#include "tools/tensors/compare.h"
#include "tools/tensors/npy.h"

namespace msrt::testing {
namespace {

std::string Data(const std::string& name) { return StrCat(MSRT_CHECKPOINT_DATA, "/", name); }

Module ImportModel() {
  auto imported = mindir_import::ImportFile(Data("model.mindir"), {}, DefaultIo());
  EXPECT_TRUE(imported.ok() && imported->problems.empty());
  return imported.ok() ? std::move(imported->module) : Module();
}

double Deviation(Module module) {
  const auto x = ReadNpy(Data("input_0.npy")), want = ReadNpy(Data("output_0.npy"));
  EXPECT_TRUE(Validate(&module).ok());
  const auto got = RunModule(module, {*x});
  EXPECT_TRUE(got.ok()) << got.status().message();
  if (!got.ok()) return 1;
  return Compare(ViewOf((*got)[0]), ViewOf(*want))->relative;
}

TEST(Checkpoint, ModelWithoutItDiffers) { EXPECT_GT(Deviation(ImportModel()), 0.01); }

TEST(Checkpoint, ResultsMatchMindSpore) {
  for (const char* name : {"plain.ckpt", "summed.ckpt", "more.ckpt"}) {
    SCOPED_TRACE(name);
    Module module = ImportModel();
    const auto load = mindir_import::LoadCheckpoint(Data(name), DefaultIo(), &module);
    ASSERT_TRUE(load.ok()) << load.status().message();
    EXPECT_EQ(load->loaded, 5u);
    EXPECT_EQ(load->unused, std::string(name) == "more.ckpt"
                                ? std::vector<std::string>{"moment1.scale"}
                                : std::vector<std::string>());
    EXPECT_LE(Deviation(std::move(module)), 1e-5);
  }
}

TEST(Checkpoint, AllMismatchesAreReportedTogether) {
  Module module = ImportModel();
  const auto load = mindir_import::LoadCheckpoint(Data("wrong.ckpt"), DefaultIo(), &module);
  ASSERT_FALSE(load.ok());
  for (const char* fragment :
       {"3 weights do not fit", "'last.bias': the model has f32[2], the checkpoint has none",
        "'scale': the model has f32[2], the checkpoint f32[7]",
        "'first.bias': the model has f32[5], the checkpoint f16[5]"}) {
    EXPECT_NE(load.status().message().find(fragment), std::string::npos) << load.status().message();
  }
}

TEST(Checkpoint, DamagedFilesAreRefused) {
  std::ifstream file(Data("plain.ckpt"), std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(file), {}};
  const std::string path =
      (std::filesystem::temp_directory_path() / StrCat("damaged_", getpid(), ".ckpt")).string();
  for (size_t length = 0; length < good.size(); length += 7) {
    std::ofstream(path, std::ios::binary) << good.substr(0, length);
    Module module = ImportModel();
    const auto load = mindir_import::LoadCheckpoint(path, DefaultIo(), &module);
    EXPECT_FALSE(load.ok()) << length;
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace msrt::testing

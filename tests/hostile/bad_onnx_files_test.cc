// Files around an ONNX model: external data outside the folder, and the files that msconvert leaves
// behind when it refuses a model.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/clock.h"
#include "tests/hostile/onnx_text.h"
#include "tools/msconvert/onnx/importer.h"

namespace msrt::testing {
namespace {

namespace fs = std::filesystem;

struct ExternalCase {
  const char* name;
  const char* fragment;  // empty: valid
  const char* location;
  const char* offset = "0";
  const char* length = "8";
};

// A folder with the model and files that it may or may not read: w.bin of 16 bytes, a folder, a
// pipe, links to the inside and the outside.
class OnnxFilesTest : public ::testing::TestWithParam<ExternalCase> {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "bad_onnx_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    outer_ = pattern;
    folder_ = outer_ / "model";
    fs::create_directories(folder_ / "directory");
    Write(folder_ / "w.bin", std::string(16, 'w'));
    Write(folder_ / "empty.bin", "");
    Write(outer_ / "secret.bin", std::string(16, 's'));
    fs::create_symlink(outer_ / "secret.bin", folder_ / "link_out.bin");
    fs::create_symlink(outer_, folder_ / "link_up");
    fs::create_symlink("w.bin", folder_ / "link_in.bin");
    fs::create_symlink("circle.bin", folder_ / "circle.bin");
    ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  }
  void TearDown() override { fs::remove_all(outer_); }

  static void Write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string Read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static size_t EntriesOf(const fs::path& folder) {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }

  // A model whose weight is external.
  fs::path External(const ExternalCase& c) {
    onnx::ModelProto model = OnnxModel(R"(
      input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
      initializer { name: 'w' dims: 2 data_type: 1 data_location: EXTERNAL }
      node { name: 'add' op_type: 'Add' input: 'x' input: 'w' output: 'y' } output { name: 'y' })");
    const std::pair<const char*, const char*> entries[] = {
        {"location", c.location}, {"offset", c.offset}, {"length", c.length}};
    for (const auto& [key, value] : entries) {
      auto* entry = model.mutable_graph()->mutable_initializer(0)->add_external_data();
      entry->set_key(key);
      entry->set_value(std::string(value) == "OUTER" ? (outer_ / "secret.bin").string() : value);
    }
    Write(folder_ / "model.onnx", model.SerializeAsString());
    return folder_ / "model.onnx";
  }

  int Msconvert(const fs::path& input, const fs::path& output) const {
    const std::string command = StrCat(MSRT_MSCONVERT, " '", input.string(), "' '", output.string(),
                                       "' > ", (outer_ / "log").string(), " 2>&1");
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  fs::path outer_, folder_;
};

TEST_P(OnnxFilesTest, ExternalDataIsReadOrRefused) {
  const StopWatch watch;
  const auto imported = onnx_import::ImportFile(External(GetParam()).string(), {}, DefaultIo());
  EXPECT_LT(watch.Millis(), 5000);
  EXPECT_EQ(imported.ok(), GetParam().fragment[0] == '\0');
  if (imported.ok()) return;
  EXPECT_NE(imported.status().message().find("tensor 'w'"), std::string::npos)
      << imported.status().message();
  EXPECT_NE(imported.status().message().find(GetParam().fragment), std::string::npos)
      << imported.status().message();
}

INSTANTIATE_TEST_SUITE_P(
    Rows, OnnxFilesTest,
    ::testing::Values(
        ExternalCase{"Good", "", "w.bin"}, ExternalCase{"GoodAtAnOffset", "", "w.bin", "8"},
        ExternalCase{"GoodByAnInnerLink", "", "link_in.bin"},
        ExternalCase{"GoodByADot", "", "./w.bin"},
        ExternalCase{"Up", "leads out of the model's folder", "../secret.bin"},
        ExternalCase{"UpAndDown", "leads out of the model's folder", "directory/../w.bin"},
        ExternalCase{"Absolute", "is an absolute path", "OUTER"},
        ExternalCase{"LinkOut", "is a link that leads out", "link_out.bin"},
        ExternalCase{"FolderThatLeadsOut", "is a link that leads out", "link_up/secret.bin"},
        ExternalCase{"LinkToItself", "circle.bin", "circle.bin"},
        ExternalCase{"NoName", "is no name of a file", ""},
        ExternalCase{"NotThere", "absent.bin", "absent.bin"},
        ExternalCase{"Directory", "is no regular file", "directory"},
        ExternalCase{"Pipe", "is no regular file", "pipe"},
        ExternalCase{"Empty", "has 0 bytes", "empty.bin"},
        ExternalCase{"OffsetBeyondTheEnd", "has 16 bytes, but 8 at offset 9", "w.bin", "9"},
        ExternalCase{"OffsetThatWraps", "at offset 18446744073709551615", "w.bin",
                     "18446744073709551615"},
        ExternalCase{"OffsetTooLargeForANumber", "is no number", "w.bin", "18446744073709551616"},
        ExternalCase{"OffsetBelowZero", "is no number", "w.bin", "-8"},
        ExternalCase{"OffsetNoNumber", "is no number", "w.bin", "eight"},
        ExternalCase{"LengthTooShort", "needs 8 bytes, its external data has 4", "w.bin", "0", "4"},
        ExternalCase{"LengthHuge", "its external data has 1152921504606846976", "w.bin", "0",
                     "1152921504606846976"}),
    [](const auto& row) { return std::string(row.param.name); });

class MsconvertFilesTest : public OnnxFilesTest {};

// A refused model leaves an older output unchanged, and creates no other file.
TEST_F(MsconvertFilesTest, RefusalKeepsAnOlderOutput) {
  const fs::path good = folder_ / "good.onnx", results = outer_ / "results",
                 output = results / "m.msrt";
  const std::string bytes = OnnxModel(SampleTexts()[0].graph).SerializeAsString();
  Write(good, bytes);
  fs::create_directory(results);
  ASSERT_EQ(Msconvert(good, output), 0) << Read(outer_ / "log");
  const std::string before = Read(output);
  Write(folder_ / "cut.onnx", bytes.substr(0, bytes.size() / 2));
  Write(folder_ / "empty.onnx", "");
  Write(folder_ / "unknown.onnx",
        OnnxModel("input { name: 'x' type { tensor_type { elem_type: 1 } } } node { op_type: "
                  "'Nope' input: 'x' output: 'y' } output { name: 'y' }")
            .SerializeAsString());
  const fs::path bad[] = {folder_ / "cut.onnx",
                          folder_ / "empty.onnx",
                          folder_ / "unknown.onnx",
                          folder_ / "absent.onnx",
                          folder_ / "directory",
                          folder_ / "pipe",
                          External({"", "", "../secret.bin"})};
  for (const fs::path& input : bad) {
    SCOPED_TRACE(input.filename());
    EXPECT_GT(Msconvert(input, output), 0) << Read(outer_ / "log");
    EXPECT_FALSE(Read(outer_ / "log").empty());
    EXPECT_EQ(Read(output), before);
    EXPECT_EQ(EntriesOf(results), 1u);
  }
}

TEST_F(MsconvertFilesTest, RefusalWritesNoFile) {
  const fs::path results = outer_ / "results";
  fs::create_directory(results);
  Write(folder_ / "cut.onnx", OnnxModel(SampleTexts()[1].graph).SerializeAsString().substr(0, 100));
  EXPECT_GT(Msconvert(folder_ / "cut.onnx", results / "m.msrt"), 0);
  EXPECT_EQ(EntriesOf(results), 0u);
}

}  // namespace
}  // namespace msrt::testing

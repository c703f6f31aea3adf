#include "core/api/version.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/api/api_testing.h"
#include "core/base/parallel_for.h"
#include "core/base/str_cat.h"

namespace msrt {
namespace {

using Json = nlohmann::json;

// The flags of the first processor, as the system lists them: " fpu vme ... ".
std::string SystemFlags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("flags")) return line.append(" ");
  }
  return "";
}

TEST(BuildInfo, JsonNamesBuildAndMachine) {
  const Json info = Json::parse(BuildInfoJson());
  EXPECT_EQ(info["version"], msrt_version());
  EXPECT_EQ(info["build_type"], MSRT_BUILD_TYPE);
  EXPECT_EQ(info["compiler"], MSRT_COMPILER);
  EXPECT_EQ(info["sanitizers"], MSRT_SANITIZERS);
  EXPECT_EQ(info["processor"]["cores"], AvailableCores());
  EXPECT_FALSE(info["processor"]["name"].get<std::string>().empty());
}

TEST(BuildInfo, InstructionsMatchTheSystem) {
  const std::string flags = SystemFlags();
  if (flags.empty()) GTEST_SKIP() << "the system does not list processor flags";
  const Json instructions = Json::parse(BuildInfoJson())["processor"]["instructions"];
  const std::pair<const char*, const char*> kNames[] = {{"avx2", "avx2"},
                                                        {"fma", "fma"},
                                                        {"avx512f", "avx512f"},
                                                        {"avx512bw", "avx512bw"},
                                                        {"avx512vl", "avx512vl"},
                                                        {"avx512vnni", "avx512_vnni"},
                                                        {"avx512bf16", "avx512_bf16"}};
  for (const auto& [name, flag] : kNames) {
    const bool listed =
        std::find(instructions.begin(), instructions.end(), name) != instructions.end();
    EXPECT_EQ(listed, flags.find(StrCat(" ", flag, " ")) != std::string::npos) << name;
  }
}

// A runtime has a delegate for every listed library, and every library is listed.
TEST(BuildInfo, LibrariesMatchTheDelegates) {
  msrt_runtime* runtime = nullptr;
  const char* text = nullptr;
  MSRT_ASSERT_OK(msrt_runtime_create(nullptr, &runtime));
  MSRT_ASSERT_OK(msrt_runtime_info_json(runtime, &text));
  const Json info = Json::parse(text);
  msrt_runtime_destroy(runtime);
  EXPECT_EQ(info["build"], Json::parse(BuildInfoJson()));
  const Json& delegates = info["delegates"];
  const bool has_onednn =
      std::find(delegates.begin(), delegates.end(), "onednn") != delegates.end();
  const Json& libraries = info["build"]["libraries"];
  ASSERT_EQ(libraries.size(), has_onednn ? 1u : 0u);
  if (!has_onednn) return;
  EXPECT_EQ(libraries[0]["name"], "oneDNN");
  EXPECT_TRUE(libraries[0]["version"].get<std::string>().starts_with("3."))
      << libraries[0]["version"];
  EXPECT_FALSE(libraries[0]["instructions"].get<std::string>().empty());
}

TEST(BuildInfo, TextContainsTheFieldsOfTheJson) {
  const std::string text = BuildInfoText();
  const Json info = Json::parse(BuildInfoJson());
  EXPECT_TRUE(text.starts_with(StrCat("msrt ", msrt_version(), " ("))) << text;
  for (const char* field : {"build_type", "compiler", "sanitizers", "threads"}) {
    EXPECT_NE(text.find(info[field].get<std::string>()), std::string::npos)
        << field << " is missing in: " << text;
  }
  for (const Json& library : info["libraries"]) {
    EXPECT_NE(text.find(StrCat(library["name"].get<std::string>(), " ",
                               library["version"].get<std::string>())),
              std::string::npos)
        << text;
  }
  EXPECT_NE(text.find(info["processor"]["name"].get<std::string>()), std::string::npos) << text;
}

}  // namespace
}  // namespace msrt

#include "core/image/jobs/job_identity.h"

#include <gtest/gtest.h>

#include "core/image/files/image_testing.h"

namespace msrt::testing {
namespace {

class JobIdentityTest : public ::testing::Test {
 protected:
  JobIdentityTest() {
    const std::string bytes = "a model";
    WriteBytes(folder_.File("model"), std::as_bytes(std::span(bytes)));
    environment_.io = DefaultIo();
    auto source = MakeCallbackSource(
        info_, [](const ImageWindow&, const PixelBuffer&) { return OkStatus(); });
    EXPECT_TRUE(source.ok());
    if (source.ok()) options_.input.source = *std::move(source);
  }

  uint64_t Identity(const std::vector<std::string>& pins) {
    options_.compile.place.pins.clear();
    for (const std::string& text : pins) {
      const Result<Pin> pin = ParsePin(text);
      EXPECT_TRUE(pin.ok());
      if (pin.ok()) options_.compile.place.pins.push_back(*pin);
    }
    const Result<uint64_t> identity =
        JobIdentity(environment_, folder_.File("model"), info_, options_);
    EXPECT_TRUE(identity.ok()) << identity.status().message();
    return identity.ok() ? *identity : 0;
  }

  const TestFolder folder_;
  ImageInfo info_{.channels = 3, .height = 4, .width = 5, .dtype = DType::kU8};
  Environment environment_;
  JobOptions options_;
};

TEST_F(JobIdentityTest, PinsCountByTheirContents) {
  const uint64_t none = Identity({}), one = Identity({"op:Conv=cpu"});
  EXPECT_NE(none, one);
  EXPECT_EQ(one, Identity({"op:Conv=cpu"}));
  EXPECT_NE(one, Identity({"op:Conv=onednn"}));
  EXPECT_NE(one, Identity({"op:Conv!=cpu"}));
  EXPECT_NE(one, Identity({"node:conv1=cpu"}));
}

TEST_F(JobIdentityTest, HowTheWorkIsCutDoesNotCount) {
  const uint64_t identity = Identity({});
  options_.plan.strip_rows = 7;
  options_.plan.memory_limit_bytes = 1 << 30;
  options_.split_rows = 2;
  EXPECT_EQ(identity, Identity({}));
}

// The pixels of such a source are not looked at, so its owner has to tell images apart.
TEST_F(JobIdentityTest, SourcesOfTheApplicationAreContinuedWithAnIdentity) {
  options_.resume = true;
  const Result<uint64_t> none = JobIdentity(environment_, folder_.File("model"), info_, options_);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("has an identity"), std::string::npos);
  options_.input.identity = "scene 1";
  const uint64_t first = Identity({});
  EXPECT_EQ(first, Identity({}));
  options_.input.identity = "scene 2";
  EXPECT_NE(first, Identity({}));
  const uint64_t second = Identity({});
  info_.no_data = 7;
  EXPECT_NE(second, Identity({}));
  const uint64_t seven = Identity({});
  info_.no_data = 8;
  EXPECT_NE(seven, Identity({}));
}

}  // namespace
}  // namespace msrt::testing

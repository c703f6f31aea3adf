#include "core/comm/job/job.h"

#include <gtest/gtest.h>

#include <map>

namespace msrt {
namespace {

using Variables = std::map<std::string, std::string>;

const Variables kByHand = {{"MSRT_RANK", "1"},
                           {"MSRT_SIZE", "4"},
                           {"MSRT_STORE", "[::1]:5000"},
                           {"MSRT_TOKEN", "000102030405060708090a0b0c0d0e0F"}};

Result<JobSettings> Read(const Variables& variables) {
  return ReadJobSettings([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found != variables.end() ? found->second.c_str() : nullptr;
  });
}

std::string ErrorWith(const std::string& name, const char* value) {
  Variables variables = kByHand;
  if (value != nullptr) variables[name] = value;
  else variables.erase(name);
  return Read(variables).status().message();
}

TEST(JobSettings, ReadsVariablesSetByHand) {
  Variables variables = kByHand;
  variables["MSRT_TIMEOUT"] = "3";
  variables["MSRT_STALL_TIMEOUT"] = "2.5";
  const auto settings = Read(variables);
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  EXPECT_EQ(settings->source, JobSettings::Source::kByHand);
  EXPECT_EQ(settings->rank, 1);
  EXPECT_EQ(settings->size, 4);
  EXPECT_EQ(settings->server.host, "::1");
  EXPECT_EQ(settings->server.port, 5000);
  EXPECT_EQ(settings->token[15], 15);
  EXPECT_EQ(settings->silence_limit, std::chrono::seconds(3));
  EXPECT_EQ(settings->stall_limit, std::chrono::milliseconds(2500));
}

TEST(JobSettings, NoVariablesMeanOneRank) {
  const auto settings = Read({});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->source, JobSettings::Source::kAlone);
  EXPECT_EQ(settings->size, 1);
}

TEST(JobSettings, MpirunIsRecognised) {
  const auto settings = Read(
      {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}, {"MSRT_STALL_TIMEOUT", "30"}});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->source, JobSettings::Source::kMpi);
  EXPECT_EQ(settings->rank, 2);
  EXPECT_EQ(settings->stall_limit, std::chrono::seconds(30));
}

TEST(JobSettings, ErrorsNameTheVariable) {
  EXPECT_EQ(ErrorWith("MSRT_RANK", "4"), "MSRT_RANK='4': must be a number from 0 to 3");
  EXPECT_EQ(ErrorWith("MSRT_SIZE", "0"), "MSRT_SIZE='0': must be a number from 1 to 65536");
  EXPECT_EQ(ErrorWith("MSRT_STORE", nullptr),
            "MSRT_RANK is set, but MSRT_STORE is not; set MSRT_STORE=HOST:PORT on the host of rank "
            "0, or start the ranks by 'msrun launch'");
  EXPECT_EQ(ErrorWith("MSRT_STORE", "host"),
            "MSRT_STORE: address 'host': must be HOST:PORT, with an IPv6 address in brackets");
  EXPECT_EQ(ErrorWith("MSRT_STORE", "host:0"),
            "MSRT_STORE='host:0': the port must not be 0; choose one");
  EXPECT_EQ(ErrorWith("MSRT_TOKEN", "00"), "MSRT_TOKEN: a job token must be 32 hexadecimal digits");
  EXPECT_EQ(ErrorWith("MSRT_TIMEOUT", "x"), "MSRT_TIMEOUT='x': must be a number from 1 to 86400");
  EXPECT_EQ(ErrorWith("MSRT_STALL_TIMEOUT", "0"),
            "MSRT_STALL_TIMEOUT='0': must be seconds from 0.05 to 604800");
  EXPECT_EQ(ErrorWith("MSRT_RANK", nullptr),
            "MSRT_SIZE is set, but MSRT_RANK is not; set MSRT_RANK to 0, 1, ... for each rank, or "
            "start the ranks by 'msrun launch'");
}

}  // namespace
}  // namespace msrt

// A removed barrier, a removed stream wait and an access beyond a block are found by the
// sanitizers; the same programs without the fault are clean. Runs race_program.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/cuda/sanitizers.h"

namespace msrt::cuda {
namespace {

struct Outcome {
  int exit_code = -1;
  std::string output;
};

Outcome RunProgram(const std::string& arguments) {
  const char* program = std::getenv("MSRT_RACE_PROGRAM");
  Outcome outcome;
  if (program == nullptr) return outcome;
  const std::string command = std::string(program) + " " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> part;
  while (fgets(part.data(), part.size(), pipe) != nullptr) outcome.output += part.data();
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

TEST(RaceTest, RightProgramsAreClean) {
  for (const char* program : {"barrier", "wait", "bounds"}) {
    const Outcome outcome = RunProgram(std::string(program) + " right");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_EQ(outcome.output, "result is right\n") << outcome.output;
  }
}

TEST(RaceTest, RemovedBarrierIsReported) {
  if (!kThreadSanitizer) GTEST_SKIP() << "needs the thread sanitizer";
  const Outcome outcome = RunProgram("barrier wrong");
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.output.find("data race"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("test_kernels.cu"), std::string::npos) << outcome.output;
}

TEST(RaceTest, RemovedStreamWaitIsReportedThoughTheResultIsRight) {
  if (!kThreadSanitizer) GTEST_SKIP() << "needs the thread sanitizer";
  const Outcome outcome = RunProgram("wait wrong");
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.output.find("data race"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("result is right"), std::string::npos) << outcome.output;
}

TEST(RaceTest, AccessBeyondABlockIsReported) {
#ifndef MSRT_ASAN
  GTEST_SKIP() << "needs the address sanitizer";
#endif
  const Outcome outcome = RunProgram("bounds wrong");
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.output.find("AddressSanitizer"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("test_kernels.cu"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace msrt::cuda

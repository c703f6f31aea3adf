#include <gtest/gtest.h>

#include "core/comm/thread_engine.h"
#include "tests/comm/conformance.h"

namespace msrt {
namespace {

TEST(ThreadEngineTest, Conforms) { RunConformance({"threads", 8, RunInThreads}); }

TEST(ThreadEngineTest, RefusesImpossibleSizes) {
  EXPECT_FALSE(MakeThreadCommunicators(0).ok());
  EXPECT_FALSE(MakeThreadCommunicators(-1).ok());
  EXPECT_FALSE(MakeThreadCommunicators(1 << 20).ok());
}

}  // namespace
}  // namespace msrt

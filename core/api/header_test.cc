#include <gtest/gtest.h>

#include "core/abi/msrt.h"

extern "C" int CallsFromC(void);

TEST(Header, WorksFromCAndCpp) {
  EXPECT_TRUE(CallsFromC());
  EXPECT_EQ(msrt_abi_version(), MSRT_ABI_VERSION);
  EXPECT_STREQ(msrt_version(), MSRT_VERSION);
}

#include "delegates/reference/philox.h"

#include <gtest/gtest.h>

namespace msrt::reference {
namespace {

// The known answers that Random123, the library of the paper's authors, publishes for
// philox4x64-10 (tests/kat_vectors).
TEST(Philox, KnownAnswers) {
  constexpr uint64_t kOnes = UINT64_MAX;
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x16554d9eca36314c, 0xdb20fe9d672d0fdc,
                                                       0xd7e772cee186176b, 0x7e68b68aec7ba23b}));
  EXPECT_EQ(Philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxBlock{0x87b092c3013fe90b, 0x438c3c67be8d0224, 0x9cc7d7c69cd777b6,
                         0xa09caebf594f0ba0}));
  EXPECT_EQ(Philox({0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89},
                   {0x452821e638d01377, 0xbe5466cf34e90c6c}),
            (PhiloxBlock{0xa528f45403e61d95, 0x38c72dbd566e9788, 0xa5a1610e72fd18b5,
                         0x57bd43b5e52b7fe6}));
}

}  // namespace
}  // namespace msrt::reference

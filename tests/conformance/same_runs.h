// Runs two sessions that must return the same bits in every run.
#pragma once

#include "tests/conformance/pipeline.h"
#include "tests/conformance/small_graph.h"

namespace msrt::testing {

inline void ExpectSameRuns(Session& session, Session& expected,
                           const std::vector<std::vector<ConstTensor>>& runs,
                           const std::string& where) {
  for (const auto& inputs : runs) {
    const auto got = RunSession(session, inputs), want = RunSession(expected, inputs);
    ASSERT_TRUE(got.ok()) << where << ": " << got.status().message();
    ASSERT_TRUE(want.ok()) << want.status().message();
    ExpectSameBits(*got, *want, where);
  }
}

}  // namespace msrt::testing
